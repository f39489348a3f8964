"""A semi-supervised GAN whose discriminator is private (S4 §4.3, J24), played on the loop of private learning.

    D gives K logits l; with Z = Σ_k exp l_k an image is real with probability Z/(1 + Z) and then of class k with
    p_k = exp(l_k)/Z (Salimans et al. 2016). What D loses by one image, and G by one that it makes:

    real        s (−log Z/(1 + Z) + c H(p)),  and s w (−log p_label) if it has a label        G   −log Z/(1 + Z)
    made by G   s (−log 1/(1 + Z))

H, the entropy, asks D to make up its mind (Dai et al. 2017). Records enter the clipped and noised sum of D's gradients
and nothing else. What G makes, G's own steps and labelled images that are public depend on released iterates and public
draws only: post-processing, however often they are looked at. G never sees a record, so there is no feature matching.
What G makes is clipped as records are: not for privacy, but so that D does not hear fakes louder than real images.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from bayesdp.learn.loop.objective import GradientObjective, GradientsAt, Position, State, StepSettings
from bayesdp.learn.sgmcmc.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.sgmcmc.sghmc import SGHMC, Hamiltonian
from bayesdp.mechanism import Activation, Dense, Gradients, ModelLoss, Sequential, gradients_of

UNLABELLED, MADE = -1, -2
"""In place of a label."""

ENTROPY = 0.3
"""c."""

FORGET = 0.5
"""What momentum loses in a step, of both players: more inertia makes them swing round each other."""

GENERATOR_STEP = 0.03
"""Of G's mean loss."""

LATENT, MADE_AT_ONCE = 32, 256
MEMORY = 0.99
"""Of the running mean of D's weights."""

_player = optax.sgd(GENERATOR_STEP, momentum=1 - FORGET)


@dataclass(frozen=True)
class Verdict:
    """What D loses by one image: `weight` is w, `scale` s."""

    weight: float = 0.0
    scale: float = 1.0

    def __call__(self, logits: jax.Array, label: jax.Array) -> jax.Array:
        """From D's logits and a label, `UNLABELLED` or `MADE`."""
        evidence, chances = jax.nn.logsumexp(logits), jax.nn.log_softmax(logits)
        real = jax.nn.softplus(-evidence) - ENTROPY * jnp.sum(jnp.exp(chances) * chances)
        taught = -self.weight * chances[jnp.maximum(label, 0)]
        loss = jnp.where(label == MADE, jax.nn.softplus(evidence), real + jnp.where(label >= 0, taught, 0.0))
        return self.scale * loss


class Match(NamedTuple):
    """Where a step is taken, everything public: both players, what is drawn for G, and what else D may see.

    `mean` is a running mean of D's weights (None where samples are kept), `shocks` the noise of G's step (None where G
    is not sampled), `images` and `labels` (one-hot) public records, `clip` what fakes are clipped at.
    """

    theta: Theta
    generator: Theta
    latents: jax.Array
    images: jax.Array
    labels: jax.Array
    clip: jax.Array | None
    mean: Theta = None
    shocks: Theta = None


class Dealt(NamedTuple):
    """What is drawn for G's step: latents, and shocks where G is sampled."""

    latents: jax.Array
    shocks: Theta


@dataclass(frozen=True)
class Game:
    """Who plays: `taught` says whether D learns from public labels; `held`, that G has no gradient: SGD leaves it."""

    discriminator: ModelLoss
    generator: Sequential
    taught: bool = True
    held: bool = False

    def open(self, seed: int, images: Any, labels: Any, clip: float | None, *, sampled: bool) -> Match:
        """Both players at first; `labels` are class numbers."""
        theta, generator = _players(self, jax.random.key(seed), np.shape(images)[1:])
        return Match(
            theta=theta,
            generator=generator,
            latents=jnp.zeros((MADE_AT_ONCE, LATENT)),
            images=jnp.asarray(images),
            labels=jax.nn.one_hot(labels, len(theta[-1]["bias"])),
            clip=None if clip is None else jnp.float32(clip),
            mean=None if sampled else theta,
            shocks=jax.tree.map(jnp.zeros_like, generator) if sampled else None,
        )

    def deal(self, key: jax.Array, match: Match) -> Dealt:
        """Fresh latents and shocks: public draws."""
        leaves, tree = jax.tree.flatten((match.latents, match.shocks))
        keys = jax.random.split(key, len(leaves))
        drawn = [jax.random.normal(own, leaf.shape) for own, leaf in zip(keys, leaves, strict=True)]
        return Dealt(*jax.tree.unflatten(tree, drawn))

    def public_gradient(self, gradients: Gradients, match: Match) -> Theta:
        """The mean gradient of D by what G makes and, if D is taught, by the public labels."""
        made = self.generator.apply(match.generator, match.latents)
        count = len(made)
        here = jnp.ones(count, bool)
        total, _ = gradients.clip_sum(match.theta, (made, jnp.full(count, MADE)), here, match.clip)
        gradient = jax.tree.map(lambda leaf: leaf / count, total)
        return jax.tree.map(jnp.add, gradient, self.lesson(match.theta, match)) if self.taught else gradient

    def lesson(self, theta: Theta, match: Match) -> Theta:
        """The gradient of the mean cross-entropy of the public labels."""

        def loss(theta: Theta) -> jax.Array:
            logits = self.discriminator.model.apply(theta, match.images)
            return -jnp.mean(jnp.sum(match.labels * jax.nn.log_softmax(logits), axis=1))

        return jax.grad(loss)(theta)

    def cunning(self, match: Match) -> Theta:
        """The gradient of G's mean loss."""

        def loss(generator: Theta) -> jax.Array:
            logits = self.discriminator.model.apply(match.theta, self.generator.apply(generator, match.latents))
            return jnp.mean(jax.nn.softplus(-jax.nn.logsumexp(logits, axis=1)))

        gradient = jax.grad(loss)(match.generator)
        return jax.tree.map(jnp.zeros_like, gradient) if self.held else gradient


