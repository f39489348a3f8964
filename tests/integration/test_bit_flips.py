"""A bit flips somewhere in a run's folder: an answer that changes is refused. A short form of `make crash`."""

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "bit_flips.py"


@pytest.fixture(scope="module")
def flips():
    spec = importlib.util.spec_from_file_location("bit_flips", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_flip_that_changes_an_answer_is_noticed(flips, tmp_path):
    folder = flips.made(tmp_path)
    counts = flips.flipped(folder, flips.answers(folder), flips=100, seed=0)
    assert counts["changed"] == 0
    assert counts["noticed"] > 70
    assert sum(counts.values()) == 100
