"""A study certified by truncation (H21) against a two-state chain whose hockey stick is known exactly."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom, norm

from bayesdp.accountant.repeated_runs.interval import ManyRuns
from bayesdp.accountant.repeated_runs.truncation import Truncation, certified
from bayesdp.errors import InputError


class Chain:
    """Unit noise, no sampling. The first outcome decides whether the four later steps move by 0.6 or by 0.05.

    P has the record (means r_t), Q has not (means 0): what follows the first outcome is a Gaussian of shift 2 r.
    """

    first, low, high, later, threshold = 0.05, 0.05, 0.6, 4, 3.0

    def rare(self, direction):
        return float(ndtr((self.first if direction == "remove" else 0.0) - self.threshold))

    def exact(self, epsilon, direction):
        """δ(ε) = E_P of the later steps' hockey stick at what the first outcome leaves of ε."""
        sign, mean = (1, self.first) if direction == "remove" else (-1, 0.0)

        def left(x):
            loss = sign * (self.first * x - self.first**2 / 2)
            shift = 2 * (self.high if x > self.threshold else self.low)
            rest = epsilon - loss
            stick = ndtr(shift / 2 - rest / shift) - math.exp(rest) * ndtr(-shift / 2 - rest / shift)
            return norm.pdf(x - mean) * stick

        return sum(quad(left, *ends, epsabs=1e-13)[0] for ends in ((-10, self.threshold), (self.threshold, 12)))

    def study(self, runs, direction, failure, *, records=1, seed=0):
        rare = np.random.default_rng(seed).random((runs, 1, records)) < self.rare(direction)
        later = np.repeat(np.where(rare, self.high, self.low), self.later, axis=1)
        distances = np.concatenate([np.full((runs, 1, records), self.first), later], axis=1) / self.high
        steps = self.later + 1
        return ManyRuns(distances, np.full(steps, 1 / self.high), np.ones(steps), direction=direction, failure=failure)


CHAIN = Chain()
AIM = Truncation(epsilon=0.5, delta=1e-3, share=0.9)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_statement_is_true_and_needs_p(direction):
    """With the true p it holds; δ₁ alone, without p, is passed by the truth."""
    truth = CHAIN.exact(AIM.epsilon, direction)
    assert AIM.kept < truth < AIM.kept + CHAIN.rare(direction)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_it_is_wrong_as_rarely_as_it_says(direction):
    """600 studies of 3,000 runs at a stated failure of 0.1."""
    studies, failure = 600, 0.1
    found = certified(CHAIN.study(3000, direction, failure, records=studies), AIM)
    p = found.delta - AIM.kept
    wrong = int((p < CHAIN.rare(direction)).sum())
    assert binom.sf(wrong - 1, studies, failure) > 1e-6
    assert wrong > 0.02 * studies  # Clopper and Pearson are nearly exact here
    assert (found.delta < CHAIN.exact(AIM.epsilon, direction)).mean() <= failure


def test_many_runs_certify_where_moments_do_not():
    """At ε = 0.5 and δ of some 2e-3, where the worst case costs 4.4 and the averages certify nothing."""
    runs = CHAIN.study(20_000, "remove", 0.05, seed=1)
    found = certified(runs, Truncation(epsilon=0.5, delta=2.5e-3, share=0.9))
    assert 10 < found.cut[0] < 60
    assert CHAIN.exact(0.5, "remove") < found.delta[0] < 2.5e-3


def test_runs_needed_are_told_beforehand():
    aim = Truncation(epsilon=0.5, delta=2e-3)
    assert aim.runs_needed(0.05) == 2995  # ln 20/1e-3, as in H21
    assert Truncation(epsilon=0.5, delta=1e-5).runs_needed(0.05) == pytest.approx(6e5, rel=0.01)
    assert aim.least_delta(2995, 0.05) <= aim.delta < aim.least_delta(2994, 0.05)
    quiet = Chain()
    quiet.threshold = 30.0  # the rare state never comes
    assert certified(quiet.study(2995, "remove", 0.05), aim).delta[0] == aim.least_delta(2995, 0.05)
    assert certified(quiet.study(2995, "remove", 0.05), aim).cut[0] == 0


def test_the_budget_is_the_filters():
    runs = CHAIN.study(2, "remove", 0.05)
    order, divergence = AIM.budget(runs)
    # B10 of the budget at its order gives ε at δ₁, and no order pays for more steps at the clip norm.
    gain = math.log1p(-1 / order) - (math.log(order) + math.log(AIM.kept)) / (order - 1)
    assert divergence + gain == pytest.approx(AIM.epsilon)
    fixed = Truncation(epsilon=0.5, delta=1e-3, share=0.9, order=40.0).budget(runs)
    assert fixed.order == 40
    assert fixed.divergence / float(runs.worst([40.0])[0]) <= divergence / float(runs.worst([order])[0])
    always = certified(CHAIN.study(50, "remove", 0.05), Truncation(epsilon=0.01, delta=1e-3, order=1000.0))
    assert (always.cut == 50).all()
    assert (always.delta == 1).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 0}, "truncation epsilon"),
        ({"delta": 1}, "truncation delta"),
        ({"share": 1}, "truncation share"),
        ({"order": 1}, "truncation order"),
        ({"epsilon": 1e-6, "order": 2.0}, "leaves a budget"),
    ],
)
def test_bad_input(changes, words):
    with pytest.raises(InputError, match=words):
        Truncation(**({"epsilon": 0.5, "delta": 1e-3} | changes)).budget(CHAIN.study(2, "remove", 0.05))
