"""Sums over records of a score and of what it is made of, each bounded, and the Newton steps that they allow.

    ψ_i(θ) = clip(S ∇log p(x_i|θ); C)          the score in coordinates where records are alike
    A_i    = −∂ψ_i/∂θ Sᵀ, symmetric            its curvature
    B_i    = ψ_i ψ_iᵀ                          its spread
    signal = (√a ψ_i/C, √b 2A_i/C², √c B_i/C²)   a + b + c = 1: the step's shares

A record whose A is longer than C²/2 is weighed until it is not, B is at most C² long as ψ is at most C, so that a
signal is at most 1 long, whatever the record; the loop clips it to 1 all the same, which is what the accountants rely
on. S is the inverse root of the curvature per record that was released before, so that E|ψ|² = d where the model is
right (the information equality): one number C = k √d fits all models.

Clipping a score biases its root where outcomes are skewed. A record with an outcome of two has
∇log p = (y − p) ∇logit, so that its score is at most |S∇logit| = |S∇log p|/(1 − e^{log p}) whatever the outcome was:
weighing the record by min(1, C/that) bounds it, and leaves the score's mean 0 (Mallows weights: they do not look at the
outcome).

θ moves by (N A + Λ)⁻¹ (N ψ̄ + ∇log prior), all of it made of what was released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_factor, cho_solve

from bayesdp.learn.loop.objective import ClipNorm, Draws, Objective, Params, Position, StepSettings
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.records import Data, Record
from bayesdp.learn.second_order import symmetric
from bayesdp.learn.second_order.shares import READ, Share
from bayesdp.mechanism.blocks import full_precision
from bayesdp.mechanism.clipping import Norms, apply_rule, clip_rule
from bayesdp.mechanism.lengths import length
from bayesdp.mechanism.per_example import adding, empty

FLOOR = 0.1
"""Eigenvalues of the curvature per record that count for its inverse root, relative to their mean."""

LONGEST = 1.0
"""How far a step moves a parameter at most, on the real line; priors are of the order of 1."""

_TINY = 1e-6


class Place(NamedTuple):
    """Where a step is taken: θ, the coordinates S, the curvature per record so far, and the number of the step."""

    theta: jax.Array
    white: jax.Array
    curvature: jax.Array
    number: jax.Array


class Releases(NamedTuple):
    """Of every step: θ, S, the curvature per record known before; the noisy sums over records of ψ, A and B.

    θ and ψ are (steps, d), the others (steps, d, d).
    """

    theta: jax.Array
    white: jax.Array
    known: jax.Array
    score: jax.Array
    curvature: jax.Array
    spread: jax.Array


@dataclass(frozen=True)
class Scores(Objective):
    """The objective; `records` is N, `bound` is C, `shares` one for each step."""

    model: Probabilistic
    records: int
    bound: float
    shares: tuple[Share, ...]

    def begin(self, theta: jax.Array, shape: jax.Array) -> Params:
        """The first place, for the public `shape` of the curvature per record."""
        white = symmetric.power(jnp.diag(jnp.diag(shape)), -0.5, 0.0, jnp)
        return tuple(Place(theta, white, shape, jnp.zeros(())))

    def locate(self, draws: Draws, params: Params) -> Place:
        """The parameters by name; they are kept as a plain tuple, which a folder can give back."""
        del draws
        return Place(*params)

    def start(self, params: Params) -> Releases:
        """Room for what will be released."""
        del params
        steps, d = len(self.shares), self.model.dim
        vectors, matrices = jnp.zeros((steps, d)), jnp.zeros((steps, d, d))
        return Releases(vectors, matrices, matrices, vectors, matrices, matrices)

    def zero(self, params: Place) -> jax.Array:
        """An empty sum of signals."""
        del params
        d = self.model.dim
        return jnp.zeros(d + 2 * symmetric.entries(d))

    @full_precision
    def clip_sum(
        self,
        params: Place,
        examples: Data,
        mask: jax.Array,
        clip_norm: ClipNorm,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[jax.Array, Norms]:
        """Σ_x m_x clip(signal_x) and the norms, with the guarantee of `PerExample` (H20)."""
        del subset
        signals = self._signals(params, examples)
        factors, norms = apply_rule(clip_rule(clip_norm), length(signals), mask)
        return adding(per_unit, mask.shape[0])(empty(self.zero(params), per_unit), signals, factors), norms

    @full_precision
    def norms(
        self, params: Place, examples: Data, mask: jax.Array, clip_norm: ClipNorm, subset: Params | None = None
    ) -> Norms:
        """The norms alone."""
        del subset
        return apply_rule(clip_rule(clip_norm), length(self._signals(params, examples)), mask)[1]

    @full_precision
    def advance(self, now: StepSettings, point: Place, state: Releases, released: jax.Array) -> Position:
        """Keep what was released, learn the curvature of it, and take a Newton step."""
        d, number = self.model.dim, now.number
        share, cuts = self._share(number), self.cuts
        parts = jnp.split(released * self.records, [d, d + symmetric.entries(d)])
        score, curvature, spread = (
            jnp.where(part > 0, values * cut / jnp.sqrt(jnp.maximum(part, _TINY)), 0)
            for values, cut, part in zip(parts, cuts, share, strict=True)
        )
        sums = (score, symmetric.unflat(curvature, d, jnp), symmetric.unflat(spread, d, jnp))
        kept = Releases(*(old.at[number].set(new) for old, new in zip(state, (*point[:3], *sums), strict=True)))
        # The curvature in the coordinates of this step, shrunk to what it was before.
        back = jnp.linalg.inv(point.white)
        shape = point.white @ point.curvature @ point.white.T
        std = now.noise_std * cuts[1] / jnp.sqrt(jnp.maximum(share[1], _TINY)) / self.records
        bends = symmetric.upright(symmetric.shrunk(sums[1] / self.records, shape, std, jnp).matrix, FLOOR, jnp)
        learnt = jnp.where(share[1] > 0, back @ bends @ back.T, point.curvature)
        theta = point.theta + jnp.where(share[0] > 0, self._newton(point.theta, back @ score, learnt), 0)
        # The steps that are read have the same coordinates, so that they are of the same score.
        white = jnp.where(number < len(self.shares) - READ, self._white(learnt), point.white)
        return Position(tuple(Place(theta, white, learnt, point.number + 1)), kept)

    def _white(self, curvature: jax.Array) -> jax.Array:
        """The S with S A Sᵀ = I, up to eigenvalues that are small in the scale of the columns."""
        scale = jnp.sqrt(jnp.maximum(jnp.diag(curvature), _TINY))
        inside = curvature / (scale[:, None] * scale)
        white: jax.Array = symmetric.power(inside, -0.5, FLOOR, jnp) / scale[None, :]
        return white

    def _newton(self, theta: jax.Array, score: jax.Array, curvature: jax.Array) -> jax.Array:
        prior = symmetric.floored(-jax.hessian(self.model.log_prior)(theta), 0.0, jnp)
        whole = self.records * curvature + prior
        whole = whole + (1e-5 * jnp.trace(whole) / self.model.dim) * jnp.eye(self.model.dim)
        move: jax.Array = cho_solve(cho_factor(whole), score + jax.grad(self.model.log_prior)(theta))
        shorter: jax.Array = move * jnp.minimum(1, LONGEST / jnp.maximum(jnp.max(jnp.abs(move)), _TINY))
        return shorter

    @property
    def cuts(self) -> tuple[float, float, float]:
        """The longest ψ, A and B of a record."""
        return self.bound, self.bound**2 / 2, self.bound**2

    def _share(self, number: jax.Array) -> jax.Array:
        of_all = jnp.asarray(self.shares, jnp.float32)[jnp.asarray(number, jnp.int32)]
        return of_all / jnp.sum(of_all)

    def _signals(self, place: Place, examples: Data) -> jax.Array:
        root, (bound, cut, square) = jnp.sqrt(self._share(place.number)), self.cuts
        last = place.number >= len(self.shares) - READ

        def one(record: Record) -> jax.Array:
            def score(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
                psi = self._score(theta, place.white, record, last)
                return psi, psi

            slopes, psi = jax.jacfwd(score, has_aux=True)(place.theta)
            curvature = -slopes @ place.white.T
            bent = symmetric.flat((curvature + curvature.T) / 2, jnp)
            # A record whose curvature is too long counts for less in all three: its score bends as it says.
            weight = 1 / jnp.maximum(1, jnp.sqrt(jnp.sum(bent**2)) / cut)
            psi, bent = weight * psi, weight * bent
            spread = symmetric.flat(jnp.outer(psi, psi), jnp)
            return jnp.concatenate([root[0] * psi / bound, root[1] * bent / cut, root[2] * spread / square])

        return jax.vmap(one)(examples)

    def _score(self, theta: jax.Array, white: jax.Array, record: Record, last: jax.Array) -> jax.Array:
        """ψ of one record; how the factor that shortens it bends counts at the `last` steps alone.

        Before, records are weighed anew at every step, which never makes a step too long.
        """
        log_p, gradient = jax.value_and_grad(self.model.log_likelihood)(theta, record)
        moved = white @ gradient
        size = jnp.sqrt(jnp.sum(moved**2) + _TINY)
        if self.model.binary:
            size = lax.stop_gradient(size / jnp.maximum(-jnp.expm1(log_p), _TINY))
        factor = 1 / jnp.maximum(1, size / self.bound)
        shortened: jax.Array = moved * jnp.where(last, factor, lax.stop_gradient(factor))
        return shortened
