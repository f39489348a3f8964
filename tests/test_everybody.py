"""Beside the DP ε: which promise holds for whom, and that no reader is told a larger number."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import everybody
from bayesdp.guarantee import Guarantee
from bayesdp.standing import Caveat

DP = Guarantee(notion="dp", epsilon=2.0, delta=1e-5)
ALIKE = Guarantee(notion="bdp", epsilon=2.5, delta=1e-5, coverage=0.9, failure=1e-6, ex_post=True, sensitive=True)


def test_a_guarantee_learns_of_the_least_dp_epsilon_beside_it():
    looser = replace(DP, epsilon=3.0)
    dp, _, alike = everybody.beside([DP, looser, ALIKE])
    assert dp == DP
    assert (alike.dp_epsilon, alike.no_better, alike.won, alike.epsilon) == (2.0, True, "dp", 2.5)
    assert everybody.capped(alike).epsilon == 2.0
    assert "no better than for everybody: DP ε = 2 and" in str(alike)
    assert "only" not in str(replace(alike, orientation="absent"))
    better = replace(ALIKE, epsilon=1.5)
    assert everybody.capped(everybody.beside([DP, better])[1]).epsilon == 1.5
    assert everybody.beside([DP, better])[1].won == "ex-post"
    assert replace(better, ex_post=False).won == "a-priori"
    # What it knew already counts as well.
    assert everybody.beside([DP, replace(ALIKE, dp_epsilon=1.0)])[1].dp_epsilon == 1.0


@pytest.mark.parametrize(
    "other",
    [
        replace(DP, epsilon=math.inf),
        replace(DP, adjacency="replace-one"),
        replace(DP, delta=1e-4),
        DP.doubted(Caveat("unsound", "Forgets.")),
    ],
)
def test_a_promise_of_another_kind_is_no_limit(other):
    assert everybody.beside([other, ALIKE])[1] == ALIKE


def test_an_infinite_epsilon_beside_dp_is_no_better_and_says_so():
    (_, alike) = everybody.beside([DP, replace(ALIKE, epsilon=math.inf)])
    assert "no better than for everybody" in str(alike)
    assert "no guarantee" not in str(alike)


def test_a_group_knows_nothing_of_the_dp_epsilon_of_one():
    pair = replace(ALIKE, epsilon=1.5, dp_epsilon=2.0).group(2)
    assert pair.dp_epsilon is None
    assert not pair.no_better


@given(st.floats(0, 10) | st.just(math.inf), st.none() | st.floats(0, 10) | st.just(math.inf))
def test_what_is_shown_is_never_above_dp_nor_below_the_truth(epsilon, dp):
    text = everybody.shown(epsilon, dp, 5)
    number = float(text.split(" ")[-1].replace("∞", "inf"))
    assert number >= everybody.least(epsilon, dp) * (1 - 1e-12)
    if dp is not None and math.isfinite(dp) and epsilon >= dp:
        assert text.startswith("no better than for everybody: DP ε ")
        assert number <= dp * (1 + 1.1e-4)
    else:
        assert "no better" not in text
