"""One whole step, sampling on, against the formula on the very batch that was drawn:

    released = (Σ_{x in B} clip(g_x) / denominator + N(0, s²)) / L

Which records a step drew is asked of the sampler with the step's own key; all else is computed by hand. Every case is
compiled once and then asked for the sums, the noise, and the sums of neighbouring data.
"""

import dataclasses
import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from scipy import stats

from bayesdp.learn import SGD
from bayesdp.mechanism import (
    Activation,
    Automatic,
    BookKeeping,
    Dense,
    Mean,
    ModelLoss,
    PerExample,
    PrivateStep,
    Sequential,
    Sum,
    clip_rule,
    poisson_fold,
    record_mesh,
    seeded_key,
    spread,
    step_keys,
)

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("compile_quickly")]

PLACES, PEOPLE, FEATURES, STEPS = 62, 61, 4, 400
KEY = seeded_key(11)
MODEL = Sequential((Dense(3), Activation("tanh"), Dense(1)))
PARAMS = MODEL.init(jax.random.key(0), (FEATURES,))
LOSS = ModelLoss(MODEL, lambda output, y: 0.5 * jnp.sum((output - y) ** 2))


@dataclasses.dataclass(frozen=True)
class Case:
    """How a step is taken."""

    engine: object
    update: object
    clip_norm: object
    rate: float = 0.3
    microbatch: int = 16
    normaliser: float = 18.3

    def step(self):
        return PrivateStep(
            self.engine, self.rate, self.normaliser, self.update, microbatch=self.microbatch, mesh=record_mesh()
        )


CASES = {
    "books, sum": Case(BookKeeping(LOSS, 4), Sum(), 0.4),
    "books, mean, per layer, many microbatches": Case(BookKeeping(LOSS, 4), Mean(14), (0.3, 0.2), microbatch=3),
    "any loss, mean, automatic": Case(PerExample(LOSS, "scan"), Mean(1), Automatic(0.4, 0.02), normaliser=1.0),
    "any loss as on a GPU, not clipped": Case(PerExample(LOSS, "vmap"), Sum(), None),
    "books as on a GPU, hardly anybody": Case(BookKeeping(LOSS, 16), Sum(), 0.4, rate=0.02),
}


def people(count=PEOPLE):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(PLACES, FEATURES)) * rng.weibull(0.7, (PLACES, 1))).astype(np.float32)
    x[PLACES - 2 :] *= 10  # those who come and go are clipped
    return x[:count], x[:count].sum(1, keepdims=True) + 1


def dealt(data):
    """`data` spread out with `PLACES` places, so that one compilation serves neighbouring data sets."""
    mesh = record_mesh()
    fill = PLACES - len(data[0])
    places = spread(
        jax.tree.map(lambda a: np.concatenate([a, np.full((fill, *a.shape[1:]), np.nan, a.dtype)]), data), mesh
    )
    return dataclasses.replace(places, counts=spread(data, mesh).counts)


@cache
def compiled(name):
    case = CASES[name]
    step = case.step()

    def one(carry, t):
        records, std = carry
        return carry, step(KEY, t, PARAMS, records, clip_norm=case.clip_norm, noise_std=std)[0]

    return jax.jit(lambda records, std: lax.scan(one, (records, std), jnp.arange(STEPS))[1])


def releases(name, data, std=0.0):
    """(steps, weights): what left in each step."""
    leaves = jax.tree.leaves(compiled(name)(dealt(data), jnp.float32(std)))
    return np.concatenate([np.asarray(leaf, np.float64).reshape(STEPS, -1) for leaf in leaves], axis=1)


