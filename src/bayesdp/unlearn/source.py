"""Where a divergence between two trainings comes from: upper bounds that hold before the run.

    worst case   the Rényi curve of the plan, for k records together (`divergence.group`): public
    filter       the budget that every record was held to (individual filter, H4): public
    study        an upper bound from further runs on the two data sets (one-Hölder H2, E7): private, may fail

Each bounds D_o(A(data with the records) ‖ A(data without)) at any order o. A number that was computed along the run
that happened ("ex-post") says how much that run lost, not how far apart the two laws are, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from bayesdp import errors
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.compose.filters import GaussianFilter, RenyiFilter
from bayesdp.divergence import group
from bayesdp.errors import Array, InputError
from bayesdp.guarantee import Guarantee
from bayesdp.unlearn import variation
from bayesdp.unlearn.budget import ORDER

EX_POST = (
    "an ex-post number: it bounds what the run that happened lost, and is no divergence between the laws of two "
    "trainings, which is what forgetting is measured by",
    "Use the worst case, a filter's budget or a study.",
)
"""Why such a number is refused, and what to use."""

MULTIPLES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""A study's curve is read at the ledger's order times these: the first request needs 1, a chain of k about k."""


def study_orders(order: float) -> Array:
    """The orders that a ledger of this order reads a study's curve at."""
    return errors.number("order", order, above=1) * np.array(MULTIPLES)


@runtime_checkable
class APriori(Protocol):
    """What a study must offer: `divergence(orders)`, upper bounds of D_o(with ‖ without), infinite where it has none;
    all of them are right at once with probability 1 − `failure` over its runs; and `words` to call it by.
    """

    @property
    def failure(self) -> float: ...

    @property
    def words(self) -> str: ...

    def divergence(self, orders: Array, /) -> Array: ...


class Source(Protocol):
    """The common face of the sources that a ledger keeps."""

    kind: ClassVar[str]
    public: ClassVar[bool]
    """Whether it depends on the plan alone."""
    joins: ClassVar[bool]
    """Whether it speaks for several records together."""

    @property
    def failure(self) -> float: ...

    @property
    def words(self) -> str: ...

    @property
    def assumption(self) -> str: ...

    def divergence(self, order: float, records: int = 1) -> float: ...

    def variation(self, records: int = 1) -> float:
        """Total variation distance of the two laws, at most; above 1 it says nothing."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


class _Public:
    public: ClassVar[bool] = True
    kind: ClassVar[str]

    @property
    def failure(self) -> float:
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]  # dataclasses all


@dataclass(frozen=True)
class WorstCase(_Public):
    """The plan's own curve: `steps` are (noise multiplier, sampling rate, how many), in any order."""

    kind: ClassVar[str] = "worst-case"
    joins: ClassVar[bool] = True

    steps: tuple[tuple[float, float, int], ...]

    def __post_init__(self) -> None:
        checked = tuple(
            (errors.noise("noise_multiplier", z), errors.rate("sampling_rate", q), errors.whole("steps", n, least=1))
            for z, q, n in self.steps
        )
        if not checked:
            raise errors.refuse(
                "steps", self.steps, "to hold at least one noisy step", "Without noise nothing is hidden."
            )
        object.__setattr__(self, "steps", checked)

    @property
    def words(self) -> str:
        return "worst case of the plan"

    @property
    def assumption(self) -> str:
        return "One record moves a step by at most the clip norm, whatever the data; batches are Poisson."

    def divergence(self, order: float, records: int = 1) -> float:
        total = sum(
            n * float(group.cost(1 / z, [order], sampling_rate=q, records=records)[0]) for z, q, n in self.steps
        )
        return total / (order - 1)

    def variation(self, records: int = 1) -> float:
        return records * variation.of_plan(self.steps)


@dataclass(frozen=True)
class FilterBudget(_Public):
    """(order, budget)-RDP for every record (H4). D rises with the order, so it serves every order up to its own."""

    kind: ClassVar[str] = "filter"
    joins: ClassVar[bool] = False

    order: float
    budget: float

    def __post_init__(self) -> None:
        errors.number("order", self.order, above=1)
        errors.number("budget", self.budget, least=0)

    @property
    def words(self) -> str:
        return f"filter's budget at order {self.order:g}"

    @property
    def assumption(self) -> str:
        return "Training, then and anew, drops every record when its Rényi budget is spent (H4)."

    def divergence(self, order: float, records: int = 1) -> float:
        return self.budget if order <= self.order and records == 1 else math.inf

    def variation(self, records: int = 1) -> float:
        return records * variation.from_divergence(self.budget, self.order)


@dataclass(frozen=True)
class GaussianBudget(_Public):
    """μ-GDP for every record (H4, no sampling): D_o ≤ o μ²/2, and k records together have kμ."""

    kind: ClassVar[str] = "gdp-filter"
    joins: ClassVar[bool] = True

    mu: float

    def __post_init__(self) -> None:
        errors.number("mu", self.mu, least=0)

    @property
    def words(self) -> str:
        return f"Gaussian filter's budget μ = {self.mu:g}"

    @property
    def assumption(self) -> str:
        return "Training, then and anew, drops every record when its Gaussian budget is spent (H4)."

    def divergence(self, order: float, records: int = 1) -> float:
        return order * (records * self.mu) ** 2 / 2

    def variation(self, records: int = 1) -> float:
        return variation.of_gaussian(records * self.mu)


