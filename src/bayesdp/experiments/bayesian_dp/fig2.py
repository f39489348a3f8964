"""S1 Fig. 2, S0 Fig. 2 (J2): noise against ε of one step, gradients clipped for DP only.

Without clipping no cost is the largest possible, so nothing distribution-free can be said of its mean (a rare
enough huge gradient escapes every sample). What a sample does support is a share of the people (order statistics, H5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.bayesian_dp import sigma_sweep, sound
from bayesdp.experiments.bayesian_dp.sigma_sweep import DELTA, PEOPLE, RATE, SIGMAS
from bayesdp.experiments.common.style import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Noise against ε, gradients not clipped for BDP: as printed (unsound: ERR 4, 9, 11) and sound"
QUANTILES = (0.05, 0.5, 0.95)
COVERAGES = (0.5, 0.9, 0.99)


def compute(seed: int = 0, *, sigmas: Sequence[float] = SIGMAS, people: int = PEOPLE) -> list[Row]:
    """Rows (quantile, sigma, way, curve, coverage, epsilon); sound: what 50, 90, 99 % of people have each."""
    return sigma_sweep.compute(QUANTILES, _sound, clip=False, seed=seed, sigmas=sigmas, people=people)


def _sound(norms: Array, clip_norm: float, noise: Array) -> dict[tuple[str, float | str], Array]:  # noqa: ARG001
    curves: dict[tuple[str, float | str], Array] = {}
    for coverage in COVERAGES:
        shifts = sound.norm_covering(coverage, norms) / noise
        curves["tail", coverage] = sound.tail_epsilon(shifts, sampling_rate=RATE, delta=DELTA)
        curves["exact", coverage] = sound.exact_epsilon(shifts, sampling_rate=RATE, delta=DELTA)
    return curves


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Three panels: noise for the smallest, the median and the largest gradients."""
    labels = {
        "tail": "sound: 90 % of people, tail (band 50-99 %)",
        "exact": "sound: 90 % of people, exact (band 50-99 %)",
    }
    sigma_sweep.draw(figure, rows, title=TITLE, labels=labels)


EXPERIMENTS = {"bdp-fig2": Experiment(TITLE, (11.0, 5.0), compute, draw)}
