"""The page: one HTML file that needs nothing else, not even a script.

Plain words first, then the guarantees side by side, the charts, and the fine print. The content security policy forbids
the page to load anything, so that opening it tells nobody.
"""

from __future__ import annotations

from importlib import resources

from bayesdp.everybody import beside
from bayesdp.report.derived import document
from bayesdp.report.html import (
    attacker,
    audit,
    figures,
    fine_print,
    groups,
    orientation,
    posterior,
    quality,
    shift,
    statement,
    watched,
)
from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join, script_json
from bayesdp.report.html.tables import table
from bayesdp.report.people import page_in_words, unit_of
from bayesdp.report.schema import Report

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
JSON_ID = "bayesdp-report"
"""The id of the `<script type="application/json">` that holds the document."""


def page(report: Report, *, public: bool = False) -> str:
    """The whole HTML text of `report`; `public`: it is the page of a bundle, which leaves things out on purpose."""
    contents = document(report)
    cited = Cited(contents)
    body = (
        el("a", "Skip to the promises", href="#promises", class_="skip"),
        _header(report, cited),
        el("main", _sections(report, cited, public)),
        _footer(cited, public),
        script_json(contents, id=JSON_ID),
    )
    return page_in_words(frame(f"Privacy report: {report.title}", contents["generator"], *body), unit_of(report))


