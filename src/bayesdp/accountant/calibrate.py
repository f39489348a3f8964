"""Turn the question round: the least noise, the most steps, the highest rate for a promise.

    noise_for:  min { z : ε(z) ≤ ε },   steps_for:  max { T : ε(T) ≤ ε },   rate_for:  max { q : ε(q) ≤ ε }

The promise is an (ε, δ), or a risk (H17): the largest `advantage` of an attacker, δ(0), or the largest share of right
guesses by one who starts undecided, `attacker` = (1 + δ(0))/2. What is returned was itself accounted for and kept the
promise: a calibration may be loose by its tolerance, it never overshoots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

from bayesdp import errors
from bayesdp.accountant.pld import USUAL
from bayesdp.accountant.worst_case import Engine, WorstCaseAccountant
from bayesdp.guarantee import Adjacency

_TOLERANCE = 1e-4
"""Relative distance from the best noise or rate at which the search stops."""
_FAR, _NEAR = 1.25, 1.002
"""The first stride of a search from anywhere, and from where a coarser one has ended."""
_NOISE = (1e-3, 1e9)
_RATES = (1e-12, 1.0)
_STEPS = (1, 2**50)


class Accountant(Protocol):
    """Anything that can say its ε."""

    def epsilon(self, delta: float) -> float: ...


class Promise(NamedTuple):
    """What is promised: `spends` of an accountant is to be at most `value`."""

    name: str
    asked: float
    value: float
    spends: Callable[[Any], float]
    at: str = ""

    @classmethod
    def of(
        cls,
        epsilon: float | None = None,
        delta: float | None = None,
        attacker: float | None = None,
        advantage: float | None = None,
    ) -> Promise:
        """An ε at δ, or one of the two risks. Bad input: none or several of the three, values out of range."""
        given = {"epsilon": epsilon, "attacker": attacker, "advantage": advantage}
        names = [name for name, value in given.items() if value is not None]
        if len(names) != 1:
            raise errors.unmet(
                "epsilon",
                epsilon,
                f"one of {errors.named('epsilon')}, {errors.named('attacker')} and {errors.named('advantage')}",
                ", ".join(map(errors.named, names)) or "none",
            )
        if epsilon is not None:
            epsilon, delta = errors.number("epsilon", epsilon, above=0), errors.probability("delta", delta)
            at = f" at {errors.named('delta')}={delta:g}"
            return cls("epsilon", epsilon, epsilon, lambda one: float(one.epsilon(delta)), at)
        if attacker is not None:
            right = errors.number("attacker", attacker, above=0.5, below=1)
            # As an advantage, which is nearly a power of the noise; 2·right − 1 is not rounded.
            return cls("attacker", right, 2 * right - 1, _advantage)
        most = errors.number("advantage", advantage, above=0, below=1)
        return cls("advantage", most, most, _advantage)


def _advantage(accountant: WorstCaseAccountant) -> float:
    return accountant.delta(0.0)


def noise_for(
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    attacker: float | None = None,
    advantage: float | None = None,
    sampling_rate: float,
    steps: int,
    engine: Engine = "pld",
    adjacency: Adjacency = "add-remove",
) -> float:
    """Noise z = min { z : ε(z, q, T; δ) ≤ ε }, to 1e-4 relative and never below it; at least 1e-3.

    Args:
        epsilon: the DP ε to keep.
        delta: its δ.
        attacker: instead of ε and δ, the largest share of right guesses (0.55: right at most 55 % of the time).
        advantage: the same in other words (0.1).
        sampling_rate: the chance that a record enters a step (Poisson).
        steps: how many steps.
        engine: how it is accounted for, see `WorstCaseAccountant`.
        adjacency: "add-remove" or "replace-one".

    Returns:
        The noise multiplier: `steps` steps with it and this rate keep the promise by the same engine.

    Bad input, and an ε that no noise reaches (orders end somewhere: some log(1/δ)/λ is always left), get `InputError`.

    Examples:
        >>> round(bd.noise_for(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=1000), 3)
        0.959
        >>> round(bd.noise_for(attacker=0.55, sampling_rate=0.01, steps=1000), 3)
        1.423
    """
    promise = Promise.of(epsilon, delta, attacker, advantage)
    q = errors.rate("sampling_rate", sampling_rate)
    count = errors.whole("steps", steps, least=1)
    return least_noise(lambda by, z: _run(by, adjacency, z, q, count), engine, promise)


def least_noise(make: Callable[[Engine, float], WorstCaseAccountant], engine: Engine, promise: Promise) -> float:
    """The least scale x of a plan's noise whose accountant by `engine`, make(engine, x), keeps the promise."""
    return _search(make, engine, promise, 1.0, best=_NOISE[1], worst=_NOISE[0])


def calibrate_noise(
    make: Callable[[float], Accountant],
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    start: float = 1.0,
    promise: Promise | None = None,
) -> float:
    """Scale x = min { x : make(x).epsilon(δ) ≤ ε } where ε falls in x: a noise, or that of a whole schedule.

    `promise` is another promise than (ε, δ). The search begins at `start` and stays between 1e-3 and 1e9. Guarantee as
    for `noise_for`. An ε out of reach gets `InputError` that says what is within it.
    """
    promise = Promise.of(epsilon, delta) if promise is None else promise
    start = errors.number("start", start, least=_NOISE[0], most=_NOISE[1])
    return _farthest(make, promise, start, best=_NOISE[1], worst=_NOISE[0])


