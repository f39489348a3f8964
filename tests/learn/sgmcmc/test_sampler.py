"""What all samplers share: accounting from the steps, calibration both ways, chains, and the posterior's face."""

import dataclasses
import functools
import math

import jax
import numpy as np
import numpyro
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from numpyro import distributions as dist

import bayesdp as bd
from bayesdp import InputError, storage
from bayesdp.learn.posterior.samples import split_r_hat
from bayesdp.learn.sgmcmc.step_sizes import Decreasing
from bayesdp.mechanism import Mean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)).astype(np.float32)
Y = (RNG.random(400) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))).astype(np.int32)
MNIST = {"clip_norm": 0.3, "sampling_rate": 128 / 60_000, "steps": 9375, "step_size": 0.3 / 60_000}


def logistic(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[-1]]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


@pytest.mark.parametrize(
    ("fields", "epsilon"),
    [
        ({"temperature": 0.5, "engine": "moments"}, 0.3244060652),
        ({"temperature": 0.5, "engine": "rdp"}, 0.2436278),
        ({"temperature": 0.5}, 0.220071),
        ({"engine": "moments"}, 0.2255334404),
        ({}, 0.148456),
    ],
)
def test_s4s_mnist_setting(fields, epsilon):
    """I-11."""
    assert bd.SGLD(**(MNIST | fields)).epsilon() == pytest.approx(epsilon, rel=2e-3)


def test_replacing_one_record_is_accounted_for_by_the_exact_pair():
    """H10: below the heuristic z/2 of I-11 (0.514), near the 0.458 first computed for it, above add-or-remove."""
    plan = bd.SGLD(**MNIST, temperature=0.5, adjacency="replace-one")
    assert plan.epsilon() == pytest.approx(0.458, rel=0.015)
    assert dataclasses.replace(plan, engine="rdp", adjacency="add-remove").epsilon() < plan.epsilon() < 0.514


@pytest.fixture(scope="module")
def decreasing():
    return bd.SGLD(
        clip_norm=1.0, sampling_rate=0.05, steps=60, step_size=0.002, step_schedule="decreasing", num_chains=2
    )


def test_epsilon_is_not_below_dp_accountings_on_the_same_events(decreasing):
    """Their privacy loss laws rounded down: no sound account of the same steps is below."""
    parts = [
        pld.from_gaussian_mechanism(
            float(z),
            sampling_prob=0.05,
            pessimistic_estimate=False,
            value_discretization_interval=2e-4,
            use_connect_dots=False,
        ).self_compose(int(count) * decreasing.num_chains)
        for z, count in zip(*np.unique(decreasing.noise, return_counts=True), strict=True)
    ]
    theirs = functools.reduce(lambda total, part: total.compose(part), parts).get_epsilon_for_delta(1e-5)
    assert theirs <= decreasing.epsilon() <= 1.03 * theirs


@pytest.mark.parametrize("kind", [bd.SGLD, bd.PSGLD, bd.SGHMC, bd.SGNHT])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_largest_step_keeps_the_promise_and_a_longer_one_does_not(kind, adjacency):
    more = {"friction": 5.0} if kind in (bd.SGHMC, bd.SGNHT) else {}
    plan = kind(clip_norm=0.5, sampling_rate=0.02, steps=300, step_size=1e-3, engine="rdp", adjacency=adjacency, **more)
    best = plan.calibrate_step(0.8)
    assert 0.79 < best.epsilon() <= 0.8
    assert dataclasses.replace(best, step_size=best.step_size * 1.001).epsilon() > 0.8
    assert best.temperatures == pytest.approx(1)
    # There and back: the noise multiplier that a step of this size has is the one that ε needs.
    longer = dataclasses.replace(plan, step_size=10 * best.step_size).calibrate(0.8)
    assert longer.noise_multiplier == pytest.approx(best.noise[0], rel=1e-3)


def test_noise_is_added_only_where_the_samplers_own_is_not_enough(decreasing):
    plan = dataclasses.replace(decreasing, engine="rdp")
    enough = plan.calibrate(2 * plan.epsilon())
    assert enough.noise_multiplier is None
    tight = plan.calibrate(0.9 * plan.epsilon())
    assert 0.88 * plan.epsilon() < tight.epsilon() <= 0.9 * plan.epsilon()
    np.testing.assert_allclose(tight.noise, np.maximum(plan.noise, tight.noise_multiplier))
    assert tight.noise[0] > plan.noise[0]
    assert tight.temperatures[0] > 1
    assert tight.temperatures[-1] == pytest.approx(1)


