"""Expected (E7) and one-Hölder (H2) composition on chains whose law is known: I-5a, I-5b, M6, ERR 16."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

from bayesdp.compose import one_holder
from bayesdp.compose.expected import best_p, expected, exponent, inflated_order
from bayesdp.errors import InputError
from bayesdp.estimate import upper_mean


class Chain:
    """Two states; X and Y are (3, 2): the first step, then the step from state 0 and from state 1."""

    def __init__(self, x, y):
        self.x, self.y = np.array(x), np.array(y)

    def divergence(self, order):
        log_moment = logsumexp(order * np.log(self.x) + (1 - order) * np.log(self.y), axis=-1)
        return np.maximum(log_moment, 0) / (order - 1)  # equal laws come out at −1e-16

    def exact(self, n, order):
        step = self.x**order * self.y ** (1 - order)
        value = step[0]
        for _ in range(n - 1):
            value = value @ step[1:]
        return math.log(value.sum()) / (order - 1)

    def worst(self, n, order):
        """Cost of the first step plus the dearest state ever after."""
        first, *rest = self.divergence(order)
        return (order - 1) * (first + (n - 1) * max(rest))

    def costs(self, orders):
        """(steps, states): the cost of each step in each state at that step's own order."""
        table = np.array([(o - 1) * self.divergence(o) for o in orders])
        table[0, 1:] = table[0, 0]
        return table[:, 1:]

    def mean(self, n):
        """E over the state before steps 2…n of X's chain."""
        state, before = self.x[0], []
        for _ in range(n - 1):
            before.append(state)
            state = state @ self.x[1:]
        weights = np.array(before).T
        return lambda values, cap: logsumexp(values, axis=0, b=weights)

    def visits(self, n):
        """Law of how often state 1 stands before steps 2…n: all that a path's summed cost depends on."""
        law = np.zeros((2, n + 1))
        law[:, 0] = self.x[0]
        for _ in range(n - 1):
            here = np.stack([law[0], np.roll(law[1], 1)])
            total = here.sum(axis=0)
            law = self.x[1:].T @ here
        return total[:n] if n > 1 else np.ones(1)

    def sums(self, n, order):
        """The summed cost of each class of paths, and the mean over them."""
        first, zero, one = self.divergence(order)
        k = np.arange(n)
        return (order - 1) * (first + (n - 1 - k) * zero + k * one)

    def path_mean(self, n):
        law = self.visits(n)
        return lambda values, cap: logsumexp(values, axis=0, b=law.reshape(-1, *[1] * (values.ndim - 1)))


PRINTED = Chain([[0.9, 0.1], [0.95, 0.05], [0.6, 0.4]], [[0.88, 0.12], [0.94, 0.06], [0.3, 0.7]])


def ladder(order, n, p):
    return inflated_order(order, np.arange(n)[::-1], p)


def best_a(sums, order, mean, grid):
    """The least over a of one-Hölder at order 1 + a(α − 1)."""
    return min((float(one_holder.one_holder(sums(o), order, o, log_mean=mean)), o) for o in 1 + grid * (order - 1))


def test_two_state_chain_of_three_steps():
    """I-5a."""
    assert PRINTED.exact(3, 2) == pytest.approx(0.065299175000854, rel=1e-12)
    orders = ladder(2, 3, 9)
    assert orders.tolist() == pytest.approx([2.265625, 2.125, 2])
    got = expected(PRINTED.costs(orders), 2, 9, log_mean=PRINTED.mean(3))
    assert got == pytest.approx(0.29220115442766, rel=1e-12)
    assert got == expected(PRINTED.costs(orders), 2, "3n", log_mean=PRINTED.mean(3))
    assert PRINTED.divergence(2.265625)[0] == pytest.approx(0.0042231472912881, rel=1e-12)
    one = one_holder.one_holder(PRINTED.sums(3, 3), 2, 3, log_mean=PRINTED.path_mean(3))
    assert one == pytest.approx(0.16890071565772, rel=1e-12)
    assert PRINTED.worst(3, 2) == pytest.approx(0.71713061071737, rel=1e-12)


def test_two_state_chain_of_fifty_steps():
    """I-5a: expected composition above the worst-step sum, so the minimum matters."""
    assert PRINTED.exact(50, 4) == pytest.approx(1.8046740785577, rel=1e-12)
    got = expected(PRINTED.costs(ladder(4, 50, 150)), 4, log_mean=PRINTED.mean(50))
    assert got == pytest.approx(26.720802983505, rel=1e-12)
    one = one_holder.one_holder(PRINTED.sums(50, 7), 4, 7, log_mean=PRINTED.path_mean(50))
    assert one == pytest.approx(22.14541415662, rel=1e-12)
    assert PRINTED.worst(50, 4) / 3 == pytest.approx(25.879550358447, rel=1e-12)


