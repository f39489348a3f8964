"""How fast a population is costed, beside dp-accounting called record by record, in one run.

Times on a shared machine are noise: only ratios measured side by side, best of several, are printed. Exits with
an error when a promise of the README does not hold.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant

import bayesdp as bd
from bayesdp.divergence import CostTable, sgm
from bayesdp.errors import Array

RATE = 0.01
WHOLE = np.concatenate([np.arange(2.0, 54), [56, 64, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512]])
MIXED = np.sort(np.concatenate([[1.5, 1.75, 2.5, 3.5], WHOLE[:48], WHOLE[-12:]]))


def best_of(times: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def population(kind: str, orders: Array) -> bool:
    """60,000 records x 64 orders, one step, against dp-accounting per record."""
    norms = np.minimum(np.random.default_rng(0).weibull(0.5, 60_000) * 0.2, 1.0)

    def theirs() -> None:
        for norm in norms[:40]:
            step = dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(1 / norm))
            RdpAccountant(list(orders)).compose(step)

    build_start = time.perf_counter()
    table = CostTable(orders, sampling_rate=RATE)
    table(norms**2)
    build = time.perf_counter() - build_start
    ours, per_record = best_of(7, lambda: table(norms**2)), best_of(3, theirs) / 40
    ratio = per_record * len(norms) / ours
    exact = sgm.cost(norms[:200], orders, sampling_rate=RATE)
    gap = float((table(norms[:200] ** 2) / exact - 1).max())
    print(f"one step, {len(norms):,} records x {len(orders)} orders ({kind})")
    print(f"  dp-accounting, record by record (40 timed, extrapolated)  {per_record * len(norms):9.1f} s")
    print(f"  CostTable lookup (table built once in {build:.1f} s)            {ours:9.4f} s")
    print(f"  ratio {ratio:,.0f} (promise: at least 1,000); at most {gap:.1e} above the exact cost")
    return ratio >= 1000


def live_step() -> bool:
    """10,000 records x 32 orders: what a step of training pays for being accounted."""
    norms = np.minimum(np.random.default_rng(1).weibull(0.5, 10_000) * 0.2, 1.0)
    accountant = bd.InstanceAccountant(records=10_000)
    floor_input = np.random.default_rng(2).uniform(-1, 1, (10_000, len(accountant.orders)))

    def step() -> None:
        accountant.step(norms, noise_std=1.0, sampling_rate=RATE)

    step()
    ours, floor = best_of(30, step), best_of(30, lambda: np.exp(floor_input))
    print(f"InstanceAccountant.step, 10,000 records x {len(accountant.orders)} orders")
    print(f"  ours {ours * 1e3:.2f} ms (promise: under 5 ms); floor, one NumPy exp pass {floor * 1e3:.2f} ms", end="")
    print(f"; ratio {ours / floor:.1f}")
    return ours < 5e-3


if __name__ == "__main__":
    held = [population("whole", WHOLE), population("four of them fractional", MIXED), live_step()]
    sys.exit(0 if all(held) else "a promise did not hold in this run")
