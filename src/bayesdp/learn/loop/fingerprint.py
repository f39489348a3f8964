"""The whole job of a run as digests: what a checkpoint must share with the training that goes on from it.

    plan, watch, devices, precision, JAX    as they are
    data, holdout, start, pace              digests of arrays
    loss, optimiser                         digests of the traced programs, and of the constants in them

Losses, models and optimisers are functions, which cannot be compared; what they compute can. Tracing them writes down
every operation and number, a learning rate or the rates of a schedule too. Names and places in memory are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.objective import ClipNorm, Objective, Pace, Params, Signal, State, StepSettings
from bayesdp.learn.records import Data
from bayesdp.mechanism.clipping import clip_rule
from bayesdp.mechanism.devices import record_mesh

Tree = Any
"""Any tree of arrays, or of their shapes."""

_TWO = 2
"""Records in the batch that a loss is traced with: a loss of one and of several are then told apart."""


def fingerprint(course: Course, data: Data, holdout: Data, watch: Data) -> dict[str, Any]:
    """Plain values by what they are of."""
    params, config = course.params, _config()
    if course.chains is not None:
        params = jax.tree.map(lambda leaf: leaf[0], params)
    return {
        "plan": course.plan.describe(),
        "data": digest(data),
        "holdout": digest(holdout),
        "watch": watch if isinstance(watch, str) else digest(watch),
        "number of devices": record_mesh().size,
        "kind of devices": sorted({one.device_kind for one in record_mesh().devices.flat}),
        "precision": {"x64": config.jax_enable_x64, "matmul": config.jax_default_matmul_precision},
        "version of JAX": jax.__version__,
        "starting values": digest(course.params),
        "loss or model": loss_digest(course.objective, params, data, course.plan.clip_norm),
        "optimiser": optimizer_digest(course.objective, params, course.pace),
        "pace": digest(course.pace),
    }


def _config() -> Any:
    """JAX's, whose flags are made when it is imported."""
    return jax.config


def loss_digest(objective: Objective, params: Params, data: Data, clip_norm: ClipNorm) -> str:
    """What is made of records before noise is added."""

    def signals(key: jax.Array, params: Params, examples: Data, mask: jax.Array) -> Signal:
        return objective.clip_sum(objective.drawn_point(key, params), examples, mask, clip_rule(clip_norm))[0]

    examples = jax.tree.map(lambda leaf: jnp.zeros((_TWO, *np.shape(leaf)[1:]), np.asarray(leaf).dtype), data)
    return _traced(signals, jax.random.key(0), params, examples, jnp.ones(_TWO, bool))


def optimizer_digest(objective: Objective, params: Params, pace: Pace = None) -> str:
    """What is made of the noisy mean, and the state before the first step."""
    first = jax.tree.map(lambda column: column[0], pace)
    now = StepSettings(jnp.int32(0), jnp.float32(1), jnp.float32(1), jnp.int32(0), first)

    def advance(
        key: jax.Array, params: Params, state: State, released: Signal, now: StepSettings
    ) -> tuple[Params, State]:
        return objective.advance(now, objective.drawn_point(key, params), state, released)

    key, state = jax.random.key(0), objective.start(params)
    released = jax.eval_shape(lambda: objective.zero(objective.drawn_point(key, params)))
    return _hashed(str(digest(state)), _traced(advance, key, params, state, released, now))


def digest(tree: Tree) -> str | None:
    """The values of a tree of arrays; None for none."""
    if tree is None:
        return None
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        random = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.ascontiguousarray(np.asarray(jax.random.key_data(leaf) if random else leaf))
        total.update(f"{array.dtype}{array.shape}".encode())
        total.update(array.data if array.size else b"")
    return total.hexdigest()


def _traced(function: Callable[..., Tree], *arguments: Tree) -> str:
    """What `function` computes of arguments of these shapes."""
    program = jax.make_jaxpr(function)(*arguments)
    return _hashed(*_lines(program.jaxpr), str(digest(program.consts)))


def _lines(program: Jaxpr) -> Iterator[str]:
    """An operation a line, variables by the order in which they appear."""
    numbers: dict[Any, int] = {}

    def name(variable: Any) -> str:
        if isinstance(variable, Literal):
            return f"{variable.val!r}:{variable.aval}"
        return f"{numbers.setdefault(variable, len(numbers))}:{variable.aval}"

    yield _plain([name(one) for one in (*program.constvars, *program.invars)])
    for operation in program.eqns:
        yield operation.primitive.name + _plain([name(one) for one in (*operation.invars, *operation.outvars)])
        for key, value in sorted(operation.params.items()):
            yield from _parameter(key, value)
    yield _plain([name(one) for one in program.outvars])


def _parameter(key: str, value: Any) -> Iterator[str]:
    """A parameter of an operation: programs inside of it, constants, or a plain setting."""
    if isinstance(value, ClosedJaxpr):
        yield from _lines(value.jaxpr)
        yield str(digest(value.consts))
    elif isinstance(value, Jaxpr):
        yield from _lines(value)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _parameter(key, one)
    elif isinstance(value, set | frozenset):
        yield key + _plain(sorted(map(repr, value)))
    elif isinstance(value, np.ndarray | jax.Array):
        yield f"{key}{digest(value)}"
    elif key != "name" and not callable(value):
        yield key + _plain(value)


def _plain(value: Any) -> str:
    """Text without places in memory."""
    return re.sub(r"0x[0-9a-f]+", "", repr(value))


def _hashed(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
