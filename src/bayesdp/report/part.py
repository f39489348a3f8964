"""A piece of a report: a frozen dataclass that becomes plain JSON values and comes back the same.

    T.from_dict(part.to_dict()) == part

Infinity is the string "inf", which strict JSON can carry; sequences are lists, mappings dicts. The checks below
turn what a learner hands in (NumPy arrays, lists) into tuples and floats, so that a part is immutable and
comparable, or refuse it by name.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np

from bayesdp import errors

Numbers = tuple[float, ...]
Gapped = tuple[float | None, ...]
"""Numbers with gaps: what is not finite in a loss that diverged has no place on a chart."""

P = TypeVar("P", bound="Part")


class Part:
    """What every piece of a report can do. Subclasses are frozen dataclasses that check themselves."""

    def _put(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {one.name: plain(getattr(self, one.name)) for one in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`. Missing or unknown keys and bad values get `InputError`."""
        return cls(**checked_keys(cls, values))

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], Any], tuple[dict[str, Any]]]:
        # Read-only mappings cannot be pickled as they are.
        return type(self).from_dict, (self.to_dict(),)


def checked_keys(cls: type, values: Any) -> dict[str, Any]:
    """`values` as a dict if it has exactly the fields of `cls`."""
    expected = {one.name for one in dataclasses.fields(cls)}
    if not isinstance(values, Mapping) or set(values) != expected:
        got = sorted(map(str, values)) if isinstance(values, Mapping) else values
        raise errors.refuse(cls.__name__, got, f"to be a mapping with the keys {', '.join(sorted(expected))}")
    return dict(values)


def plain(value: Any) -> Any:
    """`value` as JSON values."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def numbers(name: str, value: Any, *, infinite: bool = False, length: int | None = None, **bounds: Any) -> Numbers:
    """`value` as a tuple of floats inside the bounds, without NaN; +inf and "inf" only if `infinite`."""
    if isinstance(value, list | tuple):
        value = [math.inf if isinstance(one, str) and one == "inf" and infinite else one for one in value]
    result = errors.array(name, value, ndim=1, infinite=infinite, **bounds)
    if length is not None and len(result) != length:
        raise errors.refuse(name, len(result), f"with {length} entries", got=f"{len(result)}")
    return tuple(map(float, result))


def ascending(name: str, value: Any, *, strictly: bool = False, infinite: bool = False, **bounds: Any) -> Numbers:
    """`numbers` that never fall, or always rise."""
    result = numbers(name, value, infinite=infinite, **bounds)
    for before, after in pairwise(result):
        if after < before or (strictly and after == before):
            raise errors.refuse(name, after, "to ascend", got=f"{after:g} after {before:g}")
    return result


def steps(name: str, value: Any) -> tuple[int, ...]:
    """Whole numbers that rise: when something was written down."""
    result = ascending(name, value, strictly=True, least=0)
    if any(one != int(one) for one in result):
        raise errors.refuse(name, value, "to hold whole numbers")
    return tuple(map(int, result))


def gapped(name: str, value: Any, length: int) -> Gapped:
    """Numbers of which some may be missing: None, NaN and infinities become None."""
    try:
        result = np.array([math.nan if one is None else one for one in value], dtype=np.float64)
    except (TypeError, ValueError):
        raise errors.refuse(name, value, "to hold numbers") from None
    if result.shape != (length,):
        raise errors.refuse(name, result.shape, f"with {length} entries", got=f"shape {result.shape}")
    return tuple(float(one) if math.isfinite(one) else None for one in result)


def text(name: str, value: Any, *, empty: bool = True) -> str:
    """A string that has something in it unless `empty`, without characters that no page can show."""
    if not isinstance(value, str) or not (empty or value.strip()):
        raise errors.refuse(name, value, "to be a text" if empty else "to be a text that is not empty")
    if errors.unprintable(value):
        raise errors.refuse(name, value, "to be a text without control characters")
    return value


def sentences(name: str, value: Any) -> tuple[str, ...]:
    """A tuple of texts."""
    if isinstance(value, str) or not isinstance(value, tuple | list):
        raise errors.refuse(name, value, "to be a tuple of sentences")
    return tuple(text(f"{name}[{place}]", one, empty=False) for place, one in enumerate(value))


def infinite(name: str, value: Any) -> float:
    """A number ≥ 0 that may be infinite."""
    return float(errors.array(name, math.inf if value == "inf" else value, least=0, infinite=True, ndim=0))


def mapping(name: str, value: Any, check: Callable[[str, Any], Any]) -> Mapping[str, Any]:
    """A read-only mapping of words to what `check` makes of each value."""
    if not isinstance(value, Mapping):
        raise errors.refuse(name, value, "to be a mapping")
    return MappingProxyType(
        {text(f"a key of {name}", word, empty=False): check(f"{name}[{word!r}]", one) for word, one in value.items()}
    )


def optional(kind: type[P], name: str, value: Any) -> P | None:
    """`value` if it is None or a `kind`; a mapping is read as one."""
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        return kind.from_dict(value)
    raise errors.refuse(name, value, f"to be a {kind.__name__} or None")