def rate_for(
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    attacker: float | None = None,
    advantage: float | None = None,
    noise_multiplier: float,
    steps: int,
    engine: Engine = "pld",
    adjacency: Adjacency = "add-remove",
) -> float:
    """Rate q = max { q ≤ 1 : ε(z, q, T; δ) ≤ ε }, to 1e-4 relative and never above it; a risk as in `noise_for`.

    Bad input, and an ε that no rate down to 1e-12 keeps, get `InputError`.
    """
    promise = Promise.of(epsilon, delta, attacker, advantage)
    z = errors.noise("noise_multiplier", noise_multiplier)
    count = errors.whole("steps", steps, least=1)
    return _search(
        lambda by, q: _run(by, adjacency, z, q, count), engine, promise, 0.01, best=_RATES[0], worst=_RATES[1]
    )


def steps_for(
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    attacker: float | None = None,
    advantage: float | None = None,
    noise_multiplier: float,
    sampling_rate: float,
    engine: Engine = "pld",
    adjacency: Adjacency = "add-remove",
) -> int:
    """T = max { T : ε(z, q, T; δ) ≤ ε }: T + 1 steps spend more (2^50 is the most that is tried).

    A risk as in `noise_for`.
    Bad input, a rate of 0 (no number of steps spends anything), or a first step that spends more than ε
    already get `InputError`.
    """
    promise = Promise.of(epsilon, delta, attacker, advantage)
    z = errors.noise("noise_multiplier", noise_multiplier)
    q = errors.number("sampling_rate", sampling_rate, above=0, most=1)

    def make(by: Engine, steps: float) -> WorstCaseAccountant:
        return _run(by, adjacency, z, q, int(steps))

    return int(_search(make, engine, promise, 1, best=_STEPS[0], worst=_STEPS[1], whole=True))


def _run(engine: Engine, adjacency: Adjacency, z: float, q: float, steps: int) -> WorstCaseAccountant:
    accountant = WorstCaseAccountant(engine=engine, adjacency=adjacency)
    accountant.step(noise_multiplier=z, sampling_rate=q, steps=steps)
    return accountant


def _search(
    make: Callable[[Engine, float], WorstCaseAccountant],
    engine: Engine,
    promise: Promise,
    start: float,
    *,
    best: float,
    worst: float,
    whole: bool = False,
) -> float:
    """`_farthest` by an engine; the dear one starts close by, where a cheaper one ended, which is a little too safe.

    Loss distributions first on a grid of ten times the width: what they find is confirmed, and brought to the
    tolerance, on the fine one.
    """

    def farthest(by: Engine, start: float, stride: float = _FAR, usual: float = USUAL) -> float:
        def one(x: float) -> WorstCaseAccountant:
            accountant = make(by, x)
            accountant.usual_width = usual
            return accountant

        return _farthest(one, promise, start, best=best, worst=worst, whole=whole, stride=stride)

    if engine != "pld":
        return farthest(engine, start)
    if start != best or promise.spends(make("rdp", start)) <= promise.value:
        start = farthest("rdp", start)
        start = farthest("pld", start, usual=10 * USUAL)
        return farthest("pld", start, _NEAR)
    return farthest("pld", start)


def _farthest(
    make: Callable[[float], Accountant],
    promise: Promise,
    start: float,
    *,
    best: float,
    worst: float,
    whole: bool = False,
    stride: float = _FAR,
) -> float:
    """The x nearest to `worst` whose accountant keeps the promise, where what is spent falls from `worst` to `best`."""
    spends, most = cache(lambda x: promise.spends(make(x))), promise.value
    keeps = spends(start) <= most
    x, factor = start, stride
    # Walk in growing strides: towards the worst while the promise is kept, else towards the best.
    while (spends(x) <= most) == keeps:
        end = worst if keeps else best
        if x == end:
            if keeps:
                return x
            raise errors.unmet(
                promise.name,
                promise.asked,
                f"an {promise.name} within reach",
                f"{errors.named(promise.name)}={promise.asked:g}{promise.at}: at the best that can be set ({x:.4g}) "
                f"{spends(x):.4g} is spent",
                "More noise, a larger delta or another engine goes lower.",
            )
        previous = x
        x = min(x * factor, end) if end > x else max(x / factor, end)
        if whole:  # Whole numbers only ever walk upwards, from a number of steps that keeps the promise.
            x = max(round(x), previous + 1)
        factor **= 2
    good, bad = (previous, x) if keeps else (x, previous)
    return _close_in(spends, most, good, bad, whole)


def _close_in(spends: Callable[[float], float], most: float, good: float, bad: float, whole: bool) -> float:
    """Narrow the bracket to the tolerance, or to neighbouring whole numbers; `good` always keeps the promise.

    The log of what is spent is nearly linear in log x, so the next point is the straight line's crossing, taken half a
    tolerance short of it and then half past it, which closes the bracket; bisection where that makes no headway.
    """
    idle = 0
    while abs(good - bad) > 1 if whole else abs(math.log(good / bad)) > _TOLERANCE:
        span = math.log(bad / good)
        low, high = spends(good), spends(bad)
        share = 0.5
        if idle < 2 and 0 < low < most < high < math.inf:
            guess = math.log(most / low) / math.log(high / low)
            margin = min(0.4 * max(_TOLERANCE, 1 / good if whole else 0.0) / abs(span), 0.5)
            share = guess - margin if guess > 2 * margin else guess + margin
        middle = good * math.exp(min(max(share, 0.0), 1.0) * span)
        if whole:
            middle = min(max(round(middle), min(good, bad) + 1), max(good, bad) - 1)
        if spends(middle) <= most:
            good = middle
        else:
            bad = middle
        idle = idle + 1 if abs(math.log(bad / good)) > abs(span) / 2 else 0
    return good
