"""What was promised to whom, in sentences for a data-protection officer, written from the `Guarantee` objects.

Sentences follow the form of the promise. How often an undecided observer guesses right is known from the law of the
plan's loss (H17), or bounded by the weak form for both data sets before the run (B12); else the weak form bounds how
sure the observer becomes on average, and the strong one, outside of an event of probability δ, how sure by this very
result. "Right" and "sure" are two readings with a scale each. The large numbers of cards that stand side by side are of
one reading, what ε and δ allow, so that they may be compared; the exact average stands apart.
"""

from __future__ import annotations

import math

from bayesdp.everybody import beside
from bayesdp.guarantee import PEOPLE, Guarantee
from bayesdp.report.derived import says_nothing, sensitive
from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.schema import Report

AUDIENCE = {"dp": "Everybody, whatever the data", "bdp": "People like those in the data", "per-instance": "One record"}
QUESTION = {
    "dp": "What is the worst that can happen?",
    "bdp": "What happens to a typical person?",
    "per-instance": "What happens to me?",
}
_NAME = {"dp": "Differential privacy", "bdp": "The Bayesian bound", "per-instance": "The per-instance bound"}
_WHOSE = {
    "dp": "any one person’s record",
    "bdp": "such a person’s record",
    "per-instance": "this record",
}
_ASKED = {
    "add-remove": "whether {whose} was used",
    "replace-one": "whether {whose} was used or another one in its place",
}
_SIDE = {
    "absent": "It speaks only for people whose records were not in the training data.",
    "present": "It speaks only for people whose records were in the training data.",
}
_RIGHT, _SURE = ("coin toss", "always right"), ("undecided", "certain")
_READINGS = {
    "allowed": ("By ε and δ, an attacker is sure to at most", "attacker_success", _SURE),
    "average": ("On average over all results, right at most", "attacker_right", _RIGHT),
    "right": ("An attacker is right at most", "attacker_right", _RIGHT),
    "sure on average": ("An attacker becomes, on average, sure to at most", "attacker_success", _SURE),
    "sure": ("An attacker is sure to at most", "attacker_success", _SURE),
}
"""What stands above the number of a card, where the number stands, and the ends of its scale."""


def banners(report: Report) -> Html:
    """What a reader must know before any number: seeded, not proved, sensitive."""
    boxes = []
    if report.seeded:
        boxes.append(seeded())
    doubtful = [one.label for one in report.guarantees if one.standing != "proved"]
    if doubtful:
        boxes.append(
            banner(
                "Not a proved bound.",
                f"The {' and the '.join(dict.fromkeys(doubtful))} on this page rests on a formula that is unsound or a "
                "heuristic. The fine print says which.",
                "alarm",
            )
        )
    if report.posterior is not None and report.posterior.non_private is not None:
        boxes.append(
            banner(
                "Holds a posterior that is not private.",
                "Because it was asked for, this page shows beside the private posterior the one without clipping and "
                "noise. Nothing on this page promises anything about that one: it can give away anybody’s record.",
                "alarm",
            )
        )
    if sensitive(report):
        boxes.append(banner("Sensitive.", _sensitive(report), "caution"))
    return join(boxes)


def cards(report: Report, cited: Cited) -> Html:
    """One card for each guarantee."""
    found = beside(report.guarantees)
    return el("div", [_card(report, place, one, cited) for place, one in enumerate(found)], class_="cards")


def readings(report: Report) -> Html | None:
    """What tells “right” from “sure”, where both are on the page."""
    if not any(one.attacker is not None for one in report.guarantees):
        return None
    return el(
        "p",
        el("strong", "“Right” and “sure” are two readings."),
        " “Right at most” counts guesses: of many attackers who each see a result of this plan and guess, at most this "
        "share are right. “Sure to at most” is about one attacker and an unlucky result: how certain it may leave one, "
        "however rare such results are. The second is never the smaller one; Bayesian and per-instance promises are "
        "told in the second.",
        class_="readings",
    )


def limits(report: Report) -> Html:
    """What the promises do not say."""
    notions = {one.notion for one in report.guarantees}
    items = [
        "They do not hide what the model teaches about people in general. A conclusion about somebody that would be "
        "drawn just as well without their record is no breach of them.",
        "They protect one record at a time. Several records of one person, or of a family, are protected less.",
        "They count this training run. Earlier runs on the same data, such as tuning, and whatever else was published "
        "from the data come on top, unless the notes say otherwise.",
    ]
    if "bdp" in notions:
        items.append(
            "The Bayesian promise is for people drawn from where the data were drawn, or for those in this data set "
            "where it speaks for members. It says nothing about other populations, nor about those whom its share "
            "leaves out."
        )
    if "per-instance" in notions:
        items.append("The per-instance promise is for that record among these data. Among others it would differ.")
        items.append(
            "It is a promise to each record that was named before the run. Of one that is picked out afterwards, "
            "because its number is the largest, it says nothing."
        )
    if report.preprocessing:
        items.append("What preprocessing took from the data and declared public is not protected: see the fine print.")
    return el("ul", [el("li", item) for item in items])


