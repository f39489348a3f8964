"""The hybrid of one posterior sample and a chain: the parts add up, and it takes short steps."""

import dataclasses
import math

import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.experiments.baselines.hybrid import Hybrid
from bayesdp.learn.models.regressions import logistic

PLAN = Hybrid(epsilon=2.0, likelihood_range=5.0, sampling_rate=0.05, passes=2, bound=3.0, burn_in=200)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2)).astype(np.float32)
    y = (rng.uniform(size=500) < 1 / (1 + np.exp(-x @ [1.5, -1.0]))).astype(np.int32)
    return x, y


def test_the_two_parts_add_up():
    total = PLAN.guarantee()
    assert total.epsilon == pytest.approx(1.0 + PLAN.chain.guarantee().epsilon)
    assert PLAN.chain.guarantee().epsilon < 1.0  # far below what its formula was told to keep
    assert total.delta == 1e-5
    assert total.caveats


def test_the_chain_has_its_own_noise_only():
    chain = PLAN.chain
    step = chain.sizes()[0]
    assert step == pytest.approx(1 / chain.constant)
    expected = math.sqrt(step) * 0.05 / (step * 3.0)
    np.testing.assert_allclose(chain.noise_multipliers(), expected)


def test_it_begins_at_the_draw_and_takes_short_steps(data, tmp_path):
    found = PLAN.fit(logistic, data, seed=3)
    assert found.draws.shape == (40, 2)
    path = np.vstack([found.start, found.draws])
    size = 1 / PLAN.chain.constant
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 8 * math.sqrt(2 * size)  # drift is far below noise
    assert found.report(tmp_path / "hybrid.json").exists()


@pytest.mark.parametrize(
    ("values", "name"), [({"share": 1}, "share"), ({"bound": 1}, "bound"), ({"passes": 0}, "passes")]
)
def test_bad_hybrids_are_refused(values, name):
    with pytest.raises(InputError, match=f"Expected {name} "):
        dataclasses.replace(PLAN, **values)
