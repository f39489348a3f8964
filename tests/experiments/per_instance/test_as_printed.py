"""S3's theorems as printed: test vectors I-7, I-10, E4-E11."""

import itertools
import math

import numpy as np
import pytest

from bayesdp.compose.expected import expected, inflated_order
from bayesdp.divergence.averaged import inner_product_cost
from bayesdp.errors import InputError
from bayesdp.experiments.per_instance import as_printed

# --- formulas -----------------------------------------------------------------------------------------------------


def test_stated_orders_are_a_little_larger():
    """ERR 16: 10.76874 against 10.76871 for α = 8, n = 4690."""
    stated = as_printed.stated_orders(8, 4690, 3 * 4690)
    right = inflated_order(8, np.arange(4690)[::-1], 3 * 4690)
    assert stated[0] == pytest.approx(10.76874, abs=5e-6)
    assert right[0] == pytest.approx(10.76871, abs=5e-6)
    assert (stated >= right).all()
    assert stated[-1] == right[-1] == 8


def test_compositions_are_the_printed_sums():
    """Theorem 3.3 and A.2 written out as the paper has them."""
    rng, order = np.random.default_rng(0), 3.0
    costs = rng.random((4, 5))

    def written_out(p):
        n, lam = len(costs), order - 1
        terms = [(p - 1) ** i / p ** (i + 1) * math.log(np.mean(np.exp(p * costs[n - 1 - i]))) for i in range(n - 1)]
        return (sum(terms) + ((p - 1) / p) ** (n - 1) * costs[0].max()) / lam

    assert float(as_printed.theorem_3_3(costs, order)) == pytest.approx(written_out(12.0), rel=1e-12)
    assert float(as_printed.theorem_a_2(costs, order)) == pytest.approx(written_out(2.0), rel=1e-12)
    assert float(as_printed.theorem_a_2(costs, order)) == float(expected(costs, order, 2.0))


def batches(gradients, extra=()):
    """Every batch of these scalar gradients, its chance at q = 0.5, and its mean."""
    pool = [*gradients, *extra]
    picks = list(itertools.product((0, 1), repeat=len(pool)))
    means = [np.dot(pick, pool) / max(1, sum(pick)) for pick in picks]
    return np.full(len(picks), 0.5 ** len(pool)), np.array(means)


def test_theorem_3_6_finds_the_exact_value_from_many_samples():
    """I-7, mean rule, q = 0.5, α = 2: 0.240568939557; from 20 x 20 samples it is only near."""
    rng, order = np.random.default_rng(1), 2
    (p, u), (p_more, u_more) = batches((1.0, 0.6, -0.4)), batches((1.0, 0.6, -0.4), (0.9,))
    exact = float(inner_product_cost(u_more[None] - u[:, None], p, p_more, order, 1.0)) / (order - 1)
    assert exact == pytest.approx(0.240568939557, rel=1e-10)

    def sampled(outer, inner):
        x = rng.choice(u, p=p, size=(outer, 1))
        return as_printed.theorem_3_6(x, rng.choice(u_more, p=p_more, size=(outer, inner, order, 1)), order, 1.0)

    assert sampled(400, 2000) == pytest.approx(exact, rel=0.1)
    few = [sampled(as_printed.SAMPLES, as_printed.SAMPLES) for _ in range(300)]
    assert np.mean(few) < exact  # ERR 19: biased low
    assert np.std(few) > 0.05 * exact
    shifted = as_printed.theorem_3_6([[5.0]], [[[[5.5], [5.2]]]], 2, 1.0)
    assert shifted == pytest.approx(0.5 * 0.2, rel=1e-12)  # M9: U may be shifted
    with pytest.raises(InputError, match="inner"):
        as_printed.theorem_3_6(np.zeros((2, 1)), np.zeros((2, 3, 2, 1)), 3, 1.0)


def test_lemma_a_1_is_what_the_corollary_comes_from():
    """The lemma at the P where its first term is worst gives at most e^ε' P + δ'' (E4, E5)."""
    shifts, rate, delta = np.array([0.01, 0.1]), 0.01, 1e-5
    epsilon = as_printed.corollary_3_1(shifts, sampling_rate=rate, delta=delta, weights=[0.9, 0.1])
    assert epsilon == pytest.approx(0.004849, abs=5e-7)  # I-10
    events = np.geomspace(1e-8, 1, 200)
    bound = as_printed.lemma_a_1(
        events, shifts, sampling_rate=rate, delta=delta / 2 / rate, weights=np.array([0.9, 0.1])
    )
    assert (bound <= np.exp(epsilon) * events + delta).all()
    assert (bound >= events).all()


def test_fact_3_5():
    """ERR 17: ln l = 4.52 at noise 2, and −303917 ("no samples") at noise 1 is what the errata compute with it."""
    assert as_printed.fact_3_5(8, 0.0, 0.0, error=0.1, failure=0.05) == pytest.approx(math.log(math.log(20) * 100))
    one, other = (as_printed.fact_3_5(2, 1.0, 2.0, error=1, failure=1 / math.e, sign=sign) for sign in (1, -1))
    assert (one, other) == (pytest.approx(6 - 18), pytest.approx(18 - 6))
