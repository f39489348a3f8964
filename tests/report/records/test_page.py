"""The page for records: its numbers are the table's, it says that it is sensitive, and a reader can sort it."""

import base64
import hashlib
import json
import math
import re
import stat
import time
from dataclasses import replace

import numpy as np
import pytest
from report_browser import CUT_OFF, NUMBERS, PALE, SHOWN, TOO_WIDE, UNMARKED, press
from report_samples import HOSTILE, Tree, disagreement, lookup

from bayesdp.convert import attacker_success
from bayesdp.errors import InputError
from bayesdp.report import RecordTable
from bayesdp.report.records.document import document
from bayesdp.report.records.page import records_page, write_page

CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def many(count=2000, seed=0):
    """Skewed losses: most records pay little, those that the model gets wrong pay as everybody, or a little more."""
    rng = np.random.default_rng(seed)
    margin = rng.normal(1.7, 1, count)
    losses = 2.2 / (1 + np.exp(1.6 * margin)) * rng.gamma(8, 1 / 8, count) + 0.02
    return RecordTable(
        title="Clothes",
        ids=np.arange(count),
        epsilon=np.minimum(losses, 2.09),
        delta=1e-5,
        direction=["remove" if place % 4 else "add" for place in range(count)],
        label=[CLASSES[place] for place in rng.integers(0, 10, count)],
        correct=margin > 0,
        dp_epsilon=2.0,
        steps=1200,
        how=("Loss of the run that happened (H3).", "Orders were fixed without looking at the data (H5)."),
    )


def three():
    return RecordTable(
        title="Three patients",
        ids=("p10", "p9", "chlöe"),
        epsilon=(0.31, math.inf, 1.234567),
        delta=1e-5,
        direction=("remove", "remove", "add"),
    )


def hostile():
    return RecordTable(
        title=HOSTILE,
        ids=(HOSTILE, "b" * 200),
        epsilon=(0.5, 0.25),
        delta=0.01,
        direction="both",
        label=(HOSTILE, "x"),
        correct=(True, True),
        dp_epsilon=math.inf,
        seeded=True,
        how=(HOSTILE, "This rule forgets (ERR 18)."),
        standing="unsound",
    )


def alone():
    return replace(three(), ids=(4,), epsilon=(0.0,), direction=("remove",), dp_epsilon=3.0)


TABLES = {"many": many, "three": three, "hostile": hostile, "alone": alone}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return {
        name: write_page(make(), folder / f"{name}.html", file=HOSTILE if name == "hostile" else "all.parquet")
        for name, make in TABLES.items()
    }


@pytest.fixture(scope="module")
def trees(pages):
    return {name: Tree(path.read_text(encoding="utf-8")) for name, path in pages.items()}


def contents(tree):
    (script,) = tree.root.find("script", id="bayesdp-records")
    return json.loads(script.text())


def lines(tree):
    (grid,) = tree.root.find("div", id="each-record")
    rows = [[cell.text() for cell in row.children] for row in grid.find("tr")]
    return rows[0], rows[1:]


def words(tree):
    return re.sub(r"\s+", " ", tree.root.find("body")[0].text())


# --- what the page holds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_every_number_equals_the_json_and_the_json_the_table(trees, name):
    tree = trees[name]
    found = contents(tree)
    marked = [node for node in tree.root.find() if "data-key" in node.attributes]
    assert len(marked) > 15
    for node in marked:
        problem = disagreement(node.text(), node.attributes["data-round"], lookup(found, node.attributes["data-key"]))
        assert not problem, f"{node.attributes['data-key']} {problem}"
    table = TABLES[name]()
    assert found == json.loads(json.dumps(document(table, found["table"]["file"])))
    by_rank = {row["rank"]: row for row in table.rows()}
    for shown in found["derived"]["rows"]:
        row = by_rank[shown["rank"]]
        assert shown["id"] == str(row["id"])
        assert shown["epsilon"] == row["epsilon"]
        most = math.inf if table.dp_epsilon is None else table.dp_epsilon
        assert shown["attacker_success"] == attacker_success(min(float(row["epsilon"]), most), table.delta)
        assert shown.get("label") == row.get("class")
        assert shown.get("answer") == {None: None, True: "right", False: "wrong"}[row.get("correct")]


def test_the_most_exposed_stand_first_and_the_least_exposed_are_there(trees):
    heads, rows = lines(trees["many"])
    assert heads == ["record", "rank", "per-instance ε", "attacker at most", "compared", "class", "model’s answer"]
    table = many()
    assert [row[0] for row in rows] == [str(one) for one in (*table.ids[:1000], *table.ids[-100:])]
    assert [row[1] for row in rows[999:1001]] == ["1,000", "1,901"]
    assert rows[-1][1] == "2,000"
    assert "The 1,000 most and the 100 least exposed of 2,000 records. All of them are in all.parquet." in words(
        trees["many"]
    )


