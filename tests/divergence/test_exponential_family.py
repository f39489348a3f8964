"""One formula, six families: against sums, integrals and closed forms."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import logsumexp

from bayesdp.divergence import exponential_family as ef
from bayesdp.errors import InputError


def summed(p, q, order):
    return logsumexp(order * p + (1 - order) * q)


def integrated(p, q, order, low, high):
    value = integrate.quad(
        lambda x: np.exp(order * p(x) + (1 - order) * q(x)), low, high, epsabs=0, epsrel=1e-11, limit=400
    )
    return np.log(value[0])


@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1 - 1e-6), st.floats(1.01, 60))
def test_bernoulli(p, q, order):
    with mp.workdps(50):
        p_, q_, a = map(mp.mpf, (p, q, order))
        reference = mp.log(p_**a * q_ ** (1 - a) + (1 - p_) ** a * (1 - q_) ** (1 - a))
    assert float(ef.cost(ef.BERNOULLI, p, q, order)) == pytest.approx(float(reference), rel=1e-9, abs=1e-12)


def test_poisson_and_exponential_closed_forms():
    orders = np.array([1.5, 2, 4])
    k = np.arange(200)
    for order, got in zip(orders, ef.cost(ef.POISSON, 3.0, 2.0, orders), strict=True):
        assert got == pytest.approx(summed(stats.poisson(3).logpmf(k), stats.poisson(2).logpmf(k), order), rel=1e-10)
    got = ef.cost(ef.EXPONENTIAL, 2.0, 3.0, orders)
    tilted = 2 - (orders[:2] - 1)  # rate of the tilted law: 1.5, 1; at order 4 it would be −1
    assert got[:2] == pytest.approx(np.log(2 ** orders[:2] * 3.0 ** (1 - orders[:2]) / tilted), rel=1e-12)
    assert got[2] == np.inf
    edge = ef.cost(ef.EXPONENTIAL, 1.0, 2.0, 2)
    assert edge == np.inf  # exactly on the border of the domain


def test_gamma_beta_dirichlet_integrals():
    order = 2.5
    first, second = stats.gamma(2.5, scale=1 / 1.2), stats.gamma(2.0)
    got = ef.cost(ef.GAMMA, [2.5, 1.2], [2.0, 1.0], order)
    assert got == pytest.approx(integrated(first.logpdf, second.logpdf, order, 0, 80), rel=1e-8)
    first, second = stats.beta(2.0, 3.0), stats.beta(1.8, 3.3)
    got = ef.cost(ef.BETA, [2, 3], [1.8, 3.3], order)
    assert got == pytest.approx(integrated(first.logpdf, second.logpdf, order, 0, 1), rel=1e-8)
    assert ef.cost(ef.DIRICHLET, [2, 3], [1.8, 3.3], order) == got

    def density(x, y):
        point = [x, y, 1 - x - y]
        a, b = stats.dirichlet([2, 3, 4]).logpdf(point), stats.dirichlet([2.2, 2.7, 4.0]).logpdf(point)
        return np.exp(order * a + (1 - order) * b)

    value, _ = integrate.dblquad(density, 0, 1, 0, lambda y: 1 - y, epsabs=1e-6, epsrel=1e-6)
    got = ef.cost(ef.DIRICHLET, [2, 3, 4], [2.2, 2.7, 4.0], order)
    assert got == pytest.approx(np.log(value), rel=1e-4)


@pytest.mark.parametrize(
    ("family", "one", "other", "first_infinite"),
    [
        (ef.GAMMA, [2.0, 1.0], [2.0, 1.5], 3.0),
        (ef.GAMMA, [1.0, 1.0], [3.0, 1.0], 1.5),
        (ef.BETA, [1.0, 1.0], [1.0, 2.0], 2.0),
        (ef.DIRICHLET, [1.0, 1.0, 1.0], [1.0, 1.25, 1.0], 5.0),
    ],
)
def test_infinite_exactly_outside_the_domain(family, one, other, first_infinite):
    orders = [first_infinite * (1 - 1e-6), first_infinite, first_infinite + 1, 1024]
    assert np.isinf(ef.cost(family, one, other, orders)).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("family", "params"),
    [
        (ef.BERNOULLI, np.array([0.2, 0.9])),
        (ef.POISSON, np.array([0.2, 700.0])),
        (ef.EXPONENTIAL, np.array([1e-3, 1e3])),
        (ef.GAMMA, np.array([[1.0, 2.0], [50.0, 0.1]])),
        (ef.BETA, np.array([[1.0, 2.0], [50.0, 0.1]])),
        (ef.DIRICHLET, np.array([[1.0, 2.0, 3.0], [50.0, 0.1, 2.0]])),
    ],
)
def test_equal_parameters_cost_nothing_and_shapes_broadcast(family, params):
    orders = [1.5, 2, 1024]
    assert ef.cost(family, params, params, orders) == pytest.approx(np.zeros((2, 3)), abs=1e-9)
    table = ef.cost(family, params[:, None], params[None], orders)
    assert table.shape == (2, 2, 3)
    assert not np.isnan(table).any()
    assert (table >= 0).all()
    assert (table[0, 1] > 0).all()
    assert ef.cost(family, params[0], params[1], 2).shape == ()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: ef.cost(ef.BERNOULLI, 1.0, 0.5, 2), "params1"),
        (lambda: ef.cost(ef.POISSON, 1.0, -0.5, 2), "params0"),
        (lambda: ef.cost(ef.GAMMA, [1.0, 2.0, 3.0], [1.0, 2.0], 2), "params1"),
        (lambda: ef.cost(ef.DIRICHLET, 1.0, [1.0, 2.0], 2), "params1"),
        (lambda: ef.cost(ef.BETA, [1.0, 2.0], [1.0, np.nan], 2), "params0"),
        (lambda: ef.cost(ef.BETA, [1.0, 2.0], [1.0, 2.0], 0.5), "orders"),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(InputError, match=word):
        call()


@pytest.mark.parametrize("family", ["BERNOULLI", "EXPONENTIAL", "POISSON", "GAMMA", "BETA"])
def test_rounding_goes_up(family):
    """Half of all costs of nearly equal laws used to be below the exact ones, some of them 0."""
    natural, log_partition = {
        "BERNOULLI": (lambda p: [mp.log(p[0] / (1 - p[0]))], lambda e: mp.log1p(mp.exp(e[0]))),
        "EXPONENTIAL": (lambda p: [-p[0]], lambda e: -mp.log(-e[0])),
        "POISSON": (lambda p: [mp.log(p[0])], lambda e: mp.exp(e[0])),
        "GAMMA": (lambda p: [p[0], -p[1]], lambda e: mp.loggamma(e[0]) - e[0] * mp.log(-e[1])),
        "BETA": (lambda p: p, lambda e: mp.loggamma(e[0]) + mp.loggamma(e[1]) - mp.loggamma(e[0] + e[1])),
    }[family]
    rng = np.random.default_rng(5)
    for _ in range(150):
        alpha = float(rng.choice([1.0001, 1.5, 8, 1024]))
        first = rng.uniform(0.01, 0.9, 2) * (1 if family == "BERNOULLI" else 10 ** rng.uniform(0, 4))
        second = first * (1 + 10 ** rng.uniform(-9, -4) * rng.normal(size=2))
        pair = (first, second) if family in ("GAMMA", "BETA") else (first[0], second[0])
        got = float(ef.cost(getattr(ef, family), *pair, alpha))
        with mp.workdps(60):
            one, two = (natural([mp.mpf(float(x)) for x in params]) for params in (first, second))
            a = mp.mpf(alpha)
            mixed = [a * x + (1 - a) * y for x, y in zip(one, two, strict=True)]
            exact = log_partition(mixed) - a * log_partition(one) - (1 - a) * log_partition(two)
            assert mp.mpf(got) >= exact
            assert got <= float(exact) * (1 + 1e-9) + 1e-6
