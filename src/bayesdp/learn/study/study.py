"""Many runs of one plan: what training costs a named record, a priori, both ways round (paper S3, E1).

    remove   D_α(with the record ‖ without it)    averages over runs on the data *with* it
    add      D_α(without ‖ with)                  averages over runs *without* it

The data as they are serve one of the two for every record at once: with a member, without an outsider. The other needs
runs of its own for each record: on the data less the member, or with the outsider put in. All runs start from one
initialisation and are never published: they are drawn to learn about *other* runs of the plan.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from bayesdp import errors
from bayesdp.accountant.repeated_runs.truncation import Truncation
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import named, refuse, unmet
from bayesdp.estimate import METHODS
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.schedule import phases
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data, checked, chosen, joined, like, records_of
from bayesdp.learn.sgd import SGD, Loss
from bayesdp.learn.study import folder as study_folder
from bayesdp.learn.study.facts import Facts, Subject
from bayesdp.learn.study.result import StudyResult
from bayesdp.learn.study.units import DATA, Distances, Material, Unit
from bayesdp.mechanism.update_rule import Sum

DIRECTIONS = ("both", "remove", "add")
TOGETHER = 10
"""Runs in one compiled program, unless told otherwise."""

Progress = Callable[[float], None]
"""Told the share of the whole work that is done."""


Perform = Callable[[Material, list[Unit], Progress | None], Iterator[tuple[Unit, Distances]]]
"""Does units wherever it does them."""


@dataclass(frozen=True)
class Study:
    """What will be done, all of it fixed beforehand.

    Args:
        plan: an `SGD` with a clip norm and noise in every step, add-remove adjacency.
        runs: how many runs of each data set, fixed beforehand: more of them after a look at the result would be a
            second look, which nothing pays for. A folder holds a study of one number of runs.
        every: measure the records before every k-th step only and charge the clip norm in between (ERR 22d):
            cheaper, and a much larger bound.
        direction: "both", or "remove" or "add" alone.
        failure: what each end of a record's interval may be wrong with, over both directions, methods and orders.
        estimator: of the upper ends, a bound of `bayesdp.estimate` that holds for every law.
        block: how many runs make one compiled program; part of what is computed, like the number of devices.
        truncation: an (ε, δ) to be certified by truncation (H21) as well, fixed beforehand: `runs_needed` says how many
            runs it takes. A statement of its own, with the same failure.
        seed: what all noise of the study comes from; drawn from the operating system if left out. It is kept in the
            folder either way: the runs of a study are not private, and not for publication.

    Bad input gets `InputError` naming the field.

    Examples:
        >>> import optax
        >>> plan = bd.SGD(sampling_rate=0.5, steps=4, optimizer=optax.sgd(0.1), noise_multiplier=4.0)
        >>> study = bd.Study(plan, runs=10, truncation=bd.Truncation(epsilon=0.5, delta=0.1))
        >>> study.runs_needed > study.runs
        True
    """

    plan: SGD
    runs: int = 10
    every: int = 1
    direction: str = "both"
    failure: float = 0.05
    estimator: str = "betting"
    block: int = TOGETHER
    seed: int | None = None
    truncation: Truncation | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.plan, SGD):
            raise errors.refuse("plan", self.plan, "to be a bd.SGD")
        for name in ("runs", "every", "block"):
            errors.whole(name, getattr(self, name), least=1)
        errors.one_of("direction", self.direction, DIRECTIONS)
        errors.probability("failure", self.failure)
        errors.one_of("estimator", self.estimator, [name for name in METHODS if METHODS[name].needs_range])
        if self.truncation is not None and not isinstance(self.truncation, Truncation):
            raise errors.refuse("truncation", self.truncation, "to be a bd.Truncation")
        if self.seed is not None:
            errors.whole("seed", self.seed, least=0)
        if self.plan.prelude is not None:
            raise errors.refuse("plan", self.plan.prelude, "without a prelude: a study does not repeat the preparation")
        self._check_plan()

    def run(
        self,
        loss: Loss,
        params: Params,
        data: Data,
        *,
        members: Sequence[int] = (),
        outsiders: Data = None,
        names: Sequence[str] | None = None,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        ray: str | None = None,
    ) -> StudyResult:
        """Train again and again, and say what the plan costs each record.

        Args:
            loss: see `SGD.fit`.
            params: where every run starts.
            data: the records as they are.
            members: the rows of `data` that are asked about.
            outsiders: records like those of `data`, along the first axis, that are not in it.
            names: of the members, then the outsiders; by default "row 3" and "outsider 0".
            folder: where the distances go, unit by unit, as they are measured. The same study started again there goes
                on with what is missing.
            progress: called with the share of the work that is done.
            ray: "local", or the address of a Ray cluster: units are spread over its workers. The numbers are those of
                one machine of the same kind.

        Bad input: a row that is not there, records of another shape, no record at all, or a folder that holds another
        study: `InputError`, and nothing is lost.
        """
        asked = self._asked(data, members, outsiders, names)
        entropy = secrets.randbits(63) if self.seed is None else self.seed
        material = Material(
            self.plan,
            loss,
            jax.tree.map(np.asarray, params),
            jax.tree.map(np.asarray, data),
            asked.records,
            asked.rows,
            self.every,
            entropy,
        )
        with _engine(ray) as perform, study_folder.locked(folder):
            kept = study_folder.claim(folder, material, self.fixed, seeded=self.seed is not None)
            units = self.units(asked.subjects)
            done = {unit: kept.read(unit) for unit in units if kept.has(unit)}
            for unit, distances in perform(kept.material, [unit for unit in units if unit not in done], progress):
                kept.write(unit, distances)
                done[unit] = distances
            return kept.finish(self._result(asked.subjects, count_of(self.plan.num_records, data), done))

    @property
    def fixed(self) -> dict[str, Any]:
        """What a study keeps to from its first run to its last, beside its material."""
        truncation = None if self.truncation is None else asdict(self.truncation)
        return {"block": self.block, "runs": self.runs, "truncation": truncation}

    @property
    def runs_needed(self) -> int | None:
        """How many runs of each data set certify the truncation's δ if none of them is cut; None without one (H21)."""
        return None if self.truncation is None else self.truncation.runs_needed(self._failure_of_a_direction)

    @property
    def least_delta(self) -> float | None:
        """The δ at the truncation's ε that this number of runs certifies at best; None without one."""
        if self.truncation is None:
            return None
        return self.truncation.least_delta(self.runs, self._failure_of_a_direction)

    @property
    def _failure_of_a_direction(self) -> float:
        return self.failure / (2 if self.direction == "both" else 1)

    def units(self, subjects: Sequence[Subject]) -> list[Unit]:
        """What has to be done for these records: the data as they are first, if anybody needs them."""
        wanted = ("remove", "add") if self.direction == "both" else (self.direction,)
        chains = [DATA] * any(one.at_home(way) for one in subjects for way in wanted)
        chains += [i for i, one in enumerate(subjects) for way in wanted if not one.at_home(way)]
        starts = range(0, self.runs, self.block)
        return [Unit(chain, start, min(self.block, self.runs - start)) for chain in chains for start in starts]

    def _asked(self, data: Data, members: Sequence[int], outsiders: Data, names: Sequence[str] | None) -> _Asked:
        size = records_of("data", data)
        inside = [errors.whole("members", row, least=0, most=size - 1, hint="Rows count from 0.") for row in members]
        if len(set(inside)) < len(inside):
            raise errors.refuse("members", list(members), "to name each row once")
        if size == 1 and inside:
            raise refuse("data", size, "with more than the one record that is to be left out", got="")
        if not inside and outsiders is None:
            raise unmet(
                "members",
                None,
                f"{named('members')} or {named('outsiders')}, the records to study",
                "neither",
            )
        outside = checked("outsiders", outsiders, data)
        records = joined([chosen(data, np.array(inside, np.int64)), like("outsiders", outsiders, data)])
        called = [f"row {row}" for row in inside] + [f"outsider {i}" for i in range(outside)]
        if names is not None:
            if len(names) != len(called):
                raise refuse("names", len(names), f"for each of the {len(called)} records", got=f"{len(names)}")
            called = list(names)
        rows = (*inside, *[-1] * outside)
        subjects = tuple(Subject(name, row >= 0) for name, row in zip(called, rows, strict=True))
        return _Asked(rows, records, subjects)

    def _result(self, subjects: tuple[Subject, ...], size: int, done: dict[Unit, Distances]) -> StudyResult:
        chains: dict[int, Distances] = {}
        for unit in sorted(done, key=lambda unit: unit.start):
            part = done[unit]
            chains[unit.record] = np.concatenate([chains[unit.record], part]) if unit.record in chains else part
        steps = next(iter(chains.values())).shape[1]
        noise, rates = self.plan.noise[:steps], self.plan.rates[:steps]
        worst_case = WorstCaseAccountant(engine=self.plan.engine)
        for level, rate, count in phases(noise, rates):
            worst_case.step(noise_multiplier=level, sampling_rate=rate, steps=count)
        facts = Facts(
            subjects=subjects,
            runs=self.runs,
            every=self.every,
            direction=self.direction,
            failure=self.failure,
            estimator=self.estimator,
            delta=self.plan.delta,
            size=size,
            declared=self.plan.num_records is not None,
            dp=worst_case.epsilon(self.plan.delta),
            by_step=_by_step(self.plan),
            noise=tuple(noise.tolist()),
            rates=tuple(rates.tolist()),
            truncation=self.truncation,
        )
        return StudyResult(facts, chains)

    def _check_plan(self) -> None:
        plan = self.plan
        if not plan.bounded:
            raise errors.refuse(
                "plan.clip_norm", plan.clip_norm, "to be given", "Averages over runs need a worst case."
            )
        if not (plan.noise > 0).all():
            raise errors.refuse("noise_multiplier", plan.noise_multiplier, "to be above 0 in every step")
        if plan.adjacency != "add-remove":
            raise errors.refuse("adjacency", plan.adjacency, 'to be "add-remove"', "A study adds and removes records.")
        for name, value in (("filter", plan.filter), ("measure_every", plan.measure_every)):
            if value is not None:
                raise errors.refuse(name, value, "to be left out", "The records of a run then differ.")
        if self.every > 1 and not _by_step(plan):
            raise errors.refuse(
                "every", self.every, "to be 1 for a rule or a subset that is drawn with the batch", "Use update=Sum()."
            )


class _Asked(NamedTuple):
    """Where the records that are asked about stand in the data (−1: outside), themselves, and who they are."""

    rows: tuple[int, ...]
    records: Data
    subjects: tuple[Subject, ...]


def _by_step(plan: SGD) -> bool:
    """Whether a record's distance is a function of the parameters before the step."""
    return isinstance(plan.update, Sum) and plan.subset_fraction is None


def _at_home(material: Material, units: list[Unit], progress: Progress | None) -> Iterator[tuple[Unit, Distances]]:
    """Unit after unit in this process."""
    for place, unit in enumerate(units):
        told = None if progress is None else partial(_tell, progress, place, len(units))
        yield unit, material.perform(unit, told)


def _tell(progress: Progress, place: int, units: int, share: float) -> None:
    progress((place + share) / units)


def _engine(address: str | None) -> AbstractContextManager[Perform]:
    """What performs units; whoever is refused there has not touched the folder."""
    if address is None:
        return nullcontext(_at_home)
    from bayesdp.learn.study.ray_cluster import cluster

    return cluster(address)
