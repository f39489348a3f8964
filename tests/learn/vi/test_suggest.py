"""What is chosen from public quantities: curvature, clip norms, how fast the mean may go."""

import jax.numpy as jnp
import numpy as np
import pytest

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.models.regressions import logistic
from bayesdp.learn.vi.suggest import gradient_sizes, longest_step, pace, rate_for_steps
from bayesdp.learn.vi.vi import paced_optimizer

X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)


def test_sizes_of_a_logistic_model_are_half_of_a_standard_normals_length():
    sizes = gradient_sizes(probabilistic(logistic, (X, Y)), (X, Y))
    assert sizes.clip_norm == pytest.approx(np.sqrt(3.357) / 2, rel=0.05)  # the median of chi-squared with 4 degrees
    assert sizes.hardly_clipped == pytest.approx(np.sqrt(5.989), rel=0.05)  # twice half the root of its 80 % quantile
    assert sizes.curvature == pytest.approx(0.25, rel=0.1)  # p (1 - p) E x² at the start


def test_sizes_do_not_depend_on_the_data_but_on_public_records():
    reading = probabilistic(logistic, (X, Y))
    assert gradient_sizes(reading, (X, Y)) == gradient_sizes(reading, (50 * X, 1 - Y))
    longer = gradient_sizes(reading, (X, Y), public=(10 * X[:100], Y[:100]))
    assert longer.clip_norm > 5 * gradient_sizes(reading, (X, Y)).clip_norm


def test_a_model_without_gradients_is_refused():
    prior = bd.NormalPrior(np.zeros(2), np.eye(2))
    flat = probabilistic((prior, lambda w, record: 0.0 * jnp.sum(w) + record), X[:, 0])
    with pytest.raises(InputError, match="clip_norm"):
        gradient_sizes(flat, X[:, 0])


def test_the_pace_falls_to_twenty_newton_steps_over_the_averaged_ones():
    rates = np.asarray(pace(0.25, 1000, 0.5)(np.arange(1000)), np.float64)
    assert rates[0] == pytest.approx(1.0)  # a quarter of 1/h
    assert rates[500:].sum() * 0.25 == pytest.approx(20, rel=1e-5)
    assert (np.diff(rates) <= 1e-9).all()
    short = np.asarray(pace(0.25, 40, 0.5)(np.arange(40)))
    np.testing.assert_allclose(short, 1.0, rtol=1e-6)  # there is no time to slow down


def test_a_pace_is_cut_off_and_else_left_alone():
    free, cut = (np.asarray(pace(0.25, 1000, 0.5, most)(np.arange(1000))) for most in (np.inf, 0.4))
    np.testing.assert_allclose(cut, np.minimum(free, 0.4), rtol=1e-6)
    assert free[0] > 0.4 > free[-1]


def test_noise_alone_carries_a_mean_by_two():
    noise = np.full(400, 0.3)
    rate = longest_step(0.25, noise)
    walk = (rate * 0.3 * np.random.default_rng(0).normal(size=(3000, 400))).sum(axis=1)
    assert walk.std() == pytest.approx(2, rel=0.1)
    assert longest_step(0.25, np.zeros(3)) == longest_step(0.25, np.full(3, 0.01)) == 1.0


def test_equal_paces_are_one_optimiser_so_that_programs_are_kept():
    assert paced_optimizer(0.2, 100, 0.5) is paced_optimizer(0.2, 100, 0.5)
    assert bd.VI.suggest(logistic, (X, Y), epsilon=1.0, steps=50, variant="natural", engine="rdp").optimizer is (
        bd.VI(sampling_rate=0.1, steps=1, variant="natural").optimizer
    )


def test_the_rate_keeps_batches_small_where_noise_allows_it():
    rare, often = (rate_for_steps(300, records, 5, 1.0, 1e-5, "add-remove") for records in (100_000, 500))
    assert 0 < rare < often <= 1
