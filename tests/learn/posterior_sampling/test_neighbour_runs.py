"""Neighbouring runs against retraining by hand with the same randomness, and posteriors known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdp.errors import InputError
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.posterior_sampling.neighbour_runs import NeighbourRuns
from bayesdp.learn.posterior_sampling.witness_groups import WitnessGroups
from bayesdp.learn.vi.guide import Guide
from bayesdp.mechanism.sampling import poisson_fold

RATE, STEPS, RECORDS, LEARNING, MOMENTUM = 0.3, 12, 20, 0.2, 0.9


def regression(dim):
    """Linear regression, y ~ N(zᵀx, 1), z ~ N(0, I): its posterior is N(Λ⁻¹Xᵀy, Λ⁻¹), Λ = I + XᵀX."""
    return Probabilistic(
        dim=dim,
        start=jnp.zeros(dim),
        log_prior=lambda z: -jnp.sum(z**2) / 2,
        log_likelihood=lambda z, record: -((record[1] - record[0] @ z) ** 2) / 2,
        constrain=lambda z: z,
        labels=tuple(f"z[{i}]" for i in range(dim)),
    )


def exact(x, y):
    precision = np.eye(x.shape[1]) + x.T @ x
    return np.linalg.solve(precision, x.T @ y), precision


def records(count, dim, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, dim))
    return x, x @ np.arange(1.0, dim + 1) / dim + rng.normal(size=count)


def randomness(key, steps, count):
    """ω of every step as the program draws it: noise, who is in the batch, and the coins of outsiders."""
    drawn = {"sampling_rate": RATE, "count": RECORDS, "capacity": RECORDS, "microbatch": 16}

    def mark(seen, indices, mask):
        return seen.at[indices].max(mask)

    def one(number):
        draws, batch, coins = jax.random.split(jax.random.fold_in(key, number), 3)
        seen = poisson_fold(batch, mark, jnp.zeros(RECORDS, bool), **drawn)
        return jax.random.normal(draws, (2, 2)), seen, jax.random.bernoulli(coins, RATE, (count,))

    return list(zip(*map(np.asarray, jax.jit(jax.vmap(one))(jnp.arange(steps))), strict=True))


def slope(theta, noise, x, y, rate):
    """∇(−ELBO/N) of the regression under a full-rank guide in two dimensions, worked out by hand."""
    mean, below, scale = theta[:2], theta[2], np.exp(theta[3:])
    factor = np.array([[scale[0], 0], [below, scale[1]]])
    z = mean + noise @ factor.T
    pull = (y - z @ x.T) @ x / rate - z  # ∂ log joint/∂z for each draw
    outer = np.einsum("ki,kj->ij", pull, noise) / len(noise)
    return -np.array([*pull.mean(axis=0), outer[1, 0], *(np.diag(outer) * scale + 1)]) / RECORDS


def retrained(start, data, omega, left_out=None, added=None, coin=None):
    """The trajectory on an explicit data set, in NumPy."""
    theta, speed, last = start, 0.0, []
    for noise, seen, coins in omega:
        batch = [i for i in np.flatnonzero(seen) if i != left_out]
        x, y = data[0][batch], data[1][batch]
        if added is not None and coins[coin]:
            x, y = np.vstack([x, added[0]]), np.append(y, added[1])
        speed = MOMENTUM * speed + slope(theta, noise, x, y, RATE)
        theta = theta - LEARNING * speed
        last.append(theta)
    return np.mean(last[-4:], axis=0)


def test_a_neighbouring_run_is_the_training_run_with_one_record_more_or_fewer():
    data, holdout = records(RECORDS, 2, 0), records(2, 2, 1)
    watch = tuple(leaf[3:4] for leaf in data)
    key = jax.random.key(11)
    with jax.enable_x64(True):
        guide, arrays = Guide("full-rank", 2), jax.tree.map(jnp.asarray, data)
        optimizer = optax.sgd(LEARNING, momentum=MOMENTUM)
        program = NeighbourRuns(regression(2), guide, optimizer, RATE, STEPS, num_particles=2, averaged=4)
        groups = WitnessGroups.of(arrays, holdout, np.array([5, 11]), watch)
        theta = np.asarray(program(key, arrays, groups.witnesses))
        omega = randomness(key, STEPS, 6)
        start = np.asarray(guide.start(jnp.zeros(2), 0.1))
    assert groups.sizes == {"absent": 2, "present": 2, "watched": 1, "fewer": 1}
    expected = [
        retrained(start, data, omega),
        retrained(start, data, omega, added=(holdout[0][0], holdout[1][0]), coin=0),
        retrained(start, data, omega, added=(holdout[0][1], holdout[1][1]), coin=1),
        retrained(start, data, omega, left_out=5),
        retrained(start, data, omega, left_out=11),
        retrained(start, data, omega, added=(data[0][3], data[1][3]), coin=4),
        retrained(start, data, omega, left_out=3),
    ]
    np.testing.assert_allclose(theta, expected, rtol=1e-11, atol=1e-12)
    assert len(np.unique(theta[:, 0])) == 7  # every witness was in some batch
    # A watched member costs the larger of one copy more and one fewer.
    costs = groups.costs(np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]))
    assert {name: rows.ravel().tolist() for name, rows in costs.items()} == {
        "absent": [1.0, 2.0],
        "present": [3.0, 4.0],
        "watched": [6.0],
    }


@pytest.mark.parametrize("kind", ["mean-field", "full-rank"])
def test_the_end_of_every_trajectory_is_the_posterior_of_its_own_data(kind):
    data, (x, y) = records(40, 2, 2), records(1, 2, 3)
    holdout = (x, y + 8)  # nobody like the others
    with jax.enable_x64(True):
        guide, arrays = Guide(kind, 2), jax.tree.map(jnp.asarray, data)
        optimizer = optax.adam(optax.cosine_decay_schedule(0.1, 800))
        program = NeighbourRuns(regression(2), guide, optimizer, 1.0, 800, num_particles=64, averaged=400)
        groups = WitnessGroups.of(arrays, holdout, np.array([4]), None)
        mean, spread = guide.moments(np.asarray(program(jax.random.key(0), arrays, groups.witnesses)))
    kept = np.arange(40) != 4
    added, removed = (np.vstack([data[0], holdout[0]]), np.append(data[1], holdout[1])), (data[0][kept], data[1][kept])
    truth = [exact(*one) for one in (data, added, removed)]
    for i, (middle, precision) in enumerate(truth):
        variance = 1 / np.diag(precision) if kind == "mean-field" else np.linalg.inv(precision)
        np.testing.assert_allclose(mean[i], middle, atol=0.02 / np.sqrt(precision[0, 0]))
        np.testing.assert_allclose(spread[i], variance, rtol=0.03, atol=3e-4)
    # The noise of the draws is the same in all trajectories, so their differences are far more exact.
    np.testing.assert_allclose(mean[1] - mean[0], truth[1][0] - truth[0][0], rtol=0.03, atol=3e-4)
    np.testing.assert_allclose(mean[2] - mean[0], truth[2][0] - truth[0][0], rtol=0.03, atol=3e-4)


def test_forgetful_neighbours_take_one_step_from_the_run():
    data, holdout, key = records(RECORDS, 2, 0), records(3, 2, 1), jax.random.key(1)
    with jax.enable_x64(True):
        guide, arrays = Guide("full-rank", 2), jax.tree.map(jnp.asarray, data)
        program = NeighbourRuns(regression(2), guide, optax.sgd(LEARNING), RATE, 3, num_particles=2, forgetful=True)
        groups = WitnessGroups.of(arrays, holdout, np.zeros(0, int), None)
        every = np.asarray(program(key, arrays, groups.witnesses))
        omega = randomness(key, 3, 3)
        theta = np.asarray(guide.start(jnp.zeros(2), 0.1))
    for number, (noise, seen, _) in enumerate(omega):
        x, y = data[0][seen], data[1][seen]
        step = theta - LEARNING * slope(theta, noise, x, y, RATE)
        np.testing.assert_allclose(every[number, 0], step, rtol=1e-11, atol=1e-12)
        for i in range(3):  # with the record for certain, whatever its coin, and from where the run is
            more, label = np.vstack([x, holdout[0][i]]), np.append(y, holdout[1][i])
            np.testing.assert_allclose(
                every[number, 1 + i], theta - LEARNING * slope(theta, noise, more, label, RATE), rtol=1e-11, atol=1e-12
            )
        theta = step


def test_a_watched_record_loses_each_of_its_copies_in_turn():
    """Equal rows have coins of their own: which of them is the person's is not known, so the worst counts."""
    x, y = records(5, 2, 0)
    data = (np.vstack([x, x[:2], x[:1]]), np.concatenate([y, y[:2], y[:1]]))
    watch = (x[[0, 3, 1, 4]] + np.array([[0.0], [0.0], [0.0], [1.0]]), y[[0, 3, 1, 4]])
    with jax.enable_x64(True):
        groups = WitnessGroups.of(data, None, np.array([2]), watch)
    assert groups.sizes == {"absent": 0, "present": 1, "watched": 4, "fewer": 6}
    assert groups.witnesses.place.tolist() == [2, -1, -1, -1, -1, 0, 5, 7, 3, 1, 6]
    assert groups.witnesses.adds.tolist() == [0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    costs = groups.costs(np.array([[0.5], [1.0], [2.0], [3.0], [4.0], [0.1], [7.0], [0.2], [0.3], [0.4], [5.0]]))
    assert costs["watched"].ravel().tolist() == [7.0, 2.0, 5.0, 4.0]


def test_an_outsider_in_the_place_of_a_member():
    data, holdout = records(5, 2, 0), records(2, 2, 1)
    groups = WitnessGroups.of(data, holdout, np.array([4, 1]), None, exchange=True)
    assert groups.sizes == {"exchanged": 2, "present": 0, "watched": 0, "fewer": 0}
    assert (groups.witnesses.place.tolist(), groups.witnesses.adds.tolist()) == ([4, 1], [1, 1])
    assert list(groups.costs(np.ones((2, 1)))) == ["exchanged"]


def test_records_of_another_form_are_refused():
    data = records(4, 2, 0)
    with pytest.raises(InputError, match="Expected holdout to hold records of the same shape"):
        WitnessGroups.of(data, (np.zeros((3, 5)), np.zeros(3)), np.zeros(0, int), None)
    with pytest.raises(InputError, match="Expected watch to be a tree of the same form"):
        WitnessGroups.of(data, None, np.zeros(0, int), np.zeros((3, 2)))
    with pytest.raises(InputError, match="Expected holdout to hold arrays with the same number"):
        WitnessGroups.of(data, (np.zeros((3, 2)), np.zeros(4)), np.zeros(0, int), None)
