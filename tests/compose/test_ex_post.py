"""Ex-post accounting (H3) by mixture (H12, H14): roots and maxima to 50 digits, promises by simulation (I-5c, M7)."""

import functools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from bayesdp import convert
from bayesdp.compose import ex_post, one_holder
from bayesdp.errors import InputError

strong = functools.partial(ex_post.epsilon, strength="strong")


def root(costs, orders, delta, weights):
    """The root of Σ w exp(λ ε − cost) = 1/δ by bisection in 50 digits."""
    with mp.workdps(50):
        terms = [(mp.mpf(w), mp.mpf(a) - 1, mp.mpf(c)) for c, a, w in zip(costs, orders, weights, strict=True)]
        terms = [term for term in terms if mp.isfinite(term[2])]
        low, high = mp.mpf(0), min((c - mp.log(w * mp.mpf(delta))) / lam for w, lam, c in terms)
        for _ in range(60):
            middle = (low + high) / 2
            above = mp.fsum(w * mp.exp(lam * middle - c) for w, lam, c in terms) > 1 / mp.mpf(delta)
            low, high = (low, middle) if above else (middle, high)
        return float(high)


problems = st.integers(1, 6).flatmap(
    lambda k: st.tuples(
        st.lists(st.one_of(st.floats(0, 1e4), st.just(math.inf)), min_size=k, max_size=k).filter(
            lambda c: min(c) < math.inf
        ),
        st.lists(st.floats(1.01, 1024), min_size=k, max_size=k),
        st.lists(st.floats(1e-3, 1), min_size=k, max_size=k),
        st.floats(1e-12, 0.5),
    )
)


@given(problems)
def test_root_against_high_precision(problem):
    costs, orders, raw, delta = problem
    weights = np.array(raw) / np.sum(raw)
    got = float(strong(costs, orders, delta, weights))
    assert got == pytest.approx(root(costs, orders, delta, weights), rel=1e-11)
    union = float(ex_post.union_epsilon(costs, orders, delta, weights))
    assert got <= union
    assert union == pytest.approx(ex_post.tail(costs, orders, delta, weights).min(), rel=1e-13)
    # At most log(1/w)/λ above the tail value at any order.
    lam = np.array(orders) - 1
    assert np.all(got <= ex_post.tail(costs, orders, delta) + np.log(1 / weights) / lam + 1e-9)


@given(st.floats(0, 1e6), st.floats(1.001, 1024), st.floats(1e-12, 0.9))
def test_one_order_is_the_tail_value_exactly(cost, order, delta):
    tail = (cost + math.log(1 / delta)) / (order - 1)
    assert strong([cost], [order], delta) == ex_post.tail([cost], [order], delta)[0] == tail


def test_equal_orders_pool_their_weight():
    """Where the union pays for every copy of an order, the mixture does not."""
    costs, orders = np.full(50, 3.0), np.full(50, 9.0)
    assert strong(costs, orders, 1e-5) == pytest.approx((3 + math.log(1e5)) / 8, rel=1e-12)
    assert ex_post.union_epsilon(costs, orders, 1e-5) == pytest.approx((3 + math.log(50e5)) / 8, rel=1e-12)


def test_a_dense_uniform_grid_wastes_less_than_the_union():
    """H12: 70 orders at λ = 8 cost the union 0.5."""
    orders = np.linspace(7, 11, 70)
    costs = (orders - 1) * orders * 0.18
    best = ex_post.tail(costs, orders, 1e-5).min()
    assert ex_post.union_epsilon(costs, orders, 1e-5) - best > 0.4
    assert strong(costs, orders, 1e-5) - best < 0.15


def test_infinite_and_zero_costs():
    costs = [[math.inf, math.inf], [math.inf, 4.0], [0.0, 0.0], [1e300, 1e300]]
    got = strong(costs, [2.0, 9.0], 1e-5)
    assert got[0] == math.inf
    assert got[1] == pytest.approx((4 + math.log(2e5)) / 8, rel=1e-12)
    assert 0 < got[2] < math.log(2e5) / 8
    assert got[3] == pytest.approx(1e300 / 8)


def test_shape_and_speed():
    """100,000 records × 32 orders in well under a second; one exp pass over them is the floor."""
    rng = np.random.default_rng(0)
    orders = np.linspace(1.5, 64, 32)
    costs = rng.exponential(size=(100, 1000, 1)) * orders * (orders - 1) * 0.01
    times = []
    for _ in range(3):
        start = time.perf_counter()
        got = ex_post.epsilon(costs, orders, 1e-5, dp=3.0)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    np.exp(-costs)
    floor = time.perf_counter() - start
    print(f"mixture {min(times):.3f} s, one exp pass {floor:.3f} s")
    assert got.shape == (100, 1000)
    assert min(times) < max(1.0, 40 * floor)
    assert got[3, 7] == ex_post.epsilon(costs[3, 7], orders, 1e-5, dp=3.0)


