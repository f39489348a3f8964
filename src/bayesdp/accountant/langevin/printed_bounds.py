"""Paper S4's limits on the step of private Langevin dynamics (F4-F7), as printed and as corrected (ERR 26, 31, 34, 35).

    Theorem 4, fixed        η   < ε²N / (c² L² T log(1/δ))
    Theorem 3, η_1 t^{-1/3} η_1 < ε²N / (c₂² L² T^{2/3} log(1/δ))
    both with z ≥ 1 and q < 1/(16z), which Lemma 2 asks for: λ ≤ z² ln(1/(qz)), log-moment ≤ q²λ(λ+1)/((1−q)z²) + O(q³)
    Wang et al. (2015)      η   < ε²N / (128 L² T log(2.5T/δ) log(2/δ)),   where T ≥ ε²/(32 q² log(2/δ))

All are for noise of variance η/N (temperature 1/2). c and c₂ are no constants: S4's section C computes them for each
setting by the moments accountant, which is accounting by another name: sound, and nothing else is asked. Wang's
condition is what their proof needs for amplification by sampling: a step alone may spend at most 1.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from bayesdp import errors
from bayesdp.accountant.langevin.step_size import Langevin
from bayesdp.accountant.worst_case import Engine
from bayesdp.rounding import up

Label = Literal["sound", "as printed"]

EXAMPLE = {"records": 50000, "steps": 10**4, "bound": 1.0}
EXAMPLE_EPSILON, EXAMPLE_DELTA, EXAMPLE_STEP = 0.1, 1e-5, 0.103
"""S4, section 3.1: η_1 < 0.103 is said to be (0.1, 1e-5)-DP. Batch size is not stated."""


class Limits(NamedTuple):
    """Conditions 1 and 2 of Theorem 3: steps must be above `least` and at most `most`."""

    least: float
    most: float


class Constants(NamedTuple):
    """What section C calls c₁ and c₂ (c₃ and c₄ for a fixed step): ε = c₁ q² T^p, z = c₂ q sqrt(T^p log(1/δ))/ε."""

    first: float
    second: float


def as_in_the_paper(chain: Langevin) -> Langevin:
    """The same chain with the noise of S4's Algorithm 1 (ERR 25)."""
    return dataclasses.replace(chain, temperature=0.5)


def power(chain: Langevin) -> float:
    """T^p of the theorem: T for a fixed step, T^{2/3} for decreasing ones."""
    return float(chain.steps ** (1.0 if chain.schedule == "fixed" else 2 / 3))


def theorem_step(chain: Langevin, epsilon: float, delta: float, constant: float) -> float:
    """ε²N/(c² L² T^p log(1/δ)): the third condition of Theorem 3, or Theorem 4; `constant` is c."""
    c = errors.number("constant", constant, above=0)
    return (epsilon / (c * chain.bound)) ** 2 * chain.records / (power(chain) * -math.log(delta))


def constants_of(chain: Langevin, epsilon: float, delta: float, step: float) -> Constants:
    """The c₁ and c₂ with which the theorem would give this step at this ε."""
    second = theorem_step(chain, epsilon, delta, 1.0) / errors.number("step", step, above=0)
    return Constants(epsilon / (chain.rate**2 * power(chain)), math.sqrt(second))


def section_c(chain: Langevin, epsilon: float, delta: float) -> Constants:
    """c₁ and c₂ as S4's section C has them: from the moments accountant at this very setting."""
    chain = as_in_the_paper(chain)
    return constants_of(chain, epsilon, delta, chain.largest_step(epsilon, delta, "moments"))


def example_constant() -> float:
    """The c₂ that S4's example implies: 0.953, so c₂² = 0.908."""
    chain = Langevin(**EXAMPLE, batch=100, schedule="decreasing", temperature=0.5)  # type: ignore[arg-type]
    return constants_of(chain, EXAMPLE_EPSILON, EXAMPLE_DELTA, EXAMPLE_STEP).second


def lemma_constant(chain: Langevin, epsilon: float, delta: float) -> float:
    """The c of the theorems' own proof: c² = 4 (Σ_t η_t/η_1)/T^p · (1 + 1/λ)/(1−q) with λ = 2 log(1/δ)/ε.

    Half of λε pays for the log-moments, half for δ. About 2 for a fixed step and √6 for decreasing ones.
    """
    lam = lemma_order(epsilon, delta)
    return 2 * math.sqrt(float(chain.shape.sum()) / power(chain) * (1 + 1 / lam) / (1 - chain.rate))


def lemma_order(epsilon: float, delta: float) -> float:
    """The λ = 2 log(1/δ)/ε of the proofs."""
    return -2 * math.log(delta) / epsilon


def lemma_two_formula(lam: float, rate: float, z: float) -> float:
    """The main term q²λ(λ+1)/((1−q)z²) of Lemma 2, wherever one asks: meaningless outside of its region."""
    return rate**2 * lam * (lam + 1) / ((1 - rate) * z**2)


def lemma_two_failures(lam: float, rate: float, z: float) -> tuple[str, ...]:
    """Which conditions of Lemma 2 do not hold, in words (the moments lemma, F4)."""
    broken = []
    if z < 1:
        broken.append(f"z ≥ 1 (z = {z:.3g})")
    if rate >= 1 / (16 * z):
        broken.append(f"q < 1/(16z) (q = {rate:.3g}, 1/(16z) = {1 / (16 * z):.3g})")
    most = z**2 * -math.log(rate * z)
    if lam > most:
        broken.append(f"λ ≤ z² ln(1/(qz)) (λ = {lam:.3g}, z² ln(1/(qz)) = {most:.3g})")
    return tuple(broken)


