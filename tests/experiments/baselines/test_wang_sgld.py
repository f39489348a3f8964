"""The papers' DP-SGLD baseline: its formula, what it really costs, and that it samples."""

import math

import numpy as np
import pytest

from bayesdp.accountant import WorstCaseAccountant
from bayesdp.errors import InputError
from bayesdp.experiments.baselines.wang_sgld import WangSGLD, decreasing
from bayesdp.learn.models.regressions import logistic

ABALONE = WangSGLD(epsilon=1.0, sampling_rate=0.05, passes=10, bound=5.0)


def test_the_constant_is_the_printed_one():
    # S2's code, N = 3340, b = 167: C = 128*N*T*L**2/(b*eps**2)*log(5*N*T/(2*b*delta))*log(2/delta)
    records, batch, passes, bound, delta = 3340, 167, 10, 5, 1e-3
    printed = 128 * records * passes * bound**2 / batch * math.log(5 * records * passes / (2 * batch * delta))
    np.testing.assert_allclose(ABALONE.constant, printed * math.log(2 / delta), rtol=1e-12)
    assert ABALONE.steps == 200
    assert [decreasing(i) for i in (0, 1, 9, 50)] == [1.0, 0.5, 0.1, 0.1]


def test_what_it_costs_is_accounted_for_step_by_step():
    z = ABALONE.noise_multipliers()
    np.testing.assert_allclose(z, math.sqrt(ABALONE.constant) * 0.05 / 5)  # η²K > η throughout: η cancels
    accountant = WorstCaseAccountant(engine="pld", adjacency="replace-one")
    accountant.step(noise_multiplier=float(z[0]), sampling_rate=0.05, steps=200)
    np.testing.assert_allclose(ABALONE.guarantee().epsilon, accountant.epsilon(1e-3), rtol=1e-6)
    assert ABALONE.guarantee().epsilon < 1 / 40  # far below the formula's 1
    wild = WangSGLD(epsilon=300.0, sampling_rate=0.005, passes=2, bound=10.0)
    assert wild.guarantee().epsilon > 300  # and above it where the formula was never proved
    langevin = WangSGLD(epsilon=1e6, sampling_rate=0.5, passes=1, bound=2.0, step_size=1e-4)
    np.testing.assert_allclose(langevin.noise_multipliers(), math.sqrt(1e-4) * 0.5 / (1e-4 * 2))  # η itself


def test_it_samples_inside_of_its_ball_and_finds_the_weights():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2)).astype(np.float32)
    y = (rng.uniform(size=2000) < 1 / (1 + np.exp(-x @ [1.0, -1.0]))).astype(np.int32)
    plan = WangSGLD(epsilon=1e5, sampling_rate=0.1, passes=60, bound=3.0, step_size=2e-4)
    chain = plan.fit(logistic, (x, y), seed=0)
    assert chain.draws.shape == (600, 2)
    assert np.linalg.norm(chain.draws, axis=1).max() <= 2.0 * (1 + 1e-6)
    np.testing.assert_allclose(chain.draws[-300:].mean(axis=0), [1.0, -1.0], atol=0.15)
    assert chain.guarantee.notion == "dp"
    np.testing.assert_array_equal(chain.draws, plan.fit(logistic, (x, y), seed=0).draws)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"sampling_rate": 0}, "sampling_rate"),
        ({"passes": 0.001}, "passes"),
        ({"bound": 1.0}, "bound"),
        ({"delta": 1}, "delta"),
        ({"adjacency": "swap"}, "adjacency"),
    ],
)
def test_bad_plans_are_refused(values, name):
    given = {"epsilon": 1.0, "sampling_rate": 0.05, "passes": 10, "bound": 5.0, **values}
    with pytest.raises(InputError, match=f"Expected {name} "):
        WangSGLD(**given)
    with pytest.raises(InputError, match="Expected step_size"):
        WangSGLD(epsilon=1, sampling_rate=0.5, passes=1, bound=5.0, step_size=0.0).sizes()
