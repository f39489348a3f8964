"""Damaged files and lines typed at random: answered or refused in words. A short form of `make fuzz`."""

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["people.ledger", "unlearning.json", "bounds.csv", "params.npz"])
def test_a_reader_answers_or_refuses_and_what_has_a_checksum_is_not_believed(fuzz, tmp_path, name):
    counts = fuzz.fuzzed(name, tmp_path, 100, seed=1)
    assert counts["refused"] > 20


def test_a_line_is_answered_or_refused_in_words(fuzz, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = fuzz.typed_lines(60, seed=1)
    assert counts["exit 2"] > 20


def test_a_reader_that_believes_damage_is_caught(fuzz, tmp_path, monkeypatch):
    gullible = fuzz.READERS["people.ledger"]._replace(read=lambda path: [path.read_bytes()])
    monkeypatch.setitem(fuzz.READERS, "people.ledger", gullible)
    with pytest.raises(AssertionError, match="believed"):
        fuzz.fuzzed("people.ledger", tmp_path, 50, seed=1)
