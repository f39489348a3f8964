"""Keep or retrain: a kept model really is within the budget, on mechanisms whose divergences are known exactly."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_sources import Study, everybody
from scipy.special import ndtr

from bayesdp import InputError
from bayesdp.unlearn import INTERNAL, MODIFY, FilterBudget, GaussianBudget, Ledger, WorstCase, protocol_of, variation
from bayesdp.unlearn.triangle import WAYS


def again(ledger):
    return Ledger.from_dict(json.loads(json.dumps(ledger.to_dict(), allow_nan=False)))


@given(st.integers(0, 10**6), st.sampled_from(WAYS))
def test_a_kept_model_is_within_the_budget(seed, way):
    """A(D) = N(Σ x, I) on a plane, x of norm at most 1/2: D_α(kept ‖ trained without) = α |Σ forgotten|²/2 exactly.

    Any stream of requests, each with a source that is right: the record's own distance (a study), or the largest one.
    """
    rng = np.random.default_rng(seed)
    order, budget = rng.uniform(2.1, 12), rng.uniform(0.2, 30)
    ledger = Ledger(budget=budget, order=order, failure=0.5, way=way)
    gone, number, kept_ever = np.zeros(2), 0, False
    for _ in range(12):
        count = int(rng.integers(1, 4))
        each = rng.normal(size=(count, 2)) * 0.5
        each /= np.maximum(1, np.linalg.norm(each, axis=1, keepdims=True) / 0.5)
        kind = rng.integers(3)
        if kind == 0:
            each, count = each[:1], 1
        source = (
            Study(float(np.linalg.norm(each[0])) * (1 + 1e-9), failure=0.001),
            GaussianBudget(0.5),
            WorstCase(((2.0, 1.0, 1),)),  # one step with every record: a Gaussian of shift 1/2
        )[kind]
        who = tuple(range(number, number + count))
        number += count
        decision = again(ledger).request(who, source)
        ledger = decision.ledger
        assert (decision.answer == "keep") == (decision.left <= budget)
        if decision.answer == "keep":
            kept_ever = True
            gone += each.sum(axis=0)
            assert order * gone @ gone / 2 <= decision.left <= budget
            assert decision.left == pytest.approx(sum(term.value for term in decision.terms))
        else:
            assert ledger.due
            ledger, gone = ledger.retrained(), np.zeros(2)
    assert set(range(number)) == set(ledger.forgotten)
    assert kept_ever or budget < 4


def test_our_chain_keeps_more_than_e12_and_e12_more_than_the_print():
    source, kept = everybody(), {}
    for way in WAYS:
        ledger = Ledger(budget=9.0, order=8.0, way=way)
        kept[way] = ledger.room(source)
        answers = []
        for record in range(kept[way] + 1):
            decision = ledger.request(record, source)
            ledger = decision.ledger
            answers.append(decision.answer)
        assert answers == ["keep"] * kept[way] + ["retrain"], way
    assert kept["best"] > kept["doubling"] >= kept["printed"] >= 1


def test_several_at_once_are_one_after_the_other():
    source, ledger = everybody(), Ledger(budget=10.0, order=4.0)
    one = ledger.request(1, source).ledger.request(2, source)
    both = ledger.request((1, 2), source)
    assert one.left == both.left
    assert [term.records for term in one.terms] == [(1, 2)]
    filtered = FilterBudget(64.0, 0.1)
    assert len(ledger.request((1, 2, 3), filtered).terms) == 3  # a filter speaks for single records: a chain of three
    assert math.isinf(ledger.request(range(20), filtered).left)  # its order does not reach


def test_the_first_request_needs_no_triangle():
    decision = Ledger(budget=1.0, order=8.0).request(7, FilterBudget(8.0, 0.9))
    assert (decision.answer, len(decision.terms)) == ("keep", 1)
    assert (decision.terms[0].coefficient, decision.terms[0].order, decision.terms[0].divergence) == (1, 8, 0.9)
    assert Ledger(budget=1.0, order=8.0, way="printed").request(7, FilterBudget(8.0, 0.9)).answer == "retrain"


def test_once_retraining_is_due_it_stays_due():
    ledger = Ledger(budget=0.01, failure=0.1).request(1, GaussianBudget(1.0)).ledger
    assert ledger.due
    decision = ledger.request(2, GaussianBudget(0.0))
    assert (decision.answer, decision.terms, ledger.room(GaussianBudget(0.0))) == ("retrain", (), 0)
    assert "due since" in str(decision)
    assert decision.ledger.forgotten == (1, 2)
    fresh = decision.ledger.retrained()
    assert fresh.request(3, GaussianBudget(0.01)).answer == "keep"
    with pytest.raises(InputError, match="forgotten already"):
        fresh.request(1, GaussianBudget(0.01))


def test_studies_draw_on_gamma_whatever_they_say():
    ledger = Ledger(budget=1.0, order=2.0, failure=0.025)
    far, near = Study(9.0), Study(0.1)
    decision = ledger.request(1, near)
    assert decision.failure == 0.01
    ledger = decision.ledger.request(2, far).ledger  # "retrain", and paid for all the same
    assert (ledger.due, ledger.spent) == (True, 0.02)
    ledger = ledger.retrained()
    with pytest.raises(InputError, match=r"γ = 0.025, of which 0.025 is for studies and 0.02 is used.*worst case"):
        ledger.request(3, near)
    assert ledger.request(3, GaussianBudget(0.1)).answer == "keep"
    with pytest.raises(InputError, match="got γ = 0"):
        Ledger(budget=1.0).request(1, near)
    with pytest.raises(InputError, match="one record for a study"):
        Ledger(budget=1.0, failure=0.1).request((1, 2), near)


def test_which_protocol_it_is():
    """E13: only what is computed from private data and decides what is released is an audit to modify."""
    ledger = Ledger(budget=1.0, order=2.0, failure=0.1)
    public = ledger.request(1, GaussianBudget(0.1))
    assert (public.protocol, public.to_dict()["sensitive"]) == (INTERNAL, False)
    private = ledger.request(1, Study(0.1))
    assert (private.protocol, private.to_dict()["sensitive"]) == (MODIFY, True)
    assert private.ledger.request(2, GaussianBudget(0.1)).protocol is MODIFY  # the study is still in the sum
    assert "audit to modify" in str(private)
    assert protocol_of(from_private_data=True, decides_release=False) is INTERNAL
    assert (INTERNAL.keeps_dp, MODIFY.keeps_dp) == (True, False)


def laws(rng, records, outcomes):
    """The law of a mechanism's outcome with everybody, and without each record."""
    whole = rng.dirichlet(np.ones(outcomes)) + 1e-3
    without = whole * np.exp(rng.normal(0, 0.3, size=(records, outcomes)))
    return whole / whole.sum(), without / without.sum(axis=1, keepdims=True)