def test_a_risk_is_kept_by_noise_or_by_shorter_steps():
    plan = bd.SGLD(clip_norm=1.0, sampling_rate=0.5, steps=10, step_size=0.2)
    for kept in (plan.calibrate(attacker=0.6), plan.calibrate_step(advantage=0.2)):
        assert 0.199 < kept._all_iterates(kept.noise, "pld").attacker().advantage <= 0.2
    assert plan.calibrate(attacker=0.999).noise_multiplier is None


def test_a_step_that_is_too_large_is_refused_with_the_largest_allowed():
    plan = bd.SGLD(clip_norm=1.0, sampling_rate=0.02, steps=100, step_size=0.01, engine="rdp")
    with pytest.raises(InputError, match="step_size to be at most") as refused:
        plan.calibrate(0.5, extra_noise=False)
    named = float(str(refused.value).split("at most ")[1].split(" ")[0])
    assert dataclasses.replace(plan, step_size=named).calibrate(0.5, extra_noise=False).epsilon() <= 0.5
    with pytest.raises(InputError, match="step_size"):
        dataclasses.replace(plan, step_size=1.01 * named).calibrate(0.5, extra_noise=False)


def test_without_a_clip_norm_there_is_no_dp():
    plan = bd.SGLD(clip_norm=None, sampling_rate=0.5, steps=10, step_size=0.01)
    assert math.isinf(plan.epsilon())
    for calibrate in (plan.calibrate, plan.calibrate_step):
        with pytest.raises(InputError, match="clip_norm=None: without one a single record"):
            calibrate(1.0)
    with pytest.raises(InputError, match="update"):
        bd.SGLD(clip_norm=1.0, sampling_rate=0.5, steps=10, step_size=0.01, update=Mean(3))


@pytest.fixture(scope="module")
def plan():
    return bd.SGLD(
        clip_norm=1.0,
        sampling_rate=0.2,
        steps=200,
        step_size=0.004,
        step_schedule=Decreasing(),
        num_chains=4,
        engine="rdp",
        report_every=50,
        num_warmup=50,
        thin=1,
    )


@pytest.fixture(scope="module")
def sampled(plan):
    holdout, watch = (X[300:], Y[300:]), (X[:5], Y[:5])
    seen = []
    posterior = plan.fit(
        logistic,
        (X[:300], Y[:300]),
        holdout=holdout,
        members=100,
        watch=watch,
        seed=0,
        evaluate=lambda now: {"samples": float(now.draws.shape[1])},
        progress=seen.append,
    )
    return posterior, seen


def test_every_chain_is_charged(plan, sampled):
    posterior, _ = sampled
    wc = bd.WorstCaseAccountant(engine="rdp")
    for z in plan.noise:
        wc.step(noise_multiplier=z, sampling_rate=0.2, steps=4)
    dp, bdp, instance = posterior.guarantees
    assert dp.epsilon == pytest.approx(wc.epsilon(1e-5), rel=1e-9) == pytest.approx(plan.epsilon(), rel=1e-9)
    assert (dp.notion, bdp.notion, instance.notion) == ("dp", "bdp", "per-instance")
    assert min(bdp.epsilon, instance.epsilon) > 0
    assert posterior.run.tallies.worst_case.steps == 800
    one = dataclasses.replace(plan, num_chains=1)
    assert one.epsilon() < plan.epsilon()


def test_a_budget_counts_all_chains(plan):
    short = dataclasses.replace(plan, epsilon_budget=plan.epsilon() / 2, report_every=None)
    posterior = short.fit(logistic, (X, Y), seed=0)
    assert 0 < posterior.run.steps < 200
    assert posterior.guarantees[0].epsilon <= short.epsilon_budget


def test_looks_show_the_samples_so_far(sampled):
    _, seen = sampled
    assert [now.draws.shape for now in seen] == [(4, 1, 3), (4, 50, 3), (4, 100, 3), (4, 150, 3)]
    assert [snapshot.metrics["samples"] for snapshot in seen[-1].run.snapshots] == [1, 50, 100, 150]


