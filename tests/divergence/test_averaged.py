"""Any update rule: H1, E10; vectors I-7, I-7b; M8, M9."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from bayesdp.divergence import averaged, sgm
from bayesdp.errors import InputError

RECORDS, NEW = (1.0, 0.6, -0.4), 0.9
RULES = {"sum": lambda batch: sum(batch), "mean": lambda batch: sum(batch) / max(len(batch), 1)}

TABLE = [  # I-7: rule, q, s, α, exact, exact reverse, H1, sup, Thm 3.6, Thm 3.6 reverse, C=1 baseline
    (
        "mean",
        0.5,
        1,
        2,
        0.0172216343392,
        0.0187997472466,
        0.0585727563782,
        0.271535157342,
        0.240568939557,
        0.211168234557,
        0.357374019509,
    ),
    (
        "mean",
        0.5,
        1,
        4,
        0.0324228381365,
        0.0396627328116,
        0.319613544781,
        0.829942580629,
        0.654223326041,
        0.662904556803,
        1.15070978731,
    ),
    (
        "sum",
        0.5,
        1,
        2,
        0.188383077963,
        0.121003911595,
        0.271535157342,
        0.271535157342,
        1.31383813972,
        1.24351767351,
        0.357374019509,
    ),
    (
        "mean",
        0.1,
        1,
        2,
        0.00529530888592,
        0.00483759598067,
        0.00950879435152,
        0.0124018579251,
        0.159399653675,
        0.189032795887,
        0.0170368632362,
    ),
    (
        "mean",
        0.1,
        1,
        4,
        0.011270162661,
        0.00913287631087,
        0.026832740219,
        0.0350096373832,
        0.482970805644,
        0.485605223764,
        0.0586726069601,
    ),
    (
        "sum",
        0.1,
        1,
        4,
        0.0232485097958,
        0.0137321704864,
        0.0350096373832,
        0.0350096373832,
        3.30033900168,
        0.764036804507,
        0.0586726069601,
    ),
]


def batches(records, rate):
    """Every Poisson batch with its probability."""
    subsets = [s for n in range(len(records) + 1) for s in combinations(records, n)]
    return subsets, np.array([rate ** len(s) * (1 - rate) ** (len(records) - len(s)) for s in subsets])


def mixture_cost(first, second, order, noise):
    """The log of ∫ p^α q^(1−α) of two Gaussian mixtures (locations, probabilities), on a grid."""
    x = np.linspace(-30, 30, 60_001)

    def density(mixture):
        return sum(w * stats.norm.pdf(x, m, noise) for m, w in zip(*mixture, strict=True))

    with np.errstate(divide="ignore"):
        logs = order * np.log(density(first)) + (1 - order) * np.log(density(second))
    return np.log(np.trapezoid(np.exp(np.where(np.isfinite(logs), logs, -np.inf)), x))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}-{row[3]}")
def test_toy_table(row):
    rule, rate, noise, order, exact, reverse, h1, sup, thm36, thm36_reverse, baseline = row
    update, lam = RULES[rule], order - 1
    without, p = batches(RECORDS, rate)
    with_, p_with = batches((*RECORDS, NEW), rate)
    u = np.array([update(b) for b in without])
    u_with = np.array([update(b) for b in with_])
    assert mixture_cost((u_with, p_with), (u, p), order, noise) / lam == pytest.approx(exact, rel=1e-9)
    assert mixture_cost((u, p), (u_with, p_with), order, noise) / lam == pytest.approx(reverse, rel=1e-9)

    shifts = np.abs([update((*b, NEW)) - update(b) for b in without]) / noise
    ours = float(averaged.averaged_cost(shifts, order, sampling_rate=rate, weights=p)) / lam
    worst = float(sgm.cost(shifts.max(), [order], sampling_rate=rate)[0]) / lam
    assert ours == pytest.approx(h1, rel=1e-11)
    assert worst == pytest.approx(sup, rel=1e-11)
    assert sgm.cost(1 / noise, [order], sampling_rate=rate)[0] / lam == pytest.approx(baseline, rel=1e-11)

    forward = averaged.inner_product_cost(u_with - u[:, None], p, p_with, order, noise) / lam
    backward = averaged.inner_product_cost(u - u_with[:, None], p_with, p, order, noise) / lam
    assert float(forward) == pytest.approx(thm36, rel=1e-11)
    assert float(backward) == pytest.approx(thm36_reverse, rel=1e-11)
    # M8
    assert max(exact, reverse) <= ours <= worst * (1 + 1e-12)
    assert ours < min(thm36, thm36_reverse)
    if rule == "sum":
        assert ours == pytest.approx(worst, rel=1e-12)


def test_realistic_mean_rule():
    # I-7b: batch sizes binomial, noise on the mean
    size, rate = 60_000, 128 / 60_000
    count = np.arange(0, 400)
    p = stats.binom.pmf(count, size, rate)
    p /= p.sum()

    def cost(order, noise, distance=1.0):
        shifts = np.where(count > 0, distance / (count + 1), 1.0) / noise  # alone, the record moves by C
        return averaged.averaged_cost(shifts, order, sampling_rate=rate, weights=p)

    assert float(cost(8, 0.469)) / 7 == pytest.approx(5.091993526497e-9, rel=1e-6)
    assert float(cost(8, 0.469, 2.0)) / 7 == pytest.approx(2.0377e-8, rel=1e-3)
    assert sgm.cost(1 / 129 / 0.469, [8], sampling_rate=rate)[0] / 7 == pytest.approx(4.974e-9, rel=1e-3)
    assert sgm.cost(1 / 0.469, [8], sampling_rate=rate)[0] / 7 == pytest.approx(11.15639094833, rel=1e-12)
    assert float(cost(16, 0.469)) / 15 == pytest.approx(21.2676, rel=1e-5)
    assert float(cost(8, 1 / 128)) / 7 == pytest.approx(6.6e4, rel=0.01)


def published(u, u_with, p, p_with, order, noise):
    """Thm 3.6 with Δ = Σ|U_i|² − (α−1)|U_0|² − |ΣU_i − (α−1)U_0|², over all tuples."""
    total = 0.0
    for u0, p0 in zip(u, p, strict=True):
        inner = 0.0
        for index in product(range(len(u_with)), repeat=order):
            chosen = u_with[list(index)]
            centre = chosen.sum(axis=0) - (order - 1) * u0
            delta = (chosen**2).sum() - (order - 1) * (u0**2).sum() - (centre**2).sum()
            inner += np.prod(p_with[list(index)]) * np.exp(-delta / (2 * noise**2))
        total += p0 * np.log(inner)
    return total


def test_inner_product_form_is_the_published_one():
    # M9, with vectors
    rng = np.random.default_rng(0)
    u, u_with = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    p, p_with = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    for order in [2, 3, 5]:
        got = averaged.inner_product_cost(u_with - u[:, None], p, p_with, order, 1.3)
        assert float(got) == pytest.approx(published(u, u_with, p, p_with, order, 1.3), rel=1e-10)
    # the Gaussian form, by two-dimensional Gauss-Hermite quadrature
    got = averaged.inner_product_cost(u_with - u[:, None], p, p_with, 5, 3.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    zeta = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    mass = np.multiply.outer(weights, weights).ravel() / (2 * np.pi)
    total = 0.0
    for u0, p0 in zip(u, p, strict=True):
        v = (u_with - u0) / 3.0
        total += p0 * np.log(mass @ (np.exp(zeta @ v.T - (v**2).sum(axis=1) / 2) @ p_with) ** 5)
    assert float(got) == pytest.approx(total, rel=1e-10)


def test_adding_a_constant_to_the_rule_changes_nothing():
    # M9: in float64 the published form would lose all digits here
    rng = np.random.default_rng(1)
    u, u_with = np.round(rng.normal(size=3) * 64) / 64, np.round(rng.normal(size=4) * 64) / 64
    p, p_with = np.full(3, 1 / 3), np.full(4, 1 / 4)
    plain = averaged.inner_product_cost(u_with - u[:, None], p, p_with, [2, 6], 0.7)
    moved = averaged.inner_product_cost((u_with + 2.0**30) - (u + 2.0**30)[:, None], p, p_with, [2, 6], 0.7)
    assert (plain == moved).all()


def test_averages_of_tiny_and_huge_costs():
    tiny = averaged.averaged_cost([1e-9, 2e-9], [2], sampling_rate=1e-3)
    assert tiny[0] == pytest.approx(1e-6 * 2.5e-18, rel=1e-9)
    huge = averaged.averaged_cost([[0.0, 1e3]], [1024], sampling_rate=0.5, weights=[0.5, 0.5])
    assert huge[0, 0] == pytest.approx(1024 * 1023 * 5e5, rel=1e-8)
    rare = averaged.averaged_cost([0.1, 1e3], [2], sampling_rate=0.1, weights=[1.0, 0.0])
    assert rare == pytest.approx(sgm.cost(0.1, [2], sampling_rate=0.1), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: averaged.averaged_cost(1.0, [2], sampling_rate=0.1), "shifts"),
        (lambda: averaged.averaged_cost([1.0, -1], [2], sampling_rate=0.1), "shifts"),
        (lambda: averaged.averaged_cost([1.0], [2], sampling_rate=0.1, weights=[0.5, 0.5]), "weights"),
        (lambda: averaged.averaged_cost([1.0, 2], [2], sampling_rate=0.1, weights=[0.5, 0.6]), "weights"),
        (lambda: averaged.inner_product_cost(np.ones((2, 2)), [0.5, 0.5], [0.5, 0.5], 2.5, 1.0), "orders"),
        (lambda: averaged.inner_product_cost(np.ones((2, 2)), [0.5, 0.5], [1.0], 2, 1.0), "differences"),
        (lambda: averaged.inner_product_cost(np.ones((1, 2)), [1.0], [0.5, 0.5], 2, 0.0), "noise_std"),
        (
            lambda: averaged.inner_product_cost(np.ones((1, 16)), [1.0], np.full(16, 1 / 16), 64, 1.0),
            "orders",
        ),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(InputError, match=word):
        call()
