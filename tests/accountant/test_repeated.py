"""One mechanism run again and again, its costs known: above the true loss, whenever one stops, for a share of all."""

import math

import numpy as np
import pytest
from scipy import stats

from bayesdp import convert
from bayesdp.accountant import coverage
from bayesdp.accountant import state as states
from bayesdp.accountant.gaussian_release import both_ways, two_sided_cost
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.divergence import gaussian, hockey_stick
from bayesdp.errors import InputError

ORDERS = 1 + np.geomspace(0.01, 4000, 100)
DELTA = 1e-5


def shifted(shifts):
    return gaussian.cost(shifts, ORDERS)


def release(shifts=(0.1,), planned=10, strength="strong", **given):
    return RepeatedRelease(shifted(np.asarray(shifts)), ORDERS, planned=planned, strength=strength, **given)


def pair_tail(epsilon, count, m0, v0, m1, v1):
    """Pr[Σ log N(w; m0, v0)/N(w; m1, v1) >= ε], w_j ~ N(m0, v0): a shifted non-central chi-square."""
    if v0 == v1:
        r = math.sqrt(count * (m0 - m1) ** 2 / v0)
        return stats.norm.sf(epsilon / r - r / 2)
    # The loss is a·Σ (u_j + b)² + c with u_j standard normal.
    a = (1 / v1 - 1 / v0) * v0 / 2
    b = (m0 - m1) * math.sqrt(v0) / v1 / (2 * a)
    c = count * ((m0 - m1) ** 2 / (2 * v1) + math.log(v1 / v0) / 2 - a * b**2)
    law = stats.ncx2(count, count * b**2)
    return law.sf((epsilon - c) / a) if a > 0 else law.cdf((epsilon - c) / a)


@pytest.mark.parametrize("ratio", [1.0, 1.3, 0.7])
@pytest.mark.parametrize("count", [1, 5, 20])
def test_the_bound_is_above_the_true_loss_in_both_directions(ratio, count):
    ways = [((0, 1), (0.3, ratio)), ((0.3, ratio), (0, 1))]
    costs = np.maximum(*(gaussian.unequal_cost(*here, *there, ORDERS) for here, there in ways))
    one = RepeatedRelease(costs[None], ORDERS, planned=20, strength="strong")
    one.step(count)
    epsilon = one.epsilon(DELTA)[0]
    assert max(pair_tail(epsilon, count, *here, *there) for here, there in ways) <= DELTA
    if count == 20:  # at the planned number it is not far above
        assert max(pair_tail(epsilon / 1.25, count, *here, *there) for here, there in ways) > DELTA


def test_whenever_one_stops_the_loss_stays_below():
    """Stop where the loss is largest relative to the bound: still at most δ."""
    delta, planned, shift = 0.05, 15, 0.4
    one = release([shift], planned)
    bounds = []
    for _ in range(planned):
        one.step()
        bounds.append(one.epsilon(delta)[0])
    losses = np.random.default_rng(0).normal(shift**2 / 2, shift, size=(200_000, planned)).cumsum(axis=1)
    assert (losses >= bounds).any(axis=1).mean() <= delta
    assert (losses >= np.array(bounds) / 2).any(axis=1).mean() > delta


def test_each_record_uses_its_own_best_order_and_costs_add():
    one = release([0.01, 0.1, 1.0], planned=8)
    one.step(3)
    one.step(5)
    shifts = np.array([0.01, 0.1, 1.0])
    best = 8 * shifts**2 / 2 + shifts * math.sqrt(2 * 8 * math.log(1 / DELTA))  # min over all orders
    np.testing.assert_allclose(one.epsilon(DELTA), best, rtol=3e-3)
    assert (one.epsilon(DELTA) >= best).all()
    weak = release([0.01, 0.1, 1.0], planned=8, strength="weak")
    weak.step(8)
    np.testing.assert_allclose(weak.epsilon(DELTA), convert.epsilon(8 * shifted(shifts), ORDERS, DELTA), rtol=1e-12)
    assert (weak.epsilon(DELTA) < one.epsilon(DELTA)).all()
    assert (weak.guarantee(DELTA).strength, one.guarantee(DELTA).strength) == ("weak", "strong")


def test_nothing_costs_nothing_infinity_stays_and_too_many_are_refused():
    costs = shifted(np.array([0.1, 0.2]))
    costs[1] = math.inf
    one = RepeatedRelease(costs, ORDERS, planned=3, strength="strong")
    assert one.epsilon(DELTA).tolist() == [0, 0]
    one.step(2)
    assert math.isinf(one.guarantee(DELTA).epsilon)
    assert one.guarantee(DELTA, record=0).epsilon == one.epsilon(DELTA)[0] < 1
    for times in (2, 0, 1.5):
        with pytest.raises(InputError):
            one.step(times)
    assert one.times == 2
    partly = shifted(np.array([0.1]))
    partly[:, 60:] = math.inf  # unequal variances: the high orders are out
    some = RepeatedRelease(partly, ORDERS, planned=3, strength="strong")
    some.step()
    assert math.isfinite(some.epsilon(DELTA)[0])


