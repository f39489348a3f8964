"""Book-keeping for people: one backward pass for all rows, then the gradient of each person as a matrix.

    ∂W of a person = Σ_r m_r a_r g_rᵀ,   ∂b = Σ_r m_r g_r          (a_r, g_r as in `bookkeeping`, r over their rows)

The rows of a person are to a dense layer what positions are to a convolution. Their sum has no norm that is known
without computing it: a Gram sum cancels (H20). So it is computed, and the norm of what was computed and is added is
taken, as for a convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.errors import whole
from bayesdp.mechanism.blocks import fold_blocks, full_precision
from bayesdp.mechanism.bookkeeping import BookKeeping, Entry, ModelLoss, Params, books_of, conv_gradients
from bayesdp.mechanism.clipping import Norms, apply_rule, clip_rule
from bayesdp.mechanism.layers import Conv2D, Weights
from bayesdp.mechanism.lengths import length
from bayesdp.mechanism.people import People, PeopleLoss
from bayesdp.mechanism.per_example import Gradients, adding, empty, norms_by_block
from bayesdp.mechanism.tapping import Explained, Tapped
from bayesdp.mechanism.tapping.ways import explained

_ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class PeopleBooks(Gradients):
    """Clipping by person of a `PeopleLoss` of a `ModelLoss`, `block` people at a time (None: by platform and rows)."""

    loss: PeopleLoss
    block: int | None = None

    @full_precision
    def clip_sum(
        self,
        params: Params,
        examples: People,
        mask: jax.Array,
        clip_norm: Any,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Params, Norms]:
        """As `PerExample.clip_sum` of the `PeopleLoss`, to float32 rounding, and with the same guarantee (H20)."""
        rule = clip_rule(clip_norm)

        def one(sums: Params, block: People, here: jax.Array) -> tuple[Params, Norms]:
            gradients = self._gradients(params, block, subset)
            factors, norms = apply_rule(rule, jax.tree.map(length, gradients), here)
            return jax.tree.map(add, sums, gradients, factors), norms

        add = adding(per_unit, mask.shape[0])
        zero = empty(tuple(params), per_unit)
        return fold_blocks(one, zero, examples, mask, self._block(examples, mask))

    @full_precision
    def norms(
        self, params: Params, examples: People, mask: jax.Array, clip_norm: Any, subset: Params | None = None
    ) -> Norms:
        """`Norms` of shape (people,), 0 where the mask is false."""

        def sizes(block: People) -> Params:
            found: Params = jax.tree.map(length, self._gradients(params, block, subset))
            return found

        return norms_by_block(sizes, examples, mask, clip_norm, self._block(examples, mask))

    def _block(self, examples: People, mask: jax.Array) -> int:
        if self.block is not None:
            return whole("block", self.block, least=1)
        rows = examples.present.shape[1]
        return max(1, _ROWS_AT_ONCE // rows) if jax.default_backend() == "cpu" else mask.shape[0]

    def _gradients(self, params: Params, block: People, subset: Params | None) -> Params:
        """The gradient of each person, a tree like `params` with people along the first axis."""
        people = block.present.shape[0]
        x, y = block.all_rows
        of_row = self.loss.loss
        assert isinstance(of_row, ModelLoss)
        masked = ModelLoss(of_row.model, partial(_masked, of_row.example_loss))
        books = books_of(masked, params, (x, (y, block.present.reshape(-1))))
        found = []
        for i, (entry, weights) in enumerate(zip(books, params, strict=True)):
            own = _of_people(entry, people)
            shaped = {name: own[name].reshape(people, *leaf.shape) for name, leaf in weights.items()}
            chosen = None if subset is None else subset[i]
            found.append(shaped if chosen is None else {name: shaped[name] * chosen[name] for name in shaped})
        return tuple(found)


def _masked(loss: Callable[[jax.Array, Any], jax.Array], output: jax.Array, target: tuple[Any, jax.Array]) -> jax.Array:
    """The loss of a row, 0 where it only fills up."""
    y, present = target
    return jnp.where(present, loss(output, y), 0)


def _of_people(entry: Entry, people: int) -> Weights:
    """The gradients of one layer, summed over the rows of each person."""
    if isinstance(entry.layer, Conv2D):
        by_row = conv_gradients(entry, None)
        return {name: leaf.reshape(people, -1, *leaf.shape[1:]).sum(1) for name, leaf in by_row.items()}
    a = entry.inputs.reshape(people, -1, entry.inputs.shape[-1])
    g = entry.outputs.reshape(people, -1, entry.outputs.shape[-1])
    return {"bias": g.sum(1), "kernel": lax.dot_general(a, g, (((1,), (1,)), ((0,), (0,))))}


def gradients_of(loss: Callable[[Any, Any], jax.Array]) -> Gradients:
    """The fastest way to clipped gradients of `loss`: book-keeping if it shows its layers, else its program is read."""
    if isinstance(loss, PeopleLoss) and isinstance(loss.loss, ModelLoss):
        return PeopleBooks(loss)
    return BookKeeping(loss) if isinstance(loss, ModelLoss) else Tapped(loss)


def explain(loss: Callable[[Any, Any], jax.Array], params: Any, examples: Any) -> tuple[Explained, ...]:
    """The way that `gradients_of` takes to each parameter, for examples (records, …) of this shape."""
    gradients = gradients_of(loss)
    if isinstance(gradients, Tapped):
        return gradients.explain(params, examples)
    return explained(params, ["by the books of its layer"] * len(jax.tree.leaves(params)))
