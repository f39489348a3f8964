"""Private SGD on modules of Flax and Equinox: their parameters are trees, which is all that is asked."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen

from bayesdp.errors import InputError
from bayesdp.learn import SGD
from bayesdp.learn.models.networks import cross_entropy


@pytest.fixture
def short():
    return SGD(
        clip_norm=1.0,
        sampling_rate=0.2,
        steps=30,
        optimizer=optax.sgd(1.0),
        noise_multiplier=1.0,
        engine="rdp",
        report_every=30,
    )


def test_a_flax_module(digits, short):
    module = linen.Dense(10)
    params = module.init(jax.random.key(0), digits.data[0][:1])

    def loss(params, example):
        return cross_entropy(module.apply(params, example[0]), example[1])

    assert str(short.explain(loss, params, digits.data)[1]).endswith("the matrix of one product")
    run = short.fit(loss, params, digits.data, holdout=digits.holdout, members=50, seed=0)
    x, y = digits.test
    assert float((np.asarray(module.apply(run.params, x)).argmax(1) == y).mean()) > 0.6


def test_an_equinox_module(digits, short):
    module = eqx.nn.MLP(64, 10, 16, 1, key=jax.random.key(0))
    params, rest = eqx.partition(module, eqx.is_inexact_array)

    def loss(params, example):
        return cross_entropy(eqx.combine(params, rest)(example[0]), example[1])

    run = short.fit(loss, params, digits.data, members=50, seed=0)
    x, y = digits.test
    outputs = jax.vmap(eqx.combine(run.params, rest))(jnp.asarray(x))
    assert float((np.asarray(outputs).argmax(1) == y).mean()) > 0.3
    with pytest.raises(InputError, match=r"eqx\.partition"):
        short.fit(loss, module, digits.data, members=50, seed=0)


def test_batch_normalisation_is_refused_with_advice(digits, short):
    module = linen.BatchNorm(use_running_average=False)
    variables = module.init(jax.random.key(0), digits.data[0][:2])
    with pytest.raises(InputError, match="layer normalisation"):
        short.fit(lambda p, e: 0.0, variables, digits.data)


def test_a_loss_that_asks_for_other_records_is_refused_in_our_words(digits, short):
    module, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(64, axis_name="batch", mode="batch")
    params, rest = eqx.partition(module, eqx.is_inexact_array)

    def loss(params, example):
        return jnp.sum(eqx.combine(params, rest)(example[0], state)[0])

    with pytest.raises(InputError, match=r"to look at one record alone, .*layer normalisation"):
        short.fit(loss, params, digits.data, seed=0)
