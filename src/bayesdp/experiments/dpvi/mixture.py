"""S2 Figs. 4 and 5 (J14): a mixture of five Gaussians in the plane, by DPVI, DP-SGLD and bd.VI.

The data are made up: means (0, 0) and (±2, ±2), covariance I, 1000 records to learn from and 100 to test on. Reported
is the mean over test records of log (1/S) Σ_s p(x | z_s), S = 100 (D12, second form). Every repeat has its own data and
its own start, means drawn from their prior, the same for all methods. Way "paper": ε as claimed, 2 MA(2σ, δ/2) for
DPVI and the formula of DP-SGLD; way "exact": all at the same ε for a record replaced. S2 states neither L nor the step
size of DP-SGLD here: L = 7 leaves room for the true means, the step was the best of 1e-6 to 1e-3 on other such data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from bayesdp.accountant.calibrate import noise_for
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.baselines.wang_sgld import WangSGLD
from bayesdp.experiments.common.style import BLUE, GREEN, GREY, PURPLE, VERMILION, Row, marked, pick, quiet
from bayesdp.experiments.dpvi import recipe
from bayesdp.experiments.dpvi.recipe import DELTA
from bayesdp.learn.models import regressions
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.vi.vi import VI

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Mixture of five Gaussians: the paper's recipe, DP-SGLD and bd.VI"

CENTRES = np.array([[0.0, 0.0], [2.0, 2.0], [2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]])
TEST, DRAWS = 100, 100
MODEL = regressions.gaussian_mixture(len(CENTRES))
REFERENCE = VI(sampling_rate=0.2, steps=2000, clip_norm=None, noise_multiplier=0)
SHOWN = 1.0
"""The ε of the components that are drawn."""


@dataclass(frozen=True)
class Size:
    """S2's numbers, and how much of it is done."""

    records: int = 1000
    repeats: int = 10
    epsilons: tuple[float, ...] = tuple(np.geomspace(0.1, 10, 5).tolist())
    sampling_rate: float = 0.003
    steps: int = 3000
    clip: float = 5.0
    bound: float = 7.0
    step_size: float = 1e-3
    reference: VI = REFERENCE
    suggested_steps: int = 1000

    def recipe(self, multiplier: float | None) -> VI:
        """Algorithm 1 as printed."""
        sigma = None if multiplier is None else multiplier / 2
        return recipe.plan("printed", sampling_rate=self.sampling_rate, steps=self.steps, clip=self.clip, sigma=sigma)

    def sgld(self, epsilon: float) -> WangSGLD:
        """The baseline, ε as its formula has it."""
        return WangSGLD(
            epsilon=epsilon,
            sampling_rate=self.sampling_rate,
            passes=self.steps * self.sampling_rate,
            bound=self.bound,
            delta=DELTA,
            step_size=self.step_size,
        )


class Repeat(NamedTuple):
    """Data of one repeat and where all methods start."""

    train: tuple[Array]
    test: Array
    start: dict[str, Array]


Sampler = Callable[[Repeat, int], Array]
"""Draws on the real line, (S, d), after a run on a repeat with a seed."""


def compute(seed: int = 0, *, size: Size | None = None) -> list[Row]:
    """Rows of likelihoods (way "paper", "exact" or "non-private"), then of components (way "component")."""
    size = Size() if size is None else size
    repeats = [_repeat(size.records, np.random.default_rng((seed, i))) for i in range(size.repeats)]
    known = probabilistic(MODEL, repeats[0].train)
    constrain = jax.jit(jax.vmap(known.constrain))
    free = _likelihoods(_posterior(size.reference), repeats, seed, constrain)[0]
    rows, components = [], _true_components()
    for way, curve, epsilon, sampler in _methods(size, repeats[0]):
        values, first = _likelihoods(sampler, repeats, seed, constrain)
        rows.append(_row(way, curve, epsilon, values, free))
        components += _components(curve, first) if way == "exact" and math.isclose(epsilon, SHOWN) else []
    return rows + components


