"""The table of records: checked, most exposed first, and the same after a way through a file."""

import csv
import json
import math
import stat
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import HOSTILE

from bayesdp.errors import InputError
from bayesdp.report import RecordTable

ENDINGS = (".parquet", ".csv", ".json")


def small(**changes):
    values = {
        "title": "Clinic",
        "ids": (7, 3, 5),
        "epsilon": (0.5, 0.5, math.inf),
        "delta": 1e-5,
        "direction": ("remove", "add", "remove"),
        "label": ("grün", 'a,b\n"c"', ""),
        "correct": (True, False, True),
        "dp_epsilon": 2.0,
        "steps": 100,
        "how": ("Ex-post (H3).", HOSTILE),
    }
    return RecordTable(**(values | changes))


def test_rows_stand_most_exposed_first_and_ties_by_id():
    rows = small().rows()
    assert [(row["rank"], row["id"], row["epsilon"]) for row in rows] == [(1, 5, "inf"), (2, 3, 0.5), (3, 7, 0.5)]
    assert [row["direction"] for row in rows] == ["remove", "add", "remove"]
    assert [row["class"] for row in rows] == ["", 'a,b\n"c"', "grün"]
    assert [row["correct"] for row in rows] == [True, False, True]
    assert list(rows[0]) == ["rank", "id", "epsilon", "won", "direction", "class", "correct"]
    assert list(small(label=None, correct=None).rows()[0]) == ["rank", "id", "epsilon", "won", "direction"]
    assert [row["won"] for row in rows] == ["dp", "record", "record"]


def test_ties_at_the_dp_value_stand_in_the_order_of_their_exposure():
    table = small(
        ids=(1, 2, 3, 4),
        epsilon=(2.02, 2.0, 0.5, 2.01),
        exposure=(2.5, 9.0, 0.6, math.inf),
        direction="remove",
        label=None,
        correct=None,
    )
    assert table.ids == (4, 2, 1, 3)
    assert table.tied == 3
    assert [row["won"] for row in table.rows()] == ["dp", "dp", "dp", "record"]
    assert [row["exposure"] for row in table.rows()] == ["inf", 9.0, 2.5, 0.6]
    assert small(dp_epsilon=None).tied == 0


def test_what_learners_hand_in_becomes_plain_values():
    one = small(
        ids=np.array([7, 3, 5], np.int32),
        epsilon=np.array([0.5, 0.25, 1], np.float32),
        direction="both",
        label=np.array([2, 0, 10]),
        correct=np.array([True, False, True]),
    )
    assert one.ids == (5, 7, 3)
    assert {type(value) for value in one.ids} == {int}
    assert one.direction == ("both",) * 3
    assert one.label == ("10", "2", "0")
    assert one.correct == (True, True, False)
    assert hash(one) == hash(replace(one))
    assert RecordTable.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def test_one_id_may_be_a_member_and_an_outsider():
    assert len(small(ids=(1, 1, 2))) == 3  # record 1 of the data, and record 1 of another file


texts = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=8)
losses = st.one_of(st.floats(min_value=0, max_value=1e300), st.just(math.inf))


