"""Whole numbers with two-sided geometric noise: Pr[k] ∝ e^{−|k|/scale}, drawn exactly.

A count that one record moves by at most Δ and that gets noise of scale Δ/ε is ε-DP, with δ = 0: neighbouring counts
have laws whose ratio is at most e^{ε} at every whole number. The draws use whole numbers and fair coins only, so that
nothing is lost to rounding and no released bit is impossible under one of two neighbours: the rejection sampler of
Canonne, Kamath and Steinke (2020, "The discrete Gaussian for differential privacy", algorithms 1 and 2).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from fractions import Fraction

from bayesdp.errors import refuse

Draw = Callable[[int], int]
"""`draw(n)`: one of 0 … n − 1, each as likely."""


def discrete_laplace(scale: Fraction, draw: Draw = secrets.randbelow) -> int:
    """One draw; from the operating system's generator unless `draw` says otherwise. Bad input: a scale that is not > 0.

    With U of 0 … t−1 kept with chance e^{−U/t} and V geometric, U + tV is geometric of scale t; divided by s it has
    the scale t/s. The sign is a coin, and a negative zero is drawn again.
    """
    if scale <= 0:
        raise refuse("scale", str(scale), "to be above 0")
    t, s = scale.numerator, scale.denominator
    while True:
        rest = draw(t)
        if not _kept(Fraction(rest, t), draw):
            continue
        rounds = 0
        while _kept(Fraction(1), draw):
            rounds += 1
        size, negative = (rest + t * rounds) // s, draw(2) == 1
        if size or not negative:
            return -size if negative else size


def _kept(exponent: Fraction, draw: Draw) -> bool:
    """True with chance e^{−exponent}, exponent in [0, 1]: the first k at which a coin of chance exponent/k fails is odd
    with that chance (the series of e^{−x}).
    """
    k = 1
    while draw(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1
