"""Plans for a goal: from public numbers alone, free of units, never noisier than they say."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bayesdp as bd
from bayesdp.errors import InputError
from bayesdp.learn import goals
from bayesdp.learn.goals import Shape
from bayesdp.learn.models.networks import classifier


def sizes_of(goal, shape, level=2.0, clip_norm=None):
    chosen = goals.steps_of(shape)
    pace = goals.paces(chosen.noise_schedule, chosen.falling, chosen.steps)
    return goals.sizes(
        goal, shape, noise=np.full(chosen.steps, level), pace=pace, sampling_rate=chosen.sampling_rate,
        momentum=chosen.momentum, clip_norm=clip_norm,
    )  # fmt: skip


def test_the_longer_the_records_the_higher_the_clip_norm_and_the_shorter_the_steps():
    short, long = (Shape(50_000, 30, 2, norm) for norm in (3.0, 30.0))
    ratio = long.length / short.length
    one, other = sizes_of("accuracy", short), sizes_of("accuracy", long)
    assert other.clip_norm / one.clip_norm == pytest.approx(ratio, rel=0.05)
    assert one.learning_rate / other.learning_rate == pytest.approx(ratio**2, rel=0.05)
    assert one.noise_on_outputs == pytest.approx(other.noise_on_outputs, rel=0.05)


@pytest.mark.parametrize("goal", goals.GOALS)
def test_noise_alone_moves_outputs_as_far_as_is_said(goal):
    shape = Shape(60, 2000, 2)
    chosen = goals.steps_of(shape)
    found = sizes_of(goal, shape, 30.0)
    # The walk itself, many times: an output of a record of length R after all steps, with nothing to learn.
    rng = np.random.default_rng(0)
    walks, speed = np.zeros(4000), np.zeros(4000)
    for factor in goals.paces(chosen.noise_schedule, chosen.falling, chosen.steps):
        drawn = rng.normal(size=4000) * 30 * found.clip_norm / (chosen.sampling_rate * 60)
        speed = chosen.momentum * speed + drawn
        walks -= found.learning_rate * factor * speed
    assert found.noise_on_outputs == pytest.approx(np.std(walks) * shape.length, rel=0.1)
    assert found.noise_on_outputs <= 1.5


def test_the_clip_norm_gives_way_to_noise_before_the_steps_do():
    shape = Shape(60_000, 5184, 10, 3.0)
    little, more, much = (sizes_of("typical", shape, level) for level in (1.0, 20.0, 2000.0))
    assert little.clip_norm > more.clip_norm >= much.clip_norm
    assert much.clip_norm == pytest.approx(0.1 * shape.length, rel=0.05)
    assert much.learning_rate < more.learning_rate


def test_a_clip_norm_that_is_given_stays():
    shape = Shape(60_000, 5184, 10, 3.0)
    assert sizes_of("typical", shape, clip_norm=0.7).clip_norm == 0.7


def test_the_learning_rate_is_inverse_to_the_noise_and_ends_at_nothing():
    pace = goals.paces("typical", 0.3, 300)
    assert pace[0] == pytest.approx(6 ** (-15 / 16))
    assert pace[130] == 1
    assert (np.diff(pace[210:]) < 0).all()
    assert pace[-1] == pytest.approx(1 / 90)
    assert (goals.paces(1.0, 0.0, 50) == 1).all()


def test_goals_order_what_they_are_for():
    shape = Shape(60_000, 5184, 10, 3.0)
    accuracy, balanced, typical = (sizes_of(goal, shape).clip_norm for goal in ("accuracy", "balanced", "typical"))
    assert accuracy < balanced < typical
    assert typical >= math.hypot(3, 1)  # only gradients of errors above 1 are clipped


def test_suggest_keeps_its_promise_and_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 8)).astype(np.float32)
    y = (x[:, 0] - x[:, 1] + 0.3 * rng.logistic(size=3000) > 0).astype(np.int32)
    plan = bd.SGD.suggest(num_records=3000, features=8, classes=2, epsilon=1.0, delta=1e-5, engine="rdp", steps=60)
    loss = classifier("logistic", 2)
    start = jax.tree.map(jnp.zeros_like, loss.model.init(jax.random.key(0), (8,)))
    run = plan.fit(loss, start, (x, y), members=0, seed=0)
    assert 0.9 < run.guarantees[0].epsilon <= 1
    outputs = np.asarray(loss.model.apply(run.params, jnp.asarray(x)))
    assert np.mean(outputs.argmax(1) == y) > 0.87


def test_fields_of_the_users_own_go_before():
    plan = bd.SGD.suggest(
        num_records=3000, features=8, classes=2, epsilon=1.0, engine="rdp", steps=40, clip_norm=0.5, sampling_rate=0.2
    )
    assert (plan.steps, plan.clip_norm, plan.sampling_rate) == (40, 0.5, 0.2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"goal": "fame"}, "goal"),
        ({"features": 0}, "features"),
        ({"num_records": 0}, "num_records"),
        ({"norm": -1.0}, "norm"),
    ],
)
def test_bad_shapes_are_refused(change, said):
    shape = {"num_records": 300, "features": 8, "classes": 2, "epsilon": 1.0, **change}
    with pytest.raises(InputError, match=said):
        bd.SGD.suggest(**shape)
