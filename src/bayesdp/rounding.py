"""How a number is written: rounded towards the promise that is kept, never the other way.

up     an ε, a δ, an attacker's success: what is printed is never below the number
down   a share of people, a confidence: never above it
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def up(value: float, digits: int = 4) -> str:
    """`value` to that many significant digits, never below it."""
    return _rounded(value, digits, ROUND_CEILING)


def down(value: float, digits: int = 4) -> str:
    """`value` to that many significant digits, never above it."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if value == float("inf"):
        return "∞"
    # repr, so that 0.1 stays 0.1 although its binary value is a little above.
    exact = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(exact):.{digits}g}"
