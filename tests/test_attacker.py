"""What an attacker can do (H17): against closed forms, enumerations and the numbers of the specification."""

import dataclasses
import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bayesdp import InputError, WorstCaseAccountant, convert
from bayesdp.attacker import RATES, SHOWN, AttackerBounds, LossLaw, bounds, true_positives
from bayesdp.guarantee import Guarantee

BOUNDS = AttackerBounds(advantage=0.2, false_positive_rates=(0.01, 0.1), true_positive_rates=(0.05, 0.25))


def run(z, q=1.0, steps=1, **how):
    accountant = WorstCaseAccountant(**how)
    accountant.step(noise_multiplier=z, sampling_rate=q, steps=steps)
    return accountant


def best_test(p, q, rate):
    """The true-positive rate of the best test between two discrete laws, by Neyman and Pearson."""
    order = np.argsort(-(p / q))
    hits, alarms = np.append(0, np.cumsum(p[order])), np.append(0, np.cumsum(q[order]))
    return float(np.interp(rate, alarms, hits))


def law_of(p, q):
    """The law of log p/q under p, equal losses together."""
    losses = np.log(p / q)
    kinds, which = np.unique(np.round(losses, 12), return_inverse=True)
    return LossLaw(kinds, np.bincount(which, p), 0.0)


@pytest.mark.parametrize(
    ("z", "q", "steps", "exactly", "by_formula"),
    [(4.03, 0.0731, 273, 0.560, 0.765), (1.1, 256 / 60000, 14063, 0.612, 0.915)],
)
def test_the_numbers_of_the_specification(z, q, steps, exactly, by_formula):
    promise = run(z, q, steps).guarantee(1e-5)
    assert promise.attacker is not None
    assert promise.attacker.right == pytest.approx(exactly, abs=5e-4)
    assert promise.attacker_right == promise.attacker.right
    assert promise.attacker_success() == pytest.approx(by_formula, abs=5e-4)


@pytest.mark.parametrize("mu", [0.03, 0.5, 2, 6])
def test_a_gaussian_has_closed_forms_and_is_never_undercut(mu):
    found = run(1 / mu).attacker()
    exact = 2 * norm.cdf(mu / 2) - 1
    assert exact <= found.advantage <= exact * (1 + 1e-6)
    for rate, hits in zip(found.false_positive_rates, found.true_positive_rates, strict=True):
        # float64's Φ and its inverse are good to about 1e-15.
        assert norm.cdf(norm.ppf(rate) + mu) - 1e-14 <= hits <= norm.cdf(norm.ppf(rate) + mu) + 1e-6


def test_several_gaussian_steps_are_one():
    found, one = run(4.0, steps=9).attacker(), run(4 / 3).attacker()
    assert found.advantage == pytest.approx(one.advantage, rel=1e-6)
    assert found.true_positive_rates == pytest.approx(one.true_positive_rates, rel=1e-4)


def test_replacing_a_record_is_twice_the_shift():
    found = run(2.0, adjacency="replace-one").attacker()
    assert found.advantage == pytest.approx(2 * norm.cdf(1 / 2) - 1, rel=1e-6)


@pytest.mark.parametrize("q", [0.05, 0.5])
def test_one_sampled_step_is_the_worse_direction(q):
    """P = (1−q) N(0,1) + q N(1/z,1) against N(0,1), looked for by thresholds, which are the best tests here."""
    z = 0.7
    found = run(z, q).attacker()
    assert found.advantage == pytest.approx(q * (2 * norm.cdf(0.5 / z) - 1), rel=1e-5)

    def mixed(x):
        return (1 - q) * norm.sf(x) + q * norm.sf(x - 1 / z)

    cuts = np.linspace(-12, 14, 400_001)
    for rate in SHOWN:
        presence = np.interp(rate, norm.sf(cuts)[::-1], mixed(cuts)[::-1])
        absence = np.interp(rate, 1 - mixed(cuts), norm.cdf(cuts))
        worse = max(presence, absence)
        assert worse * (1 - 1e-6) <= found.true_positive_rate(rate) <= worse * (1 + 1e-4)
        assert presence > absence  # they differ, so that the maximum matters


@given(st.floats(0.05, 2), st.integers(1, 5), st.floats(1e-4, 1))
@settings(max_examples=40)
def test_randomised_response_by_enumeration(epsilon, times, rate):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    p = np.array([math.prod(keep if bit else 1 - keep for bit in bits) for bits in product((0, 1), repeat=times)])
    q = np.array([math.prod(1 - keep if bit else keep for bit in bits) for bits in product((0, 1), repeat=times)])
    assert true_positives(law_of(p, q), [rate])[0] == pytest.approx(best_test(p, q, rate), abs=1e-9)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=7), st.randoms(), st.floats(1e-4, 1))
@settings(max_examples=60)
def test_any_two_discrete_laws_by_enumeration(weights, random, rate):
    other = [random.uniform(0.01, 1) for _ in weights]
    p, q = np.array(weights) / sum(weights), np.array(other) / sum(other)
    found = true_positives(law_of(p, q), [rate])[0]
    exact = best_test(p, q, rate)
    assert exact - 1e-9 <= found <= exact + 1e-9


