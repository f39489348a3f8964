"""S4's bounds on the step, as printed and as corrected (F4-F7, F9): the test vectors and the errata."""

import dataclasses
import math

import numpy as np
import pytest

from bayesdp.accountant.langevin import printed_bounds, utility_bounds
from bayesdp.accountant.langevin.step_size import Langevin
from bayesdp.divergence import sgm
from bayesdp.errors import InputError
from bayesdp.experiments.errata import sgld, sgld_claims

EXAMPLE = Langevin(records=50000, batch=100, steps=10**4, bound=1.0)
DECREASING = dataclasses.replace(EXAMPLE, schedule="decreasing")
SVHN = Langevin(records=604388, batch=128, steps=4722, bound=5.0)


def exact_log_moment(lam, rate, z):
    return float(sgm.cost(1 / z, lam + 1.0, sampling_rate=rate))


class TestLemmaTwo:
    @pytest.mark.parametrize(("lam", "value"), [(1, 0.00020202020202), (4, 0.0020202020202)])
    def test_the_vectors(self, lam, value):
        assert printed_bounds.lemma_two(lam, 0.01, 1.0) == pytest.approx(value, rel=1e-11)

    def test_it_is_above_the_exact_moment_in_its_region_but_for_the_remainder(self):
        worst = 0.0
        for z in (1.0, 1.5, 3.0, 10.0):
            for rate in np.geomspace(1e-5, 0.999 / (16 * z), 6):
                most = z**2 * math.log(1 / (rate * z))
                for lam in np.linspace(0.05, 1, 8) * min(most, 500.0):
                    ratio = exact_log_moment(lam, rate, z) / printed_bounds.lemma_two(lam, rate, z)
                    worst = max(worst, ratio)
                    assert ratio <= 1 or rate > 0.01
        assert 1 < worst < 1.2  # the main term alone is no bound near q = 1/(16z)

    def test_outside_it_is_refused_by_name_because_it_can_be_far_too_small(self):
        z, rate = 0.104131481887864, 0.000211784482816
        assert printed_bounds.lemma_two_formula(1, rate, z) == pytest.approx(8.27e-6, abs=5e-9)
        assert exact_log_moment(1, rate, z) == pytest.approx(75.3024072573, abs=5e-10)
        with pytest.raises(InputError, match=r"violation of z ≥ 1 \(z = 0.104\)"):
            printed_bounds.lemma_two(1, rate, z)
        with pytest.raises(InputError, match=r"q < 1/\(16z\)"):
            printed_bounds.lemma_two(1, 0.1, 1.0)
        with pytest.raises(InputError, match=r"λ ≤ z² ln\(1/\(qz\)\)"):
            printed_bounds.lemma_two(5, 0.01, 1.0)


class TestTheorems:
    def test_the_constant_of_the_papers_example(self):
        assert printed_bounds.example_constant() ** 2 == pytest.approx(0.908, abs=5e-4)
        assert printed_bounds.theorem_step(DECREASING, 0.1, 1e-5, math.sqrt(0.9084068907784373)) == pytest.approx(0.103)

    def test_the_constant_of_much_noise_is_that_of_the_vectors(self):
        half = printed_bounds.as_in_the_paper(DECREASING)
        found = printed_bounds.constants_of(half, 0.1, 1e-5, half.limit_step(0.1, 1e-5)).second ** 2
        assert found == pytest.approx(1.232, abs=3e-3)  # with 1.5 T^(2/3) for the sum, which is 0.2 % larger

    def test_the_constants_of_the_proof(self):
        # Tq²λ(λ+1)/((1−q)z²) = λε/2 and e^{−λε/2} = δ, by hand.
        lam = 2 * math.log(1e5) / 0.1
        z = math.sqrt(2 * 10**4 * 0.002**2 * (lam + 1) / (0.998 * 0.1))
        step = printed_bounds.theorem_step(EXAMPLE, 0.1, 1e-5, printed_bounds.lemma_constant(EXAMPLE, 0.1, 1e-5))
        assert printed_bounds.as_in_the_paper(EXAMPLE).noise_multiplier(step) == pytest.approx(z, rel=1e-12)
        total = 10**4 * printed_bounds.lemma_two(lam, 0.002, z)
        assert total - lam * 0.1 == pytest.approx(math.log(1e-5), rel=1e-9)
        assert printed_bounds.lemma_constant(DECREASING, 0.1, 1e-5) ** 2 == pytest.approx(6, rel=0.01)

    def test_constants_go_round_and_section_c_is_the_moments_accountant(self):
        found = printed_bounds.section_c(EXAMPLE, 0.1, 1e-5)
        step = printed_bounds.theorem_step(EXAMPLE, 0.1, 1e-5, found.second)
        half = printed_bounds.as_in_the_paper(EXAMPLE)
        assert 0.0999 < half.accountant(step, "moments").epsilon(1e-5) <= 0.1 * (1 + 1e-12)
        q, z = half.rate, half.noise_multiplier(step)
        assert found.first * q**2 * 10**4 == pytest.approx(0.1)
        assert found.second * q * math.sqrt(10**4 * math.log(1e5)) / 0.1 == pytest.approx(z)

    def test_limits_are_those_of_the_vectors(self):
        mnist = Langevin(records=60000, batch=128, steps=9375, bound=0.3)
        low, high = printed_bounds.corrected_limits(mnist)
        assert high == pytest.approx(3.034074074, abs=5e-10)
        assert low == pytest.approx(0.003534952507, abs=5e-13)
        assert printed_bounds.corrected_limits(SVHN).most == pytest.approx(0.001084336552, abs=5e-13)
        assert printed_bounds.printed_limits(SVHN).most == pytest.approx(24176, abs=0.5)
        # They are what the conditions on the noise say.
        half = printed_bounds.as_in_the_paper(mnist)
        assert half.noise_multiplier(high) == pytest.approx(1)
        assert 1 / (16 * half.noise_multiplier(low)) == pytest.approx(half.rate)

    def test_wangs_bound_is_the_formulas_not_the_printed(self):
        assert printed_bounds.wang_step(EXAMPLE, 0.1, 1e-5) == pytest.approx(1.4788895058767025e-06, rel=1e-14)


