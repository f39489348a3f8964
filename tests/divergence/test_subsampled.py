"""Poisson sampling of any pair: B7; I-6's sampled vectors; M3; Laplace and exponential families."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from bayesdp.divergence import exponential_family as ef
from bayesdp.divergence import gaussian, laplace, sgm, subsampled
from bayesdp.errors import InputError


def normal_pair(mean, var):
    """(with ‖ without) and (without ‖ with) for N(0, 1) without the record and N(mean, var) with it."""
    return (
        lambda k: gaussian.unequal_cost([mean], [var], [0], [1], k),
        lambda k: gaussian.unequal_cost([0], [1], [mean], [var], k),
    )


def moments(without, with_, rate, order, low, high):
    """E[(M/P0)^α] and E[(P0/M)^(α−1)] under P0, by quadrature of the log densities."""

    def tilted(x, remove):
        base, mixed = without(x), np.logaddexp(np.log1p(-rate) + without(x), np.log(rate) + with_(x))
        first, second = (mixed, base) if remove else (base, mixed)
        return np.exp(order * first + (1 - order) * second)

    edges = np.linspace(low, high, 80)
    return [
        sum(integrate.quad(tilted, a, b, args=(remove,), epsabs=0, epsrel=1e-12)[0] for a, b in pairwise(edges))
        for remove in (True, False)
    ]


def test_vectors():
    # I-6: N1 = N(0.1, 1.05), q = 0.05, α = 9
    with_first, without_first = normal_pair(0.1, 1.05)
    remove = subsampled.remove_cost(with_first, [9], sampling_rate=0.05)[0]
    assert np.exp(remove) == pytest.approx(1.00109228325706, rel=1e-14)
    assert remove / 8 == pytest.approx(0.000136460893717944, rel=1e-12)
    add = subsampled.add_cost(without_first, [9], sampling_rate=0.05)[0]
    assert add / 8 == pytest.approx(0.000593116624952961, rel=1e-12)
    _, exact = moments(stats.norm(0, 1).logpdf, stats.norm(0.1, 1.05**0.5).logpdf, 0.05, 9, -14, 14)
    assert exact == pytest.approx(1.00103290788096, rel=1e-12)
    assert np.log(exact) / 8 == pytest.approx(0.000129046849832747, rel=1e-9)
    assert add >= np.log(exact)


@pytest.mark.parametrize(
    ("mean", "var", "remove", "add"),
    [
        (0, 0.7, 0.000522845964121, 0.00057392507025),
        (0.2, 0.8, 0.000601534056759, 0.000649989088928),
        (0, 0.3, 0.0043852235187, 0.00457812551248),
    ],
)
def test_the_add_direction_can_be_the_larger(mean, var, remove, add):
    # I-6, the reason why both directions are evaluated
    got = subsampled.remove_cost(normal_pair(mean, var)[0], [9], sampling_rate=0.05)[0] / 8
    assert got == pytest.approx(remove, rel=1e-11)
    _, exact = moments(stats.norm(0, 1).logpdf, stats.norm(mean, var**0.5).logpdf, 0.05, 9, -14, 14)
    assert np.log(exact) / 8 == pytest.approx(add, rel=1e-10)
    assert subsampled.add_cost(normal_pair(mean, var)[1], [9], sampling_rate=0.05)[0] / 8 >= add > got


@given(st.floats(0, 1), st.floats(0, 50), st.lists(st.integers(2, 60), min_size=1, max_size=4))
def test_equal_variances_reduce_to_the_sampled_gaussian(rate, shift, orders):
    # M3
    got = subsampled.remove_cost(lambda k: gaussian.cost(shift, k), orders, sampling_rate=rate)
    assert got == pytest.approx(sgm.cost(shift, orders, sampling_rate=rate), rel=1e-11, abs=1e-300)


def test_convexity_bound_of_theorem_4():
    # I-2: c^R at λ = order − 1; the minimum with −λ log(1−q) is taken on top of it
    rows = [(0.1, 0.5, 8, 0.380831142375898), (0.01, 0.1, 32, 0.0037258916606023), (1, 1, 8, 36)]
    for rate, shift, lam, bound in rows:
        got = subsampled.add_cost(lambda k, r=shift: gaussian.cost(r, k), [lam + 1], sampling_rate=rate)
        assert got[0] == pytest.approx(bound, rel=1e-12)
    loose = subsampled.add_cost(lambda k: gaussian.cost(1.0, k), [33], sampling_rate=0.01)
    assert loose[0] == pytest.approx(-32 * np.log(0.99))  # far below 380.63


@given(st.floats(0.001, 0.9), st.floats(0.01, 2), st.floats(1.01, 12))
def test_fractional_orders_are_bounded_from_above(rate, shift, order):
    bound = subsampled.remove_cost(lambda k: gaussian.cost(shift, k), [order], sampling_rate=rate)[0]
    assert bound >= sgm.cost(shift, [order], sampling_rate=rate)[0] * (1 - 1e-10)
    exact = sgm.cost(shift, [order], sampling_rate=rate, direction="add")[0]
    assert subsampled.add_cost(lambda k: gaussian.cost(shift, k), [order], sampling_rate=rate)[0] >= exact


def test_laplace_and_exponential_family_outcomes():
    rate, order = 0.2, 4
    cases = [
        (
            lambda k: laplace.cost(0.7, k),
            lambda k: laplace.cost(0.7, k),
            lambda x: -abs(x) - np.log(2),
            lambda x: -abs(x - 0.7) - np.log(2),
            (-40, 40),
        ),
        (
            lambda k: ef.cost(ef.GAMMA, [2.5, 1.2], [2.0, 1.0], k),
            lambda k: ef.cost(ef.GAMMA, [2.0, 1.0], [2.5, 1.2], k),
            stats.gamma(2.0, scale=1.0).logpdf,
            stats.gamma(2.5, scale=1 / 1.2).logpdf,
            (1e-12, 60),
        ),
    ]
    for forward, backward, without, with_, (low, high) in cases:
        remove, add = moments(without, with_, rate, order, low, high)
        got = subsampled.remove_cost(forward, [order], sampling_rate=rate)[0]
        assert got == pytest.approx(np.log(remove), rel=1e-5)
        assert subsampled.add_cost(backward, [order], sampling_rate=rate)[0] >= np.log(add)


def test_infinite_pairs_stay_infinite_only_where_they_count():
    pair = normal_pair(0, 1.3)[0]  # D_k infinite from k = 5 on
    got = subsampled.remove_cost(pair, [2, 4, 4.5, 5, 9], sampling_rate=0.1)
    assert np.isfinite(got[:2]).all()
    assert (got[2:] == np.inf).all()
    assert (subsampled.remove_cost(pair, [2, 9], sampling_rate=0) == 0).all()
    assert subsampled.remove_cost(pair, [4, 9], sampling_rate=1) == pytest.approx(pair(np.array([4.0, 9])))
    add = subsampled.add_cost(normal_pair(0, 0.5)[1], [9], sampling_rate=0.1)
    assert add[0] == pytest.approx(-8 * np.log(0.9))


def test_large_orders_and_shifts_do_not_overflow_and_tiny_ones_keep_digits():
    shifts = np.array([1e-9, 1.0, 1e3])
    got = subsampled.remove_cost(lambda k: gaussian.cost(shifts, k), [2, 1024], sampling_rate=1e-6)
    assert got == pytest.approx(sgm.cost(shifts, [2, 1024], sampling_rate=1e-6), rel=1e-10)
    assert got[0, 0] == pytest.approx(1e-30, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: subsampled.remove_cost(lambda k: k * np.nan, [2], sampling_rate=0.1), "pair_cost"),
        (lambda: subsampled.remove_cost(lambda k: -k, [2], sampling_rate=0.1), "pair_cost"),
        (lambda: subsampled.remove_cost(lambda k: np.ones(7), [3], sampling_rate=0.1), "pair_cost"),
        (lambda: subsampled.add_cost(lambda k: k, [1], sampling_rate=0.1), "orders"),
        (lambda: subsampled.add_cost(lambda k: k, [2], sampling_rate=2), "sampling_rate"),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(InputError, match=word):
        call()
