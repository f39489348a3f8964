"""A batch through the program with a tap at every site: y = op(x, w) + tap, with taps that are 0.

The gradients of the losses with respect to the taps are the g of all sites (`reading`), from one backward pass.
Values of records have the batch along the first axis; public values are computed once, before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism.tapping.fast import run
from bayesdp.mechanism.tapping.program import Slot, Step
from bayesdp.mechanism.tapping.reading import Kind, Loop, Reading, Site

Values = dict[Slot, Any]
Taps = list[list[jax.Array]]
"""Of every site, of every output: (records, …), in a loop (records, rounds, …)."""


def public_values(reading: Reading, leaves: Sequence[jax.Array]) -> Values:
    """Every value that no record enters; in an opened loop for all rounds at once."""
    program, kinds = reading.program, reading.kinds
    found: Values = dict(program.constants)
    found.update(zip(program.inputs, leaves, strict=False))
    for step in program.steps:
        if step in reading.loops:
            _hoist(reading.loops[step], found)
        elif kinds[step.outputs[0]] <= Kind.PARAMETER:
            found.update(zip(step.outputs, step(*(found[slot] for slot in step.inputs)), strict=True))
    return found


def _hoist(loop: Loop, found: Values) -> None:
    found.update(loop.body.constants)
    for inner, outer in zip(loop.body.inputs, loop.step.inputs, strict=True):
        if loop.kinds[inner] <= Kind.PARAMETER:
            found[inner] = found[outer]
    for step in loop.hoisted:
        own = [slot in loop.stacked for slot in step.inputs]
        once = jax.vmap(step, in_axes=tuple(0 if each else None for each in own)) if any(own) else step
        found.update(zip(step.outputs, once(*(found[slot] for slot in step.inputs)), strict=True))


def no_taps(reading: Reading, records: int) -> Taps:
    """Zeros for every site."""

    def zeros(site: Site, slot: Slot) -> jax.Array:
        rounds = () if site.loop is None else (site.loop.rounds,)
        return jnp.zeros((records, *rounds, *slot.shape), slot.aval.dtype)

    return [[zeros(site, slot) for slot in site.taps] for site in reading.sites]


def losses(
    reading: Reading, public: Values, examples: Sequence[jax.Array], taps: Taps
) -> tuple[jax.Array, list[list[jax.Array]]]:
    """The loss of every record, and of every site what its records brought."""
    walk = _Walk(reading, public, examples[0].shape[0], dict(zip(reading.sites, taps, strict=True)), {})
    values: Values = dict(zip(reading.program.inputs[-len(examples) :], examples, strict=True))
    walk.steps(reading.program.steps, values)
    (output,) = reading.program.outputs
    return walk.batched(output, values, reading.kinds), [walk.saved[site] for site in reading.sites]


@dataclass
class _Walk:
    reading: Reading
    public: Values
    records: int
    taps: dict[Site, list[jax.Array]]
    saved: dict[Site, list[jax.Array]]

    def steps(self, steps: Iterable[Step], values: Values) -> None:
        """What records enter, in order."""
        at = {site.step: site for site in self.reading.sites if site.loop is None}
        for step in steps:
            if step in self.reading.loops:
                self._loop(self.reading.loops[step], values)
            elif self.reading.kinds[step.outputs[0]] is Kind.RECORD:
                self._step(step, at.get(step), values, self.reading.kinds)

    def _step(self, step: Step, site: Site | None, values: Values, kinds: dict[Slot, Kind]) -> None:
        given = [self._value(slot, values) for slot in step.inputs]
        outputs = run(step, given, [kinds[slot] is Kind.RECORD for slot in step.inputs])
        if site is not None:
            self.saved[site] = [
                self.batched(slot, values, kinds) for slot in step.inputs if kinds[slot] > Kind.PARAMETER
            ]
            taps = iter(self.taps[site])
            outputs = [
                out + next(taps) if slot.is_float else out for slot, out in zip(step.outputs, outputs, strict=True)
            ]
        values.update(zip(step.outputs, outputs, strict=True))

    def _value(self, slot: Slot, values: Values) -> Any:
        return values[slot] if slot in values else self.public[slot]

    def batched(self, slot: Slot, values: Values, kinds: dict[Slot, Kind]) -> jax.Array:
        """A value with the batch along its first axis, whatever it is."""
        value = self._value(slot, values)
        if kinds[slot] is Kind.RECORD:
            return jnp.asarray(value)
        return jnp.broadcast_to(value, (self.records, *jnp.shape(value)))

    def _loop(self, loop: Loop, values: Values) -> None:
        outer = dict(zip(loop.body.inputs, loop.step.inputs, strict=True))
        kinds, here = loop.kinds, self.reading.kinds
        sites = [site for site in self.reading.sites if site.loop is loop]
        at = {site.step: site for site in sites}
        starts = {site.taps[0]: site for site in self.reading.sites if site.step is loop.step}
        invariant = {slot: values[outer[slot]] for slot in loop.body.inputs[: loop.constants] if outer[slot] in values}
        public = [slot for slot in self.public if slot in loop.stacked]
        own = [slot for slot in loop.rows if kinds[slot] is Kind.RECORD]

        def carry() -> list[Any]:
            found = []
            for inner in loop.carries:
                if kinds[inner] is not Kind.RECORD:
                    found.append(self._value(outer[inner], values))
                    continue
                value = self.batched(outer[inner], values, here)
                if inner in starts:
                    self.saved[starts[inner]] = []
                    value = value + self.taps[starts[inner]][0]
                found.append(value)
            return found

        def body(carried: list[Any], rows: Any) -> tuple[list[Any], Any]:
            own_rows, public_rows, taps = rows
            inside = {**invariant, **dict(zip(loop.carries, carried, strict=True))}
            inside.update(zip([*own, *public], [*own_rows, *public_rows], strict=True))
            walk = _Walk(self.reading, self.public, self.records, dict(zip(sites, taps, strict=True)), {})
            for step in loop.body.steps:
                kind = kinds[step.outputs[0]]
                if kind is Kind.RECORD:
                    walk._step(step, at.get(step), inside, kinds)
                elif kind is Kind.ROUND:
                    given = [walk._value(slot, inside) for slot in step.inputs]
                    inside.update(zip(step.outputs, step(*given), strict=True))
            after = [
                walk.batched(slot, inside, kinds) if kinds[inner] is Kind.RECORD else walk._value(slot, inside)
                for inner, slot in zip(loop.carries, loop.body.outputs, strict=False)
            ]
            ys = [walk.batched(slot, inside, kinds) for slot in loop.body.outputs[loop.carried :]]
            return after, (ys, [walk.saved[site] for site in sites])

        rows = [jnp.moveaxis(values[outer[slot]], 1, 0) for slot in own]
        taps = [[jnp.moveaxis(tap, 1, 0) for tap in self.taps[site]] for site in sites]
        settings = loop.step.settings
        end, (ys, saved) = lax.scan(
            body,
            carry(),
            (rows, [self.public[slot] for slot in public], taps),
            length=loop.rounds,
            reverse=settings["reverse"],
            unroll=settings["unroll"],
        )
        for site, kept in zip(sites, saved, strict=True):
            self.saved[site] = [jnp.moveaxis(value, 0, 1) for value in kept]
        for inner, slot, value in zip(loop.carries, loop.step.outputs, end, strict=False):
            done = value if kinds[inner] is Kind.RECORD else jnp.broadcast_to(value, (self.records, *jnp.shape(value)))
            values[slot] = done
        for slot, value in zip(loop.step.outputs[loop.carried :], ys, strict=True):
            values[slot] = jnp.moveaxis(value, 0, 1)
