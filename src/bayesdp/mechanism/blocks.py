"""A microbatch taken block by block: a loop that stops after the last record that counts.

Small blocks keep activations in the processor's cache; stopping early makes padding nearly free, so that a microbatch
may be as long as the largest likely batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.errors import refuse

Carry = TypeVar("Carry")
Rows = Any
Function = TypeVar("Function", bound=Callable[..., Any])


def full_precision(function: Function) -> Function:
    """For methods of (params, examples, …) whose sums must have the norms that are promised.

    A GPU would round the factors of a matrix product to ten bits, an error of 1e-3. (A CPU never does.) Bad input:
    parameters or records in half precision, in which no norm is known to better than that either.
    """

    @wraps(function)
    def precise(self: Any, params: Any, examples: Any, *others: Any, **named: Any) -> Any:
        not_half("params", params)
        not_half("data", examples)
        with jax.default_matmul_precision("highest"):
            return function(self, params, examples, *others, **named)

    return cast("Function", precise)


def not_half(name: str, tree: Any) -> None:
    """Refuse floats of fewer than 32 bits, such as bfloat16: their rounding would be larger than is accounted for."""
    for leaf in jax.tree.leaves(tree):
        kind = jax.dtypes.result_type(leaf)
        if jnp.issubdtype(kind, jnp.floating) and jnp.finfo(kind).bits < 32:
            raise refuse(
                name,
                str(kind),
                "to hold float32 numbers",
                "A clip norm holds for sums of float32 numbers: convert with astype('float32').",
                got=str(kind),
            )


def fold_blocks(
    body: Callable[[Carry, Any, jax.Array], tuple[Carry, Rows]], init: Carry, examples: Any, mask: jax.Array, block: int
) -> tuple[Carry, Rows]:
    """Fold `carry, rows = body(carry, examples, mask)` over blocks of `block` records.

    `rows` is a tree of arrays with one row per record of the block; the result holds them for all records, zero where
    a block was left out because none of its records, and none after it, counts.
    """
    size = mask.shape[0]
    block = min(block, size)
    if block == size:
        return body(init, examples, mask)
    pad = -size % block
    if pad:
        examples = jax.tree.map(lambda x: jnp.concatenate([x, x[:pad]]), examples)
        mask = jnp.concatenate([mask, jnp.zeros(pad, mask.dtype)])
    used = jnp.max(jnp.where(mask > 0, jnp.arange(1, size + pad + 1), 0))

    def take(tree: Any, start: jax.Array) -> Any:
        return jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, block), tree)

    def one(state: tuple[jax.Array, Carry, Rows]) -> tuple[jax.Array, Carry, Rows]:
        start, carry, kept = state
        carry, rows = body(carry, take(examples, start), take(mask, start))
        kept = jax.tree.map(lambda all_, new: lax.dynamic_update_slice_in_dim(all_, new, start, 0), kept, rows)
        return start + block, carry, kept

    shapes = jax.eval_shape(body, init, take(examples, jnp.int32(0)), take(mask, jnp.int32(0)))[1]
    empty = jax.tree.map(lambda row: jnp.zeros((size + pad, *row.shape[1:]), row.dtype), shapes)
    _, carry, rows = lax.while_loop(lambda state: state[0] < used, one, (jnp.int32(0), init, empty))
    return carry, jax.tree.map(lambda row: row[:size], rows)
