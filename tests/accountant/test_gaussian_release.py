"""What one sample costs: softening never raises it, the worst case is the worst, infinity is honoured."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import convert
from bayesdp.accountant.gaussian_release import Softening, both_ways, two_sided_cost
from bayesdp.divergence import gaussian
from bayesdp.errors import InputError

ORDERS = np.array([1.05, 1.5, 2.0, 5.0, 9.0, 33.0])


def pair(seed, dim, full, spread=0.6):
    """Two Gaussians with variances that differ by up to some e^±spread."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(2, dim))
    scales = np.exp(rng.uniform(-spread, spread, size=(2, dim)))
    if not full:
        return means, scales**2
    turns = np.linalg.qr(rng.normal(size=(2, dim, dim)))[0]
    covariances = np.einsum("kij,kj,klj->kil", turns, scales**2, turns)
    return means, (covariances + np.swapaxes(covariances, 1, 2)) / 2


def cost(softening, means, spreads):
    m, s = softening(means, spreads)
    return two_sided_cost(m[0], s[0], m[1:], s[1:], ORDERS)[0]


def not_above(low, high):
    return bool(np.all((low <= high * (1 + 1e-9) + 1e-12) | np.isinf(high)))


@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans(), st.floats(1, 50), st.floats(0, 5))
def test_tempering_and_widening_never_raise_a_divergence(seed, dim, full, temper, extra_std):
    means, spreads = pair(seed, dim, full)
    plain = cost(Softening(), means, spreads)
    tempered = cost(Softening(temper=temper), means, spreads)
    assert not_above(tempered, plain)
    assert not_above(cost(Softening(extra_std=extra_std), means, spreads), plain)
    assert not_above(cost(Softening(temper=temper, extra_std=extra_std), means, spreads), tempered)


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans(), st.floats(0, 1))
def test_no_two_posteriors_in_the_box_are_further_apart_than_the_worst(seed, dim, full, extra_std):
    means, spreads = pair(seed, dim, full, spread=2.0)
    softening = Softening(extra_std=extra_std, radius=1.5, scales=(0.5, 0.9))
    worst = softening.worst_cost(dim, ORDERS)
    assert not_above(cost(softening, 4 * means, spreads), worst)
    m, s = softening(4 * means, spreads)
    assert (np.linalg.norm(m, axis=1) <= 1.5 * (1 + 1e-12)).all()
    eigenvalues = np.linalg.eigvalsh(s) if full else s
    assert eigenvalues.min() >= 0.25 + extra_std**2 - 1e-9
    assert eigenvalues.max() <= 0.81 + extra_std**2 + 1e-9


def test_the_worst_case_is_attained_and_infinite_where_it_must_be():
    softening = Softening(radius=1.5, scales=(0.5, 0.6))
    means, variances = np.array([[1.5, 0.0], [-1.5, 0.0]]), np.array([[0.36, 0.36], [0.25, 0.25]])
    np.testing.assert_allclose(cost(softening, means, variances), softening.worst_cost(2, ORDERS), rtol=1e-12)
    # α·0.25 > (α − 1)·0.36 iff α < 0.36/0.11
    assert np.isfinite(softening.worst_cost(2, ORDERS)).tolist() == [True, True, True, False, False, False]
    assert np.isinf(Softening(radius=1.0).worst_cost(2, ORDERS)).all()
    assert not Softening(radius=1.0).bounded
    assert softening.bounded


def test_both_directions_are_taken_and_infinity_is_honoured():
    # I-6: D_2(N(0,1)‖N(0.5,1.5)) = 0.1839, D_2(N(0.5,1.5)‖N(0,1)) = 0.6438; at order 9 the second is infinite.
    costs = two_sided_cost(np.zeros(1), np.ones(1), np.array([[0.5]]), np.array([[1.5]]), np.array([2.0, 9.0]))
    np.testing.assert_allclose(costs[0, 0], 0.64384103622589, rtol=1e-12)
    assert math.isinf(costs[0, 1])
    assert np.isfinite(gaussian.unequal_cost(0.0, 1.0, 0.5, 1.5, 9.0))
    means, spreads = pair(3, 3, full=False)
    full = two_sided_cost(means[0], np.diag(spreads[0]), means[1:], np.diag(spreads[1])[None], ORDERS)
    np.testing.assert_allclose(full, two_sided_cost(means[0], spreads[0], means[1:], spreads[1:], ORDERS), rtol=1e-9)