def test_the_face_of_a_posterior(sampled, tmp_path):
    posterior, _ = sampled
    flat = posterior.draws.reshape(-1, 3)
    shares = np.tile(posterior.weights, 4) / 4
    np.testing.assert_allclose(posterior.mean, shares @ flat)
    np.testing.assert_allclose(posterior.cov, np.cov(flat.T, aweights=shares, ddof=0))
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(posterior.cov)))
    low, high = posterior.interval(0.9).T
    for level, at in ((0.05, low), (0.95, high)):
        np.testing.assert_allclose([shares[flat[:, i] < at[i]].sum() for i in range(3)], level, atol=0.01)
    assert posterior.labels == ("w[0]", "w[1]", "w[2]")
    assert posterior.sample(7, seed=0)["w"].shape == (7, 3)
    assert posterior.samples["w"].shape == (4, 150, 3)
    np.testing.assert_allclose(np.asarray(posterior.draw(5000, seed=0)).mean(0), posterior.mean, atol=0.02)
    assert posterior.to_arviz().posterior["w"].shape == (4, 150, 3)
    # Clipped at 1, the sampled law is close to the posterior.
    p = posterior.predict(X[300:], draws=400, seed=0)
    assert np.abs(p - 1 / (1 + np.exp(-X[300:] @ [1.0, -1.0, 0.5]))).mean() < 0.1
    assert np.abs(posterior.predict(X[300:], method="probit-scaled") - p).max() < 0.05
    assert posterior.log_predictive((X[300:], Y[300:])).mean() > math.log(0.5)
    folder = posterior.save(tmp_path / "run")
    kept = storage.read_arrays(folder / "posterior.npz")
    np.testing.assert_array_equal(kept["draws"], posterior.draws)
    assert "chains, each charged" in (folder / "report.html").read_text()


def test_ess_and_r_hat(sampled):
    posterior, _ = sampled
    assert (posterior.ess > 5).all()
    assert (posterior.ess < 600).all()
    assert (posterior.r_hat < 2).all()
    apart = dataclasses.replace(posterior, draws=posterior.draws + np.arange(4)[:, None, None])
    assert (apart.r_hat > posterior.r_hat).all()
    alone = dataclasses.replace(posterior, draws=posterior.draws[:1])
    with pytest.raises(InputError, match="2 chains"):
        _ = alone.r_hat


def test_an_interrupted_run_goes_on(plan, sampled, tmp_path):
    class Stop(Exception):
        pass

    def stop(now):
        if now.run.steps == 100:
            raise Stop

    with pytest.raises(Stop):
        plan.fit(logistic, (X[:300], Y[:300]), seed=0, members=0, progress=stop, folder=tmp_path)
    with pytest.raises(InputError, match="same plan"):
        dataclasses.replace(plan, temperature=0.5).resume(tmp_path, logistic, (X[:300], Y[:300]))
    again = plan.resume(tmp_path, logistic, (X[:300], Y[:300]))
    whole = plan.fit(logistic, (X[:300], Y[:300]), seed=0, progress=lambda now: None)
    np.testing.assert_array_equal(again.draws, whole.draws)
    assert again.guarantees == whole.guarantees


def test_a_network_with_gaussian_priors(digits):
    """Fast and plain clipping give the same chain; the average over samples classifies."""
    network = bd.Network(digits.loss, digits.params, precision=1.0)
    plan = bd.SGLD(clip_norm=1.0, sampling_rate=0.1, steps=200, step_size=1e-3, thin=10, engine="rdp")
    posterior = plan.fit(network, digits.data, seed=0)
    p = posterior.predict(digits.test[0], draws=10)
    assert p.shape == (len(digits.test[1]), 10)
    assert (p.argmax(1) == digits.test[1]).mean() > 0.75
    assert posterior.draws.shape == (1, 10, 650)
    assert jax.tree.structure(posterior.sample(2)) == jax.tree.structure(digits.params)
    slow = plan.fit(bd.Network(lambda w, record: digits.loss(w, record), digits.params), digits.data, seed=0)
    np.testing.assert_allclose(slow.draws, posterior.draws, atol=2e-3)
    with pytest.raises(InputError, match="outcomes"):
        slow.predict(digits.test[0])
    with pytest.raises(InputError, match="precision"):
        bd.Network(digits.loss, digits.params, precision=0.0)


def test_chains_that_do_not_agree_are_said_to():
    walk = bd.SGLD(sampling_rate=1.0, steps=40, step_size=1e-6, clip_norm=None, num_chains=3)
    still = walk.fit(logistic, (X, Y), seed=0)
    assert split_r_hat(still.draws).max() > 1.1
    assert "do not agree (R-hat up to " in still.notes[0]
    import arviz

    draws = np.random.default_rng(0).normal(size=(4, 500, 2)) + np.arange(4)[:, None, None] * [0, 0.3]
    theirs = arviz.rhat(arviz.convert_to_dataset({"z": draws}))["z"].values
    np.testing.assert_allclose(split_r_hat(draws), theirs, rtol=1e-9)
