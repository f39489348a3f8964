"""Ex-post accounting (H3) by mixture (H12): the root to 50 digits, the promise by simulation (I-5c, M7)."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from bayesdp.compose import ex_post, one_holder
from bayesdp.errors import InputError


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
    got = float(ex_post.epsilon(costs, orders, delta, weights))
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
    assert ex_post.epsilon([cost], [order], delta) == ex_post.tail([cost], [order], delta)[0] == tail


def test_equal_orders_pool_their_weight():
    """Where the union pays for every copy of an order, the mixture does not."""
    costs, orders = np.full(50, 3.0), np.full(50, 9.0)
    assert ex_post.epsilon(costs, orders, 1e-5) == pytest.approx((3 + math.log(1e5)) / 8, rel=1e-12)
    assert ex_post.union_epsilon(costs, orders, 1e-5) == pytest.approx((3 + math.log(50e5)) / 8, rel=1e-12)


def test_a_dense_uniform_grid_wastes_less_than_the_union():
    """H12: 70 orders at λ = 8 cost the union 0.5."""
    orders = np.linspace(7, 11, 70)
    costs = (orders - 1) * orders * 0.18
    best = ex_post.tail(costs, orders, 1e-5).min()
    assert ex_post.union_epsilon(costs, orders, 1e-5) - best > 0.4
    assert ex_post.epsilon(costs, orders, 1e-5) - best < 0.15


def test_infinite_and_zero_costs():
    costs = [[math.inf, math.inf], [math.inf, 4.0], [0.0, 0.0], [1e300, 1e300]]
    got = ex_post.epsilon(costs, [2.0, 9.0], 1e-5)
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
        got = ex_post.epsilon(costs, orders, 1e-5)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    np.exp(-costs)
    floor = time.perf_counter() - start
    print(f"mixture {min(times):.3f} s, one exp pass {floor:.3f} s")
    assert got.shape == (100, 1000)
    assert min(times) < max(1.0, 40 * floor)
    assert got[3, 7] == ex_post.epsilon(costs[3, 7], orders, 1e-5)


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
    bound = ex_post.epsilon(costs, orders, beta, weights)
    failures = np.any(loss >= bound, axis=0).mean()
    assert 0.02 < failures <= beta + 3 * math.sqrt(beta / 100_000)
    careless = ex_post.epsilon(np.zeros(4), orders, beta, weights)
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
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()
