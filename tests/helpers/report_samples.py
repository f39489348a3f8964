"""Reports to test with, and an independent reading of what a page shows."""

from __future__ import annotations

import functools
import json
import math
import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from html.parser import HTMLParser

from bayesdp.guarantee import Guarantee
from bayesdp.report import (
    CoverageCurve,
    EpsilonHistory,
    Intervals,
    NormQuantiles,
    Progress,
    RecordLosses,
    Report,
    Settings,
    sample,
)
from bayesdp.report.paid import PaidMetrics
from bayesdp.report.quality import Confusion
from bayesdp.report.watched import WatchedRecords

HOSTILE = "</script><script>window.hacked = 1</script><!-- \" ' & ]]> <img src=x onerror=alert(1)>"
VOID = {"meta", "link", "br", "hr", "img"}
SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def three() -> tuple[Guarantee, ...]:
    return (
        Guarantee(
            notion="dp", epsilon=1.9995, delta=1e-5, assumptions=("Steps were fixed.",), delta_split={"dp": 1e-5}
        ),
        Guarantee(
            notion="bdp",
            epsilon=0.61803,
            delta=1e-5,
            coverage=0.9,
            failure=1e-6,
            strength="strong",
            ex_post=True,
            sensitive=True,
            assumptions=("Witnesses are independent (H5).",),
            delta_split={"ex-post": 5e-6, "dp": 5e-6},
        ),
        Guarantee(
            notion="per-instance", epsilon=1.2345678, delta=1e-5, strength="strong", ex_post=True, sensitive=True
        ),
    )


def full() -> Report:
    """Every part filled, with numbers made up here."""
    return Report(
        title="Readmission model",
        created="2026-03-01T12:30:00",
        settings=Settings(
            kind="private SGD",
            noise_std=2.5,
            noise_multiplier=1.25,
            clip_norm=2.0,
            sampling_rate=0.0123,
            steps=1200,
            records=60000,
            optimizer="Adam",
            orders=(2, 4.5, 64),
            conversion="tail",
            other={"momentum": 0.9, "augmentation": False, "a/b~c": "odd name"},
        ),
        delta=1e-5,
        guarantees=three(),
        record="each of seven watched records; the largest is shown",
        curve=CoverageCurve(
            coverage=(0.1, 0.5001, 0.9002, 0.987), epsilon=(0.2, 0.4, 0.8, 2.0957), limit=2.0957, failure=1e-6
        ),
        history=EpsilonHistory(
            steps=(1, 600, 1200),
            dp=(0.3, 1.4, 1.9995),
            bdp=(0.2, 0.5, 0.61803),
            per_instance=(0.25, 0.9, 1.2345678),
            coverage=0.9,
        ),
        records=RecordLosses(epsilon=(0.1, 0.2, 0.2, 0.7, 1.5, 2.0957), correct=(True, True, True, True, False, False)),
        norms=NormQuantiles(
            steps=(1, 600, 1200),
            levels=(0.1, 0.5, 0.9),
            values=((0.5, 1.0, 3.0), (0.2, 0.6, 2.5), (0.0, 0.1, 2.2)),
            clip_norm=(2.0, 2.0, 2.0),
        ),
        progress=Progress(
            steps=(1, 600, 1200),
            values={"loss": (2.3, 0.4, 0.12345), "accuracy": (0.1, 0.9, 0.97531)},
            data="test data",
        ),
        metrics={"test accuracy": 0.97531, "AUC": 0.991},
        watched=WatchedRecords(names=("record 17", "record 42"), epsilon=(1.2345678, 2.5)),
        confusion=Confusion(classes=("ill", "well"), counts=((412, 13), (9, 566))),
        paid=PaidMetrics(
            kind="classes", epsilon=0.04, sensitivity=1, counts=(431, 579, -4, 22), classes=("ill", "well")
        ),
        assumptions=("The data stay where they are.",),
        preprocessing=("N is public.",),
        notes=("A note.",),
    )


@functools.cache
def small_sample() -> Report:
    """The sample, really accounted, for few people and steps."""
    return sample.sample(people=300, steps=30, evaluations=2)


def minimal() -> Report:
    return Report(
        title="Minimal",
        created="2026-03-01",
        settings=Settings(kind="private SGD"),
        delta=1e-5,
        guarantees=three()[:1],
    )


def unbounded() -> Report:
    """Nothing was clipped, seeded, gaps and infinities wherever they may be."""
    base = full()
    dp, bdp, own = three()
    return replace(
        base,
        seeded=True,
        settings=replace(base.settings, clip_norm=None, noise_multiplier=None, noise_std=(0.5, 2.5)),
        guarantees=(replace(dp, epsilon=math.inf), replace(bdp, orientation="absent"), replace(own, epsilon=math.inf)),
        curve=CoverageCurve(coverage=(0.2, 0.6, 0.8), epsilon=(0.5, 7.0, math.inf)),
        history=replace(base.history, dp=(math.inf,) * 3, per_instance=(0.5, math.inf, math.inf)),
        records=RecordLosses(epsilon=(0.1, 0.5, math.inf)),
        norms=replace(base.norms, clip_norm=None),
        progress=Progress(steps=(1, 2, 3), values={"loss": (1.0, math.nan, None)}),
        metrics={"test accuracy": math.nan},
    )


def posterior(count: int = 30, *, beside: bool = True) -> Intervals:
    """Means and intervals made up here; the parameters in the middle are nearest to zero."""
    names = tuple(
        f"column {place} of a table with long names" if place % 7 == 0 else f"c{place}" for place in range(count)
    )
    mean = tuple(0.1 * (place - count / 2 + 0.25) for place in range(count))
    half = tuple(0.21 + 0.01 * (place % 3) for place in range(count))
    low, high = (tuple(m + sign * h for m, h in zip(mean, half, strict=True)) for sign in (-1, 1))
    other = Intervals(names=names, mean=mean[::-1], low=low[::-1], high=high[::-1], probability=0.9) if beside else None
    return Intervals(names=names, mean=mean, low=low, high=high, probability=0.9, non_private=other)


