"""Draw the pictures of docs/concepts from the library's own numbers: `make pictures`."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import bayesdp as bd

PLACE = Path(__file__).parents[1] / "pictures"
BLUE, GREEN, RED, GREY = "#0072b2", "#009e73", "#d55e00", "#777777"
DELTA, NOISE, RATE, STEPS = 1e-5, 2.0, 0.02, 200


def bells(axes: Axes, shift: float, title: str, colour: str) -> None:
    """Draw the laws of one noisy sum with and without a record that moves it by `shift`, in units of the noise."""
    at = np.linspace(-4, 5, 300)
    for middle, name, style in ((0.0, "without the record", "--"), (shift, "with it", "-")):
        axes.plot(at, np.exp(-((at - middle) ** 2) / 2), style, color=colour if middle else GREY, label=name)
    axes.fill_between(at, np.exp(-(at**2) / 2), np.exp(-((at - shift) ** 2) / 2), color=colour, alpha=0.15, linewidth=0)
    axes.set(title=title, yticks=[], xlabel="what is released")
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.set_ylim(0, 1.35)


def worst_and_named() -> Figure:
    """Draw one step for the worst record and for a named one."""
    figure = Figure(figsize=(7.5, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    bells(left, 1.0, "the worst record: as long as the clip norm", RED)
    bells(right, 0.3, "a named record: as long as its own gradient", BLUE)
    return figure


def witnesses() -> tuple[bd.BayesianAccountant, bd.WorstCaseAccountant, bd.InstanceAccountant]:
    """Account for one run whose gradients are heavy-tailed, as on the page on accounting."""
    size = np.random.default_rng(0).weibull(0.5, 4000) * 0.1
    typical, everybody = bd.BayesianAccountant(cap=1.0), bd.WorstCaseAccountant()
    named = bd.InstanceAccountant(records=3, cap=1.0)
    for step in range(STEPS):
        norms = np.minimum(size / (1 + step / 50) ** 0.5, 1.0)
        plan = {"noise_std": NOISE, "sampling_rate": RATE}
        typical.step(norms[:2000], **plan)
        typical.step(norms[2000:], **plan, orientation="present")
        named.step(norms[:3], **plan)
    everybody.step(noise_multiplier=NOISE, sampling_rate=RATE, steps=STEPS)
    return typical, everybody, named


def three_promises() -> Figure:
    """Draw share of people → ε of one run, the DP ε above it and one record below."""
    typical, everybody, named = witnesses()
    dp = everybody.epsilon(DELTA)
    shares = np.linspace(0.05, 0.99, 95)
    curve = typical.curve(DELTA)
    found = np.minimum([curve.at(share) for share in shares], dp)
    own = named.epsilon(DELTA)
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(dp, color=RED, label=f"everybody: DP ε = {dp:.2f}")
    axes.plot(shares, found, color=GREEN, label="people like those in the data: Bayesian ε")
    axes.plot([0.5], [own[0]], "o", color=BLUE, label=f"one named record: per-instance ε = {own[0]:.2f}")
    axes.set(
        xlabel="share of people, the less exposed first", ylabel="privacy loss ε", xlim=(0, 1), ylim=(0, 1.15 * dp)
    )
    axes.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.02, 0.88))
    return figure


def what_epsilon_means() -> Figure:
    """Draw what an attacker who starts undecided can reach, by ε: how sure, and how often right."""
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    at = np.linspace(0.01, 8, 200)
    axes.plot(at, 1 / (1 + np.exp(-at)), color=RED, label="how sure one result may make them (ε alone)")
    noises = np.geomspace(0.45, 40, 25)
    points = []
    for noise in noises:
        account = bd.WorstCaseAccountant()
        account.step(noise_multiplier=float(noise))
        points.append((account.epsilon(DELTA), account.attacker().right))
    axes.plot(*zip(*points, strict=True), color=BLUE, label="how often they guess right (Gaussian noise, δ = 10⁻⁵)")
    axes.axhline(0.5, color=GREY, linestyle=":", label="a coin")
    axes.set(xlabel="ε", ylabel="share, or certainty", xlim=(0, 8), ylim=(0.45, 1.01))
    axes.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes.legend(frameon=False, loc="lower right")
    return figure


def main() -> None:
    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "bayesdp", "font.family": "sans-serif", "font.size": 9,
         "axes.spines.top": False, "axes.spines.right": False}
    )  # fmt: skip
    PLACE.mkdir(exist_ok=True)
    for draw in (worst_and_named, three_promises, what_epsilon_means):
        name = draw.__name__.replace("_", "-")
        draw().savefig(PLACE / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
