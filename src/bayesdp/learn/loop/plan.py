"""What every private learner is told beforehand: a frozen description, all of it public, with its noise for an ε."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from bayesdp import errors
from bayesdp.accountant.calibrate import Promise, least_noise
from bayesdp.accountant.worst_case import ENGINES, Engine, WorstCaseAccountant
from bayesdp.errors import Array
from bayesdp.guarantee import ADJACENCIES, Adjacency
from bayesdp.learn.loop.schedule import Schedule, factors, phases
from bayesdp.learn.noise_kind import SHARE
from bayesdp.learn.records import Data
from bayesdp.mechanism.clipping import clip_rule
from bayesdp.mechanism.key import NOISE_KINDS, NoiseKind
from bayesdp.mechanism.people import People
from bayesdp.mechanism.sampling import drawable
from bayesdp.mechanism.update_rule import Mean, Sum, UpdateRule
from bayesdp.unit import UNITS, Unit

MOST_STEPS = 10**7
"""A plan holds some ten numbers for every step, among them its noise, rate and clip norm: a gigabyte at so many."""

TOO_MANY = "Use fewer steps, of larger batches."

Facts = dict[str, str | float | bool]
"""What a report says of a plan, by name."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Steps, clipping, noise, and how they are accounted for.

    Args:
        sampling_rate: chance q that a record enters a step (Poisson).
        steps: how many steps; fixed beforehand.
        clip_norm: C; or a tree of norms (per layer), or a rule of `mechanism.clipping` (automatic clipping); None
            for none, as in paper S1: then give `noise_std`, and the DP entry is infinite.
        noise_multiplier: noise / sensitivity, set by `calibrate` or given.
        noise_std: absolute, with `clip_norm=None` only.
        noise_schedule: public factors over the steps (`schedule.factors`): a number, phases ((share, factor), …), one
            per step; "typical" spends noise where everybody is clipped (H13).
        clip_schedule: the same for the clip norm.
        rate_schedule: the same for the sampling rate.
        update: `Sum()` or `Mean(smallest_batch)` (averaged sensitivity, H1).
        delta: of the guarantees.
        engine: how DP is accounted for: "pld", "rdp", …, see `WorstCaseAccountant`.
        adjacency: "add-remove" or "replace-one".
        coverage: the share of people that the Bayesian guarantee speaks for.
        failure: the chance that it does not.
        epsilon_budget: stop before the step that would pass this DP ε at δ (a public quantity, as H5 asks).
        num_records: N of the update, the number that a sum is divided by q times and a likelihood scaled with: declared
            independently of the data. None: that of the data, which each guarantee then says is public (H18). Batches
            are Poisson(q) of the true records either way.
        unit: what a record of the data is, for the words of the promises: "record", or "person" where it is a person
            with several rows (`People`, for which learners set it).
        report_every: steps between two snapshots; the loop between them is one compiled program.
        microbatch: records taken at a time on each device; None chooses.
        prelude: the noise multiplier of what was released of the same records before the first step (`Dataset.paid`).
        prelude_delta: the chance that it gives something away: promises have δ = `delta` + that (H22).
        noise_kind: "float", fast, which every promise then says; or "lattice": sums and noise are whole numbers, drawn
            by ChaCha20, whose released bits tell nothing more (H26), for sums with a clip norm.
        noise_delta: what of δ is kept for the distance of such noise from its law, beside `delta`; None: 1e-4 of it.

    Bad input gets `InputError` naming the field.
    """

    kind: ClassVar[str]
    """What a report calls it."""

    sampling_rate: float
    steps: int
    clip_norm: Any = 1.0
    noise_multiplier: float | None = None
    noise_std: float | None = None
    noise_schedule: Schedule = 1.0
    clip_schedule: Schedule = 1.0
    rate_schedule: Schedule = 1.0
    update: UpdateRule = field(default_factory=Sum)
    delta: float = 1e-5
    engine: Engine = "pld"
    adjacency: Adjacency = "add-remove"
    coverage: float = 0.9
    failure: float = 1e-6
    epsilon_budget: float | None = None
    num_records: int | None = None
    unit: Unit = "record"
    report_every: int | None = None
    microbatch: int | None = None
    prelude: float | None = None
    prelude_delta: float = 0.0
    noise_kind: NoiseKind = "float"
    noise_delta: float | None = None

    def __post_init__(self) -> None:
        errors.number("sampling_rate", self.sampling_rate, above=0, most=1)
        errors.whole("steps", self.steps, least=1, most=MOST_STEPS, hint=TOO_MANY)
        clip_rule(self.clip_norm)
        if self.noise_multiplier is not None:
            errors.number("noise_multiplier", self.noise_multiplier, least=0)
        if (self.noise_std is not None) and self.clip_norm is not None:
            raise errors.refuse("noise_std", self.noise_std, "to be left out with a clip norm", "Use noise_multiplier.")
        if self.noise_std is not None:
            errors.noise("noise_std", self.noise_std)
        if self.clip_norm is None and self.noise_multiplier not in (None, 0):
            raise errors.refuse(
                "noise_multiplier", self.noise_multiplier, "to be left out without a clip norm", "Use noise_std."
            )
        factors("noise_schedule", self.noise_schedule, self.steps)
        factors("clip_schedule", self.clip_schedule, self.steps)
        if (self.rates > 1).any():
            raise errors.refuse("rate_schedule", self.rate_schedule, "to keep every sampling rate at most 1")
        drawable("sampling_rate", self.rates.min())
        errors.probability("delta", self.delta)
        errors.one_of("engine", self.engine, ENGINES)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        errors.probability("coverage", self.coverage)
        errors.probability("failure", self.failure)
        if self.epsilon_budget is not None:
            errors.number("epsilon_budget", self.epsilon_budget, above=0)
            if self.clip_norm is None:
                raise errors.refuse("epsilon_budget", self.epsilon_budget, "to be left out without a clip norm")
        if self.num_records is not None:
            errors.whole("num_records", self.num_records, least=1)
        errors.one_of("unit", self.unit, UNITS)
        if self.report_every is not None:
            errors.whole("report_every", self.report_every, least=1)
        if self.prelude is not None:
            errors.noise("prelude", self.prelude)
        errors.number("prelude_delta", self.prelude_delta, least=0, below=1)
        if self.prelude_delta and self.prelude is None:
            raise errors.refuse("prelude_delta", self.prelude_delta, f"to come with {errors.named('prelude')}")
        if errors.one_of("noise_kind", self.noise_kind, NOISE_KINDS) == "lattice":
            self._check_lattice()
        if self.noise_delta is not None:
            errors.number("noise_delta", self.noise_delta, least=0, below=1)

    def _check_lattice(self) -> None:
        """Refuse what is no sum of contributions that are bounded."""
        for name, fits in (("clip_norm", self.bounded), ("update", isinstance(self.update, Sum))):
            if not fits:
                hint = "Only sums of clipped gradients are on a lattice."
                given = errors.Argument(name, getattr(self, name))
                raise errors.refuse("noise_kind", self.noise_kind, f'to be "float" with {given}', hint)

    @property
    def bounded(self) -> bool:
        """Whether one record can move an update only so far."""
        return self.clip_norm is not None

    @property
    def facts(self) -> Facts:
        """What else a report should say of the plan."""
        if self.prelude is None:
            return {}
        return {"noise multiplier of the preparation": self.prelude, "δ of the preparation": self.prelude_delta}

    @property
    def noise_share(self) -> float:
        """What of δ is kept for how noise was drawn."""
        if self.noise_kind == "float":
            return 0.0
        return SHARE * self.delta if self.noise_delta is None else self.noise_delta

    @property
    def rates(self) -> Array:
        """The sampling rate q_t of every step."""
        return self.sampling_rate * factors("rate_schedule", self.rate_schedule, self.steps)

    @property
    def noise(self) -> Array:
        """The z_t = noise / sensitivity of every step; the absolute s_t without clipping."""
        # Without clipping the multiplier is None or 0, which asks for plain SGD.
        level = self.noise_multiplier if self.bounded or self.noise_std is None else self.noise_std
        if level is None:
            raise errors.refuse(
                "noise_multiplier" if self.bounded else "noise_std",
                None,
                "to be given or set by calibrate(epsilon=…)"
                if self.bounded
                else f"to be given with {errors.Argument('clip_norm', None)}",
                got="None",
            )
        return level * factors("noise_schedule", self.noise_schedule, self.steps)

    @property
    def clip_norms(self) -> Array | None:
        """The clip norm C_t of every step, of all layers together; None where nothing is clipped."""
        if not self.bounded:
            return None
        scale = factors("clip_schedule", self.clip_schedule, self.steps)
        return float(clip_rule(self.clip_norm).sensitivity) * scale

    @property
    def sensitivities(self) -> Array:
        """How far one record can move what gets noise at every step; 1 without clipping, where noise is absolute."""
        if not self.bounded:
            return np.ones(self.steps)
        scale = factors("clip_schedule", self.clip_schedule, self.steps)
        return float(self.update.sensitivity(clip_rule(self.clip_norm).sensitivity)) * scale

    @property
    def update_in_words(self) -> str:
        """What gets noise, for the report."""
        if isinstance(self.update, Mean):
            return f"mean over the batch, which counts as {self.update.smallest_batch:,} where it is smaller"
        return "sum over the batch, divided by its expected size"

    def calibrate(
        self, epsilon: float | None = None, *, attacker: float | None = None, advantage: float | None = None
    ) -> Self:
        """The plan with the least noise multiplier whose DP ε at δ is at most `epsilon`, the schedule as a whole.

        Or, instead of an ε, a risk (H17): an undecided attacker is right at most the share `attacker` of the time, or
        has at most this `advantage`.

        Guarantee: the plan that comes back was accounted for and does not overshoot. Bad input: no clip norm, or an ε
        or a risk that no noise reaches.
        """
        if self.prelude_delta and epsilon is None:
            raise errors.unmet(
                "epsilon", None, f"{errors.named('epsilon')} with {errors.named('prelude_delta')}", "a risk"
            )
        promise = Promise.of(epsilon, self.delta, attacker, advantage)
        if not self.bounded:
            raise errors.unmet(
                "clip_norm", None, "a clip norm to calibrate to a DP ε", f"{errors.Argument('clip_norm', None)}"
            )
        shape = factors("noise_schedule", self.noise_schedule, self.steps)
        kinds = phases(shape, self.rates)

        def run(engine: Engine, scale: float) -> WorstCaseAccountant:
            accountant = self.before(engine)
            for level, q, count in kinds:
                accountant.step(noise_multiplier=scale * level, sampling_rate=q, steps=count)
            return accountant

        return dataclasses.replace(self, noise_multiplier=least_noise(run, self.engine, promise))

    def before(self, engine: Engine) -> WorstCaseAccountant:
        """An accountant that has counted what was released before the first step."""
        accountant = WorstCaseAccountant(engine=engine, adjacency=self.adjacency)
        if self.prelude is not None:
            accountant.step(noise_multiplier=self.prelude)
        return accountant

    def affordable_steps(self, chains: int = 1) -> int:
        """How many steps, of each of so many chains, the DP budget pays for; all of them without one.

        Bad input: a budget that does not pay for one step.
        """
        if self.epsilon_budget is None:
            return self.steps
        low, high = 0, self.steps
        while low < high:
            middle = (low + high + 1) // 2
            accountant = self.before(self.engine)
            for level, q, count in phases(self.noise[:middle], self.rates[:middle]):
                accountant.step(noise_multiplier=level, sampling_rate=q, steps=count * chains)
            if accountant.epsilon(self.delta) <= self.epsilon_budget:
                low = middle
            else:
                high = middle - 1
        if low == 0:
            raise errors.refuse(
                "epsilon_budget", self.epsilon_budget, "to pay for at least one step", "Use more noise."
            )
        return low

    def about(self, data: Data) -> Self:
        """The plan for these data: of people, where these are `People`."""
        return dataclasses.replace(self, unit="person") if isinstance(data, People) else self

    def one_interval(self) -> Self:
        """The plan for when no snapshot is wanted before the end."""
        return self if self.report_every is not None else dataclasses.replace(self, report_every=self.steps)

    def describe(self) -> dict[str, Any]:
        """The plan as plain values, the optimiser left out (it is a function)."""
        left_out = ("optimizer",) if self.prelude is not None else ("optimizer", "prelude", "prelude_delta")
        if self.noise_kind == "float":
            left_out = (*left_out, "noise_kind", "noise_delta")
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in left_out}
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(one) for one in np.asarray(value).tolist()] if not _tree(value) else repr(value)
    return repr(value)


def _tree(value: Any) -> bool:
    return isinstance(value, tuple | list) and any(isinstance(one, dict) for one in value)
