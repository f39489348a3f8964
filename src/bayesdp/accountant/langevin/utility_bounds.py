"""Paper S4's utility bounds for private Langevin dynamics (F9), as printed and as corrected (ERR 27, 28).

    E(φ̂ − φ̄)² ≤ K (Ση²/(Ση)² · (N/τ − 1) N² Γ  +  1/Ση  +  (Ση²)²/(Ση)²),      a fixed step: 1/T, 1/(Tη), η²

K and Γ belong to the model and are not known, so these compare steps, they do not bound an error. S4 puts in its own
η where the theorem that it cites has the step h = η/N of the unscaled gradient: K then depends on N as well.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import lambertw

from bayesdp import errors
from bayesdp.accountant.langevin.step_size import Langevin


class Terms(NamedTuple):
    """The three terms of the bracket; `sampling` is that of the batches, for Γ = 1."""

    sampling: float
    start: float
    bias: float

    @property
    def total(self) -> float:
        """Their sum, with Γ = 0: what depends on the step."""
        return self.start + self.bias


def terms(chain: Langevin, step: float) -> Terms:
    """Proposition 6 for a fixed step, Proposition 5 by its sums for decreasing ones of first size `step`."""
    eta = errors.number("step", step, above=0) * chain.shape
    first, second = float(eta.sum()), float((eta**2).sum())
    return Terms(second / first**2 * batch_noise(chain), 1 / first, (second / first) ** 2)


def batch_noise(chain: Langevin) -> float:
    """(N/τ − 1) N², which Γ multiplies: 0 when every record enters every step."""
    return float((1 / chain.rate - 1) * chain.records**2)


def best_fixed_step(steps: int) -> tuple[float, float]:
    """The η = (2T)^{-1/3} that makes 1/(Tη) + η² least, and that least value 3 (2T)^{-2/3}."""
    steps = errors.whole("steps", steps, least=1)
    return (2 * steps) ** (-1 / 3), 3 * (2 * steps) ** (-2 / 3)


def printed_decreasing(chain: Langevin, scale: float) -> Terms:
    """Proposition 5 as printed, η̃₀ = `scale` and η_t = η̃₀ t^{-1/3} T^{-2/3}: constants and rates are wrong (ERR 27)."""
    scale = errors.number("scale", scale, above=0)
    return Terms(2 / 3 * batch_noise(chain) / chain.steps, 1 / (3 * scale), 2 * scale**2 * chain.steps ** (-2 / 3))


def corrected_decreasing(chain: Langevin, scale: float) -> Terms:
    """The limits of the same sums for many steps: 4/3 of 1/T, 2/(3η̃₀), 4η̃₀²/T²."""
    scale = errors.number("scale", scale, above=0)
    return Terms(4 / 3 * batch_noise(chain) / chain.steps, 2 / (3 * scale), 4 * (scale / chain.steps) ** 2)


def log_accuracy(ratio: float) -> float:
    """log(1/ω) from T/A = log⁵(1/ω)/ω⁴ (Proposition 7): (5/4) W((4/5)(T/A)^{1/5}). The bound grows with it: vacuous."""
    return 1.25 * float(np.real(lambertw(0.8 * errors.number("ratio", ratio, above=0) ** 0.2)))


def printed_log_accuracy(ratio: float, factor: float = 1.0) -> float:
    """Proposition 7's W^{1/5}(4T/(5A)), which does not invert it (ERR 28); its proof has a `factor` of 5/4 inside."""
    return float((factor * np.real(lambertw(0.8 * errors.number("ratio", ratio, above=0)))) ** 0.2)


def rate_of(log_accuracy: float) -> float:
    """T/A = u⁵ e^{4u} of u = log(1/ω): what the two above must give back."""
    return log_accuracy**5 * math.exp(4 * log_accuracy)
