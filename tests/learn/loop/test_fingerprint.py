"""The whole job is in the fingerprint: going on with anything else than the run began with is refused by name."""

import dataclasses
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import optax
import pytest
from numpyro import distributions as dist

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.loop.fingerprint import digest, fingerprint

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)
START = {"w": np.zeros(3, np.float32), "b": np.zeros((), np.float32)}
SHIFT = jnp.asarray([0.1, 0.2, 0.3])


def loss(params, example):
    x, y = example
    return jax.nn.softplus(-(2 * y - 1) * (x @ params["w"] + params["b"]))


def plan(optimizer=None, **changes):
    common = {"clip_norm": 1.0, "sampling_rate": 0.5, "steps": 6, "noise_multiplier": 2.0, "engine": "rdp"}
    return bd.SGD(**(common | {"report_every": 2, "optimizer": optimizer or optax.sgd(0.5)} | changes))


def interrupted(fit):
    def stop(so_far):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(progress=stop)


@pytest.fixture
def begun(tmp_path):
    interrupted(lambda **how: plan().fit(loss, START, (X, Y), seed=0, folder=tmp_path, **how))
    return tmp_path


def hinge(params, example):
    x, y = example
    return jnp.maximum(0, 1 - (2 * y - 1) * (x @ params["w"] + params["b"]))


def shifted(by):
    """A loss with an array from around it, which is not in its text."""
    return lambda params, example: loss(params, (example[0] + by, example[1]))


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "optimizer",
        [
            optax.sgd(0.25),
            optax.adam(0.5),
            optax.sgd(0.5, momentum=0.9),
            optax.sgd(optax.exponential_decay(0.5, 10, 0.9)),
            optax.inject_hyperparams(optax.sgd)(learning_rate=0.5),
        ],
        ids=["rate", "adam", "momentum", "schedule", "injected"],
    )
    def test_another_optimiser(self, begun, optimizer):
        with pytest.raises(InputError, match="Expected the same optimiser"):
            plan(optimizer).resume(begun, loss, START, (X, Y))

    @pytest.mark.parametrize("other", [hinge, lambda p, e: 2 * loss(p, e), shifted(SHIFT)], ids=["hinge", "2", "shift"])
    def test_another_loss(self, begun, other):
        with pytest.raises(InputError, match="Expected the same loss"):
            plan().resume(begun, other, START, (X, Y))

    def test_another_start(self, begun):
        with pytest.raises(InputError, match="Expected the same starting values"):
            plan().resume(begun, loss, {**START, "b": np.ones((), np.float32)}, (X, Y))

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"data": (X, 1 - Y)}, "data"),
            ({"watch": (X[:2], Y[:2])}, "watch"),
            ({"holdout": (X[:2], Y[:2])}, "holdout"),
        ],
    )
    def test_other_records(self, begun, change, named):
        given = {"data": (X, Y)} | change
        with pytest.raises(InputError, match=f"Expected the same {named}"):
            plan().resume(begun, loss, START, given.pop("data"), **given)

    def test_another_precision(self, begun):
        with jax.enable_x64(True), pytest.raises(InputError, match="Expected the same precision"):
            plan().resume(begun, loss, START, (X, Y))

    def test_nothing_else(self, begun):
        """Functions written anew that compute the same are the same."""
        whole = plan().fit(loss, START, (X, Y), seed=0)
        again = plan(optax.sgd(0.5)).resume(begun, lambda p, e: loss(p, e), START, (X, Y))
        assert all(
            np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (whole.params, again.params)), strict=True)
        )

    def test_a_folder_of_another_job_is_not_taken_over(self, begun):
        with pytest.raises(InputError, match="another folder"):
            plan(optax.sgd(0.25)).fit(loss, START, (X, Y), seed=0, folder=begun)


def test_numbers_around_a_function_are_in_the_fingerprint():
    def of(by, rate=0.5):
        return fingerprint(plan(optax.sgd(rate)).course(shifted(by), START), (X, Y), None, None)

    one = of(SHIFT)
    assert one == of(jnp.asarray(SHIFT))
    assert one["loss or model"] != of(SHIFT.at[1].add(1e-7))["loss or model"]
    assert one["optimiser"] == of(SHIFT.at[1].add(1e-7))["optimiser"] != of(SHIFT, 0.5 + 1e-7)["optimiser"]


def test_arrays_are_told_apart_by_values_types_and_shapes():
    keys = jax.random.split(jax.random.key(0), 2)
    arrays = [X, X + 1e-7, X.astype(np.float64), X.reshape(-1), X[:2], np.zeros(0), jax.random.key(0), keys]
    assert len({digest(one) for one in arrays}) == len(arrays)
    assert digest(None) is None
    assert digest((X, Y)) == digest((jnp.asarray(X), Y.copy()))


def model(scale):
    def logistic(x, y=None):
        w = numpyro.sample("w", dist.Normal(0, scale).expand([3]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    return logistic


@pytest.mark.parametrize("kind", ["vi", "sgld"])
def test_another_prior_is_refused(tmp_path, kind):
    common = {"clip_norm": 1.0, "sampling_rate": 0.5, "steps": 4, "engine": "rdp", "report_every": 2}
    inference = {"vi": bd.VI(**common, noise_multiplier=1.0), "sgld": bd.SGLD(**common, step_size=1e-3, num_chains=2)}
    chosen = inference[kind]
    interrupted(lambda **how: chosen.fit(model(1.0), (X, Y), seed=0, folder=tmp_path, **how))
    with pytest.raises(InputError, match=r"Expected the same (loss or model|optimiser)"):
        chosen.resume(tmp_path, model(2.0), (X, Y))
    if kind == "vi":
        other = dataclasses.replace(chosen, optimizer=optax.adam(0.1))
        with pytest.raises(InputError, match="Expected the same optimiser"):
            other.resume(tmp_path, model(1.0), (X, Y))
    assert chosen.resume(tmp_path, model(1.0), (X, Y)).run.steps == 4


PROGRAM = """
import sys, json
sys.path.insert(0, {here!r})
import bayesdp as bd
from bayesdp.mechanism import use_host_cores
use_host_cores({devices})
from test_fingerprint import START, X, Y, fingerprint, loss, model, plan
walk = bd.SGHMC(clip_norm=1.0, sampling_rate=0.5, steps=4, step_size=0.01, friction=10.0)
guess = bd.VI(clip_norm=1.0, sampling_rate=0.5, steps=4, noise_multiplier=1.0, noise_aware=True)
courses = [plan().course(loss, START), *(one._read(model(1.0), (X, Y), None).course for one in (walk, guess))]
print(json.dumps([fingerprint(course, (X, Y), None, "everyone") for course in courses]))
"""


def elsewhere(seed, devices):
    """The fingerprints of three jobs, taken by another process."""
    program = PROGRAM.format(here=os.path.dirname(__file__), devices=devices)
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "XLA_FLAGS": ""}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return found.stdout


def test_it_is_the_same_in_every_process_and_another_on_more_devices():
    here, there, wide = elsewhere(1, 1), elsewhere(2, 1), elsewhere(1, 2)
    assert here == there != wide
    assert here == wide.replace('"number of devices": 2', '"number of devices": 1')
