"""The compiled part of private learning: the steps from one snapshot to the next as one program.

    interval(carry, keys, steps, fixed) → carry, what the witnesses saw

Runs lie side by side along a first axis of the carry and the keys, and differ in their noise, batches and draws alone.
The program of a single run has no such axis inside; on a CPU several take turns in it, unless their steps are tiny.
What does not depend on other steps is drawn for many steps at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.learn.loop.objective import Draws, Objective, Params, State, StepSettings, Store
from bayesdp.mechanism.clipping import ClipRule
from bayesdp.mechanism.devices import Records
from bayesdp.mechanism.noise import step_keys
from bayesdp.mechanism.step import AHEAD, Ahead, PrivateStep

Tree = Any
"""Any tree of arrays."""


class Carry(NamedTuple):
    """What changes from step to step: parameters and states (runs, …), and the iterates that are kept."""

    params: Params
    state: State
    store: Store


class Fixed(NamedTuple):
    """What does not: the clip rule, the records, the witnesses (None for nobody), the first step that is not taken."""

    rule: ClipRule
    records: Records
    witnesses: Records | None
    stop: jax.Array | int


class Seen(NamedTuple):
    """Of every witness: |g|, and how far it would move a step, (runs, steps, witnesses)."""

    raw: jax.Array
    distances: jax.Array


class Moved(NamedTuple):
    """After one step; nothing is seen where there are no witnesses."""

    params: Params
    state: State
    seen: Seen | None


class Drawn(NamedTuple):
    """What is drawn before its step because it does not depend on other steps; public draws unless there is no room."""

    ahead: Ahead
    public: Draws | None


class Interval(NamedTuple):
    """What a program gives back."""

    carry: Carry
    seen: Seen


Program = Callable[[Carry, jax.Array, StepSettings, Fixed], Interval]


def compiled(step: PrivateStep, objective: Objective, *, together: bool) -> Program:
    """The program, kept for the next run with the same step and objective where these can be compared.

    `objective` is what `step` takes gradients of; `together`: for several runs at once.
    """
    build = _kept if _comparable(step) else _built  # a loss may be of a kind that cannot be compared
    return build(step, objective, together)


def _built(step: PrivateStep, objective: Objective, together: bool) -> Program:
    program: Program = jax.jit(_interval(step, objective, together))
    return program


_kept = lru_cache(maxsize=8)(_built)


def _comparable(value: Hashable) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _interval(step: PrivateStep, objective: Objective, together: bool) -> Program:
    """One program for every interval: steps from `stop` on are not taken."""

    def interval(carry: Carry, keys: jax.Array, steps: StepSettings, fixed: Fixed) -> Interval:
        run = partial(_taken, step, objective, steps=steps, fixed=fixed, runs=len(keys))
        if not together or not step.in_turn(fixed.records):
            return run(carry, keys, together=together)

        def one(i: jax.Array, done: Interval) -> Interval:
            own = _own(done, i)
            return _put(done, run(own.carry, lax.dynamic_slice_in_dim(keys, i, 1), together=False), i)

        witnesses = 0 if fixed.witnesses is None else fixed.witnesses.size
        nobody = jnp.zeros((len(keys), len(steps.number), witnesses), jnp.float32)
        ended: Interval = lax.fori_loop(0, len(keys), one, Interval(carry, Seen(nobody, nobody)))
        return ended

    return interval


def _own(of_all: Interval, i: jax.Array) -> Interval:
    """What run i has, with an axis of one run."""
    return _by_axis(lambda axis, leaf: lax.dynamic_slice_in_dim(leaf, i, 1, axis), of_all)


def _put(of_all: Interval, own: Interval, i: jax.Array) -> Interval:
    """All with what run i has come to."""
    return _by_axis(lambda axis, leaf, new: lax.dynamic_update_slice_in_dim(leaf, new, i, axis), of_all, own)


def _by_axis(function: Callable[..., jax.Array], *of_runs: Interval) -> Interval:
    """`function` of the axis of runs and every leaf: the second axis of what is kept, else the first."""

    def part(axis: int, *trees: Tree) -> Tree:
        return jax.tree.map(partial(function, axis), *trees)

    params, state, store = zip(*(one.carry for one in of_runs), strict=True)
    return Interval(Carry(part(0, *params), part(0, *state), part(1, *store)), part(0, *(one.seen for one in of_runs)))


def _taken(
    step: PrivateStep,
    objective: Objective,
    carry: Carry,
    keys: jax.Array,
    *,
    steps: StepSettings,
    fixed: Fixed,
    together: bool,
    runs: int,
) -> Interval:
    """The steps of all `runs` side by side if `together`, else of the one that `carry` and `keys` are of."""
    length, kept = len(steps.number), carry.store is not None
    most = step.steps_ahead(fixed.records, runs)
    if most > 1:  # whether to look ahead is for all runs alike, as batches depend on it; a run alone looks further
        most = step.steps_ahead(fixed.records, len(keys))
    block = math.ceil(length / math.ceil(length / most))  # of one length: hardly anything is drawn for no step
    witnesses = 0 if fixed.witnesses is None else fixed.witnesses.size
    nobody = jnp.zeros((length, runs, witnesses) if together else (length, witnesses), jnp.float32)
    key = keys if together else keys[0]
    count = jnp.clip(jnp.asarray(fixed.stop, jnp.int32) - steps.number[0], 0, length)

    def each(one: Callable[..., Tree]) -> Callable[..., Tree]:
        return jax.vmap(one) if together else one

    def act(carry: Carry, settings: StepSettings, drawn: Drawn | None) -> tuple[Carry, Seen | None]:
        def one(key: jax.Array, params: Params, state: State, drawn: Drawn | None) -> Moved:
            public = None if drawn is None else drawn.public
            if public is None:
                public = objective.draw(step_keys(key, settings.number).public, params)
            point = objective.locate(public, params)
            released, seen = step(
                key,
                settings.number,
                point,
                fixed.records,
                clip_norm=jax.tree.map(lambda norm: norm * settings.clip_factor, fixed.rule),
                noise_std=settings.noise_std,
                witnesses=fixed.witnesses,
                phase=settings.phase,
                ahead=None if drawn is None else drawn.ahead,
            )
            params, state = objective.advance(settings, point, state, released)
            return Moved(params, state, None if seen is None else Seen(seen.raw, seen.distance))

        moved: Moved = each(one)(key, carry.params, carry.state, drawn)
        store = carry.store
        if kept:
            store = objective.keep(store, settings, moved.params if together else _with_axis(moved.params))
        return Carry(moved.params, moved.state, store), moved.seen

    def draw(key: jax.Array, now: StepSettings, params: Params) -> Drawn:
        public = jax.eval_shape(objective.draw, key, params)
        point = jax.eval_shape(objective.locate, public, params)
        ahead = step.draw_ahead(key, now.number, now.phase, fixed.records, runs if kept else 1, point)
        if block * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(public)) > AHEAD:
            return Drawn(ahead, None)
        return Drawn(ahead, jax.vmap(lambda own: objective.draw(own, params))(ahead.keys.public))

    def act_block(i: jax.Array, state: tuple[Carry, Seen | None]) -> tuple[Carry, Seen | None]:
        begin = i * block
        rows = jnp.minimum(begin + jnp.arange(block), length - 1)
        now = jax.tree.map(lambda column: jnp.asarray(column)[rows], steps)
        drawn = None
        if block > 1:
            drawn = each(partial(draw, now=now))(key, params=state[0].params)
            if together:
                drawn = jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), drawn)

        def act_one(j: jax.Array, state: tuple[Carry, Seen | None]) -> tuple[Carry, Seen | None]:
            carry, seen = state
            carry, more = act(carry, _row(now, j), _row(drawn, j))
            put = partial(lax.dynamic_update_index_in_dim, index=begin + j, axis=0)
            return carry, jax.tree.map(put, seen, more)

        ended: tuple[Carry, Seen | None] = lax.fori_loop(0, jnp.minimum(block, count - begin), act_one, state)
        return ended

    inside = carry
    if not together:
        inside = Carry(_without_axis(carry.params), _without_axis(carry.state), carry.store)
    first = inside, None if fixed.witnesses is None else Seen(nobody, nobody)
    last, seen = lax.fori_loop(0, (count + block - 1) // block, act_block, first)
    seen = Seen(nobody, nobody) if seen is None else seen
    if together:  # by run, then by step
        return Interval(last, jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), seen))
    return Interval(Carry(_with_axis(last.params), _with_axis(last.state), last.store), _with_axis(seen))


def _row(tree: Tree, i: jax.Array) -> Tree:
    return jax.tree.map(lambda leaf: lax.dynamic_index_in_dim(leaf, i, keepdims=False), tree)


def _with_axis(tree: Tree) -> Tree:
    return jax.tree.map(lambda leaf: jnp.expand_dims(leaf, 0), tree)


def _without_axis(tree: Tree) -> Tree:
    return jax.tree.map(lambda leaf: leaf[0], tree)