def test_state_round_trip_and_bad_input():
    one = release([0.1, 0.2], 4, sampling="poisson", adjacency="replace-one")
    one.step(3)
    again = RepeatedRelease.from_state(one.state())
    assert again.guarantee(DELTA) == one.guarantee(DELTA)
    assert (again.guarantee(DELTA).sampling, again.guarantee(DELTA).adjacency) == ("poisson", "replace-one")
    with pytest.raises(InputError):
        RepeatedRelease.from_state({**one.state(), "times": 5})
    with pytest.raises(InputError, match="Expected cost with 100 orders"):
        RepeatedRelease(np.zeros((2, 3)), ORDERS, planned=1)
    with pytest.raises(InputError, match="Expected cost "):
        RepeatedRelease(np.full((1, 100), math.nan), ORDERS, planned=1)
    with pytest.raises(InputError, match="Expected record"):
        one.guarantee(DELTA, record=2)


def witnesses(outsiders, members=None, planned=5, **given):
    sides = {"absent": release(outsiders, planned)}
    if members is not None:
        sides["present"] = release(members, planned)
    return RepeatedWitnesses(sides, **{"coverage": 0.8, "failure": 0.01, **given})


def test_the_larger_orientation_counts():
    low, high = np.full(60, 0.05), np.full(60, 0.2)
    epsilons = []
    for pair in ((low, high), (high, low), (low, low), (low, None)):
        people = witnesses(*pair)
        people.step(5)
        epsilons.append(people.guarantee(DELTA).epsilon)
    assert epsilons[0] == epsilons[1] > 2 * epsilons[2]
    assert epsilons[2] == epsilons[3]
    both, alone = witnesses(low, high).guarantee(DELTA), witnesses(low).guarantee(DELTA)
    assert (both.orientation, alone.orientation) == ("both", "absent")
    assert any("Nothing is said about members" in one for one in alone.assumptions)
    assert (both.notion, both.coverage, both.failure, both.ex_post, both.sensitive) == ("bdp", 0.8, 0.01, True, True)


def test_members_who_are_all_there_are_are_counted():
    """H16: rank 0.8 of them is 0.8 of them, and all of the failure is the outsiders'."""
    shifts = np.linspace(0.01, 0.2, 50)
    own = release(shifts, 5)
    alone = RepeatedWitnesses({"present": own}, coverage=0.8, failure=0.01, members_counted=True)
    alone.step(5)
    promise, curve = alone.guarantee(DELTA), alone.curve(DELTA)
    assert promise.epsilon == np.sort(own.epsilon(DELTA))[39] == curve.at(0.8)
    assert promise.failure == curve.failure == 0
    assert any("counted, not estimated" in words for words in promise.assumptions)
    # Five are enough to count, where 0.9 of people at large would need more.
    assert RepeatedWitnesses({"present": release(shifts[:5], 5)}, coverage=0.9, failure=0.01, members_counted=True)
    both = witnesses(np.full(60, 0.05), shifts, members_counted=True)
    both.step(5)
    assert both.guarantee(DELTA).failure == 0.01
    assert both.guarantee(DELTA).epsilon == promise.epsilon
    assert both.state()["members_counted"]


def test_members_speak_for_this_data_set_and_a_curve_has_a_failure_of_its_own():
    words = " ".join(witnesses(np.full(60, 0.1), np.full(60, 0.1)).guarantee(DELTA).assumptions)
    assert "Outsiders are independent draws of the population" in words
    assert "were drawn from this data set before the run, and speak for this data set" in words
    assert "with a failure of its own" in words
    assert "this data set" not in " ".join(witnesses(np.full(60, 0.1)).guarantee(DELTA).assumptions)


def test_exchanged_pairs_speak_for_both_orientations():
    pairs = RepeatedWitnesses({"exchanged": release(np.full(60, 0.1), 5)}, coverage=0.8, failure=0.01)
    guarantee = pairs.guarantee(DELTA)
    assert guarantee.orientation == "both"
    assert any("one of pairs" in words for words in guarantee.assumptions)
    assert not any("Nothing is said" in words for words in guarantee.assumptions)


