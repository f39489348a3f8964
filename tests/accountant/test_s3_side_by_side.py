"""Paper S3 as printed, beside sound numbers: test vectors I-7, I-10, and which line is which (E4-E11, M8, M9)."""

import itertools
import math

import numpy as np
import pytest

from bayesdp.accountant import as_printed_s3 as printed
from bayesdp.accountant.s3_side_by_side import of_run, of_step
from bayesdp.compose.expected import expected, inflated_order
from bayesdp.divergence.averaged import inner_product_cost
from bayesdp.errors import InputError

# --- formulas -----------------------------------------------------------------------------------------------------


def test_stated_orders_are_a_little_larger():
    """ERR 16: 10.76874 against 10.76871 for α = 8, n = 4690."""
    stated = printed.stated_orders(8, 4690, 3 * 4690)
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

    assert float(printed.theorem_3_3(costs, order)) == pytest.approx(written_out(12.0), rel=1e-12)
    assert float(printed.theorem_a_2(costs, order)) == pytest.approx(written_out(2.0), rel=1e-12)
    assert float(printed.theorem_a_2(costs, order)) == float(expected(costs, order, 2.0))


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
        return printed.theorem_3_6(x, rng.choice(u_more, p=p_more, size=(outer, inner, order, 1)), order, 1.0)

    assert sampled(400, 2000) == pytest.approx(exact, rel=0.1)
    few = [sampled(printed.SAMPLES, printed.SAMPLES) for _ in range(300)]
    assert np.mean(few) < exact  # ERR 19: biased low
    assert np.std(few) > 0.05 * exact
    shifted = printed.theorem_3_6([[5.0]], [[[[5.5], [5.2]]]], 2, 1.0)
    assert shifted == pytest.approx(0.5 * 0.2, rel=1e-12)  # M9: U may be shifted
    with pytest.raises(InputError, match="inner"):
        printed.theorem_3_6(np.zeros((2, 1)), np.zeros((2, 3, 2, 1)), 3, 1.0)


def test_lemma_a_1_is_what_the_corollary_comes_from():
    """The lemma at the P where its first term is worst gives at most e^ε' P + δ'' (E4, E5)."""
    shifts, rate, delta = np.array([0.01, 0.1]), 0.01, 1e-5
    epsilon = printed.corollary_3_1(shifts, sampling_rate=rate, delta=delta, weights=[0.9, 0.1])
    assert epsilon == pytest.approx(0.004849, abs=5e-7)  # I-10
    events = np.geomspace(1e-8, 1, 200)
    bound = printed.lemma_a_1(events, shifts, sampling_rate=rate, delta=delta / 2 / rate, weights=np.array([0.9, 0.1]))
    assert (bound <= np.exp(epsilon) * events + delta).all()
    assert (bound >= events).all()


def test_fact_3_5():
    """ERR 17: ln l = 4.52 at noise 2, and −303917 ("no samples") at noise 1 is what the errata compute with it."""
    assert printed.fact_3_5(8, 0.0, 0.0, error=0.1, failure=0.05) == pytest.approx(math.log(math.log(20) * 100))
    one, other = (printed.fact_3_5(2, 1.0, 2.0, error=1, failure=1 / math.e, sign=sign) for sign in (1, -1))
    assert (one, other) == (pytest.approx(6 - 18), pytest.approx(18 - 6))


# --- side by side -------------------------------------------------------------------------------------------------


def lines_of(lines):
    return {(line.item, line.way, line.quantity.split(" ")[0]): line.values for line in lines}


@pytest.fixture(scope="module")
def run():
    """Twenty steps without sampling, four checkpoints of six runs; the second record is clipped throughout."""
    rng = np.random.default_rng(0)
    distances = np.concatenate([rng.uniform(0.05, 0.2, (6, 4, 1)), np.ones((6, 4, 1))], axis=-1)
    options = {"noise_multiplier": 10.0, "sampling_rate": 1.0, "steps": 20, "order": 2, "delta": 1e-3, "failure": 0.05}
    return distances, options, of_run(distances, [0, 5, 10, 15], **options)


