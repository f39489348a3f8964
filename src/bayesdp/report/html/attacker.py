"""What an attacker can do on average over the results of the plan: the trade-off curve, from its loss law (H17)."""

from __future__ import annotations

from bayesdp.attacker import AttackerBounds
from bayesdp.report.html import axis
from bayesdp.report.html.chart import Chart, Line, Mark
from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, join
from bayesdp.report.html.tables import figure, table
from bayesdp.report.schema import Report


def place_of(report: Report) -> int | None:
    """Which guarantee knows what an attacker can do, if any: the first, where there are several."""
    return next((place for place, one in enumerate(report.guarantees) if one.attacker is not None), None)


def trade_off(place: int, bounds: AttackerBounds, cited: Cited) -> Html:
    """False alarms → true cases found, at most, with the line of who guesses without looking."""
    own, more = f"report/guarantees/{place}/attacker", f"derived/guarantees/{place}"
    # Below the smallest rate known its value holds as well.
    curve = Line(
        "series-0", (0.0, *bounds.false_positive_rates), (bounds.true_positive_rates[0], *bounds.true_positive_rates)
    )
    blind = Line("zero", (0.0, 1.0), (0.0, 1.0))
    entries: list[tuple[Mark, object]] = [
        (curve, "the most that any attacker can find"),
        (blind, "guessing without looking"),
    ]
    caption: list[object] = [
        "An attacker tests whether a record was used (or that it was not), and may be wrong in two ways. Whatever the "
        "test, and whatever else the attacker knows, a rate of false alarms of "
    ]
    count = len(cited.value(f"{more}/true_positives"))
    for row in range(count):
        key = f"{more}/true_positives/{row}"
        caption += [", of " if row else "", cited.percent(f"{key}/false_positive_rate"), " finds at most "]
        caption += [cited.most(f"{key}/true_positive_rate")]
    caption += [" of the true cases. The widest gap to guessing is the attacker’s advantage, at most "]
    caption += [cited.most(f"{own}/advantage"), ": who starts undecided is right at most "]
    caption += [cited.most(f"{more}/attacker_right"), " of the time. These are averages over all results of the plan."]
    rows = [
        (cited.percent(f"{own}/false_positive_rates/{at}"), cited.most(f"{own}/true_positive_rates/{at}"))
        for at in range(len(bounds.false_positive_rates))
    ]
    chart = Chart(
        "trade-off",
        "False alarms and true cases found",
        join(caption),
        axis.exactly("false alarms", 0.0, 1.0, percent=True),
        axis.exactly("true cases found, at most", 0.0, 1.0, percent=True),
        (blind, curve),
    )
    return figure(chart, entries, caption, table(chart.title, ("false alarms", "true cases found, at most"), rows))
