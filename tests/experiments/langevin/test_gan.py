"""`sgld-gan` (J24): the rules of the game, what of it is private, equal ε, and a game on a few digits."""

import dataclasses
import math
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from pictures import drawn

from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.data import load as load_data
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.langevin import gan, gan_players
from bayesdp.experiments.langevin.gan import DELTA, KNOWN, SETTINGS, Play, Size, dealt, plays, projected
from bayesdp.experiments.langevin.gan_players import ENTROPY, MADE, UNLABELLED, Sampled, Trained, Verdict, game
from bayesdp.learn.models.network import Network
from bayesdp.learn.sgmcmc.kernel import Pace, Target
from bayesdp.mechanism import PerExample

STEPS = 30


@pytest.fixture(scope="module")
def digits():
    """About as long as scattering features, and centred."""
    found = load_data("digits")
    x, x_test = ((part - np.float32(0.3)) * np.float32(0.6) for part in (found.x, found.x_test))
    return dataclasses.replace(found, x=x, x_test=x_test)


@pytest.fixture(scope="module")
def rows(digits):
    only = [Play("labels alone", "public", None, 50), *(Play(c, "public", 0.2, STEPS) for c in ("DP-SGD", "SGHMC"))]
    return gan.compute(size=Size(seeds=1, only=only, chosen=digits))


@lru_cache
def small(weight=0.0):
    """A game of three classes on five features, and its opening with drawn latents and a little data."""
    rules = game(5, 4, 3, Verdict(weight))
    images = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    opening = rules.open(0, images, np.arange(6) % 3, None, sampled=True)
    return rules, opening._replace(**rules.deal(jax.random.key(1), opening)._asdict())


def length(tree):
    return math.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(tree)))


def test_verdict_is_that_of_a_classifier_with_one_class_more():
    logits = jnp.array([0.5, -1.0, 2.0])
    chances = jax.nn.softmax(jnp.append(logits, 0.0))  # the class "made" has logit 0
    sure = jax.nn.softmax(logits)
    entropy = -float(jnp.sum(sure * jnp.log(sure)))
    verdict = Verdict(weight=7.0, scale=0.1)
    unlabelled = -math.log(1 - chances[-1]) + ENTROPY * entropy
    assert verdict(logits, MADE) == pytest.approx(-0.1 * math.log(chances[-1]), rel=1e-5)
    assert verdict(logits, UNLABELLED) == pytest.approx(0.1 * unlabelled, rel=1e-5)
    assert verdict(logits, 1) == pytest.approx(0.1 * (unlabelled - 7 * math.log(sure[1])), rel=1e-5)


def test_the_public_gradient_is_that_of_fakes_and_lessons():
    rules, match = small()
    model = rules.discriminator.model

    def loss(theta):
        made = rules.generator.apply(match.generator, match.latents)
        doubt = jax.nn.softplus(jax.nn.logsumexp(model.apply(theta, made), axis=1)).mean()
        return doubt - jax.nn.log_softmax(model.apply(theta, match.images))[jnp.arange(6), jnp.arange(6) % 3].mean()

    gradients = PerExample(rules.discriminator, "vmap")
    gradient = jax.jit(lambda clip: rules.public_gradient(gradients, match._replace(clip=clip)))
    same = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6)
    jax.tree.map(same, gradient(jnp.float32(1e6)), jax.jit(jax.grad(loss))(match.theta))
    fakes = jax.tree.map(jnp.subtract, gradient(jnp.float32(1e-3)), rules.lesson(match.theta, match))
    assert length(fakes) <= 1e-3 * (1 + 1e-3)


def test_a_record_moves_the_sum_by_the_clip_norm_at_most():
    rules, match = small(weight=1e4)
    records = (np.asarray(match.images), np.array([0, UNLABELLED, 2, UNLABELLED, UNLABELLED, 1]))
    total = jax.jit(lambda here: Trained(rules, optax.sgd(1.0)).clip_sum(match, records, here, 0.5)[0])
    for i in range(6):
        moved = jax.tree.map(jnp.subtract, total(jnp.ones(6, bool)), total(jnp.arange(6) != i))
        assert 0 < length(moved) <= 0.5 * (1 + 1e-4)


