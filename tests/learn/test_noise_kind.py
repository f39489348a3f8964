"""Noise on a lattice in the loop: what it promises, that it can be taken up again, and whom it serves."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp import InputError
from bayesdp.convert import DRAWN_SHARE as SHARE
from bayesdp.convert import drawn_delta as noise_delta
from bayesdp.learn.loop.run import Run
from bayesdp.learn.noise_kind import FLOAT, with_noise
from bayesdp.mechanism.rounded_gaussian import DISTANCE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)
START = {"w": jnp.zeros(2), "b": jnp.zeros(())}
PLAN = bd.SGD(
    sampling_rate=0.5,
    steps=6,
    clip_norm=1.0,
    noise_multiplier=2.0,
    report_every=3,
    engine="rdp",
    optimizer=optax.sgd(0.5),
    noise_kind="lattice",
)


def loss(params, record):
    x, y = record
    return jnp.logaddexp(0, jnp.where(y == 1, -1, 1) * (x @ params["w"] + params["b"]))


class Stopped(Exception):
    pass


def stop(so_far):
    if so_far.steps == 3:
        raise Stopped


def test_a_run_on_the_lattice_is_taken_up_again_bit_for_bit_says_so_and_is_saved(tmp_path):
    whole = PLAN.fit(loss, START, (X, Y), seed=1)
    with pytest.raises(Stopped):
        PLAN.fit(loss, START, (X, Y), seed=1, folder=tmp_path / "cut", progress=stop)
    keys = (tmp_path / "cut" / "noise.key").read_text()
    assert keys.count(",") >= 7  # eight words
    resumed = PLAN.resume(tmp_path / "cut", loss, START, (X, Y))
    assert not (tmp_path / "cut" / "noise.key").exists()
    for one, other in zip(jax.tree.leaves(whole.params), jax.tree.leaves(resumed.params), strict=True):
        assert np.array_equal(one, other)
    other_seed = PLAN.fit(loss, START, (X, Y), seed=2)
    assert not np.array_equal(whole.params["w"], other_seed.params["w"])

    (dp,) = whole.guarantees
    assert whole.entries == 3
    assert dp.delta_split["noise"] == pytest.approx(SHARE * 1e-5)
    assert dp.delta == 1e-5 + dp.delta_split["noise"]
    assert any("ChaCha20" in sentence and "(H26)" in sentence for sentence in dp.assumptions)
    floats = dataclasses.replace(whole, plan=dataclasses.replace(PLAN, noise_kind="float"))
    assert FLOAT in floats.guarantees[0].assumptions
    assert floats.guarantees[0].epsilon == dp.epsilon
    whole.save(tmp_path / "saved")
    assert Run.load(tmp_path / "saved").guarantees == whole.guarantees


def test_the_draws_distance_from_their_law_is_charged_for_both_data_sets():
    kept, draws = 1e-9, 10**7
    assert noise_delta(kept, draws, 1.0) == kept
    assert noise_delta(kept, draws, 30.0) == (1 + math.exp(30.0)) * draws * DISTANCE > kept
    assert noise_delta(kept, draws, math.inf) == 1.0


def test_a_strong_promise_becomes_a_weak_one():
    strong = bd.Guarantee(notion="dp", epsilon=1.0, delta=1e-5, strength="strong")
    assert with_noise(strong, "lattice", 1e-9).strength == "weak"
    assert with_noise(strong, "float", 0.0).strength == "strong"


@pytest.mark.parametrize(
    "fields", [{"clip_norm": None, "noise_multiplier": None, "noise_std": 1.0}, {"update": "mean"}]
)
def test_what_is_no_sum_of_clipped_gradients_is_refused(fields):
    chosen = {name: bd.Mean(3) if value == "mean" else value for name, value in fields.items()}
    with pytest.raises(InputError, match="noise_kind"):
        dataclasses.replace(PLAN, **chosen)


def test_so_little_noise_takes_smaller_microbatches_and_none_takes_floats():
    little = dataclasses.replace(PLAN, noise_multiplier=0.02, microbatch=64).begin(loss, START, (X, Y), seed=0)
    assert little.trajectories.setup.step.microbatch == 19
    none = dataclasses.replace(PLAN, noise_multiplier=0.0).begin(loss, START, (X, Y), seed=0)
    assert none.trajectories.setup.step.noise == "float"


def test_a_posterior_and_a_sampler_draw_on_the_lattice_too():
    def model(x, y=None):
        import numpyro
        from numpyro import distributions as dist

        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        with numpyro.plate("records", x.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    common = {"sampling_rate": 0.5, "steps": 4, "clip_norm": 1.0, "engine": "rdp", "noise_kind": "lattice"}
    posterior = bd.VI(noise_multiplier=2.0, **common).fit(model, (X, Y.astype(np.float32)), seed=0)
    sampled = bd.SGLD(step_size=1e-4, num_chains=2, **common).fit(model, (X, Y.astype(np.float32)), seed=0)
    for found in (posterior, sampled):
        assert any("ChaCha20" in sentence for sentence in found.run.guarantees[0].assumptions)
        assert np.isfinite(found.run.guarantees[0].epsilon)
    assert sampled.run.entries == 2
    assert sampled.draws.shape[0] == 2
    assert not np.array_equal(sampled.draws[0], sampled.draws[1])
