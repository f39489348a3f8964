"""A loss as a list of steps: JAX's own record of what it computes, with calls of functions written out.

    loss(params, example)  →  jaxpr  →  steps  y_1, … = op(x_1, …; settings)

`jit` and `remat` are opened, so that what happens in them is seen. What has a derivative of its own (`custom_jvp`,
`custom_vjp`) stays one step, and so do loops: whoever differentiates a step gets the derivative that was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from bayesdp.mechanism.per_example import one_record_alone

Tree = Any

_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}
"""Steps that only call a function, and the setting that holds it."""


@dataclass(frozen=True, eq=False)
class Slot:
    """One value of a program, told from others by identity."""

    aval: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one record."""
        return tuple(self.aval.shape)

    @property
    def is_float(self) -> bool:
        """Whether a gradient can flow through it."""
        return bool(jnp.issubdtype(self.aval.dtype, jnp.floating))


@dataclass(frozen=True, eq=False)
class Step:
    """outputs = op(inputs)."""

    equation: Any
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    @property
    def name(self) -> str:
        """JAX's name of the operation."""
        return str(self.equation.primitive.name)

    @property
    def settings(self) -> dict[str, Any]:
        """The operation's, fixed."""
        found: dict[str, Any] = self.equation.params
        return found

    def __call__(self, *inputs: Any) -> list[Any]:
        """The operation itself, of one record."""
        primitive = self.equation.primitive
        found = primitive.bind(*inputs, **primitive.get_bind_params(self.equation.params))
        return list(found) if primitive.multiple_results else [found]


@dataclass(frozen=True)
class Program:
    """Steps in order; `inputs` of the whole, `outputs`, and the constants that it was written with."""

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    steps: tuple[Step, ...]
    constants: dict[Slot, Any]


@dataclass
class _Writer:
    steps: list[Step] = field(default_factory=list)
    constants: dict[Slot, Any] = field(default_factory=dict)

    def write(self, jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Slot]) -> list[Slot]:
        """The steps of `jaxpr` one after the other; every call gets slots of its own."""
        here: dict[Any, Slot] = dict(zip(jaxpr.invars, inputs, strict=True))
        for variable, value in zip(jaxpr.constvars, constants, strict=True):
            here[variable] = self._constant(variable.aval, value)

        def slot(atom: Any) -> Slot:
            return self._constant(atom.aval, atom.val) if isinstance(atom, core.Literal) else here[atom]

        for equation in jaxpr.eqns:
            given = [slot(atom) for atom in equation.invars]
            called = equation.params.get(_CALLS.get(equation.primitive.name, ""))
            if called is not None:
                inner, own = (called.jaxpr, called.consts) if isinstance(called, core.ClosedJaxpr) else (called, ())
                here.update(zip(equation.outvars, self.write(inner, own, given), strict=True))
                continue
            made = [Slot(variable.aval) for variable in equation.outvars]
            here.update(zip(equation.outvars, made, strict=True))
            self.steps.append(Step(equation, tuple(given), tuple(made)))
        return [slot(atom) for atom in jaxpr.outvars]

    def _constant(self, aval: Any, value: Any) -> Slot:
        made = Slot(aval)
        self.constants[made] = value
        return made


def written_out(closed: Any) -> Program:
    """The program of a closed jaxpr, without what none of its outputs needs."""
    inputs = tuple(Slot(variable.aval) for variable in closed.jaxpr.invars)
    writer = _Writer()
    outputs = tuple(writer.write(closed.jaxpr, closed.consts, inputs))
    needed, kept = set(outputs), []
    for step in reversed(writer.steps):
        if needed.intersection(step.outputs):
            needed.update(step.inputs)
            kept.append(step)
    constants = {slot: value for slot, value in writer.constants.items() if slot in needed}
    return Program(inputs, outputs, tuple(kept[::-1]), constants)


def traced(loss: Callable[[Tree, Any], jax.Array], params: Tree, example: Any) -> Any:
    """The closed jaxpr of the loss of one record; of both arguments only shapes count."""
    with one_record_alone():
        return jax.make_jaxpr(loss)(_shapes(params), _shapes(example))


def _shapes(tree: Tree) -> Tree:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), tree)