def test_without_noise_the_sampled_generator_moves_as_the_trained_one():
    records = 10**7  # its prior counts as one record
    rules, match = small()
    match = match._replace(shocks=jax.tree.map(jnp.zeros_like, match.shocks))
    target = Target.of(Network(rules.discriminator, match.theta), None, None)
    sampled, still = Sampled(target, records, 1, rules, match), jax.tree.map(jnp.zeros_like, match.theta)
    inner, pace = sampled.begin(match.theta)[1], Pace(1e-9, 1.0, 1.0, 0.0, False, 0)
    state, trained = gan_players._player.init(match.generator), match.generator
    found, move, cunning = match, jax.jit(sampled.move), jax.jit(rules.cunning)
    for _ in range(3):
        updates, state = gan_players._player.update(cunning(match._replace(generator=trained)), state)
        trained = jax.tree.map(jnp.add, trained, updates)
        found, inner = move(found, inner, still, pace)
    assert length(jax.tree.map(jnp.subtract, trained, match.generator)) > 1e-3
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found.generator, trained)


def test_a_held_generator_has_no_gradient():
    rules, match = small()
    assert any(leaf.any() for leaf in jax.tree.leaves(rules.cunning(match)))
    assert not any(leaf.any() for leaf in jax.tree.leaves(dataclasses.replace(rules, held=True).cunning(match)))


def test_private_images_are_in_the_pool_and_nowhere_else(digits):
    images = projected(digits)
    public, private = (dealt(images, labels, 0) for labels in SETTINGS)
    assert len(public.x) == KNOWN
    assert (np.bincount(public.y) == KNOWN // 10).all()
    assert len(public.records[0]) == len(images.x) - KNOWN
    assert (public.records[1] == UNLABELLED).all()
    # Where labels are private, nothing of them may be in the public opening, which a run hands out.
    assert len(private.x) == len(private.y) == 0
    assert len(private.records[0]) == len(images.x)
    assert np.sum(private.records[1] != UNLABELLED) == KNOWN
    rules = Play("DP-SGD", "private", 8.0).rules(len(images.x), 10)
    opening = rules.open(0, private.x, private.y, 1.0, sampled=False)
    assert not rules.taught
    assert opening.images.size == 0


def test_both_ways_have_the_same_noise_and_epsilon(rows):
    trained, sampled = (pick(rows, way="sound", curve=curve)[0] for curve in ("DP-SGD", "SGHMC"))
    assert trained["noise_multiplier"] == pytest.approx(sampled["noise_multiplier"], rel=1e-3)
    for row in (trained, sampled):
        account = WorstCaseAccountant(engine="pld")
        rate = SETTINGS["public"].sampling_rate
        account.step(noise_multiplier=row["noise_multiplier"], sampling_rate=rate, steps=STEPS)
        assert row["epsilon"] == pytest.approx(account.epsilon(DELTA), rel=1e-6)
        assert 0.199 < row["epsilon"] <= 0.2


def test_both_ways_learn(rows):
    assert pick(rows, curve="labels alone")[0]["accuracy"] > 0.8
    assert pick(rows, curve="labels alone")[0]["epsilon"] == 0
    for row in pick(rows, way="sound"):
        assert row["accuracy"] > 0.5


def test_every_private_play_has_its_control():
    every = list(plays())
    assert len(set(every)) == len(every)
    for play in every:
        if play.epsilon is not None:
            assert dataclasses.replace(play, epsilon=None) in every
            assert play.clip_norm is not None
        else:
            assert play.clip_norm is None


def test_it_draws(rows):
    assert {row["curve"]: row["accuracy"] for row in pick(rows, way="printed")} == {"SGHMC": 0.983, "DP-SGD": 0.908}
    figure = drawn("sgld-gan", rows)
    assert [axes.get_title() for axes in figure.axes] == ["100 public labels", "100 private labels"]
    assert figure.axes[0].lines
