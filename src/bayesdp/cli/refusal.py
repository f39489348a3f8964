"""From the library's words to the command line's: `noise_multiplier` is typed as `--noise-multiplier` here."""

from __future__ import annotations

import re

OPTIONS = {
    "noise_multiplier": "--noise-multiplier",
    "noise_std": "--noise-std",
    "sampling_rate": "--sampling-rate",
    "steps": "--steps",
    "total_steps": "--total-steps",
    "delta": "--delta",
    "epsilon": "--epsilon",
    "engine": "--engine",
    "adjacency": "--adjacency",
    "orders": "--orders",
    "coverage": "--coverage",
    "failure": "--failure",
    "composition": "--composition",
    "estimator": "--estimator",
    "cap": "--clip-norm",
    "seed": "--seed",
    "out": "--out",
    "name": "NAME",
    "sensitivities": "distances",
    "data": "DATA",
    "run": "RUN",
    "target": "--target",
    "task": "--task",
    "drop": "--drop",
    "categories": "--categories",
    "scale": "--scale",
    "test_share": "--test-share",
    "features": "--features",
    "data_dir": "--data-dir",
    "full": "--full",
    "model": "--model",
    "optimizer": "--optimizer",
    "learning_rate": "--learning-rate",
    "momentum": "--momentum",
    "clip_norm": "--clip-norm",
    "batch_size": "--batch-size",
    "epochs": "--epochs",
    "noise_schedule": "--schedule",
    "epsilon_budget": "--epsilon-budget",
    "audit": "--audit",
    "members": "--members",
    "watch": "--watch",
    "method": "--method",
    "guide": "--guide",
    "variant": "--variant",
    "noise_aware": "--noise-aware",
    "samples": "--samples",
    "radius": "--radius",
    "scales": "--scales",
    "group": "--group",
    "components": "--components",
    "non_private_too": "--non-private-too",
}
"""The library's name of an argument → what the user typed."""

_NAMES = "|".join(OPTIONS)
# Some names are also English words, so only places where the library names an argument count: after "Expected",
# before "=", before "[index]", in "give data_dir" and in "give cap (the clip norm)".
_NAMED = re.compile(
    rf"\bcap \(the clip norm\)|(?<=Expected )({_NAMES})\b|(?<![\w-])({_NAMES})(?=[=\[])|(?<=give )data_dir\b"
)
_LIST_OF_ONE = re.compile(r"(--drop|--categories)=\(('[^']*'),\)")


def in_options(message: str) -> str:
    """`message` with every argument under its command-line name."""
    renamed = _NAMED.sub(lambda found: OPTIONS[found[0].removesuffix(" (the clip norm)")], message)
    return _LIST_OF_ONE.sub(r"\1 \2", renamed)


def one_line(message: str) -> str:
    """`message` in the command line's words, on one line."""
    return " ".join(in_options(message).split())
