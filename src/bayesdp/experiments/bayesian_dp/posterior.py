"""S1 Figs. 9 and 10 and Table I (J8-J9): variational inference without noise on Abalone and Adult.

One split of the data, `repeats` training runs with their own batches and draws; each run's posterior is softened in
many ways, and ten samples of each are averaged for prediction. Numbers are means over the runs, with standard errors.

    way      curve                 whose ε
    paper    one-step recipe       the paper's accounting of the same training (ERR 8): no bound
    sound    tempered, widened     90 % of people, by neighbouring runs of outsiders and members (H6)
    dp       no bounds             everybody: infinite
    dp       in a public box       everybody: mean in a ball, scales in a range, widened as the ε needs
    dp       DPVI                  everybody, by clipping and noise at the same ε: `bd.VI.suggest` (paper S2)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bayesdp import convert
from bayesdp.accountant.gaussian_release import Softening, both_ways, two_sided_cost
from bayesdp.accountant.one_step_as_printed import OneStep
from bayesdp.accountant.release_account import ORDERS
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.abalone_adult import Load, Split, abalone, adult
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, Row, legend_below, pick, quiet
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.models.regressions import logistic
from bayesdp.learn.posterior_sampling.neighbour_runs import NeighbourRuns
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI
from bayesdp.learn.posterior_sampling.secret_posterior import sampler
from bayesdp.learn.posterior_sampling.witness_groups import WitnessGroups
from bayesdp.learn.records import Data
from bayesdp.learn.vi.guide import Guide, Kind
from bayesdp.learn.vi.vi import VI

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTA, FAILURE, SAMPLES = 1e-5, 1e-6, 10
COVERAGES = (0.5, 0.9)
TEMPERS = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
WIDENINGS = (0.03, 0.1, 0.2, 0.4, 0.8, 1.6)
RADIUS, SCALES = 3.0, (0.02, 0.2)
"""The public box: posterior means of standardised features are rarely longer, and scales are of the order of 1/√N."""

BOXED = (1.0, 10.0, 100.0, 1000.0)
"""DP ε that samples of the boxed posterior are widened for."""

STARTING_RATE = 0.02
"""Adam's, falling to nothing along a cosine; the last quarter of the iterates is averaged."""


@dataclass(frozen=True)
class Setting:
    """S2's rate and steps, S1's printed line, and sizes: `witnesses` of either orientation, DPVI's `epsilons`."""

    sampling_rate: float
    steps: int
    printed: dict[str, float]
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    repeats: int = 10
    witnesses: int = 300
    one_step_witnesses: int = 50
    guides: tuple[Kind, ...] = ("mean-field", "full-rank")

    def program(self, model: Probabilistic, guide: Guide, *, one_step: bool = False) -> NeighbourRuns:
        """The training run and its neighbouring runs; for the paper's recipe without averaging of iterates."""
        return NeighbourRuns(
            model,
            guide,
            optax.adam(optax.cosine_decay_schedule(STARTING_RATE, self.steps)),
            self.sampling_rate,
            self.steps,
            averaged=1 if one_step else math.ceil(self.steps / 4),
            forgetful=one_step,
        )


ABALONE = Setting(sampling_rate=0.05, steps=1000, printed={"bdp": 0.5, "dp": 7.6, "accuracy": 0.76})
ADULT = Setting(sampling_rate=0.005, steps=2000, printed={"bdp": 0.16, "dp": 0.5, "accuracy": 0.81})


def compute(split: Split, setting: Setting, seed: int) -> list[Row]:
    """Rows (run, way, curve, level, coverage, delta, spread, epsilon, …, accuracy, …), means over the repeats."""
    rows = []
    for kind in setting.guides:
        rows += _posteriors(split, setting, kind, seed)
    return [*rows, *_one_step(split, setting, seed), *_dpvi(split, setting, seed)]


def _posteriors(split: Split, setting: Setting, kind: Kind, seed: int) -> list[Row]:
    found: dict[tuple[Any, ...], list[tuple[float, float, float]]] = {}
    softenings = _softenings(split.x.shape[1])
    for repeat, mean, spread, groups in _trainings(split, setting, kind, seed):
        for key, softening in softenings:
            m, s = softening(mean, spread)
            draws = sampler(m[0], s[0], _keys(seed, repeat)[1])(SAMPLES)
            right, width = accuracy(split, draws), float(np.sqrt((s[0] if s.ndim == 2 else np.diag(s[0])).mean()))
            if key[0] == "dp":
                found.setdefault((*key, ""), []).append((key[2], right, width))
                continue
            if softening == Softening():
                found.setdefault(("dp", "no bounds", 1.0, ""), []).append((math.inf, right, width))
            people = _people(m, s, groups)
            for coverage in COVERAGES:
                epsilon = people[coverage].guarantee(DELTA).epsilon
                found.setdefault((*key, coverage), []).append((epsilon, right, width))
        right = float(np.mean((split.x_test @ mean[0] > 0) == split.y_test))
        found.setdefault(("none", "no privacy", 0.0, ""), []).append((math.inf, right, 0.0))
    return [_row(kind, *key, *np.transpose(values)) for key, values in found.items()]


