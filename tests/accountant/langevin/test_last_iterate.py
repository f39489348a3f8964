"""Last iterates (L7) against chains whose last iterate has a known law: Gaussian, or a mixture over all coins."""

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, ndtr
from scipy.stats import binom

from bayesdp import InputError, WorstCaseAccountant
from bayesdp.accountant.langevin import noise as langevin
from bayesdp.accountant.langevin.last_iterate import (
    Curvature,
    LastIterate,
    _largest_batch,
    _largest_sum,
    forgotten,
    shift,
)
from bayesdp.divergence.hockey_stick import gaussian_epsilon

ADULT = Curvature.logistic(records=48_842, feature_bound=1.0)


def closed(c, noise, steps):
    """μ of a fixed step: sqrt((1 − c^T)/(1 + c^T) · (1 + c)/(1 − c)) / z, to 50 digits."""
    with mpmath.workdps(50):
        c, power = mpmath.mpf(c), mpmath.mpf(c) ** steps
        return float(mpmath.sqrt((1 - power) / (1 + power) * (1 + c) / (1 - c)) / noise)


def fixed(c, noise, steps):
    return shift(np.full(steps, c), np.full(steps, float(noise)), np.ones(steps))


def account(steps, *, curvature=ADULT, rate=1.0, size=None, clip=1.0, engine="rdp", adjacency="add-remove", chains=1):
    """A logistic regression with the sampler's own noise and (nearly) the longest steps."""
    rates = np.full(steps, rate)
    size = 0.99 * float(curvature.longest(rates, 1e-5, chains)[0]) if size is None else size
    z = langevin.noise_multiplier(size, sampling_rate=rate, clip_norm=clip)
    everything = WorstCaseAccountant(engine=engine, adjacency=adjacency)
    everything.step(noise_multiplier=z, sampling_rate=rate, steps=steps * chains)
    setting = {
        "sizes": np.full(steps, size),
        "noise": np.full(steps, z),
        "rates": rates,
        "bounds": np.full(steps, clip),
    }
    return LastIterate(everything, curvature, **setting, chains=chains)


