"""Lower bounds on ε beside the upper ones: what an attack on the mechanism reached, with its confidence (L9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bayesdp import errors
from bayesdp.report import part
from bayesdp.report.part import Numbers, Part

Method = Literal["step", "runs", "one-run", "membership"]
METHODS: tuple[Method, ...] = get_args(Method)

Form = Literal["counting", "f-dp"]
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True, kw_only=True)
class LowerBound(Part):
    """With confidence 1 − `failure`, ε at `delta` is at least `epsilon` of what `upper` is the upper bound of.

    - `method`: "step" (one step, the record surely in its batch), "runs" (whole runs, repeated), "one-run" (one run
      with many canaries); `form`: "counting" whatever the noise is, "f-dp" if it is Gaussian with any multiplier.
    - `plays`: how many the limits were counted in; `noise`: in form "f-dp", how many times the plan's noise is refuted.

    Bad input gets `InputError` naming the field.
    """

    method: Method
    form: Form
    epsilon: float
    upper: float
    delta: float
    failure: float
    plays: int
    noise: float | None = None

    def __post_init__(self) -> None:
        self._put(
            method=errors.one_of("method", self.method, METHODS),
            form=errors.one_of("form", self.form, FORMS),
            epsilon=errors.number("epsilon", self.epsilon, least=0),
            upper=part.infinite("upper", self.upper),
            delta=errors.number("delta", self.delta, least=0, below=1),
            failure=errors.probability("failure", self.failure),
            plays=errors.whole("plays", self.plays, least=1),
            noise=None if self.noise is None else errors.number("noise", self.noise, above=0),
        )

    @property
    def refutes(self) -> bool:
        """Whether the lower bound is above the upper one: then the mechanism is not what was accounted for."""
        return self.epsilon > self.upper


@dataclass(frozen=True, kw_only=True)
class CanaryBounds(Part):
    """Of single records: `names`, the lower bound by an attack on each, and the per-instance upper bound.

    Each holds by itself with confidence 1 − `failure`, in `plays` runs; together they would need more.
    """

    names: tuple[str, ...]
    lower: Numbers
    upper: Numbers
    failure: float
    plays: int

    def __post_init__(self) -> None:
        names = part.sentences("names", self.names)
        if not names:
            raise errors.refuse("names", self.names, "to name at least one record")
        self._put(
            names=names,
            lower=part.numbers("lower", self.lower, least=0, length=len(names)),
            upper=part.numbers("upper", self.upper, infinite=True, least=0, length=len(names)),
            failure=errors.probability("failure", self.failure),
            plays=errors.whole("plays", self.plays, least=1),
        )


@dataclass(frozen=True, kw_only=True)
class Audit(Part):
    """All that an audit found: bounds for everybody, and of single records where some were attacked.

    `notes` are sentences on what was attacked. Bad input: no bound at all gets `InputError`.
    """

    bounds: tuple[LowerBound, ...]
    canaries: CanaryBounds | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found = [part.optional(LowerBound, "bounds", one) for one in self.bounds]
        if not found or None in found:
            raise errors.refuse("bounds", self.bounds, "to be one or more lower bounds")
        self._put(
            bounds=tuple(found),
            canaries=part.optional(CanaryBounds, "canaries", self.canaries),
            notes=part.sentences("notes", self.notes),
        )

    @property
    def best(self) -> LowerBound:
        """The bound that comes nearest to its upper one."""
        return max(self.bounds, key=_reached)

    @property
    def refuted(self) -> tuple[LowerBound, ...]:
        """The bounds that are above what was promised."""
        return tuple(one for one in self.bounds if one.refutes)

    def derived(self) -> list[dict[str, Any]]:
        """What a page says of each bound beyond its fields."""
        return [
            {"reached": _reached(one), "refutes": one.refutes, "confidence": 1 - one.failure} for one in self.bounds
        ]


def _reached(one: LowerBound) -> float:
    """Which share of the upper bound the lower one is."""
    if one.upper == 0:
        return math.inf if one.epsilon else 1.0
    return one.epsilon / one.upper