def test_stated_order_map_is_larger_but_still_valid():
    """ERR 16: S3's statement has −1/p where −1/(p − 1) is right."""

    def stated(order, n, p):
        orders = [order]
        for _ in range(n - 1):
            orders.append(p * orders[-1] / (p - 1) - 1 / p)
        return np.array(orders[::-1])

    # The statement's factors (p − 1)^i/(p^{i+1}(α − 1)) are the right ones; only its orders are too large.
    costs, lam = PRINTED.costs(stated(2.0, 3, 9)), ladder(2, 3, 9) - 1
    moments = PRINTED.mean(3)(9 * costs[1:].T, None)
    printed = costs[0, 0] / lam[0] + np.sum(moments / (9 * lam[1:]))
    assert printed == pytest.approx(0.29768113006235, rel=1e-12)
    assert stated(8.0, 4690, 3 * 4690)[0] == pytest.approx(10.76874, abs=5e-6)
    assert ladder(8, 4690, 3 * 4690)[0] == pytest.approx(10.76871, abs=5e-6)


def test_best_p_and_best_a_on_two_steps():
    """H2: one-Hölder is not always below expected composition; either minimum is above the truth."""
    value, p = best_p(PRINTED.costs, 2, 2, log_mean=PRINTED.mean(2))
    assert value == pytest.approx(0.0538, abs=2e-4)
    assert 1 < p < 2
    one, _ = best_a(lambda o: PRINTED.sums(2, o), 2, PRINTED.path_mean(2), 1 + np.geomspace(1e-3, 100, 300))
    assert one == pytest.approx(0.0779, abs=5e-5)
    assert PRINTED.exact(2, 2) < value < one


RHO, CHANCE = np.array([1e-5, 1e-3]), np.array([0.9, 0.1])


class Gaussian:
    """I-5b: steps of cost D_o = o ρ/2 whose ρ takes two values, drawn anew each step or once and kept."""

    def __init__(self, rho, n=1000):
        self.rho, self.n = rho, n
        self.law = binom.logpmf(np.arange(n + 1), n, CHANCE[1])

    def exact(self, order):
        step = (order - 1) * order * self.rho / 2
        return self.n / (order - 1) * math.log(np.sum(CHANCE * np.exp(step)))

    def expected(self, order):
        orders = ladder(order, self.n, 3 * self.n)
        costs = (orders * (orders - 1))[:, None] * self.rho / 2
        return expected(costs, order, log_mean=lambda v, cap: logsumexp(v, axis=0, b=CHANCE[:, None]))

    def sums(self, order):
        k = np.arange(self.n + 1)
        return order * (order - 1) / 2 * ((self.n - k) * self.rho[0] + k * self.rho[1])

    def mean(self, values, cap):
        return logsumexp(values + self.law, axis=0)

    def one_holder(self, order, a):
        o = 1 + a * (order - 1)
        return float(one_holder.one_holder(self.sums(o), order, o, log_mean=self.mean))


def test_state_dependent_gaussian_steps():
    """I-5b."""
    chain = Gaussian(RHO)
    assert chain.exact(8) == pytest.approx(0.4409763636741, rel=1e-12)
    assert chain.expected(8) == pytest.approx(4.560180952853, rel=1e-12)
    assert chain.one_holder(8, 1.2) == pytest.approx(0.5554111774884, rel=1e-12)
    assert chain.one_holder(8, 2) == pytest.approx(0.8532094095477, rel=1e-12)
    # The printed "best a = 1.1259" is 1 + 10^(−0.9), a point of a coarse grid; the best is a little lower.
    assert chain.one_holder(8, 1 + 10**-0.9) == pytest.approx(0.5426260386866, rel=1e-12)
    value, order = best_a(chain.sums, 8, chain.mean, np.arange(1.05, 1.3, 1e-4))
    assert value == pytest.approx(0.5425379021, rel=1e-7)
    assert (order - 1) / 7 == pytest.approx(1.1207, abs=1.5e-4)


