"""The page's charts: share of people → ε, ε over training, record by record, gradient norms, progress."""

from __future__ import annotations

import math
from typing import Any

from bayesdp.report.html import axis
from bayesdp.report.html.chart import NARROW, Across, Band, Bars, Chart, Line, Mark, draw
from bayesdp.report.html.cited import Cited, step
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.html.tables import figure, some, table
from bayesdp.report.quality import is_share
from bayesdp.report.schema import CoverageCurve, EpsilonHistory, NormQuantiles, Progress, RecordLosses, Report

LOSS = "privacy loss (lower is better)"
_GROUP = {"correct": "the correctly classified", "wrong": "the wrongly classified"}
MANY = "Some rows of many; the JSON has them all."


def coverage(report: Report, curve: CoverageCurve, cited: Cited) -> Html:
    """Share of people → Bayesian ε, with the DP value across it."""
    if math.isfinite(cited.number("derived/curve/dp")) and cited.value("derived/curve/below_dp") is None:
        # One sentence instead of a flat line and a table of equal rows.
        return el(
            "p",
            "Whichever share of people is picked, the Bayesian ε is no better than for everybody: DP ε ",
            _dp(cited),
            ". The witnesses speak for up to ",
            cited.share("derived/curve/most"),
            " of people.",
        )
    worst_case = _worst_case(report)
    height = None if worst_case is None else report.guarantees[worst_case].epsilon
    dp = cited.number("derived/curve/dp")
    shown = [min(loss, dp) for loss in curve.epsilon]
    line = Line("bdp", (0.0, *curve.coverage), (shown[0], *shown), step=True)
    entries: list[tuple[Mark, object]] = [(line, "Bayesian ε that this share of people stays within")]
    if math.isfinite(dp) and curve.coverage[-1] < 1:
        rest = Line("rest", (curve.coverage[-1], 1.0), (dp, dp))
        entries.append((rest, ("beyond the witnesses: no better than for everybody, DP ε ", _dp(cited))))
        shown.append(dp)
    if worst_case is not None and height is not None and math.isfinite(height):
        entries.append((Across("dp", height), ("DP ε = ", _eps(cited, worst_case), ", for everybody")))
        shown.append(height)
    caption = _coverage_words(curve, cited, height)
    rows = [
        (
            cited.share(f"derived/curve/rows/{place}/coverage"),
            ("no better than for everybody: DP ε ", _dp(cited))
            if cited.value(f"derived/curve/rows/{place}/won") == "dp"
            else cited.loss(f"derived/curve/rows/{place}/epsilon"),
            cited.most(f"derived/curve/rows/{place}/attacker_success"),
        )
        for place in range(len(cited.value("derived/curve/rows")))
    ]
    data = table("Share of people and Bayesian ε", ("share of people", "Bayesian ε", "attacker sure"), rows)
    chart = Chart(
        "share-of-people",
        "Share of people and their Bayesian ε",
        join(caption),
        axis.exactly("share of people, the least exposed first", 0.0, 1.0, percent=True),
        axis.from_zero(LOSS, shown),
        tuple(mark for mark, _ in entries),
    )
    return figure(chart, entries, caption, data)


def history(report: Report, past: EpsilonHistory, cited: Cited) -> Html:
    """ε over training for all three notions."""
    share: object = "a share of people"
    if past.coverage is not None:
        share = cited.share("report/history/coverage"), " of people"
    who: object = cited.text("report/record") if report.record else "one record"
    said: list[tuple[str, str, str, object]] = [
        ("dp", "dp", "DP ε", ", for everybody"),
        ("bdp", "bdp", "Bayesian ε", (", for ", share)),
        ("per_instance", "instance", "per-instance ε", (", for ", who)),
    ]
    entries: list[tuple[Mark, object]] = []
    columns, shown = [], []
    for name, role, label, whom in said:
        room = "report" if name == "dp" else "derived"
        if getattr(past, name) is None:
            continue
        values = [cited.number(f"{room}/history/{name}/{at}") for at in range(len(past.steps))]
        nothing = "" if any(map(math.isfinite, values)) else ": no guarantee"
        entries.append((Line(role, past.steps, values), (label, whom, nothing)))
        columns.append((label, f"{room}/history/{name}"))
        shown += values
    caption: list[object] = [
        "What would have been promised, had the plan ended there; every point stands for itself, and no line is drawn "
        "above the DP ε, which everybody has. "
    ]
    caption += _history_words(cited)
    last = len(past.steps) - 1
    caption += ["After ", cited.count(f"report/history/steps/{last}"), " steps: "]
    for place, (label, key) in enumerate(columns):
        joint = " = " if math.isfinite(cited.number(f"{key}/{last}")) else ": "
        caption += [", " if place else "", label, joint, cited.loss(f"{key}/{last}")]
    places = some(len(past.steps))
    rows = [
        (cited.count(f"report/history/steps/{at}"), *(cited.loss(f"{key}/{at}") for _, key in columns)) for at in places
    ]
    chart = Chart(
        "over-training",
        "Privacy loss over training",
        join(caption, "."),
        axis.exactly("training step", 0, past.steps[-1]),
        axis.from_zero(LOSS, shown),
        tuple(mark for mark, _ in entries),
    )
    heads = ("step", *(label for label, _ in columns))
    return figure(chart, entries, [*caption, "."], _thinned("Privacy loss over training", heads, rows, len(past.steps)))