def renyi(p, q, order):
    seen = p > 0
    return math.log(np.sum(p[seen] ** order * q[seen] ** (1 - order))) / (order - 1)


@given(st.integers(0, 10**6))
def test_adaptive_requests_are_covered_but_with_probability_gamma(seed):
    """Requests by any function of the outcome: the outcomes whose requests break the bound have probability ≤ γ."""
    rng = np.random.default_rng(seed)
    records, order, gamma = 6, rng.uniform(1.2, 9), rng.choice([0.01, 0.2, 0.9])
    whole, without = laws(rng, records, 12)
    asks = rng.integers(0, records, 12)
    broken = 0.0
    ledger = Ledger(budget=1e6, order=order, requests="adaptive", records=records, failure=gamma)
    for record in set(asks.tolist()):
        given_request = np.where(asks == record, whole, 0.0)
        chance = given_request.sum()
        truth = renyi(given_request / chance, without[record], order)
        exact = FilterBudget(order, max(0.0, renyi(whole, without[record], order)))
        decision = ledger.request(record, exact)
        assert decision.surcharge > math.log(records / gamma)
        broken += chance if truth > decision.left else 0.0
    assert broken <= gamma / 2


def test_whoever_asks_may_choose_how_many_records_and_in_how_many_requests():
    """Sizes drawn at random, then records in random order: log 1/Pr(E) passes what was paid hardly ever."""
    records, gamma, most = 1000, 0.1, 100
    missed = 0.0
    for size in range(1, most + 1):
        ledger = Ledger(budget=1e9, order=8.0, records=records, requests="adaptive", failure=gamma)
        paid = ledger.request(list(range(1, size + 1)), GaussianBudget(1e-9)).surcharge * 7 / 8
        missed += (math.log(most) + math.lgamma(records + 1) - math.lgamma(records - size + 1) > paid) / most
    assert missed <= gamma / 2
    one_by_one = Ledger(budget=1e9, order=8.0, records=records, requests="adaptive", failure=gamma)
    for record in (1, 2, 3):
        one_by_one = one_by_one.request(record, GaussianBudget(1e-9)).ledger
    in_two = Ledger(budget=1e9, order=8.0, records=records, requests="adaptive", failure=gamma)
    in_two = in_two.request([1, 2], GaussianBudget(1e-9)).ledger.request(3, GaussianBudget(1e-9)).ledger
    # Two ways to cut three into two, one to cut it into three; but the third request has a smaller share of γ.
    apart = math.log(2) + math.log(2 * 3 / (3 * 4))
    assert in_two._surcharge() - one_by_one._surcharge() == pytest.approx(8 / 7 * apart, abs=1e-9)