def _trainings(
    split: Split, setting: Setting, kind: Kind, seed: int
) -> Iterator[tuple[int, Array, Array, WitnessGroups]]:
    """Moments of the run (row 0) and its neighbours, and who they are, for each repeat."""
    holdout = (split.x_test[: setting.witnesses], split.y_test[: setting.witnesses])
    data, model = _read(split)
    guide = Guide(kind, model.dim)
    program = setting.program(model, guide)
    for repeat in range(setting.repeats):
        rng = np.random.default_rng([seed, repeat])
        with jax.enable_x64(True):
            groups = WitnessGroups.of(data, holdout, rng.choice(len(split.y), setting.witnesses, replace=False), None)
            theta = program(_keys(seed, repeat)[0], data, groups.witnesses)
        yield repeat, *guide.moments(np.asarray(theta)), groups


def _softenings(dim: int) -> list[tuple[tuple[str, str, float], Softening]]:
    chosen = [(("sound", "tempered", c), Softening(temper=c)) for c in TEMPERS]
    chosen += [(("sound", "widened", w), Softening(extra_std=w)) for w in WIDENINGS]
    boxed = PosteriorVI(sampling_rate=1, steps=1, radius=RADIUS, scales=SCALES, samples=SAMPLES, delta=DELTA)
    chosen += [(("dp", "in a public box", e), boxed.calibrate(e, dim=dim).softening) for e in BOXED]
    return chosen


def _people(mean: Array, spread: Array, groups: WitnessGroups) -> dict[float, RepeatedWitnesses]:
    """The account of neighbouring runs after all samples, by the share of people that it is asked about."""
    costs = groups.costs(two_sided_cost(mean[0], spread[0], mean[1:], spread[1:], ORDERS))
    pairs = groups.pairs(both_ways(mean[0], spread[0], mean[1:], spread[1:]))
    books = {
        name: RepeatedRelease(cost, ORDERS, planned=SAMPLES, sampling="poisson", pairs=pairs[name])
        for name, cost in costs.items()
    }
    for book in books.values():
        book.step(SAMPLES)
    return {coverage: RepeatedWitnesses(books, coverage=coverage, failure=FAILURE) for coverage in COVERAGES}


def _one_step(split: Split, setting: Setting, seed: int) -> list[Row]:
    """S1's own accounting of the mean-field training, the last iterate being what is sampled."""
    data, model = _read(split)
    guide = Guide("mean-field", model.dim)
    program = setting.program(model, guide, one_step=True)
    outsiders = (split.x_test[: setting.one_step_witnesses], split.y_test[: setting.one_step_witnesses])
    values = []
    with jax.enable_x64(True):
        groups = WitnessGroups.of(data, outsiders, np.zeros(0, np.int64), None)
    for repeat in range(setting.repeats):
        with jax.enable_x64(True):
            theta = np.asarray(program(_keys(seed, repeat)[0], data, groups.witnesses))
        mean, variance = guide.moments(theta)
        account = OneStep(mean, variance, setting.sampling_rate, SAMPLES)
        account.step(SAMPLES)
        draws = sampler(mean[-1, 0], variance[-1, 0], _keys(seed, repeat)[1])(SAMPLES)
        width = float(np.sqrt(variance[-1, 0].mean()))
        values.append((account.guarantee(DELTA).epsilon, accuracy(split, draws), width))
    return [_row("mean-field", "paper", "one-step recipe", 1.0, "", *np.transpose(values))]


def _dpvi(split: Split, setting: Setting, seed: int) -> list[Row]:
    """DPVI with what is suggested from public quantities: the whole posterior may be published."""
    rows = []
    for epsilon in setting.epsilons:
        plan = VI.suggest(logistic, split.train, epsilon=epsilon, delta=DELTA)
        values = []
        for posterior in plan.fit_many(setting.repeats, logistic, split.train, seed=1000 * seed):
            right = float(np.mean((split.x_test @ posterior.mean > 0) == split.y_test))
            values.append((posterior.guarantees[0].epsilon, right, float(np.sqrt(np.diag(posterior.cov).mean()))))
        rows.append(_row("DPVI", "dp", "DPVI", epsilon, "", *np.transpose(values)))
    return rows


def accuracy(split: Split, draws: Array) -> float:
    """Of the prediction averaged over the samples `draws`, on the test records."""
    chance = (1 + np.tanh(split.x_test @ draws.T / 2)).mean(axis=1) / 2
    return float(np.mean((chance > 0.5) == split.y_test))


def _keys(seed: int, repeat: int) -> jax.Array:
    """One for training, one for sampling."""
    return jax.random.split(jax.random.key(1000 * seed + repeat))


def _read(split: Split) -> tuple[Data, Probabilistic]:
    """The records in float64, and the model of them."""
    with jax.enable_x64(True):
        data = jnp.asarray(split.x, float), jnp.asarray(split.y)
        return data, probabilistic(logistic, data, None)


