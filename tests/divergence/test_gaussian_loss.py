"""ε of samples of a Gaussian from the law of their loss (B16): above the truth, and hardly."""

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bayesdp import convert
from bayesdp.divergence import gaussian, gaussian_loss, hockey_stick
from bayesdp.divergence.gaussian_loss import GaussianPairs
from bayesdp.errors import InputError

ORDERS = 1 + np.geomspace(0.01, 4000, 100)


def one_way(m0, v0, m1, v1):
    """The pair's law, and its costs, of diagonal Gaussians in one direction."""
    here, there = (np.atleast_2d(m0), np.atleast_2d(v0)), (np.atleast_2d(m1), np.atleast_2d(v1))
    return GaussianPairs.of(gaussian.diagonal_pair(*here, *there)), gaussian.unequal_cost(*here, *there, ORDERS)


def epsilon(pair, times, delta):
    law, costs = one_way(*pair)
    return law.epsilon(times, delta, costs, ORDERS)


def both_ways(m, v):
    """N(m, v) and N(0, 1), row by row, with the larger costs."""
    zero, one = np.zeros_like(m), np.ones_like(v)
    law = GaussianPairs.of(gaussian.diagonal_pair(m, v, zero, one), gaussian.diagonal_pair(zero, one, m, v))
    costs = [gaussian.unequal_cost(m, v, zero, one, ORDERS), gaussian.unequal_cost(zero, one, m, v, ORDERS)]
    return law, np.maximum(*costs)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("times", [1, 10])
def test_equal_covariances_are_the_closed_form(delta, times):
    shifts = np.array([1e-3, 0.01, 0.1, 0.5, 2.0, 10.0])
    direction = np.array([0.6, 0.0, -0.8]) * np.sqrt([0.5, 2.0, 3.0])
    pair = shifts[:, None] * direction, np.tile([0.5, 2.0, 3.0], (6, 1)), np.zeros((6, 3)), np.tile([0.5, 2, 3], (6, 1))
    exact = hockey_stick.gaussian_epsilon(delta, shifts * math.sqrt(times))
    got = epsilon(pair, times, delta)
    assert (got >= exact * (1 - 1e-15)).all()
    np.testing.assert_allclose(got, exact, rtol=1e-5)


@pytest.mark.parametrize("shift", [0.05, 1.0])
def test_equal_covariances_lie_between_the_bounds_of_dp_accounting(shift):
    got = epsilon(([shift], [1.0], [0.0], [1.0]), 10, 1e-5)[0]
    bounds = [
        privacy_loss_distribution.from_gaussian_mechanism(
            1 / shift, pessimistic_estimate=pessimistic, value_discretization_interval=1e-3 * shift
        )
        .self_compose(10)
        .get_epsilon_for_delta(1e-5)
        for pessimistic in (False, True)
    ]
    assert bounds[0] <= got <= bounds[1]


def roots(m0, v0, m1, v1, level):
    """Where log N(w; m0, v0)/N(w; m1, v1) = level."""
    a, b = (1 / v1 - 1 / v0) / 2, m0 / v0 - m1 / v1
    c = m1**2 / (2 * v1) - m0**2 / (2 * v0) + mp.log(v1 / v0) / 2 - level
    inside = b**2 - 4 * a * c
    return a, sorted([(-b - mp.sqrt(inside)) / (2 * a), (-b + mp.sqrt(inside)) / (2 * a)]) if inside > 0 else []


def beyond(m, v, a, places):
    """N(m, v) of the set where the loss, of leading coefficient `a` and these roots, is above its level."""
    if not places:
        return mp.mpf(1 if a > 0 else 0)
    low, high = ((place - m) / mp.sqrt(v) for place in places)
    return mp.ncdf(low) + mp.ncdf(-high) if a > 0 else (mp.erf(high / mp.sqrt(2)) - mp.erf(low / mp.sqrt(2))) / 2