def test_a_run_line_by_line(run):
    distances, _, lines = run
    found = lines_of(lines)
    assert {line.way for line in lines} == {"printed", "estimate", "sound"}
    theorem = found["Theorem 3.3 with 3.2", "printed", "D_2"]
    # By hand: the checkpoint stands for its five steps, orders rounded up to 3.
    orders = printed.stated_orders(2, 20, 60)
    divergence = np.ceil(orders)[:, None, None] / 2 * np.repeat(np.moveaxis(distances, 1, 0), 5, axis=0) ** 2 / 100
    by_hand = expected(divergence * (orders - 1)[:, None, None], 2, 60.0)
    np.testing.assert_allclose(theorem, by_hand, rtol=1e-6)
    assert np.isinf(found["Theorem A.2", "printed", "D_2"]).all()  # the first order is 2^19
    worst = found["data-independent", "sound", "D_2"]
    np.testing.assert_allclose(worst, 20 / 100)
    # What the paper prints for the first record is below what checkpoints can certify: sixteen steps were not seen.
    unseen = 16 / 100
    assert theorem[0] < unseen <= found["one-Hölder (H2)", "sound", "D_2"][0]
    assert unseen <= found["one-Hölder (H2)", "estimate", "D_2"][0]
    assert theorem[1] > worst[1]  # for a clipped record it is worse than the worst case
    for item in ("Theorem 3.3, corrected", "one-Hölder (H2)"):
        assert (found[item, "sound", "D_2"] >= unseen).all()
    least = found["least of E7, H2 and worst case", "sound", "ε"]
    assert (least <= found["data-independent", "sound", "ε"]).all()
    assert (found["least of E7, H2 and worst case", "estimate", "ε"] <= least).all()
    assert found["ex-post (H3)", "sound", "ε"][0] <= found["ex-post (H3)", "sound", "ε"][1]


def test_a_short_run_has_theorem_a_2_too():
    found = lines_of(
        of_run(
            np.full((2, 3, 1), 0.5), [0, 1, 2], noise_multiplier=5.0, sampling_rate=1.0, steps=3, order=2, delta=1e-2
        )
    )
    # Orders 5, 3, 2: deterministic costs are their plain sum.
    assert float(found["Theorem A.2", "printed", "D_2"][0]) == pytest.approx((5 + 3 + 2) / 2 * 0.01, rel=1e-6)


def test_a_step_line_by_line():
    """I-10: H7 0.000971 against Corollary 3.1's 0.004849."""
    shifts = np.array([0.01, 0.1])
    known = lines_of(of_step(shifts, sampling_rate=0.01, largest=0.1, weights=[0.9, 0.1]))
    assert float(known["Corollary 3.1", "printed", "ε"][0]) == pytest.approx(0.004849, abs=5e-7)
    assert float(known["hockey stick (H7)", "sound", "ε"][0]) == pytest.approx(0.000971, abs=5e-7)
    assert known["averaged (H1)", "sound", "D_8"][0] < known["Theorem 3.2", "sound", "D_8"][0]
    sampled = lines_of(of_step(np.repeat(shifts, [18, 2]), sampling_rate=0.01, largest=0.2, failure=0.05))
    assert ("hockey stick (H7)", "estimate", "ε") in sampled
    estimate, bound = (sampled["averaged (H1)", way, "D_8"][0] for way in ("estimate", "sound"))
    assert estimate == pytest.approx(known["averaged (H1)", "sound", "D_8"][0])
    assert estimate < bound <= sampled["Theorem 3.2", "sound", "D_8"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": [1, 5, 10, 15]}, "at to rise from 0"),
        ({"at": [0, 5, 10]}, "4 checkpoints"),
        ({"at": [0, 5, 10, 20]}, "below 20"),
        ({"order": 2.5}, "order"),
        ({"distances": np.ones((2, 3))}, "distances"),
        ({"direction": "both"}, "direction"),
    ],
)
def test_bad_input(run, change, words):
    distances, options, _ = run
    with pytest.raises(InputError, match=words):
        of_run(**({"distances": distances, "at": [0, 5, 10, 15]} | options | change))