def test_the_erratum_of_adaptive_requests_is_covered():
    """ERR 21: a model names one of ten records, and that one asks."""
    without = np.append(np.full(9, 2.0), 1.0) / 19
    plain = renyi(np.full(10, 0.1), without, 8.0)
    truth = math.log(19)
    oblivious = Ledger(budget=10.0, order=8.0).request(9, FilterBudget(8.0, plain))
    adaptive = Ledger(budget=10.0, order=8.0, requests="adaptive", records=10, failure=0.1).request(
        9, FilterBudget(8.0, plain)
    )
    assert oblivious.left < truth < adaptive.left
    assert "depend on the model" in str(adaptive)
    assert any("oblivious" in one for one in oblivious.assumptions)


def test_adaptive_surcharges_grow_with_the_requests_and_fall_with_gamma():
    def second(gamma):
        ledger = Ledger(budget=1e3, order=8.0, requests="adaptive", records=100, failure=gamma)
        first = ledger.request(1, GaussianBudget(0.1))
        return first.surcharge, first.ledger.request(2, GaussianBudget(0.1)).surcharge

    one, two = second(0.1)
    assert one == pytest.approx(8 / 7 * math.log(2 * 100 / (0.05 / 2)), rel=1e-9)
    assert two == pytest.approx(8 / 7 * math.log(6 * 9900 / (0.05 / 6)), rel=1e-9)
    assert second(0.01)[0] > one
    for missing in ({"failure": 0.0}, {"records": None}):
        with pytest.raises(InputError, match=r"change its law \(ERR 21\).*retrain"):
            Ledger(**{"budget": 1.0, "requests": "adaptive", "records": 10, "failure": 0.1, **missing})


def test_epsilon_is_the_conversion_of_the_left_side():
    decision = Ledger(budget=5.0, order=8.0).request(1, everybody())
    assert 0 < decision.epsilon(1e-5) < decision.left + math.log(1e5) / 7
    assert decision.epsilon(1e-5) > decision.epsilon(1e-3)


@pytest.mark.parametrize("distance", [0.01, 0.3, 1.0, 3.0])
def test_models_are_told_apart_no_more_often_than_stated(distance):
    """Two Gaussians: the best test is right Φ(d/2) of the time."""
    decision = Ledger(budget=1e3, order=1.5).request(1, GaussianBudget(distance))
    assert decision.told_apart == pytest.approx(ndtr(distance / 2), rel=1e-12)  # fixed beforehand: exact
    # From the divergence alone, as for a filter of one order.
    for order in (1.5, 2.0, 8.0):
        found = Ledger(budget=1e3, order=order).request(1, FilterBudget(order, order * distance**2 / 2))
        assert ndtr(distance / 2) <= found.told_apart <= 1
        assert found.told_apart < 0.5 + order * distance / 2