@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize(
    ("pair", "slack"),
    [
        ((0.3, 1.3, 0.0, 1.0), 1e-3),
        ((0.0, 1.0, 0.3, 1.3), 3e-3),
        ((0.0, 3.0, 0.0, 1.0), 0.02),  # M falls like 1/√t: what is cut off weighs
        # The largest loss there is, 0.0124, is all but reached, at orders beyond the largest.
        ((0.0, 1.0, 0.01, 1.02), 0.06),
    ],
)
def test_one_unequal_coordinate_by_quadrature_in_thirty_digits(pair, slack, delta):
    got = epsilon(tuple([value] for value in pair), 1, delta)[0]

    def truth(level):
        with mp.workdps(30):
            m0, v0, m1, v1 = map(mp.mpf, pair)
            a, places = roots(m0, v0, m1, v1, level)
            if not places:
                return mp.mpf(0)

            def gap(w):
                ratio = (w - m0) ** 2 / (2 * v0) - (w - m1) ** 2 / (2 * v1) + mp.log(v0 / v1) / 2
                return mp.npdf(w, m0, mp.sqrt(v0)) * max(0, -mp.expm1(level + ratio))

            far = 14 * mp.sqrt(v0) + abs(m0)
            parts = [[places[0], places[1]]] if a < 0 else [[-far, places[0]], [places[1], far]]
            return sum(mp.quad(gap, mp.linspace(*part, 9)) for part in parts)

    assert truth(mp.mpf(got)) <= delta
    assert got == 0 or truth(mp.mpf(got) * (1 - mp.mpf(slack))) > delta


@pytest.mark.parametrize("delta", [1e-5, 1e-2])
@pytest.mark.parametrize("swapped", [False, True])
def test_two_unequal_coordinates_by_quadrature(delta, swapped):
    first, second = ([0.3, -0.2], [1.25, 0.9]), ([0.0, 0.1], [1.0, 1.1])
    here, there = (second, first) if swapped else (first, second)
    got = epsilon((*here, *there), 1, delta)[0]

    def truth(level):
        with mp.workdps(15):
            (m0, n0), (v0, u0), (m1, n1), (v1, u1) = ([mp.mpf(x) for x in part] for part in (*here, *there))

            def inner(w):
                rest = level - (
                    (w - n1) ** 2 / (2 * u1) - (w - n0) ** 2 / (2 * u0) + mp.log(u1 / u0) / 2
                )  # what the first coordinate must exceed
                a, places = roots(m0, v0, m1, v1, rest)
                with_, without = beyond(m0, v0, a, places), beyond(m1, v1, a, places)
                return mp.npdf(w, n0, mp.sqrt(u0)) * with_ - mp.exp(level) * mp.npdf(w, n1, mp.sqrt(u1)) * without

            # The first coordinate's loss has its turning value at one point: kinks where the rest equals it.
            a, b = (1 / v1 - 1 / v0) / 2, m0 / v0 - m1 / v1
            turn = m1**2 / (2 * v1) - m0**2 / (2 * v0) + mp.log(v1 / v0) / 2 - b**2 / (4 * a)
            kinks = [place for place in roots(n0, u0, n1, u1, level - turn)[1] if abs(place) < 10]
            return mp.quad(inner, sorted([*mp.linspace(-9, 9, 7), *kinks]))

    assert truth(mp.mpf(got)) <= delta
    assert truth(mp.mpf(got) * mp.mpf("0.999")) > delta


@pytest.mark.parametrize("times", [2, 10, 100])
@pytest.mark.parametrize("pair", [(0.0, 1.0, 0.02, 1.05), (0.02, 1.05, 0.0, 1.0), (0.2, 0.8, 0.0, 1.0)])
def test_many_samples_by_non_central_chi_squares(pair, times):
    m0, v0, m1, v1 = pair
    delta = 1e-5
    got = epsilon(tuple([value] for value in pair), times, delta)[0]
    a, b = (1 / v1 - 1 / v0) / 2, m0 / v0 - m1 / v1
    centre = -b / (2 * a)  # the loss is a Σ (w_j − centre)² + constant
    constant = times * (m1**2 / (2 * v1) - m0**2 / (2 * v0) + math.log(v1 / v0) / 2 - a * centre**2)

    def truth(level):
        chances = []
        for m, v in ((m0, v0), (m1, v1)):
            law, at = stats.ncx2(times, times * (m - centre) ** 2 / v), (level - constant) / a / v
            chances.append(law.sf(at) if a > 0 else law.cdf(at))
        return chances[0] - math.exp(level) * chances[1]

    assert truth(got) <= delta * (1 + 1e-7)  # what SciPy's chi-squares are good for
    assert truth(got * (1 - 1e-3)) > delta


def test_five_dimensions_by_simulation():
    rng, size, delta, times = np.random.default_rng(0), 300_000, 0.01, 3
    m, v = np.array([0.2, -0.1, 0.0, 0.15, 0.3]), np.array([1.3, 0.8, 1.1, 0.95, 1.0])
    for here, there in (((m, v), (0 * m, 1 + 0 * v)), ((0 * m, 1 + 0 * v), (m, v))):
        got = epsilon((*here, *there), times, delta)[0]
        loss = np.zeros(size)
        for _ in range(times):
            w = here[0] + np.sqrt(here[1]) * rng.normal(size=(size, 5))
            terms = (w - there[0]) ** 2 / there[1] - (w - here[0]) ** 2 / here[1] + np.log(there[1] / here[1])
            loss += terms.sum(axis=1) / 2
        gap = np.maximum(-np.expm1(got - loss), 0)
        assert gap.mean() == pytest.approx(delta, abs=4 * gap.std() / math.sqrt(size))