class TestShift:
    @pytest.mark.parametrize("steps", [1, 2, 30, 1000, 10**5])
    @pytest.mark.parametrize("c", [0.1, 0.9, 0.9999, 1 - 1e-9])
    def test_a_fixed_step_is_the_closed_form(self, c, steps):
        exact = closed(c, 7.0, steps)
        assert exact <= fixed(c, 7.0, steps) <= exact * (1 + 1e-8)

    def test_it_does_not_grow_without_end_but_as_a_root_where_nothing_is_forgotten(self):
        values = [fixed(0.99, 5.0, steps) for steps in (1, 10, 100, 1000, 10**6)]
        assert values == sorted(values)
        assert values[-1] == pytest.approx(math.sqrt(1.99 / 0.01) / 5, rel=1e-8)
        assert fixed(1 - 1e-12, 5.0, 400) == pytest.approx(math.sqrt(400) / 5, rel=1e-8)

    @pytest.mark.parametrize("seed", range(40))
    def test_quadratic_losses_cost_no_more_and_the_worst_of_them_as_much(self, seed):
        """θ' = θ − h(Aθ − x) + noise with A between m and M: the last iterates are Gaussian."""
        rng = np.random.default_rng(seed)
        dim, steps, least = int(rng.integers(1, 5)), int(rng.integers(1, 60)), float(rng.uniform(0.1, 2))
        most = least * float(rng.uniform(1, 20))
        sizes = 2 / (least + most) * rng.uniform(0.05, 1) * rng.uniform(0.5, 1, steps) ** rng.integers(0, 2)
        clip, heat = float(rng.uniform(0.1, 3)), float(rng.uniform(0.5, 2))
        curvatures = rng.uniform(least, most, dim)
        curvatures[0] = least
        basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        direction = rng.normal(size=dim)
        for push in (direction / np.linalg.norm(direction), basis[:, 0]):
            mean, variance = np.zeros(dim), np.zeros(dim)  # of the difference and of the noise, in the basis of A
            for h in sizes:
                factor = 1 - h * curvatures
                mean = factor * mean + h * clip * (basis.T @ push)
                variance = factor**2 * variance + 2 * heat * h
            exact = math.sqrt(np.sum(mean**2 / variance))
            bound = shift(1 - sizes * least, np.sqrt(2 * heat * sizes), sizes * clip)
            assert exact <= bound
        assert exact == pytest.approx(bound, rel=1e-8)  # along the direction that is forgotten most slowly

    @pytest.mark.parametrize("seed", range(8))
    def test_schedules_get_the_cheapest_plan_of_payments(self, seed):
        rng = np.random.default_rng(seed)
        steps = 5
        c, s, d = rng.uniform(0.3, 1, steps), rng.uniform(0.2, 3, steps), rng.uniform(0.1, 2, steps)
        s, d = (np.sort(s)[::-1], np.sort(d)) if seed % 2 else (np.sort(s), np.sort(d)[::-1])
        w = np.array([c[t + 1 :].prod() for t in range(steps)])
        found = minimize(
            lambda a: np.sum((a / s) ** 2),
            d,
            bounds=[(0, None)] * steps,
            constraints=[
                {"type": "ineq", "fun": lambda a: np.cumsum(w * (d - a))[:-1]},
                {"type": "eq", "fun": lambda a: np.sum(w * (d - a))},
            ],
            tol=1e-12,
        )
        assert found.success
        assert shift(c, s, d) == pytest.approx(math.sqrt(found.fun), rel=1e-5)
        straight = np.sum(w * d) / math.sqrt(np.sum((w * s) ** 2))
        assert (shift(c, s, d) > 1.001 * straight) == (seed % 2 == 1)  # in half of the cases some cannot wait

    @given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 100), st.floats(0.01, 100)), min_size=1, max_size=30))
    def test_it_lies_between_a_straight_line_and_paying_at_once(self, steps):
        c, s, d = np.array(steps).T
        w = np.array([c[t + 1 :].prod() for t in range(len(c))])
        found = shift(c, s, d)
        assert found <= math.sqrt(np.sum((d / s) ** 2)) * (1 + 2e-9)
        assert found >= np.sum(w * d) / math.sqrt(np.sum((w * s) ** 2)) * (1 - 1e-9)
        assert shift(c, 2 * s, d) == pytest.approx(found / 2, rel=1e-8)
        assert shift(c, 2 * s, 2 * d) == pytest.approx(found, rel=1e-8)


