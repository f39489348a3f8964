"""Every number of the page that is not in the report itself, computed here and nowhere else.

The page shows only what stands in `document(report)`, which is also what is written as JSON: so the two cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bayesdp import attacker, convert, everybody
from bayesdp.attacker import AttackerBounds
from bayesdp.guarantee import Guarantee
from bayesdp.report import items, orientation
from bayesdp.report.group_losses import GroupLosses
from bayesdp.report.part import plain
from bayesdp.report.schema import CoverageCurve, EpsilonHistory, Intervals, RecordLosses, Report
from bayesdp.version import __version__

FORMAT = "bayesdp/report"
VERSION = 6

SHARES = (0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999)
"""Shares of people at which the curve is tabulated, as far as the witnesses support them."""

BINS = 30

MOST_PARAMETERS = 25
"""How many parameters the chart of a posterior shows."""


def document(report: Report) -> dict[str, Any]:
    """The whole of a report as JSON: what it holds, and what was computed from it for the page."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "generator": f"bayesdp {__version__}",
        "report": report.to_dict(),
        "derived": plain(derived(report)),
    }


def derived(report: Report) -> dict[str, Any]:
    """What the page says beyond the report's own fields; None for parts that are not there."""
    worst_case = _dp(report.guarantees)
    return {
        "coin": 0.5,
        "sensitive": sensitive(report),
        "guarantees": [_of_guarantee(one) for one in everybody.beside(report.guarantees)],
        "dp": worst_case,
        "curve": None if report.curve is None else _of_curve(report.curve, report.delta, worst_case),
        "history": None if report.history is None else _of_history(report.history),
        "records": None if report.records is None else of_records(report.records, worst_case),
        "groups": None if report.groups is None else _of_groups(report.groups, report.delta, worst_case),
        "posterior": None if report.posterior is None else _of_posterior(report.posterior),
        "watched": None if report.watched is None else _of_watched(report, worst_case),
        "paid": None if report.paid is None else {"noise": report.paid.noise, "metrics": report.paid.metrics()},
        "confusion": None
        if report.confusion is None
        else {"recall": report.confusion.recall, "precision": report.confusion.precision},
        "audit": None if report.audit is None else report.audit.derived(),
        "orientation": {
            "prior": orientation.PRIOR,
            "meaning": orientation.meaning(worst_case),
            "uses": [one._asdict() for one in orientation.USES],
        },
        "items": items.named(report.to_dict()),
    }


def sensitive(report: Report) -> bool:
    """Whether anything on the page is a function of private data that was not paid for."""
    measured = (
        report.curve,
        report.records,
        report.groups,
        report.norms,
        report.watched,
        report.confusion,
        report.posterior and report.posterior.non_private,
        report.audit and report.audit.canaries,
        report.shift,
    )
    history = report.history is not None and (report.history.bdp or report.history.per_instance)
    return any(one.sensitive for one in report.guarantees) or any(measured) or bool(history)


def says_nothing(guarantee: Guarantee) -> bool:
    """An infinite ε, δ = 1 or nobody covered: no guarantee at all."""
    return math.isinf(guarantee.epsilon) or guarantee.delta == 1 or guarantee.coverage == 0


def _dp(guarantees: Sequence[Guarantee]) -> float | None:
    """The ε of the DP guarantee: the smallest where there are several."""
    return min((one.epsilon for one in guarantees if one.notion == "dp"), default=None)


def _of_guarantee(given: Guarantee) -> dict[str, Any]:
    one = everybody.capped(given)
    return {
        "label": one.label,
        "no_better": given.no_better,
        "won": given.won,
        "everybody": given.dp_epsilon,
        "says_nothing": says_nothing(one),
        "attacker_success": 1.0 if says_nothing(one) else one.attacker_success(),
        "attacker_right": None if says_nothing(one) and one.attacker is None else one.attacker_right,
        "true_positives": None if one.attacker is None else _true_positives(one.attacker),
        # Beyond a million-fold a factor tells nobody anything.
        "factor": math.exp(one.epsilon) if one.epsilon < 13.8 else None,
        "delta_one_in": _one_in(one.delta),
        "confidence": 1.0 if given.no_better else 1 - one.failure,
        # Where the DP ε wins, everybody is covered by it.
        "outside": None if one.coverage is None or given.no_better else _without_noise(1 - one.coverage),
    }


def _true_positives(bounds: AttackerBounds) -> list[dict[str, float]]:
    return [
        {"false_positive_rate": rate, "true_positive_rate": bounds.true_positive_rate(rate)} for rate in attacker.SHOWN
    ]


def _of_curve(curve: CoverageCurve, delta: float, worst_case: float | None) -> dict[str, Any]:
    coverage, epsilon = np.array(curve.coverage), np.array(curve.epsilon)
    most, dp = float(coverage[-1]), min(curve.dp, math.inf if worst_case is None else worst_case)
    rows = []
    for share in [*(share for share in SHARES if share < most), most]:
        loss = float(epsilon[np.searchsorted(coverage, share)])
        won = everybody.wins(loss, dp)
        success = convert.attacker_success(min(loss, dp), delta)
        rows.append(
            {"coverage": share, "epsilon": loss, "attacker_success": success, "won": "dp" if won else "witnesses"}
        )
    below = epsilon < dp if math.isfinite(dp) else np.array([False])
    return {
        "most": most,
        "dp": dp,
        "rows": rows,
        "below_dp": float(coverage[below][-1]) if below.any() else None,
        "half": next((row for row in rows if row["coverage"] == 0.5), None),
        "ninety": next((row for row in rows if row["coverage"] == 0.9), None),
        "confidence": 1 - curve.failure,
    }


