"""Where a record's gradient is clipped: rules for how much it is shortened, from the norms of its leaves alone.

    Flat        clip(g; C) = g / max(1, |g|/C)                       sensitivity C                    (B13)
    PerLayer    the same for each part g_l with its own C_l          sensitivity sqrt(Σ C_l²)
    Automatic   C g / (|g| + γ)  (Bu et al., "automatic clipping")   sensitivity C
    Unclipped   g                                                    sensitivity infinite             (paper S1)

A rule maps the norms of a gradient's leaves, upper bounds of the exact ones (`lengths`), to a factor for each leaf.
What the roundings from there to the sum may add is in them beforehand (`ROUNDING`), so that no record moves a sum by
more than the sensitivity, nor by more than is reported, float32 or not (H20). A record whose gradient is not finite, or
longer than 2^63, contributes nothing (so that one bad record cannot blow up the sum, which would tell that it is there)
and is reported at the sensitivity: never under-count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

from bayesdp.errors import Argument, number, unmet
from bayesdp.mechanism.lengths import UNIT, together

Params = Any
Number = jax.Array | float

ROUNDING = 32 * UNIT
"""What norms are stretched by, 1.9e-6: up to 12 u of adding up the squares of a million leaves, a factor and a record's
own limit in float32, and two roundings of each entry that is multiplied by them."""

LONGEST = 2.0**63
"""Longer gradients count as not finite: so no product on the way to a sum leaves the range of float32."""

LEAST, MOST = 1e-30, 1e30
"""Clip norms that float32 can divide by and be divided by."""


class Norms(NamedTuple):
    """One entry per record: |g|, and |clip(g)|, which is how far the record moves a sum (sensitivity, E3)."""

    raw: jax.Array
    clipped: jax.Array


@register_dataclass
@dataclass(frozen=True)
class Flat:
    """clip(g; C) = g / max(1, |g|/C): one norm for the whole gradient (clipping, B13)."""

    norm: Number

    @property
    def sensitivity(self) -> Number:
        """C."""
        return self.norm

    def factors(self, sizes: Params) -> tuple[Params, jax.Array]:
        """Factor of each leaf and |clip(g)|."""
        size = whole(sizes)
        factor = self.norm / jnp.maximum(size, self.norm)
        return _everywhere(factor, sizes), jnp.minimum(size, self.norm)


@register_dataclass
@dataclass(frozen=True)
class PerLayer:
    """g_l / max(1, |g_l|/C_l) for every part l; `norms` is the top of a tree of parameters, one norm for all below."""

    norms: Params

    @property
    def sensitivity(self) -> Number:
        """sqrt(Σ C_l²)."""
        squares = [norm * norm for norm in jax.tree.leaves(self.norms)]
        return math.sqrt(sum(squares)) if all(isinstance(s, float) for s in squares) else jnp.sqrt(sum(squares))

    def factors(self, sizes: Params) -> tuple[Params, jax.Array]:
        """Factor of each leaf and |clip(g)|."""
        try:
            parts = jax.tree.map(lambda _, part: whole(part), self.norms, sizes)
        except ValueError as error:
            raise unmet(
                "clip_norm", self.norms, "clip norms for parts of the parameters, one norm each", hint=f"{error}"
            ) from error
        factor = jax.tree.map(lambda norm, size: norm / jnp.maximum(size, norm), self.norms, parts)
        clipped = jax.tree.map(lambda norm, size: jnp.minimum(size, norm), self.norms, parts)
        return jax.tree.map(_everywhere, factor, sizes), jnp.minimum(whole(clipped), self.sensitivity)


@register_dataclass
@dataclass(frozen=True)
class Automatic:
    """C g / (|g| + γ): everybody is scaled to nearly the norm C, so that only the direction is left."""

    norm: Number = 1.0
    gamma: Number = 0.01

    @property
    def sensitivity(self) -> Number:
        """C, which is never quite reached."""
        return self.norm

    def factors(self, sizes: Params) -> tuple[Params, jax.Array]:
        """Factor of each leaf and |clip(g)|."""
        size = whole(sizes)
        factor = self.norm / (size + self.gamma)
        return _everywhere(factor, sizes), jnp.minimum(factor * size, self.norm)


@register_dataclass
@dataclass(frozen=True)
class Unclipped:
    """g as it is: differential privacy is infinite, Bayesian and per-instance costs need not be (paper S1)."""

    @property
    def sensitivity(self) -> Number:
        """Infinity."""
        return math.inf

    def factors(self, sizes: Params) -> tuple[Params, jax.Array]:
        """Ones, and |g|."""
        size = whole(sizes)
        return _everywhere(jnp.ones_like(size), sizes), size


ClipRule = Flat | PerLayer | Automatic | Unclipped


def clip_rule(clip_norm: Any) -> ClipRule:
    """The rule meant by `clip_norm`: a number, a tree of numbers (per layer), None, or a rule itself.

    Bad input: a norm or γ outside of 1e-30 … 1e30, which float32 can work with, gets `InputError`.
    """
    rule: ClipRule
    if isinstance(clip_norm, Flat | PerLayer | Automatic | Unclipped):
        rule = clip_norm
    elif clip_norm is None:
        return Unclipped()
    elif isinstance(clip_norm, dict | tuple | list):
        rule = PerLayer(clip_norm)
    else:
        rule = Flat(clip_norm)
    if not jax.tree.leaves(rule) and not isinstance(rule, Unclipped):
        raise unmet("clip_norm", clip_norm, "at least one clip norm", str(Argument("clip_norm", clip_norm)))
    checked: ClipRule = jax.tree.map(
        lambda norm: norm if isinstance(norm, jax.Array) else number("clip_norm", norm, least=LEAST, most=MOST), rule
    )
    return checked


def apply_rule(rule: ClipRule, sizes: Params, mask: jax.Array | None = None) -> tuple[Params, Norms]:
    """Factor of each leaf, 0 where a record is masked or not finite, and the norms, 0 where a record is masked.

    `sizes` are upper bounds of the norms of the leaves. A mask of numbers says how far each record may move the sum:
    its gradient is shortened to that after the rule.
    """
    stretched = jax.tree.map(lambda part: part * (1 + ROUNDING), sizes)
    raw = whole(stretched)
    finite = raw <= LONGEST
    factors, clipped = rule.factors(jax.tree.map(lambda part: jnp.where(finite, part, 0), stretched))
    raw = jnp.where(finite, raw, jnp.inf)
    clipped = jnp.where(finite, clipped, rule.sensitivity)
    if mask is None:
        return jax.tree.map(lambda factor: jnp.where(finite, factor, 0), factors), Norms(raw, clipped)
    here = mask > 0
    if mask.dtype != jnp.bool_:
        share = jnp.where(clipped > mask, mask / jnp.maximum(clipped, mask), 1)
        factors = jax.tree.map(lambda factor: factor * share, factors)
        clipped = jnp.minimum(clipped, mask)
    raw, clipped = jnp.where(here, raw, 0), jnp.where(here, clipped, 0)
    return jax.tree.map(lambda factor: jnp.where(finite & here, factor, 0), factors), Norms(raw, clipped)


def whole(sizes: Params) -> jax.Array:
    """The norm of what has leaves of these norms."""
    return together(jax.tree.leaves(sizes))


def _everywhere(factor: jax.Array, sizes: Params) -> Params:
    return jax.tree.map(lambda _: factor, sizes)
