"""A course with its records on the devices: everything about a run that stays as it is while it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from bayesdp import errors
from bayesdp.accountant.run_tallies import Tallies
from bayesdp.errors import Array, unmet
from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.interval import Fixed
from bayesdp.learn.loop.objective import Params, StepSettings
from bayesdp.learn.loop.plan import Plan
from bayesdp.learn.loop.schedule import factors
from bayesdp.learn.loop.snapshot import SNAPSHOTS
from bayesdp.learn.loop.witnesses import Floats, Witnesses
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data, Rows
from bayesdp.mechanism import lattice
from bayesdp.mechanism.clipping import ClipRule, clip_rule
from bayesdp.mechanism.devices import record_mesh, spread
from bayesdp.mechanism.key import NoiseKind
from bayesdp.mechanism.sampling import drawable
from bayesdp.mechanism.step import MOST_AT_ONCE, PrivateStep
from bayesdp.mechanism.update_rule import Sum

NOBODY = np.zeros(0, np.int64)
"""No members."""


def everybody_measured(course: Course, watch: Data) -> bool:
    """Whether the gradients of all records are measured now and then."""
    return course.measure_every is not None or course.filter is not None or isinstance(watch, str)


@dataclass(frozen=True, eq=False)
class Setup:
    """What the loop works with.

    `step` and `fixed` are what the compiled program is made of and given, `columns` the settings of all steps,
    `sensitivity` (steps,) how far one record can move each (1 where nothing is clipped). The program runs `block` steps
    at a time, a snapshot is taken every `report_every`, and the run ends after `stop_at`. With `measured` all records
    are measured at the start of a block and have limits of their own in it.
    """

    course: Course
    step: PrivateStep
    fixed: Fixed
    columns: StepSettings
    sensitivity: Array
    witnesses: Witnesses
    measured: bool
    block: int
    report_every: int
    stop_at: int

    @classmethod
    def of(
        cls, course: Course, data: Data, *, holdout: Data = None, members: Rows = NOBODY, watch: Data = None
    ) -> Setup:
        """Bad input: witnesses of another form than the records, or a plan that cannot be run: `InputError`."""
        plan, mesh = course.plan, record_mesh()
        count = count_of(plan.num_records, data)
        noise, stop_at = plan.noise, plan.affordable_steps(course.chains or 1)
        measured = everybody_measured(course, watch)
        if measured and not isinstance(plan.update, Sum):
            raise errors.refuse("update", plan.update, "to be Sum() where all records are measured")
        witnesses = Witnesses.of(data, holdout=holdout, members=members, watch=watch, measured=measured)
        rates, phase = np.unique(plan.rates, return_inverse=True)
        drawable("sampling_rate", rates[0], -(-witnesses.size // mesh.size))
        step = PrivateStep(
            course.objective,
            tuple(rates.tolist()),
            tuple((rates * count if isinstance(plan.update, Sum) else np.ones_like(rates)).tolist()),
            update=plan.update,
            subset_fraction=course.subset_fraction,
            microbatch=_microbatch(plan),
            limited=measured,
            noise=_noise(plan),
            mesh=mesh,
        )
        rule, scale = clip_rule(plan.clip_norm), factors("clip_schedule", plan.clip_schedule, plan.steps)
        outside = None if witnesses.outside is None else spread(witnesses.outside, mesh)
        sensitivity = np.ones(plan.steps)
        if plan.bounded:
            sensitivity = float(plan.update.sensitivity(rule.sensitivity)) * scale
        report_every = min(plan.report_every or max(1, math.ceil(plan.steps / SNAPSHOTS)), plan.steps)
        block = min(course.measure_every or 1, plan.steps) if measured else report_every
        columns: list[Any] = [  # on the host until an interval's are chosen
            np.arange(plan.steps),
            scale.astype(np.float32),
            (noise * sensitivity).astype(np.float32),
            phase.astype(np.int32),
            course.pace,
        ]
        return cls(
            course=course,
            step=step,
            fixed=Fixed(rule, spread(data, mesh), outside, stop_at),
            columns=StepSettings(*columns),
            sensitivity=sensitivity,
            witnesses=witnesses,
            measured=measured,
            block=block,
            report_every=block * math.ceil(report_every / block),
            stop_at=stop_at,
        )

    @property
    def entries(self) -> int:
        """How many numbers of each chain get noise in each step."""
        objective, params = self.course.objective, self.course.params
        if self.course.chains is not None:
            params = jax.tree.map(lambda leaf: leaf[0], params)
        key = jax.random.key(0)
        sums = jax.eval_shape(lambda: objective.zero(objective.drawn_point(key, params)))
        return sum(leaf.size for leaf in jax.tree.leaves(sums))

    @property
    def everywhere(self) -> NamedSharding:
        """The same on every device."""
        return NamedSharding(self.step.mesh, PartitionSpec())

    def tallies(self) -> Tallies:
        """Those of a run that has not begun."""
        course, plan = self.course, self.course.plan
        outside = 0 if self.fixed.witnesses is None else self.fixed.witnesses.size
        return Tallies(
            budgets=None if course.filter is None else course.filter.accountant(self.witnesses.size, plan, outside),
            counts=self.witnesses.counts,
            noise=plan.noise[: self.stop_at],
            rates=plan.rates[: self.stop_at],
            chains=course.chains or 1,
            bounded=plan.bounded,
            delta=plan.delta,
            failure=plan.failure,
            engine=plan.engine,
            adjacency=plan.adjacency,
            members_counted=self.witnesses.all_members,
            prelude=plan.prelude,
        )

    def settings(self, start: int, block: int) -> StepSettings:
        """The settings of `block` steps from `start` on; the last step's beyond the end."""
        steps = np.minimum(np.arange(start, start + block), len(self.columns.number) - 1)
        chosen: StepSettings = jax.tree.map(lambda column: column[steps], self.columns)
        return chosen

    def rule(self, number: int) -> ClipRule:
        """The clip rule of step `number`."""
        scaled: ClipRule = jax.tree.map(lambda norm: norm * self.columns.clip_factor[number], self.fixed.rule)
        return scaled

    def in_units(self, distances: Floats, start: int) -> Floats:
        """`distances` (…, steps, witnesses) of the steps from `start` on, in units of the sensitivity."""
        unit = self.sensitivity[start : start + distances.shape[-2]].astype(np.float32)
        scaled: Floats = distances / unit[:, None]
        return scaled


