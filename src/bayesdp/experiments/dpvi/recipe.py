"""S2's own recipe, for comparison: Algorithm 1 (D3) as printed and as coded, and the ε that the paper gives it (D8).

    printed   clip each record's gradient of L_i at c; AdaGrad: G ← G + g², ξ ← ξ + η g/√G
    coded     the likelihood's gradient is multiplied by 1/q before it is clipped at c: in our units a clip norm of c q;
              G is the sum of the last ten g² only, so that steps do not shrink

Both noise the sum with 2cσ per coordinate: a noise multiplier of 2σ. The paper's claims at δ (K3, ERR 13):

    moments (logistic figures)   MA(σ, δ/2)          moments (Theorem 2, mixture)   2 MA(2σ, δ/2)
    advanced                     2 ACT(2σ, δ/2) with slack 4e-5 and the classical Gaussian mechanism (ERR 13b)

`exact` is what the same run costs when a record is replaced, by privacy loss distributions (D4, H10).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax

from bayesdp.accountant.worst_case import Engine, WorstCaseAccountant
from bayesdp.compose.advanced import gaussian_run
from bayesdp.guarantee import Adjacency
from bayesdp.learn.vi.vi import VI

DELTA = 1e-3
"""Of S2's code; the text states none for its first three figures (ERR 13d)."""

RATE, WINDOW, SLACK = 0.1, 10, 4e-5
"""η, the length of AdaGrad's window and the slack of advanced composition, all from the code."""

Reading = Literal["coded", "printed"]


@lru_cache
def adagrad(reading: Reading, rate: float = RATE) -> optax.GradientTransformation:
    """The reading's AdaGrad. The gradient may have any scale: nothing but rounding is added under the root."""
    if reading == "printed":
        return optax.adagrad(rate, initial_accumulator_value=0.0, eps=1e-15)

    def init(params: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.zeros((WINDOW, *leaf.shape)), params), jnp.zeros((), jnp.int32)

    def update(gradient: Any, state: Any, params: Any = None) -> Any:
        del params
        squares, number = state
        squares = jax.tree.map(lambda old, new: old.at[number % WINDOW].set(new**2), squares, gradient)
        step = jax.tree.map(lambda old, new: -rate * new / jnp.sqrt(old.sum(axis=0) + 1e-30), squares, gradient)
        return step, (squares, number + 1)

    return optax.GradientTransformation(init, update)


def plan(reading: Reading, *, sampling_rate: float, steps: int, clip: float, sigma: float | None = None) -> VI:
    """S2's Algorithm 1 with the paper's c (`clip`); without σ to be calibrated."""
    return VI(
        sampling_rate=sampling_rate,
        steps=steps,
        clip_norm=clip * sampling_rate if reading == "coded" else clip,
        noise_multiplier=None if sigma is None else 2 * sigma,
        optimizer=adagrad(reading),
        variant="paper",
        averaged_fraction=0.0,
        initial_scale=1.0,
        delta=DELTA,
        adjacency="replace-one",
    )


def moments(sigma: float, sampling_rate: float, steps: int, delta: float = DELTA) -> float:
    """ε of the logistic figures: the moments accountant for one record more or less, noise σ, at δ/2."""
    return _epsilon("moments", "add-remove", sigma, sampling_rate, steps, delta / 2)


def doubled_moments(sigma: float, sampling_rate: float, steps: int, delta: float = DELTA) -> float:
    """ε of Theorem 2 and of the mixture: twice that of noise 2σ at δ/2."""
    return 2 * _epsilon("moments", "add-remove", 2 * sigma, sampling_rate, steps, delta / 2)


def advanced(sigma: float, sampling_rate: float, steps: int, delta: float = DELTA) -> float:
    """ε of the curve without moments accountant."""
    return 2 * gaussian_run(2 * sigma, sampling_rate, steps, delta / 2, slack=SLACK, calibration="classical")


def exact(sigma: float, sampling_rate: float, steps: int, delta: float = DELTA) -> float:
    """What it really costs when one record is replaced by another."""
    return _epsilon("pld", "replace-one", 2 * sigma, sampling_rate, steps, delta)


def _epsilon(
    engine: Engine, adjacency: Adjacency, multiplier: float, sampling_rate: float, steps: int, delta: float
) -> float:
    accountant = WorstCaseAccountant(engine=engine, adjacency=adjacency)
    accountant.step(noise_multiplier=multiplier, sampling_rate=sampling_rate, steps=steps)
    return accountant.epsilon(delta)
