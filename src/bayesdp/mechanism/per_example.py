"""Clipped gradient sums and per-record norms for any `loss(params, example)` of one record.

    sum  Σ_x m_x clip(g_x; C),   norms  |g_x| and |clip(g_x; C)|,   g_x = ∇ loss(params, x)

Two ways of the same numbers: "vmap" takes all records of a microbatch at once (for GPU); "scan" takes one after the
other (on a CPU many times faster for convolutions, whose batched per-record gradients become grouped convolutions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp

from bayesdp.errors import one_of, refuse
from bayesdp.mechanism import lattice
from bayesdp.mechanism.blocks import fold_blocks, full_precision
from bayesdp.mechanism.clipping import Norms, apply_rule, clip_rule
from bayesdp.mechanism.lengths import length
from bayesdp.mechanism.subset import restrict

Params = Any
Examples = Any


class Gradients(Protocol):
    """What a step asks of per-record gradients; `PerExample` and `BookKeeping` give the same numbers.

    A mask may be of numbers: how far each record may move the sum, 0 for one that is absent (`apply_rule`).
    """

    def clip_sum(
        self,
        params: Params,
        examples: Examples,
        mask: jax.Array,
        clip_norm: Any,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Params, Norms]:
        """Σ_x m_x clip(M ∘ g_x) and the norms of every record of the microbatch.

        With `per_unit`, the steps of a lattice that make up a length of 1, the sum is of whole numbers, int32: each
        record's clipped gradient times that, cut off towards 0 (H26).
        """
        ...

    def norms(
        self, params: Params, examples: Examples, mask: jax.Array, clip_norm: Any, subset: Params | None = None
    ) -> Norms:
        """The norms alone: for witnesses, whose gradients must not enter a sum."""
        ...

    def zero(self, params: Params) -> Params:
        """An empty sum: a tree like the parameters, unless sums are of another form."""
        return jax.tree.map(jnp.zeros_like, params)


@dataclass(frozen=True)
class PerExample(Gradients):
    """Gradients of any loss of one record, one at a time or `vmap`ped; `method=None` chooses by platform."""

    loss: Callable[[Params, Any], jax.Array]
    method: Literal["scan", "vmap"] | None = None

    def __post_init__(self) -> None:
        one_of("method", self.method, [None, "scan", "vmap"])

    @full_precision
    def clip_sum(
        self,
        params: Params,
        examples: Examples,
        mask: jax.Array,
        clip_norm: Any,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Params, Norms]:
        """Σ_x m_x clip(M ∘ g_x; C) as a tree like `params`, and `Norms` of shape (records,), 0 where the mask is false.

        Guarantee: one record (one entry of the mask) adds to the sum a vector that is no longer than its `clipped`
        norm, nor than the rule's sensitivity (H20), and no shorter than the norm by more than 1e-4 of it. Adding it to
        the others rounds once more, as every sum of floats does; sums on a lattice are exact. Records do not see each
        other. `clip_norm` is what
        `clip_rule` takes. Bad input: parameters or records in half precision get `InputError`.
        """
        rule = clip_rule(clip_norm)

        def one(total: Params, block: Examples, here: jax.Array) -> tuple[Params, Norms]:
            gradients = self._gradients(params, block, subset)
            factors, norms = apply_rule(rule, _sizes(gradients), here)
            return jax.tree.map(add, total, gradients, factors), norms

        add = adding(per_unit, mask.shape[0])
        zero = empty(params, per_unit)
        return fold_blocks(one, zero, examples, mask, self._block(mask))

    @full_precision
    def norms(
        self, params: Params, examples: Examples, mask: jax.Array, clip_norm: Any, subset: Params | None = None
    ) -> Norms:
        """`Norms` of shape (records,), 0 where the mask is false."""

        def sizes(block: Examples) -> Params:
            return _sizes(self._gradients(params, block, subset))

        return norms_by_block(sizes, examples, mask, clip_norm, self._block(mask))

    def _block(self, mask: jax.Array) -> int:
        method = self.method or ("scan" if jax.default_backend() == "cpu" else "vmap")
        return 1 if method == "scan" else mask.shape[0]

    def _gradients(self, params: Params, block: Examples, subset: Params | None) -> Params:
        if jax.tree.leaves(block)[0].shape[0] == 1:  # no batching rule: what "scan" is for
            with one_record_alone():
                single = jax.grad(self.loss)(params, jax.tree.map(lambda x: x[0], block))
            return jax.tree.map(lambda leaf: leaf[None], restrict(single, subset))
        with one_record_alone():
            return jax.vmap(lambda example: restrict(jax.grad(self.loss)(params, example), subset))(block)


@contextmanager
def one_record_alone() -> Iterator[None]:
    """Where a loss is traced. Bad input: one that asks for other records of its batch, as batch normalisation does."""
    try:
        yield
    except NameError as problem:
        if "unbound axis name" not in str(problem):
            raise
        raise refuse(
            "loss",
            None,
            "to look at one record alone",
            "Use group or layer normalisation.",
            got="one that asks for an axis of other records, as batch normalisation does: then no clip norm bounds "
            "a record's effect",
        ) from None


def norms_by_block(
    sizes: Callable[[Examples], Params], examples: Examples, mask: jax.Array, clip_norm: Any, block: int
) -> Norms:
    """The norms of every record, 0 where the mask is false; `sizes` of a block are |g| of its records by leaf."""
    rule = clip_rule(clip_norm)

    def one(nothing: None, part: Examples, here: jax.Array) -> tuple[None, Norms]:
        return nothing, apply_rule(rule, sizes(part), here)[1]

    norms: Norms = fold_blocks(one, None, examples, mask, block)[1]
    return norms


def _sizes(gradients: Params) -> Params:
    return jax.tree.map(length, gradients)


def adding(per_unit: jax.Array | None, records: int) -> Callable[[jax.Array, jax.Array, jax.Array], jax.Array]:
    """add(total, gradients, factors) of floats, or of whole numbers on a lattice for `records` in a microbatch."""
    if per_unit is None:
        return add_weighted
    return lambda total, gradients, factors: total + lattice.add_up(gradients, factors, per_unit, records)


def empty(tree: Params, per_unit: jax.Array | None) -> Params:
    """A sum of no records of a microbatch."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype if per_unit is None else jnp.int32), tree)


def add_weighted(total: jax.Array, gradients: jax.Array, factors: jax.Array) -> jax.Array:
    """`total` and the records of `gradients` times their factors."""
    # A factor of 0 does not remove an infinite gradient: 0 · inf is not a number.
    kept = jnp.where(jnp.expand_dims(factors, range(1, gradients.ndim)) > 0, gradients, 0)
    return total + jnp.tensordot(factors, kept, axes=1)
