"""A sampler's step size and the noise multiplier that its own noise amounts to (F2, F3, F10, F11).

    θ' = θ − h ∇U~(θ) + N(0, 2Th I),    ∇U~ = −∇log p(θ) − (1/q) Σ_{i in batch} clip(∇log p(x_i|θ); L)       (SGLD)

Seen from the sum of clipped gradients, which one record moves by at most L, the noise is N(0, (zL)² I) with

    z = (q/L) sqrt(2TB/h),    h = 2TB (q/(Lz))²,    B = 1 (SGLD, pSGLD) or the friction (SGHMC, SGNHT: noise 2TBh)

T is the temperature: 1 samples the posterior; Algorithm 1 of paper S4 as printed has T = 1/2 (its noise ηc/N with
c = 2T = 1, ERR 25). h is the step on the whole log posterior; S4's η, the step on the mean over records, is N h.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array

Number = TypeVar("Number", float, Array)


def noise_multiplier(
    step_size: Number,
    *,
    sampling_rate: float | Array,
    clip_norm: float | Array,
    temperature: float = 1.0,
    friction: float | Array = 1.0,
) -> Number:
    """Noise multiplier z of a step of size h > 0 (SGLD F3, SGHMC F10, others F11), for one step or an array of them.

    z is noise by clip norm: `WorstCaseAccountant` takes it so for either adjacency. Bad input gets `InputError`.
    """
    noise = _noise(sampling_rate, clip_norm, temperature, friction)
    return _like(step_size, noise / np.sqrt(errors.array("step_size", step_size, above=0)))


def step_size(
    noise_multiplier: Number,
    *,
    sampling_rate: float | Array,
    clip_norm: float | Array,
    temperature: float = 1.0,
    friction: float | Array = 1.0,
) -> Number:
    """The inverse: the step size h whose own noise is z > 0 clip norms. Bad input gets `InputError`."""
    noise = _noise(sampling_rate, clip_norm, temperature, friction)
    return _like(noise_multiplier, (noise / errors.array("noise_multiplier", noise_multiplier, above=0)) ** 2)


def _noise(sampling_rate: Any, clip_norm: Any, temperature: float, friction: Any) -> Array:
    """The product z sqrt(h)."""
    q = errors.array("sampling_rate", sampling_rate, above=0, most=1)
    bound = errors.array("clip_norm", clip_norm, above=0)
    heat = errors.number("temperature", temperature, least=0) * errors.array("friction", friction, above=0)
    return np.asarray(q / bound * np.sqrt(2 * heat))


def _like(given: Number, value: Array) -> Number:
    return value if isinstance(given, np.ndarray) else float(value)