def test_the_worst_case_is_told_apart_as_often_as_its_loss_distribution_says():
    """Without sampling a Gaussian of shift √T/z; with it, against a simulation of the best test."""
    plain, rng = WorstCase(((4.0, 1.0, 3),)), np.random.default_rng(0)
    found = Ledger(budget=1e3).request(1, plain)
    truth = ndtr(math.sqrt(3) / 4 / 2)
    assert truth <= found.told_apart <= truth + 1e-4
    sampled = WorstCase(((1.0, 0.2, 5),))
    told = {order: Ledger(budget=1e3, order=order).request(1, sampled).told_apart for order in (2.0, 8.0)}
    assert told[2.0] == told[8.0]
    present = rng.random((400_000, 5)) < 0.2
    x = rng.standard_normal((400_000, 5)) + present
    right = np.log(0.8 + 0.2 * np.exp(x - 0.5)).sum(1) > 0
    wrong = np.log(0.8 + 0.2 * np.exp(rng.standard_normal((400_000, 5)) - 0.5)).sum(1) > 0
    assert told[2.0] == pytest.approx((1 + right.mean() - wrong.mean()) / 2, abs=0.003)
    two = Ledger(budget=1e3).request((1, 2), sampled)
    assert told[2.0] < two.told_apart <= 2 * told[2.0] - 0.5 + 1e-12
    # Requests that may depend on the model change its law: the exact distance is not theirs.
    looked = Ledger(budget=1e3, requests="adaptive", records=10, failure=0.1).request(1, plain)
    assert looked.told_apart == (1 + variation.from_divergence(looked.left, 2.0)) / 2


def test_words_and_values_agree():
    decision = Ledger(budget=5.0, order=8.0).request(17, everybody())
    assert str(decision).startswith("Keep the model to forget record 17: 1 × ")
    assert "≤ β = 5 at order α = 8" in str(decision)
    plain = json.loads(json.dumps(decision.to_dict(), allow_nan=False))
    assert (plain["answer"], plain["records"], plain["left"]) == ("keep", [17], decision.left)
    far = Ledger(budget=5.0, order=8.0).request(17, FilterBudget(4.0, 0.1))
    assert json.loads(json.dumps(far.to_dict(), allow_nan=False))["left"] == "inf"
    assert "> β = 5" in str(far)
    assert "second release" in str(far)


def test_a_request_changes_nothing_but_its_own_ledger():
    ledger = Ledger(budget=5.0, order=8.0, failure=0.1)
    before = ledger.to_dict()
    ledger.request(1, everybody())
    for records, source in (((), everybody()), ((1, 1), everybody()), (-1, everybody()), (1.5, everybody()), (1, 3)):
        with pytest.raises(InputError):
            ledger.request(records, source)
    assert ledger.to_dict() == before


@pytest.mark.parametrize(
    "bad",
    [
        {"budget": 0},
        {"budget": math.inf},
        {"order": 1.0},
        {"requests": "both"},
        {"failure": 1.0},
        {"way": "other"},
        {"way": "printed", "order": 2.0},
        {"records": 0},
        {"asked": -1},
    ],
)
def test_bad_settings(bad):
    with pytest.raises(InputError):
        Ledger(**{"budget": 1.0, **bad})


def test_damaged_ledgers_are_refused():
    good = Ledger(budget=1.0).request(1, GaussianBudget(0.1)).ledger.to_dict()
    assert Ledger.from_dict(good).to_dict() == good
    for damage in ({"entries": [{}]}, {"entries": 3}, {"more": 1}, {"budget": "x"}, {"forgotten": None}):
        with pytest.raises(InputError):
            Ledger.from_dict({**good, **damage})
