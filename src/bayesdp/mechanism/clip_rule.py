"""Clip rules: by how much each record's gradient is shortened, from its squared norms alone.

    Flat        clip(g; C) = g / max(1, |g|/C)                       sensitivity C                    (B13)
    PerLayer    the same for each part g_l with its own C_l          sensitivity sqrt(Σ C_l²)
    Automatic   C g / (|g| + γ)  (Bu et al., "automatic clipping")   sensitivity C
    Unclipped   g                                                    sensitivity infinite             (S1)

A rule maps the squared norms of a gradient's leaves to a factor for each leaf. A record whose gradient is not finite,
or whose squared norm overflows float32, contributes nothing (so that one bad record cannot blow up the sum, which
would tell that it is there) and is reported at the sensitivity: never under-count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass

from bayesdp.errors import InputError, number

Params = Any
Number = jax.Array | float


class Norms(NamedTuple):
    """One entry per record: |g|, and |clip(g)|, which is how far the record moves a sum (E3)."""

    raw: jax.Array
    clipped: jax.Array


@register_dataclass
@dataclass(frozen=True)
class Flat:
    """clip(g; C) = g / max(1, |g|/C): one norm for the whole gradient (B13)."""

    norm: Number

    @property
    def sensitivity(self) -> Number:
        """C."""
        return self.norm

    def factors(self, squares: Params) -> tuple[Params, jax.Array]:
        """Factor of each leaf and |clip(g)|."""
        size = jnp.sqrt(total(squares))
        factor = self.norm / jnp.maximum(size, self.norm)
        return _everywhere(factor, squares), jnp.minimum(size, self.norm)


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

    def factors(self, squares: Params) -> tuple[Params, jax.Array]:
        """Factor of each leaf and |clip(g)|."""
        try:
            sizes = jax.tree.map(lambda _, part: jnp.sqrt(total(part)), self.norms, squares)
        except ValueError as error:
            raise InputError(f"Expected clip norms for parts of the parameters, one norm each. {error}") from error
        factor = jax.tree.map(lambda norm, size: norm / jnp.maximum(size, norm), self.norms, sizes)
        clipped = jax.tree.map(lambda norm, size: jnp.minimum(size, norm) ** 2, self.norms, sizes)
        return jax.tree.map(_everywhere, factor, squares), jnp.sqrt(total(clipped))


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

    def factors(self, squares: Params) -> tuple[Params, jax.Array]:
        """Factor of each leaf and |clip(g)|."""
        size = jnp.sqrt(total(squares))
        factor = self.norm / (size + self.gamma)
        return _everywhere(factor, squares), jnp.where(jnp.isinf(size), self.norm, factor * size)


@register_dataclass
@dataclass(frozen=True)
class Unclipped:
    """g as it is: differential privacy is infinite, Bayesian and per-instance costs need not be (S1)."""

    @property
    def sensitivity(self) -> Number:
        """Infinity."""
        return math.inf

    def factors(self, squares: Params) -> tuple[Params, jax.Array]:
        """Ones, and |g|."""
        size = jnp.sqrt(total(squares))
        return _everywhere(jnp.ones_like(size), squares), size


ClipRule = Flat | PerLayer | Automatic | Unclipped


def clip_rule(clip_norm: Any) -> ClipRule:
    """The rule meant by `clip_norm`: a number, a tree of numbers (per layer), None, or a rule itself.

    Bad input: a norm or γ that is not a positive finite number gets `InputError`.
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
        raise InputError(f"Expected at least one clip norm, got clip_norm={clip_norm!r}.")
    checked: ClipRule = jax.tree.map(
        lambda norm: norm if isinstance(norm, jax.Array) else number("clip_norm", norm, above=0), rule
    )
    return checked


def apply_rule(rule: ClipRule, squares: Params, mask: jax.Array | None = None) -> tuple[Params, Norms]:
    """Factor of each leaf, 0 where a record is masked or not finite, and the norms, 0 where a record is masked.

    A mask of numbers says how far each record may move the sum: its gradient is shortened to that after the rule.
    """
    square = total(squares)
    finite = jnp.isfinite(square)
    safe = jax.tree.map(lambda part: jnp.where(finite, part, 0), squares)
    factors, clipped = rule.factors(safe)
    raw = jnp.where(finite, jnp.sqrt(square), jnp.inf)
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


def total(squares: Params) -> jax.Array:
    """Sum over the leaves."""
    leaves: list[jax.Array] = jax.tree.leaves(squares)
    return sum(leaves[1:], start=leaves[0])


def _everywhere(factor: jax.Array, squares: Params) -> Params:
    return jax.tree.map(lambda _: factor, squares)