def greatest(costs, orders, delta, weights, dp):
    """max_L L + log(1 − δ f(L)) in 50 digits by golden sections: f (1−v) M + v (1 − e^{ε₀−L})₊/(vδ), concave in e^L."""
    share = 1 - ex_post.DP_SHARE if dp is not None else 1
    with mp.workdps(50):
        terms = [(mp.mpf(w), mp.mpf(a) - 1, mp.mpf(c)) for c, a, w in zip(costs, orders, weights, strict=True)]

        def kept(x):
            own = mp.mpf(delta) * share * mp.fsum(w * x**lam * mp.exp(-c) for w, lam, c in terms if mp.isfinite(c))
            everybody = mp.mpf(0) if dp is None else max(1 - mp.exp(dp) / x, mp.mpf(0))
            return x * (1 - own - everybody)

        low, high = mp.mpf(0), mp.exp(root(costs, orders, delta * share, weights) + 1)
        ratio = (mp.sqrt(5) - 1) / 2
        for _ in range(200):
            left, right = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (low, right) if kept(left) > kept(right) else (left, high)
        return float(max(mp.log(max(kept(low), mp.mpf(1))), 0))


small = st.integers(1, 5).flatmap(
    lambda k: st.tuples(
        st.lists(st.one_of(st.floats(0, 20), st.just(math.inf)), min_size=k, max_size=k).filter(
            lambda c: min(c) < math.inf
        ),
        st.lists(st.floats(1.2, 200), min_size=k, max_size=k),
        st.lists(st.floats(1e-3, 1), min_size=k, max_size=k),
        st.floats(1e-8, 0.2),
        st.one_of(st.none(), st.floats(0.01, 5)),
    )
)


@settings(max_examples=30)
@given(small)
def test_weak_form_against_high_precision(problem):
    costs, orders, raw, delta, dp = problem
    weights = np.array(raw) / np.sum(raw)
    got = float(ex_post.epsilon(costs, orders, delta, weights, dp=dp))
    assert got == pytest.approx(greatest(costs, orders, delta, weights, dp), rel=1e-9, abs=1e-9)


@given(problems, st.floats(0, 50))
def test_weak_form_is_below_the_strong_one_and_what_it_is_mixed_with(problem, dp):
    """H14: never worse than the tail value, nor than the least of M at (1−v)δ and of DP at vδ."""
    costs, orders, raw, delta = problem
    weights = np.array(raw) / np.sum(raw)
    alone = float(ex_post.epsilon(costs, orders, delta, weights))
    assert 0 <= alone <= float(strong(costs, orders, delta, weights))
    mixed = float(ex_post.epsilon(costs, orders, delta, weights, dp=dp))
    rest = float(ex_post.epsilon(costs, orders, (1 - ex_post.DP_SHARE) * delta, weights))
    assert mixed <= min(dp, rest) * (1 + 1e-12)


@given(st.floats(0, 1e3), st.floats(1.01, 1024), st.floats(1e-12, 0.9))
def test_one_order_is_the_conversion_to_dp(cost, order, delta):
    """H14 with one order is B10's hockey-stick conversion."""
    assert ex_post.epsilon([cost], [order], delta) == pytest.approx(
        convert.epsilon([cost], [order], delta), rel=1e-9, abs=1e-9
    )


def test_the_weak_condition_holds_for_every_loss_and_is_attained():
    """(1 − e^{ε−L})₊ <= δ f(L) for all L, with equality somewhere: ε is the least."""
    orders, weights, costs = np.array([3.0, 9.0, 40.0]), np.array([0.3, 0.5, 0.2]), np.array([0.05, 0.3, 4.0])
    for delta, dp in ((1e-5, None), (1e-5, 1.4), (0.1, 0.3)):
        epsilon = float(ex_post.epsilon(costs, orders, delta, weights, dp=dp))
        loss = np.linspace(-1, 8, 200_001)
        martingale = np.exp((orders - 1) * loss[:, None] - costs) @ weights
        f = martingale
        if dp is not None:
            v = ex_post.DP_SHARE
            f = (1 - v) * martingale + v * np.maximum(-np.expm1(dp - loss), 0) / (v * delta)
        slack = delta * f - np.maximum(-np.expm1(epsilon - loss), 0)
        assert slack.min() >= -1e-12
        assert slack.min() < 1e-7


