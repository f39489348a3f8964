"""What JAX-Privacy's auditing says of some counts: the numbers that tests/audit hold ours against.

Run once with the Python of an environment that has jax-privacy, see `clipping.PEERS`:

    python benchmarks/audit_jax_privacy.py

It prints three lists: ε by Clopper-Pearson limits at a given threshold, ε of one run by counting, ε of one run by the
Gaussian trade-off function.
"""

from __future__ import annotations

import numpy as np
from jax_privacy import auditing  # type: ignore[import-not-found]

RUNS = [(1000, 300, 260), (1000, 100, 99), (500, 500, 330), (2000, 40, 40)]
"""Canaries, guesses, right ones."""

SHIFTS = (0.5, 1.0, 2.0)
DELTA, FAILURE = 1e-5, 0.05


def quantile_scores(count: int, shift: float) -> np.ndarray:
    """`count` scores at the quantiles of a logistic law: the same on every machine."""
    shares = (np.arange(count) + 0.5) / count
    return np.log(shares / (1 - shares)) + shift


def main() -> None:
    """Print the lists."""
    both = {"threshold_strategy": auditing.Explicit(2.0), "one_sided": False}
    print(
        "two errors",
        [
            auditing.CanaryScoreAuditor(
                in_canary_scores=quantile_scores(5000, shift), out_canary_scores=quantile_scores(5000, 0.0)
            ).epsilon_clopper_pearson(FAILURE, DELTA, **both)
            for shift in SHIFTS
        ],
    )
    print("counting", [auditing._epsilon_one_run(0.0, *run, FAILURE, DELTA) for run in RUNS])
    print("f-dp", [auditing._epsilon_one_run_fdp(0.0, *run, FAILURE, DELTA) for run in RUNS])


if __name__ == "__main__":
    main()
