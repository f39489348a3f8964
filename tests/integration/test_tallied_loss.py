"""The tallied loss against the true one on a model small enough to retrain by hand and to integrate exactly (H6)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bayesdp.learn.models.density import NormalPrior
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI
from bayesdp.mechanism.key import seeded_key
from bayesdp.mechanism.sampling import poisson_fold

RATE, STEPS, RECORDS, OUTSIDERS, LEARNING, DELTA, SEED = 0.5, 12, 10, 14, 0.3, 1e-2, 5
PLAN = PosteriorVI(
    sampling_rate=RATE,
    steps=STEPS,
    optimizer=optax.sgd(LEARNING),
    samples=2,
    averaged_fraction=0.25,
    initial_scale=0.2,
    delta=DELTA,
    coverage=0.5,
    failure=0.1,
)
MODEL = (NormalPrior(np.zeros(1, np.float32), 100.0), lambda z, x: -((x - z[0]) ** 2) / 2)
"""x ~ N(z, 1), z ~ N(0, 10²)."""

DATA = np.random.default_rng(0).normal(size=RECORDS).astype(np.float32)
OTHERS = np.random.default_rng(1).standard_t(2, size=OUTSIDERS).astype(np.float32)  # some of them far out


def randomness(witnesses):
    """ω as the run of SEED draws it: a normal, who is in the batch, and the coins of all witnesses, step by step."""

    def one(key):
        draws, batch, coins = jax.random.split(key, 3)
        seen = poisson_fold(
            batch, lambda seen, indices, mask: seen.at[indices].max(mask), jnp.zeros(RECORDS, bool),
            sampling_rate=RATE, count=RECORDS, capacity=RECORDS, microbatch=16,
        )  # fmt: skip
        return jax.random.normal(draws, (1, 1))[0, 0], seen, jax.random.bernoulli(coins, RATE, (witnesses,))

    with jax.enable_x64(True):
        train, _ = jax.random.split(seeded_key(SEED))
        keys = jax.vmap(lambda number: jax.random.fold_in(train, number))(jnp.arange(STEPS))
        return [np.asarray(part) for part in jax.jit(jax.vmap(one))(keys)]


def trained(omega, *, without=None, added=None, coin=None, instead=None):
    """(mean, variance) of the guide trained on DATA, changed as told, in NumPy: ∇ELBO/N by hand."""
    mean, log_scale, last = 0.0, np.log(0.2), []
    for noise, seen, coins in zip(*omega, strict=True):
        z = mean + np.exp(log_scale) * noise
        batch = [float(DATA[i]) for i in np.flatnonzero(seen) if i != without]
        if added is not None and coins[coin]:
            batch.append(float(added))
        if instead is not None and seen[without]:
            batch.append(float(instead))
        pull = sum(x - z for x in batch) / RATE - z / 100
        mean += LEARNING * pull / RECORDS
        log_scale += LEARNING * (pull * noise * np.exp(log_scale) + 1) / RECORDS
        last.append((mean, log_scale))
    mean, log_scale = np.mean(last[-3:], axis=0)
    return mean, np.exp(2 * log_scale)


def softened(plan, pair):
    return pair[0], plan.temper * pair[1] + plan.extra_std**2


def excess(epsilon, one, other, samples):
    """E[(1 - e^{ε - L})₊] of L = Σ_j log p(w_j)/p'(w_j) over one or two draws of p = N(one), by summing over a grid."""
    (m0, v0), (m1, v1) = one, other
    w = m0 + np.sqrt(v0) * np.linspace(-9, 9, 4001)
    loss = (w - m1) ** 2 / (2 * v1) - (w - m0) ** 2 / (2 * v0) + np.log(v1 / v0) / 2
    mass = np.exp(-((w - m0) ** 2) / (2 * v0))
    mass /= mass.sum()
    if samples == 1:
        return mass @ -np.expm1(np.minimum(epsilon - loss, 0))
    order = np.argsort(loss)
    above = np.append(np.cumsum(mass[order][::-1])[::-1], 0.0)
    lighter = np.append(np.cumsum((mass * np.exp(-loss))[order][::-1])[::-1], 0.0)
    first = np.searchsorted(loss[order], epsilon - loss)
    return float(mass @ (above[first] - np.exp(epsilon - loss) * lighter[first]))


def check(plan, books, run, neighbours):
    """Every witness, both directions: the hockey stick at its ε is at most δ, after one and two samples."""
    run = softened(plan, run)
    tight = []
    for samples in (1, 2):
        for book in books.values():
            book.step()
        for name, book in books.items():
            epsilons = book.epsilon(DELTA)
            assert len(epsilons) == len(neighbours[name])
            for epsilon, neighbour in zip(epsilons, neighbours[name], strict=True):
                ways = (run, softened(plan, neighbour)), (softened(plan, neighbour), run)
                assert max(excess(epsilon, *way, samples) for way in ways) <= DELTA * (
                    1 + 1e-3
                )  # ε is its exact inverse
                tight.append(max(excess(epsilon / 2, *way, samples) for way in ways))
    assert np.mean(np.array(tight) > DELTA) > 0.5  # half of it would not do


def test_the_tallied_loss_bounds_the_true_one_for_outsiders_and_members():
    plan = dataclasses.replace(PLAN, temper=2.0, extra_std=0.1)
    posterior = plan.fit(MODEL, DATA, holdout=OTHERS, members=RECORDS, seed=SEED)
    omega = randomness(OUTSIDERS + RECORDS)
    neighbours = {
        "absent": [trained(omega, added=x, coin=i) for i, x in enumerate(OTHERS)],
        "present": [trained(omega, without=i) for i in range(RECORDS)],
    }
    people = posterior._account.population
    check(plan, people.sides, trained(omega), neighbours)
    promise = posterior._account.population.guarantee(DELTA)
    assert promise.orientation == "both"
    assert any("counted, not estimated" in words for words in promise.assumptions)  # all members have a run (H16)
    # Whoever is covered has a true loss below the one number that is promised to all of them.
    epsilon = people.guarantee(DELTA).epsilon
    covered = [side.epsilon(DELTA) <= epsilon for side in people.sides.values()]
    assert min(one.mean() for one in covered) >= 0.5
    for neighbour, inside in zip([*neighbours["absent"], *neighbours["present"]], np.concatenate(covered), strict=True):
        if inside:
            assert excess(epsilon, softened(plan, trained(omega)), softened(plan, neighbour), 2) <= DELTA


def test_for_replace_one_each_outsider_takes_the_place_of_a_member():
    plan = dataclasses.replace(PLAN, adjacency="replace-one")
    posterior = plan.fit(MODEL, DATA, holdout=OTHERS, seed=SEED)
    omega, places = randomness(OUTSIDERS), np.random.default_rng(SEED).integers(RECORDS, size=OUTSIDERS)
    neighbours = [trained(omega, without=i, instead=x) for i, x in zip(places, OTHERS, strict=True)]
    check(plan, posterior._account.population.sides, trained(omega), {"exchanged": neighbours})
    bdp = posterior._account.population.guarantee(DELTA)
    assert (bdp.adjacency, bdp.orientation) == ("replace-one", "both")
    assert any("one of pairs" in words for words in bdp.assumptions)
    assert {one.adjacency for one in posterior.guarantees} == {"replace-one"}
    assert "14 pairs of a member and an outsider" in posterior.to_report().record