def kind(one: Guarantee) -> str:
    """A priori or ex-post, strong or weak, in words."""
    if one.no_better:
        return "that of the promise to everybody"
    when = "ex-post: for this run" if one.ex_post else "a priori: before the run"
    return f"{when}; {one.strength} form"


def _sensitive(report: Report) -> str:
    words = (
        "Bayesian and per-instance numbers, gradient norms, whatever was measured on records without noise, and the "
        "charts of these are computed from private data"
    )
    words += ", and this file holds losses record by record. " if report.records else ". "
    words += "Keep it like the data themselves and do not publish it."
    if not report.seeded and any(one.notion == "dp" for one in report.guarantees):
        words += " The DP number, its δ and the settings may be published."
    return words


def seeded() -> Html:
    """What a reader must know of a run whose noise can be computed again."""
    return banner(
        "Reproducible, not private.",
        "The random numbers of this run came from a given seed. Whoever knows or guesses the seed can compute "
        "them and take the noise away: against them, none of the promises below holds. The numbers are what "
        "the same plan promises when its noise comes from the operating system.",
        "alarm",
    )


def banner(head: str, text: str, tone: str) -> Html:
    """A box that is read before the rest; `tone` is "alarm" or "caution"."""
    return el("div", el("p", el("strong", head), " ", text), class_=f"banner {tone}", role="note")


def _card(report: Report, place: int, one: Guarantee, cited: Cited) -> Html:
    own, more = f"report/guarantees/{place}", f"derived/guarantees/{place}"
    head = (
        el("p", AUDIENCE[one.notion], who(report, one, cited), class_="audience"),
        el("h3", QUESTION[one.notion]),
    )
    if cited.value(f"{more}/says_nothing"):
        body: tuple[Html, ...] = (el("p", "No guarantee", class_="big"), el("p", *_nothing(report, one)))
    elif one.no_better:
        body = (el("p", *_no_better(one, cited, more)),)
    else:
        readings = ("allowed", "average") if one.attacker is not None else (_reading(one),)
        body = (
            *(_large(cited, more, name) for name in readings),
            el("p", *_promise(report, one, cited, own, more)),
            el("p", *_formal(one, cited, own, more), class_="formal"),
        )
    tag = None if report.seeded else el("p", "May be published", class_="tag")
    if one.sensitive:
        tag = el("p", "Sensitive: not for publication", class_="tag sensitive")
    return el("article", head, body, tag, class_=f"card {one.notion}")


def who(report: Report, one: Guarantee, cited: Cited) -> object:
    """Which record “one record” is, in words."""
    if one.notion == "per-instance" and report.record:
        return ": ", cited.text("report/record")
    return None


def _no_better(one: Guarantee, cited: Cited, more: str) -> list[object]:
    """Where the DP ε is the smaller one: everybody has that promise, so nobody is left out."""
    whom = "these people, as to everybody" if one.notion == "bdp" else "this record, as to every other"
    return [
        el("strong", "No better than for everybody: DP ε = ", cited.loss(f"{more}/everybody"), "."),
        f" What was computed for {'people like those in the data' if one.notion == 'bdp' else 'it'} brings nothing "
        f"beyond the promise to everybody, which is made to {whom}.",
    ]


