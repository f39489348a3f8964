"""One whole step, end to end: what leaves, how it is distributed, and how far one record moves it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import stats

from bayesdp import InputError
from bayesdp.mechanism import (
    Activation,
    BookKeeping,
    Dense,
    Mean,
    ModelLoss,
    PerExample,
    PrivateStep,
    Sequential,
    Sum,
    record_mesh,
    seeded_key,
    spread,
)

RECORDS, FEATURES, CLIP = 60, 5, 0.4
KEY = seeded_key(11)
MODEL = Sequential((Dense(4), Activation("tanh"), Dense(1)))
PARAMS = MODEL.init(jax.random.key(0), (FEATURES,))
LOSS = ModelLoss(MODEL, lambda output, y: 0.5 * jnp.sum((output - y) ** 2))


def people(count=RECORDS, seed=0):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(RECORDS + 5, FEATURES)) * rng.weibull(0.7, (RECORDS + 5, 1))).astype(np.float32)
    return x[:count], x[:count].sum(1, keepdims=True) + 1


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]).astype(np.float64)


def step_for(rate, engine=None, devices=None, **options):
    mesh = record_mesh(jax.devices()[:devices] if devices else None)
    return PrivateStep(engine or BookKeeping(LOSS, 4), rate, options.pop("normaliser", 1.0), mesh=mesh, **options)


@partial(jax.jit, static_argnames=("step", "steps"))
def scan_steps(records, step, steps, clip_norm, noise_std):
    def one(carry, t):
        return carry, step(KEY, t, PARAMS, records, clip_norm=clip_norm, noise_std=noise_std)[0]

    return lax.scan(one, None, jnp.arange(steps))[1]


def releases(step, data, steps, clip_norm, noise_std):
    """Flat released gradients of the first `steps` steps, all inside one compiled scan."""
    stacked = scan_steps(spread(data, step.mesh), step, steps, clip_norm, noise_std)
    return np.concatenate([np.asarray(leaf).reshape(steps, -1) for leaf in jax.tree.leaves(stacked)], axis=1)


@pytest.mark.parametrize(
    "engine", [BookKeeping(LOSS, 4), PerExample(LOSS, "scan"), PerExample(LOSS, "vmap")], ids=["books", "scan", "vmap"]
)
def test_without_noise_and_clipping_everybody_gives_the_plain_gradient(engine):
    data = people()
    step = step_for(1.0, engine, normaliser=RECORDS)
    wanted = jax.grad(lambda p: jnp.mean(jax.vmap(LOSS, (None, 0))(p, data)))(PARAMS)
    ours = releases(step, data, 1, clip_norm=None, noise_std=0.0)[0]
    assert np.allclose(ours, flat(wanted), rtol=1e-4, atol=1e-5)


def test_the_noise_has_its_standard_deviation_with_sampling_on_and_no_other():
    steps, std, normaliser = 400, 0.8, 12.0
    step = step_for(0.2, normaliser=normaliser)
    noisy, silent = (releases(step, people(), steps, clip_norm=CLIP, noise_std=s) for s in (std, 0.0))
    noise = ((noisy - silent) * normaliser / std).ravel()
    assert stats.kstest(noise, "norm").pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(noise / wrong, "norm").pvalue < 1e-12
    correlations = np.corrcoef(noise.reshape(steps, -1).T)[np.triu_indices(flat(PARAMS).size, 1)] * np.sqrt(steps)
    assert np.abs(correlations).max() < 4.5


def test_the_normaliser_is_public_and_the_expected_release_is_the_clipped_mean():
    rate, steps = 0.2, 3000
    released = releases(step_for(rate, normaliser=rate * RECORDS), people(), steps, clip_norm=CLIP, noise_std=0.0)
    everybody = releases(step_for(1.0, normaliser=RECORDS), people(), 1, clip_norm=CLIP, noise_std=0.0)[0]
    errors = (released.mean(0) - everybody) / (released.std(0) / np.sqrt(steps) + 1e-9)
    assert np.abs(errors).max() < 4.5
    assert np.ptp(np.linalg.norm(released, axis=1)) > 0  # batches differ


@pytest.mark.parametrize("update", [Sum(), Mean(1), Mean(8)], ids=repr)
def test_one_record_moves_a_step_by_at_most_the_sensitivity_with_sampling_on(update):
    step, steps = step_for(0.3, update=update, microbatch=16), 300  # the same draws whatever the number of records
    x, y = people(RECORDS + 1)
    bound = update.sensitivity(CLIP) * (1 + 1e-5) + 1e-6
    settings = {"clip_norm": CLIP, "noise_std": 0.0}
    with_it, without_it = releases(step, (x, y), steps, **settings), releases(step, (x[:-1], y[:-1]), steps, **settings)
    moved = np.linalg.norm(with_it - without_it, axis=1)
    assert moved.max() <= bound
    assert (moved > 1e-6).mean() == pytest.approx(0.3, abs=0.11)  # it enters with the sampling rate
    replaced_x, replaced_y = x.copy(), y.copy()
    replaced_x[7], replaced_y[7] = -100 * x[7], 1e3
    moved = np.linalg.norm(releases(step, (replaced_x, replaced_y), steps, **settings) - with_it, axis=1)
    assert moved.max() <= 2 * bound
    if isinstance(update, Sum):
        assert moved.max() > bound
        assert (moved > 1e-6).mean() == pytest.approx(0.3, abs=0.11)


def test_an_empty_batch_releases_noise_only():
    silent = releases(step_for(0.01), people(), 200, clip_norm=CLIP, noise_std=0.0)
    empty = ~np.any(silent, axis=1)
    assert empty.mean() == pytest.approx(0.99**RECORDS, abs=0.12)
    noisy = releases(step_for(0.01), people(), 200, clip_norm=CLIP, noise_std=1.0)
    assert stats.kstest(noisy[empty].ravel(), "norm").pvalue > 1e-3


def test_one_device_and_two_agree_when_everybody_is_taken():
    if jax.device_count() < 2:
        pytest.skip("JAX started with one device: run this folder alone, or set XLA_FLAGS")
    one, two = (releases(step_for(1.0, devices=d), people(61), 1, clip_norm=CLIP, noise_std=0.0) for d in (1, 2))
    assert np.allclose(one, two, rtol=1e-4, atol=1e-5)


def test_witnesses_are_clipped_norms_in_order_whoever_was_sampled():
    x, y = people(7, seed=3)
    step = step_for(0.1)
    run = jax.jit(lambda r, w: step(KEY, 0, PARAMS, r, clip_norm=CLIP, noise_std=1.0, witnesses=w))
    gradient, seen = run(spread(people(), step.mesh), spread((x, y), step.mesh))
    sizes = [np.linalg.norm(flat(jax.grad(LOSS)(PARAMS, (x[i], y[i])))) for i in range(7)]
    assert np.allclose(seen.raw, sizes, rtol=1e-4)
    assert np.allclose(seen.distance, np.minimum(sizes, CLIP), rtol=1e-4)
    alone = jax.jit(lambda r: step(KEY, 0, PARAMS, r, clip_norm=CLIP, noise_std=1.0)[0])(spread(people(), step.mesh))
    assert np.array_equal(flat(gradient), flat(alone))  # watching changes nothing


@pytest.mark.parametrize("smallest", [1, 10])
def test_mean_rule_distances_bound_what_the_witness_does(smallest):
    """The witness is the last record: drawn or not, its own effect on the step's batch is at most its distance."""
    update = Mean(smallest)
    step, (x, y) = step_for(0.2, update=update, microbatch=16), people(RECORDS + 1)
    records, fewer = spread((x, y), step.mesh), spread((x[:-1], y[:-1]), step.mesh)
    witness = spread((x[-1:], y[-1:]), step.mesh)

    @jax.jit
    def both(step_number, records, fewer, witness):
        options = {"clip_norm": CLIP, "noise_std": 0.0}
        full, seen = step(KEY, step_number, PARAMS, records, witnesses=witness, **options)
        return full, step(KEY, step_number, PARAMS, fewer, **options)[0], seen.distance[0]

    drawn = 0
    for t in range(40):
        full, less, distance = both(t, records, fewer, witness)
        moved = np.linalg.norm(flat(full) - flat(less))
        drawn += moved > 1e-7
        assert moved <= float(distance) * (1 + 1e-4) + 1e-6
        assert float(distance) <= 1.2 * update.sensitivity(CLIP) + CLIP / smallest
    assert drawn > 2