def _noise(plan: Plan) -> NoiseKind:
    """Without noise in some step nothing is hidden and nothing promised: there is no lattice either."""
    return plan.noise_kind if (plan.noise > 0).all() else "float"


def _microbatch(plan: Plan) -> int | None:
    """As the plan has it, or fewer where 32 bits of a lattice would not do."""
    if _noise(plan) == "float":
        return plan.microbatch
    most = lattice.microbatch_for(float(plan.noise.min()))
    if plan.microbatch is None:
        return most if most < MOST_AT_ONCE else None
    return min(plan.microbatch, most)


class Replay:
    """How far witnesses would have moved steps whose parameters are known: for questions after the run (E3)."""

    def __init__(self, setup: Setup) -> None:
        """Bad input: nobody to ask about, another rule than the sum, or records with limits of their own."""
        outside = setup.fixed.witnesses
        if setup.measured or not isinstance(setup.course.plan.update, Sum) or outside is None:
            raise unmet(
                "plan", None, "witnesses, the sum rule, and a plan without filter or measure_every to ask for distances"
            )
        self.setup, self._outside = setup, outside
        self._norms = jax.jit(setup.step.witness_norms)

    def distances(self, params: Params, number: int) -> Floats:
        """Of each witness at `params` before step `number`, in units of the sensitivity, (witnesses,)."""
        norms = np.asarray(self._norms(params, self._outside, self.setup.rule(number)).clipped)
        moved: Floats = self.setup.in_units(norms[None], number)[0]
        return moved