def test_state_drawn_once():
    """I-5b: nothing averages out, and one-Hölder falls back on the worst case."""
    n, order = 1000, 8.0
    assert math.log(np.sum(CHANCE * np.exp(28 * n * RHO))) / 7 == pytest.approx(3.671059272431, rel=1e-12)
    orders = np.array([8, 8.001, 8.01, 8.1, 9, 15, 30])
    sums = orders * (orders - 1) / 2 * n * RHO[:, None]
    got = one_holder.best(sums, orders, log_mean=lambda v, cap: logsumexp(v, axis=0, b=CHANCE), worst=sums[1])
    assert got[0] == pytest.approx(4.0, rel=1e-12)
    assert one_holder.one_holder(
        sums[:, 1], order, 8.001, log_mean=lambda v, cap: logsumexp(v, axis=0, b=CHANCE)
    ) == pytest.approx(4.0, rel=1e-3)


def test_a_tenth_of_the_cost():
    """I-5b."""
    chain = Gaussian(RHO / 10)
    assert chain.exact(8) == pytest.approx(0.04364943356884, rel=1e-12)
    assert chain.expected(8) == pytest.approx(0.3721743291786, rel=1e-12)
    value, _ = best_a(chain.sums, 8, chain.mean, 1 + np.geomspace(1e-3, 1, 3000))
    # Printed 0.04652060341188: again from a coarser grid.
    assert value == pytest.approx(0.0465189322, rel=1e-6)
    assert value <= 0.04652060341188 < 1.0001 * value


def test_order_inflation():
    """I-13 and Fact 3.4 (E8): at most e^(1/3) above 1."""
    for n, want in ((5, 1.31781028738), (100, 1.39173507663), (4690, 1.39552976592)):
        assert inflated_order(2, n - 1, 3 * n) - 1 == pytest.approx(want, rel=1e-11)
    for n in range(1, 200):
        assert inflated_order(8, n - 1, exponent(n)) <= 1 + 7 * math.exp(1 / 3) <= 16
    assert inflated_order(8, 1, 2) == 15  # p = 2 gives order 2α − 1 (Theorem A.2)


chances = st.floats(0.05, 0.95)
chains = st.lists(chances, min_size=6, max_size=6).map(
    lambda v: Chain([[c, 1 - c] for c in v[:3]], [[c, 1 - c] for c in v[3:]])
)


@given(chains, st.integers(1, 12), st.floats(1.1, 6), st.floats(0.3, 30))
def test_bounds_hold_on_random_chains(chain, n, order, factor):
    """M6: above the exact divergence; after the minimum rule not above the worst case."""
    exact, p = chain.exact(n, order), 1 + factor * n
    assert expected(chain.costs(ladder(order, n, p)), order, p, log_mean=chain.mean(n)) >= exact - 1e-10
    orders = order + np.array([0, 0.1, 0.5, 2, 8])
    sums = np.stack([chain.sums(n, o) for o in orders], axis=-1)
    worst = np.array([chain.worst(n, o) for o in orders])
    got = one_holder.best(sums, orders, log_mean=chain.path_mean(n), worst=worst)
    truth = np.array([chain.exact(n, o) for o in orders])
    assert np.all(got >= truth - 1e-10)
    assert np.all(got <= worst / (orders - 1) + 1e-12)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=8), st.floats(1.1, 20), st.floats(1.5, 40))
def test_deterministic_costs_give_the_plain_sum_at_the_inflated_orders(rho, order, p):
    """M6: E7 with D_o = o ρ_t is Σ ρ_t g_{n−t}; H2 is the sum at o, and tends to the RDP sum as o → α."""
    rho = np.array(rho)
    orders = ladder(order, rho.size, p)
    costs = np.tile(((orders - 1) * orders * rho)[:, None], (1, 3))
    assert expected(costs, order, p) == pytest.approx(np.sum(orders * rho), rel=1e-9)
    for gap in (1.0, 1e-9):
        o = order + gap
        sums = np.full(4, (o - 1) * o * rho.sum())
        assert one_holder.one_holder(sums, order, o) == pytest.approx(o * rho.sum(), rel=1e-9)


