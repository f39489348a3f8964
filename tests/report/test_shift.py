"""Outsiders who are others than the members, and an outlier whom the Bayesian promise does not hold for."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdp.learn import SGD
from bayesdp.report import page
from bayesdp.report.shift import OUTLIERS, WARNING, Shift

RNG = np.random.default_rng(0)
PLAN = SGD(sampling_rate=0.5, steps=5, clip_norm=1.0, noise_multiplier=1.0, optimizer=optax.sgd(0.01), coverage=0.7)


def people(count, size=0.1):
    return (size * RNG.normal(size=(count, 3)).astype(np.float32),)


def fitted(holdout):
    """A linear loss: what a step costs a person is how long their row is."""
    outlier = (np.full((1, 3), 5.0, np.float32),)
    return PLAN.fit(
        lambda params, record: jnp.sum(params * record[0]),
        jnp.zeros(3),
        (np.concatenate([people(60)[0], outlier[0]]),),
        holdout=holdout,
        members=60,
        watch=outlier,
        seed=0,
    )


def test_a_holdout_of_others_is_noticed_and_one_of_the_same_is_not():
    alike, others = (fitted(people(60, size)).to_report() for size in (0.1, 0.3))
    assert not alike.shift.warns
    assert others.shift.warns
    assert WARNING not in page(alike)
    assert WARNING in page(others)
    assert Shift.from_dict(others.shift.to_dict()) == others.shift


def test_an_outlier_breaks_the_bayesian_promise_while_dp_holds():
    run = fitted(people(60))
    losses = {one.notion: one.epsilon for one in run.guarantees}
    assert losses["bdp"] < losses["per-instance"] / 2  # whom it is not made to
    assert min(losses["per-instance"], losses["dp"]) == pytest.approx(losses["dp"], rel=0.1)
    assert OUTLIERS in page(run.to_report())
