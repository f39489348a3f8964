"""What a run asks of the plan that it followed, and what a folder keeps of it.

A learner's `Plan` cannot be written down whole: optimisers and clip rules are functions. What its promises and its
report need are public numbers, and these can: `SavedPlan.of(plan)` answers as `plan` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bayesdp import errors
from bayesdp.accountant.worst_case import ENGINES, Engine
from bayesdp.errors import Array
from bayesdp.guarantee import ADJACENCIES, Adjacency
from bayesdp.mechanism.key import NOISE_KINDS, NoiseKind
from bayesdp.unit import UNITS, Unit

Facts = Mapping[str, str | float | bool]


class RunPlan(Protocol):
    """What a run asks: see `Plan`, which says what is meant."""

    @property
    def kind(self) -> str: ...
    @property
    def delta(self) -> float: ...
    @property
    def coverage(self) -> float: ...
    @property
    def failure(self) -> float: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def adjacency(self) -> Adjacency: ...
    @property
    def bounded(self) -> bool: ...
    @property
    def noise(self) -> Array: ...
    @property
    def rates(self) -> Array: ...
    @property
    def clip_norms(self) -> Array | None: ...
    @property
    def sensitivities(self) -> Array: ...
    @property
    def update_in_words(self) -> str: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def num_records(self) -> int | None: ...
    @property
    def prelude(self) -> float | None: ...
    @property
    def prelude_delta(self) -> float: ...
    @property
    def noise_kind(self) -> NoiseKind: ...
    @property
    def noise_share(self) -> float: ...
    @property
    def unit(self) -> Unit: ...
    def describe(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class SavedPlan:
    """A `RunPlan` of plain values, arrays (steps,). `description` is the learner's own, as `Plan.describe` gives it."""

    kind: str
    delta: float
    coverage: float
    failure: float
    engine: Engine
    adjacency: Adjacency
    noise: Array
    rates: Array
    clip_norms: Array | None
    sensitivities: Array
    update_in_words: str
    facts: Facts
    description: Mapping[str, Any]
    num_records: int | None = None
    prelude: float | None = None
    prelude_delta: float = 0.0
    unit: Unit = "record"
    noise_kind: NoiseKind = "float"
    noise_share: float = 0.0

    @property
    def bounded(self) -> bool:
        """Whether one record can move an update only so far."""
        return self.clip_norms is not None

    def describe(self) -> dict[str, Any]:
        """The plan as plain values."""
        return dict(self.description)

    @classmethod
    def of(cls, plan: RunPlan) -> SavedPlan:
        """What is kept of a plan."""
        return cls(
            kind=plan.kind,
            delta=plan.delta,
            coverage=plan.coverage,
            failure=plan.failure,
            engine=plan.engine,
            adjacency=plan.adjacency,
            noise=plan.noise,
            rates=plan.rates,
            clip_norms=plan.clip_norms,
            sensitivities=plan.sensitivities,
            update_in_words=plan.update_in_words,
            facts=plan.facts,
            description=plan.describe(),
            num_records=plan.num_records,
            prelude=plan.prelude,
            prelude_delta=plan.prelude_delta,
            unit=plan.unit,
            noise_kind=plan.noise_kind,
            noise_share=plan.noise_share,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; of a schedule how long each level lasts."""
        values = dict(vars(self))
        for name in ("noise", "rates", "clip_norms", "sensitivities"):
            values[name] = None if values[name] is None else _levels(values[name])
        return {**values, "facts": dict(self.facts), "description": dict(self.description)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SavedPlan:
        """The inverse of `to_dict`. Bad input: values that make no plan."""
        clip = values["clip_norms"]
        return cls(
            **{
                **values,
                "engine": errors.one_of("engine", values["engine"], ENGINES),
                "adjacency": errors.one_of("adjacency", values["adjacency"], ADJACENCIES),
                "noise_kind": errors.one_of("noise_kind", values.get("noise_kind", "float"), NOISE_KINDS),
                "unit": errors.one_of("unit", values.get("unit", "record"), UNITS),
                "noise": _steps(values["noise"]),
                "rates": _steps(values["rates"]),
                "clip_norms": None if clip is None else _steps(clip),
                "sensitivities": _steps(values["sensitivities"]),
            }
        )


def _levels(values: Array) -> list[list[float]]:
    """[level, how many steps], one after the other."""
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    return [[float(values[i]), int(n)] for i, n in zip(starts, np.diff(starts, append=len(values)), strict=True)]


def _steps(levels: list[list[float]]) -> Array:
    """The inverse of `_levels`."""
    return np.repeat([float(level) for level, _ in levels], [int(count) for _, count in levels])