class TestTable:
    def test_fixed_step(self):
        ours, by_moments, by_proof, wang = printed_bounds.bounds(EXAMPLE, 0.1, 1e-5)
        assert [row.label for row in (ours, by_moments, by_proof, wang)] == ["sound", "sound", "as printed", "sound"]
        assert ours.step > 2 * by_moments.step > 2 * by_proof.step > 1000 * wang.step  # ours has twice the noise
        assert all(row.epsilon <= 0.1 and not row.fails for row in (ours, by_moments, by_proof, wang))
        assert (ours.temperature, wang.temperature) == (1.0, 0.5)

    def test_decreasing_steps_name_what_fails(self):
        chain = dataclasses.replace(DECREASING, records=5000, batch=50, steps=200)
        ours, by_moments, by_proof, example = printed_bounds.bounds(chain, 0.5, 1e-4, "moments")
        assert max(ours.epsilon, by_moments.epsilon) <= 0.5
        assert ours.fails == by_moments.fails == ()
        assert any("λ ≤" in words for words in by_proof.fails)
        assert any("constant" in words for words in example.fails)
        assert example.epsilon > 0.5
        assert any("the promise" in words for words in example.fails)

    def test_where_the_theory_does_not_reach_it_says_so(self):
        _, _, by_proof, wang = printed_bounds.bounds(SVHN, 2.97, 1e-6, "rdp")
        assert by_proof.epsilon > 100
        assert [words.split(" (")[0] for words in by_proof.fails[:2]] == ["z ≥ 1", "λ ≤ z² ln(1/(qz))"]
        assert wang.label == "as printed"
        assert wang.fails == (f"T ≥ ε²/(32 q² log(2/δ)) = {printed_bounds.wang_least_steps(SVHN, 2.97, 1e-6):.3g}",)

    def test_lines_are_plain_values(self):
        row = printed_bounds.bounds(dataclasses.replace(EXAMPLE, steps=10), 1.0, 1e-5, "rdp")[1].to_dict()
        assert set(row["constants"]) == {"first", "second"}
        assert row["label"] == "sound"
        assert row["fails"] == []


class TestUtility:
    def test_a_fixed_step_has_the_papers_terms(self):
        # Proposition 6 with Theorem 4's step, term by term.
        c, epsilon, delta = 1.5, 0.1, 1e-5
        step = printed_bounds.theorem_step(EXAMPLE, epsilon, delta, c)
        logs = math.log(1 / delta)
        found = utility_bounds.terms(EXAMPLE, step)
        assert found.sampling == pytest.approx((500 - 1) * 50000**2 / 10**4)
        assert found.start == pytest.approx(c**2 * logs / (epsilon**2 * 50000))
        assert found.bias == pytest.approx(epsilon**4 * 50000**2 / (c**4 * 10**8 * logs**2))

    def test_the_best_fixed_step_is_the_best(self):
        step, value = utility_bounds.best_fixed_step(10**4)
        assert utility_bounds.terms(EXAMPLE, step).total == pytest.approx(value)
        assert min(utility_bounds.terms(EXAMPLE, step * f).total for f in (0.9, 1.1)) > value

    def test_decreasing_sums_approach_the_corrected_limits_not_the_printed(self):
        chain = dataclasses.replace(DECREASING, steps=10**6)
        summed = utility_bounds.terms(chain, (10**6) ** (-2 / 3))
        corrected = utility_bounds.corrected_decreasing(chain, 1.0)
        printed = utility_bounds.printed_decreasing(chain, 1.0)
        np.testing.assert_allclose(summed, corrected, rtol=0.03)
        assert printed.start == pytest.approx(1 / 3)
        assert printed.sampling < 0.6 * summed.sampling

    def test_proposition_seven(self):
        assert utility_bounds.log_accuracy(1e6) == pytest.approx(2.37344796839297, abs=1e-13)
        assert utility_bounds.rate_of(utility_bounds.log_accuracy(1e6)) == pytest.approx(1e6)
        assert utility_bounds.rate_of(utility_bounds.printed_log_accuracy(1e6, 1.25)) == pytest.approx(12276, abs=0.5)


def test_the_errata_agree():
    # Their truths are bisections and sums made apart.
    assert sgld_claims.wang_bound().truth == pytest.approx(printed_bounds.wang_step(EXAMPLE, 0.1, 1e-5), rel=1e-12)
    assert sgld.step_conditions().truth == pytest.approx(printed_bounds.corrected_limits(SVHN).most, rel=1e-12)
    chain = dataclasses.replace(DECREASING, steps=10**6)
    summed = utility_bounds.terms(chain, (10**6) ** (-2 / 3))
    assert sgld.decreasing_steps().truth == pytest.approx(summed.start, rel=1e-12)
    assert sgld.decreasing_steps().printed == pytest.approx(utility_bounds.printed_decreasing(chain, 1.0).start)
    example = dict(sgld_claims.step_size_example().more)
    limit = example["largest first step, decreasing (large-noise limit)"]
    assert limit == pytest.approx(printed_bounds.as_in_the_paper(DECREASING).limit_step(0.1, 1e-5), rel=1e-12)
