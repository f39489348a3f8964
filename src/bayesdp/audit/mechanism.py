"""What is audited of a plan: the numbers of its steps, and the real loop run on canaries with them (L9).

A canary is a record whose gradient is far longer than the clip norm and lies in a direction of its own, so that what is
left of it after clipping has length C: the worst case of the promise. The loss is linear, ℓ(θ, x) = ⟨θ, x⟩, hence the
gradient x whatever θ is. Whoever sees the noisy sums y_t and knows the plan has the log-likelihood ratio

    S = Σ_t log(1 − q_t + q_t e^{(C_t ⟨u, y_t⟩ − C_t²/2)/s_t²}),      u the direction, s_t the noise of a step

of "in" against "out" (replace-one: of x against −x). No test does better; and any score at all gives a valid bound.
The sampler, clipping, sum, noise and division are those of training, by the compiled program of training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from bayesdp import errors
from bayesdp.accountant.rdp import History, phases
from bayesdp.audit.trade_off import accountant_of
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.saved_plan import RunPlan
from bayesdp.learn.loop.setup import Setup
from bayesdp.learn.loop.trajectories import Trajectories, first_carry
from bayesdp.learn.records import Record
from bayesdp.learn.sgd import SGD
from bayesdp.mechanism.devices import spread
from bayesdp.mechanism.key import fresh_key, seeded_key

Coins = npt.NDArray[np.bool_]
"""Which canaries are in."""

LONG = 8.0
"""How many times the clip norm a canary's gradient is."""

WIDTH = 4
"""Directions in which a lone canary may lie."""


class Watched(NamedTuple):
    """The point of the linear loss, and the scores of the canaries so far."""

    point: jax.Array
    scores: jax.Array


