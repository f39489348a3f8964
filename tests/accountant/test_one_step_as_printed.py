"""S1's one-step recipe as printed: the costs of B7 in both directions, summed over steps and samples, and labelled."""

import math

import numpy as np

from bayesdp.accountant.one_step_as_printed import FAILURE, ORDERS, OneStep, step_cost


def test_a_steps_cost_is_the_larger_direction_of_the_sampled_pair():
    # I-6: q = 0.05, order 9: remove D = 0.000136460893717944, add direction's convexity bound 0.000593116624952961.
    at = list(ORDERS).index(9.0)
    cost = step_cost(np.zeros(1), np.ones(1), np.array([[0.1]]), np.array([[1.05]]), 0.05)
    np.testing.assert_allclose(cost[0, at], 8 * 0.000593116624952961, rtol=1e-9)
    certain = step_cost(np.zeros(1), np.ones(1), np.array([[0.1]]), np.array([[1.05]]), 1.0)
    np.testing.assert_allclose(certain[0, at], 8 * 0.0825315194006584, rtol=1e-9)


def test_training_steps_and_samples_add_up_and_the_label_comes_first():
    mean, variance = np.zeros((5, 4, 2)), np.ones((5, 4, 2))
    mean[:, 1:, 0] = 0.01  # three witnesses, all alike, the same at every step: Student-t adds nothing
    account = OneStep(mean, variance, 1.0, samples=3)
    account.step(3)
    steps, lam = 8, ORDERS - 1
    lost = steps * len(ORDERS) * FAILURE
    expected = ((steps * lam * (lam + 1) * 0.01**2 / 2 + math.log(1 / (1e-5 - lost))) / lam).min()
    guarantee = account.guarantee(1e-5)
    np.testing.assert_allclose(guarantee.epsilon, expected, rtol=1e-9)
    assert "ERR 8" in guarantee.assumptions[0]
    assert guarantee.caveats
    assert str(guarantee).startswith("Not proved (UNSOUND: S1's one-step recipe")
    assert account.state()["kind"] == "bayesdp/bayesian"
