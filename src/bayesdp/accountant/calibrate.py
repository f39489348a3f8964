"""Turn the question round: the least noise, the most steps, the highest rate for a promised (ε, δ).

    noise_for:  min { z : ε(z) ≤ ε },   steps_for:  max { T : ε(T) ≤ ε },   rate_for:  max { q : ε(q) ≤ ε }

What is returned was itself accounted for and kept the promise: a calibration may be loose by its tolerance,
it never overshoots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Protocol

from bayesdp import errors
from bayesdp.accountant.worst_case import Engine, WorstCaseAccountant
from bayesdp.errors import InputError
from bayesdp.guarantee import Adjacency

_TOLERANCE = 1e-4
"""Relative distance from the best noise or rate at which the search stops."""
_NOISE = (1e-3, 1e9)
_RATES = (1e-12, 1.0)
_STEPS = (1, 2**50)


class Accountant(Protocol):
    """Anything that can say its ε."""

    def epsilon(self, delta: float) -> float: ...


def noise_for(
    epsilon: float,
    delta: float,
    *,
    sampling_rate: float,
    steps: int,
    engine: Engine = "pld",
    adjacency: Adjacency = "add-remove",
) -> float:
    """Noise z = min { z : ε(z, q, T; δ) ≤ ε }, to 1e-4 relative and never below it; at least 1e-3.

    Guarantee: `steps` steps with this noise multiplier and rate are (ε, δ)-DP by the same engine. Bad input,
    and an ε that no noise reaches (orders end somewhere: some log(1/δ)/λ is always left), get `InputError`.
    """
    epsilon, delta = _target(epsilon, delta)
    q = errors.rate("sampling_rate", sampling_rate)
    count = errors.whole("steps", steps, least=1)

    def make(z: float, by: Engine = engine) -> WorstCaseAccountant:
        return _run(by, adjacency, z, q, count)

    start = 1.0
    if engine == "pld":  # The cheap engine's answer is a little too safe: the dear search starts close by.
        start = calibrate_noise(lambda z: make(z, "rdp"), epsilon, delta)
    return calibrate_noise(make, epsilon, delta, start=start)


def calibrate_noise(make: Callable[[float], Accountant], epsilon: float, delta: float, *, start: float = 1.0) -> float:
    """Scale x = min { x : make(x).epsilon(δ) ≤ ε } where ε falls in x: a noise, or that of a whole schedule.

    The search begins at `start` and stays between 1e-3 and 1e9. Guarantee as for `noise_for`. An ε out of
    reach gets `InputError` that says what is within it.
    """
    epsilon, delta = _target(epsilon, delta)
    start = errors.number("start", start, least=_NOISE[0], most=_NOISE[1])
    return _farthest(lambda x: make(x).epsilon(delta), epsilon, delta, start, best=_NOISE[1], worst=_NOISE[0])


def rate_for(
    epsilon: float,
    delta: float,
    *,
    noise_multiplier: float,
    steps: int,
    engine: Engine = "pld",
    adjacency: Adjacency = "add-remove",
) -> float:
    """Rate q = max { q ≤ 1 : ε(z, q, T; δ) ≤ ε }, to 1e-4 relative and never above it.

    Bad input, and an ε that no rate down to 1e-12 keeps, get `InputError`.
    """
    epsilon, delta = _target(epsilon, delta)
    z = errors.noise("noise_multiplier", noise_multiplier)
    count = errors.whole("steps", steps, least=1)

    def search(by: Engine, start: float) -> float:
        def spends(rate: float) -> float:
            return _run(by, adjacency, z, rate, count).epsilon(delta)

        return _farthest(spends, epsilon, delta, start, best=_RATES[0], worst=_RATES[1])

    return search(engine, search("rdp", 0.01) if engine == "pld" else 0.01)


def steps_for(
    epsilon: float,
    delta: float,
    *,
    noise_multiplier: float,
    sampling_rate: float,
    engine: Engine = "pld",
    adjacency: Adjacency = "add-remove",
) -> int:
    """T = max { T : ε(z, q, T; δ) ≤ ε }: T + 1 steps spend more (2^50 is the most that is tried).

    Bad input, a rate of 0 (no number of steps spends anything), or a first step that spends more than ε
    already get `InputError`.
    """
    epsilon, delta = _target(epsilon, delta)
    z = errors.noise("noise_multiplier", noise_multiplier)
    q = errors.number("sampling_rate", sampling_rate, above=0, most=1)

    def search(by: Engine, start: int) -> int:
        def spends(steps: float) -> float:
            return _run(by, adjacency, z, q, int(steps)).epsilon(delta)

        return int(_farthest(spends, epsilon, delta, start, best=_STEPS[0], worst=_STEPS[1], whole=True))

    if engine == "pld" and _run("rdp", adjacency, z, q, 1).epsilon(delta) <= epsilon:
        return search(engine, search("rdp", 1))
    return search(engine, 1)


def _run(engine: Engine, adjacency: Adjacency, z: float, q: float, steps: int) -> WorstCaseAccountant:
    accountant = WorstCaseAccountant(engine, adjacency)
    accountant.step(noise_multiplier=z, sampling_rate=q, steps=steps)
    return accountant


def _target(epsilon: float, delta: float) -> tuple[float, float]:
    return errors.number("epsilon", epsilon, above=0), errors.probability("delta", delta)


def _farthest(
    spends: Callable[[float], float],
    epsilon: float,
    delta: float,
    start: float,
    *,
    best: float,
    worst: float,
    whole: bool = False,
) -> float:
    """The x nearest to `worst` with spends(x) ≤ ε, where ε falls from `worst` to `best`."""
    spends = cache(spends)
    keeps = spends(start) <= epsilon
    x, factor = start, 1.25
    # Walk in growing strides: towards the worst while the promise is kept, else towards the best.
    while (spends(x) <= epsilon) == keeps:
        end = worst if keeps else best
        if x == end:
            if keeps:
                return x
            raise InputError(
                f"Expected an epsilon within reach, got epsilon={epsilon:g} at delta={delta:g}: at the best "
                f"that can be set ({x:.4g}) {spends(x):.4g} is spent. More noise, a larger delta or another "
                "engine goes lower."
            )
        previous = x
        x = min(x * factor, end) if end > x else max(x / factor, end)
        if whole:  # Whole numbers only ever walk upwards, from a number of steps that keeps the promise.
            x = max(round(x), previous + 1)
        factor **= 2
    good, bad = (previous, x) if keeps else (x, previous)
    return _close_in(spends, epsilon, good, bad, whole)


def _close_in(spends: Callable[[float], float], epsilon: float, good: float, bad: float, whole: bool) -> float:
    """Narrow the bracket to the tolerance, or to neighbouring whole numbers; `good` always keeps the promise.

    log ε is nearly linear in log x, so the next point is the straight line's crossing, taken half a tolerance
    short of it and then half past it, which closes the bracket; bisection where that makes no headway.
    """
    idle = 0
    while abs(good - bad) > 1 if whole else abs(math.log(good / bad)) > _TOLERANCE:
        span = math.log(bad / good)
        low, high = spends(good), spends(bad)
        share = 0.5
        if idle < 2 and 0 < low < epsilon < high < math.inf:
            guess = math.log(epsilon / low) / math.log(high / low)
            margin = min(0.4 * max(_TOLERANCE, 1 / good if whole else 0.0) / abs(span), 0.5)
            share = guess - margin if guess > 2 * margin else guess + margin
        middle = good * math.exp(min(max(share, 0.0), 1.0) * span)
        if whole:
            middle = min(max(round(middle), min(good, bad) + 1), max(good, bad) - 1)
        if spends(middle) <= epsilon:
            good = middle
        else:
            bad = middle
        idle = idle + 1 if abs(math.log(bad / good)) > abs(span) / 2 else 0
    return good
