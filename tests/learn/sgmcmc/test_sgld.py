"""SGLD that releases its last iterate alone (L7): what is kept, what it costs, and what is refused."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import bayesdp as bd
from bayesdp import InputError, storage
from bayesdp.learn.models.networks import classifier
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.models.regressions import linear, logistic
from bayesdp.learn.sgmcmc import convexity

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
X = (X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))).astype(np.float32)
Y = (RNG.random(N) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(np.int32)
DECLARED = bd.Curvature.logistic(records=N, feature_bound=1.0)
PLAN = bd.SGLD(
    sampling_rate=1.0, steps=400, step_size=0.02, clip_norm=0.5, num_chains=2, engine="rdp", last_only=DECLARED
)
ALL = dataclasses.replace(PLAN, last_only=None)


@pytest.fixture(scope="module")
def last():
    return PLAN.fit(logistic, (X, Y), seed=3)


def test_where_each_chain_ended_is_kept_and_nothing_else(last, tmp_path):
    assert last.draws.shape == (2, 1, 3)
    np.testing.assert_array_equal(np.asarray(last.run.params), last.draws[:, 0].astype(np.float32))
    assert last.run.snapshots == ()
    assert "Only the last iterate" in last.notes[0]
    last.save(tmp_path)
    arrays = {**storage.read_arrays(tmp_path / "posterior.npz"), **storage.read_arrays(tmp_path / "params.npz")}
    assert sorted(np.size(value) for value in arrays.values())[-1] == last.draws.size
    assert "the last iterate of each chain" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_guarantee_is_the_plans_and_below_that_of_all_iterates(last):
    promise = last.guarantees[0]
    assert promise.notion == "dp"
    assert promise.epsilon == PLAN.epsilon() < 0.75 * ALL.epsilon()
    assert any("Only the last iterate" in words for words in promise.assumptions)
    longer = dataclasses.replace(PLAN, steps=40_000)
    assert longer.epsilon() < 1.02 * dataclasses.replace(PLAN, steps=4000).epsilon()
    sampled = dataclasses.replace(longer, sampling_rate=0.5, step_size=0.01)
    assert sampled.epsilon() < 0.5 * dataclasses.replace(sampled, last_only=None).epsilon()


def test_what_chains_tell_is_near_the_bound_and_below_it():
    """A record that always pushes the same way against a strong prior: many chains show how far apart they end."""
    declared = bd.Curvature(records=2, strong=25.0, record=0.25, feature_bound=1.0)
    plan = bd.SGLD(
        sampling_rate=1.0,
        steps=60,
        step_size=2e-3,
        clip_norm=0.05,
        temperature=2.5e-5,  # little noise, so that a few thousand chains tell
        num_chains=3000,
        last_only=declared,
    )
    prior, record = bd.NormalPrior(np.zeros(1), 0.04), (np.array([[1.0]], np.float32), np.array([1], np.int32))

    def log_likelihood(w, record):
        x, y = record
        return dist.Bernoulli(logits=x @ w).log_prob(y)

    ends = [
        plan.fit((prior, log_likelihood), (x * record[0], record[1]), seed=int(x)).draws[:, 0, 0] for x in (1.0, 0.0)
    ]
    seen = (ends[0].mean() - ends[1].mean()) / ends[1].std()
    z, c = float(plan.noise[0]), 1 - 25 * 2e-3
    bound = math.sqrt((1 - c**60) / (1 + c**60) * (1 + c) / (1 - c)) / z
    assert bound == pytest.approx(1.886, abs=0.01)
    assert seen == pytest.approx(bound, rel=0.06)
    assert seen < 0.8 * math.sqrt(60) / z  # what all iterates would tell


def test_calibration_keeps_the_promise_and_the_condition():
    found = PLAN.calibrate_step(2.0)
    assert found.epsilon() <= 2.0 < dataclasses.replace(found, step_size=1.01 * found.step_size).epsilon()
    generous = PLAN.calibrate_step(50.0)
    longest = float(DECLARED.longest(PLAN.rates, PLAN.delta, 2)[0])
    assert 0.999 * longest < generous.step_size <= longest
    noisier = PLAN.calibrate(2.0)
    assert noisier.epsilon() <= 2.0 < dataclasses.replace(noisier, noise_multiplier=0.99 * noisier.noise[0]).epsilon()
    assert noisier.noise_multiplier < ALL.calibrate(2.0).noise_multiplier


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"step_size": 0.03}, "step_size to be at most 0.025"),
        ({"sampling_rate": 0.5, "step_size": 0.02}, "step_size to be at most 0.01"),
        ({"clip_norm": None}, "clip_norm to be a number"),
        ({"thin": 2}, "thin to be left out"),
        ({"report_every": 10}, "report_every to be left out"),
        ({"epsilon_budget": 1.0}, "epsilon_budget to be left out"),
        ({"last_only": 1.0}, "last_only to be a Curvature"),
    ],
)
def test_plans_that_cannot_be_are_refused(fields, words):
    with pytest.raises(InputError, match=words):
        dataclasses.replace(PLAN, **fields)


def test_other_samplers_do_not_have_it():
    for sampler in (bd.SGHMC, bd.SGNHT, bd.PSGLD):
        with pytest.raises(TypeError, match="last_only"):
            sampler(sampling_rate=1.0, steps=10, step_size=0.01, last_only=DECLARED)


def test_nobody_may_look_before_the_end(tmp_path):
    for asked in ({"members": 5}, {"holdout": (X, Y)}, {"progress": print}, {"folder": tmp_path}, {"watch": (X, Y)}):
        with pytest.raises(InputError, match="last_only"):
            PLAN.fit(logistic, (X, Y), **asked)


class TestTheCondition:
    def check(self, declared, model, data, clip=0.5):
        convexity.check(declared, model, probabilistic(model, data), data, clip)

    def test_data_outside_of_the_declaration_are_refused(self):
        with pytest.raises(InputError, match="records to be at least the 300"):
            self.check(dataclasses.replace(DECLARED, records=299), logistic, (X, Y))
        with pytest.raises(InputError, match="feature_bound to hold"):
            self.check(DECLARED, logistic, (2 * X, Y))
        with pytest.raises(InputError, match="dimension"):
            self.check(DECLARED, (bd.NormalPrior(np.zeros(1)), lambda w, record: w @ w), X[:, 0])
        self.check(DECLARED, logistic, {"x": X, "y": Y})

    def test_false_declarations_are_refused(self):
        for declared, words in (
            (bd.Curvature.logistic(records=N, feature_bound=1.0, prior_scale=0.9), "−log prior"),
            (dataclasses.replace(DECLARED, strong=0.9, stiff=0.95), "−log prior"),
            (dataclasses.replace(DECLARED, record=0.24), "curved by at most record=0.24, got 0.25"),
        ):
            with pytest.raises(InputError, match=words):
                self.check(declared, logistic, (X, Y))
        self.check(dataclasses.replace(DECLARED, strong=0.5, stiff=2.0, record=0.3), logistic, (X, Y))

    def test_an_intercept_is_a_feature(self):
        def shifted(x, y=None):
            w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[-1] + 1]).to_event(1))
            with numpyro.plate("records", x.shape[0]):
                numpyro.sample("y", dist.Bernoulli(logits=x @ w[1:] + w[0]), obs=y)

        with pytest.raises(InputError, match="intercept"):
            self.check(DECLARED, shifted, (X, Y))
        self.check(dataclasses.replace(DECLARED, record=0.5), shifted, (X, Y))

    def test_models_that_are_not_convex_or_not_once_clipped_are_refused(self):
        with pytest.raises(InputError, match="convex"):  # the scale of the noise is a parameter
            self.check(dataclasses.replace(DECLARED, record=100.0), linear, (X, X[:, 0]))

        def softmax(w, record):
            x, y = record
            return dist.Categorical(logits=w @ x).log_prob(y)

        prior = bd.NormalPrior(np.zeros((3, 3)), 1.0)
        loose = dataclasses.replace(DECLARED, record=1.0)
        self.check(loose, (prior, softmax), (X, Y), clip=10.0)
        with pytest.raises(InputError, match="asymmetry"):
            self.check(loose, (prior, softmax), (X, Y), clip=0.3)

    def test_a_gaussian_mean_is_clipped_to_a_convex_loss(self):
        def log_likelihood(w, record):
            return -jnp.sum((record - w) ** 2)

        declared = bd.Curvature(records=N, strong=0.5, record=2.0)
        self.check(declared, (bd.NormalPrior(np.zeros(3), 2.0), log_likelihood), X, clip=1.0)

    def test_a_network_is_refused(self):
        loss = classifier("logistic", 2)
        params = loss.model.init(jax.random.key(0), (3,))
        with pytest.raises(InputError, match="Network"):
            PLAN.fit(bd.Network(loss, params), (X, Y), seed=0)