def test_records_are_kept_apart_and_first_step_takes_the_largest_run():
    rng = np.random.default_rng(0)
    costs = rng.exponential(size=(4, 5, 3))
    whole = expected(costs, 3, 10)
    assert whole.shape == (3,)
    assert whole[1] == pytest.approx(float(expected(costs[:, :, 1], 3, 10)))
    lam = ladder(3, 4, 10) - 1
    means = np.log(np.exp(10 * costs[1:]).mean(axis=1)) / 10
    assert whole == pytest.approx(costs[0].max(axis=0) / lam[0] + (means / lam[1:, None]).sum(axis=0))
    sums = rng.exponential(size=(6, 3, 4))
    orders = [2.0, 3.0, 5.0, 9.0]
    table = one_holder.best(sums, orders)
    assert table.shape == (3, 4)
    assert np.all(np.isinf(table[:, -1]))
    assert table[:, 2] == pytest.approx(one_holder.one_holder(sums[..., 3], 5, 9))
    assert one_holder.estimates(orders) == 6


def test_own_mean_gets_the_cap_and_never_passes_it():
    calls = []

    def hopeless(values, cap):
        calls.append((values.shape, cap))
        return np.full(values.shape[1:], np.inf)

    costs = np.array([[1.0, 1.0], [2.0, 3.0], [0.5, 4.0]])
    worst = np.array([1.5, 5.0, 6.0])
    lam = ladder(3, 3, 10) - 1
    assert expected(costs, 3, 10, log_mean=hopeless, worst=worst) == pytest.approx(1 / lam[0] + 5 / lam[1] + 6 / lam[2])
    assert expected(costs, 3, 10, log_mean=hopeless) == np.inf
    sums, limit = np.ones((2, 3)), np.array([2.0, 4.0, 8.0])
    assert one_holder.best(sums, [2, 3, 5], log_mean=hopeless, worst=limit).tolist() == [2, 2, 2]
    assert calls[0][0] == (2, 2)
    assert calls[0][1].tolist() == [50, 60]
    assert calls[1][1] is None
    assert calls[2][1] == pytest.approx(4.0)  # order 2 from 3: a − 1 = 1
    assert len(calls) == 2 + one_holder.estimates([2, 3, 5])


def test_confidence_bounds_take_the_place_of_the_mean():
    """Sampled runs with `bayesdp.estimate`: between the plug-in value and the worst case (C11)."""
    rng = np.random.default_rng(1)
    orders = np.array([2.0, 2.5, 4.0])
    worst = (orders - 1) * orders * 0.05
    sums = rng.uniform(0.2, 0.4, size=(400, 2, 1)) * worst
    failure = 1e-3 / one_holder.estimates(orders)

    def bound(values, cap):
        return upper_mean(values, method="betting", failure=failure, log_high=cap)

    plug_in = one_holder.best(sums, orders)
    certified = one_holder.best(sums, orders, log_mean=bound, worst=worst)
    assert np.all(certified[:, :-1] >= plug_in[:, :-1])
    assert np.all(certified[:, 0] < 0.9 * worst[0])
    assert np.all(certified <= worst / (orders - 1))
    steps = rng.uniform(0.2, 0.4, size=(3, 400, 2)) * 0.05
    certified = expected(steps, 2, log_mean=bound, worst=[0.05] * 3)
    assert np.all(certified >= expected(steps, 2))
    assert np.all(certified < 3 * 0.05)


def test_infinite_costs_stay_infinite():
    assert expected([[0.0, 0.0], [np.inf, 1.0]], 2) == np.inf
    assert one_holder.one_holder([np.inf, 1.0], 2, 3) == np.inf
    assert expected([[1.0, 2.0]], 3) == 1.0  # one step: nothing to average


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: inflated_order(1, 1, 2), "order"),
        (lambda: inflated_order(2, -1, 2), "i"),
        (lambda: inflated_order(2, 1, 1), "p"),
        (lambda: exponent(3, "2n"), "p"),
        (lambda: exponent(0), "steps"),
        (lambda: expected([1.0], 2), "costs"),
        (lambda: expected([[-1.0]], 2), "costs"),
        (lambda: expected(np.ones((2000, 2)), 2, 1.001), "p"),
        (lambda: expected(np.ones((2, 2)), 2, worst=[1.0]), "worst"),
        (lambda: best_p(PRINTED.costs, 2, 1, factors=[0.5]), "factors"),
        (lambda: one_holder.one_holder([1.0], 2, 2), "inflated_order"),
        (lambda: one_holder.one_holder(1.0, 2, 3), "cost_sums"),
        (lambda: one_holder.best([[1.0, 2.0]], [2.0]), "cost_sums"),
        (lambda: one_holder.best([[1.0, 2.0]], [2.0, 2.0]), "repeats"),
        (lambda: one_holder.best([[1.0, 2.0]], [2.0, 3.0], worst=[1.0]), "worst"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()
