"""What bad input gets: one clear error that names the argument, its value and what was expected.

Every public function validates with these checks before it changes anything, so that a refused call
leaves no trace. The command line prints the message of an `InputError` and exits with code 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""A float64 array: what accounting is done in."""

T = TypeVar("T")


class InputError(ValueError):
    """An argument that cannot be used, in words: which one, what it was, what was expected."""


def refuse(name: str, value: object, expected: str, hint: str = "") -> InputError:
    """The error for argument `name`; `hint` is the next step for the reader."""
    return InputError(f"Expected {name} {expected}, got {name}={_show(value)}." + (f" {hint}" if hint else ""))


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    hint: str = "",
) -> float:
    """`value` as a finite float inside the bounds (`above`/`below` exclusive, `least`/`most` inclusive)."""
    expected = "to be a finite number" + _bounds(above, least, below, most)
    if isinstance(value, bool | str | bytes):
        raise refuse(name, value, expected, hint)
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise refuse(name, value, expected, hint) from None
    if not math.isfinite(result) or not _inside(np.float64(result), above, least, below, most):
        raise refuse(name, value, expected, hint)
    return result


def whole(name: str, value: Any, *, least: int | None = None, most: int | None = None, hint: str = "") -> int:
    """`value` as an int inside the inclusive bounds; a float that is a whole number is accepted."""
    expected = "to be a whole number" + _bounds(None, least, None, most)
    try:
        result = number(name, value, least=least, most=most)
    except InputError:
        raise refuse(name, value, expected, hint) from None
    if result != int(result):
        raise refuse(name, value, expected, hint)
    return int(result)


def array(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    ndim: int | tuple[int, ...] | None = None,
    infinite: bool = False,
    hint: str = "",
) -> Array:
    """`value` as a non-empty float64 array without NaN, inside the bounds.

    `infinite=True` lets +inf pass (a divergence may be infinite); NaN is refused always. The first
    offending entry is the one that the message shows.
    """
    expected = f"to hold {'numbers' if infinite else 'finite numbers'}" + _bounds(above, least, below, most)
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse(name, value, expected, hint) from None
    dims = (ndim,) if isinstance(ndim, int) else ndim
    if dims is not None and result.ndim not in dims:
        raise InputError(
            f"Expected {name} with {' or '.join(map(str, dims))} dimension(s), got shape {result.shape}."
            + (f" {hint}" if hint else "")
        )
    if result.size == 0:
        raise InputError(f"Expected {name} with at least one entry, got shape {result.shape}.")
    good = ~np.isnan(result) if infinite else np.isfinite(result)
    good &= _inside(result, above, least, below, most)
    if not good.all():
        where = np.unravel_index(int(np.argmin(good)), result.shape)
        at = f"{name}[{', '.join(map(str, where))}]" if result.ndim else name
        bad = result[where]
        raise InputError(f"Expected {name} {expected}, got {at}={_show(float(bad))}." + (f" {hint}" if hint else ""))
    return result


def one_of(name: str, value: T, options: Iterable[T]) -> T:
    """`value` if it is one of `options`."""
    options = list(options)
    if not any(type(value) is type(option) and value == option for option in options):
        raise refuse(name, value, "to be one of " + ", ".join(map(repr, options)))
    return value


def rate(name: str, value: Any) -> float:
    """A Poisson sampling rate in [0, 1]."""
    return number(name, value, least=0, most=1, hint="A sampling rate is the chance that a record enters a step.")


def noise(name: str, value: Any) -> float:
    """A positive noise standard deviation or multiplier."""
    return number(name, value, above=0, hint="Without noise a step has no finite cost.")


def probability(name: str, value: Any) -> float:
    """A probability strictly between 0 and 1, such as δ."""
    return number(name, value, above=0, below=1)


def orders(name: str, value: Any) -> Array:
    """Rényi orders α > 1 as a sorted one-dimensional array without repeats."""
    result = array(name, np.atleast_1d(np.asarray(value)) if not isinstance(value, str) else value, above=1, ndim=1)
    return np.unique(result)


def _inside(
    value: Any, above: float | None, least: float | None, below: float | None, most: float | None
) -> npt.NDArray[np.bool_]:
    good = np.ones_like(value, dtype=bool)
    if above is not None:
        good &= value > above
    if least is not None:
        good &= value >= least
    if below is not None:
        good &= value < below
    if most is not None:
        good &= value <= most
    return good


def _bounds(above: float | None, least: float | None, below: float | None, most: float | None) -> str:
    words = [
        f"{sign} {bound:g}"
        for sign, bound in ((">", above), (">=", least), ("<", below), ("<=", most))
        if bound is not None
    ]
    return " " + " and ".join(words) if words else ""


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
