"""Intervals from many runs, on Gaussian chains whose divergence and bounds are known exactly (E7, H2, H9, E9)."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from bayesdp.accountant.repeated_runs.interval import INFLATIONS, ManyRuns
from bayesdp.accountant.repeated_runs.sample_size import log_runs
from bayesdp.compose.expected import inflated_order
from bayesdp.errors import InputError


class Kept:
    """Unit noise and no sampling. The first outcome decides whether all later steps move by 0.5 or by 0.05.

    P has means r_t (0.05 first), Q has 0: (p/q)^α q is a Gaussian of mean α r_t times exp(α(α−1) r_t²/2).
    """

    first, low, high, later, threshold = 0.05, 0.05, 0.5, 4, 1.0
    noise, cap = 2.0, 0.5  # distances in units of 0.5: shift = distance / 2

    def rare(self, tilt):
        """Chance of the large steps when the first outcome has mean `tilt`."""
        return float(ndtr(tilt * self.first - self.threshold))

    def exact(self, order):
        k, p = order * (order - 1) / 2, self.rare(order)
        moment = (1 - p) * math.exp(k * self.later * self.low**2) + p * math.exp(k * self.later * self.high**2)
        return (k * self.first**2 + math.log(moment)) / (order - 1)

    def one_holder(self, order, inflated):
        gap = (inflated - order) / (order - 1)
        k, p = inflated * (inflated - 1) / 2 / gap, self.rare(1)
        sums = [self.first**2 + self.later * r**2 for r in (self.low, self.high)]
        return gap / (inflated - 1) * math.log((1 - p) * math.exp(k * sums[0]) + p * math.exp(k * sums[1]))

    def mean(self, order):
        """E[S_α]."""
        p = self.rare(1)
        return order / 2 * (self.first**2 + self.later * ((1 - p) * self.low**2 + p * self.high**2))

    def expected(self, order):
        n = self.later + 1
        g, p, rare = inflated_order(order, np.arange(n)[::-1], 3 * n), 3 * n, self.rare(1)
        total = g[0] / 2 * self.first**2
        for o in g[1:]:
            k = p * o * (o - 1) / 2
            moment = (1 - rare) * math.exp(k * self.low**2) + rare * math.exp(k * self.high**2)
            total += math.log(moment) / (p * (o - 1))
        return total

    def value(self, order):
        """V_α: the least of the exact bounds on the grid that is tried."""
        inflated = [1 + a * (order - 1) for a in INFLATIONS]
        worst = order / 2 * (self.later + 1) * self.high**2
        return min([*(self.one_holder(order, o) for o in inflated), self.expected(order), worst])

    def draw(self, runs, studies, rng):
        rare = rng.random((runs, 1, studies)) < self.rare(1)
        later = np.repeat(np.where(rare, self.high, self.low), self.later, axis=1)
        return np.concatenate([np.full((runs, 1, studies), self.first), later], axis=1) / self.cap

    def study(self, runs, studies, seed, **options):
        n = self.later + 1
        distances = self.draw(runs, studies, np.random.default_rng(seed))
        return ManyRuns(distances, np.full(n, self.noise), np.ones(n), direction="remove", **options)


CHAIN = Kept()


def test_ends_of_the_interval_hold_as_often_as_they_say():
    """2,000 studies of 20 runs at a stated failure of 0.2: upper >= V >= D and lower <= E[S] <= V."""
    order = 1.6
    value, truth = CHAIN.value(order), CHAIN.exact(order)
    assert truth <= value
    assert CHAIN.mean(order) <= value
    studies = CHAIN.study(20, 2000, 0, failure=0.2)
    upper, lower = (studies.divergences([order], way)[:, 0] for way in ("upper", "lower"))
    assert (upper < value).mean() <= 0.2
    assert (upper < truth).mean() <= 0.2
    assert (lower > CHAIN.mean(order)).mean() <= 0.2
    assert (upper < studies.worst([order])[0]).any()  # here runs do say something
    estimate = studies.divergences([order], "estimate")[:, 0]
    assert (lower <= estimate).all()
    assert (estimate <= upper).all()
    assert (estimate < truth).mean() > 0.02  # ERR 19: sometimes no run shows the rare state


def test_many_runs_find_the_value_of_the_bound():
    studies = CHAIN.study(2000, 2, 1, failure=0.01)
    for order in (1.5, 2.0, 4.0):
        estimate = studies.divergences([order], "estimate")[:, 0]
        np.testing.assert_allclose(estimate, CHAIN.value(order), rtol=0.1)
        assert (studies.divergences([order], "upper")[:, 0] >= CHAIN.exact(order)).all()
    methods = studies.by_method([1.5, 4.0], "estimate")
    np.testing.assert_allclose(methods["expected"][0], [CHAIN.expected(1.5), CHAIN.expected(4.0)], rtol=0.1)


def test_one_holder_is_far_below_theorem_3_3_on_independent_steps():
    """I-5b: ρ = 1e-3 with probability 0.1, else 1e-5, at each of 1,000 steps; exact 0.4410, Theorem 3.3 4.560."""
    rng = np.random.default_rng(2)
    distances = np.where(rng.random((300, 1000, 1)) < 0.1, 1.0, 0.1)
    distances[:, 0] = 1.0
    runs = ManyRuns(distances, np.full(1000, 1e-3**-0.5), np.ones(1000), direction="remove", failure=0.05)
    found = {name: float(value[0, 0]) for name, value in runs.by_method([8], "estimate").items()}
    assert found["worst"] == pytest.approx(4.0)
    assert found["expected"] == pytest.approx(4.560180952853, rel=0.01)
    assert 0.4409763636741 < found["one-holder"] < 0.6
    assert float(runs.divergences([8], "estimate")[0, 0]) == found["one-holder"]


def test_costs_that_never_vary_are_their_sum():
    steps = 5
    distances = np.full((10, steps, 1), 0.3)
    runs = ManyRuns(distances, np.full(steps, 2.0), np.ones(steps), direction="add", failure=1e-6)
    truth = 3 / 2 * steps * 0.15**2
    assert float(runs.divergences([3], "estimate")[0, 0]) == pytest.approx(truth * (1 + 2 * 1.05) / 3, rel=1e-9)
    assert float(runs.divergences([3], "lower")[0, 0]) == pytest.approx(truth * (1e-6) ** 0.1, rel=1e-9)
    assert truth < float(runs.divergences([3])[0, 0]) <= float(runs.worst([3])[0]) == pytest.approx(3 / 2 * steps / 4)


def test_directions_of_a_sampled_step_and_single_precision():
    """One clipped step: the worst case is the step's own cost, exactly, in each direction (B4, B6)."""
    one = np.ones((2, 1, 1), np.float32)
    found = [
        ManyRuns(one, [1.0], [0.01], direction=way, failure=0.1).divergences([9], "upper") for way in ("remove", "add")
    ]
    assert float(found[0][0, 0]) == pytest.approx(0.0142532963470641 / 8, rel=1e-9)
    assert float(found[1][0, 0]) == pytest.approx(0.00506715715829231 / 8, rel=1e-9)
    below = ManyRuns(one * np.float32(0.5), [1.0], [1.0], direction="remove", failure=0.1)
    assert float(below.divergences([2], "estimate")[0, 0]) > 0.25  # raised by 1e-5 for its precision


