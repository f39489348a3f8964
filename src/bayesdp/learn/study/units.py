"""The work of a study, cut into units that can be done anywhere and in any order: a data set and a block of runs.

    unit = (whose neighbour, first run, how many)   →   distances (runs, steps, records), in units of the sensitivity

A unit is one compiled program with seeds of its own, so that it gives the same numbers wherever it is done on machines
of one kind. Public constants are those of the plan, or of the data as they are: the sum is divided by q·N with the same
N when a record more or less is trained on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.setup import Setup
from bayesdp.learn.loop.trajectories import Observer, Trajectories, first_carry
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data, chosen, joined, records_of
from bayesdp.learn.sgd import SGD, Loss
from bayesdp.mechanism.devices import Records, spread
from bayesdp.mechanism.key import seeded_key

Distances = npt.NDArray[np.float32]
Told = Callable[[float], None]
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
    loss: Loss
    params: Params
    data: Data
    records: Data
    rows: tuple[int, ...]
    every: int
    entropy: int

    def perform(self, unit: Unit, told: Told | None = None) -> Distances:
        """Train and watch: (runs, steps, records), all records on the data as they are, else the one alone."""
        near = self._neighbour(unit.record)
        setup = self._setup(near)
        recorder = _Recorder(setup, near.watch, unit.runs, self.every)
        keys = jnp.stack([seeded_key(seed, setup.step.noise) for seed in unit.seeds(self.entropy)])
        runs = Trajectories(setup, first_carry(setup.course, unit.runs), keys)
        for passed in runs.intervals([recorder]):
            if told is not None:
                told(passed.stop / setup.stop_at)
        return recorder.distances

    def _setup(self, near: _Neighbour) -> Setup:
        """The records watched at every step, unless they are to be measured before some of them only."""
        # N is public and belongs to the plan: the same on both sides of the divergence.
        plan = dataclasses.replace(self.plan, num_records=count_of(self.plan.num_records, self.data))
        if self.every > 1:
            plan = dataclasses.replace(plan, report_every=self.every)
        watch = near.watch if self.every == 1 else None
        setup = Setup.of(plan.course(self.loss, self.params), near.data, watch=watch)
        fixed = setup.fixed._replace(records=_only(setup.fixed.records, near.size))
        return dataclasses.replace(setup, fixed=fixed)

    def _neighbour(self, record: int) -> _Neighbour:
        """The data as they are, or a neighbour: in arrays of one length, for one program."""
        held = records_of("data", self.data)
        if record == DATA:  # the last place is for an outsider
            return _Neighbour(chosen(self.data, np.append(np.arange(held), 0)), held, self.records)
        watch = chosen(self.records, np.array([record]))
        if self.rows[record] < 0:
            return _Neighbour(joined([self.data, watch]), held + 1, watch)
        others = np.append(np.delete(np.arange(held), self.rows[record]), [0, 0])
        return _Neighbour(chosen(self.data, others), held - 1, watch)


class _Neighbour(NamedTuple):
    """What is trained on, the first `size` rows of `data`, and who is watched."""

    data: Data
    size: int
    watch: Data


class _Recorder(Observer):
    """Keeps the watched records' distances (runs, steps, records).

    With `every` > 1 they are measured before steps 0, k, 2k, … only; in between they count as clipped.
    """

    def __init__(self, setup: Setup, watch: Data, runs: int, every: int) -> None:
        self.distances: Distances = np.ones((runs, setup.stop_at, records_of("watch", watch)), np.float32)
        self._setup, self._every = setup, every
        if every > 1:
            records, step = spread(watch, setup.step.mesh), setup.step
            self._norms = jax.jit(lambda params, rule: step.witness_norms(params, records, rule).clipped)

    def before_steps(self, start: int, stop: int, params: Params) -> None:
        """Measure all runs, where this is not done at every step."""
        del stop
        for i in range(len(self.distances)) if self._every > 1 else ():
            own = jax.tree.map(lambda leaf, i=i: leaf[i], params)
            norms = np.asarray(self._norms(own, self._setup.rule(start)))
            self.distances[i, start] = self._setup.in_units(norms[None], start)[0]

    def on_steps(self, start: int, stop: int, distances: Distances) -> None:
        """Keep what was seen at every step."""
        if self._every == 1:
            # The mean rule's are bounds, which for small batches pass the largest distance that there is.
            self.distances[:, start:stop] = np.minimum(distances, 1)


def _only(records: Records, count: int) -> Records:
    """The first `count` of these records: they are dealt out in turn."""
    devices = len(records.counts)
    counts = np.array([(count - d + devices - 1) // devices for d in range(devices)], np.int32)
    return dataclasses.replace(records, counts=jax.device_put(counts, records.counts.sharding))
