"""ResNet-20: its size, that records do not see each other, and a few private steps."""

import jax
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp import InputError
from bayesdp.experiments.common.resnet import PictureLoss, ResNet20

pytestmark = pytest.mark.usefixtures("compile_quickly")


@pytest.fixture(scope="module")
def start(compile_quickly):
    return jax.jit(ResNet20(10).init, static_argnums=1)(jax.random.key(0), (32, 32, 3))


def test_it_has_twenty_layers_and_the_size_of_the_original(start):
    kernels = [leaf for leaf in jax.tree.leaves(start) if leaf.ndim > 1]
    assert len(kernels) == 20
    assert sum(leaf.size for leaf in jax.tree.leaves(start)) == pytest.approx(0.27e6, rel=0.02)


def test_records_do_not_see_each_other(start):
    x = np.random.default_rng(0).normal(size=(3, 16, 16, 3)).astype(np.float32)
    apply = jax.jit(ResNet20(10).apply)
    together, alone = apply(start, x), np.concatenate([apply(start, x[i : i + 1]) for i in range(3)])
    assert together.shape == (3, 10)
    assert np.allclose(together, alone, atol=1e-4)


def test_it_trains_privately_record_by_record(start):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(12, 8, 8, 3)).astype(np.float32), np.arange(12, dtype=np.int32) % 10
    plan = bd.SGD(
        sampling_rate=0.5, steps=2, noise_multiplier=1.0, optimizer=optax.sgd(0.1), engine="rdp", report_every=2
    )
    run = plan.fit(PictureLoss(ResNet20(10)), start, (x, y), members=0, seed=0)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.params))
    assert not np.array_equal(run.params["conv"], start["conv"])


def test_other_shapes_are_refused():
    with pytest.raises(InputError, match="pictures"):
        ResNet20(10).init(jax.random.key(0), (784,))