@st.composite
def tables(draw):
    count = draw(st.integers(1, 12))

    def each(what):
        return st.lists(what, min_size=count, max_size=count)

    whole = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count, unique=True)
    words = st.lists(texts.filter(str.strip), min_size=count, max_size=count, unique=True)
    return RecordTable(
        title=draw(texts.filter(str.strip)),
        ids=draw(st.one_of(whole, words)),
        epsilon=draw(each(losses)),
        exposure=draw(st.none() | each(losses)),
        delta=draw(st.floats(min_value=1e-300, max_value=0.99)),
        direction=draw(each(st.sampled_from(["remove", "add", "both"]))),
        label=draw(st.none() | each(texts)),
        correct=draw(st.none() | each(st.booleans())),
        dp_epsilon=draw(st.none() | losses),
        steps=draw(st.none() | st.integers(0, 10**9)),
        seeded=draw(st.booleans()),
        how=draw(st.lists(texts.filter(str.strip), max_size=2)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@settings(max_examples=40)
@given(table=tables())
def test_every_table_comes_back_from_every_kind_of_file(folder, table):
    for ending in ENDINGS:
        assert RecordTable.read(table.write(folder / f"table{ending}")) == table


@given(table=tables())
def test_order_quantiles_and_the_share_below_dp_are_those_of_the_losses(table):
    rows = table.rows()
    most = math.inf if table.dp_epsilon is None else table.dp_epsilon
    keys = [(-min(float(row["epsilon"]), most), -float(row.get("exposure", row["epsilon"])), row["id"]) for row in rows]
    assert keys == sorted(keys)
    for level, epsilon in table.quantiles((0.1, 0.5, 0.9, 1)).items():
        assert epsilon in table.epsilon
        assert np.mean(np.array(table.epsilon) <= epsilon) >= level
        assert np.mean(np.array(table.epsilon) < epsilon) < level
    if table.dp_epsilon is None or math.isinf(table.dp_epsilon):
        assert table.below_dp() is None
    else:
        assert table.below_dp() == np.mean(np.array(table.epsilon) < table.dp_epsilon)


def test_other_programs_read_the_files(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    names = ["id", "per_instance_epsilon", "direction", "class", "correct"]
    found = parquet.read_table(small().write(tmp_path / "t.parquet"))
    assert found.column_names == names
    assert found["id"].to_pylist() == [5, 3, 7]
    assert found["correct"].to_pylist() == [True, False, True]
    assert b"not for publication" in found.schema.metadata[b"bayesdp"]
    with small().write(tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*names, "about"]
    assert [row["per_instance_epsilon"] for row in rows] == ["inf", "0.5", "0.5"]
    assert [bool(row["about"]) for row in rows] == [True, False, False]
    assert json.loads(rows[0]["about"])["delta"] == 1e-5
    assert set(json.loads(small().write(tmp_path / "t.json").read_text())["columns"]) == set(names)


def test_a_csv_that_somebody_sorted_is_still_the_table(tmp_path):
    path = small().write(tmp_path / "t.csv")
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *sorted(rows)])
    assert RecordTable.read(path) == small()


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_are_for_their_owner_only_and_replace_what_was_there(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    path.write_text("older")
    path.chmod(0o644)
    assert small().write(path) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_without_pyarrow_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "t.parquet"
    with pytest.raises(InputError, match=r"bayesdp\[parquet\]"):
        small().write(path)
    assert not list(tmp_path.iterdir())
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"bayesdp\[parquet\]"):
        RecordTable.read(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ids": (1, 2)}, "ids to have 3 entries"),
        ({"ids": "abc"}, "ids to have 3 entries"),
        ({"ids": (1, "2", 3)}, "all whole numbers or all texts, got ids='2'"),
        ({"ids": (1, True, 3)}, "all whole numbers or all texts"),
        ({"ids": (1.5, 2.5, 3.5)}, "all whole numbers or all texts"),
        ({"ids": (1, 2**63, 3)}, "64 bits"),
        ({"ids": ("a", " ", "b")}, "ids to be a text that is not empty"),
        ({"ids": (1, 2, 1), "direction": "add"}, r"once in a direction, got 1 2 times \(add\)"),
        ({"epsilon": (1, math.nan, 2)}, "epsilon"),
        ({"epsilon": (1, -1, 2)}, "epsilon"),
        ({"epsilon": ()}, "epsilon with at least one entry"),
        ({"exposure": (1, 2)}, "exposure"),
        ({"exposure": (1, math.nan, 2)}, "exposure"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        (
            {"direction": ("remove", "out", "add")},
            "direction to be one of 'remove', 'add', 'both', got direction='out'",
        ),
        ({"direction": ([], [], [])}, "direction to be one of"),
        ({"label": ("a", "b")}, "label to have 3 entries"),
        ({"label": ("a", 1.5, "b")}, "label to be a text"),
        ({"label": ("a", "\x00", "b")}, "without control characters"),
        ({"correct": (1, 0, 1)}, "correct to be 3 truth values"),
        ({"dp_epsilon": -1}, "dp_epsilon"),
        ({"dp_epsilon": math.nan}, "dp_epsilon"),
        ({"steps": 1.5}, "steps"),
        ({"seeded": "no"}, "seeded"),
        ({"title": ""}, "title"),
        ({"how": "one sentence"}, "how to be a tuple"),
    ],
)
def test_bad_input_is_refused_by_name(changes, words):
    with pytest.raises(InputError, match=words):
        small(**changes)


def test_a_quantile_needs_a_share():
    for level in (0, 1.1, math.nan):
        with pytest.raises(InputError, match="levels"):
            small().quantiles((level,))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("content", [b"", b"rubbish", b"\xff\xfe", b"{}", b"[1]", b"id,about\n1,{}\n", b'{"about": 1}'])
def test_a_damaged_file_is_refused(tmp_path, ending, content):
    path = tmp_path / f"t{ending}"
    path.write_bytes(content)
    with pytest.raises(InputError, match="table of"):
        RecordTable.read(path)


def test_other_files_and_places_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"to end in \.parquet, \.csv or \.json"):
        small().write(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match=r"to end in \.parquet"):
        RecordTable.read(tmp_path / "t.txt")
    with pytest.raises(InputError, match="No such file"):
        RecordTable.read(tmp_path / "t.csv")
    with pytest.raises(InputError, match="to be writable"):
        small().write(tmp_path / "missing" / "t.csv")
    path = small().write(tmp_path / "t.json")
    whole = json.loads(path.read_text())
    for change, words in (
        ({"version": 1}, "version"),
        ({"format": "bayesdp/report"}, "format"),
        ({"delta": 7}, "delta"),
    ):
        path.write_text(json.dumps(whole | {"about": whole["about"] | change}))
        with pytest.raises(InputError, match=words):
            RecordTable.read(path)
    del whole["about"]["how"]
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError, match="how"):
        RecordTable.read(path)


def test_a_cell_that_is_no_number_is_refused(tmp_path):
    path = small().write(tmp_path / "t.csv")
    path.write_text(path.read_text(encoding="utf-8").replace(",inf,", ",much,"), encoding="utf-8")
    with pytest.raises(InputError, match="epsilon"):
        RecordTable.read(path)


def test_sixty_thousand_records_are_quick(tmp_path):
    rng = np.random.default_rng(1)
    count = 60_000
    began = time.process_time()
    table = RecordTable(
        title="MNIST",
        ids=np.arange(count),
        epsilon=rng.gamma(0.5, 0.3, count),
        delta=1e-5,
        direction="remove",
        label=rng.integers(0, 10, count),
        correct=rng.random(count) < 0.97,
    )
    made = time.process_time()
    table.write(tmp_path / "t.parquet")
    written = time.process_time()
    assert made - began < 2
    assert written - made < 2
    assert RecordTable.read(tmp_path / "t.parquet") == table
