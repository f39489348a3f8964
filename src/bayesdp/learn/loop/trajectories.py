"""The loop of private learning on the host: interval after interval, for one run or for several side by side.

    before_steps(start, stop, params) → the compiled program → on_steps(start, stop, distances)

Runs lie along a first axis of everything that they have of their own. Whoever wants to know observes: tallies charge,
iterates are kept, a study records, a benchmark takes the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.interval import Carry, compiled
from bayesdp.learn.loop.measurement import Measurement
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.setup import Setup
from bayesdp.learn.loop.witnesses import Floats


class Observer:
    """Who is told of the steps of a run; who is told first of steps to come is told last of what they did."""

    def before_steps(self, start: int, stop: int, params: Params) -> None:
        """Steps start … stop-1 are about to be run from `params`, (runs, …)."""

    def on_steps(self, start: int, stop: int, distances: Floats) -> None:
        """How far each witness would have moved steps start … stop-1, (runs, steps, witnesses).

        In units of the sensitivity; one row for all steps where each witness is held to one distance.
        """


class Passed(NamedTuple):
    """An interval that was run: the step after it, and |g| of every witness at its last step, (runs, witnesses)."""

    stop: int
    raw: Floats


def first_carry(course: Course, runs: int) -> Carry:
    """What as many runs have before their first step."""
    params, objective = course.params, course.objective
    if course.chains is None:
        params = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (runs, *leaf.shape)), params)
    return Carry(params, jax.vmap(objective.start)(params), objective.store(params))


class Trajectories:
    """Runs of one setup under way: what they have come to, the keys of their noise, and how many steps are done."""

    def __init__(self, setup: Setup, carry: Carry, keys: jax.Array, done: int = 0) -> None:
        self.setup, self.done = setup, done
        # On every device from the start, as the program leaves them: else the second interval would compile anew.
        self.carry, self.keys = jax.device_put((carry, keys), setup.everywhere)

    @property
    def ended(self) -> bool:
        """Whether all steps were taken."""
        return self.done >= self.setup.stop_at

    def of_run(self, i: int) -> Carry:
        """The parameters and state of one run; iterates are kept of all together."""
        row: Carry = jax.tree.map(lambda leaf: leaf[i], self.carry._replace(store=None))
        return row

    def intervals(
        self, observers: Sequence[Observer], *, block: int | None = None, measurement: Measurement | None = None
    ) -> Iterator[Passed]:
        """Run to the end, `block` steps at a time, and come back after each interval.

        `measurement` goes with a setup that is `measured`, and with one run.
        """
        setup, block = self.setup, block or self.setup.block
        program = compiled(setup.step, setup.course.objective, together=len(self.keys) > 1)
        while not self.ended:
            start, stop = self.done, min(self.done + block, setup.stop_at)
            for observer in observers:
                observer.before_steps(start, stop, self.carry.params)
            fixed, told = setup.fixed._replace(stop=stop), None
            if measurement is not None:
                told = measurement.measure(start, stop, self.of_run(0).params)
                fixed = fixed._replace(records=told.records, witnesses=None)
            found = program(self.carry, self.keys, setup.settings(start, block), fixed)
            self.carry, self.done = found.carry, stop
            if told is None:
                raw, distances = (np.asarray(part)[:, : stop - start] for part in found.seen)
                _tell(observers, start, stop, setup.in_units(distances, start))
                yield Passed(stop, raw[:, -1])
            else:
                for stretch in told.stretches:
                    held = setup.witnesses.among(stretch.distances)
                    _tell(observers, stretch.start, stretch.stop, held[None, None])
                yield Passed(stop, setup.witnesses.among(told.raw)[None])


def _tell(observers: Sequence[Observer], start: int, stop: int, distances: Floats) -> None:
    for observer in reversed(observers):
        observer.on_steps(start, stop, distances)
