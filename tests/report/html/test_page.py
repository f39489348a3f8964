"""The page, read as HTML: whole, escaped, offline, every number from the JSON, every ε with its name."""

import json
import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from report_samples import (
    HOSTILE,
    Tree,
    disagreement,
    embedded,
    full,
    hostile,
    learned,
    lookup,
    minimal,
    place,
    points,
    sampled,
    small_sample,
    three,
    unbounded,
)

from bayesdp.attacker import AttackerBounds
from bayesdp.report import EpsilonHistory, Progress, RecordLosses, document, read, sample
from bayesdp.report.html.page import page
from bayesdp.standing import Caveat

ALL = {
    "full": full,
    "minimal": minimal,
    "unbounded": unbounded,
    "hostile": hostile,
    "learned": learned,
    "sampled": sampled,
}


@pytest.fixture(scope="module")
def made():
    return small_sample()


@pytest.fixture(scope="module")
def trees(made):
    return {name: Tree(page(make())) for name, make in ALL.items()} | {"sample": Tree(page(made))}


NAMES = [*ALL, "sample"]


def shown(tree):
    """Text nodes that a reader sees, with the elements around them."""
    hidden = {"script", "style", "title"}
    yield from _shown(tree.root, hidden)


def _shown(node, hidden):
    for child in node.children:
        if isinstance(child, str):
            yield child, node.above()
        elif child.tag not in hidden:
            yield from _shown(child, hidden)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_whole(trees, name):
    root = trees[name].root
    (html,) = root.find("html")
    assert html.attributes["lang"] == "en"
    assert [node.tag for node in html.children] == ["head", "body"]
    for tag in ("title", "main", "h1", "header", "footer", "style"):
        assert len([one for one in root.find(tag) if one.parent.tag != "svg"]) == 1, tag
    ids = [node.attributes["id"] for node in root.find() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    named = [
        node.attributes[key]
        for node in root.find()
        for key in ("aria-labelledby", "aria-describedby")
        if key in node.attributes
    ]
    assert set(named) <= set(ids)
    assert root.find("a", class_="skip")[0].attributes["href"] == "#promises"
    assert "promises" in ids


@pytest.mark.parametrize("name", NAMES)
def test_headings_do_not_skip_a_level(trees, name):
    levels = [int(node.tag[1]) for node in trees[name].root.find() if re.fullmatch(r"h[1-6]", node.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("name", NAMES)
def test_the_json_on_the_page_is_the_document(trees, made, name):
    report = made if name == "sample" else ALL[name]()
    assert embedded(trees[name]) == json.loads(json.dumps(document(report)))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_on_the_page_equals_the_json(trees, name):
    tree = trees[name]
    contents = embedded(tree)
    marked = [node for node in tree.root.find() if "data-key" in node.attributes]
    assert len(marked) > 15
    for node in marked:
        value = lookup(contents, node.attributes["data-key"])
        problem = disagreement(node.text(), node.attributes["data-round"], value)
        assert not problem, f"{node.attributes['data-key']} {problem}"


@pytest.mark.parametrize("name", ["full", "minimal", "unbounded", "learned", "sampled", "sample"])
def test_no_number_stands_on_the_page_without_its_key(trees, name):
    for text, around in shown(trees[name]):
        if re.search(r"\d", text):
            classes = {word for node in around for word in node.attributes.get("class", "").split()}
            assert "ticks" in classes or any("data-key" in node.attributes for node in around), text


def test_changing_a_number_changes_the_page():
    one = replace(full(), guarantees=(replace(three()[0], epsilon=3.14159), *three()[1:]))
    assert "DP ε = <" in page(one)
    assert ">3.142<" in page(one)
    assert ">3.142<" not in page(full())


@pytest.mark.parametrize("name", NAMES)
def test_an_epsilon_is_never_shown_without_its_name(trees, name):
    text = re.sub(r"\s+", " ", "".join(text for text, _ in shown(trees[name])))
    assert "epsilon" not in text.lower()
    for found in re.finditer(r"ε( =|:| of at most)", text):
        before = text[: found.start()]
        assert before.endswith(("DP ", "Bayesian ", "per-instance ")), before[-40:]
    for node in trees[name].root.find("th"):
        if "ε" in node.text():
            assert re.search(r"(DP|Bayesian|per-instance) ε", node.text()), node.text()


@pytest.mark.parametrize("name", ["full", "unbounded", "sample"])
def test_each_guarantee_is_shown_under_its_own_label(trees, name):
    root = trees[name].root
    for index, one in enumerate(embedded(trees[name])["report"]["guarantees"]):
        label = {"dp": "DP ε", "bdp": "Bayesian ε", "per-instance": "per-instance ε"}[one["notion"]]
        hits = root.find("span", data_key=f"report/guarantees/{index}/epsilon")
        if one["notion"] != "dp" and one["won"] == "dp":
            assert not hits
            hits, label = root.find("span", data_key=f"derived/guarantees/{index}/everybody"), "DP ε"
        assert hits
        for hit in hits:
            before = hit.parent.text().split(hit.text())[0]
            assert re.search(rf"{label}( =|:|) $", before), before


@pytest.mark.parametrize("name", NAMES)
def test_the_page_needs_nothing_from_outside(trees, name):
    root = trees[name].root
    for node in root.find():
        assert node.tag not in {"iframe", "object", "embed", "img", "audio", "video", "base", "form"}
        assert "src" not in node.attributes
        assert not [key for key in node.attributes if key.startswith("on")]
        for key in ("href", "xlink:href"):
            if key in node.attributes:
                assert node.attributes[key].startswith(("#", "data:,"))
    (style,) = root.find("style")
    assert not re.search(r"@import|url\(|https?:|@font-face", style.text())
    (policy,) = root.find("meta", http_equiv="Content-Security-Policy")
    assert "default-src 'none'" in policy.attributes["content"]
    assert "script-src" not in policy.attributes["content"]


def test_hostile_text_stays_text(trees):
    root = trees["hostile"].root
    assert len(root.find("script")) == 1
    assert root.find("img") == []
    (h1,) = root.find("h1")
    assert h1.text() == HOSTILE
    assert root.find("title")[0].text() == f"Privacy report: {HOSTILE}"
    assert sum(HOSTILE in text for text, _ in shown(trees["hostile"])) >= 12


@pytest.mark.parametrize("name", ["full", "unbounded", "sample"])
def test_every_chart_has_a_title_a_description_and_its_data_as_a_table(trees, name):
    root = trees[name].root
    pictures = [svg for svg in root.find("svg") if svg.attributes.get("role") == "img"]
    assert len(pictures) >= 9
    for svg in pictures:
        for tag in ("title", "desc"):
            assert len(svg.find(tag)[0].text()) > 5
        (figure,) = [node for node in svg.above() if node.tag == "figure"]
        (details,) = figure.find("details")
        assert details.children[0].tag == "summary"
        (table,) = details.find("table")
        rows = table.find("tbody")[0].find("tr")
        assert rows
        heads = table.find("thead")[0].find("th")
        assert all(len(row.find("th") + row.find("td")) == len(heads) for row in rows)
        assert all(head.attributes["scope"] == "col" for head in heads)
    for svg in root.find("svg"):
        assert svg in pictures or svg.attributes.get("aria-hidden") == "true"


def drawn_at(svg, role, xs, ys):
    """Whether the line of that role goes through these points of the data."""
    (path,) = svg.find("path", class_=f"line {role}")
    expected = [pytest.approx((place(svg, "x", x), place(svg, "y", y)), abs=0.05) for x, y in zip(xs, ys, strict=True)]
    return points(path) == expected


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_charts_draw_what_the_json_says(trees, size):
    root, report = trees["full"].root, full()

    def chart(name):
        (svg,) = root.find("figure", id=name)[0].find("svg", class_=f"chart {size}")
        return svg

    svg = chart("share-of-people")
    (across,) = svg.find("path", class_="line dp")
    assert points(across)[0][1] == pytest.approx(place(svg, "y", report.guarantees[0].epsilon), abs=0.05)
    (steps,) = svg.find("path", class_="line bdp")
    for share, loss in zip(report.curve.coverage, (0.2, 0.4, 0.8, 1.9995), strict=True):  # the last is capped
        assert pytest.approx((place(svg, "x", share), place(svg, "y", loss)), abs=0.05) in points(steps)
    assert drawn_at(svg, "rest", (0.987, 1), (1.9995, 1.9995))

    svg = chart("over-training")
    for role, values in (("dp", "dp"), ("bdp", "bdp"), ("instance", "per_instance")):
        assert drawn_at(svg, role, report.history.steps, getattr(report.history, values))

    svg = chart("record-by-record")
    bars = svg.find("g", class_="bar correct")[0].find("rect")
    tallest = max(float(bar.attributes["height"]) for bar in bars)
    assert tallest == pytest.approx(place(svg, "y", 0) - place(svg, "y", 0.5), abs=0.05)  # two of four
    (upright,) = svg.find("path", class_="line dp")
    assert points(upright)[0][0] == pytest.approx(place(svg, "x", report.guarantees[0].epsilon), abs=0.05)

    svg = chart("gradient-norms")
    rows = list(zip(*report.norms.values, strict=True))
    assert drawn_at(svg, "median", report.norms.steps, rows[1])
    assert drawn_at(svg, "clip", report.norms.steps, report.norms.clip_norm)
    (band,) = svg.find("path", class_="band band-0")
    edge = [(place(svg, "x", x), place(svg, "y", y)) for x, y in zip(report.norms.steps, rows[2], strict=True)]
    assert points(band)[:3] == [pytest.approx(point, abs=0.05) for point in edge]


def test_small_charts_draw_progress(trees):
    report = full()
    for svg, values in zip(
        trees["full"].root.find("svg", class_="chart small"), report.progress.values.values(), strict=True
    ):
        (path,) = [one for one in svg.find("path") if one.attributes["class"].startswith("line")]
        role = path.attributes["class"].removeprefix("line ")
        assert drawn_at(svg, role, report.progress.steps, values)


def test_statement_comes_first_and_says_what_was_promised(trees):
    main = trees["full"].root.find("main")[0]
    first = main.children[0]
    assert first.attributes["id"] == "promises"
    everybody, alike, own = (re.sub(r"\s+", " ", card.text()) for card in first.find("article"))
    assert "can be right at most 88.1 % of the time" in everybody
    assert "for every person and all data" in everybody
    assert "fixed before training began." in everybody
    assert "May be published" in everybody
    assert "For at least 90 % of the people that the data were drawn from" in alike
    assert "can become at most 65 % sure of the answer, except with a chance of one in 100,000" in alike
    assert "with confidence 99.9999 %" in alike
    assert "Up to 10 % of people are not covered by this number; they have the promise to everybody." in alike
    assert "Sensitive: not for publication" in alike
    assert "each of seven watched records; the largest is shown" in own
    assert "for this run alone." in own


def texts(report):
    return re.sub(r"\s+", " ", "".join(text for text, _ in shown(Tree(page(report)))))


def test_banners():
    assert "Reproducible, not private" not in texts(full())
    seeded = texts(replace(full(), seeded=True))
    assert "Reproducible, not private. The random numbers of this run came from a given seed." in seeded
    assert "may be published" not in seeded.lower()
    assert "Sensitive." in seeded
    assert "Sensitive." not in texts(minimal())
    unsound = three()[1].doubted(Caveat("unsound", "UNSOUND: product rule."))
    assert "Not a proved bound. The Bayesian ε" in texts(replace(full(), guarantees=(unsound,)))
    assert "Not a proved bound" not in texts(full())


def test_infinity_is_no_guarantee():
    text = texts(unbounded())
    assert "Differential privacy promises nothing here: the DP ε is infinite. No record’s influence was bounded" in text
    assert "DP ε: no guarantee" in text
    assert "nothing is promised to them" in text
    assert "only for people whose records were not in the training data" in text
    assert "∞" not in text
    assert "inf " not in text
    assert "nan" not in text.lower()


def test_a_promise_of_another_kind_points_to_the_tighter_one():
    loose = replace(three()[2], epsilon=2.5, adjacency="replace-one")
    assert "The promise to everybody is the tighter one here" in texts(replace(full(), guarantees=(three()[0], loose)))
    assert "tighter one here" not in texts(full())


@pytest.mark.parametrize("epsilon", [1.9995, 2.5, math.inf])
def test_what_is_no_better_than_dp_says_so_and_leaves_nobody_out(epsilon):
    dp, alike, own = three()
    report = replace(full(), guarantees=(dp, replace(alike, epsilon=epsilon), replace(own, epsilon=epsilon)))
    root = Tree(page(report)).root
    for card in root.find("article")[1:]:
        text = re.sub(r"\s+", " ", card.text())
        assert "No better than for everybody: DP ε = 2." in text
        assert "which is made to" in text
        assert "not covered" not in text
        assert "2.5" not in text
    rows = root.find("section", id="guarantees")[0].find("tbody")[0].find("tr")
    assert all("no better than for everybody: DP ε 2" in row.text() for row in rows[1:])
    assert [one["won"] for one in document(report)["derived"]["guarantees"]] == ["dp"] * 3
    assert document(report)["report"]["guarantees"][1]["epsilon"] == ("inf" if math.isinf(epsilon) else epsilon)
    assert [one["won"] for one in document(full())["derived"]["guarantees"]] == ["dp", "ex-post", "ex-post"]


def test_no_chart_or_table_shows_more_than_the_dp_epsilon():
    past = replace(full().history, bdp=(0.9, 1.6, 2.02), per_instance=(0.25, 0.9, 2.0957))
    report = replace(full(), history=past)
    root, contents = Tree(page(report)).root, document(report)
    assert contents["report"]["history"]["bdp"] == [0.9, 1.6, 2.02]
    assert contents["derived"]["history"]["bdp"] == [0.3, 1.4, 1.9995]
    (svg,) = root.find("figure", id="over-training")[0].find("svg", class_="chart wide")
    assert drawn_at(svg, "bdp", past.steps, (0.3, 1.4, 1.9995))
    assert contents["derived"]["curve"]["rows"][-1]["won"] == "dp"
    assert contents["derived"]["curve"]["rows"][-1]["epsilon"] == 2.0957
    text = root.find("main")[0].text()
    assert "2.0957" not in text
    assert "2.096" not in text
    assert "half of δ" not in text
    table = root.find("figure", id="share-of-people")[0].find("tbody")[0]
    assert "no better than for everybody: DP ε 2" in table.text()
    records = root.find("figure", id="record-by-record")[0].find("figcaption")[0].text()
    assert "No better than for everybody, and drawn at the DP ε: 1." in re.sub(r"\s+", " ", records)


@pytest.mark.parametrize(
    ("orientation", "whom"),
    [
        ("absent", "90 % of the people that the data were drawn from: whoever"),
        ("present", "90 % of the people in this data set: whoever"),
        ("both", "90 % of the people that the data were drawn from, and of those in this data set: whoever"),
    ],
)
def test_a_share_is_of_those_whom_the_witnesses_speak_for(orientation, whom):
    one = replace(three()[1], orientation=orientation)
    assert whom in texts(replace(full(), guarantees=(three()[0], one)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coverage": None, "failure": 0.0}, "For a person drawn at random, like those in the data: whoever"),
        ({"coverage": None, "failure": 0.0, "strength": "weak"}, "does not bind an attacker who knows"),
        ({"orientation": "present"}, "only for people whose records were in the training data"),
        ({"adjacency": "replace-one"}, "was used or another one in its place"),
        ({"delta": 0.0}, "sure of the answer. It was measured"),
        ({"coverage": 0.0}, "promises nothing here: it would speak for nobody"),
        ({"strength": "weak"}, "can become, on average, at most 65 % sure of the answer."),
        ({"strength": "weak", "ex_post": False}, "can be right at most 65 % of the time"),
        ({"sampling": "shuffled"}, "shuffled batches"),
    ],
)
def test_sentences_follow_the_form_of_the_guarantee(change, words):
    assert words in texts(replace(full(), guarantees=(three()[0], replace(three()[1], **change))))


BOUNDS = AttackerBounds(
    advantage=0.25, false_positive_rates=(0.001, 0.01, 0.1, 1.0), true_positive_rates=(0.004, 0.03, 0.2, 1.0)
)


def exact():
    return replace(full(), guarantees=(replace(three()[0], attacker=BOUNDS), *three()[1:]))


def test_how_often_right_and_how_sure_are_two_readings():
    """Neither a word nor a scale is common to the average and to what ε and δ allow (H17)."""
    everybody, alike, own = Tree(page(exact())).root.find("article")
    text = re.sub(r"\s+", " ", everybody.text())
    assert "By ε and δ, an attacker is sure to at most88.1 %" in text
    assert "On average over all results, right at most62.5 %" in text
    assert "can be right at most 62.5 % of the time." in text
    assert "allow an observer to become 88.1 % sure of the answer, and with a chance of one in 100,000 certain." in text
    sure, right = (meter.text() for meter in everybody.find("div", class_="meter"))
    assert (sure, right) == ("undecidedcertain", "coin tossalways right")
    # The large numbers stand side by side: all of one reading.
    assert [
        re.sub(r"\d.*", "", card.find("p", class_="big")[0].text()).split()[-4:] for card in (everybody, alike)
    ] == [["sure", "to", "at", "most"]] * 2
    for card in (alike, own):
        (meter,) = card.find("div", class_="meter")
        assert "undecided" in meter.text()
        assert "right" not in card.text()
    known = [row.text() for row in Tree(page(exact())).root.find("tr") if "88.1 %" in row.text()]
    assert any("62.5 %" in row for row in known)


def test_the_trade_off_is_drawn_from_the_guarantee():
    tree = Tree(page(exact()))
    (figure,) = tree.root.find("figure", id="trade-off")
    text = re.sub(r"\s+", " ", figure.text())
    assert "0.1 % finds at most 0.4 %, of 1 % finds at most 3 %, of 10 % finds at most 20 % of the true cases" in text
    assert "advantage, at most 25 %" in text
    svg = figure.find("svg", class_="chart wide")[0]
    # The rate of 0.001 is less than a pixel from the edge.
    assert drawn_at(svg, "series-0", (0.0, *BOUNDS.false_positive_rates[1:]), BOUNDS.true_positive_rates)
    assert drawn_at(svg, "zero", (0.0, 1.0), (0.0, 1.0))
    assert not Tree(page(full())).root.find("figure", id="trade-off")


def test_parts_that_were_not_recorded_are_named():
    text = texts(minimal())
    for words in ("Not recorded in this run", "gradient norms", "the privacy loss of single records"):
        assert words in text
    assert "Not recorded" not in texts(full())
    root = Tree(page(minimal())).root
    assert [svg for svg in root.find("svg") if svg.attributes.get("role") == "img"] == []


@pytest.mark.parametrize("name", ["curve", "history", "records", "norms", "progress"])
def test_any_one_part_may_be_missing(name):
    left = replace(full(), **{name: None})
    assert ("Not recorded" in texts(left)) == (name != "progress")
    assert len(Tree(page(left)).root.find("figure")) == 4


@pytest.mark.parametrize(
    "records",
    [
        RecordLosses(epsilon=(1.0,)),
        RecordLosses(epsilon=(0.0, 0.0)),
        RecordLosses(epsilon=(math.inf,), correct=(True,)),
        RecordLosses(epsilon=(1.0, 2.0), correct=(True, True)),
        RecordLosses(epsilon=(1e-9, 1e9), correct=(False, True)),
    ],
)
def test_odd_records_are_drawn(records):
    Tree(page(replace(full(), records=records)))


def test_progress_without_any_finite_value_is_drawn():
    diverged = Progress(steps=(0,), values={"loss": (math.nan,)})
    assert "–" in texts(replace(full(), progress=diverged))


def test_fine_print_states_what_every_report_must(trees):
    text = re.sub(r"\s+", " ", trees["full"].root.find("section", id="print")[0].text())
    for words in ("add or remove one record", "Poisson", "noise, standard deviation2.5", "2, 4.5, 64", "tail"):
        assert words in text, words
    for words in ("ex-post bound: 5×10⁻⁶; DP bound: 5×10⁻⁶", "a priori", "N is public.", "A note.", "Adam", "odd name"):
        assert words in text, words


def test_a_schedule_is_shown_as_a_range():
    assert "0.5 to 2.5 by a schedule" in texts(unbounded())


def test_long_arrays_are_tabulated_in_part_and_kept_whole():
    long = replace(full(), history=EpsilonHistory(steps=range(1, 31), dp=np.linspace(0.1, 2, 30)))
    root = Tree(page(long)).root
    (figure,) = root.find("figure", id="over-training")
    rows = figure.find("tbody")[0].find("tr")
    assert len(rows) == 21
    assert (rows[0].find("th")[0].text(), rows[-1].find("th")[0].text()) == ("1", "30")
    assert "the JSON has them all" in figure.text()


def test_the_sample_is_accounted_for_real(made):
    dp, bdp, own = made.guarantees
    assert [one.notion for one in made.guarantees] == ["dp", "bdp", "per-instance"]
    assert made.history.dp[-1] == dp.epsilon
    assert made.history.bdp[-1] == bdp.epsilon
    assert made.history.per_instance[-1] == own.epsilon
    assert max(made.records.epsilon) <= made.curve.limit
    assert dp.epsilon < made.curve.limit
    assert not all(made.records.correct)


def test_the_sample_is_written_from_the_command_line(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sample, "sample", lambda: made)
    sample.main([str(tmp_path / "a.html"), str(tmp_path / "a.json")])
    assert read(tmp_path / "a.json") == made
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page(made)
    assert "a.html" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_to_a_place_on_the_page(trees, name):
    root = trees[name].root
    places = {node.attributes["id"] for node in root.find() if "id" in node.attributes}
    links = [node.attributes["href"] for node in root.find("a")]
    assert {link.removeprefix("#") for link in links} <= places


def test_codes_in_sentences_lead_to_what_they_stand_for(trees):
    root = trees["full"].root
    (link,) = root.find("a", href="#item-h5")
    assert link.text() == "H5"
    (line,) = root.find("div", id="item-h5")
    assert "Order statistics" in line.text()
    assert root.find("a", href="#item-h12") == []  # no sentence of this report names it


def test_all_watched_records_are_shown_each_with_its_own(trees):
    (part,) = trees["full"].root.find("section", id="watched")
    rows = [[cell.text() for cell in row.children] for row in part.find("tbody")[0].find("tr")]
    assert [row[0] for row in rows] == ["record 17", "record 42"]
    assert rows[0][1] == "1.235"
    assert rows[1][1].startswith("no better than for everybody: DP ε 2")


def test_right_and_sure_are_told_apart_where_both_are_shown(trees):
    assert "two readings" in trees["sample"].root.find("p", class_="readings")[0].text()
    assert trees["full"].root.find("p", class_="readings") == []


def test_quality_shows_which_classes_were_taken_for_which_and_what_was_paid_for(trees):
    (part,) = trees["full"].root.find("section", id="quality")
    text = part.text()
    assert "taken for ill" in text
    assert "they may be published" in text
    assert "accuracy of a constant answer, with noise" in text
    assert "96.94 %" in text  # recall of the first class, 412 of 425


def test_the_own_epsilon_stands_among_others(trees):
    (part,) = trees["full"].root.find("section", id="orientation")
    assert "2 (this one)" in part.text()
    assert "19.61" in part.text()
    assert "Census" in part.text()


def test_lines_that_lie_on_the_dp_line_and_a_flat_end_are_explained():
    base = full()
    caption = Tree(page(base)).root.find("figure", id="over-training")[0].find("figcaption")[0].text()
    assert "flat" not in caption
    assert "lies on the DP line" not in caption
    past = EpsilonHistory(steps=(1, 600, 1200), dp=(0.3, 2.0, 2.0), bdp=(0.4, 0.5, 0.6), coverage=0.9)
    caption = Tree(page(replace(base, history=past))).root.find("figure", id="over-training")[0].text()
    assert "From step 600 on the DP line is flat" in caption
    assert "Where another line lies on the DP line" in caption


def test_a_curve_that_is_nowhere_below_dp_is_one_sentence():
    base = full()
    nowhere = replace(base.curve, epsilon=(2.1, 2.2, 2.3, 2.4), dp=2.0)
    (part,) = Tree(page(replace(base, curve=nowhere))).root.find("section", id="shares")
    assert part.find("figure") == []
    assert part.find("table") == []
    assert "Whichever share of people is picked" in part.text()


def test_a_public_page_does_not_tell_what_it_lacks():
    report = minimal()
    assert "Not recorded in this run" in page(report)
    public = page(report, public=True)
    assert "Not recorded in this run" not in public
    assert "report.json" not in public