def records(report: Report, losses: RecordLosses, cited: Cited) -> Html:
    """Histogram of the per-instance ε of the witnesses, split by right and wrong where labels exist."""
    groups = ["all"] if losses.correct is None else ["correct", "wrong"]
    worst_case = _worst_case(report)
    dp = None if worst_case is None else f"report/guarantees/{worst_case}/epsilon"
    return histogram(groups, dp, _record_words(groups, cited), cited)


def histogram(groups: list[str], dp: str | None, caption: list[object], cited: Cited, who: str = "witnesses") -> Html:
    """The bins of `derived/records` (see `of_records`) for these groups, with the DP ε that stands at the key `dp`."""
    bins: list[dict[str, Any]] = cited.value("derived/records/bins")
    edges = [one["low"] for one in bins] + [one["high"] for one in bins[-1:]]
    entries: list[tuple[Mark, object]] = []
    tallest = []
    for group in groups:
        total = cited.value(f"derived/records/groups/{group}/count")
        heights = [one[group] / total if total else 0.0 for one in bins]
        bars = Bars(group, edges, heights, outline=group == "wrong")
        words = f"{_group(group, who)}: ", cited.count(f"derived/records/groups/{group}/count")
        if total and bins:
            entries.append((bars, words))
        tallest += heights
    reach = edges[-1] if edges else 1.0
    if dp is not None and cited.number(dp) <= 2 * reach:
        value = cited.number(dp)
        entries.append((Across("dp", value, upright=True), ("DP ε = ", cited.loss(dp), ", for everybody")))
        reach = max(reach, value)
    rows = [
        (
            (cited.near(f"derived/records/bins/{place}/low"), " to ", cited.near(f"derived/records/bins/{place}/high")),
            *(cited.count(f"derived/records/bins/{place}/{group}") for group in groups),
        )
        for place in range(len(bins))
    ]
    chart = Chart(
        "record-by-record",
        f"Per-instance ε of the {who}",
        join(caption),
        axis.from_zero("per-instance ε", [reach]),
        axis.from_zero("share of the group", tallest, percent=True),
        tuple(mark for mark, _ in entries),
    )
    data = table(f"How many {who}", ("per-instance ε", *(_group(group, who) for group in groups)), rows)
    return figure(chart, entries, caption, data)


