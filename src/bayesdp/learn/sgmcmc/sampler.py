"""Private stochastic-gradient MCMC: what all samplers share (paper S4; Langevin steps F1-F3).

    a frozen description → calibrate → fit → SampledPosterior

The noise that a sampler needs anyway already gives privacy: the noise multiplier follows from the step size
(`accountant.langevin`), and every iterate of every chain is accounted for (`SGLD` can release its last alone). Where
that is not enough for a promised ε, more noise is added, and what this does to the temperature is said.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.accountant.calibrate import Accountant, Promise, calibrate_noise
from bayesdp.accountant.langevin import noise as langevin
from bayesdp.accountant.worst_case import Engine, WorstCaseAccountant
from bayesdp.errors import Argument, Array, unmet
from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.plan import Facts
from bayesdp.learn.loop.schedule import factors, phases
from bayesdp.learn.loop.training import Outcome
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.reader import Model
from bayesdp.learn.posterior.inference import Inference, Reading
from bayesdp.learn.posterior.samples import SampledPosterior, split_r_hat
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data, Rows
from bayesdp.learn.sgmcmc import step_sizes
from bayesdp.learn.sgmcmc.kernel import Kernel, Pace, Target
from bayesdp.learn.sgmcmc.virial import heat
from bayesdp.mechanism.clipping import clip_rule
from bayesdp.mechanism.update_rule import Sum

PRINTED = (
    "Temperature 1/2, the noise that S4's Algorithm 1 prints (ERR 25): samples of the squared posterior, whose spread "
    "is too small by a factor of about the square root of 2."
)
TEMPERED = "Temperature {t:.3g}: samples of the posterior to the power 1/{t:.3g}, not of the posterior."
HOTTER = (
    "Noise was added to the sampler's own for the promised ε: the samples are of temperature {t:.3g} in place of "
    "{wanted:.3g}, so that their spread is too wide by a factor of about {wider:.3g}. Shorter steps need no such noise."
)
UNMIXED = (
    "The chains do not agree (R-hat up to {most:.2f}, near 1 where they do): these are not yet samples of the "
    "posterior. More steps are needed."
)
DIVERGED = "{which} of {chains} left the real numbers and was left out: the steps are too long for this model."


_ENOUGH, _AGREED = 4, 1.1
"""Samples in half of a chain that R-hat is computed from at least, and what it is where chains agree."""


@dataclass(frozen=True, kw_only=True)
class Sampler(Inference[SampledPosterior]):
    """What will be done, all of it public: a `Plan` whose noise follows from its steps, and

    Args:
        step_size: h, the step on the log posterior of all records; S4's η is N times as large.
        step_schedule: public factors over the steps: "decreasing" (S4's t^(-1/3)), "cyclical", or what
            `schedule.factors` takes.
        temperature: 1 samples the posterior, T its power 1/T; S4's printed noise is 1/2 (ERR 25).
        noise_multiplier: the least noise multiplier of a step: what the sampler's own noise lacks is added. None: none
            is. `noise_std`: the same without clipping, absolute.
        num_warmup: steps at the start of the run (of every cycle) whose iterates are no samples; None: half of it.
        thin: every so many-th later iterate is a sample; None: such that a chain gives at most 1000.
        num_chains: run side by side in one program; each is charged.

    Chains that diverge are named and left out; where all do, `InputError` says so. Bad input gets `InputError` naming
    the field.
    """

    step_size: float
    step_schedule: step_sizes.Schedule = 1.0
    temperature: float = 1.0
    num_warmup: int | None = None
    thin: int | None = None
    num_chains: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prelude is not None:
            raise errors.refuse("prelude", self.prelude, "to be left out for a sampler, which does not count it yet")
        errors.number("step_size", self.step_size, above=0)
        step_sizes.shape(self.step_schedule, self.steps)
        errors.number("temperature", self.temperature, least=0)
        if self.num_warmup is not None:
            errors.whole("num_warmup", self.num_warmup, least=0)
        if self.thin is not None:
            errors.whole("thin", self.thin, least=1)
        errors.whole("num_chains", self.num_chains, least=1)
        step_sizes.kept(self.step_schedule, self.steps, self.num_warmup, self.thin)
        if not isinstance(self.update, Sum):
            raise errors.refuse("update", self.update, "to be Sum(): the force is a sum over the records (F1)")

    @property
    def sizes(self) -> Array:
        """The step size h_t of every step."""
        return self.step_size * step_sizes.shape(self.step_schedule, self.steps)

    @property
    def damping(self) -> Array:
        """B of every step in z = (q/L) sqrt(2TB/h) (F3, F10, F11): 1 without momentum."""
        return np.ones(self.steps)

    @property
    def own_noise(self) -> Array:
        """The noise multiplier z_t that the sampler needs anyway; the absolute noise of the sum without clipping."""
        return self._own(self.damping)

    @property
    def noise(self) -> Array:
        """The noise multiplier z_t of every step: the sampler's own, raised to what was asked for."""
        least = self.noise_multiplier if self.bounded else self.noise_std
        return np.maximum(self.own_noise, (least or 0) * factors("noise_schedule", self.noise_schedule, self.steps))

    @property
    def frictions(self) -> Array:
        """B of every step as it is run; a sampler that can take added noise as friction does so here."""
        return self.damping

    @property
    def temperatures(self) -> Array:
        """The temperature of every step with all of its noise: h (zL/q)² / 2B."""
        return self.sizes * (self.noise * self._bounds / self.rates) ** 2 / (2 * self.frictions)

    @cached_property
    def pace(self) -> Pace:
        """What the sampler is told at every step."""
        slot = np.full(self.steps, len(self._kept), np.int32)
        slot[self._kept] = np.arange(len(self._kept))
        columns = (self.sizes, np.full(self.steps, self.temperature), self.frictions)
        size, temperature, friction = (column.astype(np.float32) for column in columns)
        noise = (self.noise * self._bounds / self.rates).astype(np.float32)
        return Pace(size, temperature, friction, noise, np.arange(self.steps) < self._kept[0], slot)

    @property
    def facts(self) -> Facts:
        """For the report."""
        low, high = self.sizes.min(), self.sizes.max()
        steps = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        return {"step size": steps, "temperature": self.temperature, "chains, each charged": self.num_chains}

    def _own(self, damping: Array) -> Array:
        return langevin.noise_multiplier(
            self.sizes,
            sampling_rate=self.rates,
            clip_norm=self._bounds,
            temperature=self.temperature,
            friction=damping,
        )

    @property
    def _bounds(self) -> Array:
        """L of every step; 1 without clipping, where noise is absolute."""
        if not self.bounded:
            return np.ones(self.steps)
        scale = factors("clip_schedule", self.clip_schedule, self.steps)
        return float(clip_rule(self.clip_norm).sensitivity) * scale

    @cached_property
    def _kept(self) -> Rows:
        """The steps whose iterates are samples."""
        return step_sizes.kept(self.step_schedule, self.steps, self.num_warmup, self.thin)

    def epsilon(self) -> float:
        """The DP ε at δ of what all chains release; infinite without clipping or noise."""
        if not self.bounded or (self.noise == 0).any():
            return float("inf")
        return self._account(self.noise, self.engine).epsilon(self.delta)

    def calibrate(
        self,
        epsilon: float | None = None,
        *,
        attacker: float | None = None,
        advantage: float | None = None,
        extra_noise: bool = True,
    ) -> Self:
        """The plan with the least noise, not below the sampler's own, whose DP ε at δ is at most `epsilon`.

        Or which keeps a risk instead (H17): `attacker` or `advantage`, as in `Plan.calibrate`, of all iterates.
        `extra_noise=False` refuses steps whose own noise is not enough, and names the largest that is.
        `calibrate_step` makes them shorter instead, which keeps the temperature.

        Guarantee: the plan that comes back was accounted for and does not overshoot. Bad input: no clip norm, or an ε
        that no noise reaches.
        """
        promise = self._promise(epsilon, attacker, advantage)
        plain = dataclasses.replace(self, noise_multiplier=None)
        if (plain.noise > 0).all() and promise.spends(self._account(plain.noise, self.engine)) <= promise.value:
            return plain
        if not extra_noise:
            raise errors.refuse(
                "step_size",
                self.step_size,
                f"to be at most {float(f'{plain._largest_step(promise).step_size:.4g}') * (1 - 1e-3):.4g} for "
                f"{promise.name}={promise.asked:g} by the sampler's own noise",
                "Use calibrate_step, or let extra noise raise the temperature.",
            )
        own, shape = plain.noise, factors("noise_schedule", self.noise_schedule, self.steps)
        level = self._search(lambda x, engine: self._account(np.maximum(own, x * shape), engine), promise)
        return dataclasses.replace(self, noise_multiplier=level)

    def calibrate_step(
        self, epsilon: float | None = None, *, attacker: float | None = None, advantage: float | None = None
    ) -> Self:
        """The plan with the largest steps whose own noise keeps the DP ε at δ at most `epsilon` (F8).

        The schedule keeps its shape, the temperature its value, and no noise is added. Guarantee and bad input as for
        `calibrate`.
        """
        return self._largest_step(self._promise(epsilon, attacker, advantage))

    def _largest_step(self, promise: Promise) -> Self:
        if self.temperature == 0:
            raise errors.refuse("temperature", self.temperature, "to be above 0: without own noise no step is private")
        plain = dataclasses.replace(self, noise_multiplier=None)
        own = plain.own_noise
        scale = self._search(lambda x, engine: self._account(x * own, engine, longer=x**-2), promise)
        # z falls as 1/sqrt(h), and the largest float below keeps the promise when it is read back.
        size = float(np.nextafter(self.step_size / scale**2, 0))
        return dataclasses.replace(plain, step_size=size)

    def _promise(self, epsilon: float | None, attacker: float | None, advantage: float | None) -> Promise:
        promise = Promise.of(epsilon, self.delta, attacker, advantage)
        if not self.bounded:
            raise unmet(
                "clip_norm",
                None,
                "a clip norm to calibrate to a DP ε",
                f"{Argument('clip_norm', None)}: without one a single record can move the force by any amount, and no "
                "noise hides it",
            )
        return promise

    def _search(self, account: Callable[[float, Engine], Accountant], promise: Promise) -> float:
        """The least x at which account(x) keeps the promise."""
        start = 1.0
        if self.engine == "pld":
            start = calibrate_noise(lambda x: account(x, "rdp"), promise=promise)
        return calibrate_noise(lambda x: account(x, self.engine), promise=promise, start=start)

    def _account(self, noise: Array, engine: Engine, longer: float = 1.0) -> Accountant:
        """What is released costs this much with such noise and steps that many times as long."""
        del longer  # all iterates are released: only the noise counts
        return self._all_iterates(noise, engine)

    def _all_iterates(self, noise: Array, engine: Engine) -> WorstCaseAccountant:
        accountant = WorstCaseAccountant(engine=engine, adjacency=self.adjacency)
        for level, q, count in phases(noise, self.rates):
            accountant.step(noise_multiplier=level, sampling_rate=q, steps=count * self.num_chains)
        return accountant

    @abstractmethod
    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """The sampler's step."""

    def _read(self, model: Model | Network, data: Data, params: Params) -> Reading:
        target = Target.of(model, data, params)
        kernel = self.kernel(target, count_of(self.num_records, data), len(self._kept))
        point, chains = kernel.begin(target.start).params, self.num_chains
        starts = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (chains, *leaf.shape)), point)
        return Reading(target.reading(), Course(self, kernel, starts, chains=chains, pace=self.pace))

    def _posterior(self, reading: Reading, outcome: Outcome) -> SampledPosterior:
        """The samples so far; before there are any, the last iterate."""
        kernel, run = reading.course.objective, outcome.run
        assert isinstance(kernel, Kernel)
        count = int(np.searchsorted(self._kept, run.steps))
        if count:
            draws = _flat(jax.tree.map(lambda leaf: leaf[:count].swapaxes(0, 1), outcome.store), axes=2)
            steps = self._kept[:count]
        else:
            draws = _flat(kernel.theta(run.params), axes=1)[:, None]
            steps = np.array([max(run.steps - 1, 0)])
        fine = np.isfinite(draws).all(axis=(1, 2))
        if not fine.any():
            raise unmet(
                "step_size",
                self.step_size,
                "steps short enough for the chains to stay finite",
                f"step_size={self.step_size:g}: all {self.num_chains} diverged",
                "The run was charged all the same. Use a smaller step_size.",
            )
        diverged = tuple(np.flatnonzero(~fine).tolist())
        weights = self.sizes[steps]
        warmth = float(np.average(self.temperatures[steps], weights=weights))
        notes = [] if not diverged else [DIVERGED.format(which=_names(diverged), chains=self.num_chains)]
        if outcome.ended and fine.sum() > 1 and count >= 2 * _ENOUGH:
            most = float(np.nanmax(split_r_hat(draws[fine]), initial=1.0))
            notes += [UNMIXED.format(most=most)] if most > _AGREED else []
        notes += self._watched(outcome) if outcome.ended and self.temperature else []
        return SampledPosterior(
            model=reading.model,
            draws=draws[fine],
            weights=weights / weights.sum(),
            run=run,
            temperature=warmth,
            diverged=diverged,
            notes=(*notes, *self._heat_in_words(warmth)),
        )

    def _watched(self, outcome: Outcome) -> list[str]:
        """What the released forces say of the chains' heat, where that is wrong."""
        late = self._kept[0]
        known = float(np.average(self.temperatures[late:], weights=self.sizes[late:]))
        noise = float(np.sqrt(np.mean((self.noise[late:] * self._bounds[late:] / self.rates[late:]) ** 2)))
        return heat(outcome.state.virial, known, noise).in_words

    def _heat_in_words(self, heat: float) -> tuple[str, ...]:
        said: list[str] = []
        if self.temperature == 0.5:
            said.append(PRINTED)
        elif self.temperature != 1:
            said.append(TEMPERED.format(t=self.temperature))
        if heat > self.temperature * (1 + 1e-6):
            wider = float(np.sqrt(heat / self.temperature)) if self.temperature else float("inf")
            said.append(HOTTER.format(t=heat, wanted=self.temperature, wider=wider))
        return tuple(said)


def _flat(tree: Params, axes: int) -> Array:
    """Leaves with `axes` leading axes as one float64 array (…, d), in the order of `ravel_pytree`."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]
    return np.concatenate([leaf.reshape(*leaf.shape[:axes], -1) for leaf in leaves], axis=-1)


def _names(chains: tuple[int, ...]) -> str:
    return ("Chain " if len(chains) == 1 else "Chains ") + ", ".join(map(str, chains))
