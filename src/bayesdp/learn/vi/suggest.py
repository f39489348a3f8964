"""Clip norm, rates and steps from public quantities: N, ε, δ, the model, and the shape of a record (D9).

    C   the median |∇_z log p(x|z)| of made-up standardised records near the start; for intervals that are to cover,
        twice the 80 % quantile: clipping biases the mean, and a spread that is taken from the noise does not show it
    h   the curvature of -log p, by E|∇_z log p(x|z)|²/d of the same records (the information equality): the mean's
        steps are 1/4 of a Newton step, or less where noise alone would carry a mean over a run farther than two
        standard deviations of a unit prior (`longest_step`); for intervals that are to cover, also shorter when
        averaging begins (`pace`), which costs accuracy where features depend on each other
    T   1000 unless told
    q   the least with which a step's mean gradient is hardly noisier than that of full batches, by the variance of one
        coordinate  v(q) = (z(q) C / (q N))² + C² / (d q N) <= 1.2 v(1)

The first term is the noise for privacy, the second that of sampling, for gradients of length C in d directions. For a
fixed (ε, δ) and T the first falls as q grows until the accountant's z grows like q and nothing is left to gain (S2
section 3.2: the asymptotic regime). Beyond that point a larger batch costs time alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from bayesdp.accountant.calibrate import noise_for
from bayesdp.errors import Array, unmet
from bayesdp.guarantee import Adjacency
from bayesdp.learn.models.density import Form, Probabilistic
from bayesdp.learn.records import Data

STEPS = 1000
"""Steps: enough for a mean that starts at 0 and steps of the size of `vi.default_optimizer`."""

_BEGIN, _NEWTON_STEPS, _REACH = 0.25, 20, 2.0
_RECORDS = 512
_RATES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_SLACK = 1.2
_MOST = 2000
"""Records of a batch that are taken at most: a step should not take long."""

_FEWEST = 20
"""Records of a batch: with fewer the sizes of batches differ too much for averages to say something."""


class GradientSizes(NamedTuple):
    """What is known of gradients before the data are looked at: clip norms and the curvature h."""

    clip_norm: float
    hardly_clipped: float
    curvature: float


def gradient_sizes(model: Probabilistic, data: Data, public: Data | None = None) -> GradientSizes:
    """From gradients near the start, of `public` records or of made-up ones: numbers N(0, 1), codes 0 and 1.

    Bad input: no gradient that is finite and not zero gets `InputError`.
    """
    records = standardised(Form.of(data), _RECORDS) if public is None else jax.tree.map(jnp.asarray, public)
    # Not at the start itself: 0 is where densities written with max(0, ·) have a kink.
    near = model.start + 0.01 * jax.random.normal(jax.random.key(0), (model.dim,))
    gradients = jax.jit(jax.vmap(lambda record: jax.grad(model.log_likelihood)(near, record)))(records)
    norms = np.linalg.norm(np.asarray(gradients, np.float64), axis=1)
    usable = norms[np.isfinite(norms) & (norms > 0)]
    if not len(usable):
        raise unmet(
            "records",
            None,
            "gradients of made-up standardised records to be finite",
            "none",
            "Give public records, or choose clip_norm yourself.",
        )
    median, most = np.quantile(usable, (0.5, 0.8)).tolist()
    return GradientSizes(median, 2 * most, float(np.mean(usable**2)) / model.dim)


def pace(curvature: float, steps: int, averaged: float, most: float = math.inf) -> optax.Schedule:
    """Learning rates of the mean: from 1/4 of a Newton step falling to where the averaged steps are 20 Newton steps.

    Noise makes the mean wander with a variance that grows with the rate; where the likelihood is not quadratic the mean
    of a wandering iterate is not where the posterior's is. Averaging takes away the wandering itself as long as the
    averaged steps amount to many Newton steps. No rate is above `most`.
    """
    first = max(1, round(steps * (1 - averaged)))
    start, end = _BEGIN / curvature, min(_BEGIN, _NEWTON_STEPS / max(1, steps - first)) / curvature
    falling = optax.exponential_decay(start, first, end / start)
    free = optax.join_schedules([falling, optax.constant_schedule(end)], [first])
    return lambda step: jnp.minimum(free(step), most)


def longest_step(curvature: float, steps_noise: Array) -> float:
    """1/4 of a Newton step, or the rate with which noise alone carries a mean by 2; the noise is that of every step.

    Directions that the likelihood says little about have nothing to pull a mean back: rates that are right where there
    is curvature let it drift through the whole prior, or out of what floats can hold. Two digits are kept.
    """
    wander = float(np.sqrt(np.sum(steps_noise**2)))
    return float(f"{min(_BEGIN / curvature, _REACH / wander if wander else math.inf):.1e}")


def rate_for_steps(steps: int, records: int, dim: int, epsilon: float, delta: float, adjacency: Adjacency) -> float:
    """The least rate on a grid that keeps v(q) <= 1.2 v(1)."""

    def variance(q: float) -> float:
        z = noise_for(epsilon, delta, sampling_rate=q, steps=steps, engine="rdp", adjacency=adjacency)
        return (z / q) ** 2 + records / (dim * q)

    least = variance(1.0)
    enough = (q for q in _RATES if q * records >= _FEWEST and variance(q) <= _SLACK * least)
    return min(next(enough, 1.0), max(_MOST / records, _RATES[0]), 1.0)


def standardised(form: Form, count: int) -> Data:
    """Made-up records whose numbers are N(0, 1), as those of standardised data are."""
    rng = np.random.default_rng(0)

    def part(leaf: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return rng.normal(size=leaf.shape).astype(np.float32) if np.issubdtype(leaf.dtype, np.floating) else leaf

    return jax.tree.map(part, form.made_up(count))
