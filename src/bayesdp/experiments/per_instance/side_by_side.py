"""S3's numbers beside sound ones, from what the paper keeps: distances at checkpoints of a few runs, for each record.

    printed    the paper's own formula and use: a checkpoint stands for all steps up to the next, means for expectations
    estimate   a sound formula with means put in for expectations
    sound      a bound: confidence bounds for expectations, the clip norm between checkpoints, failure stated

Only "sound" lines are guarantees. Divergences at one order say little (ERR 22): each run line comes as ε at δ too.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.accountant.repeated_runs.interval import ManyRuns
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.compose import expected
from bayesdp.compose.orders import planned
from bayesdp.divergence import sgm
from bayesdp.divergence.averaged import averaged_cost
from bayesdp.divergence.hockey_stick import averaged_epsilon
from bayesdp.divergence.table import CostTable
from bayesdp.errors import Array
from bayesdp.estimate import upper_mean
from bayesdp.experiments.per_instance import as_printed

Kind = Literal["printed", "estimate", "sound"]

_LARGEST = 2**14
"""The largest order at which a step is costed: p = 2 passes it after a dozen steps."""

_MOST_PRINTED = 64
"""The largest order of the paper's figures (J17)."""


class Line(NamedTuple):
    """One number for each record: of which item, in which way, and what it is."""

    item: str
    way: Kind
    quantity: str
    values: Array
    words: str


def of_run(
    distances: Any,
    at: Any,
    *,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    order: float = 8,
    delta: float = 1e-5,
    failure: float = 0.05,
    direction: str = "remove",
) -> list[Line]:
    """A whole run of the sum rule: S3's theorems, printed and corrected, beside one-Hölder (H2) and ex-post (H3).

    Args:
        distances: |clip(g)|/C at each checkpoint, (runs, checkpoints, records), runs on the first argument's data.
        at: the number of steps before each checkpoint, rising from 0.
        noise_multiplier: of the plan, and
        sampling_rate: its rate, and
        steps: how many it has.
        order: a whole Rényi order; the paper takes 8.
        delta: at which ε is told.
        failure: of every sound line that averages.
        direction: see `ManyRuns`.

    For the sum rule averaged sensitivity (H1) is Theorem 3.2 itself (M8). Bad input gets `InputError`.
    """
    given = np.asarray(distances)
    errors.array("distances", given, least=0, ndim=3)
    places = errors.array("at", at, least=0, ndim=1).astype(int)
    alpha, count = float(errors.whole("order", order, least=2)), errors.whole("steps", steps, least=1)
    if len(places) != given.shape[1] or places[0] != 0 or (np.diff(places) <= 0).any() or places[-1] >= count:
        raise errors.refuse("at", at, f"to rise from 0 to below {count}, one for each of {given.shape[1]} checkpoints")
    z, q = errors.noise("noise_multiplier", noise_multiplier), errors.rate("sampling_rate", sampling_rate)
    stands = np.searchsorted(places, np.arange(count), side="right") - 1
    between = np.ones((len(given), count, given.shape[2]), given.dtype)
    between[:, places] = given
    sound = ManyRuns(between, np.full(count, z), np.full(count, q), direction=direction, failure=failure)
    grid, weights = planned(z, q, count, delta / 2)
    dp = WorstCaseAccountant()
    dp.step(noise_multiplier=z, sampling_rate=q, steps=count)

    def composed(a: float, orders: Array, p: float) -> Array:
        return _expected(given, stands, a, orders, p, z, q)

    def stated(a: float) -> Array:
        return composed(a, as_printed.stated_orders(a, count, 3.0 * count), 3.0 * count)

    rows = np.ones(given.shape[2])
    ours = {way: sound.by_method([alpha], way) for way in ("upper", "estimate")}
    curves = {way: sound.divergences(grid, way) for way in ("upper", "estimate")}
    name, small = f"D_{alpha:g}", f"ε at δ = {delta:g}"
    whole = np.unique(np.minimum(np.ceil(grid), _MOST_PRINTED))
    by_paper = np.stack([stated(float(a)) for a in whole], axis=-1)
    everybody = dp.epsilon(delta)
    ours_in_epsilon = {way: np.minimum(_epsilon(curve, grid, delta), everybody) for way, curve in curves.items()}
    doubled = expected.inflated_order(alpha, np.arange(count)[::-1], 2.0)
    return [
        Line(
            "Theorem 3.3 with 3.2",
            "printed",
            name,
            stated(alpha),
            "p = 3n, means of the runs, checkpoints stand for all",
        ),
        Line(
            "Theorem A.2", "printed", name, composed(alpha, doubled, 2.0), f"p = 2: the first order is {doubled[0]:.3g}"
        ),
        Line("data-independent", "sound", name, rows * sound.worst([alpha])[0], "clipped at every step"),
        Line("Theorem 3.3, corrected", "sound", name, ours["upper"]["expected"][:, 0], _SOUND),
        Line("one-Hölder (H2)", "sound", name, ours["upper"]["one-holder"][:, 0], _SOUND),
        Line("one-Hölder (H2)", "estimate", name, ours["estimate"]["one-holder"][:, 0], "means of the runs"),
        Line("Theorem 3.3 with 3.2", "printed", small, _epsilon(by_paper, whole, delta), "the least over whole orders"),
        Line("data-independent", "sound", small, rows * everybody, "DP, for everybody"),
        Line("least of E7, H2 and worst case", "sound", small, ours_in_epsilon["upper"], _SOUND),
        Line("least of E7, H2 and worst case", "estimate", small, ours_in_epsilon["estimate"], "means"),
        Line(
            "ex-post (H3)", "sound", small, _ex_post(between[0], z, q, grid, weights, delta), "of the first run alone"
        ),
    ]