class TestForgotten:
    @pytest.mark.parametrize(("c", "rate", "z"), [(0.5, 0.3, 1.0), (0.3, 0.1, 0.7), (0.7, 0.6, 2.0), (0.7, 0.95, 2.0)])
    def test_it_covers_a_chain_whose_law_is_known(self, c, rate, z):
        """θ' = cθ + b + N(0, z²): after eight steps a mixture over 2^8 coins of Gaussians of one variance."""
        steps, miss = 8, 1e-3
        w = c ** np.arange(steps - 1, -1, -1.0)
        std = z * math.sqrt(np.sum(w**2))
        coins = np.array(list(itertools.product((0, 1), repeat=steps)))
        weights = np.prod(np.where(coins == 1, rate, 1 - rate), axis=1)
        means = coins @ w / std
        grid = np.linspace(-12, 12 + means.max(), 4_001)
        ends = ndtr(grid[:, None] - means)
        with_record, without = np.diff(ends @ weights), np.diff(ndtr(grid))
        way = forgotten(*(np.full(steps, x) for x in (c, z, 1.0, rate)), miss)
        assert sum(n for _, q, n in way if q < 1) < steps  # something was forgotten
        bound = WorstCaseAccountant(engine="pld")
        for noise, q, count in way:
            bound.step(noise_multiplier=noise, sampling_rate=q, steps=count)
        for epsilon in (0.1, 1.0, 2.0):
            allowed = bound.delta(epsilon) + miss
            for one, other in ((with_record, without), (without, with_record)):
                exact = np.maximum(one - math.exp(epsilon) * other, 0).sum()
                assert exact <= allowed

    def test_it_approaches_a_limit_near_that_of_all_records(self):
        """Long chains with short steps: at most a little above the μ = L/sqrt(m) of q = 1."""
        long = [account(steps, rate=0.2, size=1e-4, engine="pld")._last(1e-5)[0] for steps in (10**5, 4 * 10**5)]
        assert long[0] == pytest.approx(long[1], rel=0.01)
        limit = float(gaussian_epsilon(1e-5, 1.0))
        assert limit < long[0] < 1.25 * limit

    def test_schedules_and_extremes(self):
        ones = np.ones(200)
        varied = forgotten(0.9 * ones, np.linspace(1, 2, 200), ones, np.linspace(0.1, 0.2, 200), 1e-9)
        assert len(varied) > 10
        assert all(z > 0 and 0 < q <= 1 and n >= 1 for z, q, n in varied)
        assert forgotten(*(np.array([x]) for x in (0.5, 3.0, 1.0, 0.25)), 1e-9) == [(3.0, 0.25, 1)]
        assert forgotten(0.01 * ones, 1e-3 * ones, ones, 0.5 * ones, 1e-9)[-1][0] > 0

    @pytest.mark.parametrize("miss", [0.2, 1e-2, 1e-4])
    def test_more_coins_than_expected(self, miss):
        rng = np.random.default_rng(0)
        sizes, rates = rng.uniform(0.1, 1, 12), rng.uniform(0.02, 0.4, 12)
        coins = np.array(list(itertools.product((0, 1), repeat=12)))
        weights = np.prod(np.where(coins == 1, rates, 1 - rates), axis=1)
        bound = _largest_sum(sizes, rates, miss)
        assert weights[coins @ sizes > bound].sum() <= miss
        assert sizes @ rates < bound <= sizes.sum()

    @pytest.mark.parametrize("records", [1, 40, 48_842])
    @pytest.mark.parametrize("rate", [1e-3, 0.1, 0.9, 1.0])
    @pytest.mark.parametrize("miss", [0.1, 1e-5, 1e-14])
    def test_larger_batches_than_expected(self, records, rate, miss):
        most = _largest_batch(records, rate, miss)
        assert binom.sf(most, records, rate) <= miss * (1 + 1e-9)
        assert most == 0 or binom.sf(most - 1, records, rate) > miss


class TestCurvature:
    @pytest.mark.parametrize("rate", [1.0, 0.25])
    def test_clipped_logistic_steps_contract_and_longer_ones_need_not(self, rate):
        """The worst batch, all records alike; gradients are clipped for most of the points."""
        curvature = Curvature(records=30, strong=0.5, record=4 / 4, feature_bound=2.0)
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
        x *= 2 / np.linalg.norm(x, axis=1)[:, None]

        def step(theta, h, x):
            slopes = expit(theta @ x.T) - y[: len(x)]
            slopes = np.clip(slopes, -0.3 / 2, 0.3 / 2) if h <= longest else slopes
            return theta - h * (0.5 * theta + slopes @ x / rate)

        # A batch of at most as many records as planned for.
        most = _largest_batch(30, rate, 1e-3 / 2 * 1e-5 / 50)
        longest = float(curvature.longest(np.full(50, rate), 1e-5)[0])
        assert longest == pytest.approx(2 / (0.5 + 0.5 + most / rate))
        one, other = rng.normal(scale=2, size=(2, 4000, 3))
        other = np.where(rng.random(4000)[:, None] < 0.5, other, one + 1e-3 * other)
        for h in (0.3 * longest, longest):
            ratio = np.linalg.norm(step(one, h, x[:most]) - step(other, h, x[:most]), axis=1)
            assert (ratio <= (1 - 0.5 * h) * np.linalg.norm(one - other, axis=1) * (1 + 1e-9)).all()
        alike = np.tile(x[:1], (most, 1))  # twice the longest: near the origin such a step throws back and beyond
        tiny = 1e-4 * x[:1]
        thrown = np.linalg.norm(step(tiny, 2 * longest, alike) - step(-tiny, 2 * longest, alike))
        assert thrown > 2 * np.linalg.norm(tiny)

    def test_logistic(self):
        assert Curvature.logistic(records=10, feature_bound=3.0, prior_scale=2.0) == Curvature(
            records=10, strong=0.25, record=2.25, feature_bound=3.0
        )

    @pytest.mark.parametrize(
        ("field", "value"),
        [("records", 0), ("strong", 0), ("record", 0), ("stiff", 0.5), ("feature_bound", -1), ("strong", math.nan)],
    )
    def test_bad_declarations_are_refused(self, field, value):
        with pytest.raises(InputError, match=f"Expected {field} "):
            dataclasses.replace(ADULT, **{field: value})