def test_without_a_state_before_the_step_only_one_holder_counts():
    drawn = CHAIN.study(20, 1, 3, failure=0.1, by_step=False)
    assert set(drawn.by_method([2])) == {"one-holder", "worst"}


def test_sample_size():
    """E9: ln[ln(2/J)(F−1)²/(2c²f²)] with numbers from ERR 17's setting; a small case by hand."""
    assert float(log_runs(math.log(3), 0, error=0.5, failure=0.1)) == pytest.approx(math.log(math.log(20) * 8))
    assert float(log_runs(0.0, 0.0, error=0.5, failure=0.1)) == 0
    assert float(log_runs(1e5, 1e4, error=0.1, failure=0.05)) == pytest.approx(
        2 * 9e4 + math.log(math.log(40) / 0.02), rel=1e-12
    )
    needed = [CHAIN.study(20, 1, 0, failure=0.05).runs_needed(8, share) for share in (0.25, 0.5, 0.75)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"distances": np.ones((2, 3))}, "axes"),
        ({"distances": np.full((2, 3, 1), 1.1)}, "at most cap=1"),
        ({"noise": [1.0, 0.0, 1.0]}, "noise"),
        ({"rates": [0.5]}, "each of the 3 steps"),
        ({"direction": "both"}, "direction"),
        ({"estimator": "student-t"}, "estimator"),
        ({"failure": 0}, "failure"),
    ],
)
def test_bad_input(change, words):
    good = {
        "distances": np.ones((2, 3, 1)),
        "noise": np.ones(3),
        "rates": np.ones(3),
        "direction": "add",
        "failure": 0.1,
    }
    with pytest.raises(InputError, match=words):
        ManyRuns(**(good | change))
    with pytest.raises(InputError, match="way"):
        ManyRuns(**good).divergences([2], "best")
