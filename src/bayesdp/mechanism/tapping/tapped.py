"""Clipped sums of any loss from one backward pass of the batch: the loss is read, not asked for its layers.

    g at all sites (`forward`)  →  lengths  →  factors  →  Σ_x f_x ∂_x       (book-keeping: Bu et al. 2022)

The numbers are those of `PerExample` to float32 rounding. What is added up is what was measured, so that no record
moves a sum by more than its clip norm (H20): a barrier keeps the compiler from computing one of the two again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.errors import whole
from bayesdp.mechanism import lattice
from bayesdp.mechanism.blocks import fold_blocks, full_precision
from bayesdp.mechanism.clipping import Norms, apply_rule, clip_rule
from bayesdp.mechanism.lengths import length
from bayesdp.mechanism.per_example import Gradients, PerExample, adding, empty, norms_by_block
from bayesdp.mechanism.subset import restrict
from bayesdp.mechanism.tapping import forward, local, outer
from bayesdp.mechanism.tapping.program import traced, written_out
from bayesdp.mechanism.tapping.reading import Reading, read
from bayesdp.mechanism.tapping.ways import Explained, Way, explained, ways_of

Params = Any
Examples = Any
Loss = Callable[[Params, Any], jax.Array]


class Found(NamedTuple):
    """What one parameter's gradients are made of: factors (a, g), rows and their gradients, or (gradients,)."""

    parts: Any
    sizes: jax.Array


@dataclass(frozen=True)
class Tapped(Gradients):
    """Per-record clipping of any loss of one record, `block` records at a time (None: by platform)."""

    loss: Loss
    block: int | None = None

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
        """As `PerExample.clip_sum`, to float32 rounding, and with the same guarantee (H20)."""
        taps = _Taps.of(self.loss, params, examples)
        if isinstance(taps, str):
            return PerExample(self.loss).clip_sum(params, examples, mask, clip_norm, subset, per_unit)
        rule, records, tree = clip_rule(clip_norm), mask.shape[0], jax.tree.structure(params)
        leaves, add = jax.tree.leaves(params), adding(per_unit, records)

        def one(sums: list[jax.Array], block: Examples, here: jax.Array) -> tuple[list[jax.Array], Any]:
            found = taps.examine(block, subset)
            factors, norms = apply_rule(rule, jax.tree.unflatten(tree, [leaf.sizes for leaf in found]), here)
            rows, new = [], []
            for way, sum_, leaf, factor in zip(taps.ways, sums, found, jax.tree.leaves(factors), strict=True):
                if way.kind == "outer":
                    # Kept for one matrix product at the end: adding by blocks would move all weights each time.
                    a, g = leaf.parts
                    rows.append(outer.rows(a, g, factor, per_unit, records))
                    new.append(sum_)
                elif way.kind == "rows":
                    row, g = leaf.parts
                    new.append(_add_rows(sum_, row, g, factor, per_unit, records))
                else:
                    new.append(sum_ if way.kind == "none" else add(sum_, leaf.parts[0], factor))
            return new, (norms, rows)

        zero = [
            jnp.zeros(()) if way.kind == "outer" else empty(leaf, per_unit)
            for way, leaf in zip(taps.ways, leaves, strict=True)
        ]
        sums, (norms, rows) = fold_blocks(one, zero, examples, mask, self._block(mask))
        kept = iter(rows)
        done = [
            way.leaf(outer.total(next(kept), per_unit)) if way.kind == "outer" else total
            for way, total in zip(taps.ways, sums, strict=True)
        ]
        return restrict(jax.tree.unflatten(tree, done), subset), norms

    @full_precision
    def norms(
        self, params: Params, examples: Examples, mask: jax.Array, clip_norm: Any, subset: Params | None = None
    ) -> Norms:
        """`Norms` of shape (records,), 0 where the mask is false; what only the sum needs is not computed."""
        taps = _Taps.of(self.loss, params, examples)
        if isinstance(taps, str):
            return PerExample(self.loss).norms(params, examples, mask, clip_norm, subset)
        tree = jax.tree.structure(params)

        def sizes(block: Examples) -> Params:
            return jax.tree.unflatten(tree, [leaf.sizes for leaf in taps.examine(block, subset)])

        return norms_by_block(sizes, examples, mask, clip_norm, self._block(mask))

    def explain(self, params: Params, examples: Examples) -> tuple[Explained, ...]:
        """The way to each parameter's clipped sum, for records (records, …) of this shape."""
        taps = _Taps.of(self.loss, params, examples)
        leaves = len(jax.tree.leaves(params))
        return explained(params, [taps] * leaves if isinstance(taps, str) else [way.why for way in taps.ways])

    def _block(self, mask: jax.Array) -> int:
        if self.block is not None:
            return whole("block", self.block, least=1)
        return 16 if jax.default_backend() == "cpu" else mask.shape[0]


