"""What a finished run cost single records, as a table: those it watched, and any others after the fact (SPEC H3, E14).

    watched      the tally of every step
    others       |clip(g)| at the kept iterates (`iterates`), the clip norm at the steps in between; without
                 iterates only what everybody is promised is known

Either way ε is the smaller of the ex-post value and the DP value, each at δ/2 (H12).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant import InstanceAccountant, WorstCaseAccountant
from bayesdp.accountant import state as states
from bayesdp.errors import Array, InputError
from bayesdp.learn import files
from bayesdp.learn.everyone import EVERYONE
from bayesdp.learn.iterates import Iterates
from bayesdp.learn.job import Job
from bayesdp.learn.prepared import Prepared, finished, prepare
from bayesdp.learn.training import Training
from bayesdp.learn.witnesses import NOISELESS
from bayesdp.report.record_table import RecordTable

WATCHED = "The run watched these records: their gradients were measured at every step, or bounded by what was measured."
_EX_POST = (
    "ε is the smaller of two values, each at half of δ: a bound on the privacy loss of the run that happened, by an "
    "exponential martingale over orders fixed in advance (H3, H12), and the DP value, which holds for everybody."
)
_SIDES = (
    "remove: the record was trained on, and the run is compared with one without it. add: it was not, and the run is "
    "compared with one that had it (H3)."
)


def exposure(
    folder: str | Path,
    numbers: tuple[int, ...] | Literal["everyone"] | None = None,
    progress: Callable[[float], None] | None = None,
) -> RecordTable:
    """Per-instance ε at the run's δ of the records with these numbers (None: those that the run watched).

    `progress` is told the share that is done. The table is sensitive.

    Bad input: a folder without a finished run of `train`, a number that no record has, nobody watched, or a run
    without clipping that kept not every iterate.
    """
    target = Path(folder)
    job = Job.read(target)
    if not finished(target):
        raise errors.refuse("run", str(target), "to hold a finished run", f"Go on with it: bayesdp resume {target}")
    if numbers is None and not job.watch:
        raise InputError("Expected records: the run watched none. Name them by their numbers, or train with --watch.")
    ready = prepare(job if numbers is None else dataclasses.replace(job, watch=_there(numbers)))
    ready.check_same(target)
    if (ready.plan.noise == 0).any():
        raise errors.refuse("run", str(target), "to have added noise in every step", NOISELESS)
    found = states.read(target / "accountants.json")
    limit = _least(found, _delta(job) / 2)
    epsilon, words = np.full(len(ready.watched), np.nan), []
    known = _tallied(found, job, ready, limit)
    inside = np.isin(ready.watched, list(known))
    if inside.any():
        epsilon[inside] = [known[number] for number in ready.watched[inside].tolist()]
        words.append(
            WATCHED if inside.all() else WATCHED.replace("these records", f"{inside.sum():,} of these records")
        )
    if not inside.all():
        epsilon[~inside], how = _after_the_fact(target, job, ready, ~inside, limit, progress)
        words.append(how if not inside.any() else f"Of the others: {how}")
    return _table(target, ready, epsilon, _least(found, _delta(job)), words)


def _there(numbers: tuple[int, ...] | Literal["everyone"]) -> tuple[int, ...] | Literal["everyone"]:
    if not isinstance(numbers, str):
        for number in numbers:
            errors.whole("records", number, least=1, hint="Records are counted from 1, in the order of the file.")
    return numbers


def _tallied(found: Any, job: Job, ready: Prepared, limit: float) -> dict[int, float]:
    """ε by number of the records that the run watched."""
    if not job.watch:
        return {}
    accountant = InstanceAccountant.from_state(found["watched"])
    whom = ready.numbers.tolist() if isinstance(job.watch, str) else job.watch
    finite = limit if np.isfinite(limit) else None
    return dict(zip(whom, accountant.epsilon_and_limit(_delta(job), limit=finite)[0].tolist(), strict=True))


def _least(found: Any, delta: float) -> float:
    """The DP ε of the run: of its plan, or of its filter; infinite without a clip norm."""
    everybody = WorstCaseAccountant.from_state(found["everybody"])
    known = [everybody.epsilon(delta)] if everybody.history else [np.inf]
    if found["budgets"] is not None:
        known.append(float(InstanceAccountant.from_state(found["budgets"]).epsilon(delta)[0]))
    return min(known)


def _after_the_fact(
    target: Path,
    job: Job,
    ready: Prepared,
    chosen: npt.NDArray[np.bool_],
    limit: float,
    progress: Callable[[float], None] | None,
) -> tuple[Array, str]:
    """ε of records that nobody watched, from the iterates, and words on how it is known."""
    kept, bounded = Iterates.of(target), bool(np.isfinite(limit))
    if kept is None:
        if not bounded:
            raise InputError(
                "Expected a run with a clip norm, or one that kept its iterates, to tell what it cost a record: "
                "nothing bounds the steps in between. Train with --keep-iterates 1."
            )
        return np.full(int(chosen.sum()), limit), (
            "No iterates were kept, so that all there is for records that were not watched is the DP value at half of "
            "δ. Train with --keep-iterates 1 or --watch to know more."
        )
    held = job.refresh == kept.every  # then no record moved a step farther than the iterate before it says
    if not bounded and kept.every > 1 and not held:
        raise errors.refuse("keep_iterates", kept.every, "to be 1 for a run without a clip norm")
    plan = dataclasses.replace(ready.plan, refresh=None, filter=None)  # limits only shorten what is measured here
    data = (ready.data.x, ready.data.y)
    watch = tuple(part[chosen] for part in (data if ready.watch == EVERYONE else ready.watch))
    replay = Training(plan, ready.predictor.loss(), ready.params, data, audit=None, members=0, watch=watch, seed=0)
    steps = int(files.read_json(target / "plan.json")["steps"])
    for step, params in kept.read(ready.params):
        measured = replay.witness_distances(params, step)
        replay.tallies.charge(step, measured)
        for between in range(step + 1, min(step + kept.every, steps)):
            replay.tallies.charge(between, measured if held else np.ones_like(measured))
        if progress is not None:
            progress(min(1.0, (step + kept.every) / steps))
    assert replay.tallies.watched is not None
    words = "Gradients were measured at all iterates, after the run."
    if kept.every > 1:
        words = f"Gradients were measured at every {kept.every}th iterate, after the run; " + (
            "the run itself clipped each record at what they were there until the next."
            if held
            else "in between the clip norm counts."
        )
    finite = limit if bounded else None
    return replay.tallies.watched.epsilon_and_limit(_delta(job), limit=finite)[0], words


def _table(target: Path, ready: Prepared, epsilon: Array, dp: float, words: list[str]) -> RecordTable:
    numbers = ready.watched
    x, y = (ready.data.x, ready.data.y) if ready.watch == EVERYONE else ready.watch
    params = files.read_tree(target / "params.npz", ready.params)
    classes = ready.data.classes
    inside = np.isin(numbers, ready.numbers)
    return RecordTable(
        ids=tuple(numbers.tolist()),
        epsilon=tuple(epsilon.tolist()),
        delta=_delta(ready.job),
        direction=tuple(np.where(inside, "remove", "add").tolist()),
        label=tuple(str(classes[int(one)]) for one in y) if classes else None,
        correct=tuple(map(bool, ready.predictor.right(params, x, y))) if classes else None,
        dp_epsilon=dp,
        steps=int(files.read_json(target / "plan.json")["steps"]),
        seeded=ready.job.seed is not None,
        title=f"Records of {ready.data.name}, {ready.job.model} model",
        how=(*words, _EX_POST, _SIDES),
    )


def _delta(job: Job) -> float:
    assert job.delta is not None  # a job in a folder is settled
    return job.delta