def _promise(report: Report, one: Guarantee, cited: Cited, own: str, more: str) -> list[object]:
    asked = _ASKED[one.adjacency].format(whose=_WHOSE[one.notion])
    words: list[object] = ["Whoever"]
    if one.notion == "bdp" and one.coverage is not None:
        words = [
            "For at least ",
            cited.share(f"{own}/coverage"),
            f" of {PEOPLE[one.orientation]}: whoever",
        ]
    elif one.notion == "bdp":
        words = ["For a person drawn at random, like those in the data: whoever"]
    words += [" sees ", cited.text("report/released"), f" and starts undecided {asked} can "]
    reading = _reading(one)
    success = cited.most(f"{more}/{_READINGS[reading][1]}")
    if reading == "right":
        words += ["be right at most ", success, " of the time."]
        words += _allowed(cited, more) if one.attacker is not None else []
    elif reading == "sure on average":
        words += ["become, on average, at most ", success, " sure of the answer."]
    elif one.delta == 0:
        words += ["become at most ", success, " sure of the answer."]
    else:
        words += ["become at most ", success, " sure of the answer, except with a chance of one in "]
        words += [cited.count(f"{more}/delta_one_in"), "."]
    if one.notion == "dp":
        words += [" This holds for every person and all data, whatever else the observer knows."]
    if one.orientation in _SIDE:
        words += [f" {_SIDE[one.orientation]}"]
    words += [
        " It was measured along this run, for this run alone" if one.ex_post else " It was fixed before training began"
    ]
    if one.failure > 0:
        words += [", with confidence ", cited.share(f"{more}/confidence")]
    words += ["."]
    if one.notion == "bdp":
        words += _left_out(report, one, cited, more)
    if one.notion != "dp" and any(_tighter(other, one) for other in report.guarantees):
        words += [" The promise to everybody is the tighter one here, and holds as well."]
    return words


def _reading(one: Guarantee) -> str:
    """What the number of an attacker says: how often right, how sure on average, or how sure by this result."""
    if one.attacker is not None or (one.strength == "weak" and one.attacker_right is not None):
        return "right"
    return "sure on average" if one.strength == "weak" else "sure"


def _large(cited: Cited, more: str, reading: str) -> Html:
    """A number of the card, on the scale of its reading."""
    lead, key, ends = _READINGS[reading]
    size = "second" if reading == "average" else "big"
    return join(
        el("p", el("span", lead, class_="lead-in"), cited.most(f"{more}/{key}"), class_=size),
        _meter(cited.number(f"{more}/{key}"), ends),
    )


def _allowed(cited: Cited, more: str) -> list[object]:
    """How certain somebody becomes in the worst case that ε and δ allow, beside the average."""
    words: list[object] = [" That is the average over all results, and some give away more: ε and δ allow an observer "]
    words += ["to become ", cited.most(f"{more}/attacker_success"), " sure of the answer"]
    if cited.value(f"{more}/delta_one_in") is not None:
        words += [", and with a chance of one in ", cited.count(f"{more}/delta_one_in"), " certain"]
    return [*words, "."]


def _left_out(report: Report, one: Guarantee, cited: Cited, more: str) -> list[object]:
    """Whom a Bayesian guarantee does not speak for."""
    if one.coverage is None:
        words = " No share of people is singled out: this is about the average, not about anybody in particular."
        if one.strength == "weak":  # it only speaks about the mixture over people (weak BDP, ERR 6)
            words += " It does not bind an attacker who knows the person’s record."
        return [words]
    if one.coverage == 1:
        return []
    worst_case = any(other.notion == "dp" and not says_nothing(other) for other in report.guarantees)
    rest = "; they have the promise to everybody." if worst_case else "; nothing is promised to them."
    return [" Up to ", cited.most(f"{more}/outside"), " of people are not covered by this number", rest]


def _tighter(other: Guarantee, one: Guarantee) -> bool:
    """Whether `other` is a DP guarantee that allows an attacker less."""
    return other.notion == "dp" and not says_nothing(other) and other.attacker_success() < one.attacker_success()


def _formal(one: Guarantee, cited: Cited, own: str, more: str) -> list[object]:
    words: list[object] = [f"{one.label} = ", cited.loss(f"{own}/epsilon"), " at δ = ", cited.small(f"{own}/delta")]
    factor = cited.value(f"{more}/factor")
    if factor is not None and one.strength == "weak":
        words += [": no outcome becomes more than ", cited.loss(f"{more}/factor"), " times as likely, apart from δ"]
    return [*words, "."]


def _nothing(report: Report, one: Guarantee) -> list[object]:
    why = f"the {one.label} is infinite" if math.isinf(one.epsilon) else "it would speak for nobody"
    words: list[object] = [f"{_NAME[one.notion]} promises nothing here: {why}."]
    if one.notion == "dp" and report.settings.clip_norm is None:
        words += [" No record’s influence was bounded (nothing was clipped), so no noise can hide every record."]
    return words


def _meter(success: float, ends: tuple[str, str]) -> Html:
    """From one half to one. The number beside it says the same, so it is hidden from screen readers."""
    width = max(200 * (success - 0.5), 1)
    return el(
        "div",
        el("div", el("div", class_="fill", style=f"width:{width:.2f}%"), class_="track"),
        el("span", ends[0]),
        el("span", ends[1]),
        class_="meter",
        aria_hidden="true",
    )