def lemma_two(lam: float, rate: float, z: float) -> float:
    """Lemma 2's bound on the log-moment without its remainder O(q³λ³/z³), inside its region only (F4).

    The remainder matters: at z = 1, q = 0.0624, λ = 2.4 the exact moment is 0.1 % larger than this.

    Bad input: outside of the region `InputError` says which condition fails.
    """
    lam, z = errors.number("lam", lam, above=0), errors.noise("z", z)
    rate = errors.number("rate", rate, above=0, below=1)
    broken = lemma_two_failures(lam, rate, z)
    if broken:
        raise errors.unmet(
            "lam", lam, "λ, q and z inside Lemma 2's region", f"a violation of {' and of '.join(broken)}"
        )
    return lemma_two_formula(lam, rate, z)


def printed_limits(chain: Langevin) -> Limits:
    """Conditions 1 and 2 as printed: q²N/(256L²) < η ≤ N/L²."""
    scale = chain.records / chain.bound**2
    return Limits(chain.rate**2 * scale / 256, scale)


def corrected_limits(chain: Langevin) -> Limits:
    """The same with the q² that was lost (ERR 26): 256 q⁴N/L² < η ≤ q²N/L²."""
    scale = chain.rate**2 * chain.records / chain.bound**2
    return Limits(256 * chain.rate**2 * scale, scale)


def wang_step(chain: Langevin, epsilon: float, delta: float) -> float:
    """The bound of Wang et al. as S4 states it (F7)."""
    logs = math.log(2.5 * chain.steps / delta) * math.log(2 / delta)
    return (epsilon / chain.bound) ** 2 * chain.records / (128 * chain.steps * logs)


def wang_least_steps(chain: Langevin, epsilon: float, delta: float) -> float:
    """The number of steps from which their proof holds: ε²/(32 q² log(2/δ))."""
    return epsilon**2 / (32 * chain.rate**2 * math.log(2 / delta))


@dataclass(frozen=True)
class Bound:
    """One line of the table: a step, how it was found, what it really costs, and which assumption fails.

    `epsilon` is what all iterates of the chain with this step are accounted at, at the temperature given: never below
    the truth; exact up to rounding for a fixed step by "pld", some 3 % above it for decreasing ones.
    """

    name: str
    schedule: str
    label: Label
    step: float
    temperature: float
    epsilon: float
    constants: Constants | None = None
    fails: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite ε is the string "inf"."""
        values = dataclasses.asdict(self)
        values["epsilon"] = "inf" if math.isinf(self.epsilon) else self.epsilon
        values["fails"] = list(self.fails)
        values["constants"] = None if self.constants is None else self.constants._asdict()
        return values


def bounds(chain: Langevin, epsilon: float, delta: float, engine: Engine = "pld") -> list[Bound]:
    """Every limit on the (first) step of this chain for (ε, δ): ours at its temperature, the papers' at 1/2.

    `engine` accounts for ours and says what each costs: "pld" is the tightest, and slow for decreasing steps.

    Bad input: see `Langevin.largest_step`.
    """
    paper = as_in_the_paper(chain)

    def line(
        name: str, label: Label, step: float, by: Langevin = paper, fails: tuple[str, ...] = (), **more: Any
    ) -> Bound:
        cost = by.accountant(step, engine).epsilon(delta)
        if cost > epsilon:
            fails = (*fails, f"the promise: accounted at DP ε = {up(cost, 4)}, not {epsilon:g}")
        return Bound(name, chain.schedule, label, step, by.temperature, cost, fails=fails, **more)

    rows = [line("exact (F8)", "sound", chain.largest_step(epsilon, delta, engine), chain)]
    theorem = "Theorem 4" if chain.schedule == "fixed" else "Theorem 3"

    def by_theorem(whose: str, label: Label, c: float, fails: tuple[str, ...] = (), lam: float | None = None) -> Bound:
        step = theorem_step(chain, epsilon, delta, c)
        if lam is not None:
            fails = (*fails, *_broken(paper, step, lam))
        return line(
            f"{theorem} ({whose})", label, step, fails=fails, constants=constants_of(chain, epsilon, delta, step)
        )

    rows.append(by_theorem("§C", "sound", section_c(chain, epsilon, delta).second))
    by_proof = lemma_constant(chain, epsilon, delta)
    rows.append(by_theorem("proof", "as printed", by_proof, lam=lemma_order(epsilon, delta)))
    if chain.schedule == "decreasing":
        # The λ of the example is not known; the other two conditions do not ask for it.
        rows.append(by_theorem("example", "as printed", example_constant(), ("c₂ is taken for a constant",), 0.0))
    else:
        least = wang_least_steps(chain, epsilon, delta)
        proved = chain.steps >= least
        broken = () if proved else (f"T ≥ ε²/(32 q² log(2/δ)) = {least:.3g}",)
        step = wang_step(chain, epsilon, delta)
        rows.append(line("Wang et al. 2015", "sound" if proved else "as printed", step, fails=broken))
    return rows


def _broken(chain: Langevin, step: float, lam: float) -> tuple[str, ...]:
    """What fails at the longest or the shortest step of the chain."""
    first = chain.noise_multiplier(step)
    ends = (first, first * float(chain.shape[-1]) ** -0.5)
    found = [words for z in ends for words in lemma_two_failures(lam, chain.rate, z)]
    return tuple({words.split(" (")[0]: words for words in found}.values())
