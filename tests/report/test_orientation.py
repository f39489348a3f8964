"""What an ε means, in numbers that are easy to check."""

import math

import pytest

from bayesdp.report.orientation import EPSILONS, PRIOR, USES, meaning


def test_how_sure_somebody_becomes():
    rows = meaning(1.5)
    assert [row["epsilon"] for row in rows] == sorted([*EPSILONS, 1.5])
    (own,) = [row for row in rows if row["own"]]
    odds = math.exp(1.5)
    assert own["undecided"] == pytest.approx(odds / (1 + odds))
    assert own["doubtful"] == pytest.approx(PRIOR * odds / (PRIOR * odds + 1 - PRIOR))


@pytest.mark.parametrize("own", [None, math.inf, 1.9999])
def test_no_line_twice_and_none_without_a_number(own):
    rows = meaning(own)
    assert len(rows) == len(EPSILONS)
    assert sum(row["own"] for row in rows) == (own == 1.9999)


def test_every_use_has_a_source():
    assert all(all(row) for row in USES)
