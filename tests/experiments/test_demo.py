"""The demo: one run accounted for three audiences."""

from __future__ import annotations

import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.experiments.demo import COVERAGE, DELTA, ThreeWays, three_ways


@pytest.fixture(scope="module")
def ways() -> ThreeWays:
    return three_ways(0, people=500, steps=200)


def test_one_guarantee_for_each_audience(ways: ThreeWays) -> None:
    assert [g.notion for g in ways.guarantees] == ["dp", "bdp", "per-instance"]
    assert all(g.delta == DELTA for g in ways.guarantees)
    everybody, alike, _ = ways.guarantees
    assert alike.coverage == COVERAGE
    assert alike.orientation == "both"
    assert not everybody.sensitive
    assert alike.sensitive


def test_typical_people_are_better_off_than_the_worst_case(ways: ThreeWays) -> None:
    everybody, _, named = ways.guarantees
    assert ways.curve.at(0.5) < 0.5 * everybody.epsilon
    assert ways.named_size < 0.5
    assert named.epsilon < 0.5 * everybody.epsilon


def test_nobody_is_worse_off_than_the_limit(ways: ThreeWays) -> None:
    coverage, epsilon = ways.curve
    assert np.all(np.diff(coverage) > 0)
    assert np.all(np.diff(epsilon) >= 0)
    assert epsilon[-1] <= ways.curve.limit
    assert all(g.epsilon <= ways.curve.limit for g in ways.guarantees)


def test_same_seed_same_answer(ways: ThreeWays) -> None:
    again, other = (three_ways(seed, people=300, steps=50) for seed in (7, 8))
    assert again.guarantees == three_ways(7, people=300, steps=50).guarantees
    assert again.curve.at(0.5) != other.curve.at(0.5)


@pytest.mark.parametrize("bad", [{"seed": -1}, {"people": 10}, {"steps": 0}])
def test_bad_input(bad: dict[str, int]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        three_ways(**bad)