def test_infinite_costs_get_what_everybody_has():
    costs = [[math.inf, math.inf], [math.inf, 4.0], [1e300, 1e300]]
    got = ex_post.epsilon(costs, [2.0, 9.0], 1e-5, dp=2.0)
    assert got[0] == got[2] == 2.0
    assert 0 < got[1] < 2.0
    assert ex_post.epsilon(costs, [2.0, 9.0], 1e-5)[0] == math.inf


LAM, STEPS = 2.0, 30


@pytest.fixture(scope="module")
def paths():
    """I-5c: w' = 0.9 w + g + N(0, 1), g = 0.1 min(1, |w|/2), against g = 0: L and Σ g² after each step."""
    rng = np.random.default_rng(12)
    count = 200_000
    state, loss, energy = np.zeros(count), np.zeros((STEPS, count)), np.zeros((STEPS, count))
    total_loss, total_energy = np.zeros(count), np.zeros(count)
    for t in range(STEPS):
        g = 0.1 * np.minimum(1, np.abs(state) / 2)
        noise = rng.standard_normal(count)
        state = 0.9 * state + g + noise
        total_loss += g * noise + g**2 / 2
        total_energy += g**2
        loss[t], energy[t] = total_loss, total_energy
    return loss, energy


def test_exponential_martingale(paths):
    """I-5c, M7: E exp(λ(L − S)) = 1 within five standard errors, and the tail bound holds."""
    loss, energy = paths[0][-1], paths[1][-1]
    summed = (LAM + 1) * energy / 2
    ratio = np.exp(LAM * (loss - summed))
    error = ratio.std() / math.sqrt(ratio.size)
    assert error < 0.01
    assert abs(ratio.mean() - 1) < 5 * error
    assert np.mean(loss >= summed + math.log(100) / 2) < 1e-4


def test_one_holder_on_the_simulated_chain(paths):
    """I-5c: D_2.6 0.225, one-Hölder (a = 1.25, so o = 3) 0.256, worst 0.39, within Monte Carlo error."""
    loss, energy = paths[0][-1], paths[1][-1]
    exact = math.log(np.exp(1.6 * loss).mean()) / 1.6
    bound = float(one_holder.one_holder((3 - 1) * 3 * energy / 2, 2.6, 3))
    assert exact == pytest.approx(0.225, abs=0.005)
    assert bound == pytest.approx(0.256, abs=0.002)
    assert exact < bound < 2.6 * STEPS * 0.01 / 2 == pytest.approx(0.39)


def test_mixture_holds_at_all_times_at_once(paths):
    """M7: Pr[some t has L >= ε_t] <= β; without the cost term it would not hold."""
    loss, energy = paths[0][2::3, :100_000], paths[1][2::3, :100_000]
    orders = np.array([2.0, 3.0, 5.0, 9.0])
    weights = np.array([0.1, 0.2, 0.4, 0.3])
    beta = 0.3
    costs = (orders - 1) * orders / 2 * energy[..., None]
    bound = strong(costs, orders, beta, weights)
    failures = np.any(loss >= bound, axis=0).mean()
    assert 0.02 < failures <= beta + 3 * math.sqrt(beta / 100_000)
    careless = strong(np.zeros(4), orders, beta, weights)
    assert np.any(loss >= careless, axis=0).mean() > beta


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: ex_post.epsilon([1.0], [1.0], 0.1), "orders"),
        (lambda: ex_post.epsilon([1.0, 2.0], [2.0], 0.1), "costs"),
        (lambda: ex_post.epsilon(1.0, [2.0], 0.1), "costs"),
        (lambda: ex_post.epsilon([-1.0], [2.0], 0.1), "costs"),
        (lambda: ex_post.epsilon([math.nan], [2.0], 0.1), "costs"),
        (lambda: ex_post.epsilon([1.0], [2.0], 1.0), "delta"),
        (lambda: ex_post.epsilon([1.0, 1.0], [2.0, 3.0], 0.1, [0.5, 0.6]), "sum to 1"),
        (lambda: ex_post.epsilon([1.0, 1.0], [2.0, 3.0], 0.1, [1.0]), "per order"),
        (lambda: ex_post.epsilon([1.0, 1.0], [2.0, 3.0], 0.1, [1.0, 0.0]), "weights"),
        (lambda: ex_post.tail([1.0, 1.0], [2.0, 3.0], 0.1, [0.1, 0.1, 0.1]), "per order"),
        (lambda: ex_post.union_epsilon([1.0], [2.0], 0.0), "delta"),
        (lambda: ex_post.epsilon([1.0], [2.0], 0.1, dp=-1.0), "dp"),
        (lambda: ex_post.epsilon([1.0], [2.0], 0.1, dp=1.0, strength="strong"), "bounds no tail"),
        (lambda: ex_post.epsilon([1.0], [2.0], 0.1, strength="tail"), "strength"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()
