"""Upper bounds on a mean: the vectors of I-3, independent oracles, the invariants of M5, bad input."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesdp.errors import InputError
from bayesdp.estimate import METHODS, upper_mean
from bayesdp.estimate.betting import betting
from bayesdp.estimate.bounded import bernstein, hoeffding, kl

FREE = [name for name, method in METHODS.items() if method.distribution_free]
DISTANCES = (0.10, 0.25, 0.40, 0.55, 0.70, 0.85, 1.00, 0.30)


def costs(distances, *, q=0.01, order=9):
    """8·D_9 of the subsampled Gaussian, noise 1 (B4 at an integer order), digits of small costs kept."""
    k = np.arange(order + 1)
    weights = np.array([math.comb(order, j) * (1 - q) ** (order - j) * q**j for j in k])
    return np.log1p(np.expm1(np.multiply.outer(np.square(distances), (k * k - k) / 2)) @ weights)


SMALL = costs(DISTANCES)
CAP = float(costs(1.0))
SHUFFLED = list(range(1000))
random.Random(0).shuffle(SHUFFLED)
LARGE = costs((np.arange(1000) + 0.5) / 1000)[SHUFFLED]


def exact(value, digits):
    return pytest.approx(value, rel=0.5 * 10.0 ** (1 - digits), abs=0)


# --- I-3 ---------------------------------------------------------------------------------------------------


def test_the_costs_of_i3():
    printed = (1.00003620654311, 1.00023327239139, 1.00063290620971, 1.00130856742466, 1.00240978705048)
    printed += (1.00428029543557, 1.01435535890824, 1.00034138489773)
    np.testing.assert_allclose(np.exp(SMALL), printed, rtol=0, atol=6e-15)
    assert exact(0.0142532963470641, 15) == CAP
    assert float(upper_mean(SMALL, method="plug-in", failure=0.5)) == exact(0.00294538046277977, 15)
    assert float(np.exp(SMALL).std()) == exact(0.00451224203803965, 12)


@pytest.mark.parametrize(
    ("failure", "printed", "capped"),
    [
        (1e-3, 0.0110496044356372, 0.0110496044356372),
        (1e-5, 0.0199786106546506, CAP),
        (1e-15, 0.39136169775739, CAP),
    ],
)
def test_student_t_on_eight_samples(failure, printed, capped):
    assert float(upper_mean(SMALL, method="student-t", failure=failure)) == exact(printed, 14)
    assert float(upper_mean(SMALL, method="student-t", failure=failure, log_high=CAP)) == exact(capped, 14)


@pytest.mark.parametrize(
    ("bound", "printed"),
    [
        (hoeffding, {1e-3: 1.01238212943434, 1e-5: 1.01512690753189}),
        (kl, {1e-3: 1.01165903653272, 1e-5: 1.01308730595684, 1e-15: 1.01432226600818}),
        (bernstein, {1e-3: 1.04597047989339, 1e-5: 1.06978372308523}),
        (betting, {1e-3: 1.01173506869962, 1e-5: 1.01377159987956}),
    ],
)
def test_bounded_methods_on_eight_samples(bound, printed):
    width = math.expm1(CAP)
    x = np.expm1(SMALL) / width
    for failure, value in printed.items():
        uncapped = 1 + width * float(bound(x, failure))
        assert uncapped == exact(value, 15)
        result = upper_mean(SMALL, method=bound.__name__, failure=failure, log_high=CAP)
        assert float(result) == pytest.approx(min(math.log(uncapped), CAP), rel=1e-12)


@pytest.mark.parametrize(
    ("failure", "method", "printed"),
    [
        (1e-5, "student-t", 0.00229004075143),
        (1e-5, "betting", 0.00238183306431),
        (1e-5, "bernstein", 0.00274747868054),
        (1e-5, "kl", 0.00279290262965),
        (1e-5, "hoeffding", 0.0030546070634),
        (1e-15, "student-t", 0.00257422623366),
        (1e-15, "betting", 0.00290970404035),
        (1e-15, "bernstein", 0.00377608382427),
        (1e-15, "kl", 0.00348530388127),
        (1e-15, "hoeffding", 0.0038491803828),
        (0.5, "plug-in", 0.00196817844194),
    ],
)
def test_thousand_samples(failure, method, printed):
    result = float(upper_mean(LARGE, method=method, failure=failure, log_high=CAP))
    assert result == pytest.approx(printed, rel=0, abs=0.6e-14)


def test_hoelder_form():
    total = upper_mean(100 * SMALL, method="student-t", failure=1e-15)
    assert float(total) == exact(4.68083068118943, 15)
    assert float(upper_mean(100 * SMALL, method="plug-in", failure=0.5)) == exact(0.424544770956993, 15)


def test_student_t_quantiles_by_recovering_them_from_the_bound():
    # Two-valued samples x = (0, …, 0, 1) have mean 1/m and S = √(m−1)/m, so the margin is t/m.
    printed = {
        (8, 1e-3): 4.78528962863833,
        (8, 1e-5): 10.1026842529676,
        (8, 1e-15): 279.12799927928,
        (4, 1e-15): 103311.08359285,
        (28, 1e-15): 16.1898513752137,
        (28, 2.0**-53): 17.6933213146917,
        (50, 1e-15): 11.4272556975562,
        (1000, 1e-15): 8.0704126648203,
    }
    for (m, failure), value in printed.items():
        x = np.zeros(m)
        x[-1] = 1.0
        assert float(METHODS["student-t"].bound(x, failure)) * m - 1 == pytest.approx(value, rel=1e-12)
    # C15: all 28 pairs of 8 gradients taken as independent, against the 4 disjoint pairs that are.
    assert stats.t.isf(2.0**-53, 3) / stats.t.isf(2.0**-53, 27) > 12_000


# --- oracles -----------------------------------------------------------------------------------------------


def betting_oracle(x, failure):
    """H9 read off the page, sample by sample, in 50 digits."""
    with mp.workdps(50):
        x = [mp.mpf(float(v)) for v in x]
        n, goal = len(x), 1 / mp.mpf(failure)

        def wealth(m):
            product, total, squares = mp.mpf(1), mp.mpf(1) / 2, mp.mpf(1) / 4
            for i, value in enumerate(x):
                stake = mp.sqrt(2 * mp.log(goal) / (n * squares / (i + 1)))
                product *= 1 - (min(stake, mp.mpf(1) / 2 / (1 - m)) if m < 1 else stake) * (value - m)
                total += value
                squares += (value - total / (i + 2)) ** 2
            return product

        if wealth(mp.mpf(1)) < goal:
            return 1.0
        low, high = mp.mpf(0), mp.mpf(1)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if wealth(middle) < goal else (low, middle)
        return float(high)


@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-6, 1e-300])
@pytest.mark.parametrize("n", [1, 3, 64, 65, 130])
def test_betting_against_fifty_digits(n, failure):
    rng = np.random.default_rng(n)
    x = np.stack([rng.random(n), (rng.random(n) < 0.1) * 1.0, rng.beta(0.2, 5, n)])
    expected = [max(betting_oracle(row, failure), row.mean()) for row in x]
    np.testing.assert_allclose(betting(x, failure), expected, rtol=2e-13)


@pytest.mark.parametrize("failure", [0.3, 1e-6, 1e-15])
def test_kl_against_root_finding(failure):
    for mean, n in ((0.2, 50), (1e-4, 20_000), (0.93, 8)):
        bound = mp.mpf(float(kl(np.full(n, mean), failure)))
        with mp.workdps(40):
            p, budget = mp.mpf(mean), mp.log(1 / mp.mpf(failure)) / n

            def spent(m, p=p):
                return p * mp.log(p / m) + (1 - p) * mp.log((1 - p) / (1 - m))

            assert spent(bound - 1e-14) < budget
            assert bound + 1e-14 >= 1 or spent(bound + 1e-14) > budget
    assert float(kl(np.zeros(28), failure)) == pytest.approx(1 - failure ** (1 / 28), rel=1e-12)
    assert float(kl(np.ones(28), failure)) == 1.0


@pytest.mark.parametrize("cap", [1e-9, 1e-3, 0.999, 1.001, 30.0, 300.0, 690.0])
@pytest.mark.parametrize("method", FREE)
def test_log_space_against_fifty_digits(method, cap):
    logs = cap * np.random.default_rng(1).random(40) ** 3
    result = float(upper_mean(logs, method=method, failure=1e-3, log_high=cap))
    with mp.workdps(50):
        width = mp.expm1(cap)
        x = np.array([float(mp.expm1(float(v)) / width) for v in logs])
        mean = min(float(METHODS[method].bound(x, 1e-3)), 1.0)
        expected = float(mp.log1p(mean * width))
    assert result == pytest.approx(expected, rel=1e-12)


# --- M5 ----------------------------------------------------------------------------------------------------

samples = st.lists(st.floats(0, 1), min_size=2, max_size=30).map(np.array)
caps = st.sampled_from([1e-12, 1e-3, 1.0, 40.0, 1e4, 1e12])
failures = st.sampled_from([0.9, 0.05, 1e-6, 1e-15, 1e-300])
methods = st.sampled_from(list(METHODS))


def log_mean(logs):
    with mp.workdps(40):
        return float(mp.log(mp.fsum(mp.exp(mp.mpf(float(v))) for v in logs) / len(logs)))


@given(samples, caps, failures, methods)
def test_between_the_log_mean_and_the_cap(shares, cap, failure, method):
    logs = shares * cap
    result = float(upper_mean(logs, method=method, failure=failure, log_high=cap))
    assert log_mean(logs) * (1 - 1e-13) <= result <= cap
    if not METHODS[method].distribution_free:
        assert float(upper_mean(logs, method=method, failure=failure)) >= result


@given(st.floats(0, 1), st.integers(2, 40), caps, failures, methods)
def test_a_constant_sample_gives_at_least_its_value(share, count, cap, failure, method):
    logs = np.full(count, share * cap)
    result = float(upper_mean(logs, method=method, failure=failure, log_high=cap))
    assert result >= share * cap
    if not METHODS[method].distribution_free:
        assert result == share * cap


@given(samples, st.sampled_from([-3.0, 0.25, 50.0]), failures, methods)
def test_scaling_y_shifts_the_log(shares, shift, failure, method):
    plain = upper_mean(shares, method=method, failure=failure, log_high=1.0)
    moved = upper_mean(shares + shift, method=method, failure=failure, log_high=1.0 + shift, log_low=shift)
    assert float(moved) - shift == pytest.approx(float(plain), abs=1e-9)


@given(samples, caps, st.sampled_from(["kl", "hoeffding", "bernstein", "student-t"]))
def test_more_confidence_costs_more(shares, cap, method):
    bounds = [float(upper_mean(shares * cap, method=method, failure=f, log_high=cap)) for f in (0.4, 0.05, 1e-9)]
    assert bounds == sorted(bounds)


@given(samples, caps, failures)
def test_kl_is_never_above_hoeffding(shares, cap, failure):
    logs = shares * cap
    bounds = {m: float(upper_mean(logs, method=m, failure=failure, log_high=cap)) for m in FREE}
    assert bounds["kl"] <= bounds["hoeffding"] * (1 + 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_orders_do_not_mix(method):
    """Together or one by one, in chunks or whole: the same bits (M13)."""
    logs = np.random.default_rng(2).random((3000, 4, 6)) ** 3
    high = np.linspace(1, 2, 6)
    whole = upper_mean(logs, method=method, failure=1e-6, log_high=high)
    assert whole.shape == (4, 6)
    for i in range(4):
        for j in range(6):
            alone = upper_mean(logs[:, i, j], method=method, failure=1e-6, log_high=high[j])
            assert alone.shape == ()
            assert alone == whole[i, j]


def test_betting_depends_on_the_order_of_samples_and_others_do_not():
    ascending = np.sort(LARGE)
    for method in METHODS:
        given_order, sorted_order = (
            float(upper_mean(logs, method=method, failure=1e-5, log_high=CAP)) for logs in (LARGE, ascending)
        )
        same = sorted_order == pytest.approx(given_order, rel=1e-12)
        assert same == (method != "betting")


# --- the edges of the range --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_infinite_samples_give_infinity_or_the_cap(method):
    logs = np.array([[1.0, 1.0, 1.0], [np.inf, 2.0, np.inf]])
    result = upper_mean(logs, method=method, failure=0.1, log_high=[np.inf, 5.0, 7.0])
    assert result[0] == np.inf
    assert log_mean([1.0, 2.0]) - 1e-15 <= result[1] <= 5.0
    assert result[2] == 7.0


@pytest.mark.parametrize("method", FREE)
def test_no_finite_worst_case_no_bound(method):
    assert upper_mean([0.0] * 50, method=method, failure=0.1, log_high=np.inf) == np.inf


@pytest.mark.parametrize("method", METHODS)
def test_a_range_of_one_point(method):
    assert upper_mean([0.0, 0.0], method=method, failure=1e-6, log_high=0.0) == 0.0
    assert upper_mean([2.0, 2.0], method=method, failure=1e-6, log_high=2.0, log_low=2.0) == 2.0


@pytest.mark.parametrize("method", METHODS)
def test_rounding_beyond_the_range_is_clipped(method):
    result = upper_mean([-1e-16, 3 + 2e-9, 1.0], method=method, failure=1e-6, log_high=3.0)
    assert 0 < result <= 3.0


@pytest.mark.parametrize(("count", "failure"), [(2, 5e-324), (4, 7e-164), (6, 1e-300), (30, 5e-324)])
def test_student_t_where_its_quantile_is_out_of_reach(count, failure):
    """SciPy's inverse survival function is too small here, or −inf: an infinite margin, never a small one."""
    assert stats.t.sf(stats.t.isf(failure, count - 1), count - 1) > 2 * failure
    spread = np.linspace(1, 2, count)
    assert upper_mean(spread, method="student-t", failure=failure) == np.inf
    assert upper_mean(spread, method="student-t", failure=failure, log_high=4.0) == 4.0
    assert upper_mean(np.ones(count), method="student-t", failure=failure) == 1.0


