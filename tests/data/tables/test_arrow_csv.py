"""Arrow reads what the module `csv` reads, or leaves it to that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.data import table_file
from bayesdp.data.table_file import read_table
from bayesdp.data.tables import arrow_csv
from bayesdp.errors import InputError

BODY = 'age;job;note\n 20 ;cook;"a; b"\n\n30;;"two\nlines"\n40; nurse;said ""yes""\n50;x;NA\n'


@pytest.fixture
def always(monkeypatch):
    """Small files too."""
    monkeypatch.setattr(arrow_csv, "LARGE", 0)


def by_csv(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(table_file, "arrow_columns", lambda *_: None)
        return read_table(path)


def test_both_readers_find_the_same_cells_and_lines(tmp_path, monkeypatch, always):
    for name, text in (("a.csv", BODY), ("b.csv", "\ufeff" + BODY), ("c.csv", BODY.replace("\n", "\r\n"))):
        path = tmp_path / name
        path.write_bytes(text.encode())
        slow, fast = by_csv(path, monkeypatch), read_table(path)
        assert fast.columns == slow.columns, name
        assert [fast.place(row) for row in range(4)] == [slow.place(row) for row in range(4)]
    assert fast.columns["age"] == ["20", "30", "40", "50"]
    assert slow.place(1) == "line 5"


def test_arrow_is_asked_at_all(tmp_path, always, monkeypatch):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    asked = []
    monkeypatch.setattr(table_file, "line_of", lambda *place: asked.append(place) or 2)
    assert read_table(tmp_path / "a.csv").place(0) == "line 2"
    assert asked


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3\n", "2 cells in every row, as in its header, got 1 in line 3"),
        (b"a,b\n1,\xff\n", "a CSV file in UTF-8"),
        (b'a,b\n1,"2\n', "unexpected end of data in line 2"),
        (b'a,b\n1,"2"3\n', "expected after"),
    ],
)
def test_what_arrow_cannot_tell_is_told_by_the_other(tmp_path, always, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "a.csv")


@given(st.lists(st.lists(st.text('ab1." ,;é', max_size=4), min_size=2, max_size=2), min_size=1, max_size=6))
def test_any_cells_are_read_alike(tmp_path_factory, rows):
    import csv

    path = tmp_path_factory.mktemp("any") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["p", "q"], *rows])
    with pytest.MonkeyPatch.context() as patch:
        slow = by_csv(path, patch)
        patch.setattr(arrow_csv, "LARGE", 0)
        assert read_table(path).columns == slow.columns
