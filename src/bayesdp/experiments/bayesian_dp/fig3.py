"""S1 Fig. 3 (J3): ε over 100 steps with noise 2C, fresh gradients at every step, clipped for DP only.

As printed: Hölder with T = 100 (public code) or the product (S1 Theorem 1). Sound: every person keeps an own
tally along the run, a mixture over orders fixed in advance turns it into that person's ε (H3, H12), and an
order statistic says what a share of the people has (H5). Gradients here do not depend on what was released,
so people inside and outside of the data have the same law and one sample speaks for both orientations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.compose import ex_post, orders
from bayesdp.divergence.table import CostTable
from bayesdp.errors import Array
from bayesdp.estimate import quantile
from bayesdp.experiments import Experiment
from bayesdp.experiments.bayesian_dp import as_printed, sound, synthetic
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, Row, band, finish, line, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "ε over 100 steps of noise 2C: as printed (unsound: ERR 4, 9, 11; the product also ERR 1) and sound"
QUANTILES = (0.05, 0.25, 0.5, 0.95)
COVERAGES = (0.5, 0.9, 0.99)
SIGMA, RATE, LAM, DELTA = 1.0, 1 / 1000, 16, 1e-5
STEPS = 100
SHOWN = (1, 2, 5, *range(10, STEPS + 1, 10))
PEOPLE = 2000


def compute(seed: int = 0, *, people: int = PEOPLE) -> list[Row]:
    """Rows (quantile, step, way, curve, coverage, epsilon).

    At each step C is a quantile of the papers' 50 gradients, and both ways face the noise 2C. Orders of the
    sound way are planned for distances up to 2C, the papers' own worst case, because nobody is clipped. Its
    coverage holds at all the steps shown together: the failure probability is split over them.
    """
    papers_rng, people_rng = np.random.default_rng(seed).spawn(2)
    grid, weights = orders.planned(SIGMA, RATE, STEPS, DELTA)
    lookup = CostTable(grid, sampling_rate=RATE)
    printed = {"Hölder": np.zeros(len(QUANTILES)), "product": np.zeros(len(QUANTILES))}
    tally = np.zeros((len(QUANTILES), people, len(grid)))
    table = _everybody()
    for step in range(1, STEPS + 1):
        gradients = synthetic.gradients(synthetic.RECORDS, synthetic.DIMENSIONS, papers_rng)
        distances = synthetic.pair_distances(gradients)
        noise = 2 * SIGMA * np.quantile(synthetic.norms(gradients), QUANTILES)
        norms = synthetic.fresh_norms(people, synthetic.DIMENSIONS, people_rng)
        for i, std in enumerate(noise.tolist()):
            printed["Hölder"][i] += _printed_cost(distances, std, STEPS)
            printed["product"][i] += _printed_cost(distances, std, 1)
            tally[i] += lookup((norms / std) ** 2)
        if step in SHOWN:
            for i, limit in enumerate(QUANTILES):
                for rule, costs in printed.items():
                    value = as_printed.epsilon(float(costs[i]), LAM, DELTA, estimates=step)
                    table.append(_row(limit, step, "paper", rule, "", value))
                own = np.sort(ex_post.epsilon(tally[i], grid, DELTA, weights, strength="strong"))
                for coverage in COVERAGES:
                    table.append(_row(limit, step, "sound", "tail", coverage, _covering(own, coverage)))
    return table


def _row(limit: float | str, step: int, way: str, curve: str, coverage: float | str, epsilon: float) -> Row:
    at = {"way": way, "curve": curve, "coverage": coverage}
    return {"quantile": limit, "step": step, **at, "epsilon": epsilon}


def _printed_cost(distances: Array, noise: float, total_steps: int) -> float:
    return as_printed.bayesian_cost(distances, noise, sampling_rate=RATE, lam=LAM, total_steps=total_steps)


def _covering(ascending: Array, coverage: float) -> float:
    """The order statistic of people's own ε that a share `coverage` of everybody stays below (H12)."""
    rank = quantile.rank_for(coverage, len(ascending), sound.COVERAGE_FAILURE / len(SHOWN))
    return float("inf") if rank is None else float(ascending[rank - 1])


def _everybody() -> list[Row]:
    """DP for all panels: as printed at distance 2C; sound at C, the most that a clipped record moves a sum."""
    step_cost = as_printed.moments_cost(SIGMA, sampling_rate=RATE, lam=LAM)
    shift = np.array([1 / (2 * SIGMA)])
    table: list[Row] = []
    for step in SHOWN:
        exact = WorstCaseAccountant(engine="pld")
        exact.step(noise_multiplier=2 * SIGMA, sampling_rate=RATE, steps=step)
        tail = float(sound.tail_epsilon(shift, sampling_rate=RATE, delta=DELTA, steps=step)[0])
        printed = as_printed.epsilon(step * step_cost, LAM, DELTA)
        for curve, value in {"as printed": printed, "tail": tail, "exact": exact.epsilon(DELTA)}.items():
            table.append(_row("all", step, "dp", curve, 1.0, value))
    return table


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """One panel for each quantile at which the noise stands."""
    panels = figure.subplots(1, len(QUANTILES), sharey=True)
    dp = {name: pick(rows, way="dp", curve=name) for name in ("as printed", "tail", "exact")}
    for axes, limit in zip(panels, QUANTILES, strict=True):
        here = pick(rows, quantile=limit)
        holder, product = pick(here, curve="Hölder"), pick(here, curve="product")
        line(axes, dp["as printed"], "step", color=VERMILION, ls="--", label="DP as printed, λ = 16")
        line(axes, holder, "step", color=VERMILION, label="BDP as printed: Hölder (public code)")
        line(axes, dp["tail"], "step", color=BLUE, ls="--", label="DP, best order (tail)")
        band(axes, pick(here, way="sound"), "step", BLUE, "sound: 90 % of people, tail (band 50-99 %)")
        line(axes, product, "step", color=VERMILION, ls=":", label="BDP as printed: product (S1)")
        line(axes, dp["exact"], "step", color=GREEN, ls="--", label="DP, exact (PLD)")
        axes.set_title(f"C at the {limit:g}-quantile of norms", fontsize=10)
        axes.set_xlabel("step")
    finish(figure, panels, title=TITLE, y="ε so far, δ = 10⁻⁵", columns=3)


EXPERIMENTS = {"bdp-fig3": Experiment(TITLE, (12.0, 5.0), compute, draw)}