def test_full_covariances_are_those_of_their_axes():
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    m, v, w = rng.normal(size=3) / 5, np.array([0.8, 1.0, 1.2]), np.array([1.0, 1.1, 0.9])
    law, costs = one_way(m, v, np.zeros(3), w)
    turned = gaussian.full_pair(
        (turn @ m)[None], (turn * v @ turn.T)[None], np.zeros((1, 3)), (turn * w @ turn.T)[None]
    )
    np.testing.assert_allclose(
        GaussianPairs.of(turned).epsilon(4, 1e-5, costs, ORDERS), law.epsilon(4, 1e-5, costs, ORDERS), rtol=1e-9
    )


@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(1e-4, 2), st.floats(1e-4, 1), st.integers(1, 50))
@settings(max_examples=40)
def test_never_above_the_renyi_bound_and_more_samples_tell_more(seed, dim, shift, spread, times):
    rng = np.random.default_rng(seed)
    law, costs = both_ways(shift * rng.normal(size=(4, dim)), np.exp(spread * rng.normal(size=(4, dim))))
    got = law.epsilon(times, 1e-5, costs, ORDERS)
    assert (got <= convert.epsilon(times * costs, ORDERS, 1e-5)).all()
    assert (got >= 0).all()
    # never below what one coordinate gives away, nor what fewer samples do
    assert (law.epsilon(2 * times, 1e-5, costs, ORDERS) >= got * (1 - 1e-4)).all()


def test_too_few_nodes_loosen_the_bound_and_keep_it(monkeypatch):
    """Whatever the steps and the cut: what is left out is added."""
    shifts = np.array([0.01, 0.1, 1.0])
    law = GaussianPairs.of(gaussian.diagonal_pair(shifts[:, None], 1.0, 0.0, 1.0))
    costs, exact = gaussian.cost(shifts, ORDERS), hockey_stick.gaussian_epsilon(1e-5, shifts)
    for nodes in (1, 2, 3, 4, 6):
        for slack in (math.log(1e-8), 0.0, 2.0):
            monkeypatch.setattr(gaussian_loss, "_NODES", np.array([nodes]))
            monkeypatch.setattr(gaussian_loss, "_ALIAS", slack)
            got = law.epsilon(1, 1e-5, costs, ORDERS)
            assert (got >= exact).all()
            assert (got <= convert.epsilon(costs, ORDERS, 1e-5)).all()


def test_the_larger_pair_of_a_record_counts_and_what_is_unknown_stays():
    law, costs = both_ways(np.array([[0.1], [0.3], [0.2]]), np.array([[1.0], [1.1], [0.9]]))
    each = law.epsilon(1, 1e-5, costs, ORDERS)
    joined = law.chosen([0, 1, 2], [0, 0, 1])
    together = np.array([costs[:2].max(axis=0), costs[2]])
    np.testing.assert_allclose(joined.epsilon(1, 1e-5, together, ORDERS), [each[:2].max(), each[2]], rtol=1e-5)
    bounds = convert.epsilon(costs, ORDERS, 1e-5)
    only = law.chosen([0], [0]).epsilon(1, 1e-5, costs, ORDERS)
    assert only.tolist() == [each[0], *bounds[1:]]  # no pairs: the Rényi bound
    lost = GaussianPairs(np.array([[math.inf]]), np.zeros((1, 1)), np.zeros(1), np.zeros(1))
    assert lost.epsilon(1, 1e-5, costs[:1], ORDERS).tolist() == [bounds[0]]
    assert np.isinf(lost.epsilon(1, 1e-5, np.full((1, 100), math.inf), ORDERS)).all()
    same = GaussianPairs(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros(1), np.zeros(1))
    assert same.epsilon(5, 1e-5, np.zeros((1, 100)), ORDERS).tolist() == [0]


def test_state_and_bad_input():
    law, costs = both_ways(np.array([[0.1, 0.2]]), np.array([[1.0, 1.1]]))
    again = GaussianPairs.from_state(law.state())
    assert again.epsilon(3, 1e-5, costs, ORDERS) == law.epsilon(3, 1e-5, costs, ORDERS)
    for change in ({"shrink": np.zeros(3)}, {"excess": np.full((2, 2), 1.5)}, {"square": -np.ones((2, 2))}):
        with pytest.raises(InputError):
            GaussianPairs.from_state({**law.state(), **change})