def _row(
    run: str, way: str, curve: str, level: float, coverage: Any, epsilon: Array, right: Array, width: Array
) -> Row:
    """Means over the repeats; standard errors only where there are several."""
    middle = float(np.mean(epsilon))
    return {
        "run": run,
        "way": way,
        "curve": curve,
        "level": level,
        "coverage": coverage,
        "delta": DELTA,
        "samples": "" if run == "DPVI" else SAMPLES,
        "spread": float(np.mean(width)),
        "epsilon": middle,
        "epsilon_se": 0.0 if math.isinf(middle) else _error(epsilon),
        "attacker": convert.attacker_success(middle, 0.0 if way == "paper" else DELTA),
        "accuracy": float(np.mean(right)),
        "accuracy_se": _error(right),
        "repeats": len(epsilon),
    }


def _error(values: Array) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


_OPEN, _DOTS = {"markerfacecolor": "white"}, {"linestyle": ":"}
LOOKS: tuple[tuple[str, dict[str, str], dict[str, Any]], ...] = (
    ("mean-field, widened: 90 % of people", {"run": "mean-field", "curve": "widened"}, {"color": BLUE, "marker": "o"}),
    ("mean-field, tempered", {"run": "mean-field", "curve": "tempered"}, {"color": BLUE, "marker": "s", **_DOTS}),
    ("full-rank, widened", {"run": "full-rank", "curve": "widened"}, {"color": BLUE, "marker": "o", **_OPEN}),
    (
        "full-rank, tempered",
        {"run": "full-rank", "curve": "tempered"},
        {"color": BLUE, "marker": "s", **_OPEN, **_DOTS},
    ),
    ("one-step recipe, as printed (ERR 8)", {"curve": "one-step recipe"}, {"color": VERMILION, "marker": "D"}),
    ("DPVI at its DP ε: everybody", {"curve": "DPVI"}, {"color": GREEN, "marker": "^", "linestyle": "--"}),
    (
        "samples in a public box: everybody",
        {"run": "mean-field", "curve": "in a public box"},
        {"color": GREEN, "marker": "v", "linestyle": "-."},
    ),
)
"""Label, rows and look of each curve."""


def draw(figure: Figure, rows: Sequence[Row], printed: dict[str, float], title: str) -> None:
    """Accuracy against ε, and ε against the width of a sample; bars are standard errors over the repeats."""
    from matplotlib.ticker import LogLocator

    left, right = figure.subplots(1, 2)
    for label, where, look in LOOKS:
        found = [row for row in pick(rows, **where) if row["coverage"] in ("", 0.9)]
        found.sort(key=lambda row: row["epsilon"])
        style = {"linewidth": 1.4, "markersize": 5, "capsize": 2} | look
        values = {name: [row[name] for row in found] for name in ("epsilon", "accuracy", "accuracy_se", "epsilon_se")}
        percent = [100 * v for v in values["accuracy"]]
        errors = {"xerr": values["epsilon_se"], "yerr": [100 * v for v in values["accuracy_se"]]}
        left.errorbar(values["epsilon"], percent, label=label, **errors, **style)
        if where["curve"] in ("widened", "tempered", "one-step recipe"):
            right.errorbar([row["spread"] for row in found], values["epsilon"], yerr=values["epsilon_se"], **style)
    for name, marker in (("bdp", "*"), ("dp", "P")):
        words = f"S1 Table I, {name.upper()} ε = {printed[name]:g}"
        left.plot(printed[name], 100 * printed["accuracy"], marker, color=VERMILION, markersize=10, label=words)
    secret = [row["accuracy"] for row in pick(rows, curve="no privacy", run="mean-field")]
    left.axhline(100 * secret[0], color="#888888", linewidth=1, label="the secret mean itself: no privacy")
    low = 100 * secret[0] - 14  # what predicts worse is of no interest
    left.set(xscale="log", xlabel="ε", ylabel="test accuracy, %", ylim=(low, 100 * secret[0] + 2))
    right.set(xscale="log", yscale="log", xlabel="standard deviation of a sample, per coefficient")
    right.set_ylabel("ε of ten samples")
    for axis in (left.xaxis, right.xaxis, right.yaxis):
        axis.set_major_locator(LogLocator(subs=(1,) if axis is left.xaxis else (1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    for axes in (left, right):
        quiet(axes)
    figure.suptitle(title, fontsize=12)
    legend_below(figure, left, columns=3, fontsize=8)


def _experiment(name: str, load: Load, setting: Setting) -> Experiment:
    title = f"{name}, ten samples of a secret posterior (δ = 10⁻⁵): who is promised what, at which accuracy"

    def on_one_split(seed: int = 0, *, data_dir: str | Path | None = None) -> list[Row]:
        return compute(load(seed, data_dir), setting, seed)

    picture = partial(draw, printed=setting.printed, title=title)
    return Experiment(title, (12.0, 5.8), on_one_split, picture, ("data_dir",))


EXPERIMENTS = {
    "bdp-abalone": _experiment("Abalone", abalone, ABALONE),
    "bdp-adult": _experiment("Adult", adult, ADULT),
}
