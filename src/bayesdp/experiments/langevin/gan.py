"""S4 §4.3 in a small form (J24): a semi-supervised GAN on MNIST with 100 labels, SGHMC against DP-SGD at equal ε.

    printed      98.3 % (SGHMC) and 90.8 % (DP-SGD) at ε = 0.2, δ = 10⁻⁵; S4 does not say which records are private
    public       100 labelled images are public, the other images private and unlabelled
    private      every image and label is private: records (image, label or none) in one Poisson-sampled pool

`gan_players` has the game and why it is private. Images are scattering features (H13) through a fixed random
projection, both players have one hidden layer. SGHMC samples at temperature 1 with priors N(0, 1), by the longest steps
whose own noise (F10) keeps ε (F8), one chain of discriminators, the predictions of 20 averaged; S4's Bayesian GAN has
several, each of which would be charged. DP-SGD predicts with a running mean of its weights. Both have the same start,
game, steps and sampling rate. Adjacency: one record added or removed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bayesdp import data
from bayesdp.accountant.langevin.noise import step_size
from bayesdp.data.dataset import Dataset, Features, Labels
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, GREY, ORANGE, VERMILION, Row, pick, quiet
from bayesdp.experiments.langevin.gan_players import (
    FORGET,
    UNLABELLED,
    BayesianGAN,
    Game,
    Match,
    Trained,
    Verdict,
    game,
    labels_alone,
)
from bayesdp.learn.models.network import Network
from bayesdp.learn.sgd import SGD
from bayesdp.mechanism import Sequential, use_host_cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "A semi-supervised GAN on MNIST with 100 labels, δ = 10⁻⁵"

DELTA = 1e-5
PRINTED = {"SGHMC": 0.983, "DP-SGD": 0.908}
"""S4's test accuracies at ε = `STATED`."""

STATED = 0.2
KNOWN, DIRECTIONS, HIDDEN = 100, 256, 128
SAMPLES = 20
"""Discriminators that predictions are averaged over."""

Whose = Literal["public", "private"]


@dataclass(frozen=True)
class Setting:
    """How a game is played: s of `gan_players`, D's learning rates by DP-SGD and without privacy, clip norms by ε."""

    sampling_rate: float
    steps: int
    scale: float
    learning_rate: float
    free_rate: float
    clip_norms: dict[float, float]


SETTINGS: dict[Whose, Setting] = {
    "public": Setting(0.01, 1000, 1.0, 1.0, 1.0, {0.2: 0.5, 1.0: 2.0, 8.0: 4.0}),
    "private": Setting(0.05, 400, 0.02, 1.25, 5.0, {0.2: 20.0, 8.0: 20.0}),
}
"""Found in 77 trial runs, with the form of the game, on the last 10,000 training images with the other 50,000 to train
on and other draws of labels; for private labels at ε = 8 alone."""


@dataclass(frozen=True)
class Size:
    """How much is done: `only` are some of `plays`, `chosen` other images."""

    seeds: int = 3
    only: Sequence[Play] | None = None
    chosen: Dataset | None = None


@dataclass(frozen=True)
class Images:
    """Features: `records` for the private loop, labelled `x, y` that are public, if any, and test images."""

    records: tuple[Features, Labels]
    x: Features
    y: Labels
    x_test: Features
    y_test: Labels

    def right(self, chances: Any) -> float:
        """The share of test images whose class is the likeliest."""
        return float(np.mean(np.asarray(chances).argmax(axis=1) == self.y_test))


def compute(seed: int = 0, *, data_dir: str | Path | None = None, size: Size | None = None) -> list[Row]:
    """Rows (way, curve, labels, epsilon, noise_multiplier, clip_norm, seed, accuracy)."""
    use_host_cores()
    size = size or Size()
    images = projected(size.chosen or data.load("mnist", data_dir=data_dir, features="scattering"))
    rows = [_row("printed", curve, epsilon=STATED, accuracy=accuracy) for curve, accuracy in PRINTED.items()]
    for play in size.only or plays():
        rows += [play.row(images, i) for i in range(seed, seed + size.seeds)]
    return rows


def projected(images: Dataset) -> Dataset:
    """Images as `DIRECTIONS` random directions see them: fixed, so nothing of the data is in them."""
    inputs = math.prod(images.x.shape[1:])
    directions = np.random.default_rng(0).normal(0, DIRECTIONS**-0.5, (inputs, DIRECTIONS)).astype(np.float32)
    x, x_test = (part.reshape(len(part), -1) @ directions for part in (images.x, images.x_test))
    return dataclasses.replace(images, x=x, x_test=x_test, image_shape=None, feature_names=(), recipe=None)