def _methods(size: Size, repeat: Repeat) -> Iterator[tuple[str, str, float, Sampler]]:
    """(way, curve, ε, how) of everything that is compared."""
    at: dict[str, Any] = {"sampling_rate": size.sampling_rate, "steps": size.steps}
    quiet = recipe.plan("printed", sampling_rate=0.01, steps=5 * size.steps // 3, clip=1e6, sigma=0.0)
    yield "non-private", "bd.VI", math.inf, _posterior(size.reference)
    yield "non-private", "DPVI", math.inf, _posterior(quiet)
    unit = size.sgld(1.0)
    for epsilon in size.epsilons:
        claimed = noise_for(epsilon / 2, DELTA / 2, **at, engine="moments")
        yield "paper", "DPVI", epsilon, _posterior(size.recipe(claimed))
        yield "paper", "DP-SGLD", epsilon, _chain(size.sgld(epsilon))
        exact = noise_for(epsilon, DELTA, **at, adjacency="replace-one")
        yield "exact", "DPVI", epsilon, _posterior(size.recipe(exact))
        told = math.sqrt(unit.constant) * size.sampling_rate / (exact * (1 + 1e-6) * size.bound)
        yield "exact", "DP-SGLD", epsilon, _chain(size.sgld(told))
        plan = VI.suggest(
            MODEL,
            repeat.train,
            epsilon=epsilon,
            delta=DELTA,
            adjacency="replace-one",
            steps=size.suggested_steps,
        )
        yield "exact", "bd.VI", epsilon, _posterior(plan)


def _repeat(count: int, rng: np.random.Generator) -> Repeat:
    def records(count: int) -> Array:
        part = rng.integers(len(CENTRES), size=count)
        return (CENTRES[part] + rng.normal(size=(count, 2))).astype(np.float32)

    return Repeat((records(count),), records(TEST), {"mu": rng.normal(size=CENTRES.shape).astype(np.float32)})


def _posterior(plan: VI) -> Sampler:
    def run(repeat: Repeat, seed: int) -> Array:
        found = plan.fit(MODEL, repeat.train, params=repeat.start, seed=seed)
        return np.asarray(found.draw(DRAWS, seed=seed))

    return run


def _chain(plan: WangSGLD) -> Sampler:
    return lambda repeat, seed: plan.fit(MODEL, repeat.train, params=repeat.start, seed=seed).draws[-DRAWS:]


def _likelihoods(
    sampler: Sampler, repeats: Sequence[Repeat], seed: int, constrain: Callable[[Any], Any]
) -> tuple[Array, dict[str, Array]]:
    """The mean log predictive likelihood of each repeat, and the draws of the first."""
    values: list[float] = []
    first: dict[str, Array] = {}
    for i, repeat in enumerate(repeats):
        parts = {name: np.asarray(part, np.float64) for name, part in constrain(sampler(repeat, seed + i)).items()}
        parts["weight"] = parts["u"] / parts["u"].sum(axis=1, keepdims=True)
        first = first or parts
        values.append(float(np.mean(log_predictive(parts, repeat.test))))
    return np.array(values), first


def log_predictive(parts: dict[str, Array], x: Array) -> Array:
    """The log (1/S) Σ_s Σ_k π_sk N(x; μ_sk, τ_sk I) of each record of `x`."""
    away = np.sum((x[:, None, None, :] - parts["mu"]) ** 2, axis=-1)
    logs = np.log(parts["weight"]) - np.log(2 * np.pi * parts["tau"]) - away / (2 * parts["tau"])
    return np.asarray(np.logaddexp.reduce(logs.reshape(len(x), -1), axis=1) - math.log(len(parts["mu"])))


NONE = {"log_likelihood": "", "log_likelihood_se": "", "gap": "", "gap_se": "", "repeats": ""}
PLACE = {"weight": "", "x": "", "y": "", "variance": ""}


def _row(way: str, curve: str, epsilon: float, values: Array, free: Array) -> Row:
    def error(of: Array) -> float:
        return float(of.std(ddof=1) / math.sqrt(len(of)))

    gap = values - free
    scores = {"log_likelihood": float(values.mean()), "log_likelihood_se": error(values)}
    scores |= {"gap": float(gap.mean()), "gap_se": error(gap), "repeats": len(values)}
    return {"way": way, "curve": curve, "epsilon": epsilon, **scores, **PLACE}


def _components(curve: str, parts: dict[str, Array]) -> list[Row]:
    middle = {name: part.mean(axis=0) for name, part in parts.items()}
    return [
        _component(curve, float(weight), mu, float(tau))
        for weight, mu, tau in zip(middle["weight"], middle["mu"], middle["tau"], strict=True)
    ]


def _true_components() -> list[Row]:
    return [_component("truth", 1 / len(CENTRES), centre, 1.0) for centre in CENTRES]


def _component(curve: str, weight: float, centre: Array, variance: float) -> Row:
    place = {"weight": weight, "x": float(centre[0]), "y": float(centre[1]), "variance": variance}
    return {"way": "component", "curve": curve, "epsilon": SHOWN, **NONE, **place}


COLORS = {"DPVI": VERMILION, "DP-SGLD": PURPLE, "bd.VI": BLUE}
LABELS = {"DPVI": "S2's DPVI as printed", "DP-SGLD": "DP-SGLD", "bd.VI": "bd.VI, aligned (default)"}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Above the likelihoods with ε as claimed and exact, below the components at ε = 1 of the first repeat."""
    above, below = np.array(figure.subfigures(2, 1), dtype=object)
    panels = above.subplots(1, 2, sharey=True)
    titles = {"paper": "ε as claimed", "exact": "all at the same exact ε (a record replaced)"}
    for axes, (way, words) in zip(panels, titles.items(), strict=True):
        for curve in dict.fromkeys(row["curve"] for row in pick(rows, way=way)):
            points = pick(rows, way=way, curve=curve)
            look = {"color": COLORS[curve], "label": LABELS[curve]}
            marked(axes, points, "epsilon", "log_likelihood", "gap_se", **look)
        for row, style in zip(pick(rows, way="non-private"), ("-", ":"), strict=True):
            name = "bd.VI" if row["curve"] == "bd.VI" else "S2's recipe"
            axes.axhline(row["log_likelihood"], color=GREY, ls=style, linewidth=1.0, label=f"non-private, {name}")
        axes.set_xscale("log")
        axes.set_title(words, fontsize=10)
        axes.set_xlabel(f"ε, δ = {DELTA:g}")
        quiet(axes)
        axes.legend(fontsize=8, frameon=False, loc="lower right")
    panels[0].set_ylabel("mean test log-likelihood")
    pictures = list(dict.fromkeys(row["curve"] for row in pick(rows, way="component")))
    for axes, curve in zip(below.subplots(1, len(pictures), sharex=True, sharey=True), pictures, strict=True):
        _picture(axes, pick(rows, way="component", curve="truth"), GREEN, dashed=True)
        _picture(axes, pick(rows, way="component", curve=curve), COLORS.get(curve, GREEN), dashed=False)
        axes.set_title(curve if curve == "truth" else f"{LABELS[curve]}, ε = {SHOWN:g}", fontsize=10)
    figure.suptitle(TITLE, fontsize=12)


def _picture(axes: Axes, components: Sequence[Row], color: str, *, dashed: bool) -> None:
    """Circles of one standard deviation, as dark as the component is heavy."""
    from matplotlib.patches import Circle

    for row in components:
        strength = min(1.0, 0.15 + 2.5 * row["weight"])
        look = {"fill": False, "ls": "--" if dashed else "-", "linewidth": 1.0 if dashed else 2.0}
        axes.add_patch(
            Circle((row["x"], row["y"]), math.sqrt(row["variance"]), edgecolor=color, alpha=strength, **look)
        )
    axes.set_xlim(-4.5, 4.5)
    axes.set_ylim(-4.5, 4.5)
    axes.set_aspect("equal")
    axes.spines[["top", "right"]].set_visible(False)


EXPERIMENTS = {"dpvi-mixture": Experiment(TITLE, (13.0, 8.6), compute, draw)}
