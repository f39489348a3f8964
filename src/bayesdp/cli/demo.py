"""`bayesdp demo`: one run on heavy-tailed synthetic gradients, accounted three ways."""

from __future__ import annotations

from bayesdp import errors
from bayesdp.cli import options, show


def demo(seed: options.Seed = 0, json: options.Json = False) -> None:
    """
    Account one training run on synthetic heavy-tailed gradients three ways.

    What it promises everybody, people like those in the data, and one member, in a table and in plain words.

    For example:
      bayesdp demo
    """
    from bayesdp.experiments import demo as experiment

    with show.waiting("Accounting 1000 steps three ways"):
        shown = experiment.three_ways(errors.whole("--seed", seed, least=0))
    if json:
        show.guarantees(shown.guarantees, json=True)
        return
    show.line(
        f"One run of private SGD on synthetic heavy-tailed gradients: {experiment.STEPS} steps, noise multiplier "
        f"{experiment.NOISE_MULTIPLIER}, sampling rate {experiment.RATE}. The clip norm is the "
        f"{experiment.CLIPPED_AT:.0%} quantile of norms; {experiment.PEOPLE} people outside of the data and as many "
        f"inside are witnesses. The record is a member whose typical norm is {shown.named_size:.0%} of the clip norm."
    )
    show.guarantees(shown.guarantees)
    show.curve(shown.curve)
