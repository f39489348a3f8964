"""Lower bounds on mechanisms whose exact ε is known: how many are too high in 100 repetitions, and how near they come.

Every repetition plays the real loop anew, with fresh noise. A bound is too high when it is above the mechanism's own ε,
computed by an independent formula or accountant; with confidence 95 % that may happen in 5 of 100, and more than 13
would be rarer than 1e-3. The white-box audit (plays with and without a canary) must reach half of ε in its form for
Gaussian noise. Exits with an error when a promise does not hold.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
from scipy import stats

from bayesdp.accountant.rdp import Run
from bayesdp.audit.audit import best_number
from bayesdp.audit.mechanism import WIDTH, AuditedPlan, scores
from bayesdp.audit.one_run import guessed
from bayesdp.audit.trade_off import TradeOff, accountant_of, with_noise
from bayesdp.audit.two_errors import Errors, two_errors
from bayesdp.divergence.hockey_stick import gaussian_epsilon, gaussian_shift

DELTA, FAILURE = 1e-5, 0.05
FACTORS = 0.92 * 1.035 ** np.arange(60)
"""Noise, as multiples of the plan's, whose trade-off functions are kept."""


@dataclass(frozen=True)
class Case:
    """A mechanism, how often it is played, and with how many canaries in one run (0: none)."""

    name: str
    history: Run
    adjacency: str
    plays: int
    canaries: int

    @property
    def plan(self) -> AuditedPlan:
        """Its steps."""
        return AuditedPlan.of_history((self.history,), DELTA, self.adjacency)  # type: ignore[arg-type]

    @property
    def exact(self) -> float:
        """ε at δ: by the closed form of a Gaussian where nobody is left out, else by dp-accounting's law."""
        z, q, steps = self.history
        if q == 1:
            shift = (1 if self.adjacency == "add-remove" else 2) / z
            return float(gaussian_epsilon(DELTA, shift * np.sqrt(steps)))
        return self.plan.epsilon


CASES = (
    Case("Gaussian, z = 1", Run(1.0, 1.0, 1), "add-remove", 8000, 400),
    Case("Gaussian, z = 3", Run(3.0, 1.0, 1), "add-remove", 16000, 0),
    Case("Gaussian, z = 2, replaced", Run(2.0, 1.0, 1), "replace-one", 8000, 0),
    Case("sampled, q = 0.2, z = 1, 10 steps", Run(1.0, 0.2, 10), "add-remove", 3000, 400),
)


class Curves:
    """The trade-off functions of a plan with more and less noise, and the ε of each."""

    def __init__(self, plan: AuditedPlan) -> None:
        histories = [with_noise(plan.history, factor) for factor in FACTORS]
        self.curves = [TradeOff.of_plan(one, plan.adjacency) for one in histories]
        self.epsilons = [accountant_of(one, plan.adjacency).epsilon(DELTA) for one in histories]

    def epsilon(self, refuted: object) -> float:
        """The ε of the least noise that is refuted; 0 where none is."""
        low, high = -1, len(FACTORS) - 1
        if not refuted(self.curves[high]):  # type: ignore[operator]
            return 0.0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if refuted(self.curves[middle]) else (middle, high)  # type: ignore[operator]
        return self.epsilons[high]


def measure(case: Case, repetitions: int) -> bool:
    """Print one mechanism; whether all holds."""
    plan, exact, begun = case.plan, case.exact, time.monotonic()
    curves = Curves(plan)
    drawn = np.random.default_rng(0).normal(size=(1, WIDTH))
    lone = plan.plant(drawn / np.linalg.norm(drawn))
    found: dict[str, list[float]] = {}
    for _ in range(repetitions):
        absent, present = (scores(lone.by(np.array([coin])), case.plays)[:, 0] for coin in (False, True))
        tested = two_errors(absent, present, delta=DELTA, failure=FAILURE)
        found.setdefault("plays, counting", []).append(tested.ratio.epsilon(DELTA))
        found.setdefault("plays, f-dp", []).append(curves.epsilon(_by_errors(tested.curve)))
    if case.canaries:
        planted, shift = plan.plant(np.eye(case.canaries)), float(gaussian_shift(exact, DELTA))
        numbers = [best_number(case.canaries, shift, DELTA, FAILURE, form) for form in ("counting", "f-dp")]
        for _ in range(repetitions):
            coins = np.random.default_rng().random(case.canaries) < 0.5
            told = scores(planted.by(coins), 1)[0]
            counted, curved = (guessed(told, coins, made) for made in numbers)
            found.setdefault("one run, counting", []).append(counted.epsilon(DELTA, FAILURE))
            found.setdefault("one run, f-dp", []).append(
                curves.epsilon(lambda curve, own=curved: own.refute(curve, FAILURE))
            )
    print(f"{case.name}: exact ε = {exact:.4g}, {repetitions} repetitions, {time.monotonic() - begun:.0f} s")
    held = True
    allowed = int(stats.binom.isf(1e-3, repetitions, FAILURE))
    for name, values in found.items():
        bounds = np.array(values)
        # The accountant's own rounding, of both sides alike, is not an excess.
        above = int(np.sum(bounds > exact * (1 + 2e-3)))
        share = np.median(bounds) / exact
        good = above <= allowed and (name != "plays, f-dp" or share >= 0.5)
        held &= bool(good)
        print(
            f"  {name}: above in {above} (at most {allowed}), median {np.median(bounds):.3g} = {share:.0%} of ε, "
            f"least {bounds.min():.3g}{'' if good else '  DOES NOT HOLD'}",
            flush=True,
        )
    return held


def _by_errors(tested: Errors) -> object:
    return lambda curve: curve.refuted_by(tested.false_alarms, tested.missed)


def main() -> None:
    """All mechanisms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    repetitions = parser.parse_args().repetitions
    held = [measure(case, repetitions) for case in CASES]
    if not all(held):
        raise SystemExit("A lower bound does not hold, or is too low.")


if __name__ == "__main__":
    main()