@dataclass(frozen=True)
class Measured:
    """A study's upper bounds at `orders`, all right at once but with probability `failure`.

    Between two of the orders the next larger one counts (D rises with the order); beyond the last it is infinite.
    """

    kind: ClassVar[str] = "study"
    public: ClassVar[bool] = False
    joins: ClassVar[bool] = False

    orders: tuple[float, ...]
    divergences: tuple[float, ...]
    failure: float
    how: str = ""

    def __post_init__(self) -> None:
        orders = errors.orders("orders", list(self.orders))
        values = errors.array("divergences", list(self.divergences), least=0, infinite=True, ndim=1)
        if values.size != len(self.orders) or orders.tolist() != list(self.orders):
            raise errors.refuse(
                "divergences",
                values.size,
                "for rising orders",
                got=f"{values.size} of them for {len(self.orders)} orders",
            )
        errors.probability("failure", self.failure)
        # Both a bound at this order and one at any larger order hold: the least of them does.
        least = np.minimum.accumulate(values[::-1])[::-1]
        object.__setattr__(self, "orders", tuple(orders.tolist()))
        object.__setattr__(self, "divergences", tuple(least.tolist()))

    @classmethod
    def of(cls, study: APriori, order: float) -> Measured:
        """Read the curve of a study once, for a ledger of this order. Bad input: bounds that are negative or NaN."""
        orders = study_orders(order)
        values = errors.array("divergence", study.divergence(orders), least=0, infinite=True, ndim=1)
        return cls(tuple(orders.tolist()), tuple(values.tolist()), float(study.failure), str(study.words))

    @property
    def words(self) -> str:
        return "study"

    @property
    def assumption(self) -> str:
        return (
            "The study compared training on the data as they were before this request with training on them without "
            f"the record; its runs are independent of the model that is kept. {self.how}".strip()
        )

    def divergence(self, order: float, records: int = 1) -> float:
        at = int(np.searchsorted(self.orders, order))
        return self.divergences[at] if at < len(self.orders) and records == 1 else math.inf

    def variation(self, records: int = 1) -> float:
        pairs = zip(self.divergences, self.orders, strict=True)
        return min(variation.from_divergence(d, order) for d, order in pairs) if records == 1 else 1.0

    def to_dict(self) -> dict[str, Any]:
        kept = [(o, d) for o, d in zip(self.orders, self.divergences, strict=True) if math.isfinite(d)]
        return {
            "kind": self.kind,
            "orders": [o for o, _ in kept] or [self.orders[-1]],
            "divergences": [d for _, d in kept] or ["inf"],
            "failure": self.failure,
            "how": self.how,
        }


KINDS: dict[str, Callable[..., Source]] = {one.kind: one for one in (WorstCase, FilterBudget, GaussianBudget, Measured)}


def source_of(value: Any, order: float = ORDER) -> Source:
    """What a ledger of this order can use of `value`: a source, an accountant of the worst case or of a filter, a
    filter, or the bound of a study for one record.

    Bad input: an ex-post accountant or any `Guarantee` (an (ε, δ) has no divergence) gets `InputError` with the reason.
    """
    if isinstance(value, WorstCase | FilterBudget | GaussianBudget | Measured):
        return value
    if isinstance(value, WorstCaseAccountant):
        return WorstCase(tuple((run.noise_multiplier, run.sampling_rate, run.steps) for run in value.history))
    if isinstance(value, RenyiFilter):
        return FilterBudget(value.order, value.budget)
    if isinstance(value, GaussianFilter) and np.ndim(value.mu) == 0:
        return GaussianBudget(float(value.mu))
    if isinstance(value, InstanceAccountant):
        return _of_accountant(value)
    if isinstance(value, Guarantee):
        why, give = (
            EX_POST if value.ex_post else ("an (ε, δ), which bounds no Rényi divergence", "Give the accountant.")
        )
        raise errors.refuse("source", value, "to be an a-priori divergence", give, got=why)
    if isinstance(value, APriori):
        return Measured.of(value, order)
    raise errors.refuse("source", value, "to be a worst-case accountant, a filter or a study's upper bound")


def from_dict(values: Mapping[str, Any]) -> Source:
    """The inverse of `to_dict`. Anything else gets `InputError`."""
    try:
        given = dict(values)
        kind = errors.one_of("source kind", given.pop("kind"), KINDS)
        if kind == WorstCase.kind:
            given["steps"] = tuple((z, q, n) for z, q, n in given["steps"])
        if kind == Measured.kind:
            given["orders"] = tuple(given["orders"])
            given["divergences"] = tuple(math.inf if one == "inf" else one for one in given["divergences"])
        return KINDS[kind](**given)
    except (TypeError, KeyError, ValueError, AttributeError) as problem:
        if isinstance(problem, InputError):
            raise
        raise errors.unmet(
            "source", None, "a source as a ledger writes it", f"one that does not fit: {problem!r}"
        ) from None


def _of_accountant(value: InstanceAccountant) -> Source:
    if isinstance(value.budget, np.ndarray):
        raise errors.refuse(
            "source", value, "to be a filter with one budget for all", "Use the worst case.", got="many"
        )
    if value.composition == "filter" and value.budget is not None:
        return FilterBudget(float(value.orders[0]), value.budget)
    if value.composition == "gdp-filter" and value.budget is not None:
        return GaussianBudget(value.budget)
    why, give = (
        EX_POST
        if value.composition == "ex-post"
        else (f"composition={value.composition!r}, which answers in (ε, δ)", "Give the study that it belongs to.")
    )
    raise errors.refuse("source", value, "to be an a-priori divergence", give, got=why)