@dataclass(frozen=True)
class _Taps:
    """A loss that was read, at these parameters: `public` is the same for every record, `pull` leads back from it."""

    reading: Reading
    ways: list[Way]
    public: forward.Values
    pull: Callable[[list[jax.Array]], tuple[list[jax.Array]]]

    @classmethod
    def of(cls, loss: Loss, params: Params, examples: Examples) -> _Taps | str:
        """The loss with its taps, or why it cannot have any."""
        closed = traced(loss, params, jax.tree.map(lambda leaf: leaf[0], examples))
        if [aval.shape for aval in closed.out_avals] != [()] or not jax.tree.leaves(examples):
            return "record by record: its loss is not one number of a record"
        if closed.effects:
            return "record by record: its loss does more than compute a number"
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(params)]
        reading = read(written_out(closed), len(leaves))
        ways = ways_of(reading, len(leaves))
        order: list[Any] = []

        def public(some: list[jax.Array]) -> tuple[list[jax.Array], list[Any]]:
            own = iter(some)
            merged = [next(own) if way.kind == "whole" else leaf for way, leaf in zip(ways, leaves, strict=True)]
            values = forward.public_values(reading, merged)
            order[:] = list(values)
            return [values[slot] for slot in _boundary(reading, ways)], list(values.values())

        chosen = [leaf for way, leaf in zip(ways, leaves, strict=True) if way.kind == "whole"]
        _, pull, values = jax.vjp(public, chosen, has_aux=True)
        return cls(reading, ways, dict(zip(order, values, strict=True)), pull)

    def examine(self, examples: Examples, subset: Params | None) -> list[Found]:
        """Of each parameter, what its gradients are made of and their lengths."""
        flat = jax.tree.leaves(examples)
        zero = forward.no_taps(self.reading, flat[0].shape[0])
        losses, back, saved = jax.vjp(
            lambda taps: forward.losses(self.reading, self.public, flat, taps), zero, has_aux=True
        )
        g = back(jnp.ones_like(losses))[0]
        # Measured and added up must be the same numbers.
        saved, g = lax.optimization_barrier((saved, g))
        at = dict(zip(self.reading.sites, zip(saved, g, strict=True), strict=True))
        gradients: dict[Any, jax.Array] = {}
        boundary = _boundary(self.reading, self.ways)
        for site in self.reading.sites:
            if not set(site.weights).intersection(boundary):
                continue
            parts = local.weight_gradients(self.reading, site, self.public, *at[site])
            for slot, part in zip(site.weights, parts, strict=True):
                gradients[slot] = gradients[slot] + part if slot in gradients else part
        (pulled,) = jax.vmap(self.pull)([gradients[slot] for slot in boundary]) if boundary else ([],)
        written = iter(lax.optimization_barrier(pulled))
        chosen = [None] * len(self.ways) if subset is None else jax.tree.leaves(subset)
        return [
            self._found(way, at, next(written) if way.kind == "whole" else None, mask, len(losses))
            for way, mask in zip(self.ways, chosen, strict=True)
        ]

    def _found(self, way: Way, at: Any, written: Any, subset: jax.Array | None, records: int) -> Found:
        if way.kind == "none":
            return Found((), jnp.zeros(records))
        if way.kind == "outer":
            saved, g = at[way.sites[0]]
            a, g = local.outer_factors(way.sites[0], saved[0], g[0])
            return Found((a, g), outer.size(a, g, None if subset is None else way.matrix(subset)))
        if way.kind == "rows":
            row, g = (jnp.concatenate(parts, 1) for parts in zip(*(_lookups(way, at)), strict=True))
            g = local.merged(row, g)
            if subset is not None:
                g = g * subset.reshape(subset.shape[0], -1)[row]
            g = lax.optimization_barrier(g)
            return Found((row, g), length(g))
        written = written if subset is None else written * subset
        return Found((written,), length(written))


def _lookups(way: Way, at: Any) -> list[tuple[jax.Array, jax.Array]]:
    return [local.looked_up(site, at[site][0][0], at[site][1][0]) for site in way.sites]


def _boundary(reading: Reading, ways: list[Way]) -> list[Any]:
    """The public values whose gradients are written out."""
    other = {slot for way in ways if way.kind in ("outer", "rows") for site in way.sites for slot in site.weights}
    return [slot for slot in reading.boundary if slot not in other]


def _add_rows(
    sums: jax.Array, row: jax.Array, g: jax.Array, factor: jax.Array, per_unit: jax.Array | None, records: int
) -> jax.Array:
    """The table's sum and the records' rows times their factors; whole numbers on a lattice."""
    g = outer.present(g, factor)
    more = g * outer.along(factor, g) if per_unit is None else lattice.steps(g, factor, per_unit, records)
    flat = sums.reshape(sums.shape[0], -1)
    return flat.at[row.reshape(-1)].add(more.reshape(-1, flat.shape[1])).reshape(sums.shape)