def _of_history(past: EpsilonHistory) -> dict[str, Any]:
    """The Bayesian and per-instance lines as they are drawn: nowhere above the DP ε of as many steps."""
    dp = past.dp or (math.inf,) * len(past.steps)

    def drawn(values: Sequence[float] | None) -> list[float] | None:
        return None if values is None else [min(one, most) for one, most in zip(values, dp, strict=True)]

    # The DP line is by Rényi accounting and cut off at what the whole plan costs by loss distributions.
    flat = sum(one == dp[-1] for one in dp) if past.dp is not None and math.isfinite(dp[-1]) else 0
    lines = [values for values in (past.bdp, past.per_instance) if values is not None]
    tied = any(own >= most for values in lines for own, most in zip(values, dp, strict=True) if math.isfinite(most))
    return {
        "bdp": drawn(past.bdp),
        "per_instance": drawn(past.per_instance),
        "flat_from": past.steps[-flat] if flat > 1 else None,
        "tied": tied,
    }


def of_records(records: RecordLosses, dp: float | None = None) -> dict[str, Any]:
    """The histogram of the losses and, for each group of records, how many there are and what they pay.

    Losses that are not below the DP ε count as that, and are counted: "at_dp".
    """
    known = math.inf if dp is None else dp
    tied = np.array(records.epsilon) >= known if math.isfinite(known) else np.zeros(len(records.epsilon), dtype=bool)
    epsilon = np.minimum(records.epsilon, known)
    finite = epsilon[np.isfinite(epsilon)]
    groups: dict[str, np.ndarray[Any, Any]] = {"all": np.ones(len(epsilon), dtype=bool)}
    if records.correct is not None:
        correct = np.array(records.correct)
        groups |= {"correct": correct, "wrong": ~correct}
    edges = _edges(finite)
    counts = {name: np.histogram(epsilon[chosen & np.isfinite(epsilon)], edges)[0] for name, chosen in groups.items()}
    return {
        "bins": [
            {
                "low": float(low),
                "high": float(high),
                **{name: int(values[place]) for name, values in counts.items()},
            }
            for place, (low, high) in enumerate(pairwise(edges))
        ],
        "groups": {
            name: {
                "count": int(chosen.sum()),
                "infinite": int(np.isinf(epsilon[chosen]).sum()),
                "at_dp": int(tied[chosen].sum()),
                "median": quantile(epsilon[chosen], 0.5) if chosen.any() else None,
                "ninety": quantile(epsilon[chosen], 0.9) if chosen.any() else None,
                "largest": float(epsilon[chosen].max()) if chosen.any() else None,
            }
            for name, chosen in groups.items()
        },
    }


def _of_groups(groups: GroupLosses, delta: float, worst_case: float | None) -> dict[str, Any]:
    """A line for each group: what an attacker is held to, and whose bound that is, if anybody's."""
    dp = min(groups.dp, math.inf if worst_case is None else worst_case)
    rows = []
    for loss in groups.epsilon:
        won = "dp" if loss is None or everybody.wins(loss, dp) else "witnesses"
        least = dp if loss is None else min(loss, dp)
        rows.append({"won": won, "attacker_success": convert.attacker_success(least, delta)})
    return {"dp": dp, "rows": rows, "confidence": 1 - groups.failure}


def farthest(posterior: Intervals, most: int) -> list[int]:
    """The places of at most so many parameters, those farthest from zero for the width of their interval, in order."""
    far = []
    for mean, low, high in zip(posterior.mean, posterior.low, posterior.high, strict=True):
        width = 1.0 if low is None or high is None else max(high - low, 1e-300)
        far.append(-1.0 if mean is None else abs(mean) / width)
    return sorted(sorted(range(len(far)), key=lambda place: -far[place])[:most])


def _of_posterior(posterior: Intervals) -> dict[str, Any]:
    drawn = farthest(posterior, MOST_PARAMETERS)
    known = [(low, high) for low, high in zip(posterior.low, posterior.high, strict=True) if low is not None]
    return {
        "drawn": drawn,
        "count": len(posterior.names),
        "shown": len(drawn),
        "known": len(known),
        "apart": sum(low * high > 0 for low, high in known if high is not None),
    }


def _of_watched(report: Report, worst_case: float | None) -> list[dict[str, Any]]:
    """What an attacker is held to about each watched record, and by which bound."""
    assert report.watched is not None
    dp = math.inf if worst_case is None else worst_case
    return [
        {
            "won": "dp" if everybody.wins(loss, dp) else "record",
            "attacker_success": convert.attacker_success(min(loss, dp), report.delta),
        }
        for loss in report.watched.epsilon
    ]


def _edges(finite: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bins of one width from the smallest to the largest; one bin where all are alike, none where there are none."""
    if not len(finite):
        return np.zeros(1)
    low, high = float(finite.min()), float(finite.max())
    if high - low <= 1e-9 * high:
        half = high / 20 or 0.5
        return np.array([max(0.0, low - half), high + half])
    return np.linspace(low, high, BINS + 1)


def quantile(values: np.ndarray[Any, Any], level: float) -> float:
    """An order statistic, so that infinities need no arithmetic."""
    return float(np.sort(values)[math.ceil(level * len(values)) - 1])


def _one_in(delta: float) -> int | None:
    """The largest whole n with δ ≤ 1/n, up to the rounding of δ itself; None for δ = 0."""
    return math.floor(1 / delta * (1 + 1e-12)) if delta > 0 else None


def _without_noise(share: float) -> float:
    """1 − 0.9 as 0.1."""
    return float(f"{share:.12g}")
