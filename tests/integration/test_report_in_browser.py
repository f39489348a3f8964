"""The page in a real browser: it renders, says nothing on the console, fits a phone, and its numbers are the JSON's."""

import json
import os
import re

import pytest
from report_browser import CUT_OFF, LEFT_OUT, NUMBERS, PALE, SHOWN, TOO_WIDE, UNMARKED, missing, press
from report_samples import disagreement, full, hostile, learned, lookup, minimal, sampled, small_sample, unbounded

from bayesdp.report import write

pytestmark = pytest.mark.simulation

REPORTS = ("sample", "full", "minimal", "unbounded", "hostile", "learned", "sampled")

CHARTS = {"minimal": 0, "sample": 5, "learned": 5, "sampled": 5, "hostile": 5}
"""How many charts the page has beside the small ones; 4 where it is not said."""

if missing() and os.environ.get("BAYESDP_BROWSER") != "required":
    pytest.skip(LEFT_OUT, allow_module_level=True)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    makers = {"full": full, "minimal": minimal, "unbounded": unbounded, "hostile": hostile}
    makers |= {"learned": learned, "sampled": sampled}
    reports = {name: make() for name, make in makers.items()}
    reports["sample"] = small_sample()
    return {name: write(report, folder / f"{name}.html") for name, report in reports.items()}


@pytest.mark.parametrize("name", REPORTS)
def test_it_renders_quietly_and_loads_nothing(browser, pages, name):
    browser.open(pages[name])
    assert browser.run("return document.readyState") == "complete"
    assert browser.log() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.run("return [document.compatMode, typeof window.hacked]") == ["CSS1Compat", "undefined"]
    heights = browser.run("return [...document.querySelectorAll('main > section')].map(e => e.offsetHeight)")
    assert len(heights) >= 3
    assert min(heights) > 60
    expected = ["wide"] * CHARTS.get(name, 4)
    assert [one for one in browser.run(SHOWN) if one != "small"] == expected


@pytest.mark.parametrize("name", REPORTS)
def test_every_number_equals_the_json(browser, pages, name):
    browser.open(pages[name])
    text = browser.run("return document.getElementById('bayesdp-report').textContent")
    contents = json.loads(text)
    numbers = browser.run(NUMBERS)
    assert len(numbers) > 15
    for key, how, shown in numbers:
        problem = disagreement(shown, how, lookup(contents, key))
        assert not problem, f"{key} {problem}"
    if name != "hostile":  # its texts have digits in names, which are keys of the JSON
        assert browser.run(UNMARKED) == []


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [320, 360, 700, 1100])
def test_it_fits_the_screen(browser, pages, name, width):
    browser.open(pages[name], width=width)
    browser.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert browser.run("return innerWidth") == width
    assert browser.run(TOO_WIDE) == []
    if name != "hostile":  # a metric's name may be longer than a chart is wide
        assert browser.run(CUT_OFF) == []
    if name != "minimal":
        assert [one for one in browser.run(SHOWN) if one != "small"] == [
            "narrow" if width < 672 else "wide"
        ] * CHARTS.get(name, 4)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["sample", "unbounded", "learned"])
def test_text_stands_out_from_its_ground(browser, pages, name, scheme):
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(pages[name])
    browser.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.run(PALE) == []
    browser.cdp("Emulation.setEmulatedMedia", features=[])


def test_the_keyboard_reaches_everything(browser, pages):
    browser.open(pages["sample"])
    press(browser, "Tab")
    assert browser.run("return document.activeElement.className") == "skip"
    assert browser.run("return document.activeElement.getBoundingClientRect().left") > 0
    press(browser, "Enter")
    assert browser.run("return location.hash") == "#promises"
    reached = set()
    for _ in range(40):
        press(browser, "Tab")
        reached.add(browser.run("const e = document.activeElement; return e.tagName + e.textContent.slice(0, 40)"))
    summaries = browser.run(
        "return [...document.querySelectorAll('summary')].map(e => 'SUMMARY' + e.textContent.slice(0, 40))"
    )
    assert len(summaries) == 6
    assert set(summaries) <= reached
    browser.run("document.querySelector('summary').focus()")
    press(browser, "Enter")
    assert browser.run("return document.querySelector('details').open") is True


def test_charts_have_names_for_those_who_cannot_see_them(browser, pages):
    browser.open(pages["sample"])
    nodes = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    images = [
        node for node in nodes if node.get("role", {}).get("value") in ("image", "img") and not node.get("ignored")
    ]
    names = [node["name"]["value"] for node in images]
    assert "Share of people and their Bayesian ε" in names
    assert len(names) == len(set(names)) == 7
    described = [node for node in images if node.get("description", {}).get("value")]
    assert len(described) == 7


def test_it_prints(browser, pages, tmp_path):
    browser.open(pages["sample"])
    browser.pdf(tmp_path / "report.pdf")
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12
    browser.cdp(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("return getComputedStyle(document.querySelector('details')).display") == "none"
    assert browser.run(PALE) == []
    browser.cdp("Emulation.setEmulatedMedia", media="", features=[])
