"""Several records at once: against exact sums, quadrature, vectors that do not point the same way, and chains."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import logsumexp
from scipy.stats import binom, norm

from bayesdp import InputError
from bayesdp.divergence import gaussian, group, sgm
from bayesdp.unlearn.triangle import chain


def whole_order(shift, order, rate, k):
    """E exp(r² Σ_{a<b} j_a j_b) over independent numbers j of records, by the law of (Σj, Σj²)."""
    law = {(0, 0): 0.0}
    weights = binom.logpmf(np.arange(k + 1), k, rate)
    for _ in range(order):
        after: dict[tuple[int, int], float] = {}
        for (total, squares), log_p in law.items():
            for j, weight in enumerate(weights):
                key = (total + j, squares + j * j)
                after[key] = np.logaddexp(after.get(key, -np.inf), log_p + weight)
        law = after
    return logsumexp([p + shift**2 * (total**2 - squares) / 2 for (total, squares), p in law.items()])


@pytest.mark.parametrize(
    ("shift", "order", "rate", "k"),
    [
        (0.1, 2, 0.01, 2),
        (0.5, 3, 0.1, 3),
        (1.0, 8, 0.05, 2),
        (3.0, 4, 0.02, 3),
        (0.02, 8, 0.4, 5),
        (10.0, 3, 0.01, 2),
        (0.2, 2, 0.1, 60),
    ],
)
def test_whole_orders_are_exact_and_rounded_up(shift, order, rate, k):
    exact = whole_order(shift, order, rate, k)
    found = float(group.cost(shift, [order], sampling_rate=rate, records=k)[0])
    assert exact * (1 - 1e-11) <= found <= exact * (1 + 1e-8)


@pytest.mark.parametrize(
    ("shift", "order", "rate", "k"), [(0.7, 2.5, 0.2, 3), (1.5, 1.3, 0.05, 2), (0.05, 6.7, 0.5, 9)]
)
def test_other_orders_agree_with_plain_quadrature(shift, order, rate, k):
    j = np.arange(k + 1)

    def integrand(x):
        ratio = (binom.pmf(j, k, rate) * np.exp(j * shift * x - (j * shift) ** 2 / 2)).sum()
        return norm.pdf(x) * (ratio**order - 1 - order * (ratio - 1))

    excess = integrate.quad(integrand, -12, 12 + order * k * shift, limit=400, epsabs=0, epsrel=1e-10)[0]
    found = float(group.cost(shift, order, sampling_rate=rate, records=k))
    assert found == pytest.approx(np.log1p(excess), rel=1e-8)


def test_one_record_and_no_sampling_are_the_old_costs():
    orders = np.array([1.5, 2.0, 8.0])
    shifts = np.array([0.0, 0.3, 2.0])
    one = group.cost(shifts, orders, sampling_rate=0.1, records=1)
    np.testing.assert_array_equal(one, sgm.cost(shifts, orders, sampling_rate=0.1))
    np.testing.assert_allclose(
        group.cost(shifts, orders, sampling_rate=1.0, records=4), gaussian.cost(4 * shifts, orders), rtol=1e-12
    )
    assert not group.cost(shifts, orders, sampling_rate=0.0, records=4).any()
    assert not group.cost(0.0, orders, sampling_rate=0.3, records=4).any()


def test_tiny_shifts_keep_their_digits():
    """For r → 0 the cost is α(α−1)(k q r)²/2."""
    found = float(group.cost(1e-6, 2.5, sampling_rate=0.1, records=3))
    assert found == pytest.approx(2.5 * 1.5 * (3 * 0.1 * 1e-6) ** 2 / 2, rel=1e-6)


@given(st.integers(0, 10**6), st.sampled_from([2, 3]), st.floats(0.02, 0.9))
def test_vectors_of_any_direction_cost_no_more(seed, order, rate):
    """Kahane: E Π over draws of sets of exp⟨v_S, v_S'⟩ is largest where all shifts point the same way."""
    k, rng = 3, np.random.default_rng(seed)
    each = rng.normal(size=(k, 2))
    each *= (rng.uniform(0, 1.2, k) / np.linalg.norm(each, axis=1))[:, None]
    sets = [np.array(mask, dtype=bool) for mask in product((False, True), repeat=k)]
    # Any rule: the set's shift is within the sum of the records' own, not only that of their vectors.
    shifts = [each[taken].sum(axis=0) * rng.uniform(0, 1) for taken in sets]
    weights = [rate ** taken.sum() * (1 - rate) ** (k - taken.sum()) for taken in sets]
    moment = sum(
        np.prod([weights[i] for i in draw])
        * np.exp(sum(shifts[a] @ shifts[b] for n, a in enumerate(draw) for b in draw[:n]))
        for draw in product(range(len(sets)), repeat=order)
    )
    assert np.log(moment) <= float(group.cost(1.2, order, sampling_rate=rate, records=k))


@pytest.mark.parametrize("order", [1.5, 4.0])
@pytest.mark.parametrize("k", [2, 3])
def test_never_above_a_chain_of_single_records(order, k):
    rate, shift = 0.1, 0.4
    curve = lambda o: float(sgm.cost(shift, [o], sampling_rate=rate)[0]) / (o - 1)  # noqa: E731
    together = float(group.cost(shift, [order], sampling_rate=rate, records=k)[0]) / (order - 1)
    assert k * curve(order) < together <= chain(order, [curve] * k)[0]


def test_bad_input():
    for bad in ({"records": 0}, {"records": 1.5}, {"sampling_rate": 1.2}):
        with pytest.raises(InputError):
            group.cost(1.0, [2.0], **{"sampling_rate": 0.1, "records": 2, **bad})
    with pytest.raises(InputError):
        group.cost(-1.0, [2.0], sampling_rate=0.1, records=2)
