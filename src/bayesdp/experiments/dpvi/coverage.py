"""Do credible intervals cover under DP noise, parameter by parameter? Simulated regressions over a grid (H27).

Each data set has parameters of its own, drawn from a law like the prior, so that an exact posterior's intervals would
cover with about their nominal probability. Plans are those of `bd.Newton` at ε = 1: nothing is tuned to the truth. Data
sets of one cell lie side by side in one program, which takes the steps that `fit` takes, with noise of `jax.random`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from bayesdp.data.dataset import Features, Labels
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, VERMILION, Row, quiet
from bayesdp.learn.loop.objective import Params, StepSettings
from bayesdp.learn.models import regressions
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.second_order import reading
from bayesdp.learn.second_order.doubts import doubts
from bayesdp.learn.second_order.exact import laplace
from bayesdp.learn.second_order.newton import Newton, near, public_shape
from bayesdp.learn.second_order.score import Releases, Scores
from bayesdp.learn.second_order.shares import shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "How often nominal 90 % intervals contain the truth under DP noise, parameter by parameter"
EPSILON, DELTA, LEVEL = 1.0, 1e-5, 0.9
DATA_SETS = 100
RARE = 0.02


class Cell(NamedTuple):
    """What is simulated: a family, how its columns are, N and d."""

    family: str
    columns: str
    records: int
    dim: int

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.family}, {self.columns}, N = {self.records:,}, d = {self.dim}"


CELLS = (
    *(Cell(family, "independent", n, 5) for n in (2000, 10_000) for family in ("logistic", "linear", "poisson")),
    *(Cell("logistic", columns, 2000, 5) for columns in ("correlated", "categories", "rare")),
    *(Cell("logistic", columns, 10_000, 5) for columns in ("correlated", "categories", "rare")),
    Cell("logistic", "independent", 300, 5),
    Cell("logistic", "independent", 2000, 50),
)


class Simulated(NamedTuple):
    """A data set and the parameters that made it, on the real line; the last column is the constant."""

    truth: Array
    x: Features
    y: Labels


def simulated(rng: np.random.Generator, cell: Cell) -> Simulated:
    """Columns of variance 1 (or codes of four categories), answers from the model; a linear target is standardised."""
    n, d = cell.records, cell.dim
    w = rng.normal(size=d + 1) * (0.3 if cell.family == "poisson" else 1) / np.sqrt(max(d / 5, 1))
    x = rng.normal(size=(n, d))
    if cell.columns == "correlated":
        x = np.sqrt(0.2) * x + np.sqrt(0.8) * rng.normal(size=(n, 1))
    if cell.columns == "categories":
        x[:, 1:5] = np.eye(4)[rng.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1])]
    if cell.columns == "rare":
        scale = np.sqrt(RARE * (1 - RARE))
        x[:, 0], w[0] = ((rng.random(n) < RARE) - RARE) / scale, w[0] * scale
    rows: Features = np.concatenate([x, np.ones((n, 1))], axis=1).astype(np.float32)
    if cell.family == "linear":
        w[-1] = 0
        noise = float(np.exp(0.3 * rng.normal())) * 0.7
        size = float(np.sqrt(np.var(rows @ w) + noise**2))
        w, noise = w / size, noise / size
        return Simulated(np.append(np.log(noise), w), rows, (rows @ w + noise * rng.normal(size=n)).astype(np.float32))
    if cell.family == "poisson":
        return Simulated(w, rows, rng.poisson(np.exp(rows @ w)).astype(np.int32))
    return Simulated(w, rows, (rng.random(n) < 1 / (1 + np.exp(-rows @ w))).astype(np.int32))


def runner(objective: Scores, plan: Newton, first: Params) -> Callable[[Array, Array, jax.Array], Releases]:
    """All steps of many data sets, as `fit` takes them: the same sums, the same noise level, the same moves."""
    noise = jnp.asarray(plan.noise, jnp.float32)

    def one(given: tuple[jax.Array, jax.Array, jax.Array]) -> Releases:
        x, y, key = given

        def step(carry: tuple[Params, Releases], t: jax.Array) -> tuple[tuple[Params, Releases], None]:
            params, state = carry
            place = objective.locate(None, params)
            total, _ = objective.clip_sum(place, (x, y), jnp.ones(len(x)), 1.0)
            noisy = total + noise[t] * jax.random.normal(jax.random.fold_in(key, t), total.shape)
            now = StepSettings(t, jnp.ones(()), noise[t], jnp.int32(0), None)
            moved = objective.advance(now, place, state, noisy / len(x))
            return (moved.params, moved.state), None

        start = (first, objective.start(first))
        (_, state), _ = jax.lax.scan(step, start, jnp.arange(plan.steps))
        return state

    program = jax.jit(lambda xs, ys, keys: jax.lax.map(one, (xs, ys, keys)))
    return lambda xs, ys, keys: jax.tree.map(np.asarray, program(xs, ys, keys))


def compute(seed: int = 0, *, data_sets: int = DATA_SETS, cells: Sequence[Cell] = CELLS) -> list[Row]:
    """Rows (cell, parameter, coverage, standard_error, width, marked): shares over data sets, of each parameter alone.

    `width` is the median of an interval's width over that of the exact posterior's (Laplace), of the first ten data
    sets; `marked` the share of intervals that said not to be believed, which `coverage_unmarked` leaves out.
    """
    return [row for cell in cells for row in _of_cell(cell, seed, data_sets)]


def _of_cell(cell: Cell, seed: int, data_sets: int) -> list[Row]:
    rng = np.random.default_rng([seed, cell.records, cell.dim, len(cell.columns), len(cell.family)])
    samples = [simulated(rng, cell) for _ in range(data_sets)]
    form = samples[0][1:]
    model = probabilistic(getattr(regressions, cell.family), form)
    plan = Newton(delta=DELTA).calibrate(EPSILON)
    objective = Scores(model, cell.records, plan.bound_for(cell.records, model.dim), shares(plan.steps))
    run = runner(objective, plan, objective.begin(near(model), public_shape(model, form)))
    keys = jax.random.split(jax.random.key(seed), data_sets)
    found = run(np.stack([one.x for one in samples]), np.stack([one.y for one in samples]), keys)
    rows, names = _contrasts(cell, model.labels)
    inside, ratios, marks = [], [], []
    for i, one in enumerate(samples):
        answer = reading.read(plan.told(model, objective, jax.tree.map(lambda leaf, i=i: leaf[i], found)))
        std = np.sqrt(np.diagonal(rows @ answer.cov @ rows.T))
        inside.append(np.abs(rows @ (answer.mean - one.truth)) <= norm.ppf(0.5 + LEVEL / 2) * std)
        doubted = np.array([bool(words) for words in doubts(answer)])
        marks.append((np.abs(rows) > 0) @ doubted > 0)
        if i < 10:
            exact = laplace(model, (one.x, one.y))
            ratios.append(std / np.sqrt(np.diagonal(rows @ exact.cov @ rows.T)))
    covered, marked = np.array(inside), np.array(marks)
    return [
        {
            "cell": cell.name,
            "parameter": names[j],
            "data_sets": data_sets,
            "coverage": float(covered[:, j].mean()),
            "standard_error": float(np.sqrt(max(covered[:, j].mean() * (1 - covered[:, j].mean()), 1e-4) / data_sets)),
            "width": float(np.median(np.array(ratios)[:, j])),
            "marked": float(marked[:, j].mean()),
            "coverage_unmarked": float(covered[~marked[:, j], j].mean()) if not marked[:, j].all() else float("nan"),
        }
        for j in range(len(names))
    ]


def _contrasts(cell: Cell, labels: tuple[str, ...]) -> tuple[Array, list[str]]:
    """What is looked at: parameters, and differences to the first category in place of categories and the intercept."""
    rows = np.eye(len(labels))
    if cell.columns != "categories":
        return rows, list(labels)
    first = labels.index("w[1]")
    for other in range(1, 4):
        rows[first + other, first] = -1
    keep = [j for j in range(len(labels)) if j not in (first, len(labels) - 1)]
    names = [f"{name} - w[1]" if name in ("w[2]", "w[3]", "w[4]") else name for name in labels]
    return rows[keep], [names[j] for j in keep]


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """The coverage of every parameter of every cell; open where most of its intervals were marked."""
    axes = figure.subplots()
    names = list(dict.fromkeys(row["cell"] for row in rows))
    axes.axvspan(0.84, 0.97, color=BLUE, alpha=0.12)
    axes.axvline(LEVEL, color="#999999", linewidth=1)
    for place, name in enumerate(names):
        own = [row for row in rows if row["cell"] == name]
        for row in own:
            held = row["marked"] < 0.5
            axes.plot(
                row["coverage"], place, "o", color=BLUE if held else VERMILION, fillstyle="full" if held else "none"
            )
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("share of nominal 90 % intervals that contain the truth; open: marked as not to be believed")
    axes.set_title(f"{TITLE}\n(ε = {EPSILON:g}; band: 84 to 97 %)", fontsize=10)
    quiet(axes)
    figure.tight_layout()


EXPERIMENTS = {"dpvi-coverage": Experiment(TITLE, (10.0, 6.4), compute, draw)}
