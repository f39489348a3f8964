"""S4 Figs. 1 and 2 (J20): how long a Langevin step may be at which ε, as printed and by exact accounting.

Noise is that of S4's Algorithm 1, variance η/N; at the posterior's temperature every exact step is twice as long. The
paper does not state its batch: a record enters a step with probability 0.01 in Fig. 1 and 0.1 in Fig. 2 here (in the
limit of much noise it does not matter). Nor does it print c₂; that of its one example stands for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayesdp.accountant.langevin import printed_bounds
from bayesdp.accountant.langevin.step_size import SCHEDULES, Langevin
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, Row, legend_below, pick, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "The largest private Langevin step: as printed (ERR 26, 31, 35) and by exact accounting"

RATES = {1: 0.01, 2: 0.1}
FIRST = {"records": 50000, "steps": 10**4, "delta": 1e-5}
EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.7)
SIZES = (10**3, 10**4, 10**5, 10**6)
BOUNDS = (0.1, 0.5, 1.0, 10.0)
SECOND_EPSILONS = (0.05, 0.2, 0.8)


def compute(
    seed: int = 0,
    *,
    epsilons: Sequence[float] = EPSILONS,
    sizes: Sequence[int] = SIZES,
    second_epsilons: Sequence[float] = SECOND_EPSILONS,
) -> list[Row]:
    """Rows (figure, schedule, records, bound, way, curve, epsilon, step, cost).

    `cost` is what that step is accounted at, for Theorem 3 as printed in Fig. 1: never below the truth, some 3 % above
    it. Nothing is drawn at random, so the seed does nothing.
    """
    del seed
    rows = [row for epsilon in epsilons for schedule in SCHEDULES for row in _first(epsilon, schedule)]
    for records in sizes:
        rows += [row for epsilon in second_epsilons for row in _second(records, epsilon)]
    return rows


def _chain(figure: int, records: int, steps: int, schedule: str) -> Langevin:
    return Langevin(
        records=records,
        batch=RATES[figure] * records,
        steps=steps,
        bound=1.0,
        schedule=schedule,  # type: ignore[arg-type]  # one of SCHEDULES
        temperature=0.5,
    )


def _first(epsilon: float, schedule: str) -> list[Row]:
    records, delta = int(FIRST["records"]), FIRST["delta"]
    chain = _chain(1, records, int(FIRST["steps"]), schedule)
    steps: list[tuple[str, str, float, float | str]] = [
        ("sound", "exact", chain.largest_step(epsilon, delta), ""),
        ("sound", "section C", chain.largest_step(epsilon, delta, "moments"), ""),
    ]
    if schedule == "decreasing":
        printed = printed_bounds.theorem_step(chain, epsilon, delta, printed_bounds.example_constant())
        steps.append(("paper", "Theorem 3", printed, chain.accountant(printed).epsilon(delta)))
    else:
        c = printed_bounds.lemma_constant(chain, epsilon, delta)
        steps.append(("paper", "Theorem 4", printed_bounds.theorem_step(chain, epsilon, delta, c), ""))
        steps.append(("paper", "Wang et al.", printed_bounds.wang_step(chain, epsilon, delta), ""))
    return [_row(1, chain, way, curve, epsilon, step, cost) for way, curve, step, cost in steps]


def _second(records: int, epsilon: float) -> list[Row]:
    """δ = 1/N, T = N; every L at once for N = 10⁴: the noise multiplier does not know about L."""
    delta = 1 / records
    chain = _chain(2, records, records, "decreasing")
    z = chain.noise_multiplier(chain.largest_step(epsilon, delta))
    rows = []
    for bound in BOUNDS if records == 10**4 else (1.0,):
        one = dataclasses.replace(chain, bound=bound)
        printed = printed_bounds.theorem_step(one, epsilon, delta, printed_bounds.example_constant())
        rows.append(_row(2, one, "sound", "exact", epsilon, one.step_size(z), ""))
        rows.append(_row(2, one, "paper", "Theorem 3", epsilon, printed, ""))
    return rows


def _row(figure: int, chain: Langevin, way: str, curve: str, epsilon: float, step: float, cost: float | str) -> Row:
    about = {"figure": figure, "schedule": chain.schedule, "records": chain.records, "bound": chain.bound}
    return {**about, "way": way, "curve": curve, "epsilon": epsilon, "step": step, "cost": cost}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Three panels: the bounds against each other, then data sizes, then gradient bounds."""
    first, second, third = figure.subplots(1, 3)
    for curve, schedule, look in (
        ("Theorem 3", "decreasing", {"color": VERMILION, "label": "Theorem 3 as printed, first step"}),
        ("Theorem 4", "fixed", {"color": VERMILION, "ls": "--", "label": "Theorem 4 as printed, fixed step"}),
        ("Wang et al.", "fixed", {"color": VERMILION, "ls": ":", "label": "Wang et al., fixed step"}),
        ("section C", "decreasing", {"color": BLUE, "label": "section C (moments), first step"}),
        ("section C", "fixed", {"color": BLUE, "ls": "--", "label": "section C (moments), fixed step"}),
        ("exact", "decreasing", {"color": GREEN, "label": "exact, first step"}),
        ("exact", "fixed", {"color": GREEN, "ls": "--", "label": "exact, fixed step"}),
    ):
        _line(first, pick(rows, figure=1, curve=curve, schedule=schedule), **look)
    other = pick(rows, figure=2)
    for name in sorted({row["records"] for row in other}):
        _pair(second, pick(other, records=name, bound=1.0), f"N = {name:,}")
    for name in sorted({row["bound"] for row in pick(other, records=10**4)}):
        _pair(third, pick(other, records=10**4, bound=name), f"L = {name:g}")
    first.set(title="N = 50,000, T = 10,000, L = 1, δ = 10⁻⁵", ylabel="largest step η")
    second.set(title="first step; T = N, δ = 1/N, L = 1")
    third.set(title="first step; N = T = 10⁴, δ = 10⁻⁴")
    for axes, ticks in ((first, EPSILONS), (second, SECOND_EPSILONS), (third, SECOND_EPSILONS)):
        axes.set(xscale="log", yscale="log", xlabel="ε")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.title.set_fontsize(10)
        quiet(axes)
    figure.suptitle(TITLE, fontsize=12)
    legend_below(figure, first, columns=4)


def _pair(axes: Axes, rows: Sequence[Row], name: str) -> None:
    exact = pick(rows, way="sound")
    _line(axes, pick(rows, way="paper"), color=VERMILION, marker="o", markersize=3)
    _line(axes, exact, color=GREEN, marker="o", markersize=3)
    if exact:
        last = max(exact, key=lambda row: row["epsilon"])
        end = (last["epsilon"], last["step"])
        axes.annotate(name, end, (5, -3), textcoords="offset points", fontsize=8, annotation_clip=False)


def _line(axes: Axes, rows: Sequence[Row], **look: object) -> None:
    points = sorted((row["epsilon"], row["step"]) for row in rows)
    axes.plot([x for x, _ in points], [y for _, y in points], **({"linewidth": 1.6} | look))  # type: ignore[arg-type]


EXPERIMENTS = {"sgld-stepsize": Experiment(TITLE, (12.5, 5.2), compute, draw)}