def test_student_t_with_little_confidence_is_the_mean():
    plain = upper_mean(SMALL, method="plug-in", failure=0.9)
    assert upper_mean(SMALL, method="student-t", failure=0.9) == plain
    assert upper_mean(SMALL, method="student-t", failure=0.499) > plain


def test_the_table_says_what_it_assumes():
    assert FREE == ["betting", "bernstein", "kl", "hoeffding"]
    for name, method in METHODS.items():
        assert method.needs_range == (name in FREE)
        assert ("independent" in method.assumption) == method.distribution_free
    assert "heuristic" in METHODS["student-t"].assumption
    assert "not a bound" in METHODS["plug-in"].assumption


# --- bad input ---------------------------------------------------------------------------------------------

GOOD = {"log_values": [0.1, 0.2, 0.3], "method": "betting", "failure": 0.05, "log_high": 1.0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "t-test"}, "method='t-test'"),
        ({"failure": 0.0}, "failure=0.0"),
        ({"failure": 1.0}, "failure=1.0"),
        ({"failure": float("nan")}, "failure=nan"),
        ({"log_low": math.inf}, "log_low=inf"),
        ({"log_values": []}, "log_values"),
        ({"log_values": 0.3}, r"shape \(\)"),
        ({"log_values": [0.1, math.nan]}, r"log_values\[1\]=nan"),
        ({"log_values": [0.1, 1.1]}, r"log_high=1, got log_values\[1\]=1.1"),
        ({"log_values": [[0.1, 0.1], [0.1, 1.1]]}, r"log_values\[1, 1\]=1.1"),
        ({"log_values": [0.1, -0.1]}, r"log_low=0 .*log_values\[1\]=-0.1"),
        ({"log_values": [0.1, -math.inf]}, r"log_values\[1\]=-inf"),
        ({"log_values": [0.1], "method": "student-t"}, "at least 2 sample"),
        ({"log_values": [0.1], "method": "bernstein"}, "at least 2 sample"),
        ({"log_high": -1.0}, "log_high=-1.0"),
        ({"log_high": math.nan}, "log_high=nan"),
        ({"log_high": [1.0, 2.0]}, r"log_high .* shape \(2,\)"),
    ],
)
def test_bad_input(change, words):
    arguments = GOOD | change
    with pytest.raises(InputError, match=words):
        upper_mean(arguments.pop("log_values"), **arguments)
    assert upper_mean(GOOD["log_values"], method="betting", failure=0.05, log_high=1.0) <= 1.0


@pytest.mark.parametrize("method", FREE)
def test_a_bound_for_every_law_needs_the_worst_case(method):
    with pytest.raises(InputError, match=r"log_high.*clip norm.*student-t"):
        upper_mean([0.1, 0.2], method=method, failure=0.05)