@pytest.mark.parametrize("full", [False, True])
def test_a_trajectory_that_is_no_gaussian_costs_infinitely_much(full):
    def shape(variances):
        return np.stack([np.diag(v) for v in variances]) if full else np.array(variances)

    means = np.array([[0.1, 0.0], [math.nan, 0.0], [math.inf, 0.0], [0.1, 0.0], [0.1, 0.0]])
    spreads = shape([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, math.nan], [1.0, 0.0]])
    softening = Softening(radius=10.0, scales=(0.01, 10.0))
    costs = two_sided_cost(np.zeros(2), shape([[1.0, 1.0]])[0], means, spreads, np.array([2.0]))[:, 0]
    assert np.isfinite(costs).tolist() == [True, False, False, False, False]
    # Inside of public bounds it has a public stand-in, so that nothing but a Gaussian of the box ever comes out.
    m, s = softening(means, spreads)
    assert m[1:4].tolist() == [[0, 0]] * 3
    assert (s[1:4] == shape([[100.0, 100.0]])[0]).all()
    assert np.isfinite(two_sided_cost(np.zeros(2), shape([[1.0, 1.0]])[0], m, s, np.array([1.0001]))).all()
    one = softening(means[1], spreads[1])
    assert (one[0].tolist(), one[1].tolist()) == ([0, 0], shape([[100.0, 100.0]])[0].tolist())
    assert softening(np.array([1e200, 0.0]), spreads[0])[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"temper": 0.9}, "temper"),
        ({"extra_std": -1}, "extra_std"),
        ({"radius": 0}, "radius"),
        ({"scales": 1.0}, "scales"),
        ({"scales": (0.0, 1.0)}, r"scales\[0\]"),
        ({"scales": (2.0, 1.0)}, r"scales\[1\]"),
    ],
)
def test_bad_input_names_the_field(values, name):
    with pytest.raises(InputError, match=f"Expected {name} "):
        Softening(**values)


@pytest.mark.parametrize("full", [False, True])
def test_pairs_are_those_that_the_costs_are_of(full):
    """Both directions, row by row: the costs at every order come out of them; what is no Gaussian stays unknown."""
    means, spreads = pair(5, 3, full)
    means, spreads = np.stack([*means, means[1]]), np.stack([*spreads, spreads[1]])
    spreads[2] = math.nan
    pairs = both_ways(means[0], spreads[0], means[1:], spreads[1:])
    assert pairs.record.tolist() == [0, 1, 0, 1]
    costs = two_sided_cost(means[0], spreads[0], means[1:], spreads[1:], ORDERS)
    good, lost = pairs.record == 0, pairs.record == 1
    lam = (ORDERS - 1)[None, :, None]
    square, excess = pairs.square[good][:, None], pairs.excess[good][:, None]
    inside = (1 + lam * excess > 0).all(axis=-1)
    with np.errstate(invalid="ignore"):
        each = (lam + 1) * lam * square / (1 + lam * excess) - np.log(1 + lam * excess) - lam * np.log(1 - excess)
    np.testing.assert_allclose(np.where(inside, each.sum(axis=-1) / 2, math.inf).max(axis=0), costs[0], rtol=1e-9)
    assert np.isinf(pairs.square[lost]).all()
    assert np.isinf(pairs.epsilon(2, 1e-5, costs, ORDERS)[1])
    assert pairs.epsilon(2, 1e-5, costs, ORDERS)[0] <= convert.epsilon(2 * costs[0], ORDERS, 1e-5)