def learned() -> Report:
    """A posterior, with one beside it that is not private."""
    return replace(full(), released="the posterior", posterior=posterior())


def sampled() -> Report:
    """One sample of a secret posterior: no intervals."""
    few, none = posterior(4, beside=False), (None,) * 4
    return replace(unbounded(), released="the samples", posterior=replace(few, low=none, high=none))


def hostile() -> Report:
    """Text that tries to break out, everywhere that text can stand."""
    base = full()
    return replace(
        base,
        title=HOSTILE,
        record=HOSTILE,
        settings=replace(base.settings, kind=HOSTILE, optimizer=HOSTILE, conversion=HOSTILE, other={HOSTILE: HOSTILE}),
        guarantees=(replace(three()[0], assumptions=(HOSTILE,), delta_split={HOSTILE: 1e-5}), *three()[1:]),
        progress=replace(base.progress, values={HOSTILE: (1.0, 2.0, 3.0)}, data=HOSTILE),
        metrics={HOSTILE: 0.5},
        watched=replace(base.watched, names=(HOSTILE, "b")),
        confusion=replace(base.confusion, classes=(HOSTILE, "b")),
        assumptions=(HOSTILE,),
        preprocessing=(HOSTILE,),
        notes=(HOSTILE,),
        released=HOSTILE,
        posterior=replace(posterior(4), names=(HOSTILE, "b", "c", "d"), non_private=None),
    )


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    parent: Node | None = None
    children: list[Node | str] = field(default_factory=list)

    def find(self, tag: str = "", **wanted: str) -> list[Node]:
        inner = [hit for child in self.children if isinstance(child, Node) for hit in child.find(tag, **wanted)]
        mine = (not tag or self.tag == tag) and all(
            self.attributes.get(key.rstrip("_").replace("_", "-")) == value for key, value in wanted.items()
        )
        return [self, *inner] if mine else inner

    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)

    def above(self) -> list[Node]:
        return [self, *(self.parent.above() if self.parent else [])]


class Tree(HTMLParser):
    """A page as a tree; an end tag that does not close the open element is an error."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.at = Node("", {})
        self.feed(page)
        self.close()
        assert self.at is self.root, f"<{self.at.tag}> was never closed"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        node = Node(tag, {name: value or "" for name, value in attributes}, self.at)
        self.at.children.append(node)
        if tag not in VOID:
            self.at = node

    def handle_startendtag(self, tag, attributes):
        raise AssertionError(f"<{tag}/> closes itself")

    def handle_endtag(self, tag):
        assert self.at.tag == tag, f"</{tag}> closes <{self.at.tag}>"
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.children.append(data)


def place(svg: Node, which: str, value: float) -> float:
    """Pixels of a value by the tick labels of a chart, with the drawing's own code left out."""
    ticks = [node for node in svg.find("text") if "class" not in node.attributes]
    rows = [node for node in ticks if float(node.attributes["x"]) < 60 and node.attributes["text-anchor"] == "end"]
    if which == "y":
        known = [(_tick(node), float(node.attributes["y"]) - 4) for node in rows]
    else:
        marks = [path for path in svg.find("path", class_="axis") if path.attributes["d"].endswith("v5")]
        labels = [node for node in ticks if node not in rows]
        known = [(_tick(node), points(mark)[0][0]) for node, mark in zip(labels, marks, strict=True)]
    (a, pa), (b, pb) = known[0], known[-1]
    return pa + (value - a) * (pb - pa) / (b - a)


def points(path: Node) -> list[tuple[float, float]]:
    """The points of a path in pixels."""
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path.attributes["d"])]


def _tick(node: Node) -> float:
    text = node.text().replace(",", "")
    return float(text.removesuffix(" %")) / 100 if text.endswith(" %") else float(text)


def embedded(tree: Tree) -> dict:
    (script,) = tree.root.find("script")
    assert script.attributes == {"type": "application/json", "id": "bayesdp-report"}
    return json.loads(script.text())


def lookup(document, key):
    """What stands at a key, written anew from RFC 6901."""
    for word in key.split("/"):
        name = word.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def disagreement(shown: str, how: str, value) -> str:
    """Why what is shown is not the value of the JSON, rounded the way it says; empty if it is."""
    if how == "text":
        return "" if shown == value else f"shows {shown!r} for {value!r}"
    if how == "missing" or value is None:
        return "" if value is None and shown == "–" else f"shows {shown!r} for {value!r}"
    if value == "inf":
        return "" if shown == "no guarantee" else f"shows {shown!r} for infinity"
    exact = Decimal(repr(float(value)))
    if shown.endswith(" %"):
        shown, exact = shown[:-2], exact * 100
    read = _read(shown)
    off = read - exact
    most = abs(exact) * Decimal("0.01" if how != "near" else "0.0005")
    good = {"up": 0 <= off <= most, "down": -most <= off <= 0, "near": abs(off) <= most}[how]
    return "" if good else f"shows {shown!r} ({how}) for {value!r}"


def _read(shown: str) -> Decimal:
    found = re.fullmatch(r"(?:(-?[\d,.]+)×)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", shown)
    if found:
        return Decimal(found[1] or 1).scaleb(int(found[2].translate(SUPERSCRIPT)))
    assert re.fullmatch(r"-?\d{1,3}(,\d{3})*(\.\d+)?|-?\d+(\.\d+)?", shown), shown
    return Decimal(shown.replace(",", ""))
