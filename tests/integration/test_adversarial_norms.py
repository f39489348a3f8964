"""No record moves a clipped sum by more than its clip norm: a short form of `make adversarial` (H20)."""

import importlib.util
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp.mechanism.layers import AvgPool, Conv2D, Dense, Flatten, Sequential

pytestmark = pytest.mark.simulation

SOURCE = Path(__file__).parents[2] / "benchmarks" / "adversarial_norms.py"


@pytest.fixture(scope="module")
def adversary():
    spec = importlib.util.spec_from_file_location("adversarial_norms", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("layer", "rule", "way"),
    [
        ("convolution, few positions", "per layer", "books"),
        ("convolution, few positions", "flat", "books"),
        ("convolution, channels first", "automatic", "books"),
        ("dense", "per layer", "person"),
    ],
)
def test_climbing_finds_no_record_above_the_clip_norm(adversary, layer, rule, way):
    found = adversary.search(layer, rule, way, 360)
    assert 0.99 < found.excess <= 1  # it climbs up to the bound, and not beyond
    assert found.under_reported <= 1


def test_patches_that_cancel_leave_a_release_finite():
    """Their Gram products cancel in float32: as the square of a norm they made every released parameter NaN."""
    model = Sequential((Conv2D(64, 4, 4, "VALID"), AvgPool(2), Flatten(), Dense(10)))
    loss = bd.ModelLoss(model, lambda out, y: -jax.nn.log_softmax(out)[y])
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 8, 8, 3)), rng.integers(10, size=201)
    signs = np.ones((8, 8, 1))
    signs[:4, :4] = signs[4:, 4:] = -1
    patches = signs * np.tile(rng.standard_normal((4, 4, 3)), (2, 2, 1))
    record = patches + 1e-4 * rng.standard_normal(patches.shape)
    plan = bd.SGD(
        sampling_rate=0.5,
        steps=40,
        clip_norm=({"kernel": 0.5, "bias": 0.5},) * 2,
        noise_multiplier=30.0,
        optimizer=optax.sgd(0.05),
    )
    data = (np.concatenate([x, record[None]]).astype(np.float32), y)
    run = plan.fit(loss, model.init(jax.random.key(1), (8, 8, 3)), data, members=0, seed=0)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.params))
