"""How a number is written: rounded towards the promise that is kept, never the other way.

    up      an ε, an attacker's success: what is printed is never below the number
    down    a share of people, a confidence: never above it
    near    settings and measurements

The `data-round` attribute of a number on the page says which it was.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

ROUNDING = {"up": ROUND_CEILING, "down": ROUND_FLOOR, "near": ROUND_HALF_EVEN}
NOTHING = "no guarantee"
"""What an infinite ε says."""

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, how: str, digits: int = 4) -> str:
    """`value` to that many significant digits: "2.004", "60,000", "1.5×10⁻⁷"."""
    if math.isinf(value):
        return NOTHING
    return _written(_rounded(_decimal(value), how, digits))


def percent(share: float, how: str, digits: int = 3) -> str:
    """A share in percent; one close to 100 % keeps as many digits as its distance from it needs."""
    exact = 100 * _decimal(share)
    gap = 100 - exact
    if 0 < gap < 1:
        # 99.9999 must not become 100: count digits from the first one that is not a 9.
        digits = 2 - gap.adjusted()
    return f"{_written(_rounded(exact, how, digits))} %"


def count(value: float) -> str:
    """A whole number with separators: "60,000"."""
    return f"{int(value):,}"


def power(value: float) -> str:
    """A small probability: "10⁻⁵", "5×10⁻⁶", up to three digits, never below it."""
    if value == 0 or value >= 0.01:
        return number(value, "up", 3)
    return _scientific(_rounded(_decimal(value), "up", 3))


def _decimal(value: float) -> Decimal:
    # repr, so that 0.1 is 0.1 although its binary value is a little above.
    return Decimal(repr(float(value)))


def _rounded(value: Decimal, how: str, digits: int) -> Decimal:
    return Context(prec=digits, rounding=ROUNDING[how]).plus(value).normalize()


def _written(value: Decimal) -> str:
    if value and not -4 <= value.adjusted() < 7:
        return _scientific(value)
    return f"{value:,f}"


def _scientific(value: Decimal) -> str:
    exponent = value.adjusted()
    mantissa = value.scaleb(-exponent).normalize()
    power = f"10{str(exponent).translate(_SUPERSCRIPT)}"
    return power if mantissa == 1 else f"{mantissa:f}×{power}"
