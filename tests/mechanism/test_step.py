"""What a step is made of: devices, witnesses, subsets, schedules. What leaves it: integration/test_whole_step.py."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
    record_mesh,
    seeded_key,
    spread,
)
from bayesdp.mechanism.step import Limits

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


def test_one_device_and_two_agree_when_everybody_is_taken():
    if jax.device_count() < 2:
        pytest.skip("JAX started with one device: run this folder alone, or set XLA_FLAGS")
    released = []
    for devices in (1, 2):
        step = step_for(1.0, devices=devices)
        run = jax.jit(lambda r, step=step: step(KEY, 0, PARAMS, r, clip_norm=CLIP, noise_std=0.0)[0])
        released.append(flat(run(spread(people(61), step.mesh))))
    assert np.allclose(*released, rtol=1e-4, atol=1e-5)


def test_witnesses_are_clipped_norms_in_order_whoever_was_sampled():
    x, y = people(7, seed=3)
    step = step_for(0.1)

    @jax.jit
    def both(records, witnesses):
        options = {"clip_norm": CLIP, "noise_std": 1.0}
        alone = step(KEY, 0, PARAMS, records, **options)[0]
        return *step(KEY, 0, PARAMS, records, witnesses=witnesses, **options), alone

    gradient, seen, alone = both(spread(people(), step.mesh), spread((x, y), step.mesh))
    sizes = [np.linalg.norm(flat(jax.grad(LOSS)(PARAMS, (x[i], y[i])))) for i in range(7)]
    assert np.allclose(seen.raw, sizes, rtol=1e-4)
    assert np.allclose(seen.distance, np.minimum(sizes, CLIP), rtol=1e-4)
    assert np.array_equal(flat(gradient), flat(alone))  # watching changes nothing


@pytest.mark.parametrize("smallest", [1, 10])
def test_mean_rule_distances_bound_what_the_witness_does(smallest):
    """The witness is the last record: drawn or not, its own effect on the step's batch is at most its distance."""
    update = Mean(smallest)
    step, (x, y) = step_for(0.2, update=update, microbatch=16), people(RECORDS + 1)
    records, witness = spread((x, y), step.mesh), spread((x[-1:], y[-1:]), step.mesh)
    fewer = dataclasses.replace(records, counts=spread((x[:-1], y[:-1]), step.mesh).counts)
    options = {"clip_norm": CLIP, "noise_std": 0.0, "witnesses": witness}
    run = jax.jit(lambda t, records: step(KEY, t, PARAMS, records, **options))
    drawn = 0
    for t in range(40):
        (full, seen), (less, _) = run(t, records), run(t, fewer)
        distance = seen.distance[0]
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


def test_looking_ahead_changes_the_time_alone():
    """The same batch, noise and update, whether a step's first microbatch was fetched beforehand or not."""
    rng = np.random.default_rng(0)
    data = (rng.normal(size=(300, 2)).astype(np.float32), rng.normal(size=300).astype(np.float32))
    mesh = record_mesh(jax.local_devices()[:1])
    step = PrivateStep(
        PerExample(lambda w, r: 0.5 * (r[0] @ w - r[1]) ** 2), (0.1, 0.3), (30.0, 90.0), microbatch=32, mesh=mesh
    )
    records, key, numbers = spread(data, mesh), jax.random.key(3), jnp.arange(12)
    phases = numbers % 2
    assert step.steps_ahead(records) == 64
    assert dataclasses.replace(step, microbatch=2**20).steps_ahead(records) == 1

    def one(number, phase, ahead):
        return step(key, number, jnp.ones(2), records, clip_norm=1.0, noise_std=0.5, phase=phase, ahead=ahead)[0]

    plain = jax.lax.map(lambda now: one(*now, None), (numbers, phases))
    for params in (None, jnp.ones(2)):  # noise drawn by each step, or beforehand as well
        ahead = step.draw_ahead(key, numbers, phases, records, params=params)
        assert (ahead.normals is None) == (params is None)
        found = jax.lax.map(lambda now: one(*now), (numbers, phases, ahead))
        np.testing.assert_allclose(found, plain, atol=1e-6)
    wide = jax.eval_shape(lambda: step.draw_ahead(key, numbers, phases, records, params=jnp.ones(2**20)))
    assert wide.normals is None
    more = dataclasses.replace(step, microbatch=None).draw_ahead(
        key, jnp.arange(2000), jnp.zeros(2000, int), records, 4
    )
    assert more.first.mask.sum(1).mean() == pytest.approx(30, abs=0.5)
    assert (more.first.last == 300).mean() > 0.99


def test_limits_shorten_each_record_and_end_its_part_at_its_own_step():
    x, y = people()
    step = step_for(1.0, limited=True)
    whole = step_for(1.0)
    norms = np.asarray(whole.witness_norms(PARAMS, spread((x, y), step.mesh), CLIP).clipped)
    limits = (norms * np.linspace(0.2, 1.5, RECORDS)).astype(np.float32)
    until = np.arange(RECORDS, dtype=np.int32) % 3
    run = jax.jit(lambda number, records: step(KEY, number, PARAMS, records, clip_norm=CLIP, noise_std=0.0)[0])
    for number in range(3):
        released = flat(run(number, spread(((x, y), Limits(limits, until)), step.mesh)))
        expected = 0.0
        for i in np.flatnonzero(until > number):
            alone = flat(BookKeeping(LOSS).clip_sum(PARAMS, (x[i : i + 1], y[i : i + 1]), jnp.ones(1, bool), CLIP)[0])
            expected = expected + alone * min(1, limits[i] / norms[i])
        assert np.allclose(released, expected, atol=1e-5)


def test_limits_that_nobody_reaches_change_nothing_also_when_batches_are_drawn_ahead():
    x, y = people()
    plain, limited = step_for(0.3, devices=1), step_for(0.3, devices=1, limited=True)
    wide = Limits(np.full(RECORDS, 9, np.float32), np.full(RECORDS, 100, np.int32))
    pairs = [(plain, spread((x, y), plain.mesh)), (limited, spread(((x, y), wide), plain.mesh))]
    seen = []
    for step, records in pairs:
        assert step.steps_ahead(records) > 1

        def run(records, step=step):
            ahead = step.draw_ahead(KEY, jnp.arange(5, 6), jnp.zeros(1, int), records)
            first = jax.tree.map(lambda leaf: leaf[0], ahead)
            return step(KEY, 5, PARAMS, records, clip_norm=CLIP, noise_std=0.1, ahead=first)[0]

        seen.append(flat(jax.jit(run)(records)))
    assert np.allclose(*seen, atol=1e-6)


def test_no_witness_of_the_mean_rule_is_said_to_move_farther_than_a_record_can():
    """By the triangle inequality alone small batches would say so, and accountants refuse it."""
    x, y = people(12, seed=5)
    step = step_for(0.2, devices=1, update=Mean(2))
    most = float(step.update.sensitivity(CLIP))
    records, run = spread((50 * x, y), step.mesh), jax.jit(
        lambda number, records: step(KEY, number, PARAMS, records, clip_norm=CLIP, noise_std=0.0, witnesses=records)[1]
    )  # fmt: skip
    farthest = max(float(run(number, records).distance.max()) for number in range(40))
    assert 0.9 * most < farthest <= most * (1 + 1e-6)
