"""What will be done, in the words of a terminal, before it is done; of a table, for its owner, what was found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesdp.cli import terminal

if TYPE_CHECKING:
    from bayesdp.data import Dataset
    from bayesdp.jobs.prepared import PreparedJob

SHOWN = 10
"""How many sentences on a table are shown."""


def plan_in_words(prepared: PreparedJob[Any, Any]) -> list[str]:
    """A sentence each: records, model, plan, what is public, what was done to a table."""
    data = prepared.data
    from bayesdp.jobs.people import count

    held = f", {count(prepared.holdout):,} held out as outsiders" if prepared.holdout is not None else ""
    size = f"{data.size:,} records to train on"
    if data.people is not None:
        size += f" with {len(data.x):,} rows"
    lines = [
        f"{data.name}: {size}{held}, {prepared.tests:,}{'' if data.people is None else ' rows'} to test on; "
        f"{data.x[0].size:,} features, {_kind(data)}.",
        *prepared.plan_in_words,
    ]
    if prepared.too_few:
        lines.append(prepared.too_few)
    lines += [f"Public: {sentence}" for sentence in prepared.public]
    lines += [f"Table (sensitive): {sentence}" for sentence in data.findings[:SHOWN]]
    if len(data.findings) > SHOWN:
        lines.append(f"Table (sensitive): {len(data.findings) - SHOWN:,} more sentences: bayesdp check has them all.")
    if prepared.job.seed is not None:
        lines.append(f"{terminal.SEEDED} Leave --seed out for a private one.")
    return lines


def _kind(data: Dataset) -> str:
    if data.task == "density":
        return "nothing to predict"
    return f"{len(data.classes)} classes" if data.classes else "a number to predict"
