"""The chain of weak triangles: against Gaussians, where it is exact, and random laws, where it must hold."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from bayesdp import InputError
from bayesdp.unlearn.triangle import chain, coefficient, doubling, links, printed_coefficient, printed_links

ORDERS = st.floats(1.05, 40.0)


def renyi(p, q, order):
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q))) / (order - 1)


def gaussian(distance):
    return lambda order: order * distance**2 / 2


def test_the_coefficients_of_the_vectors():
    """I-13: printed / right."""
    for order, printed, right in ((3, 2, 1.25), (8, 1.16666666667, 1.07142857143), (2, math.inf, 1.5), (1.5, -1, 2)):
        assert printed_coefficient(order) == pytest.approx(printed, rel=1e-10)
        assert coefficient(order) == pytest.approx(right, rel=1e-10)


@given(ORDERS, st.floats(1.001, 100.0))
def test_every_coefficient_is_positive(order, p):
    """M12. The printed one is not, below order 2."""
    assert coefficient(order, p) >= 1
    assert all(one.coefficient >= 1 - 1e-12 and one.order > 1 for one in links(order, doubling(5)))
    assert (printed_coefficient(order) > 0) == (order >= 2)


@given(ORDERS, st.floats(1.01, 50.0))
def test_two_links_are_the_weak_triangle(order, p):
    first, last = links(order, [1 / p, 1 - 1 / p])
    assert first.coefficient == pytest.approx(coefficient(order, p))
    assert first.order == pytest.approx(p * order)
    assert last.coefficient == pytest.approx(1)
    assert last.order == pytest.approx(p / (p - 1) * (order - 1 / p), rel=1e-6)


def test_doubling_is_the_recursion():
    curves = [gaussian(d) for d in (0.3, 0.2, 0.5, 0.1)]

    def recursion(order, count):
        """κ D_2α(kept ‖ before) + D_{2α−1}(before ‖ now), the first bounded in the same way."""
        if count == 1:
            return curves[0](order)
        return coefficient(order) * recursion(2 * order, count - 1) + curves[count - 1](2 * order - 1)

    for count in (1, 2, 3, 4):
        assert chain(3.0, curves[:count], "doubling")[0] == pytest.approx(recursion(3.0, count))


def test_printed_is_the_papers_rule():
    before, now = gaussian(0.3), gaussian(0.2)
    assert chain(8.0, [now], "printed")[0] == pytest.approx(now(15))
    assert chain(8.0, [before, now], "printed")[0] == pytest.approx(7 / 6 * before(16) + now(15))
    assert chain(8.0, [before, now, now], "printed")[0] >= chain(8.0, [before, now, now], "doubling")[0]
    with pytest.raises(InputError, match="negative"):
        printed_links(2.0, 1)


@given(st.integers(0, 10**6), ORDERS, st.integers(1, 5))
def test_holds_for_random_laws_and_weights(seed, order, count):
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(4, 2.0), size=count + 1) + 1e-6
    laws /= laws.sum(axis=1, keepdims=True)
    curves = [lambda o, p=p, q=q: renyi(p, q, o) for p, q in itertools.pairwise(laws)]
    truth = renyi(laws[0], laws[-1], order)
    weights = rng.dirichlet(np.ones(count)) + 1e-3
    by_weights = sum(
        one.coefficient * curve(one.order)
        for one, curve in zip(links(order, weights / weights.sum()), curves, strict=True)
    )
    best = chain(order, curves)[0]
    assert truth <= by_weights * (1 + 1e-9) + 1e-12
    assert truth <= best * (1 + 1e-9) + 1e-12
    assert best <= chain(order, curves, "doubling")[0]


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=8), ORDERS)
def test_best_is_exact_for_gaussians_on_a_line(distances, order):
    truth = gaussian(sum(distances))(order)
    found, used = chain(order, [gaussian(d) for d in distances])
    assert truth <= found <= truth * (1 + 1e-6)
    assert len(used) == len(distances)


def test_orders_grow_with_the_number_of_links_and_do_not_double():
    """Ten links of which each is known up to order 100 only: finite, where E12's recursion asks for order 4,096."""
    curve = lambda order: 0.01 if order <= 100 else math.inf  # noqa: E731
    assert math.isinf(chain(8.0, [curve] * 10, "doubling")[0])
    value, used = chain(8.0, [curve] * 10)
    assert 0.1 < value < 0.12
    assert max(one.order for one in used) <= 100


def test_free_links_cost_nothing():
    assert chain(4.0, [gaussian(0.0)] * 3)[0] == 0
    assert chain(4.0, [gaussian(0.0), gaussian(1.0)])[0] == pytest.approx(gaussian(1.0)(4.0), rel=1e-4)


def test_bad_input():
    with pytest.raises(InputError, match="sum to 1"):
        links(2.0, [0.5, 0.6])
    with pytest.raises(InputError):
        links(2.0, [0.0, 1.0])
    with pytest.raises(InputError):
        chain(2.0, [])
    with pytest.raises(InputError, match="way"):
        chain(2.0, [gaussian(1)], "other")
    for order in (1.0, 0.5, math.nan):
        with pytest.raises(InputError):
            coefficient(order)
