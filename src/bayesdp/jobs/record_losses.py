"""What a finished run cost single records, as a table: those it watched, and any others after the fact (H3).

    watched      the tally of every step
    others       |clip(g)| at the kept iterates (`iterates`), the clip norm at the steps in between; without
                 iterates only what everybody is promised is known

Either way ε is the ex-post value mixed with what all planned steps promise everybody (H14).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant.run_tallies import NOISELESS
from bayesdp.accountant.worst_case import PlanDP
from bayesdp.errors import Array
from bayesdp.jobs import people
from bayesdp.jobs.data_source import Labelled
from bayesdp.jobs.people import Whom
from bayesdp.jobs.prepared_sgd import PreparedSGD, prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn import records
from bayesdp.learn.loop.iterates import Iterates
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.setup import Replay, Setup
from bayesdp.report.records.table import RecordTable
from bayesdp.unit import spoken

WATCHED = "The run watched these records: their gradients were measured at every step, or bounded by what was measured."
_EX_POST = (
    "ε comes from the costs of the run that happened, by an exponential martingale over orders fixed in advance (H3, "
    "H12), mixed with what the plan promises everybody (H14). It is a promise to each record that was named before the "
    "run; of those that stand out only here, nothing is promised (H19)."
)
_SIDES = (
    "remove: the record was trained on, and the run is compared with one without it. add: it was not, and the run is "
    "compared with one that had it (H3)."
)


def exposure(
    folder: str | Path,
    numbers: tuple[Whom, ...] | Literal["everyone"] | None = None,
    progress: Callable[[float], None] | None = None,
) -> RecordTable:
    """Per-instance ε at the run's δ of the records with these numbers (None: those that the run watched).

    `progress` is told the share that is done. The table is sensitive.

    Bad input: a folder without a finished run of `train`, a number that no record has, nobody watched, or a run
    without clipping that kept not every iterate.
    """
    place = RunFolder(Path(folder))
    job = SGDJob.read(place)
    place.check_finished()
    if numbers is None and not job.watch:
        raise errors.unmet(
            "records",
            None,
            "records: the run watched none",
            hint="Name them by their numbers, or train with --watch.",
        )
    prepared = prepare(job if numbers is None else dataclasses.replace(job, watch=_there(job, numbers)))
    prepared.check_same(place)
    if (prepared.plan.noise == 0).any():
        raise errors.refuse("run", str(folder), "to have added noise in every step", NOISELESS)
    run = Run.load(folder, params=prepared.params)
    dp = run.tallies.plan_dp()
    found, words = np.full((2, len(prepared.watched)), np.nan), []
    known = _tallied(run, job, prepared)
    inside = np.isin(prepared.watched, list(known))
    if inside.any():
        found[:, inside] = np.transpose([known[number] for number in prepared.watched[inside].tolist()])
        words.append(
            WATCHED if inside.all() else WATCHED.replace("these records", f"{inside.sum():,} of these records")
        )
    if not inside.all():
        later = _after_the_fact(place, run, prepared, ~inside, dp, progress)
        found[:, ~inside], how = (later.epsilon, later.exposure), later.how
        words.append(how if not inside.any() else f"Of the others: {how}")
    return _table(run, prepared, found, words)


def _there(job: SGDJob, numbers: tuple[Whom, ...] | Literal["everyone"]) -> tuple[Whom, ...] | Literal["everyone"]:
    if not isinstance(numbers, str) and job.unit == "record":
        for number in numbers:
            errors.whole("records", number, least=1, hint="Records are counted from 1, in the order of the file.")
    return numbers


def _tallied(run: Run, job: SGDJob, prepared: PreparedSGD) -> dict[int, tuple[float, float]]:
    """ε and exposure by number of the records that the run watched."""
    if run.tallies.watched is None:
        return {}
    whom = prepared.numbers.tolist() if isinstance(job.watch, str) else people.numbered(prepared.data, job.watch)
    losses = run.tallies.watched.epsilon_and_dp(run.plan.delta, dp=run.tallies.plan_dp())[0]
    exposed = run.tallies.watched.exposure(run.plan.delta)
    return dict(zip(whom, zip(losses.tolist(), exposed.tolist(), strict=True), strict=True))


class _Known(NamedTuple):
    """ε of some records, what puts them in order where it ties, and words on how it is known."""

    epsilon: Array
    exposure: Array
    how: str


def _after_the_fact(
    folder: RunFolder,
    run: Run,
    prepared: PreparedSGD,
    chosen: npt.NDArray[np.bool_],
    dp: PlanDP | None,
    progress: Callable[[float], None] | None,
) -> _Known:
    """ε of records that nobody watched, from the iterates."""
    kept, watched = Iterates.of(folder.path), prepared.watched_records
    assert watched is not None
    if kept is None:
        if dp is None:
            raise errors.unmet(
                "keep_iterates",
                None,
                "a run with a clip norm, or one that kept its iterates, to tell what it cost a record: nothing bounds "
                "the steps in between",
                hint="Train with --keep-iterates 1.",
            )
        alike = np.full(int(chosen.sum()), dp.epsilon)
        return _Known(
            alike,
            alike,
            "No iterates were kept, so that all there is for records that were not watched is the DP value. "
            "Train with --keep-iterates 1 or --watch to know more.",
        )
    # Then no record moved a step farther than the iterate before it says.
    held = prepared.job.measure_every == kept.every
    if dp is None and kept.every > 1 and not held:
        raise errors.refuse("keep_iterates", kept.every, "to be 1 for a run without a clip norm")
    # Limits only shorten what is measured here.
    plan = dataclasses.replace(prepared.plan, measure_every=None, filter=None)
    watch, data = records.chosen(watched, np.flatnonzero(chosen)), prepared.trained_on
    setup = Setup.of(plan.course(prepared.loss, prepared.params), data, watch=watch)
    replay, tallies = Replay(setup), setup.tallies()
    for step, params in kept.read(prepared.params):
        measured = replay.distances(params, step)
        tallies.charge(step, measured)
        for between in range(step + 1, min(step + kept.every, run.steps)):
            tallies.charge(between, measured if held else np.ones_like(measured))
        if progress is not None:
            progress(min(1.0, (step + kept.every) / run.steps))
    assert tallies.watched is not None
    words = "Gradients were measured at all iterates, after the run."
    if kept.every > 1:
        words = f"Gradients were measured at every {kept.every}th iterate, after the run; " + (
            "the run itself clipped each record at what they were there until the next."
            if held
            else "in between the clip norm counts."
        )
    found = tallies.watched
    return _Known(found.epsilon_and_dp(run.plan.delta, dp=dp)[0], found.exposure(run.plan.delta), words)


def _table(run: Run, prepared: PreparedSGD, found: Array, words: list[str]) -> RecordTable:
    """`found`: ε and exposure of each."""
    numbers, watched, unit = prepared.watched, prepared.watched_records, prepared.data.unit
    inside = np.isin(numbers, prepared.numbers)
    classes, label, correct = prepared.data.classes, None, None
    if classes and isinstance(watched, Labelled):  # a person may have rows of several classes
        label = tuple(str(classes[int(one)]) for one in watched.y)
        correct = tuple(map(bool, prepared.model.right(run.params, watched)))
    whom: Any = prepared.whom
    return RecordTable(
        ids=tuple(whom),
        epsilon=tuple(found[0].tolist()),
        exposure=tuple(found[1].tolist()),
        delta=run.delta,
        direction=tuple(np.where(inside, "remove", "add").tolist()),
        label=label,
        correct=correct,
        dp_epsilon=run.guarantees[0].epsilon,
        steps=run.steps,
        seeded=run.seeded,
        title=f"{spoken('Records', unit)} of {prepared.data.name}, {prepared.job.model} model",
        how=tuple(spoken(one, unit) for one in (*words, _EX_POST, _SIDES)),
        unit=unit,
    )
