"""A person with many rows joins the data: how far the release moves, simulated through the real step, against what is
promised; and that accounting by rows of the same plan promises too little.

    others have gradient 0, the person eight rows of gradient 1:    by people  min(8, C) B,   by rows  Σ_k B_k,   C = 1

B are coins of chance q. In one dimension the hockey stick is reached on a half line {release > c}, so that it can be
computed exactly (a mixture of normals) and counted in what the step released.
"""

import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from scipy import stats

from bayesdp import SGD, People, WorstCaseAccountant
from bayesdp.mechanism import PeopleLoss, PerExample, PrivateStep, record_mesh, seeded_key, spread

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("compile_quickly")]

RATE, NOISE, ROWS, OTHERS, PATHS, DELTA = 0.4, 1.2, 8, 6, 25_000, 0.05
VALUES = np.array([0.0] * OTHERS + [1.0] * ROWS, np.float32)
OWNERS = np.array([*range(OTHERS), *[OTHERS] * ROWS])


def loss(w, row):
    return w * row


@cache
def promised():
    """What the plan of one step promises, whoever a record is."""
    plan = WorstCaseAccountant(engine="pld")
    plan.step(noise_multiplier=NOISE, sampling_rate=RATE)
    return plan.guarantee(DELTA).epsilon


@cache
def released(by_people, with_person):
    """What leaves in each of many independent steps."""
    values, owners = (VALUES, OWNERS) if with_person else (VALUES[:OTHERS], OWNERS[:OTHERS])
    data = People.of(values, owners, most=ROWS, seed=0) if by_people else values
    mesh = record_mesh()
    step = PrivateStep(PerExample(PeopleLoss(loss) if by_people else loss, "vmap"), RATE, 1.0, mesh=mesh)

    def one(records, t):
        gone = step(seeded_key(3 + with_person), t, jnp.float32(0), records, clip_norm=1.0, noise_std=NOISE)[0]
        return records, gone

    every = jax.jit(lambda records: lax.scan(one, records, jnp.arange(PATHS))[1])(spread(data, mesh))
    return np.asarray(every, np.float64)


def law(by_people, with_person):
    """The shifts of the release and their chances."""
    if not with_person:
        return np.zeros(1), np.ones(1)
    shifts = np.arange(2 if by_people else ROWS + 1)
    return shifts, stats.binom.pmf(shifts, 1 if by_people else ROWS, RATE)


def chance_above(cut, by_people, with_person):
    shifts, chances = law(by_people, with_person)
    return stats.norm.sf((cut - shifts[:, None]) / NOISE).T @ chances


def excess(by_people, epsilon):
    """Sup over half lines of Pr[with] - e^ε Pr[without], exactly, and the half line."""
    cuts = np.linspace(-8, 16, 4801)
    gap = chance_above(cuts, by_people, True) - np.exp(epsilon) * chance_above(cuts, by_people, False)
    return gap.max(), cuts[gap.argmax()]


def counted(by_people, epsilon, cut):
    """The same in what the step released, and its standard error."""
    inside, outside = ((released(by_people, here) > cut).mean() for here in (True, False))
    error = np.sqrt((inside + np.exp(2 * epsilon) * outside) / PATHS)
    return inside - np.exp(epsilon) * outside, error


def test_a_person_with_many_rows_moves_the_release_as_promised_and_no_farther():
    epsilon = promised()
    true, cut = excess(True, epsilon)
    assert 0.95 * DELTA < true <= DELTA  # the worst case is reached: all rows together are clipped at the norm
    seen, error = counted(True, epsilon, cut)
    assert seen == pytest.approx(true, abs=4 * error)
    assert seen <= DELTA + 4 * error
    assert 4 * error < DELTA / 2


def test_accounting_by_rows_of_the_same_plan_promises_too_little_to_that_person():
    epsilon = promised()
    true, cut = excess(False, epsilon)
    seen, error = counted(False, epsilon, cut)
    assert seen == pytest.approx(true, abs=4 * error)
    assert seen - 4 * error > 8 * DELTA


def test_the_three_notions_of_a_fit_are_those_of_people():
    """Every person is at the clip norm in every step: then a tally of people is one of ones, and by rows it is not."""
    plan = SGD(
        clip_norm=1.0,
        sampling_rate=RATE,
        steps=5,
        noise_multiplier=3.0,
        optimizer=optax.sgd(0.0),
        delta=1e-3,
        engine="rdp",
        coverage=0.5,
    )
    people = People.of(np.full(60, 0.25, np.float32), np.repeat(np.arange(15), 4), most=4, seed=0)
    run = plan.fit(loss, jnp.float32(0), people, holdout=people, watch=people, members=15, seed=0)
    by_rows = plan.fit(loss, jnp.float32(0), people.all_rows, holdout=people.all_rows, watch=people.all_rows, seed=0)
    dp, bdp, single = run.guarantees
    assert {one.unit for one in run.guarantees} == {"person"}
    assert dp.epsilon == by_rows.guarantees[0].epsilon
    assert bdp.no_better
    assert single.no_better
    assert run.records == 15
    np.testing.assert_allclose(run.losses(), run.losses()[0])
    assert by_rows.losses().max() < run.losses().min() / 2  # a row at a quarter of the norm, as if it came alone
    assert not any(re.search(r"\brecords?\b", f"{one} {one.assumptions}") for one in run.guarantees)
