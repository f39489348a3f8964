"""The four samplers: stationary laws, noise and drift apart from each other, keys used once, chains that diverge."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bayesdp as bd
from bayesdp import InputError

N = 12
PRECISION = np.array([[1.5, 0.3], [0.3, 1.2]])
X = np.random.default_rng(0).normal((1, -1), size=(N, 2)).astype(np.float32)
PRIOR = bd.NormalPrior(np.zeros(2), 1.0)


def log_likelihood(w, record):
    return -0.5 * (record - w) @ jnp.asarray(PRECISION, jnp.float32) @ (record - w)


def nothing(w, record=None):
    return 0.0 * jnp.sum(w)


COV = np.linalg.inv(np.eye(2) + N * PRECISION)
MEAN = COV @ (N * PRECISION @ X.mean(0))
STIFF = 1 / np.linalg.eigvalsh(COV)[0]
LONG = {"clip_norm": 100.0, "sampling_rate": 1.0, "steps": 3000, "num_chains": 64, "num_warmup": 600, "thin": 10}
SHORT = LONG | {"steps": 400, "num_chains": 1, "num_warmup": 0, "thin": 1}
PLANS = {
    "SGLD": bd.SGLD(step_size=0.06 / STIFF, **LONG),
    "PSGLD": bd.PSGLD(step_size=0.06 / STIFF, memory=0.9, **LONG),
    "SGHMC": bd.SGHMC(step_size=0.25 / math.sqrt(STIFF), friction=0.8 * math.sqrt(STIFF), **LONG),
    "SGNHT": bd.SGNHT(step_size=0.25 / math.sqrt(STIFF), friction=0.8 * math.sqrt(STIFF), **LONG),
}


def spread(posterior):
    """The sampled covariance by the exact one: the identity if they agree."""
    white = np.linalg.inv(np.linalg.cholesky(COV))
    return white @ posterior.cov @ white.T


@pytest.mark.parametrize("name", PLANS)
def test_long_runs_have_the_posteriors_mean_and_covariance(name):
    at_one = PLANS[name].fit((PRIOR, log_likelihood), X, seed=1)
    np.testing.assert_allclose((at_one.mean - MEAN) / np.sqrt(np.diag(COV)), 0, atol=0.05)
    np.testing.assert_allclose(spread(at_one), np.eye(2), atol=0.05)
    assert at_one.notes == at_one.diverged == ()
    printed = dataclasses.replace(PLANS[name], temperature=0.5).fit((PRIOR, log_likelihood), X, seed=2)
    np.testing.assert_allclose(spread(printed), np.eye(2) / 2, atol=0.025)
    assert "ERR 25" in printed.notes[0]


def test_added_noise_heats_langevin_dynamics_but_not_the_thermostat():
    for name, heat in (("SGLD", 2.25), ("SGNHT", 1.0)):
        plan = PLANS[name]
        hotter = dataclasses.replace(plan, noise_multiplier=1.5 * float(plan.own_noise[0]))
        posterior = hotter.fit((PRIOR, log_likelihood), X, seed=3)
        assert posterior.temperature == pytest.approx(heat)
        np.testing.assert_allclose(spread(posterior), heat * np.eye(2), atol=0.05 * heat)
        assert bool(posterior.notes) == (heat > 1)


def test_added_noise_is_met_by_friction_until_momentum_is_forgotten():
    plan = PLANS["SGHMC"]
    own = float(plan.own_noise[0])
    more = dataclasses.replace(plan, noise_multiplier=1.5 * own)
    np.testing.assert_allclose(more.frictions, 2.25 * plan.friction)
    np.testing.assert_allclose(more.temperatures, 1)
    np.testing.assert_allclose(spread(more.fit((PRIOR, log_likelihood), X, seed=4)), np.eye(2), atol=0.05)
    most = dataclasses.replace(plan, noise_multiplier=4 * own)
    np.testing.assert_allclose(most.frictions * most.step_size, 1)
    np.testing.assert_allclose(most.temperatures, 16 * plan.friction * plan.step_size)


def short(name, **fields):
    return dataclasses.replace(PLANS[name], **(SHORT | fields))


def test_without_a_gradient_only_the_noise_is_left():
    """Random walks: increments of SGLD have variance 2Th, those of SGHMC's momentum 2TBh about (1 − hB) v."""
    plan = short("SGLD", steps=5000, temperature=0.5)
    walk = plan.fit((nothing, nothing), X, params=np.zeros(3, np.float32), seed=0).draws[0]
    steps = np.diff(walk, axis=0)
    assert steps.var() == pytest.approx(plan.step_size, rel=0.05)
    assert np.abs(np.corrcoef(steps[1:].T, steps[:-1].T)[:3, 3:]).max() < 0.05
    plan = short("SGHMC", steps=5000)
    h, b = plan.step_size, plan.friction
    walk = plan.fit((nothing, nothing), X, params=np.zeros(3, np.float32), seed=0).draws[0]
    momentum = np.diff(walk, axis=0) / h
    assert (momentum[1:] - (1 - h * b) * momentum[:-1]).var() == pytest.approx(2 * b * h, rel=0.05)