def test_the_stated_share_of_people_is_covered_as_often_as_promised():
    """People's shifts are heavy-tailed; the share below the bound is known exactly."""
    rng, law = np.random.default_rng(1), stats.lognorm(1.0, scale=0.05)
    failure, coverage_, tries = 0.2, 0.8, 300
    missed = joint = 0
    r = np.linspace(0, 5, 20_001)
    curve_of_r = 5 * r**2 / 2 + r * math.sqrt(10 * math.log(1 / DELTA))  # ε of a person whose shift is r
    for _ in range(tries):
        people = witnesses(law.rvs(80, random_state=rng), coverage=coverage_, failure=failure)
        people.step(5)
        missed += law.cdf(np.interp(people.guarantee(DELTA).epsilon, curve_of_r, r)) < coverage_
        curve = people.curve(DELTA)
        joint += bool((law.cdf(np.interp(curve.epsilon, curve_of_r, r)) < curve.coverage).any())
    assert missed <= tries * failure  # Clopper-Pearson is conservative
    assert joint <= tries * failure
    assert missed > 0  # and not absurdly so


def test_too_few_witnesses_are_refused_beforehand():
    with pytest.raises(InputError, match='5 witnesses "absent" support'):
        witnesses(np.full(5, 0.1), coverage=0.9)
    with pytest.raises(InputError, match="at least one orientation"):
        RepeatedWitnesses({}, coverage=0.5, failure=0.1)
    with pytest.raises(InputError, match="Expected orientation"):
        RepeatedWitnesses({"both": release()}, coverage=0.5, failure=0.1)
    with pytest.raises(InputError, match='Expected "exchanged" witnesses alone'):
        RepeatedWitnesses({"exchanged": release(), "absent": release()}, coverage=0.5, failure=0.1)
    assert coverage.covered({}, 0.9, 0.01) == 0


def sampled(strength="weak", planned=20):
    """Samples of a Gaussian, four neighbours of which have other means, variances or both; one has none."""
    mean, variance = np.zeros(2), np.ones(2)
    means = np.array([[0.1, 0.0], [0.0, 0.0], [0.05, -0.1], [0.0, 0.0]])
    variances = np.array([[1.0, 1.0], [1.1, 0.9], [0.9, 1.05], [np.nan, 1.0]])
    costs = two_sided_cost(mean, variance, means, variances, ORDERS)
    pairs = both_ways(mean, variance, means, variances)
    return [RepeatedRelease(costs, ORDERS, planned=planned, strength=strength, pairs=p) for p in (pairs, None)]


def test_samples_of_a_gaussian_by_the_law_of_their_loss():
    """B16: the closed form where covariances are equal, below the best order's ε where not; the strong form stays."""
    exact, orders = sampled()
    for count in (1, 9, 10):
        assert exact.epsilon(DELTA).shape == (4,)
        for one in (exact, orders):
            one.step(count)
        truth = hockey_stick.gaussian_epsilon(DELTA, 0.1 * math.sqrt(exact.times))
        assert truth <= exact.epsilon(DELTA)[0] <= truth * (1 + 1e-5)
        assert (exact.epsilon(DELTA)[:3] < 0.95 * orders.epsilon(DELTA)[:3]).all()
        assert np.isinf(exact.epsilon(DELTA)[3])
        assert (exact.epsilon(1e-3)[:3] < exact.epsilon(DELTA)[:3]).all()
    exact.epsilon(DELTA)[:] = 0  # what is remembered cannot be changed from outside
    assert exact.epsilon(DELTA)[0] > 0
    assert any("B16" in words for words in exact.guarantee(DELTA).assumptions)
    assert not any("B16" in words for words in orders.guarantee(DELTA).assumptions)
    strong, same = sampled("strong")
    for one in (strong, same):
        one.step(20)
    np.testing.assert_array_equal(strong.epsilon(DELTA), same.epsilon(DELTA))
    assert (strong.epsilon(DELTA)[:3] > exact.epsilon(DELTA)[:3]).all()


def test_the_pairs_are_saved_and_read_back(tmp_path):
    one, without = sampled()
    for book in (one, without):
        book.step(7)
        states.write(tmp_path / "accountants.json", {"watched": book.state()})
        again = RepeatedRelease.from_state(states.read(tmp_path / "accountants.json")["watched"])
        np.testing.assert_array_equal(again.epsilon(DELTA), book.epsilon(DELTA))
        assert again.guarantee(DELTA, 0) == book.guarantee(DELTA, 0)
    with pytest.raises(InputError):
        RepeatedRelease(one.costs[:2], ORDERS, planned=1, pairs=one.pairs)
    for change in ({"pairs": {}}, {"pairs": {**one.state()["pairs"], "shrink": np.zeros(1)}}):
        with pytest.raises(InputError):
            RepeatedRelease.from_state({**one.state(), **change})