def frame(title: str, generator: str, *body: object, policy: str = POLICY) -> str:
    """A whole HTML text around `body`, with the style sheet in it and nothing from outside."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="robots", content="noindex"),
        el("meta", name="generator", content=generator),
        el("link", rel="icon", href="data:,"),
        el("title", title),
        el("style", Html(resource("style.css"))),
    )
    return f"<!DOCTYPE html>\n{el('html', head, el('body', body), lang='en')}\n"


def resource(name: str) -> str:
    """The text of a file that lies beside this one."""
    return resources.files("bayesdp.report").joinpath(name).read_text(encoding="utf-8")


def _header(report: Report, cited: Cited) -> Html:
    facts: list[object] = [cited.text("report/settings/kind")]
    if report.settings.records is not None:
        facts.append((cited.count("report/settings/records"), " records"))
    if report.settings.steps is not None:
        facts.append((cited.count("report/settings/steps"), " steps"))
    facts.append(cited.text("report/created"))
    return el(
        "header",
        el("p", "Privacy report", class_="kicker"),
        el("h1", cited.text("report/title")),
        el("ul", [el("li", fact) for fact in facts], class_="facts"),
        statement.banners(report),
    )


def _sections(report: Report, cited: Cited, public: bool) -> Html:
    good = bool(report.metrics or report.paid or (report.progress and report.progress.values))
    return join(
        section(
            "promises",
            "What was promised, and to whom",
            el("p", _opening(report, cited), class_="opening"),
            statement.cards(report, cited),
            statement.readings(report),
            el("h3", "What these promises do not say"),
            statement.limits(report),
        ),
        section("guarantees", "The guarantees side by side", _guarantees(report, cited)),
        report.watched and section("watched", "The watched records", watched.section(report.watched, cited)),
        section("orientation", "What such numbers mean, and what others use", orientation.section(cited)),
        _trade_off(report, cited),
        report.audit and section("audit", "What an attack found", audit.section(report, report.audit, cited)),
        report.curve
        and section("shares", "How many people are how exposed", figures.coverage(report, report.curve, cited)),
        report.history
        and section("training", "How the privacy loss grew", figures.history(report, report.history, cited)),
        report.records and section("records", "Record by record", figures.records(report, report.records, cited)),
        report.groups and section("groups", "Group by group", groups.section(report.groups, cited)),
        report.shift and section("shift", "Whom the Bayesian promise is for", shift.section(report.shift, cited)),
        report.norms and section("norms", "What a record costs: gradient norms", figures.norms(report.norms, cited)),
        report.posterior
        and section("posterior", "What was learned", posterior.section(report, report.posterior, cited)),
        section("quality", "How good the model is", quality.section(report, cited)) if good else None,
        None if public else _missing(report, good),
        section("print", "Fine print", _fine_print(report, cited)),
    )


def _trade_off(report: Report, cited: Cited) -> Html | None:
    place = attacker.place_of(report)
    bounds = None if place is None else report.guarantees[place].attacker
    if place is None or bounds is None:
        return None
    return section("attacker", "What an attacker can do", attacker.trade_off(place, bounds, cited))


def section(name: str, title: str, *content: object) -> Html:
    """A part of the page under a heading of its own."""
    return el("section", el("h2", title, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title")


def _missing(report: Report, quality: bool) -> Html | None:
    absent = [
        words
        for part, words in (
            (
                report.curve,
                "the share of people within each privacy loss: no witnesses were followed over the whole run",
            ),
            (report.history, "the privacy loss over the course of training"),
            (report.records, "the privacy loss of single records"),
            (report.norms, "gradient norms"),
            (quality or None, "how good the model is"),
        )
        if part is None
    ]
    if not absent:
        return None
    return section("missing", "Not recorded in this run", el("ul", [el("li", words) for words in absent]))


def _opening(report: Report, cited: Cited) -> list[object]:
    audiences = {"dp": "to everybody", "bdp": "to people like those in the data", "per-instance": "to a single record"}
    given = [words for notion, words in audiences.items() if any(one.notion == notion for one in report.guarantees)]
    whom = given[0] if len(given) == 1 else f"{', '.join(given[:-1])} and {given[-1]}"
    return [
        "A model was trained on people’s records. This page says how much of any one record ",
        cited.text("report/released"),
        f" can give away, as a promise {whom}. An attacker here is anyone who sees ",
        cited.text("report/released"),
        " and wants to know whether a certain record was used. By tossing a coin they would be right ",
        cited.share("derived/coin"),
        " of the time.",
    ]


def _guarantees(report: Report, cited: Cited) -> Html:
    heads = (
        "for whom",
        "privacy loss",
        "δ",
        "share of people",
        "confidence",
        "attacker right",
        "attacker sure",
        "kind",
    )
    rows = []
    for place, one in enumerate(beside(report.guarantees)):
        own, more = f"report/guarantees/{place}", f"derived/guarantees/{place}"
        nothing, right = cited.value(f"{more}/says_nothing"), cited.value(f"{more}/attacker_right")
        share: object = {"dp": "everybody", "bdp": "people and runs together", "per-instance": "one record"}[one.notion]
        if one.notion == "bdp" and one.coverage is not None:
            share = cited.share(f"{own}/coverage")
        loss: object = el(
            "span", f"{one.label}{':' if nothing else ' ='} ", cited.loss(f"{own}/epsilon"), class_="whole"
        )
        if one.no_better:
            share, loss = "everybody", ("no better than for everybody: DP ε ", cited.loss(f"{more}/everybody"))
        rows.append(
            (
                (statement.AUDIENCE[one.notion], statement.who(report, one, cited)),
                loss,
                cited.small(f"{own}/delta"),
                share,
                cited.share(f"{more}/confidence"),
                ("at most ", cited.most(f"{more}/attacker_right")) if right else "no bound",
                "no bound" if nothing else ("at most ", cited.most(f"{more}/attacker_success")),
                statement.kind(one),
            )
        )
    return table("Each row is a promise of its own", heads, rows, cards=True)


def _fine_print(report: Report, cited: Cited) -> Html:
    parts: list[object] = [el("h3", "Settings"), fine_print.settings(report, cited)]
    parts += [el("h3", "Form of the guarantees"), fine_print.forms(report, cited)]
    parts += [el("h3", "Assumptions of the guarantees"), fine_print.assumptions(report, cited)]
    for name, title in (
        ("assumptions", "Assumptions of the whole run"),
        ("preprocessing", "Preprocessing and what it took from the data"),
        ("notes", "Notes"),
    ):
        listed = fine_print.sentences(f"report/{name}", getattr(report, name), cited)
        if listed:
            parts += [el("h3", title), listed]
    listed = fine_print.codes(cited)
    if listed:
        parts += [el("h3", "Codes"), el("p", "Titles of the reference of bayesdp, docs/reference."), listed]
    return join(parts, el("h3", "Words"), fine_print.words())


def _footer(cited: Cited, public: bool) -> Html:
    return el(
        "footer",
        el(
            "p",
            "Written by ",
            cited.text("generator"),
            ". Printed numbers are rounded towards the promise that is kept; the exact ones are inside this file, as "
            "JSON in the element with the id ",
            el("code", JSON_ID),
            "." if public else ", and in report.json.",
        ),
    )