def test_at_temperature_0_only_the_drift_is_left_and_it_climbs():
    """Gradient ascent of the clipped log posterior, in NumPy."""
    plan = short("SGLD", temperature=0.0, clip_norm=1.0, steps=40)
    found = plan.fit((PRIOR, log_likelihood), X, seed=0)
    w, path = np.zeros(2), []
    for _ in range(40):
        gradients = (X - w) @ PRECISION
        gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1))[:, None]
        w = w + plan.step_size * (-w + gradients.sum(0))
        path.append(w)
    np.testing.assert_allclose(found.draws[0], path, atol=1e-5)
    height = [-0.5 * (d - MEAN) @ np.linalg.inv(COV) @ (d - MEAN) for d in found.draws[0]]
    assert (np.diff(height) > 0).all()
    assert math.isinf(found.guarantees[0].epsilon)
    with pytest.raises(InputError, match="temperature"):
        plan.calibrate_step(1.0)


def test_the_thermostat_and_the_preconditioner_climb_too():
    for name in ("SGHMC", "SGNHT", "PSGLD"):
        draws = short(name, temperature=0.0, steps=40).fit((PRIOR, log_likelihood), X, seed=0).draws[0]
        far = [np.linalg.norm(np.linalg.solve(np.linalg.cholesky(COV), d - MEAN)) for d in draws]
        assert far[1] < far[0]
        assert far[-1] < 0.7 * far[0]


def test_keys_are_used_once():
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        jax.random.normal(key)
        with pytest.raises(jax.errors.KeyReuseError):  # the checker is awake
            jax.random.normal(key)
        for name in PLANS:
            plan = short(name, steps=3, num_chains=2, sampling_rate=0.5)
            posterior = plan.fit((PRIOR, log_likelihood), X, seed=0)
            assert np.abs(posterior.draws[0] - posterior.draws[1]).min() > 0
            posterior.sample(2, seed=0)


def test_diverging_chains_are_named_and_left_out():
    """A quartic well: beyond 1/sqrt(h) a step throws further out than it came from."""

    def quartic(w):
        return -jnp.sum(w**4)

    plan = short("SGLD", step_size=0.2, num_chains=32, steps=60)
    some = plan.fit((quartic, nothing), X, params=np.zeros(1, np.float32), seed=0)
    assert 0 < len(some.diverged) < 32
    assert some.chains == 32 - len(some.diverged)
    assert np.isfinite(some.draws).all()
    assert "left the real numbers" in some.notes[0]
    with pytest.raises(InputError, match="all 2 diverged"):
        dataclasses.replace(plan, step_size=50.0, num_chains=2).fit(
            (quartic, nothing), X, params=np.zeros(1, np.float32), seed=0
        )


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("SGHMC", {"friction": 0.0}),
        ("SGHMC", {"friction": 1e6}),
        ("SGNHT", {"friction": 1e6}),
        ("PSGLD", {"memory": 1.0}),
        ("PSGLD", {"floor": 0.0}),
        ("SGLD", {"step_size": 0.0}),
        ("SGLD", {"temperature": -1.0}),
        ("SGLD", {"num_warmup": 3000}),
        ("SGLD", {"thin": 0}),
        ("SGLD", {"num_chains": 0}),
        ("SGLD", {"step_schedule": "up"}),
    ],
)
def test_bad_input_names_the_field(name, bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        dataclasses.replace(PLANS[name], **bad)