@dataclass(frozen=True, eq=False)
class AuditedPlan:
    """The steps of a plan as numbers, (steps,) each: noise multiplier, sampling rate and clip norm.

    `chains` that are each charged are as many times the steps, one after the other.
    """

    noise: Array
    rates: Array
    clip_norms: Array
    delta: float
    adjacency: Adjacency
    chains: int = 1

    @classmethod
    def of_history(cls, history: History, delta: float, adjacency: Adjacency) -> AuditedPlan:
        """Of steps that are known by their numbers alone, clipped at 1. Bad input: none at all."""
        counts = [run.steps for run in history]
        if not sum(counts):
            raise errors.unmet("steps", 0, "at least one step to audit")
        noise, rates = (np.repeat([run[place] for run in history], counts) for place in (0, 1))
        return cls(noise, rates, np.ones(len(noise)), errors.probability("delta", delta), adjacency)

    @classmethod
    def of(cls, plan: RunPlan, chains: int = 1) -> AuditedPlan:
        """Bad input: a plan without clipping or noise, or with another update rule than the sum."""
        if plan.clip_norms is None or not (plan.noise > 0).all():
            raise errors.unmet("plan", None, "a plan that clips and adds noise in every step: else there is no DP ε")
        if not np.array_equal(plan.clip_norms, plan.sensitivities):
            raise errors.unmet("plan", None, "the sum rule: canaries of the mean rule are not built", "another update")
        count = errors.whole("chains", chains, least=1)
        noise, rates, clips = (np.tile(one, count) for one in (plan.noise, plan.rates, plan.clip_norms))
        return cls(noise, rates, clips, plan.delta, plan.adjacency, count)

    @property
    def history(self) -> History:
        """How many steps there are of each kind."""
        return tuple(phases(self.noise, self.rates))

    @property
    def epsilon(self) -> float:
        """The DP ε of the plan at δ: the upper bound that lower ones stand beside."""
        return accountant_of(self.history, self.adjacency).epsilon(self.delta)

    def until(self, steps: int) -> AuditedPlan:
        """The plan of a run that ended after so many steps of each chain, all of whose chains have the same ones."""
        kept = np.arange(len(self.noise)) % (len(self.noise) // self.chains) < steps
        columns = (self.noise[kept], self.rates[kept], self.clip_norms[kept])
        return AuditedPlan(*columns, self.delta, self.adjacency, self.chains)

    def one_step(self) -> AuditedPlan:
        """The step with the least noise, with the record surely in its batch: clipping and noise by themselves."""
        at = int(np.argmin(self.noise))
        columns = (self.noise[at : at + 1], np.ones(1), self.clip_norms[at : at + 1])
        return AuditedPlan(*columns, self.delta, self.adjacency)

    def plant(self, directions: Array) -> Planted:
        """The real loop on canaries, one along each row of `directions` (canaries, width), which have length 1."""
        units = np.asarray(directions, np.float32)
        start = Watched(jnp.zeros(units.shape[1]), jnp.zeros(len(units)))
        course = self._plan(units).course(_along, start)
        rows = LONG * np.float32(self.clip_norms.max()) * units
        nobody = np.zeros((1, units.shape[1]), np.float32)
        return Planted(Setup.of(course, (np.concatenate([nobody, rows]),)), rows, self.adjacency)

    def _plan(self, units: Any) -> SGD:
        clip, rate = float(self.clip_norms.max()), float(self.rates.max())
        return SGD(
            sampling_rate=rate,
            rate_schedule=self.rates / rate,
            steps=len(self.noise),
            clip_norm=clip,
            clip_schedule=self.clip_norms / clip,
            noise_multiplier=1.0,
            noise_schedule=self.noise,
            delta=self.delta,
            engine="rdp",
            adjacency=self.adjacency,
            num_records=len(units) + 1,
            report_every=len(self.noise),
            optimizer=self._scorer(jnp.asarray(units)),
        )

    def _scorer(self, units: jax.Array) -> optax.GradientTransformation:
        """An optimiser that leaves the point where it is and adds the step's log-likelihood ratios to the scores."""
        records = len(units) + 1
        rates, clips = jnp.asarray(self.rates, jnp.float32), jnp.asarray(self.clip_norms, jnp.float32)
        stds = jnp.asarray(self.noise * self.clip_norms, jnp.float32)
        turned = self.adjacency == "replace-one"

        def update(released: Watched, step: jax.Array, params: Params = None) -> tuple[Watched, jax.Array]:
            del params
            q, clip, std = rates[step], clips[step], stds[step]
            along = units @ released.point * (q * records)
            ratio = _log_ratio(along, q, clip, std)
            if turned:
                ratio -= _log_ratio(-along, q, clip, std)
            return Watched(jnp.zeros_like(released.point), ratio), step + 1

        return optax.GradientTransformation(_begin, update)


@dataclass(frozen=True, eq=False)
class Planted:
    """A setup in which all canaries are present, behind somebody whose gradient is 0; `rows` are their gradients."""

    setup: Setup
    rows: npt.NDArray[np.float32]
    adjacency: Adjacency

    def by(self, coins: Coins) -> Setup:
        """The setup with the canaries whose coin is 1; others are absent, or turned round where records are replaced.

        The same program serves all coins: who is absent stands beyond the end.
        """
        there = np.asarray(coins, bool)
        nobody = np.zeros((1, self.rows.shape[1]), np.float32)
        if self.adjacency == "add-remove":
            rows, count = np.concatenate([nobody, self.rows[there], self.rows[~there]]), 1 + int(there.sum())
        else:
            rows, count = np.concatenate([nobody, self.rows * np.where(there, 1, -1)[:, None]]), 1 + len(there)
        mesh = self.setup.step.mesh
        records = spread((rows.astype(np.float32),), mesh)
        counts = [(count - device + mesh.size - 1) // mesh.size for device in range(mesh.size)]
        like = jax.device_put(jnp.asarray(counts, records.counts.dtype), records.counts.sharding)
        fixed = self.setup.fixed._replace(records=replace(records, counts=like))
        return replace(self.setup, fixed=fixed)


def scores(setup: Setup, runs: int, seed: int | None = None) -> Array:
    """The canaries' scores in `runs` independent runs of a setup, (runs, canaries), in one compiled program.

    The noise comes from the operating system unless there is a seed.
    """
    key = fresh_key() if seed is None else seeded_key(seed)
    course = setup.course
    trajectories = Trajectories(setup, first_carry(course, runs), jax.random.split(key, runs))
    for _ in trajectories.intervals([]):
        pass
    found: Array = np.asarray(trajectories.carry.params.scores, np.float64)
    return found


def _begin(params: Watched) -> jax.Array:
    del params
    return jnp.zeros((), jnp.int32)


def _along(params: Watched, record: Record) -> jax.Array:
    return jnp.sum(params.point * record[0])


def _log_ratio(along: jax.Array, rate: jax.Array, clip: jax.Array, std: jax.Array) -> jax.Array:
    lost = (clip * along - clip**2 / 2) / std**2
    return jnp.where(rate < 1, jnp.logaddexp(jnp.log1p(-jnp.minimum(rate, 0.999999)), jnp.log(rate) + lost), lost)