class TestAccount:
    @pytest.mark.parametrize("rate", [1.0, 0.1])
    @pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
    def test_never_above_all_iterates_and_below_it_for_long_chains(self, rate, adjacency):
        for steps in (1, 50, 10**5):
            found = account(steps, rate=rate, adjacency=adjacency)
            assert found.epsilon(1e-5) <= found.everything.epsilon(1e-5)
        assert found.epsilon(1e-5) < 0.5 * found.everything.epsilon(1e-5)

    def test_the_engine_agrees_with_gaussian_dp(self):
        found = account(20_000, engine="pld")
        c = 1 - found.sizes[0]
        exact = float(gaussian_epsilon(1e-5, closed(c, found.noise[0], 20_000)))
        assert exact <= found.epsilon(1e-5) <= exact * 1.001
        twice = account(20_000, engine="pld", adjacency="replace-one")
        assert twice.epsilon(1e-5) == pytest.approx(
            float(gaussian_epsilon(1e-5, 2 * closed(c, found.noise[0], 20_000))), rel=1e-3
        )

    @pytest.mark.parametrize(
        ("scale", "rate", "steps", "everything", "last"),
        [(1.0, 1.0, 10**4, 3.88, 3.48), (0.3, 0.1, 10**4, 3.69, 1.41), (0.3, 0.01, 10**5, 15.8, 2.03)],
    )
    def test_the_table_of_the_theory_page(self, scale, rate, steps, everything, last):
        curvature = Curvature.logistic(records=48_842, feature_bound=1.0, prior_scale=scale)
        found = account(steps, curvature=curvature, rate=rate, engine="pld")
        assert found.everything.epsilon(1e-5) == pytest.approx(everything, rel=0.005)
        assert found.epsilon(1e-5) == pytest.approx(last, rel=0.005)

    def test_chains_are_charged(self):
        four = account(10**5, engine="pld", chains=4)
        c = 1 - four.sizes[0]
        exact = float(gaussian_epsilon(1e-5, 2 * closed(c, four.noise[0], 10**5)))
        assert exact <= four.epsilon(1e-5) <= exact * 1.001

    def test_the_guarantee_says_what_it_rests_on(self):
        promise = account(10**5, rate=0.1).guarantee(1e-5)
        assert promise.epsilon == account(10**5, rate=0.1).epsilon(1e-5)
        said = " ".join(promise.assumptions)
        for words in (
            "Only the last iterate",
            "between 1 and 1",
            "0.25",
            "48,842 records",
            "features are longer than 1",
        ):
            assert words in said
        assert sum(promise.delta_split.values()) == pytest.approx(1e-5)
        assert promise.delta_split["unlikely batches"] == pytest.approx(1e-8)
        assert promise.sampling == "poisson"
        # Where all iterates cost less, nothing of that is needed.
        short = account(100, rate=0.1)
        assert short.guarantee(1e-5) == short.everything.guarantee(1e-5)

    def test_a_tail_bound_stays_strong_without_sampling_only(self):
        assert account(10**5, engine="moments").guarantee(1e-5).strength == "strong"
        assert account(10**5, engine="moments", rate=0.5).guarantee(1e-5).strength == "weak"

    def test_steps_that_are_too_long_are_not_to_be_chosen(self):
        long = account(100, size=2e-4)
        assert math.isinf(long.epsilon(1e-5))
        assert long.guarantee(1e-5) == long.everything.guarantee(1e-5)
