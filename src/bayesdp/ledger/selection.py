"""Do it K times and publish the best: what that costs when K is random (Papernot & Steinke 2022).

    truncated negative binomial, η > −1, 0 < γ < 1 (Theorem 2), at any second order β ≥ 1:
        D_α(best) ≤ D_α + (1+η)(1 − 1/β) D_β + (1+η) log(1/γ)/β + log E[K]/(α−1)
        E[K] = η(1−γ)/(γ(1−γ^η)),  η = 0: (1/γ − 1)/log(1/γ),  η = 1: 1/γ (geometric)

    Poisson of mean μ (Theorem 6), δ that of one run at ε = log(1 + 1/(α−1)):
        D_α(best) ≤ D_α + μ δ + log μ/(α−1)

How often it is done must be drawn from this law, afresh and in secret, and only the best is looked at. Trying settings
until one is good enough is no such thing: then every try is charged in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array

Law = Literal["negative-binomial", "poisson"]
LAWS: tuple[Law, ...] = ("negative-binomial", "poisson")


@dataclass(frozen=True)
class Selection:
    """The law of K: "negative-binomial" with `shape` η and `gamma` γ, or "poisson" with mean `mean`.

    Bad input gets `InputError` naming the field.
    """

    law: Law = "negative-binomial"
    shape: float = 1.0
    gamma: float = 0.1
    mean: float = 10.0

    def __post_init__(self) -> None:
        errors.one_of("law", self.law, LAWS)
        errors.number("shape", self.shape, above=-1)
        errors.number("gamma", self.gamma, above=0, below=1)
        errors.number("mean", self.mean, above=0)

    @property
    def expected(self) -> float:
        """E[K]."""
        if self.law == "poisson":
            return self.mean
        if self.shape == 0:
            return (1 / self.gamma - 1) / math.log(1 / self.gamma)
        return self.shape * (1 - self.gamma) / (self.gamma * -math.expm1(self.shape * math.log(self.gamma)))

    def draw(self, rng: np.random.Generator | None = None) -> int:
        """How often to do it, this time; keep it secret."""
        rng = np.random.default_rng() if rng is None else rng
        if self.law == "poisson":
            return int(rng.poisson(self.mean))
        # Pr[K = k] ∝ (1−γ)^k Π_{l<k} (l + η)/(l + 1) for k ≥ 1, by inversion.
        uniform, k, weight = rng.random(), 1, self._first()
        total = weight
        while uniform > total and weight > 0:
            weight *= (1 - self.gamma) * (k + self.shape) / (k + 1)
            k, total = k + 1, total + weight
        return k

    def _first(self) -> float:
        """Pr[K = 1]."""
        if self.shape == 0:
            return (1 - self.gamma) / math.log(1 / self.gamma)
        # γ^{−η} − 1 in the denominator of the law.
        return self.shape * (1 - self.gamma) / math.expm1(-self.shape * math.log(self.gamma))

    def cost(self, costs: Array, orders: Array, delta: Callable[[float], float]) -> Array:
        """(α−1) D_α of the best, at ascending `orders`, from `costs` of one run and its δ at an ε ("poisson")."""
        rates = orders - 1
        if self.law == "poisson":
            shares = np.array([delta(math.log1p(1 / rate)) for rate in rates])
            found = costs + rates * self.mean * shares + math.log(self.mean)
        else:
            with np.errstate(invalid="ignore"):
                divergence = costs / rates
            several = 1 + self.shape
            # Any second order will do: the best of those that there are.
            second = (1 - 1 / orders) * divergence + math.log(1 / self.gamma) / orders
            found = costs + rates * several * float(np.min(second)) + math.log(self.expected)
        # D_α never falls with α: a bound at a larger order is one at this.
        least = np.minimum.accumulate(np.maximum(found / rates, 0.0)[::-1])[::-1]
        return np.asarray(least * rates, np.float64)
