"""Where divergences come from: what is taken, what it gives at any order, and what is refused."""

import json
import math

import pytest
from known_sources import Study, everybody

from bayesdp import Guarantee, InputError, InstanceAccountant, WorstCaseAccountant
from bayesdp.compose.filters import GaussianFilter, RenyiFilter
from bayesdp.unlearn import APriori, FilterBudget, GaussianBudget, Measured, WorstCase, source_of
from bayesdp.unlearn.source import from_dict


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 33.3])
def test_worst_case_is_the_accountants_curve(order):
    assert source_of(everybody()).divergence(order) == pytest.approx(everybody().cost(order) / (order - 1))


def test_worst_case_of_a_run_under_replace_one_counts_records_that_leave():
    assert source_of(everybody("replace-one")) == source_of(everybody())


def test_worst_case_of_several_is_above_so_many_single_ones():
    found = source_of(everybody())
    assert found.divergence(4.0, 2) > 2 * found.divergence(4.0)
    assert found.divergence(4.0, 3) > found.divergence(4.0, 2)


def test_filters_speak_up_to_their_order():
    for given in (
        RenyiFilter(5, 16.0, 0.3),
        InstanceAccountant(records=5, composition="filter", orders=[16.0], budget=0.3),
    ):
        found = source_of(given)
        assert found == FilterBudget(16.0, 0.3)
        assert [found.divergence(order) for order in (1.1, 8.0, 16.0, 16.1)] == [0.3, 0.3, 0.3, math.inf]
        assert math.isinf(found.divergence(2.0, 2))


def test_gaussian_filters_speak_at_every_order_and_for_groups():
    for given in (GaussianFilter(5, 0.4), InstanceAccountant(records=5, composition="gdp-filter", budget=0.4)):
        found = source_of(given)
        assert found == GaussianBudget(0.4)
        assert found.divergence(8.0) == pytest.approx(8 * 0.16 / 2)
        assert found.divergence(8.0, 3) == pytest.approx(8 * 1.2**2 / 2)


def test_a_study_is_read_once_and_rounded_to_the_next_order():
    study = Study(0.5, known_to=40.0)
    assert isinstance(study, APriori)
    found = source_of(study, 8.0)
    assert (found.failure, found.public) == (0.01, False)
    assert "Ten runs." in found.assumption
    for order, counted in ((1.5, 8), (8.0, 8), (15.0, 16), (16.0, 16), (23.0, 24), (30.0, 32)):
        assert found.divergence(order) == pytest.approx(counted * 0.125)
    assert math.isinf(found.divergence(40.0))  # the next order that was read is 48
    assert math.isinf(found.divergence(8.0, 2))


def test_a_measured_bound_at_a_larger_order_helps_below():
    assert Measured((2.0, 4.0, 8.0), (0.5, math.inf, 0.3), 0.01).divergences == (0.3, 0.3, 0.3)


@pytest.mark.parametrize(
    "source",
    [
        WorstCase(((4.0, 0.1, 50), (6.0, 0.2, 20))),
        FilterBudget(16.0, 0.3),
        GaussianBudget(0.4),
        Measured((2.0, 4.0), (0.1, 0.2), 0.01, "Ten runs."),
        Measured((2.0,), (math.inf,), 0.01),
    ],
)
def test_what_is_written_is_read(source):
    assert from_dict(json.loads(json.dumps(source.to_dict(), allow_nan=False))) == source


def test_unknown_orders_are_not_written():
    found = source_of(Study(0.5, known_to=40.0), 8.0)
    again = from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert [again.divergence(o) for o in (8.0, 30.0, 40.0)] == [found.divergence(o) for o in (8.0, 30.0, 40.0)]


def test_ex_post_numbers_are_refused_with_the_reason():
    accountant = InstanceAccountant(records=2, orders=[2.0, 8.0], cap=1.0)
    accountant.step([0.1, 0.2], noise_std=1.0)
    for given in (accountant, accountant.guarantee(1e-5, 0)):
        with pytest.raises(InputError, match=r"ex-post number.*no divergence.*Use the worst case"):
            source_of(given)


def test_other_things_are_refused():
    dp = Guarantee(notion="dp", epsilon=1.0, delta=1e-5)
    with pytest.raises(InputError, match="bounds no Rényi divergence"):
        source_of(dp)
    with pytest.raises(InputError, match="Give the study"):
        source_of(InstanceAccountant(records=2, composition="one-holder", cap=1.0))
    with pytest.raises(InputError, match="at least one noisy step"):
        source_of(WorstCaseAccountant())
    for bad in (3.0, None, "worst-case"):
        with pytest.raises(InputError, match="source"):
            source_of(bad)
    for bad in ({}, {"kind": "ex-post"}, {"kind": "filter", "order": 2.0}, {"kind": "worst-case", "steps": [1]}, []):
        with pytest.raises(InputError):
            from_dict(bad)
    for bad in ({"failure": 0.0}, {"orders": (4.0, 2.0)}, {"divergences": (0.1,)}, {"divergences": (-0.1, 0.2)}):
        with pytest.raises(InputError):
            Measured(**{"orders": (2.0, 4.0), "divergences": (0.1, 0.2), "failure": 0.01, **bad})
