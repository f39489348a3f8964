"""Training: trajectories whose steps are tallied, with snapshots now and then, resumable at each.

Chains are trajectories of one run, all charged to its tallies. Repeated runs have tallies of their own: a guarantee
speaks for one of them by itself, and whoever publishes several pays for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.accountant.rdp import phases
from bayesdp.accountant.run_tallies import Tallies
from bayesdp.learn.loop import checkpoint
from bayesdp.learn.loop.checkpoint import Checkpoint
from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.fingerprint import fingerprint
from bayesdp.learn.loop.interval import Carry
from bayesdp.learn.loop.iterates import Iterates
from bayesdp.learn.loop.measurement import Measurement
from bayesdp.learn.loop.objective import Params, State, Store
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.setup import Setup, everybody_measured
from bayesdp.learn.loop.snapshot import Evaluate, Snapshot
from bayesdp.learn.loop.trajectories import Observer, Passed, Trajectories, first_carry
from bayesdp.learn.loop.tree_file import fill
from bayesdp.learn.loop.witnesses import MEMBERS, Floats, drawn_members, members_wanted
from bayesdp.learn.records import Data, records_of
from bayesdp.ledger import Charge
from bayesdp.mechanism.key import fresh_key, key_of, seeded_key
from bayesdp.storage import noise_key

Progress = Callable[[Run], None]


class Outcome(NamedTuple):
    """What a run has come to: itself, its state and the iterates that were kept, and whether all steps were taken."""

    run: Run
    state: State
    store: Store
    ended: bool


class Training(Observer):
    """Runs of one course under way, with their tallies and snapshots: one run, or `repeats` of it."""

    def __init__(
        self,
        trajectories: Trajectories,
        tallies: Sequence[Tallies],
        snapshots: Sequence[Sequence[Snapshot]],
        *,
        seeded: bool,
        identify: Callable[[], dict[str, Any]],
        key: str | None = None,
        fresh: bool = True,
    ) -> None:
        self.trajectories, self.tallies, self.seeded = trajectories, tuple(tallies), seeded
        self._snapshots, self._identify = [list(own) for own in snapshots], identify
        self._key, self._fresh = key, fresh
        """The name of the key where it lies in a folder, and whether the run was not taken up from there."""

    @classmethod
    def begin(
        cls,
        course: Course,
        data: Data,
        *,
        holdout: Data = None,
        members: int | None = None,
        watch: Data = None,
        seed: int | None = None,
        repeats: int = 1,
    ) -> Training:
        """Not yet begun; with a seed, run i has seed + i. Bad input: see `members_wanted` and `Setup.of`."""
        size = records_of("data", data)
        usual = size if everybody_measured(course, watch) else MEMBERS
        drawn = drawn_members(size, members_wanted(members, holdout, usual), seed)
        setup = Setup.of(course, data, holdout=holdout, members=drawn, watch=watch)
        if setup.measured and repeats > 1:
            raise errors.unmet(
                "plan",
                None,
                "a plan without filter or measure_every for several runs at once: their records' limits differ",
            )
        kind = setup.step.noise
        keys = [fresh_key(kind) if seed is None else seeded_key(seed + i, kind) for i in range(repeats)]
        each = jnp.stack(keys) if course.chains is None else jax.random.split(keys[0], course.chains)
        return cls(
            Trajectories(setup, first_carry(course, len(each)), each),
            [setup.tallies() for _ in range(repeats)],
            [()] * repeats,
            seeded=seed is not None,
            identify=cache(partial(fingerprint, course, data, holdout, watch)),
        )

    @classmethod
    def resumed(
        cls,
        course: Course,
        folder: str | Path,
        data: Data,
        *,
        holdout: Data = None,
        watch: Data = None,
        finished: bool = False,
    ) -> Training:
        """The training that left the checkpoint in `folder`; `finished`: one whose result alone is wanted.

        Bad input: a checkpoint of anything else than this very job gets `InputError` that names the difference.
        """
        saved = checkpoint.read(folder, finished=finished)
        identify = cache(partial(fingerprint, course, data, holdout, watch))
        checkpoint.check(folder, identify())
        runs = course.chains or 1
        setup = Setup.of(course, data, holdout=holdout, members=saved.members, watch=watch)
        carry = fill(jax.eval_shape(partial(first_carry, course, runs)), saved.carry)
        keys = jax.random.split(fresh_key(setup.step.noise), runs)  # a finished run has none any more, and needs none
        if saved.key is not None:
            keys = key_of(noise_key.read(RunFolder(Path(folder)).key, saved.key), setup.step.noise)
        tallies = setup.tallies()
        tallies.restore(saved.tallies)
        trajectories = Trajectories(setup, carry, keys, saved.done)
        return cls(
            trajectories,
            [tallies],
            [saved.snapshots],
            seeded=saved.seeded,
            identify=identify,
            key=saved.key,
            fresh=False,
        )

    def before_steps(self, start: int, stop: int, params: Params) -> None:
        """Charge the steps at the DP rate."""
        del params
        for own in self.tallies:
            own.charge_worst_case(start, stop)

    def on_steps(self, start: int, stop: int, distances: Floats) -> None:
        """Charge the witnesses, those of every chain to the run that it belongs to."""
        for own, seen in zip(self.tallies, np.split(distances, len(self.tallies)), strict=True):
            own.on_steps(start, stop, seen)

    def run(
        self,
        *,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
        folder: str | Path | None = None,
        keep_iterates: int | None = None,
        observers: Sequence[Observer] = (),
    ) -> Run:
        """Train to the end (or to the budget), with snapshots now and then: the (first) run.

        `keep_iterates`: see `iterates`; `observers` are told of the steps beside the tallies. With a folder, what all
        steps may cost is written down there before the first of them, and no other process works on it meanwhile.
        """
        if folder is None:
            return self._run(evaluate, progress, None, keep_iterates, observers)
        with RunFolder.make(folder).locked():
            return self._run(evaluate, progress, folder, keep_iterates, observers)

    def _run(
        self,
        evaluate: Evaluate | None,
        progress: Progress | None,
        folder: str | Path | None,
        keep_iterates: int | None,
        observers: Sequence[Observer],
    ) -> Run:
        setup, told = self.trajectories.setup, [self, *observers]
        block = setup.block
        if keep_iterates is not None:
            kept = self._iterates(keep_iterates, folder)
            told, block = [*told, kept], math.gcd(block, kept.every)
        if folder is not None:
            self._claim(folder)
        measurement = Measurement(setup, self.tallies[0].budgets) if setup.measured else None
        for passed in self.trajectories.intervals(told, block=block, measurement=measurement):
            if passed.stop % setup.report_every and not self.trajectories.ended:
                continue
            self._take_snapshots(passed, evaluate)
            if folder is not None:
                checkpoint.write(folder, self._reached())
            if progress is not None:
                progress(self.result())
        if folder is not None:
            checkpoint.forget_key(folder)
            if keep_iterates is not None:
                place = RunFolder(Path(folder))
                place.seal(place.iterates, place.iterates_note)
        return self.result()

    def _claim(self, folder: str | Path) -> None:
        """Leave all that it takes to come back, and then what the run may cost, before the first step."""
        if self._fresh:
            keys = np.asarray(jax.random.key_data(self.trajectories.keys))
            self._key = checkpoint.claim(folder, self._identify(), keys)
            checkpoint.write(folder, self._reached())
            self._fresh = False
        else:
            checkpoint.check_current(folder, self.trajectories.done, self._key)
        if self._key is not None:  # a run that has ended has none any more
            checkpoint.charge(folder, self._charge(self._key))

    def _charge(self, run: str) -> Charge:
        """What the planned steps, and what came before them, may cost everybody; infinite where nothing bounds it."""
        tallies = self.tallies[0]
        if not tallies.promises:
            return Charge(run=run, what="steps", epsilon=math.inf, adjacency=tallies.worst_case.adjacency)
        planned = phases(np.tile(tallies.noise, tallies.chains), np.tile(tallies.rates, tallies.chains))
        steps = tuple((one.noise_multiplier, one.sampling_rate, one.steps) for one in planned)
        plan = self.trajectories.setup.course.plan
        return Charge(
            run=run,
            what="steps",
            steps=steps if plan.prelude is None else ((plan.prelude, 1.0, 1), *steps),
            delta=plan.prelude_delta,
            adjacency=tallies.worst_case.adjacency,
            draws=self.result().draws,
        )

    def result(self, i: int = 0) -> Run:
        """Run i so far, which does not change when training goes on."""
        setup = self.trajectories.setup
        return Run(
            plan=setup.course.plan,
            params=self._own(i).params,
            tallies=self.tallies[i].copy(),
            steps=self.trajectories.done,
            records=setup.witnesses.size,
            seeded=self.seeded,
            snapshots=tuple(self._snapshots[i]),
            members=setup.witnesses.members,
            entries=setup.entries,
        )

    def outcome(self, i: int = 0) -> Outcome:
        """Run i so far with all that it carries."""
        return Outcome(self.result(i), self._own(i).state, self.trajectories.carry.store, self.trajectories.ended)

    def _own(self, i: int) -> Carry:
        """What run i carries: of chains all together."""
        alone = self.trajectories.setup.course.chains is None
        return self.trajectories.of_run(i) if alone else self.trajectories.carry

    def _take_snapshots(self, passed: Passed, evaluate: Evaluate | None) -> None:
        setup = self.trajectories.setup
        silent = not (setup.measured or passed.raw.shape[1] or evaluate)
        if silent and setup.report_every >= setup.stop_at:
            return  # one snapshot at the end, with nobody to look at, would repeat the guarantee
        for i, (own, snapshots) in enumerate(zip(self.tallies, self._snapshots, strict=True)):
            found = {} if evaluate is None else evaluate(self._own(i).params)
            metrics = {name: float(value) for name, value in found.items()}
            coverage = setup.course.plan.coverage
            snapshots.append(Snapshot.of(passed.stop, own, coverage, passed.raw[i], metrics))

    def _reached(self) -> Checkpoint:
        trajectories = self.trajectories
        return Checkpoint(
            done=trajectories.done,
            seeded=self.seeded,
            key=self._key,
            members=trajectories.setup.witnesses.members,
            carry=[np.asarray(leaf) for leaf in jax.tree.leaves(trajectories.carry)],
            tallies=self.tallies[0].state(),
            snapshots=tuple(self._snapshots[0]),
        )

    def _iterates(self, every: int, folder: str | Path | None) -> Iterates:
        """Where iterates are kept; the program then stops at each of them."""
        setup = self.trajectories.setup
        if folder is None:
            raise errors.refuse("keep_iterates", every, "to come with a folder to keep them in")
        if setup.measured and every % setup.block:
            raise errors.refuse(
                "keep_iterates", every, f"to be a multiple of {errors.Argument('measure_every', setup.block)}"
            )
        return Iterates(folder, every, setup.stop_at)
