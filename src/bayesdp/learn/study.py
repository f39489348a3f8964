"""Many runs of one plan: what training costs a named record, a priori, both ways round (SPEC E1, E7, H2, H9; paper S3).

    remove   D_α(with the record ‖ without it)    averages over runs on the data *with* it
    add      D_α(without ‖ with)                  averages over runs *without* it

The data as they are serve one of the two for every record at once: with a member, without an outsider. The other needs
runs of its own for each record: on the data less the member, or with the outsider put in. All runs start from one
initialisation and are never published: they are drawn to learn about *other* runs of the plan.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bayesdp import errors
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import InputError
from bayesdp.estimate import METHODS
from bayesdp.learn import study_folder
from bayesdp.learn.schedule import phases
from bayesdp.learn.sgd import SGD
from bayesdp.learn.study_result import Facts, StudyResult, Subject
from bayesdp.learn.study_units import DATA, Distances, Material, Unit
from bayesdp.mechanism.update_rule import Sum

DIRECTIONS = ("both", "remove", "add")
TOGETHER = 10
"""Runs in one compiled program, unless told otherwise."""

Progress = Callable[[float], None]
"""Told the share of the whole work that is done."""


@dataclass(frozen=True)
class Study:
    """What will be done, all of it fixed beforehand.

    Args:
        plan: an `SGD` with a clip norm and noise in every step, add-remove adjacency.
        runs: how many runs of each data set.
        every: look at the records before every k-th step only and charge the clip norm in between (E14, ERR 22d):
            cheaper, and a much larger bound.
        direction: "both", or "remove" or "add" alone.
        failure: what each end of a record's interval may be wrong with, over both directions, methods and orders.
        estimator: of the upper ends, a bound of `bayesdp.estimate` that holds for every law.
        block: how many runs make one compiled program; part of what is computed, like the number of devices.
        seed: what all noise of the study comes from; drawn from the operating system if left out. It is kept in the
            folder either way: the runs of a study are not private, and not for publication.

    Bad input gets `InputError` naming the field.
    """

    plan: SGD
    runs: int = 10
    every: int = 1
    direction: str = "both"
    failure: float = 0.05
    estimator: str = "betting"
    block: int = TOGETHER
    seed: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.plan, SGD):
            raise errors.refuse("plan", self.plan, "to be a bd.SGD")
        for name in ("runs", "every", "block"):
            errors.whole(name, getattr(self, name), least=1)
        errors.one_of("direction", self.direction, DIRECTIONS)
        errors.probability("failure", self.failure)
        errors.one_of("estimator", self.estimator, [name for name in METHODS if METHODS[name].needs_range])
        if self.seed is not None:
            errors.whole("seed", self.seed, least=0)
        self._check_plan()

    def run(
        self,
        loss: Any,
        params: Any,
        data: Any,
        *,
        members: Sequence[int] = (),
        outsiders: Any = None,
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
                on with what is missing, and so does one of more runs.
            progress: called with the share of the work that is done.
            ray: "local", or the address of a Ray cluster: units are spread over its workers. The numbers are those of
                one machine of the same kind.

        Bad input: a row that is not there, records of another shape, no record at all, or a folder that holds another
        study: `InputError`, and nothing is lost.
        """
        rows, records, subjects = self._subjects(data, members, outsiders, names)
        entropy = secrets.randbits(63) if self.seed is None else self.seed
        material = Material(
            self.plan,
            loss,
            jax.tree.map(np.asarray, params),
            jax.tree.map(np.asarray, data),
            records,
            rows,
            self.every,
            entropy,
        )
        kept = study_folder.claim(folder, material, self.block, seeded=self.seed is not None)
        units = self.units(subjects)
        done = {unit: kept.read(unit) for unit in units if kept.has(unit)}
        perform = _at_home if ray is None else _on_ray(ray)
        for unit, distances in perform(kept.material, [unit for unit in units if unit not in done], progress):
            kept.write(unit, distances)
            done[unit] = distances
        return kept.finish(self._result(subjects, len(jax.tree.leaves(data)[0]), done))

    def units(self, subjects: Sequence[Subject]) -> list[Unit]:
        """What has to be done for these records: the data as they are first, if anybody needs them."""
        wanted = ("remove", "add") if self.direction == "both" else (self.direction,)
        chains = [DATA] * any(one.at_home(way) for one in subjects for way in wanted)
        chains += [i for i, one in enumerate(subjects) for way in wanted if not one.at_home(way)]
        starts = range(0, self.runs, self.block)
        return [Unit(chain, start, min(self.block, self.runs - start)) for chain in chains for start in starts]

    def _subjects(
        self, data: Any, members: Sequence[int], outsiders: Any, names: Sequence[str] | None
    ) -> tuple[tuple[int, ...], Any, tuple[Subject, ...]]:
        leaves = jax.tree.leaves(data)
        if not leaves or any(np.ndim(leaf) == 0 or len(leaf) != len(leaves[0]) for leaf in leaves):
            raise InputError("Expected data to hold arrays with the same number of records.")
        size = len(leaves[0])
        inside = [errors.whole("members", row, least=0, most=size - 1, hint="Rows count from 0.") for row in members]
        if len(set(inside)) < len(inside):
            raise errors.refuse("members", list(members), "to name each row once")
        if size == 1 and inside:
            raise InputError("Expected data with more than the one record that is to be left out.")
        chosen = [jax.tree.map(lambda leaf: np.asarray(leaf)[np.array(inside)], data)] if inside else []
        if outsiders is not None:
            chosen.append(_like(outsiders, data))
        if not chosen:
            raise InputError("Expected members or outsiders, the records to study, got neither.")
        records = jax.tree.map(lambda *parts: np.concatenate(parts), *chosen)
        outside = len(jax.tree.leaves(records)[0]) - len(inside)
        called = [f"row {row}" for row in inside] + [f"outsider {i}" for i in range(outside)]
        if names is not None:
            if len(names) != len(called):
                raise InputError(f"Expected names for each of the {len(called)} records, got {len(names)}.")
            called = list(names)
        rows = (*inside, *[-1] * outside)
        return rows, records, tuple(Subject(name, row >= 0) for name, row in zip(called, rows, strict=True))

    def _result(self, subjects: tuple[Subject, ...], size: int, done: dict[Unit, Distances]) -> StudyResult:
        chains: dict[int, Distances] = {}
        for unit in sorted(done, key=lambda unit: unit.start):
            part = done[unit]
            chains[unit.record] = np.concatenate([chains[unit.record], part]) if unit.record in chains else part
        steps = next(iter(chains.values())).shape[1]
        noise, rates = self.plan.noise[:steps], self.plan.rates[:steps]
        everybody = WorstCaseAccountant(self.plan.engine)
        for level, rate, count in phases(noise, rates):
            everybody.step(noise_multiplier=level, sampling_rate=rate, steps=count)
        facts = Facts(
            subjects=subjects,
            runs=self.runs,
            every=self.every,
            direction=self.direction,
            failure=self.failure,
            estimator=self.estimator,
            delta=self.plan.delta,
            size=size,
            dp=everybody.epsilon(self.plan.delta),
            by_step=_by_step(self.plan),
            noise=tuple(noise.tolist()),
            rates=tuple(rates.tolist()),
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
        for name in ("filter", "refresh"):
            if getattr(plan, name) is not None:
                raise errors.refuse(name, getattr(plan, name), "to be left out", "The records of a run then differ.")
        if self.every > 1 and not _by_step(plan):
            raise errors.refuse(
                "every", self.every, "to be 1 for a rule or a subset that is drawn with the batch", "Use update=Sum()."
            )


def _by_step(plan: SGD) -> bool:
    """Whether a record's distance is a function of the parameters before the step."""
    return isinstance(plan.update, Sum) and plan.subset_fraction is None


def _at_home(material: Material, units: list[Unit], progress: Progress | None) -> Iterator[tuple[Unit, Distances]]:
    """Unit after unit in this process."""
    for place, unit in enumerate(units):
        look = None if progress is None else partial(_tell, progress, place, len(units))
        yield unit, material.perform(unit, look)


def _tell(progress: Progress, place: int, units: int, share: float) -> None:
    progress((place + share) / units)


def _on_ray(address: str) -> Any:
    from bayesdp.interop.ray import cluster

    return cluster(address)


def _like(records: Any, data: Any) -> Any:
    """`records` in the form and types of `data`."""
    if len({jax.tree.structure(records), jax.tree.structure(data)}) > 1:
        raise InputError("Expected outsiders to be a tree of the same form as data, got another.")
    for given, held in zip(jax.tree.leaves(records), jax.tree.leaves(data), strict=True):
        if np.ndim(given) == 0 or np.shape(given)[1:] != np.shape(held)[1:]:
            raise InputError(
                f"Expected outsiders to hold records of the shape of data, {np.shape(held)[1:]}, got "
                f"{np.shape(given)[1:]}. Give one record as an array with one row."
            )
    if len({len(leaf) for leaf in jax.tree.leaves(records)}) != 1 or not len(jax.tree.leaves(records)[0]):
        raise InputError("Expected outsiders to hold arrays with the same number of records, at least one.")
    return jax.tree.map(lambda given, held: np.asarray(given, dtype=np.asarray(held).dtype), records, data)
