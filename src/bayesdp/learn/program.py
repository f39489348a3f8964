"""The compiled part of private learning: the steps between two looks as one program, for one run or for several."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax

from bayesdp.mechanism.devices import Records
from bayesdp.mechanism.noise import step_keys
from bayesdp.mechanism.step import PrivateStep


def compiled(step: PrivateStep, optimizer: optax.GradientTransformation, *, together: bool = False) -> Any:
    """The program of `_interval`, kept for the next run with the same step and optimiser where both can be compared.

    `together`: for several runs at once, whose parameters, states and keys come stacked along a first axis.
    """
    build = _kept if _hashable(step) else _built  # a loss may be of a kind that cannot be compared
    return build(step, optimizer, together)


def _built(step: PrivateStep, optimizer: optax.GradientTransformation, together: bool) -> Any:
    return jax.jit(_interval(step, optimizer, together))


_kept = lru_cache(maxsize=8)(_built)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _interval(step: PrivateStep, optimizer: optax.GradientTransformation, together: bool) -> Any:
    """interval(params, state, key, steps, clip, noise, phases, pace, stop, …) → params, state, raw norms, distances.

    One program for every interval: steps from `stop` on do nothing. An objective that draws at every step says where
    the step looks (`drawn`) and what is made of the noisy sum (`advance`, told the step's number or the plan's pace); a
    loss goes to the optimiser as it is. An objective may `keep` iterates in a store that its state comes with.
    """
    gradients: Any = step.gradients
    drawing, keeping = hasattr(gradients, "drawn"), hasattr(gradients, "keep")

    def interval(
        params: Any,
        state: Any,
        key: Any,
        steps: Any,
        clip: Any,
        std: Any,
        phase: Any,
        pace: Any,
        stop: Any,
        rule: Any,
        records: Records,
        witnesses: Records | None,
    ) -> Any:
        def act(carry: Any, now: Any) -> Any:
            (number, factor, noise, phase, pace), ahead = now

            def one(key: Any, params: Any, state: Any, ahead: Any) -> Any:
                at = gradients.drawn(step_keys(key, number).public, params) if drawing else params
                scaled = jax.tree.map(lambda norm: norm * factor, rule)
                released, seen = step(
                    key,
                    number,
                    at,
                    records,
                    clip_norm=scaled,
                    noise_std=noise,
                    witnesses=witnesses,
                    phase=phase,
                    ahead=ahead,
                )
                if drawing:
                    told = number if pace is None else pace
                    params, state = gradients.advance(optimizer, told, at, state, released)
                else:
                    updates, state = optimizer.update(released, state, params)
                    params = optax.apply_updates(params, updates)
                empty = jnp.zeros((0,), jnp.float32)
                return (params, state), (empty, empty) if seen is None else (seen.raw, seen.distance)

            def move(carry: Any) -> Any:
                params, state = carry
                return (jax.vmap(one) if together else one)(key, params, state, ahead)

            def stay(carry: Any) -> Any:
                many = (len(key),) if together else ()
                nothing = jnp.zeros((*many, 0 if witnesses is None else witnesses.size), jnp.float32)
                return carry, (nothing, nothing)

            if not keeping:
                return lax.cond(number < stop, move, stay, carry)
            # Outside of the branches, which would copy the whole store at every step.
            params, (state, store) = carry
            (params, state), seen = lax.cond(number < stop, move, stay, (params, state))
            return (params, (state, gradients.keep(store, pace, params))), seen

        # What is filled up gets a step number that is not below `stop`.
        numbers = jnp.where(jnp.arange(len(steps)) + steps[0] < stop, steps, stop)
        runs = len(key) if together else 1
        block = min(step.steps_ahead(records, runs), len(steps))
        columns = jax.tree.map(lambda column: _in_blocks(column, block), (numbers, clip, std, phase, pace))
        columns = (
            jnp.where(jnp.arange(columns[0].size).reshape(-1, block) < len(steps), columns[0], stop),
            *columns[1:],
        )

        def act_ahead(carry: Any, now: Any) -> Any:
            if block == 1:
                return lax.scan(act, carry, (now, None))

            def look(key: Any, params: Any) -> Any:
                at = gradients.drawn(step_keys(key, 0).public, params) if drawing else params
                return step.look_ahead(key, now[0], now[3], records, runs if keeping else 1, at)

            ahead = (
                jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), jax.vmap(look)(key, carry[0]))
                if together
                else look(key, carry[0])
            )
            return lax.scan(act, carry, (now, ahead))

        (params, state), seen = lax.scan(act_ahead, (params, state), columns)
        raw, distances = (part.reshape(columns[0].size, *part.shape[2:])[: len(steps)] for part in seen)
        if together:  # by run, then by step
            raw, distances = jnp.swapaxes(raw, 0, 1), jnp.swapaxes(distances, 0, 1)
        return params, state, raw, distances

    return interval


def _in_blocks(column: Any, block: int) -> Any:
    """Rows in blocks, the last one filled up with the last row."""
    rows = jnp.asarray(column)[jnp.minimum(jnp.arange(-(-len(column) // block) * block), len(column) - 1)]
    return rows.reshape(-1, block, *rows.shape[1:])
