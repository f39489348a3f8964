"""The linear models behind the estimators, one plan a method: planned from public quantities, paid, then trained.

    sgd           private SGD for a goal (`learn.goals`): one set of weights
    vi            private variational inference: a Gaussian over weights, which predictions average over
    sgld          stochastic-gradient Langevin dynamics: samples of the weights
    posterior-vi  inference without noise of which samples are released, bounded by a public radius and scales (H6)

What a record has: features in [−1, 1] or as they are, and a class number or a number. Weights come back as an array
(draws, features + 1, outputs), the intercept last: predictions are NumPy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.jobs.charged import cost_of
from bayesdp.learn import goals
from bayesdp.learn.models import networks, regressions
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.models.reader import Model, probabilistic
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI
from bayesdp.learn.sgd import SGD
from bayesdp.learn.sgmcmc.sgld import SGLD
from bayesdp.learn.vi.suggest import gradient_sizes
from bayesdp.learn.vi.vi import VI
from bayesdp.report import Report

METHODS = ("sgd", "vi", "sgld", "posterior-vi")

DRAWS = 200
"""Draws of a posterior that predictions average over."""

SAMPLES, RADIUS, SCALES = 10, 3.0, (0.01, 1.0)
"""Of "posterior-vi": samples released, the public ball for the mean, the public range of standard deviations."""

_STEPS = {"vi": 500, "sgld": 300, "posterior-vi": 300}


class Learned(NamedTuple):
    """Weights (draws, features + 1, outputs), what they cost, and the page."""

    weights: Array
    guarantees: tuple[Guarantee, ...]
    report: Report
    steps: int


@dataclass(frozen=True)
class Wanted:
    """What an estimator asks for; `classes` is 0 for a number. None: chosen from public quantities."""

    method: str
    classes: int
    epsilon: float
    delta: float
    goal: str
    max_iter: int | None = None
    clip_norm: float | None = None
    members: int = 0
    num_records: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        errors.one_of("method", self.method, METHODS)
        errors.number("epsilon", self.epsilon, above=0)
        errors.probability("delta", self.delta)
        errors.one_of("goal", self.goal, goals.GOALS)
        errors.whole("members", self.members, least=0)
        if self.max_iter is not None:
            errors.whole("max_iter", self.max_iter, least=1)

    @property
    def fields(self) -> dict[str, Any]:
        """Of a plan: what was given."""
        given = {"steps": self.max_iter, "clip_norm": self.clip_norm, "num_records": self.num_records}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Planned:
    """A plan with its noise set, which has not seen the records: `cost` is what to pay before `fit`."""

    cost: dict[str, Any]
    steps: int
    fit: Callable[[], Learned]


def planned(wanted: Wanted, x: npt.NDArray[np.float32], y: npt.NDArray[Any]) -> Planned:
    """The plan for records of this number and shape. Bad input: an ε that no noise reaches, and see the plans."""
    return _by_sgd(wanted, x, y) if wanted.method == "sgd" else _by_posterior(wanted, x, y)


def _by_sgd(wanted: Wanted, x: npt.NDArray[np.float32], y: npt.NDArray[Any]) -> Planned:
    loss = networks.classifier("logistic", wanted.classes) if wanted.classes else networks.regressor("logistic")
    plan = SGD.suggest(
        num_records=wanted.num_records or len(x),
        features=x.shape[1],
        classes=wanted.classes,
        epsilon=wanted.epsilon,
        delta=wanted.delta,
        goal=wanted.goal,
        **wanted.fields,
    )

    def fit() -> Learned:
        shaped = jax.eval_shape(lambda: loss.model.init(jax.random.key(0), x.shape[1:]))
        start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shaped)
        run = plan.fit(loss, start, (x, y), members=_members(wanted, x), seed=wanted.seed)
        (dense,) = (layer for layer in run.params if layer)
        weights = np.concatenate([np.asarray(dense["kernel"]), np.asarray(dense["bias"])[None]]).astype(np.float64)
        return Learned(weights[None], tuple(run.guarantees), run.to_report(title=_title(wanted)), run.steps)

    return Planned(cost_of(plan, (x.shape[1] + 1) * max(1, wanted.classes)), plan.steps, fit)


def _by_posterior(wanted: Wanted, x: npt.NDArray[np.float32], y: npt.NDArray[Any]) -> Planned:
    model: Model = regressions.linear
    if wanted.classes:
        model = regressions.logistic if wanted.classes == 2 else regressions.multinomial(wanted.classes)
    data = (np.concatenate([x, np.ones((len(x), 1), np.float32)], axis=1), y)
    known = probabilistic(model, data)
    plan = _PLANS[wanted.method](wanted, model, data, known)

    def fit() -> Learned:
        found: Any = plan.fit(model, data, members=_members(wanted, x), seed=wanted.seed)
        drawn = found.sample() if isinstance(plan, PosteriorVI) else found.sample(DRAWS, seed=0)
        w = np.asarray(drawn["w"], np.float64)
        if w.ndim == 2:  # of two classes one has no weights of its own
            w = np.stack([np.zeros_like(w), w], axis=-1) if wanted.classes else w[..., None]
        return Learned(w, tuple(found.guarantees), found.to_report(title=_title(wanted)), plan.steps)

    return Planned(cost_of(plan, known.dim), plan.steps, fit)


def _vi(wanted: Wanted, model: Model, data: Any, known: Probabilistic) -> VI:
    del known
    steps = {"steps": _STEPS["vi"], **wanted.fields}
    return VI.suggest(model, data, epsilon=wanted.epsilon, delta=wanted.delta, **steps)


def _sgld(wanted: Wanted, model: Model, data: Any, known: Probabilistic) -> SGLD:
    """Steps as long as ε allows with the sampler's own noise, and no longer than curvature does."""
    del model
    records, sizes = wanted.num_records or len(data[0]), gradient_sizes(known, data)
    longest = 0.5 / (records * sizes.curvature)
    chosen = {"steps": _STEPS["sgld"], "clip_norm": sizes.clip_norm, **wanted.fields}
    rate = min(1.0, 16 / records**0.5)
    plan = SGLD(sampling_rate=rate, step_size=longest, delta=wanted.delta, **chosen).calibrate_step(wanted.epsilon)
    return dataclasses.replace(plan, step_size=min(plan.step_size, longest))


