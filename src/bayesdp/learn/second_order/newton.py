"""Second-order private inference: a frozen description → calibrate → fit → Posterior (H27).

A handful of full batches. Each releases bounded sums over all records (`score`): where the score of the model is, how
it bends, how it spreads; the posterior reads them as data with noise of known size (`reading`), so that its intervals
know of the noise, and of what clipping does to what a record says. Accounting, witnesses and checkpoints are those of
every `Plan`: each step is a Gaussian mechanism on a sum whose terms are at most 1 long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.plan import Facts
from bayesdp.learn.loop.schedule import Schedule
from bayesdp.learn.loop.training import Outcome
from bayesdp.learn.models.density import Form, Probabilistic, kept
from bayesdp.learn.models.reader import Model, probabilistic
from bayesdp.learn.posterior.gaussian import Posterior
from bayesdp.learn.posterior.inference import Inference, Reading
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data, Record
from bayesdp.learn.second_order import reading as releases
from bayesdp.learn.second_order.doubts import doubts
from bayesdp.learn.second_order.score import Place, Releases, Scores
from bayesdp.learn.second_order.shares import FEWEST, READ, STEPS, shares
from bayesdp.learn.vi.suggest import standardised

NOISE_AWARE = "Intervals include the noise that was added for privacy: the posterior reads what was released as data."

_CLOSE, _NARROWEST, _WIDEST = 0.35, 2.0, 4.0
_MADE_UP = 512


@dataclass(frozen=True, kw_only=True)
class Newton(Inference[Posterior]):
    """What will be done, all of it public: a `Plan` of full batches, and

    Args:
        bound: k, the longest score in units of what it is on average, √d; None: such that the noise on a mean is about
            a third of its standard deviation, between 2 and 4.

    `noise_multiplier` is that of all steps together; what each of them spends is in `shares`. Bad input gets
    `InputError` naming the field.

    Examples:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(1.0, 1.0, 400).astype(np.float32)
        >>> model = bd.NormalPrior(np.zeros(1), 4.0), lambda mean, record: -((record - mean[0]) ** 2) / 2
        >>> posterior = bd.Newton(delta=1e-4).calibrate(epsilon=2.0).fit(model, x)
        >>> posterior.mean.shape, posterior.guarantees[0].epsilon <= 2.0
        ((1,), True)
    """

    kind: ClassVar[str] = "second-order private inference"

    sampling_rate: float = 1.0
    steps: int = STEPS
    noise_schedule: Schedule = ()
    bound: float | None = None

    def __post_init__(self) -> None:
        errors.whole("steps", self.steps, least=FEWEST)
        if self.sampling_rate != 1:
            raise errors.refuse("sampling_rate", self.sampling_rate, "to be 1: every step sees all records")
        if self.clip_norm != 1:
            raise errors.refuse("clip_norm", self.clip_norm, "to be 1", "Scores have a scale of their own: use bound.")
        if self.bound is not None:
            errors.number("bound", self.bound, above=0)
        object.__setattr__(self, "noise_schedule", tuple(share.whole**-0.5 for share in shares(self.steps)))
        super().__post_init__()

    @classmethod
    def suggest(
        cls, model: Model, data: Data, *, epsilon: float, delta: float = 1e-5, params: Params = None, **fields: Any
    ) -> Self:
        """A calibrated plan; there is nothing to choose, so that `model`, `data` and `params` are not looked at."""
        del model, data, params
        return cls(delta=delta, **fields).calibrate(epsilon)

    @property
    def facts(self) -> Facts:
        """What else a report should say of the plan."""
        return {**super().facts, "longest score, in units of a usual one": self.bound or "by records and noise"}

    def bound_for(self, records: int, dim: int) -> float:
        """C = k √d."""
        if self.bound is not None:
            return self.bound * math.sqrt(dim)
        noise = max(float(self.noise_multiplier or 0.0) / math.sqrt(READ * shares(self.steps)[-1].gradient), 1e-9)
        k = _CLOSE * math.sqrt(records) / (noise * math.sqrt(dim))
        return min(max(k, _NARROWEST), _WIDEST) * math.sqrt(dim)

    def _read(self, model: Model, data: Data, params: Params) -> Reading:
        known, records = probabilistic(model, data, params), count_of(self.num_records, data)
        objective = Scores(known, records, self.bound_for(records, known.dim), shares(self.steps))
        return Reading(known, Course(self, objective, objective.begin(near(known), public_shape(known, data))))

    def _posterior(self, reading: Reading, outcome: Outcome) -> Posterior:
        model, objective = reading.model, reading.course.objective
        if not isinstance(objective, Scores):
            raise TypeError(objective)
        found = outcome.state
        if not outcome.ended:
            place = Place(*outcome.run.params)
            spread = np.linalg.inv(objective.records * np.asarray(place.curvature, np.float64) + np.eye(model.dim))
            return Posterior(model, np.asarray(place.theta, np.float64), (spread + spread.T) / 2, outcome.run)
        answer = releases.read(self.told(model, objective, found))
        return Posterior(model, answer.mean, answer.cov, outcome.run, (NOISE_AWARE,), doubts=doubts(answer))

    def told(self, model: Probabilistic, objective: Scores, found: Releases) -> releases.Told:
        """What the releases of a finished run tell."""
        theta, white, known, score, curvature, spread = (np.asarray(part[-READ:], np.float64) for part in found)
        place = jnp.asarray(theta.mean(axis=0), jnp.float32)
        gradient, precision = (np.asarray(part, np.float64) for part in _prior_of(model)(place))
        return releases.Told(
            theta=theta.mean(axis=0),
            white=white[0],
            score=score.mean(axis=0),
            curvature=curvature.mean(axis=0),
            spread=spread.mean(axis=0),
            stds=self._stds(objective),
            shape=white[0] @ known[0] @ white[0].T,
            records=objective.records,
            gradient=gradient,
            precision=precision,
        )

    def _stds(self, objective: Scores) -> tuple[float, float, float]:
        """Of the noise on the means over the steps that are read, of the sums of ψ, A and B."""
        last, noise = objective.shares[-1], float(self.noise[-1])
        score, curvature, spread = (
            cut * noise * math.sqrt(last.whole / part / READ) for cut, part in zip(objective.cuts, last, strict=True)
        )
        return score, curvature, spread


def near(model: Probabilistic) -> jax.Array:
    """The first place: not the start itself, as 0 is where densities written with max(0, ·) have a kink.

    All parameters are moved alike, so that no order of columns is preferred.
    """
    return model.start + 0.01


def public_shape(model: Probabilistic, data: Data) -> jax.Array:
    """The curvature per record that made-up standardised records have at the start: a shape that anybody knows."""
    return _shape_of(model, Form.of(data))


@kept
def _shape_of(model: Probabilistic, form: Form) -> jax.Array:
    made_up = standardised(form, _MADE_UP)
    place = near(model)

    def both(record: Record) -> tuple[jax.Array, jax.Array]:
        gradient = jax.grad(model.log_likelihood)(place, record)
        return -jnp.diag(jax.hessian(model.log_likelihood)(place, record)), gradient**2

    bends, squares = jax.jit(lambda records: jax.tree.map(lambda x: x.mean(0), jax.vmap(both)(records)))(made_up)
    diagonal = jnp.where(bends > 0, bends, squares)
    return jnp.diag(jnp.clip(jnp.where(jnp.isfinite(diagonal) & (diagonal > 0), diagonal, 1.0), 1e-3, 1e3))


@kept
def _prior_of(model: Probabilistic) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """Gradient and precision of the log prior."""
    return jax.jit(lambda z: (jax.grad(model.log_prior)(z), -jax.hessian(model.log_prior)(z)))