def test_no_record_is_shown_above_the_dp_epsilon(trees):
    _, rows = lines(trees["many"])
    cells = [row[2] for row in rows]
    tied = sum(one >= 2 for one in many().epsilon)
    assert cells[:tied] == ["no better than for everybody: DP ε 2"] * tied
    assert all(float(cell) <= 2 for cell in cells[tied:])
    assert all(row[3] == rows[0][3] for row in rows[:tied])
    assert "named before the run" in words(trees["many"])


def test_a_small_table_is_shown_whole(trees):
    heads, rows = lines(trees["three"])
    assert heads == ["record", "rank", "per-instance ε", "attacker at most", "compared"]
    assert rows == [
        ["p9", "1", "no guarantee", "100 %", "member, if left out"],
        ["chlöe", "2", "1.235", "77.5 %", "outsider, if added"],
        ["p10", "3", "0.31", "57.7 %", "member, if left out"],
    ]
    text = words(trees["three"])
    assert "All 3 records are here." in text
    assert "Not drawn, without a guarantee: 1." in text
    assert "There is no DP value to compare with." in text
    assert "Class by class" not in text
    whole = replace(many(1100), ids=range(1, 1101))
    assert len(lines(Tree(records_page(whole)))[1]) == 1100


def test_the_summary_is_that_of_the_losses():
    table = many()
    epsilon, labels, correct = np.minimum(table.epsilon, 2), np.array(table.label), np.array(table.correct)
    found = document(table)["derived"]
    group = found["records"]["groups"]["all"]
    assert (group["count"], group["largest"]) == (2000, epsilon.max())
    assert group["median"] == np.sort(epsilon)[999]
    assert group["ninety"] == np.sort(epsilon)[1799]
    assert found["below_dp"] == np.mean(epsilon < 2)
    assert found["tied"] == np.sum(epsilon >= 2) > 0
    assert found["wrong"] == pytest.approx(np.mean(~correct))
    assert [one["label"] for one in found["classes"]] != sorted(CLASSES)
    nineties = [one["ninety"] for one in found["classes"]]
    assert nineties == sorted(nineties, reverse=True)
    for one in found["classes"]:
        own = labels == one["label"]
        assert one["count"] == own.sum()
        assert one["largest"] == epsilon[own].max()
        assert one["median"] == np.quantile(epsilon[own], 0.5, method="inverted_cdf")
        assert one["ninety"] == np.quantile(epsilon[own], 0.9, method="inverted_cdf")
        assert one["wrong"] == pytest.approx(np.mean(~correct[own]))


def test_many_classes_are_cut_and_counted():
    table = replace(many(200), label=tuple(f"k{place}" for place in range(200)))
    assert len(document(table)["derived"]["classes"]) == 50
    assert "These are the most exposed of 200 classes." in words(Tree(records_page(table)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Records that tie at the DP value, no better off than everybody: 3. For these the DP ε is the promise"),
        ({"exposure": (1.0,) * 300}, "They stand in the order of what they cost by themselves"),
        ({"dp_epsilon": 2.5}, "Every record’s own number is below it."),
        ({"dp_epsilon": 8.0}, "lies far to the right of the chart"),
        ({"dp_epsilon": math.inf}, "nothing is promised to everybody"),
        ({"correct": None}, "all records: 300"),
        ({"direction": ("add",) * 300}, "An outsider was not trained on."),
    ],
)
def test_the_words_follow_the_table(changes, said):
    text = words(Tree(records_page(replace(many(300), **changes))))
    assert said in text
    assert ("A member was trained on." in text) == ("direction" not in changes)


@pytest.mark.parametrize("name", TABLES)
def test_the_banners_stand_before_any_number(trees, name):
    boxes = [node.text() for node in trees[name].root.find("header")[0].find("div", role="note")]
    assert boxes[-1].startswith("Sensitive: computed from private data; not for publication.")
    heads = [box.split(".")[0] for box in boxes[:-1]]
    assert heads == (["Reproducible, not private", "Not a proved bound"] if name == "hostile" else [])


@pytest.mark.parametrize("name", TABLES)
def test_an_epsilon_is_never_shown_without_its_name(trees, name):
    for node in [*trees[name].root.find("th"), *trees[name].root.find("dt"), *trees[name].root.find("caption")]:
        if "ε" in node.text():
            assert re.search(r"(DP|[Pp]er-instance) ε", node.text()), node.text()


@pytest.mark.parametrize("name", TABLES)
def test_the_policy_lets_one_script_run_and_nothing_be_loaded(trees, name):
    root = trees[name].root
    (policy,) = root.find("meta", http_equiv="Content-Security-Policy")
    data, script = root.find("script")
    assert data.attributes["type"] == "application/json"
    assert script.attributes == {}
    allowed = base64.b64encode(hashlib.sha256(script.text().encode()).digest()).decode()
    assert policy.attributes["content"].endswith(f"; script-src 'sha256-{allowed}'")
    assert "default-src 'none'" in policy.attributes["content"]
    for node in root.find():
        assert node.tag not in {"iframe", "object", "embed", "img", "base", "form"}
        assert "src" not in node.attributes
        assert not [key for key in node.attributes if key.startswith("on")]
        assert node.attributes.get("href", "#").startswith(("#", "data:,"))