def of_step(
    shifts: Any,
    *,
    sampling_rate: float,
    largest: float,
    delta: float = 1e-5,
    order: float = 8,
    weights: Any = None,
    failure: float = 0.05,
) -> list[Line]:
    """One step of any rule, from Δ(B)/s of batches B: Corollary 3.1 and Theorem 3.2 beside the averaged hockey
    stick (H7) and averaged sensitivity (H1).

    `largest` is the rule's largest shift, sup Δ/s. With `weights` the batches are all there are; without, they are a
    sample, means over it are estimates, and H1 has a confidence bound at `failure`.
    """
    r = errors.array("shifts", shifts, least=0, ndim=1)
    q = errors.number("sampling_rate", sampling_rate, above=0, most=1)
    top = errors.number("largest", largest, least=float(r.max()))
    alpha = errors.number("order", order, above=1)
    known: Kind = "estimate" if weights is None else "sound"
    hockey = max(
        float(averaged_epsilon(delta, r, sampling_rate=q, direction=way, weights=weights)) for way in ("remove", "add")
    )
    name, small = f"D_{alpha:g}", f"ε at δ = {delta:g}"
    mean = float(averaged_cost(r, alpha, sampling_rate=q, weights=weights)) / (alpha - 1)
    worst = float(sgm.cost(top, alpha, sampling_rate=q))
    corollary = as_printed.corollary_3_1(r, sampling_rate=q, delta=delta, weights=weights)
    lines = [
        ("Corollary 3.1", "printed", small, corollary, "remove direction; p = 10⁴; classical formula (ERR 14)"),
        ("hockey stick (H7)", known, small, hockey, "averaged over batches, both directions"),
        ("Theorem 3.2", "sound", name, worst / (alpha - 1), "the largest shift that the rule allows"),
        ("averaged (H1)", known, name, mean, "averaged over batches"),
    ]
    if weights is None:
        costs = sgm.cost(r, alpha, sampling_rate=q)
        bound = float(upper_mean(costs, method="betting", failure=failure, log_high=worst)) / (alpha - 1)
        lines.append(("averaged (H1)", "sound", name, bound, f"confidence bound (H9), failure {failure:g}"))
    return [Line(item, way, what, np.array([value]), words) for item, way, what, value, words in lines]


_SOUND = "confidence bounds (H9), clip norm between checkpoints"


def _expected(given: Any, stands: Any, alpha: float, orders: Array, p: float, z: float, q: float) -> Array:
    """Expected composition (E7) with plug-in means, a step of order g costed at ⌈g⌉ as in S3's code (K2)."""
    if orders[0] > _LARGEST:
        return np.full(given.shape[2], np.inf)
    squared = (given.astype(np.float64).ravel() / z) ** 2
    kinds = np.ceil(orders)
    costs = np.empty((len(orders), len(given), given.shape[2]))
    for kind in np.unique(kinds):
        table = CostTable([kind], sampling_rate=q)(squared).reshape(given.shape) / (kind - 1)
        at = np.flatnonzero(kinds == kind)
        costs[at] = np.moveaxis(table[:, stands[at]], 1, 0) * (orders[at, None, None] - 1)
    return as_printed.theorem_3_3(costs, alpha, p)


def _epsilon(divergences: Array, orders: Array, delta: float) -> Array:
    return np.asarray(convert.epsilon(divergences * (orders - 1), orders, delta))


def _ex_post(path: Any, z: float, q: float, orders: Array, weights: Array, delta: float) -> Array:
    if not len(path):
        raise errors.refuse("distances", None, "of at least one run", got="")
    accountant = InstanceAccountant(
        records=path.shape[1], orders=orders, weights=weights, cap=1.0, total_steps=len(path)
    )
    for distances in path:
        accountant.step(distances, noise_std=z, sampling_rate=q)
    return accountant.epsilon(delta)