def _posterior_vi(wanted: Wanted, model: Model, data: Any, known: Probabilistic) -> PosteriorVI:
    del model, data
    if wanted.clip_norm is not None:
        raise errors.refuse(
            "clip_norm", wanted.clip_norm, 'to be left out for method="posterior-vi": nothing is clipped'
        )
    fields = {"steps": _STEPS["posterior-vi"], **wanted.fields}
    plan = PosteriorVI(sampling_rate=1.0, samples=SAMPLES, radius=RADIUS, scales=SCALES, delta=wanted.delta, **fields)
    return plan.calibrate(wanted.epsilon, dim=known.dim)


_PLANS: dict[str, Callable[[Wanted, Model, Any, Probabilistic], VI | SGLD | PosteriorVI]] = {
    "vi": _vi,
    "sgld": _sgld,
    "posterior-vi": _posterior_vi,
}


def _members(wanted: Wanted, x: npt.NDArray[np.float32]) -> int:
    return min(wanted.members, len(x))


def _title(wanted: Wanted) -> str:
    return f"Private {'classifier' if wanted.classes else 'regressor'} by {wanted.method}"


def probabilities(weights: Array, x: Array) -> Array:
    """The mean over draws of softmax(x w), (records, classes)."""
    logits = np.einsum("nd,sdk->nsk", _with_one(x), weights)
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray((shifted / shifted.sum(axis=-1, keepdims=True)).mean(axis=1))


def means(weights: Array, x: Array) -> Array:
    """The mean over draws of x w, (records,)."""
    return np.asarray(_with_one(x) @ weights.mean(axis=0)[:, 0])


def _with_one(x: Array) -> Array:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)
