"""S1 Fig. 1, S0 Fig. 1 (J1): noise against ε of one step, clipped gradients for DP and Bayesian DP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.bayesian_dp import sigma_sweep, sound
from bayesdp.experiments.bayesian_dp.sigma_sweep import DELTA, PEOPLE, RATE, SIGMAS
from bayesdp.experiments.common.style import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Noise against ε, gradients clipped: as printed (unsound: ERR 4, 9, 11) and sound"
QUANTILES = (0.01, 0.5, 0.99)
COVERAGE = 0.9


def compute(seed: int = 0, *, sigmas: Sequence[float] = SIGMAS, people: int = PEOPLE) -> list[Row]:
    """Rows (quantile, sigma, way, curve, coverage, epsilon).

    Sound: "tail" is strong BDP by a bound on the mean cost, a statement about a random person that has no
    coverage; "exact" is the (ε, δ) that 90 % of people have each.
    """
    return sigma_sweep.compute(QUANTILES, _sound, clip=True, seed=seed, sigmas=sigmas, people=people)


def _sound(norms: Array, clip_norm: float, noise: Array) -> dict[tuple[str, float | str], Array]:
    limited = np.minimum(norms, clip_norm)
    mean = [
        sound.mean_epsilon(limited / std, clip_norm / std, sampling_rate=RATE, delta=DELTA) for std in noise.tolist()
    ]
    shifts = sound.norm_covering(COVERAGE, limited) / noise
    return {
        ("tail", ""): np.array(mean),
        ("exact", COVERAGE): sound.exact_epsilon(shifts, sampling_rate=RATE, delta=DELTA),
    }


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Three panels: almost everybody clipped, half, almost nobody."""
    labels = {"tail": "BDP sound: betting with cap (tail)", "exact": "sound: 90 % of people, exact"}
    sigma_sweep.draw(figure, rows, title=TITLE, labels=labels)


EXPERIMENTS = {"bdp-fig1": Experiment(TITLE, (11.0, 5.0), compute, draw)}
