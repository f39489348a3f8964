"""The fine print (M14): settings; form, adjacency, sampling and δ's split of each guarantee; its assumptions."""

from __future__ import annotations

from bayesdp.guarantee import Guarantee
from bayesdp.report import items
from bayesdp.report.html.cited import Cited, step
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.html.tables import pairs, table
from bayesdp.report.schema import Report

_ADJACENCY = {"add-remove": "add or remove one record", "replace-one": "replace one record"}
_SAMPLING = {
    "poisson": "Poisson",
    "none": "none: every record in every step",
    "without-replacement": "batches of fixed size, without replacement",
    "with-replacement": "batches drawn with replacement",
    "shuffled": "shuffled batches, each record once in an epoch",
}
_WHEN = {True: "ex-post", False: "a priori"}
_ORIENTATION = {
    "both": "records in the data and outside",
    "absent": "records outside the data only",
    "present": "records in the data only",
}
_SHARE = {"dp": "DP bound", "ex-post": "ex-post bound", "loss": "loss bound", "estimates": "estimates"}
WORDS = (
    ("privacy loss, ε", "How far the odds of “used” against “not used” can shift for someone who sees the result."),
    ("δ", "A small probability that is left out of the bound. Several bounds share it out among them: δ’s split."),
    ("attacker right", "How often someone who starts undecided is right in the end, on average over results."),
    ("attacker sure", "How sure ε and δ allow someone who starts undecided to become: another reading, never below."),
    ("a priori, ex-post", "Fixed before the run, for any run of the plan; or computed along this run, for this run."),
    ("weak form", "The chance of any event changes at most by the factor e^ε and by δ."),
    ("strong form", "Outside of an event of probability δ, the privacy loss of the result is below the bound."),
    ("adjacency", "Which two data sets are compared: with and without the record, or with another in its place."),
    ("Poisson sampling", "Every record enters every step by an independent chance of its own, the sampling rate."),
    ("clip norm", "The most by which any one record may move one update."),
    ("noise multiplier", "The noise’s standard deviation divided by the clip norm."),
    ("witnesses", "Records whose gradient norms were followed at every step: outsiders never trained on, and members."),
)


def settings(report: Report, cited: Cited) -> Html:
    """What was done, as a list."""
    here = report.settings
    rows: list[tuple[object, object]] = [("learner", cited.text("report/settings/kind"))]
    if here.records is not None:
        rows.append(("records trained on", cited.count("report/settings/records")))
    if here.steps is not None:
        rows.append(("steps", cited.count("report/settings/steps")))
    rows.append(("sampling rate", _level(cited, "sampling_rate", "not stated")))
    rows.append(("clip norm", _level(cited, "clip_norm", "none: nothing was clipped")))
    rows.append(("noise, standard deviation", _level(cited, "noise_std", "not stated")))
    rows.append(("noise multiplier", _level(cited, "noise_multiplier", "none")))
    if here.optimizer:
        rows.append(("optimiser", cited.text("report/settings/optimizer")))
    for name in here.other:
        key = f"report/settings/other/{step(name)}"
        rows.append((name, _word(cited, key)))
    if here.orders is not None:
        orders = [cited.near(f"report/settings/orders/{place}") for place in range(len(here.orders))]
        rows.append(("Rényi orders kept", join(orders, between=", ")))
    if here.conversion:
        rows.append(("from costs to ε", cited.sentence("report/settings/conversion")))
    noise = "a given seed: reproducible, not private" if report.seeded else "the operating system’s generator"
    rows.append(("noise drawn from", noise))
    rows.append(("δ of the charts", cited.small("report/delta")))
    return pairs(rows)


def forms(report: Report, cited: Cited) -> Html:
    """Form, adjacency, sampling and δ's split of all guarantees, one column each."""
    every = list(enumerate(report.guarantees))
    rows: list[tuple[object, ...]] = [
        ("when", *(_WHEN[one.ex_post] for one in report.guarantees)),
        ("form", *(one.strength for one in report.guarantees)),
        ("adjacency", *(_ADJACENCY[one.adjacency] for one in report.guarantees)),
        ("sampling", *(_SAMPLING[one.sampling] for one in report.guarantees)),
        ("speaks for", *(_ORIENTATION[one.orientation] for one in report.guarantees)),
        ("δ", *(cited.small(f"report/guarantees/{place}/delta") for place, _ in every)),
        ("δ’s split", *(_split(place, one, cited) for place, one in every)),
        ("chance that the share is wrong", *(_failure(place, one, cited) for place, one in every)),
    ]
    return table("One column for each guarantee", ("", *(one.label for one in report.guarantees)), rows, cards=True)


def assumptions(report: Report, cited: Cited) -> Html:
    """What each guarantee assumes and how it came about."""
    return join(
        el(
            "section",
            el("h4", one.label),
            sentences(f"report/guarantees/{place}/assumptions", one.assumptions, cited),
            class_=f"print-of {one.notion}",
        )
        for place, one in enumerate(report.guarantees)
        if one.assumptions
    )


def sentences(key: str, values: tuple[str, ...], cited: Cited) -> Html | None:
    """A list of the sentences at `key`; nothing where there are none."""
    if not values:
        return None
    return el("ul", [el("li", cited.sentence(f"{key}/{place}")) for place in range(len(values))])


def codes(cited: Cited) -> Html | None:
    """What the codes in sentences stand for, each with the place that links lead to."""
    found: list[dict[str, str]] = cited.value("derived/items")
    if not found:
        return None
    return el(
        "dl",
        [
            el(
                "div",
                el("dt", cited.text(f"derived/items/{place}/code")),
                el("dd", cited.text(f"derived/items/{place}/title")),
                id=items.anchor(one["code"]),
            )
            for place, one in enumerate(found)
        ],
    )


def words() -> Html:
    """What the technical words mean."""
    return pairs(WORDS)


def _word(cited: Cited, key: str) -> object:
    value = cited.value(key)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cited.text(key) if isinstance(value, str) else cited.near(key)


def _level(cited: Cited, name: str, missing: str) -> object:
    key = f"report/settings/{name}"
    value = cited.value(key)
    if value is None:
        return missing
    if isinstance(value, list):
        return cited.near(f"{key}/0"), " to ", cited.near(f"{key}/1"), " by a schedule"
    return cited.near(key)


def _split(place: int, one: Guarantee, cited: Cited) -> object:
    key = f"report/guarantees/{place}/delta_split"
    shares = [join(_SHARE.get(word, word), ": ", cited.small(f"{key}/{step(word)}")) for word in one.delta_split]
    return join(shares, between="; ") if shares else "not split"


def _failure(place: int, one: Guarantee, cited: Cited) -> object:
    return cited.small(f"report/guarantees/{place}/failure") if one.failure else "none: nothing was estimated"
