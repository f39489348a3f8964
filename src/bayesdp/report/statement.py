"""What was promised to whom, in sentences for a data-protection officer, written from the `Guarantee` objects.

Sentences follow the form of the promise. The weak form bounds how often an undecided observer guesses right (B12); the
strong one bounds, outside of an event of probability δ, how sure the observer of this very result can become.
"""

from __future__ import annotations

import math

from bayesdp.guarantee import Guarantee
from bayesdp.report.cited import Cited
from bayesdp.report.derived import says_nothing, sensitive, unproved
from bayesdp.report.markup import Html, el, join
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


def banners(report: Report) -> Html:
    """What a reader must know before any number: seeded, not proved, sensitive."""
    boxes = []
    if report.seeded:
        boxes.append(seeded())
    doubtful = [one.label for one in report.guarantees if unproved(one)]
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
    return el("div", [_card(report, place, cited) for place in range(len(report.guarantees))], class_="cards")


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
            "The Bayesian promise is for people drawn from where the data were drawn. It says nothing about other "
            "populations, nor about those whom its share leaves out."
        )
    if "per-instance" in notions:
        items.append("The per-instance promise is for that record among these data. Among others it would differ.")
    if report.preprocessing:
        items.append("What preprocessing took from the data and declared public is not protected: see the fine print.")
    return el("ul", [el("li", item) for item in items])


def kind(one: Guarantee) -> str:
    """A priori or ex-post, strong or weak, in words."""
    when = "ex-post: for this run" if one.ex_post else "a priori: before the run"
    return f"{when}; {one.strength} form"


def _sensitive(report: Report) -> str:
    words = (
        "Bayesian and per-instance numbers, gradient norms, whatever was measured on training records, and the charts "
        "of these are computed from private data"
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


def _card(report: Report, place: int, cited: Cited) -> Html:
    one = report.guarantees[place]
    own, more = f"report/guarantees/{place}", f"derived/guarantees/{place}"
    head = (
        el("p", AUDIENCE[one.notion], _who(report, one, cited), class_="audience"),
        el("h3", QUESTION[one.notion]),
    )
    if says_nothing(one):
        body: tuple[Html, ...] = (el("p", "No guarantee", class_="big"), el("p", *_nothing(report, one)))
    else:
        success = cited.number(f"{more}/attacker_success")
        sure = "sure to at most" if one.strength == "strong" else "right at most"
        body = (
            el(
                "p",
                el("span", f"An attacker is {sure}", class_="lead-in"),
                cited.most(f"{more}/attacker_success"),
                class_="big",
            ),
            _meter(success),
            el("p", *_promise(report, one, cited, own, more)),
            el("p", *_formal(one, cited, own, more), class_="formal"),
        )
    tag = None if report.seeded else el("p", "May be published", class_="tag")
    if one.sensitive:
        tag = el("p", "Sensitive: not for publication", class_="tag sensitive")
    return el("article", head, body, tag, class_=f"card {one.notion}")


def _who(report: Report, one: Guarantee, cited: Cited) -> object:
    if one.notion == "per-instance" and report.record:
        return ": ", cited.text("report/record")
    return None


def _promise(report: Report, one: Guarantee, cited: Cited, own: str, more: str) -> list[object]:
    asked = _ASKED[one.adjacency].format(whose=_WHOSE[one.notion])
    words: list[object] = ["Whoever"]
    if one.notion == "bdp" and one.coverage is not None:
        words = [
            "For at least ",
            cited.share(f"{own}/coverage"),
            " of the people that the data were drawn from: whoever",
        ]
    elif one.notion == "bdp":
        words = ["For a person drawn at random, like those in the data: whoever"]
    words += [" sees ", cited.text("report/released"), f" and starts undecided {asked} can "]
    success = cited.most(f"{more}/attacker_success")
    if one.strength == "weak":
        words += ["be right at most ", success, " of the time."]
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


def _left_out(report: Report, one: Guarantee, cited: Cited, more: str) -> list[object]:
    """Whom a Bayesian guarantee does not speak for."""
    if one.coverage is None:
        words = " No share of people is singled out: this is about the average, not about anybody in particular."
        if one.strength == "weak":  # ERR 6: it only speaks about the mixture over people
            words += " It does not bind an attacker who knows the person’s record."
        return [words]
    if one.coverage == 1:
        return []
    everybody = any(other.notion == "dp" and not says_nothing(other) for other in report.guarantees)
    rest = "; they have the promise to everybody." if everybody else "; nothing is promised to them."
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


def _meter(success: float) -> Html:
    """From a coin toss to certainty. The number beside it says the same, so it is hidden from screen readers."""
    width = max(200 * (success - 0.5), 1)
    return el(
        "div",
        el("div", el("div", class_="fill", style=f"width:{width:.2f}%"), class_="track"),
        el("span", "coin toss"),
        el("span", "certainty"),
        class_="meter",
        aria_hidden="true",
    )