@cache
def drawn(rate, microbatch, size, steps, places=PLACES):
    """(steps, records): who is in the batch of each step."""
    devices = jax.device_count()
    capacity = -(-places // devices)

    @jax.jit
    @jax.vmap
    def draw(t):
        def one(device):
            count = (size - device + devices - 1) // devices
            own = jax.random.fold_in(step_keys(KEY, t).sampling, device)
            settings = {"sampling_rate": rate, "count": count, "capacity": capacity, "microbatch": microbatch}
            return poisson_fold(own, lambda s, i, m: s.at[i].max(m), jnp.zeros(capacity, bool), **settings)

        return jax.vmap(one)(jnp.arange(devices))

    taken = np.asarray(draw(jnp.arange(steps)))
    return taken.transpose(0, 2, 1).reshape(steps, -1)[:, :size]


@cache
def gradients(count=PEOPLE):
    """(records, weights) in the order of the leaves, and which layer each weight is in; by autodiff."""
    tree = jax.jit(jax.vmap(jax.grad(LOSS), (None, 0)))(PARAMS, people(count))
    flat = [np.asarray(leaf, np.float64).reshape(count, -1) for leaf in jax.tree.leaves(tree)]
    layers = np.repeat([0, 0, 1, 1], [leaf.shape[1] for leaf in flat])
    return np.concatenate(flat, axis=1), layers


def clipped(g, layers, clip_norm):
    if clip_norm is None:
        return g
    if isinstance(clip_norm, Automatic):
        return clip_norm.norm * g / (np.linalg.norm(g, axis=1, keepdims=True) + clip_norm.gamma)
    if isinstance(clip_norm, tuple):
        parts = [clipped(g * (layers == i), layers, norm) for i, norm in enumerate(clip_norm)]
        return sum(parts)
    return g / np.maximum(1, np.linalg.norm(g, axis=1, keepdims=True) / clip_norm)


@pytest.mark.parametrize("name", CASES)
def test_a_whole_step(name):
    """In one test, because its program is compiled once."""
    without_noise_it_is_the_formula_on_the_batch_that_was_drawn(name)
    noise_has_its_standard_deviation_and_no_other_in_empty_batches_too(name)
    one_record_more_less_or_other_moves_it_by_at_most_the_sensitivity(name)


def without_noise_it_is_the_formula_on_the_batch_that_was_drawn(name):
    case = CASES[name]
    batches = drawn(case.rate, case.microbatch, PEOPLE, STEPS)
    sizes = batches.sum(1)
    least = case.update.smallest_batch if isinstance(case.update, Mean) else None
    denominator = 1 if least is None else np.maximum(sizes, least)[:, None]
    wanted = batches @ clipped(*gradients(), case.clip_norm) / denominator / case.normaliser
    ours = releases(name, people())
    assert np.abs(ours - wanted).max() <= 2e-5 * np.abs(wanted).max()
    assert sizes.mean() == pytest.approx(case.rate * PEOPLE, abs=5 * math.sqrt(case.rate * PEOPLE / STEPS))
    if "many microbatches" in name:
        assert sizes.min() > case.microbatch
        assert (sizes < least).any()
    if "hardly anybody" in name:
        assert (sizes == 0).mean() == pytest.approx(0.98**PEOPLE, abs=0.12)
        assert not ours[sizes == 0].any()


def noise_has_its_standard_deviation_and_no_other_in_empty_batches_too(name):
    std, case = 0.8, CASES[name]
    noise = (releases(name, people(), std) - releases(name, people())) * case.normaliser / std
    groups = [noise.ravel()]
    if "hardly anybody" in name:
        groups.append(noise[~releases(name, people()).any(1)].ravel())
    for drawn_noise in groups:
        assert stats.kstest(drawn_noise, "norm").pvalue > 1e-3
        for wrong in (2 / 3, 3 / 2):
            assert stats.kstest(drawn_noise / wrong, "norm").pvalue < 1e-12
    between_weights = np.corrcoef(noise.T)[np.triu_indices(noise.shape[1], 1)] * math.sqrt(STEPS)
    between_steps = np.sum(noise[1:] * noise[:-1]) / math.sqrt(noise[1:].size)
    assert np.abs(between_weights).max() < 4.5
    assert abs(between_steps) < 4.5


def one_record_more_less_or_other_moves_it_by_at_most_the_sensitivity(name):
    case = CASES[name]
    bound = float(case.update.sensitivity(clip_rule(case.clip_norm).sensitivity)) / case.normaliser * (1 + 1e-5) + 1e-6
    x, y = people()
    opposed = [np.where(np.arange(PEOPLE)[:, None] == 7, far, y) for far in (np.float32(-1e3), np.float32(1e3))]
    changes = {
        "added": (people(), people(PEOPLE + 1)),
        "removed": (people(), people(PEOPLE - 1)),
        "replaced": ((x, opposed[0]), (x, opposed[1])),
    }
    for change, (before, after) in changes.items():
        moved = np.linalg.norm(releases(name, after) - releases(name, before), axis=1)
        assert moved.max() <= (2 * bound if change == "replaced" else bound)
        assert (moved > 1e-7).mean() == pytest.approx(case.rate, abs=5 * math.sqrt(case.rate / STEPS))
        if isinstance(case.update, Sum) and math.isfinite(bound):  # which is reached
            assert moved.max() > 0.99 * (2 * bound if change == "replaced" else bound)


def fitted(data, loss, params, microbatch=16, **plan):
    plan = SGD(sampling_rate=0.3, engine="rdp", microbatch=microbatch, **plan)
    return plan.fit(loss, params, data, members=0, seed=11).params


def test_sgd_without_noise_and_clipping_is_plain_sgd_on_the_same_batches():
    steps, optimizer = 6, optax.sgd(0.05, momentum=0.9)
    ours = fitted(people(), LOSS, PARAMS, clip_norm=None, noise_multiplier=0.0, steps=steps, optimizer=optimizer)
    batches = drawn(0.3, 16, PEOPLE, STEPS)[:steps]
    assert batches.any(0).sum() < PEOPLE  # some never came, so that it matters who did

    @jax.jit
    def plain(params, state, batch):
        def loss(params):
            return jnp.sum(batch * jax.vmap(LOSS, (None, 0))(params, people())) / (0.3 * PEOPLE)

        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    params, state = PARAMS, optimizer.init(PARAMS)
    for batch in batches:
        params, state = plain(params, state, batch)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("update", [Sum(), Mean(5)], ids=repr)
def test_the_noise_of_sgd_is_the_multiplier_times_the_sensitivity_through_all_schedules(update):
    """A linear loss, whose gradients are the records: what the batches do not explain of the final weights is noise."""
    size, width, clip, multiplier = 40, 4000, 0.5, 0.7
    x = np.random.default_rng(1).normal(size=(size, width)).astype(np.float32)
    final = fitted(
        (x,),
        lambda params, example: params @ example[0],
        jnp.zeros(width),
        clip_norm=clip,
        clip_schedule=(1.0, 0.5),
        noise_multiplier=multiplier,
        noise_schedule=(1.0, 3.0),
        update=update,
        steps=2,
        optimizer=optax.sgd(1.0),
    )
    batches = drawn(0.3, 16, size, 2, places=size)
    sizes = batches.sum(1)
    directions = x / np.linalg.norm(x, axis=1, keepdims=True)
    sums = batches @ directions * [[clip], [clip / 2]]
    if isinstance(update, Sum):
        scale, sensitivity, sums = 0.3 * size, clip, sums / (0.3 * size)
    else:
        scale, sensitivity, sums = 1, 2 * clip / 6, sums / np.maximum(sizes, 5)[:, None]
    std = multiplier * sensitivity / scale * math.hypot(1.0, 3.0 * 0.5)
    noise = (np.asarray(final, np.float64) + sums.sum(0)) / std
    assert stats.kstest(noise, "norm").pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(noise / wrong, "norm").pvalue < 1e-12
