"""Rounding goes towards the promise that is kept; derived numbers are those of the accountants."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import disagreement, full, minimal, three, unbounded

from bayesdp.attacker import AttackerBounds
from bayesdp.convert import attacker_success
from bayesdp.guarantee import Guarantee
from bayesdp.report import CoverageCurve, RecordLosses, rounding
from bayesdp.report.derived import derived
from bayesdp.report.html.cited import Cited, step

positive = st.floats(min_value=1e-12, max_value=1e12)


@given(positive, st.sampled_from(["up", "down", "near"]))
def test_a_printed_number_is_on_the_safe_side_and_close(value, how):
    assert disagreement(rounding.number(value, how), how, value) == ""


@given(st.floats(min_value=1e-9, max_value=1), st.sampled_from(["up", "down"]))
def test_a_printed_percentage_is_on_the_safe_side_and_close(share, how):
    assert disagreement(rounding.percent(share, how), how, share) == ""


@given(st.floats(min_value=1e-15, max_value=0.5))
def test_a_share_below_one_is_never_printed_as_all(gap):
    if 1 - gap < 1:
        assert rounding.percent(1 - gap, "down") != "100 %"


@given(st.floats(min_value=1e-300, max_value=1))
def test_a_small_probability_is_never_printed_smaller(value):
    assert disagreement(rounding.power(value), "up", value) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rounding.number(2.00001, "up"), "2.001"),
        (rounding.number(2.0, "up"), "2"),
        (rounding.number(0.1, "up"), "0.1"),
        (rounding.number(0.0, "up"), "0"),
        (rounding.number(1.99999, "down"), "1.999"),
        (rounding.number(12345.6, "near"), "12,350"),
        (rounding.number(1e-9, "near"), "10⁻⁹"),
        (rounding.number(math.inf, "up"), "no guarantee"),
        (rounding.percent(0.9, "down"), "90 %"),
        (rounding.percent(1 - 1e-6, "down"), "99.9999 %"),
        (rounding.percent(0.88081, "up"), "88.1 %"),
        (rounding.percent(1.0, "down"), "100 %"),
        (rounding.power(1e-5), "10⁻⁵"),
        (rounding.power(5e-6), "5×10⁻⁶"),
        (rounding.power(0.0), "0"),
        (rounding.count(60000), "60,000"),
    ],
)
def test_numbers_as_they_are_printed(text, expected):
    assert text == expected


def test_a_key_may_hold_any_name():
    cited = Cited({"a": {"x/y~z.w": [1, {"": 5.0}]}})
    assert cited.value(f"a/{step('x/y~z.w')}/1/") == 5.0


def test_attacker_success_is_the_guarantee_s():
    found = derived(full())["guarantees"]
    assert [one["attacker_success"] for one in found] == [one.attacker_success() for one in three()]
    assert found[0]["factor"] == pytest.approx(math.exp(1.9995))
    assert found[1]["confidence"] == 1 - 1e-6
    assert found[1]["outside"] == 0.1
    assert [one["delta_one_in"] for one in found] == [100_000] * 3
    assert derived(unbounded())["guarantees"][0]["attacker_success"] == 1


def test_what_an_attacker_can_do_is_the_guarantee_s():
    bounds = AttackerBounds(advantage=0.1, false_positive_rates=(0.01, 1.0), true_positive_rates=(0.02, 1.0))
    known = replace(three()[0], attacker=bounds)
    found, *others = derived(replace(full(), guarantees=(known, *three()[1:])))["guarantees"]
    assert found["attacker_right"] == 0.55
    assert [row["true_positive_rate"] for row in found["true_positives"]] == [0.02, 0.02, pytest.approx(0.2)]
    assert [one["attacker_right"] for one in others] == [None, None]
    assert [one["true_positives"] for one in others] == [None, None]
    assert derived(unbounded())["guarantees"][0]["attacker_right"] is None


@pytest.mark.parametrize("change", [{"delta": 1.0}, {"coverage": 0.0}, {"epsilon": math.inf}])
def test_a_guarantee_that_says_nothing_allows_every_attacker(change):
    empty = replace(three()[1], **change)
    (found,) = derived(replace(minimal(), guarantees=(empty,)))["guarantees"]
    assert found["says_nothing"] is True
    assert found["attacker_success"] == 1


def test_a_zero_delta_and_a_huge_epsilon_have_no_odds_and_no_factor():
    sure = Guarantee(notion="dp", epsilon=40, delta=0)
    (found,) = derived(replace(minimal(), guarantees=(sure,)))["guarantees"]
    assert found["delta_one_in"] is None
    assert found["factor"] is None


def test_the_curve_is_read_as_the_accountant_reads_it():
    found = derived(full())["curve"]
    rows = {row["coverage"]: row for row in found["rows"]}
    assert list(rows) == [0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.987]
    # A share between two entries has the ε of the next.
    assert [row["epsilon"] for row in found["rows"]] == [0.2, 0.4, 0.4, 0.8, 0.8, 0.8, 2.0957, 2.0957]
    assert rows[0.5]["attacker_success"] == attacker_success(0.4, 1e-5)
    assert found["below_dp"] == 0.9002
    assert found["most"] == 0.987
    assert (found["half"]["epsilon"], found["ninety"]["epsilon"]) == (0.4, 0.8)


def test_a_curve_above_or_without_a_dp_value_has_no_share_below_it():
    assert derived(unbounded())["curve"]["below_dp"] is None
    assert derived(replace(full(), curve=replace(full().curve, dp=0.5)))["curve"]["below_dp"] == 0.5001
    above = CoverageCurve(coverage=(0.5,), epsilon=(3.0,))
    assert derived(replace(full(), curve=above))["curve"]["below_dp"] is None
    only = replace(full(), guarantees=three()[1:])
    assert derived(only)["dp"] is None
    assert derived(only)["curve"]["below_dp"] is None


losses = st.lists(st.one_of(st.floats(min_value=0, max_value=1e6), st.just(math.inf)), min_size=1, max_size=40)


@given(losses, st.booleans())
def test_every_witness_is_in_one_bin_or_has_no_guarantee(epsilon, labelled):
    correct = tuple(place % 3 > 0 for place in range(len(epsilon))) if labelled else None
    found = derived(replace(full(), records=RecordLosses(epsilon=epsilon, correct=correct)))["records"]
    groups = ("correct", "wrong", "all") if labelled else ("all",)
    assert set(found["groups"]) == set(groups)
    for group in groups:
        counted = sum(one[group] for one in found["bins"]) + found["groups"][group]["infinite"]
        assert counted == found["groups"][group]["count"]
    assert found["groups"]["all"]["count"] == len(epsilon)
    assert found["groups"]["all"]["largest"] == min(max(epsilon), 1.9995)  # the DP ε, which everybody has
    assert found["groups"]["all"]["at_dp"] == sum(one >= 1.9995 for one in epsilon)
    for one, after in zip(found["bins"], found["bins"][1:], strict=False):
        assert one["high"] == after["low"]


def test_bins_hold_what_lies_in_them():
    epsilon = np.arange(301) / 100
    found = derived(replace(full(), guarantees=three()[1:], records=RecordLosses(epsilon=epsilon)))["records"]["bins"]
    assert len(found) == 30
    edges = [(one["low"], one["high"]) for one in found]
    held = [int(((epsilon >= low) & (epsilon < high)).sum()) for low, high in edges]
    held[-1] += 1  # the last bin has its upper end
    assert [one["all"] for one in found] == held
    assert (found[0]["low"], found[-1]["high"]) == (0, 3)


def test_the_median_of_records_is_one_of_them():
    found = derived(full())["records"]["groups"]
    assert found["correct"]["median"] == 0.2
    assert found["wrong"]["median"] == 1.5
    assert (found["wrong"]["largest"], found["wrong"]["at_dp"]) == (1.9995, 1)


@pytest.mark.parametrize(
    ("change", "sensitive"),
    [
        ({}, False),
        ({"guarantees": three()[1:]}, True),
        ({"curve": full().curve}, True),
        ({"records": full().records}, True),
        ({"norms": full().norms}, True),
        ({"history": full().history}, True),
        ({"history": replace(full().history, bdp=None, per_instance=None)}, False),
        ({"progress": full().progress}, False),
    ],
)
def test_a_page_is_sensitive_when_any_part_is_taken_from_private_data(change, sensitive):
    assert derived(replace(minimal(), **change))["sensitive"] is sensitive