def dealt(images: Dataset, labels: Whose, seed: int) -> Images:
    """The same number of labelled images of every class, drawn with the seed; no other label is looked at."""
    each = KNOWN // len(images.classes)
    order = np.random.default_rng(seed).permutation(len(images.x))
    known = np.concatenate([order[images.y[order] == k][:each] for k in range(len(images.classes))])
    told = np.full(len(images.x), UNLABELLED, np.int32)
    told[known] = images.y[known]
    public = known if labels == "public" else known[:0]
    pool = np.setdiff1d(np.arange(len(images.x)), public)
    return Images((images.x[pool], told[pool]), images.x[public], images.y[public], images.x_test, images.y_test)


@dataclass(frozen=True)
class Play:
    """One way of learning: a `curve` of the figure at one ε, or without privacy where ε is None."""

    curve: str
    labels: Whose
    epsilon: float | None = None
    steps: int | None = None

    @property
    def setting(self) -> Setting:
        """Of this kind of labels."""
        return SETTINGS[self.labels]

    @property
    def length(self) -> int:
        """Steps, the setting's unless it is said."""
        return self.steps or self.setting.steps

    @property
    def learning_rate(self) -> float:
        """D's."""
        return self.setting.free_rate if self.epsilon is None else self.setting.learning_rate

    @property
    def clip_norm(self) -> float | None:
        """None without privacy."""
        return None if self.epsilon is None else self.setting.clip_norms[self.epsilon]

    def row(self, images: Dataset, seed: int) -> Row:
        """Learn, and look at the test images."""
        own = dealt(images, self.labels, seed)
        rules = self.rules(len(own.records[0]), len(images.classes))
        opening = rules.open(seed, own.x, own.y, self.clip_norm, sampled=self.curve == "SGHMC")
        network = rules.discriminator.model
        if self.curve == "labels alone":
            theta = labels_alone(rules, opening, _optimizer(self.learning_rate), self.length)
            accuracy = own.right(network.apply(theta, jnp.asarray(own.x_test)))
            return _row("sound", self.curve, self.labels, 0.0, seed=seed, accuracy=accuracy)
        if self.curve == "SGHMC":
            sampler = self.sampler(rules, opening, len(own.records[0]))
            model = Network(rules.discriminator, opening.theta, outcomes=Outcomes(network))
            found = sampler.fit(model, own.records, seed=seed)
            accuracy = own.right(found.predict(own.x_test, draws=SAMPLES, seed=seed))
            noise, epsilon = float(sampler.noise.min()), sampler.epsilon()
        else:
            plan = self.plan()
            run = plan.fit(Trained(rules, plan.optimizer), opening, own.records, members=0, seed=seed)
            accuracy = own.right(network.apply(jax.device_get(run.params.mean), jnp.asarray(own.x_test)))
            noise, epsilon = float(plan.noise.min()), run.guarantees[0].epsilon
        if self.clip_norm is None:  # then noise is absolute, and promises nothing
            return _row("non-private", self.curve, self.labels, epsilon, seed=seed, accuracy=accuracy)
        return _row("sound", self.curve, self.labels, epsilon, noise, self.clip_norm, seed=seed, accuracy=accuracy)

    def rules(self, records: int, classes: int) -> Game:
        """Public labels weigh as much as all records; private ones too, before they are clipped."""
        public = self.labels == "public"
        verdict = Verdict(weight=0.0 if public else records / KNOWN, scale=self.setting.scale)
        return game(DIRECTIONS, HIDDEN, classes, verdict, taught=public, held=self.curve == "generator held")

    def plan(self) -> SGD:
        """DP-SGD at ε, or SGD."""
        return _trained(self.setting.sampling_rate, self.length, self.learning_rate, self.clip_norm, self.epsilon)

    def sampler(self, rules: Game, opening: Match, records: int) -> BayesianGAN:
        """SGHMC by the longest steps that keep ε, or by SGD's learning rate where nothing is to be kept."""
        step = self.learning_rate / records
        if self.clip_norm is not None:
            # The least noise multiplier that keeps ε is DP-SGD's, and the longest step has it as its own (F3, F8).
            least = float(self.plan().noise.min())
            step = step_size(least, sampling_rate=self.setting.sampling_rate, clip_norm=self.clip_norm)
        return BayesianGAN(
            game=rules,
            opening=opening,
            # h/B is that step, a little shorter against rounding, and hB what a step forgets.
            step_size=math.sqrt(FORGET * step) * (1 - 1e-9),
            friction=math.sqrt(FORGET / step),
            sampling_rate=self.setting.sampling_rate,
            steps=self.length,
            clip_norm=self.clip_norm,
            delta=DELTA,
            thin=max(1, self.length // (2 * SAMPLES)),
        )


@dataclass(frozen=True)
class Outcomes:
    """The law of an image's class; comparable, so that runs share one program."""

    model: Sequential

    def __call__(self, params: Any, x: Any) -> Any:
        """Of many images."""
        from numpyro import distributions

        return distributions.CategoricalLogits(self.model.apply(params, x))


def plays() -> Iterator[Play]:
    """Everything that is done."""
    yield Play("labels alone", "public")
    yield Play("generator held", "public")
    for labels, setting in SETTINGS.items():
        for epsilon in (None, *setting.clip_norms):
            for curve in ("DP-SGD", "SGHMC"):
                yield Play(curve, labels, epsilon)


@lru_cache
def _optimizer(learning_rate: float) -> optax.GradientTransformation:
    """One object for one rate, so that runs share one program."""
    return optax.sgd(learning_rate)


@lru_cache
def _trained(q: float, steps: int, learning_rate: float, clip_norm: float | None, epsilon: float | None) -> SGD:
    plan = SGD(
        optimizer=_optimizer(learning_rate),
        sampling_rate=q,
        steps=steps,
        clip_norm=clip_norm,
        noise_multiplier=0.0 if epsilon is None else None,
        delta=DELTA,
        report_every=steps,
    )
    return plan if epsilon is None else plan.calibrate(epsilon)


def _row(
    way: str,
    curve: str,
    labels: str = "",
    epsilon: float = math.inf,
    noise_multiplier: float | str = "",
    clip_norm: float | str = "",
    *,
    seed: int | str = "",
    accuracy: float,
) -> Row:
    return {
        "way": way,
        "curve": curve,
        "labels": labels,
        "epsilon": epsilon,
        "noise_multiplier": noise_multiplier,
        "clip_norm": clip_norm,
        "seed": seed,
        "accuracy": accuracy,
    }


LOOKS: dict[str, dict[str, Any]] = {
    "SGHMC": {"color": BLUE, "marker": "^"},
    "DP-SGD": {"color": GREEN, "marker": "o"},
}
LEVELS: dict[str, dict[str, Any]] = {
    "SGHMC": {"color": BLUE, "ls": "--"},
    "DP-SGD": {"color": GREEN, "ls": "--"},
    "generator held": {"color": ORANGE, "ls": ":"},
    "labels alone": {"color": GREY, "ls": "-."},
}
NAMES = {
    "SGHMC": "SGHMC, not private",
    "DP-SGD": "SGD, not private",
    "generator held": "SGD, not private, generator held",
    "labels alone": "the 100 labels alone (ε = 0)",
}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Test accuracy by ε, public labels left, private ones right; means over seeds as lines."""
    panels = figure.subplots(1, 2)
    for axes, labels in zip(panels, SETTINGS, strict=True):
        for curve, look in LOOKS.items():
            found = [row for row in pick(rows, way="sound", curve=curve, labels=labels) if row["epsilon"] > 0]
            places = sorted({row["epsilon"] for row in found})
            axes.plot([r["epsilon"] for r in found], _percent(found), ls="none", alpha=0.5, **look)
            means = [np.mean(_percent(pick(found, epsilon=place))) for place in places]
            axes.plot(places, means, color=look["color"], marker=look["marker"], label=curve)
            (stated,) = pick(rows, way="printed", curve=curve)
            axes.plot(STATED, 100 * stated["accuracy"], "x", color=VERMILION)
            axes.annotate(
                f"{curve}, printed", (STATED, 100 * stated["accuracy"]), (6, -3), textcoords="offset points", fontsize=8
            )
        for curve, look in LEVELS.items():
            plain = [row for row in pick(rows, curve=curve, labels=labels) if row["epsilon"] in (0.0, math.inf)]
            if plain:
                axes.axhline(float(np.mean(_percent(plain))), label=NAMES[curve], **look)
        axes.set(xscale="log", xlabel="ε", title=f"{KNOWN} {labels} labels")
        axes.set_xticks(list(SETTINGS[labels].clip_norms), [f"{epsilon:g}" for epsilon in SETTINGS[labels].clip_norms])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=8, loc=(0.56, 0.1))
        quiet(axes)
    panels[0].set_ylabel("test accuracy, %")
    figure.suptitle(TITLE, fontsize=12)


def _percent(rows: Sequence[Row]) -> list[float]:
    return [100 * row["accuracy"] for row in rows]


EXPERIMENTS = {"sgld-gan": Experiment(TITLE, (11.0, 5.0), compute, draw, ("data_dir",))}