def test_a_subset_moves_only_its_weights_and_witnesses_use_the_same_one():
    step = step_for(1.0, subset_fraction=0.4)
    records, witness = spread(people(), step.mesh), spread(people(3), step.mesh)
    run = jax.jit(lambda t: step(KEY, t, PARAMS, records, clip_norm=None, noise_std=0.5, witnesses=witness))
    patterns = []
    for t in range(3):
        gradient, seen = run(t)
        moved = flat(gradient) != 0
        patterns.append(moved)
        x, y = people(3)
        own = [np.linalg.norm(flat(jax.grad(LOSS)(PARAMS, (x[i], y[i]))) * moved) for i in range(3)]
        assert np.allclose(seen.distance, own, rtol=1e-4)
    assert 0.15 < np.mean(patterns) < 0.65
    assert np.any(patterns[0] != patterns[1])


def test_schedules_may_be_traced_and_one_compilation_serves_all_steps():
    step, traced = step_for(0.3), []
    records = spread(people(), step.mesh)

    @jax.jit
    def run(t, clip, std):
        traced.append(1)
        return step(KEY, t, PARAMS, records, clip_norm=clip, noise_std=std)[0]

    small, large = (np.linalg.norm(flat(run(0, clip, 0.0))) for clip in (0.01, 0.4))
    assert small < 0.2 * large
    assert len({flat(run(t, 0.4, 1.0)).tobytes() for t in range(10)}) == 10
    assert len(traced) == 1


def test_no_key_is_used_twice():
    step = step_for(0.3, subset_fraction=0.5)
    records = spread(people(), step.mesh)
    with jax.debug_key_reuse(True):
        run = jax.jit(lambda key, t: step(key, t, PARAMS, records, clip_norm=CLIP, noise_std=1.0)[0])
        assert np.isfinite(flat(run(seeded_key(1), 0))).all()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sampling_rate": 1.1}, "sampling_rate"),
        ({"normaliser": 0.0}, "normaliser"),
        ({"subset_fraction": 0.0}, "subset_fraction"),
        ({"microbatch": 0}, "microbatch"),
    ],
)
def test_bad_input(change, word):
    with pytest.raises(InputError, match=word):
        PrivateStep(**({"gradients": PerExample(LOSS), "sampling_rate": 0.1, "normaliser": 1.0} | change))
    with pytest.raises(InputError, match="smallest_batch"):
        Mean(0)
