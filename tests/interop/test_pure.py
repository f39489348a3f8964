"""Pure steps: the same steps that `fit` takes, and nothing past the plan."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp.errors import InputError
from bayesdp.interop.pure import PrivateSVI, kernel, pure

X = np.random.default_rng(0).normal(2.0, 1.0, (40,)).astype(np.float32)
PLAN = bd.SGD(sampling_rate=1.0, steps=4, noise_multiplier=1e-3, clip_norm=10.0, optimizer=optax.sgd(0.2), engine="rdp")


def loss(w, record):
    return 0.5 * jnp.square(record - w)


@pytest.fixture(scope="module")
def steps():
    found = pure(PLAN, loss, jnp.zeros(()), X)
    return found._replace(step=jax.jit(found.step))


def test_steps_are_those_of_fit_up_to_the_noise(steps):
    """All records in every batch and next to no noise: gradient descent by hand, and by `fit`."""
    state, by_hand = steps.init(), 0.0
    for _ in range(4):
        state = steps.step(state)
        by_hand -= 0.2 * (by_hand - X.mean())
    assert float(state.params) == pytest.approx(by_hand, abs=5e-3)
    run = PLAN.fit(loss, jnp.zeros(()), X)
    assert float(run.params) == pytest.approx(by_hand, abs=5e-3)
    assert steps.guarantee == run.guarantees[0]
    again = steps.step(state)
    assert float(again.params) == float(state.params)
    assert int(again.number) == 4


def test_noise_is_fresh_unless_seeded(steps):
    noisy = [float(steps.step(steps.init(seed)).params) for seed in (None, None, 1, 1)]
    assert noisy[0] != noisy[1]
    assert noisy[2] == noisy[3]


def test_noise_has_its_size():
    plan = dataclasses.replace(PLAN, noise_multiplier=2.0, steps=1)
    init, step, _ = pure(plan, lambda w, record: 0.0 * jnp.sum(w) * record, jnp.zeros(4000), X)
    moved = np.asarray(jax.jit(step)(init(0)).params)
    assert moved.std() == pytest.approx(0.2 * 2.0 * 10.0 / 40, rel=0.05)


def test_a_sampler_in_the_shape_of_a_kernel():
    walk = bd.SGLD(sampling_rate=1.0, steps=3, step_size=1e-3, clip_norm=5.0, engine="rdp")
    model = (lambda w: -0.5 * jnp.square(w), lambda w, record: -loss(w, record))
    init, step, guarantee = kernel(walk, model, jnp.zeros(()), X)
    state, info = step(jax.random.key(0), init(0))
    assert info is None
    assert int(state.number) == 1
    assert guarantee.epsilon == pytest.approx(walk.epsilon())
    with pytest.raises(InputError, match="num_chains"):
        kernel(dataclasses.replace(walk, num_chains=2), model, jnp.zeros(()), X)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"measure_every": 1}, "measure_every"),
        ({"noise_multiplier": 0.0}, "noise in every"),
        ({"noise_kind": "lattice"}, "float"),
    ],
)
def test_plans_that_need_more_than_a_state(wrong, words):
    with pytest.raises(InputError, match=words):
        pure(dataclasses.replace(PLAN, **wrong), loss, jnp.zeros(()), X)


def test_svi_refuses_what_would_not_be_private():
    svi = PrivateSVI(lambda x: None, bd.VI(sampling_rate=0.5, steps=10, noise_multiplier=1.0, engine="rdp"))
    with pytest.raises(InputError, match="operating system"):
        svi.run(jax.random.key(0), 10, X)
    with pytest.raises(InputError, match="to be the plan's, 10"):
        svi.run(None, 20, X)


def test_svi_gives_the_posterior_of_the_plan():
    import numpyro
    from numpyro import distributions as dist

    def model(x):
        mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
        with numpyro.plate("records", x.shape[0]):
            numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)

    plan = bd.VI(sampling_rate=0.5, steps=5, noise_multiplier=1.0, engine="rdp")
    found = PrivateSVI(model, plan).run(0, 5, X)
    np.testing.assert_array_equal(found.params["auto_loc"], plan.fit(model, (X,), seed=0).mean)
    assert found.losses is None
    assert found.posterior.guarantees[0].notion == "dp"