def norms(past: NormQuantiles, cited: Cited) -> Html:
    """Quantiles of the gradient norms over time, as bands around the median, with the clip norm."""
    columns = list(zip(*past.values, strict=True))
    count = len(past.levels)
    entries: list[tuple[Mark, object]] = []
    for place in range(count // 2):
        other = count - 1 - place
        band = Band(f"band-{min(place, 2)}", past.steps, columns[place], columns[other])
        ends = (
            cited.percent(f"report/norms/levels/{place}"),
            " and the ",
            cited.percent(f"report/norms/levels/{other}"),
        )
        entries.append((band, ("between the ", *ends, " quantile")))
    if count % 2:
        level: object = "quantile at ", cited.percent(f"report/norms/levels/{count // 2}")
        if past.levels[count // 2] == 0.5:
            level = "median"
        entries.append((Line("median", past.steps, columns[count // 2]), level))
    shown = [value for row in past.values for value in row]
    if past.clip_norm is not None:
        clip = Line("clip", past.steps, past.clip_norm)
        last = len(past.steps) - 1
        entries.append((clip, ("clip norm, ", cited.near(f"report/norms/clip_norm/{last}"), " at the end")))
        shown += past.clip_norm
    caption: list[object] = [
        "How far one record would move an update, before clipping, among the witnesses. A record costs by its norm"
    ]
    caption += [
        ": far below the clip norm it pays less than the worst case, which always pays the clip norm."
        if past.clip_norm is not None
        else ", and nothing was clipped: there is no worst case."
    ]
    rows = [
        (
            cited.count(f"report/norms/steps/{at}"),
            *(cited.near(f"report/norms/values/{at}/{level}") for level in range(count)),
        )
        for at in some(len(past.steps))
    ]
    heads = ("step", *(cited.percent(f"report/norms/levels/{level}") for level in range(count)))
    chart = Chart(
        "gradient-norms",
        "Gradient norms over training",
        join(caption),
        axis.exactly("training step", 0, past.steps[-1]),
        axis.from_zero("gradient norm", shown),
        tuple(mark for mark, _ in entries),
    )
    data = _thinned("Quantiles of the gradient norm", heads, rows, len(past.steps))
    return figure(chart, entries, caption, data)


def progress(past: Progress, cited: Cited) -> Html:
    """One small chart for each of loss, accuracy and so on, and one table for all."""
    names = list(past.values)
    pictures = []
    for place, name in enumerate(names):
        values = past.values[name]
        present = [value for value in values if value is not None]
        share = is_share(name)
        about = el("span", name, " over training; the numbers are in the table below")
        chart = Chart(
            f"progress-{place}",
            f"{name} over training",
            about,
            axis.exactly("training step", 0, past.steps[-1]),
            axis.around(name, present, percent=share),
            (Line(f"series-{place % 3}", past.steps, values),),
        )
        pictures.append(draw(chart, *NARROW, "small"))
    rows = []
    for at in some(len(past.steps)):
        cells = [measured(cited, f"report/progress/values/{step(name)}/{at}", name) for name in names]
        rows.append((cited.count(f"report/progress/steps/{at}"), *cells))
    data = _thinned("Progress of training", ("step", *names), rows, len(past.steps))
    where = ("Measured on ", cited.text("report/progress/data"), ".") if past.data else None
    return el(
        "figure",
        el("div", pictures, class_="small-charts"),
        el("figcaption", el("p", where)) if where else None,
        el("details", el("summary", "Progress of training: the data as a table"), data),
    )


def measured(cited: Cited, key: str, name: str) -> Html:
    """A measurement, or a dash where it is missing."""
    if cited.value(key) is None:
        return el("span", "–", data_key=key, data_round="missing")
    return cited.percent(key) if is_share(name) else cited.near(key)


def _worst_case(report: Report) -> int | None:
    """Which guarantee is the DP one: the smallest where there are several."""
    found: list[tuple[float, int]] = [
        (one.epsilon, place) for place, one in enumerate(report.guarantees) if one.notion == "dp"
    ]
    return min(found)[1] if found else None


def _group(name: str, who: str = "witnesses") -> str:
    return _GROUP.get(name, f"all {who}")


def _dp(cited: Cited) -> Html:
    return cited.loss("derived/curve/dp")


def _eps(cited: Cited, place: int) -> Html:
    return cited.loss(f"report/guarantees/{place}/epsilon")


def _coverage_words(curve: CoverageCurve, cited: Cited, height: float | None) -> list[object]:
    words: list[object] = []
    # What the DP ε wins is said below.
    half, ninety = (cited.value(f"derived/curve/{name}") for name in ("half", "ninety"))
    if half and half["won"] != "dp":
        words += [
            "The less exposed half of people have a Bayesian ε of at most ",
            cited.loss("derived/curve/half/epsilon"),
        ]
        if ninety and ninety["won"] != "dp":
            words += [", nine in ten at most ", cited.loss("derived/curve/ninety/epsilon")]
        words += [". "]
    if math.isinf(cited.number("derived/curve/dp")):
        none = "There is no DP value to compare with. "
        words += [none if height is None else "Ordinary DP gives no guarantee here, so there is no line across. "]
    elif cited.value("derived/curve/below_dp") is not None:
        words += [
            "Up to a share of ",
            cited.share("derived/curve/below_dp"),
            " it is below the DP ε; beyond, it is no better than for everybody and drawn at the DP ε. ",
        ]
    else:
        words += ["It is nowhere below the DP ε: no better than for everybody, and drawn there. "]
    words += ["The witnesses speak for up to ", cited.share("derived/curve/most"), " of people"]
    if curve.failure:
        words += [". All shares hold together with confidence ", cited.share("derived/curve/confidence")]
        words += [", so that a promise whose share was fixed beforehand can be a little tighter"]
    return [*words, "."]


def _history_words(cited: Cited) -> list[object]:
    """Why lines lie on each other at first, and why the DP line ends flat, where they do."""
    words: list[object] = []
    if cited.value("derived/history/tied"):
        words += [
            "Where another line lies on the DP line, as after few steps, its own bound is not below the DP ε, and "
        ]
        words += ["the DP ε is what holds. "]
    if cited.value("derived/history/flat_from") is not None:
        words += ["From step ", cited.count("derived/history/flat_from"), " on the DP line is flat: on the way it is "]
        words += [
            "computed by a quicker bound, which is cut off at the DP ε of the whole plan. The last point is exact. "
        ]
    return words


def _record_words(groups: list[str], cited: Cited) -> list[object]:
    words: list[object] = ["What this run cost each witness. "]
    for group in groups:
        key = f"derived/records/groups/{group}"
        if cited.value(f"{key}/count"):
            words += [f"Median of {_group(group)}: per-instance ε ", cited.loss(f"{key}/median"), ". "]
        if cited.value(f"{key}/infinite"):
            words += ["For ", cited.count(f"{key}/infinite"), " of them there is no guarantee. "]
    if cited.value("derived/dp") not in (None, "inf"):
        words += ["No better than for everybody, and drawn at the DP ε: "]
        words += [cited.count("derived/records/groups/all/at_dp"), "."]
    elif cited.value("derived/records/groups/all/infinite") == 0:
        words += ["The largest is ", cited.loss("derived/records/groups/all/largest"), "."]
    return words


def _thinned(name: str, heads: Any, rows: Any, length: int) -> Html:
    return join(table(name, heads, rows), el("p", MANY) if len(rows) < length else None)
