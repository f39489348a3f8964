"""Private VI end to end: NumPyro's own answer without noise, conjugate posteriors, what it promises, what it costs."""

import dataclasses
import math

import jax
import numpy as np
import numpyro
import optax
import pytest
from numpyro import distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.vi.vi import default_optimizer

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(400, 3)) @ np.array([[1, 0.6, 0], [0, 0.8, 0.3], [0, 0, 0.9]])).astype(np.float32)
Y = (RNG.random(400) < 1 / (1 + np.exp(-X @ [1.0, 1.0, -0.5]))).astype(np.int32)


def logistic(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[-1]]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


@pytest.fixture(scope="module")
def plan():
    return bd.VI(clip_norm=1.0, sampling_rate=0.2, steps=200, noise_multiplier=2.0, engine="rdp", report_every=50)


@pytest.fixture(scope="module")
def witnessed(plan):
    holdout = (X[300:], Y[300:])
    return plan.fit(logistic, (X[:300], Y[:300]), holdout=holdout, members=100, watch=(X[:5], Y[:5]), seed=0)


@pytest.mark.parametrize(("kind", "guide"), [("mean-field", AutoNormal), ("full-rank", AutoMultivariateNormal)])
def test_without_noise_or_clipping_it_is_numpyros_svi(kind, guide):
    """The mean of the last half of the iterates on both sides: the draws of z alone would differ by more than 1e-3."""
    data, optimizer, steps = (X[:100], Y[:100]), optax.adam(optax.exponential_decay(0.05, 1, 0.996)), 1000
    svi = SVI(logistic, guide(logistic), numpyro.optim.optax_to_numpyro(optimizer), Trace_ELBO(num_particles=1000))

    def update(state, _):
        state = svi.update(state, *data)[0]
        return state, svi.get_params(state)

    path = jax.jit(lambda state: jax.lax.scan(update, state, length=steps)[1])(svi.init(jax.random.key(0), *data))
    theirs = jax.tree.map(lambda leaf: leaf[steps // 2 :].mean(axis=0), path)
    if kind == "mean-field":
        mean, scale = theirs["w_auto_loc"], theirs["w_auto_scale"]
    else:
        mean, scale = theirs["auto_loc"], np.linalg.norm(theirs["auto_scale_tril"], axis=1)
    plan = bd.VI(
        clip_norm=None,
        noise_multiplier=0,
        sampling_rate=1.0,
        steps=steps,
        optimizer=optimizer,
        guide=kind,
        num_particles=1000,
        variant="plain",
        averaged_fraction=0.5,
    )
    ours = plan.fit(logistic, data, seed=1)
    np.testing.assert_allclose(ours.mean, mean, atol=1e-3)
    np.testing.assert_allclose(ours.std, scale, atol=1e-3)
    assert math.isinf(ours.guarantees[0].epsilon)


@pytest.mark.parametrize("kind", ["mean-field", "full-rank"])
def test_a_conjugate_posterior_is_recovered(kind):
    """Linear regression with known noise: a Gaussian posterior; mean-field gets its mean and the diagonal precision."""
    targets = (X @ np.array([0.5, 1.0, -1.0]) + RNG.normal(size=400)).astype(np.float32)
    prior = bd.NormalPrior(np.array([0.0, 1.0, 0.0]), np.array([[1.0, 0.2, 0], [0.2, 2.0, 0], [0, 0, 0.5]]))

    def log_likelihood(w, record):
        return -0.5 * (record[1] - record[0] @ w) ** 2

    precision = np.linalg.inv([[1.0, 0.2, 0], [0.2, 2.0, 0], [0, 0, 0.5]])
    exact = np.linalg.inv(precision + X.T @ X)
    mean = exact @ (precision @ [0.0, 1.0, 0.0] + X.T @ targets)
    plan = bd.VI(
        clip_norm=1e6,
        noise_multiplier=0,
        sampling_rate=1.0,
        steps=1500,
        optimizer=optax.adam(optax.exponential_decay(0.05, 1, 0.996)),
        guide=kind,
        num_particles=32,
        variant="natural" if kind == "mean-field" else "aligned",
        averaged_fraction=0.2,
    )
    ours = plan.fit((prior, log_likelihood), (X, targets), seed=1)
    np.testing.assert_allclose(ours.mean, mean, atol=2e-3)
    spread = np.sqrt(np.diag(exact)) if kind == "full-rank" else np.diag(precision + X.T @ X) ** -0.5
    np.testing.assert_allclose(ours.std, spread, rtol=0.02)


def test_it_learns_and_keeps_three_tallies(witnessed, plan):
    assert ((X[300:] @ witnessed.mean > 0) == Y[300:]).mean() > 0.7
    assert [g.notion for g in witnessed.guarantees] == ["dp", "bdp", "per-instance"]
    expected = bd.WorstCaseAccountant(engine="rdp")
    expected.step(noise_multiplier=2.0, sampling_rate=0.2, steps=200)
    assert witnessed.guarantees[0].epsilon == expected.epsilon(1e-5)
    assert witnessed.guarantees[1].orientation == "both"
    assert witnessed.run.instance.epsilon(1e-5).shape == (5,)
    assert len(witnessed.run.snapshots) == 4


def test_a_witness_is_charged_its_clipped_gradient_at_the_steps_own_draw():
    """One step: the public draw is the run's, so the norm of each watched record can be computed by hand."""
    plan = bd.VI(clip_norm=0.8, sampling_rate=0.2, steps=1, noise_multiplier=1.5, engine="rdp", initial_scale=0.4)
    watch = (X[:6], Y[:6])
    run = plan.fit(logistic, (X, Y), watch=watch, seed=5).run
    from bayesdp.mechanism.key import seeded_key
    from bayesdp.mechanism.noise import step_keys

    z = 0.4 * np.asarray(jax.random.normal(step_keys(seeded_key(5), 0).public, (1, 3)))[0]
    gradients = (1 / (1 + np.exp(-X[:6] @ z)) - Y[:6])[:, None] * X[:6]
    norms = np.minimum(np.linalg.norm(gradients, axis=1), 0.8) / 0.8
    by_hand = bd.InstanceAccountant(records=6, orders=run.instance.orders, weights=run.instance.weights, cap=1.0)
    by_hand.step(np.minimum(norms * (1 + 1e-5), 1.0), noise_std=1.5, sampling_rate=0.2)
    np.testing.assert_allclose(run.instance.epsilon(1e-5), by_hand.epsilon(1e-5), rtol=1e-3)


def test_replace_one_uses_the_exact_pair_and_every_engine_answers():
    """S2's Adult and Abalone settings at δ = 1e-3, σ = 2 there: H10's values."""
    plan = bd.VI(sampling_rate=0.005, steps=2000, noise_multiplier=4.0, delta=1e-3, adjacency="replace-one")
    answers = {}
    for engine in ("pld", "rdp", "moments", "advanced"):
        accountant = bd.WorstCaseAccountant(engine=engine, adjacency="replace-one")
        accountant.step(noise_multiplier=4.0, sampling_rate=0.005, steps=2000)
        run = dataclasses.replace(plan, engine=engine)
        assert run.engine == engine
        answers[engine] = accountant.epsilon(1e-3)
    assert answers["pld"] <= answers["rdp"] <= answers["moments"] < answers["advanced"]
    calibrated = plan.calibrate(epsilon=0.5)
    accountant = bd.WorstCaseAccountant(engine="pld", adjacency="replace-one")
    accountant.step(noise_multiplier=calibrated.noise_multiplier, sampling_rate=0.005, steps=2000)
    assert 0.49 < accountant.epsilon(1e-3) <= 0.5


def test_a_seed_reproduces_the_run_and_interruption_changes_nothing(plan, witnessed, tmp_path):
    given = {"holdout": (X[300:], Y[300:]), "watch": (X[:5], Y[:5])}
    seen = []

    def stop(posterior):
        seen.append(posterior.run.steps)
        if len(seen) == 2:
            raise KeyboardInterrupt

    data = (X[:300], Y[:300])
    with pytest.raises(KeyboardInterrupt):
        plan.fit(logistic, data, **given, members=100, seed=0, folder=tmp_path, progress=stop)
    resumed = plan.resume(tmp_path, logistic, data, **given)
    np.testing.assert_array_equal(resumed.mean, witnessed.mean)
    np.testing.assert_array_equal(resumed.cov, witnessed.cov)
    assert resumed.guarantees == witnessed.guarantees
    assert seen == [50, 100]


def test_runs_made_together_are_the_runs_made_alone(plan):
    several = plan.fit_many(3, logistic, (X, Y), watch=(X[:2], Y[:2]), seed=7)
    alone = plan.fit(logistic, (X, Y), watch=(X[:2], Y[:2]), members=0, seed=8)
    np.testing.assert_allclose(several[1].mean, alone.mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(several[1].run.instance.epsilon(1e-5), alone.run.instance.epsilon(1e-5), rtol=1e-4)
    assert not np.allclose(several[0].mean, several[2].mean)
    assert "3 runs" in several[0].notes[0]
    assert alone.notes == ()


def test_schedules_of_clip_rate_and_noise_are_accounted_step_by_step():
    """The rate falls to a half in the second half of the steps, the clip norm and the noise differ too."""
    plan = bd.VI(
        clip_norm=1.0,
        sampling_rate=0.4,
        steps=60,
        noise_multiplier=1.5,
        rate_schedule=((0.5, 1.0), (0.5, 0.5)),
        clip_schedule=((0.5, 1.0), (0.5, 0.7)),
        noise_schedule=((0.1, 2.0), (0.9, 1.0)),
        engine="rdp",
        averaged_fraction=0.0,
    )
    sure = np.argsort(X @ [1.0, 1.0, -0.5])[[0, -1]]  # with the other label they are clipped once the mean has left 0
    posterior = plan.fit(logistic, (X, Y), watch=(1000 * X[sure], np.array([1, 0], np.int32)), seed=0)
    expected = bd.WorstCaseAccountant(engine="rdp")
    for z, q, steps in [(3.0, 0.4, 6), (1.5, 0.4, 24), (1.5, 0.2, 30)]:
        expected.step(noise_multiplier=z, sampling_rate=q, steps=steps)
    assert posterior.guarantees[0].epsilon == pytest.approx(expected.epsilon(1e-5), rel=1e-9)
    # A record that is nearly always clipped is charged what everybody is, up to the price of fixing the orders first.
    worst = posterior.run.instance.epsilon(1e-5).max()
    assert 0.9 * expected.epsilon(1e-5) < worst < 1.5 * expected.epsilon(1e-5)
    assert ((X @ posterior.mean > 0) == Y).mean() > 0.65
    with pytest.raises(InputError, match="rate_schedule"):
        dataclasses.replace(plan, rate_schedule=3.0)


def test_the_mean_gradient_does_not_depend_on_the_rate():
    """Without noise, one step of SGD from the same point with q = 1 and 1/2: the same in expectation."""
    moves = []
    for rate in (1.0, 0.5):
        plan = bd.VI(
            clip_norm=1.0,
            sampling_rate=rate,
            steps=1,
            noise_multiplier=0,
            optimizer=optax.sgd(1.0),
            averaged_fraction=0.0,
            initial_scale=1e-4,
        )
        several = plan.fit_many(200, logistic, (X, Y), seed=1)
        moves.append(np.mean([one.mean for one in several], axis=0))
    np.testing.assert_allclose(moves[1], moves[0], atol=0.01)
    assert np.abs(moves[0]).max() > 0.1


def test_the_noise_aware_posterior_is_wider_and_keeps_the_guides_own(plan):
    aware = dataclasses.replace(plan, noise_aware=True, report_every=None).fit(logistic, (X, Y), seed=0)
    np.testing.assert_array_equal(aware.mean, aware.variational.mean)
    extra = np.linalg.eigvalsh(aware.cov - aware.variational.cov)
    assert extra.min() > 0
    # The noise of a step is 2/80 per coordinate; the mean of 100 steps moves by it over 10 and the curvature.
    chance = 1 / (1 + np.exp(-X @ aware.mean))
    curvature = (X.T * chance * (1 - chance)) @ X / len(X)
    expected = (2 / 80) ** 2 / 100 * np.trace(np.linalg.inv(curvature @ curvature))
    assert 0.2 < extra.sum() / expected < 3


def test_it_suggests_a_plan_from_public_quantities():
    """The suggestion does not change with the data, only with their number and shape."""
    given = {"epsilon": 2.0, "steps": 300, "engine": "rdp"}
    one = bd.VI.suggest(logistic, (X, Y), **given)
    two = bd.VI.suggest(logistic, (100 * X, 1 - Y), **given)
    assert one == two
    assert 0.5 < one.clip_norm < 1.2  # |x|/2 for three standard normals
    assert 0.05 <= one.sampling_rate <= 1
    accountant = bd.WorstCaseAccountant(engine="rdp")
    accountant.step(noise_multiplier=one.noise_multiplier, sampling_rate=one.sampling_rate, steps=300)
    assert 1.9 < accountant.epsilon(1e-5) <= 2.0
    own = bd.VI.suggest(logistic, (X, Y), clip_norm=3.0, sampling_rate=0.1, **given)
    assert (own.clip_norm, own.sampling_rate) == (3.0, 0.1)
    public = bd.VI.suggest(logistic, (X, Y), public=(10 * X[:50], Y[:50]), sampling_rate=0.1, **given)
    assert public.clip_norm > 3 * one.clip_norm


def test_optimisers_see_mean_and_scale_apart(plan):
    still = optax.multi_transform(
        {"mean": optax.sgd(1.0), "scale": optax.set_to_zero()}, {"mean": "mean", "scale": "scale"}
    )
    posterior = dataclasses.replace(plan, optimizer=still, initial_scale=0.3, report_every=None).fit(
        logistic, (X, Y), seed=0
    )
    np.testing.assert_allclose(posterior.std, 0.3, rtol=1e-5)
    assert default_optimizer(mean=1.0) is bd.VI(sampling_rate=0.1, steps=1).optimizer
    assert bd.VI(sampling_rate=0.1, steps=1, variant="natural").optimizer is default_optimizer(mean=0.1)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"guide": "gaussian"}, "guide"),
        ({"variant": "best"}, "variant"),
        ({"num_particles": 0}, "num_particles"),
        ({"initial_scale": 0.0}, "initial_scale"),
        ({"averaged_fraction": 1.0}, "averaged_fraction"),
        ({"noise_aware": 1}, "noise_aware"),
        ({"steps": 0}, "steps"),
        ({"clip_norm": -1.0}, "clip_norm"),
    ],
)
def test_bad_input(change, word):
    with pytest.raises(InputError, match=word):
        bd.VI(**({"sampling_rate": 0.1, "steps": 10} | change))


def test_bad_data_is_refused_before_anything_is_charged(plan):
    with pytest.raises(InputError, match="holdout"):
        plan.fit(logistic, (X, Y), holdout=(X[:, :2], Y), members=0)
    with pytest.raises(InputError, match="same number"):
        plan.fit(logistic, (X, Y[:3]))
    with pytest.raises(InputError, match="repeats"):
        plan.fit_many(0, logistic, (X, Y))
    with pytest.raises(InputError, match="noise_multiplier"):
        bd.VI(sampling_rate=0.1, steps=10).fit(logistic, (X, Y))
