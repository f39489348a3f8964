"""The work of a study, cut into units that can be done anywhere and in any order: a data set and a block of runs.

    unit = (whose neighbour, first run, how many)   →   distances (runs, steps, records), in units of the sensitivity

A unit is one compiled program with seeds of its own, so that it gives the same numbers wherever it is done on machines
of one kind. Public constants are those of the data as they are: the sum is divided by q·N with the same N when a record
more or less is trained on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from bayesdp.errors import Array
from bayesdp.learn.repeats import run_together
from bayesdp.learn.sgd import SGD
from bayesdp.learn.training import Training
from bayesdp.mechanism.devices import Records, spread
from bayesdp.mechanism.update_rule import Sum

Distances = npt.NDArray[np.float32]
Look = Callable[[float], None]
"""Told the share of a unit that is done."""

DATA = -1
"""In place of a record's number: the data as they are."""


class Unit(NamedTuple):
    """Runs from number `start` on: on the data as they are, or with record number `record` put in or taken out."""

    record: int
    start: int
    runs: int

    @property
    def name(self) -> str:
        """Of its file."""
        whose = "data" if self.record == DATA else f"record-{self.record:05d}"
        return f"{whose}-{self.start:05d}-{self.runs}"

    def seeds(self, entropy: int) -> Iterator[int]:
        """A seed for each run, whatever else is in the study."""
        for run in range(self.start, self.start + self.runs):
            drawn = np.random.SeedSequence([entropy, self.record + 1, run]).generate_state(1, np.uint64)
            yield int(drawn[0])


@dataclass(frozen=True, eq=False)
class Material:
    """What units are made of: a plan, the records and where training starts.

    `records` are all that are asked about; `rows` says where each of them stands in `data`, −1 for outsiders. `entropy`
    is what the seeds of all runs come from.
    """

    plan: SGD
    loss: Any
    params: Any
    data: Any
    records: Any
    rows: tuple[int, ...]
    every: int
    entropy: int

    def perform(self, unit: Unit, look: Look | None = None) -> Distances:
        """Train and watch: (runs, steps, records), all records on the data as they are, else the one alone."""
        first = self._training(unit.record)
        first.look = look
        together = [first.again(seed) for seed in unit.seeds(self.entropy)]
        for other in together[1:]:
            other.look = None
        run_together([*together])
        return np.stack([one.distances for one in together])

    def _training(self, record: int) -> _Recorded:
        """The training on the data as they are, or on a neighbour: in arrays of one length, for one program."""
        held = len(jax.tree.leaves(self.data)[0])
        rows = np.append(np.arange(held), 0)  # the last place is for an outsider
        if record == DATA:
            return _Recorded(self, jax.tree.map(lambda leaf: leaf[rows], self.data), held, self.records)
        watch = jax.tree.map(lambda leaf: leaf[record : record + 1], self.records)
        if self.rows[record] < 0:
            return _Recorded(
                self, jax.tree.map(lambda leaf, one: np.concatenate([leaf, one]), self.data, watch), held + 1, watch
            )
        rows = np.append(np.delete(np.arange(held), self.rows[record]), [0, 0])
        return _Recorded(self, jax.tree.map(lambda leaf: leaf[rows], self.data), held - 1, watch)


class _Recorded(Training):
    """A training on the first `count` rows of `data` that keeps the watched records' distances, and charges nobody.

    With `every` > 1 the records are looked at before steps 0, k, 2k, … only; in between they count as clipped.
    """

    look: Look | None = None

    def __init__(self, material: Material, data: Any, count: int, watch: Any) -> None:
        every, plan = material.every, material.plan
        if every > 1:
            plan = dataclasses.replace(plan, interval=every)
        seen = watch if every == 1 else None
        super().__init__(plan, material.loss, material.params, data, audit=None, members=0, watch=seen, seed=0)
        step, optimizer = self.program
        if isinstance(plan.update, Sum):
            # N is public and belongs to the plan: the same on both sides of the divergence.
            public = len(jax.tree.leaves(material.data)[0])
            step = dataclasses.replace(step, normaliser=tuple((np.array(step.sampling_rate) * public).tolist()))
        self.program = step, optimizer
        rule, records, witnesses = self._given
        self._given = rule, _only(records, count), witnesses
        self._every, self._seen = every, np.ones((self.stop_at, len(jax.tree.leaves(watch)[0])), np.float32)
        if every > 1:
            records = spread(watch, step.mesh)
            self._norms = jax.jit(lambda params, rule: step.witness_norms(params, records, rule).clipped)
            self._keep(0)

    @property
    def distances(self) -> Distances:
        """(steps, records)."""
        return self._seen

    def again(self, seed: int | None) -> _Recorded:
        other = super().again(seed)
        assert isinstance(other, _Recorded)
        other._seen = self._seen.copy()
        return other

    def account(self, stop: int, raw: Array, distances: Array, evaluate: Any) -> None:  # noqa: ARG002 - nothing else is kept
        if self._every == 1:
            scale = self._sensitivity[self.done : stop].astype(np.float32)
            # The mean rule's are bounds, which for small batches pass the largest distance that there is.
            self._seen[self.done : stop] = np.minimum(distances[: stop - self.done] / scale[:, None], 1)
        elif stop < self.stop_at:
            self._keep(stop)
        self.done = stop
        if self.look is not None:
            self.look(stop / self.stop_at)

    def _keep(self, step: int) -> None:
        rule = jax.tree.map(lambda norm: norm * self._clip[step], self._given[0])
        self._seen[step] = np.asarray(self._norms(self.params, rule)) / np.float32(self._sensitivity[step])


def _only(records: Records, count: int) -> Records:
    """The first `count` of these records: they are dealt out in turn."""
    devices = len(records.counts)
    counts = np.array([(count - d + devices - 1) // devices for d in range(devices)], np.int32)
    return dataclasses.replace(records, counts=jax.device_put(counts, records.counts.sharding))
