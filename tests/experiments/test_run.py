"""`reproduce`: files that repeat, options that are taken or refused, input that is bad."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import pytest

from bayesdp.errors import InputError
from bayesdp.experiments import MODULES, load
from bayesdp.experiments.run import reproduce, write_csv


def test_files_are_written_and_repeat(tmp_path: Path) -> None:
    first = reproduce("bdp-fig4", tmp_path / "a" / "b")
    second = reproduce("bdp-fig4", str(tmp_path / "c"))
    assert [path.name for path in first] == ["bdp-fig4.csv", "bdp-fig4.png", "bdp-fig4.svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[1].read_bytes().startswith(b"\x89PNG")
    assert first[2].read_text(encoding="utf-8").rstrip().endswith("</svg>")
    with first[0].open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert {row["way"] for row in table} == {"paper", "sound", "dp"}
    (best,) = [row for row in table if (row["clip_norm"], row["lam"], row["way"]) == ("1", "12", "paper")]
    assert float(best["epsilon"]) == pytest.approx(1.10646818056, rel=1e-9)


def test_infinity_and_column_order_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(path, [{"a": 1.0, "b": "x"}, {"b": "y", "a": math.inf}])
    assert path.read_text(encoding="utf-8") == "a,b\n1,x\ninf,y\n"


def test_registry() -> None:
    for name in MODULES:
        experiment = load(name)
        assert experiment.title
        assert set(experiment.options) <= {"full", "data_dir", "results"}


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bdp-fig1"):
        reproduce("bdp-fig9", tmp_path)
    with pytest.raises(InputError, match="seed"):
        reproduce("bdp-fig4", tmp_path, seed=-1)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="out"):
        reproduce("bdp-fig4", blocked / "below")
    assert list(tmp_path.iterdir()) == [blocked]


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"bayesdp\[plot\]"):
        reproduce("bdp-fig4", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_options_that_an_experiment_does_not_take_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"full .* bdp-fig4"):
        reproduce("bdp-fig4", tmp_path / "new", full=True)
    with pytest.raises(InputError, match=r"data_dir .* bdp-table1"):
        reproduce("bdp-table1", tmp_path / "new", data_dir=tmp_path)
    assert not (tmp_path / "new").exists()
