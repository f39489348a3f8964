"""Charts: what is drawn lies where the axes' ticks say that it does."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import Tree, place, points

from bayesdp.report.html import axis
from bayesdp.report.html.axis import Axis
from bayesdp.report.html.chart import NARROW, WIDE, Across, Band, Bars, Chart, Line, draw, drawings, swatch
from bayesdp.report.html.markup import Html, el, join, script_json

numbers = st.floats(min_value=1e-6, max_value=1e6)


@given(st.lists(numbers, min_size=1, max_size=20), st.integers(2, 12), st.booleans())
def test_ticks_ascend_inside_the_axis_and_are_few_and_told_apart(values, most, zero):
    made = (axis.from_zero if zero else axis.around)("loss", values)
    assert made.low <= min(values) * (1 + 1e-9)
    assert made.high >= max(values) * (1 - 1e-9)
    ticks = made.ticks(most)
    assert 1 <= len(ticks) <= most + 3
    assert all(before < after for (before, _), (after, _) in pairwise(ticks))
    assert all(made.low * (1 - 1e-6) - 1e-9 <= value <= made.high * (1 + 1e-6) for value, _ in ticks)
    if not made.log:
        assert len({text for _, text in ticks}) == len(ticks)


def test_an_axis_is_logarithmic_only_when_one_value_dwarfs_the_others():
    assert not axis.from_zero("loss", [0.1, 0.2, 3.0]).log
    wide = axis.from_zero("loss", [0.1, 0.2, 1000.0])
    assert wide.log
    assert "logarithmic" in wide.label
    assert wide.place(wide.low) == 0
    assert wide.place(wide.high) == pytest.approx(1)


@pytest.mark.parametrize("values", [[], [math.inf], [0.0], [math.inf, math.nan]])
def test_an_axis_without_numbers_is_still_an_axis(values):
    made = axis.from_zero("loss", values)
    assert (made.low, made.high) == (0, 1)
    assert axis.around("loss", values).low < axis.around("loss", values).high
    assert axis.exactly("step", 3, 3).low < 3 < axis.exactly("step", 3, 3).high


def drawn(*marks, x=None, y=None, size=WIDE):
    x = x or Axis("step", 0, 10)
    y = y or Axis("loss", 0, 4)
    return Tree(draw(Chart("one", "Title", Html("About"), x, y, marks), *size, "wide")).root


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_line_goes_through_its_points(size):
    xs, ys = (0, 2.5, 10), (1, 3.5, 0.5)
    root = drawn(Line("dp", xs, ys), size=size)
    (path,) = root.find("path", class_="line dp")
    expected = [(place(root, "x", x), place(root, "y", y)) for x, y in zip(xs, ys, strict=True)]
    assert points(path) == [pytest.approx(point, abs=0.02) for point in expected]


def test_a_step_line_holds_the_next_value_between_its_points():
    root = drawn(Line("bdp", (0, 5, 10), (1, 2, 3), step=True))
    (path,) = root.find("path", class_="line bdp")
    expected = [(0, 1), (0, 2), (5, 2), (5, 3), (10, 3)]
    assert points(path) == [pytest.approx((place(root, "x", x), place(root, "y", y)), abs=0.02) for x, y in expected]


def test_infinite_and_missing_values_are_gaps_and_lone_points_dots():
    root = drawn(Line("dp", (0, 1, 2, 3, 4, 5), (1, 2, math.inf, 3, None, math.inf)))
    (path,) = root.find("path", class_="line dp")
    assert path.attributes["d"].count("M") == 1
    assert len(points(path)) == 2
    (dot,) = root.find("circle")
    assert float(dot.attributes["cx"]) == pytest.approx(place(root, "x", 3), abs=0.02)
    assert float(dot.attributes["cy"]) == pytest.approx(place(root, "y", 3), abs=0.02)


def test_nothing_but_infinity_draws_nothing():
    root = drawn(Line("dp", (0, 1), (math.inf, math.inf)))
    assert root.find("path", class_="line dp") == []
    assert root.find("circle") == []


def test_long_lines_are_thinned_but_end_where_they_end():
    xs = [place / 1000 for place in range(10001)]
    root = drawn(Line("dp", xs, [x / 3 for x in xs]))
    (path,) = root.find("path", class_="line dp")
    assert len(points(path)) < 1000
    assert points(path)[-1] == pytest.approx((place(root, "x", 10), place(root, "y", 10 / 3)), abs=0.02)


def test_bars_bands_and_lines_across():
    root = drawn(
        Bars("correct", (0, 5, 10), (1, 3)),
        Bars("wrong", (0, 5, 10), (2, 0), outline=True),
        Band("band-0", (0, 10), (1, 1), (2, 3)),
        Across("dp", 2.5),
        Across("clip", 7, upright=True),
    )
    (group,) = root.find("g", class_="bar correct")
    heights = [float(bar.attributes["height"]) for bar in group.find("rect")]
    assert heights[1] == pytest.approx(3 * heights[0], abs=0.05)
    assert heights[0] == pytest.approx(place(root, "y", 0) - place(root, "y", 1), abs=0.02)
    (skyline,) = root.find("path", class_="skyline wrong")
    assert points(skyline)[1] == pytest.approx((place(root, "x", 0), place(root, "y", 2)), abs=0.02)
    (band,) = root.find("path", class_="band band-0")
    assert points(band)[1] == pytest.approx((place(root, "x", 10), place(root, "y", 3)), abs=0.02)
    (level,) = root.find("path", class_="line dp")
    assert points(level)[0][1] == pytest.approx(place(root, "y", 2.5), abs=0.02)
    (upright,) = root.find("path", class_="line clip")
    assert points(upright)[0][0] == pytest.approx(place(root, "x", 7), abs=0.02)


def test_both_drawings_have_names_of_their_own_and_say_what_they_are():
    chart = Chart("one", "A <title>", el("span", "About it"), Axis("x", 0, 1), Axis("y", 0, 1), (Across("dp", 0.5),))
    root = Tree(drawings(chart)).root
    wide, narrow = root.find("svg")
    ids = [node.attributes["id"] for node in root.find() if "id" in node.attributes]
    assert len(ids) == len(set(ids)) == 6
    for svg in (wide, narrow):
        assert svg.attributes["role"] == "img"
        names = {node.attributes["id"]: node.text() for node in svg.find() if "id" in node.attributes}
        assert names[svg.attributes["aria-labelledby"]] == "A <title>"
        assert names[svg.attributes["aria-describedby"]] == "About it"
        (group,) = [node for node in svg.find("g") if "clip-path" in node.attributes]
        assert group.attributes["clip-path"][5:-1] in ids


def test_a_swatch_looks_like_its_mark():
    for mark in (Line("a", (), ()), Band("b", (), (), ()), Bars("c", (), ()), Across("d", 1)):
        (svg,) = Tree(swatch(mark)).root.find("svg")
        assert svg.attributes["aria-hidden"] == "true"
        assert any(mark.role in node.attributes.get("class", "").split() for node in svg.find())


def test_text_is_escaped_and_markup_is_not():
    assert el("p", "a < b & c", el("b", "d"), None, ["e", ("f",)], title='"<') == (
        '<p title="&quot;&lt;">a &lt; b &amp; c<b>d</b>ef</p>'
    )
    assert join("<", Html("<br>"), between=" & ") == "&lt; &amp; <br>"
    # A piece of markup that was put together by hand is text again.
    assert el("p", Html("<b>") + "x") == "<p>&lt;b&gt;x</p>"
    assert el("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert el("a", hidden=True, id=None, tabindex=0) == '<a hidden tabindex="0"></a>'


def test_json_cannot_leave_its_script():
    text = script_json({"x": "</script><!--\u2028&"}, id="j")
    inner = text.removeprefix('<script type="application/json" id="j">').removesuffix("</script>")
    assert not set("<>&\u2028") & set(inner)
