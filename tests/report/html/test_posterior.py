"""The posterior on the page: dots and whiskers where the axis says, by name, and marked where it is not private."""

from dataclasses import replace

import pytest
from report_samples import Tree, full, learned, posterior, sampled

from bayesdp import InputError
from bayesdp.report import Intervals
from bayesdp.report.derived import MOST_PARAMETERS, derived, farthest
from bayesdp.report.html.axis import Names
from bayesdp.report.html.page import page
from bayesdp.report.html.statement import banners


def chart(report, size="wide"):
    (figure,) = Tree(page(report)).root.find("figure", id="posterior-intervals")
    (svg,) = [one for one in figure.find("svg") if one.attributes["class"] == f"chart {size}"]
    return svg


def rows(svg) -> list[tuple[str, float]]:
    """Names and heights, by the labels alone."""
    labels = [one for one in svg.find("text", text_anchor="end") if "class" not in one.attributes]
    marks = [one for one in labels if float(one.attributes["y"]) < float(svg.attributes["viewbox"].split()[3]) - 40]
    return [(one.text(), float(one.attributes["y"]) - 4) for one in marks]


def across(svg, value):
    """Pixels of a value by the ticks of the lower axis."""
    ticks = [one for one in svg.find("path", class_="axis") if one.attributes["d"].endswith("v5")]
    labels = [one for one in svg.find("text") if "class" not in one.attributes][-len(ticks) :]
    known = [
        (float(text.text()), float(tick.attributes["d"][1:].split()[0]))
        for text, tick in zip(labels, ticks, strict=True)
    ]
    (a, left), (b, right) = known[0], known[-1]
    return left + (value - a) * (right - left) / (b - a)


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_dots_and_whiskers_lie_where_the_axes_say(size):
    report = replace(full(), posterior=posterior(6, beside=False))
    svg, told = chart(report, size), report.posterior
    heights = [height for _, height in rows(svg)]
    (group,) = svg.find("g", class_="whisker dp")
    for place, (dot, line) in enumerate(zip(group.find("circle"), group.find("path"), strict=True)):
        assert float(dot.attributes["cx"]) == pytest.approx(across(svg, told.mean[place]), abs=0.05)
        assert float(dot.attributes["cy"]) == pytest.approx(heights[place], abs=0.05)
        start, end = line.attributes["d"][1:].split("H")
        assert float(start.split()[0]) == pytest.approx(across(svg, told.low[place]), abs=0.05)
        assert float(end) == pytest.approx(across(svg, told.high[place]), abs=0.05)
    (zero,) = svg.find("path", class_="line zero")
    assert float(zero.attributes["d"][1:].split()[0]) == pytest.approx(across(svg, 0), abs=0.05)


def test_what_is_not_private_is_said_wherever_it_is_shown():
    report = learned()
    text = page(report)
    root = Tree(text).root
    (banner,) = [one for one in root.find("div", role="note") if "not private" in one.text()]
    assert "it can give away anybody’s record" in banner.text()
    legend = root.find("figure", id="posterior-intervals")[0].find("ul", class_="legend")[0].text()
    assert "NOT PRIVATE: without clipping and noise" in legend
    heads = [one.text() for one in root.find("th", scope="col")]
    assert [head for head in heads if "NOT PRIVATE" in head] == [
        f"{word} (NOT PRIVATE)" for word in ("mean", "from", "to")
    ]
    alone = replace(report, posterior=replace(report.posterior, non_private=None))
    assert "NOT PRIVATE" not in page(alone)
    assert "not private" not in str(banners(alone))
    nothing = dict.fromkeys(("curve", "records", "groups", "norms", "watched", "confusion", "history"))
    assert derived(replace(alone, guarantees=report.guarantees[:1], **nothing))["sensitive"] is False
    assert derived(
        replace(report, guarantees=report.guarantees[:1], curve=None, records=None, norms=None, history=None)
    )["sensitive"]


def test_the_farthest_from_zero_are_drawn_and_all_are_told():
    report = learned()
    names = [name for name, _ in rows(chart(report))]
    assert len(names) == MOST_PARAMETERS
    assert not {f"c{place}" for place in (15, 16)} & set(names)  # the middle is nearest to zero
    table = next(one for one in Tree(page(report)).root.find("table") if "Posterior means" in one.text())
    assert len(table.find("tr")) == 1 + 30
    few = farthest(report.posterior, 3)
    assert few == sorted(few)
    assert set(few) < {*range(4), *range(26, 30)}
    text = Tree(page(report)).root.find("section", id="posterior")[0].text()
    assert "Drawn are 25 of 30 parameters" in text
    apart = sum(low * high > 0 for low, high in zip(report.posterior.low, report.posterior.high, strict=True))
    assert f"Intervals of {apart} of 30 parameters leave zero out" in text


def test_one_sample_has_dots_and_no_whiskers():
    svg = chart(sampled())
    (group,) = svg.find("g", class_="whisker dp")
    assert len(group.find("circle")) == 4
    assert not group.find("path")
    text = page(sampled())
    assert "One sample shows no interval." in text
    words = Tree(text).root.text()
    assert "whoever sees the samples and starts undecided" in words.lower()
    assert "the trained model" not in words


def test_long_names_lose_their_middle():
    ticks = Names("", ("short", "marital-status=Married-civ-spouse")).ticks(18)
    assert [text for _, text in ticks] == ["short", "marital-…iv-spouse"]
    assert all(len(text) <= 18 for _, text in ticks)
    assert Names("", ("a", "b")).place(0) == 0.75
    assert Names("", ("a", "b")).place(1) == 0.25


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"names": ()}, "names"),
        ({"mean": (1.0,)}, "mean"),
        ({"low": (None, 1.0)}, "low and high to be missing together"),
        ({"probability": 1.0}, "probability"),
        ({"non_private": Intervals(names=("c",), mean=(1,), low=(0,), high=(2,), probability=0.9)}, "same names"),
        ({"non_private": 3}, "non_private"),
    ],
)
def test_what_is_no_posterior_is_refused(change, said):
    good = {"names": ("a", "b"), "mean": (1.0, 2.0), "low": (0.0, 1.0), "high": (2.0, 3.0), "probability": 0.9}
    Intervals(**good)
    with pytest.raises(InputError, match=said):
        Intervals(**{**good, **change})