def test_hostile_text_stays_text(trees):
    assert trees["hostile"].root.find("h1")[0].text() == HOSTILE
    assert lines(trees["hostile"])[1][0][0] == HOSTILE


def test_the_file_is_for_its_owner_only_and_ends_in_html(pages, tmp_path):
    assert stat.S_IMODE(pages["many"].stat().st_mode) == 0o600
    with pytest.raises(InputError, match=r"to end in \.html"):
        write_page(three(), tmp_path / "records.json")
    with pytest.raises(InputError, match="to be writable"):
        write_page(three(), tmp_path / "missing" / "records.html")


def test_sixty_thousand_records_are_quick(tmp_path):
    table = many(60_000)
    began = time.process_time()
    path = write_page(table, tmp_path / "records.html")
    assert time.process_time() - began < 2
    assert path.stat().st_size < 2e6


# --- in a browser -----------------------------------------------------------------------------------------------

COLUMN = "return [...document.querySelectorAll('#each-record tbody tr')].map(e => e.cells[arguments[0]].textContent);"
SORTED = """
return [...document.querySelectorAll('#each-record thead th')].flatMap((e, i) => e.ariaSort ? [[i, e.ariaSort]] : []);
"""
CLICK = "document.querySelectorAll('#each-record thead button')[arguments[0]].click();"


@pytest.mark.parametrize("name", TABLES)
def test_it_renders_quietly_and_loads_nothing(browser, pages, name):
    browser.open(pages[name])
    assert browser.log() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.run("return typeof window.hacked") == "undefined"
    assert browser.run(SHOWN) == ["wide"]
    assert browser.run(SORTED) == [[2, "descending"]]
    if name != "hostile":  # its texts have digits
        assert browser.run(UNMARKED) == []


def test_a_click_on_a_heading_sorts_and_says_so(browser, pages):
    browser.open(pages["many"])
    first = browser.run(COLUMN, 0)
    numbers = browser.run(NUMBERS)
    browser.run(CLICK, 2)
    assert browser.run(SORTED) == [[2, "ascending"]]
    losses = [float(one.split(" ")[-1]) for one in browser.run(COLUMN, 2)]  # "no better than for everybody: DP ε 2"
    assert losses == sorted(losses)
    browser.run(CLICK, 2)
    assert browser.run(COLUMN, 0) == first
    browser.run(CLICK, 0)
    ids = [int(one) for one in browser.run(COLUMN, 0)]
    assert ids == sorted(ids)
    assert browser.run(SORTED) == [[0, "ascending"]]
    browser.run(CLICK, 5)
    classes = browser.run(COLUMN, 5)
    assert classes == sorted(classes)
    places = [int(one.replace(",", "")) for one in browser.run(COLUMN, 1)]
    for name in CLASSES:  # ties stay most exposed first
        own = [rank for rank, label in zip(places, classes, strict=True) if label == name]
        assert own == sorted(own)
    browser.run(CLICK, 6)
    browser.run(CLICK, 6)
    assert browser.run(COLUMN, 6) == sorted(browser.run(COLUMN, 6), reverse=True)
    assert browser.run(SORTED) == [[6, "descending"]]
    assert sorted(browser.run(NUMBERS)) == sorted(numbers)  # rows moved, none changed
    assert browser.log() == []


def test_infinity_is_the_largest_and_numbers_in_names_count(browser, pages):
    browser.open(pages["three"])
    browser.run(CLICK, 2)
    assert browser.run(COLUMN, 2) == ["0.31", "1.235", "no guarantee"]
    browser.run(CLICK, 0)
    assert browser.run(COLUMN, 0) == ["chlöe", "p9", "p10"]


def test_the_keyboard_sorts(browser, pages):
    browser.open(pages["three"])
    browser.run("document.querySelector('#each-record .scroll').focus()")
    press(browser, "Tab")
    assert browser.run("return document.activeElement.textContent") == "record"
    press(browser, "Enter")
    assert browser.run(SORTED) == [[0, "ascending"]]
    assert browser.run("return document.activeElement.textContent") == "record"


def test_without_scripts_the_table_is_in_order(browser, pages):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["three"])
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("return document.querySelectorAll('button').length") == 0
    assert browser.run("return getComputedStyle(document.querySelector('.by-script')).display") == "none"
    assert browser.run(COLUMN, 0) == ["p9", "chlöe", "p10"]


@pytest.mark.parametrize("name", ["many", "three", "hostile"])
@pytest.mark.parametrize("width", [320, 700, 1100])
def test_it_fits_the_screen(browser, pages, name, width):
    browser.open(pages[name], width=width)
    browser.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert browser.run(TOO_WIDE) == []
    assert browser.run(CUT_OFF) == []
    assert browser.run(SHOWN) == ["narrow" if width < 672 else "wide"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, pages, scheme):
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(pages["hostile"])
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.run(PALE) == []
    browser.cdp("Emulation.setEmulatedMedia", features=[])