def test_mass_that_only_p_has_is_always_found():
    """P: nothing is said with probability 0.9, else the record's name; Q never names it."""
    law = LossLaw(np.array([math.log(0.9)]), np.array([0.9]), 0.1)
    assert true_positives(law, [0.0, 0.5, 1.0]) == pytest.approx([0.1, 0.55, 1.0], abs=1e-12)


def test_losses_that_leave_float64_and_negative_rounding():
    law = LossLaw(np.array([-2000.0, -1.0, 0.0, 3000.0]), np.array([1e-3, 0.4, -1e-18, 0.599]), 0.0)
    found = true_positives(law, [1e-3, 0.5])
    assert np.isfinite(found).all()
    assert (found >= 0.599).all()
    assert (true_positives(LossLaw(np.array([5e3]), np.array([1.0]), 0.0), SHOWN) == 1).all()


@given(st.floats(0.5, 8), st.floats(0.01, 1), st.integers(1, 50))
@settings(max_examples=2)
def test_less_noise_higher_rates_and_more_steps_never_help(z, q, steps):
    base = run(z, q, steps).attacker()
    others = run(z / 1.3, q, steps), run(z, min(1.0, 1.3 * q), steps), run(z, q, 2 * steps)
    for worse in (one.attacker() for one in others):
        assert worse.advantage >= base.advantage * (1 - 1e-6)
        for more, less in zip(worse.true_positive_rates, base.true_positive_rates, strict=True):
            assert more >= less * (1 - 1e-4)
    for rate, hits in zip(base.false_positive_rates, base.true_positive_rates, strict=True):
        assert rate <= hits <= min(1, rate + base.advantage) + 1e-12
    assert all(after >= before for before, after in pairwise(base.true_positive_rates))


@pytest.mark.parametrize("engine", ["rdp", "moments", "advanced"])
def test_other_engines_are_asked_for_it(engine):
    accountant = run(2.0, 0.1, 20, engine=engine)
    assert accountant.attacker() == run(2.0, 0.1, 20).attacker()
    assert accountant.guarantee(1e-5).attacker is None


def test_nothing_is_learned_without_steps_and_everything_without_noise():
    assert WorstCaseAccountant().attacker().right == 0.5
    assert WorstCaseAccountant().attacker().true_positive_rates == RATES
    bare = run(1e-3, 1.0, 1000).attacker()
    assert bare.advantage == bare.true_positive_rate(1e-3) == 1


def test_from_the_advantage_alone():
    found = bounds((), 0.3, 0.0)
    assert found.true_positive_rate(0.1) == pytest.approx(0.4)
    assert found.true_positive_rate(0.9) == 1


def test_between_known_rates_the_next_one_counts():
    assert BOUNDS.right == 0.6
    assert BOUNDS.true_positive_rate(0.01) == 0.05
    assert BOUNDS.true_positive_rate(0.02) == pytest.approx(0.22)
    assert BOUNDS.true_positive_rate(0.1) == 0.25
    assert BOUNDS.true_positive_rate(0.5) == 0.7


def test_a_guarantee_carries_it_there_and_back():
    promise = run(2.0, 0.1, 20).guarantee(1e-5)
    again = Guarantee.from_dict(promise.to_dict())
    assert again == promise
    assert again.attacker == promise.attacker
    assert promise.group(2).attacker is None
    assert promise.postprocessed().attacker == promise.attacker


def test_the_sentence_tells_the_two_readings_apart():
    promise = run(4.03, 0.0731, 273).guarantee(1e-5)
    assert "right about that record at most 56.1 % of the time" in str(promise)
    assert "ε and δ alone would allow to become 76.6 % sure" in str(promise)
    assert "sure" not in str(dataclasses.replace(promise, attacker=None))


def test_how_often_right_is_said_only_where_it_is_bound():
    common = {"notion": "per-instance", "epsilon": 1.0, "delta": 1e-5}
    assert Guarantee(**common).attacker_right == convert.attacker_success(1.0, 1e-5)
    assert Guarantee(**common, ex_post=True).attacker_right is None
    assert Guarantee(**common, orientation="absent").attacker_right is None
    loose = dataclasses.replace(BOUNDS, advantage=0.99)
    assert Guarantee(notion="dp", epsilon=1.0, delta=0, attacker=loose).attacker_right == convert.attacker_success(1.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"advantage": 1.2}, "advantage"),
        ({"false_positive_rates": (0.1, 0.01)}, "false_positive_rates"),
        ({"true_positive_rates": (0.3, 0.2)}, "true_positive_rates"),
        ({"true_positive_rates": (0.3,)}, "true_positive_rates"),
    ],
)
def test_bad_input(wrong, named):
    with pytest.raises(InputError, match=named):
        dataclasses.replace(BOUNDS, **wrong)


def test_bad_input_elsewhere():
    with pytest.raises(InputError, match="attacker"):
        AttackerBounds.from_dict({"advantage": 0.1})
    with pytest.raises(InputError, match="attacker"):
        Guarantee(notion="bdp", epsilon=1.0, delta=1e-5, attacker=BOUNDS)
    with pytest.raises(InputError, match="attacker"):
        Guarantee(notion="dp", epsilon=1.0, delta=1e-5, attacker=0.6)
    with pytest.raises(InputError, match="false_positive_rate"):
        BOUNDS.true_positive_rate(2)