def game(inputs: int, hidden: int, classes: int, verdict: Verdict, **how: bool) -> Game:
    """One hidden layer for each player."""

    def network(outputs: int) -> Sequential:
        return Sequential((Dense(hidden), Activation("relu"), Dense(outputs)))

    return Game(ModelLoss(network(classes), verdict), network(inputs), **how)


@partial(jax.jit, static_argnums=(0, 2))
def _players(rules: Game, key: jax.Array, shape: tuple[int, ...]) -> tuple[Theta, Theta]:
    """Weights of both, compiled once for a game."""
    first, second = jax.random.split(key)
    return rules.discriminator.model.init(first, shape), rules.generator.init(second, (LATENT,))


@dataclass(frozen=True)
class Sampled(Hamiltonian):
    """Both players sampled by SGHMC: D by its private force, G at temperature 1 with prior N(0, 1) by its own."""

    game: Game
    opening: Match = field(compare=False)

    def begin(self, theta: Theta) -> Position:
        """The opening, at rest."""
        match = self.opening._replace(theta=theta)
        return Position(match, jax.tree.map(jnp.zeros_like, (theta, match.generator)))

    def theta(self, point: Match) -> Theta:
        """D's weights."""
        return point.theta

    def draw(self, key: jax.Array, params: Match) -> Dealt:
        """What is drawn for G."""
        return self.game.deal(key, params)

    def locate(self, draws: Dealt, params: Match) -> Match:
        """The match with what is drawn for G."""
        return params._replace(latents=draws.latents, shocks=draws.shocks)

    def force(self, point: Match, released: Theta) -> Theta:
        """The noisy force of the records and the prior, and that of what is public, each as N records."""
        public = self.game.public_gradient(self.target.gradients, point)
        return super().force(point, jax.tree.map(jnp.add, released, public))

    def move(self, point: Match, inner: State, force: Theta, now: Pace) -> Position:
        """D moves, then G against the new D."""
        theta, momentum = super().move(point.theta, inner[0], force, now)
        point = point._replace(theta=theta)
        size = np.sqrt(GENERATOR_STEP / self.records)
        pace = Pace(size, 1.0, FORGET / size, np.sqrt(2 * FORGET) / size, now.early, now.slot)
        own = jax.tree.map(
            lambda gradient, weight, shock: pace.noise * shock - self.records * gradient - weight,
            self.game.cunning(point),
            point.generator,
            point.shocks,
        )
        generator, other = super().move(point.generator, inner[1], own, pace)
        return Position(point._replace(generator=generator), (momentum, other))


@dataclass(frozen=True, kw_only=True)
class BayesianGAN(SGHMC):
    """SGHMC of a `Game` from its opening; accounted for as any `SGHMC`, one chain of discriminators."""

    game: Game
    opening: Match = field(compare=False)

    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """Both players' step."""
        return Sampled(target, records, samples, self.game, self.opening)


@dataclass(frozen=True)
class Trained(GradientObjective):
    """D by its optimiser from the noisy gradient, G by SGD with the momentum of `Sampled`."""

    game: Game
    optimizer: optax.GradientTransformation

    @property
    def gradients(self) -> Gradients:
        """Of D's loss."""
        return gradients_of(self.game.discriminator)

    def start(self, params: Match) -> State:
        """Both optimisers' states."""
        return self.optimizer.init(params.theta), _player.init(params.generator)

    def draw(self, key: jax.Array, params: Match) -> Dealt:
        """What is drawn for G."""
        return self.game.deal(key, params)

    def locate(self, draws: Dealt, params: Match) -> Match:
        """The match with what is drawn for G."""
        return params._replace(latents=draws.latents, shocks=draws.shocks)

    def at(self, point: Match) -> GradientsAt:
        """Those of D's loss."""
        return GradientsAt(self.gradients, point.theta)

    def advance(self, now: StepSettings, point: Match, state: State, released: Theta) -> Position:
        """D moves, then G against the new D."""
        del now
        first, second = state
        gradient = jax.tree.map(jnp.add, released, self.game.public_gradient(self.gradients, point))
        updates, first = self.optimizer.update(gradient, first, point.theta)
        theta = optax.apply_updates(point.theta, updates)
        point = point._replace(theta=theta)
        updates, second = _player.update(self.game.cunning(point), second, point.generator)
        generator = optax.apply_updates(point.generator, updates)
        mean = jax.tree.map(lambda old, new: MEMORY * old + (1 - MEMORY) * new, point.mean, theta)
        return Position(point._replace(generator=generator, mean=mean), (first, second))


def labels_alone(game: Game, opening: Match, optimizer: optax.GradientTransformation, steps: int) -> Theta:
    """D taught by the public labels and nothing else."""

    def step(carry: Any, _: None) -> tuple[Any, None]:
        theta, state = carry
        updates, state = optimizer.update(game.lesson(theta, opening), state, theta)
        return (optax.apply_updates(theta, updates), state), None

    return lax.scan(step, (opening.theta, optimizer.init(opening.theta)), length=steps)[0][0]
