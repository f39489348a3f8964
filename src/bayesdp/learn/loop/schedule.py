"""Public schedules: a factor for every step, known before the run from public quantities only (a condition of H5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesdp import errors
from bayesdp.accountant.rdp import phases as phases
from bayesdp.errors import Array, refuse

Schedule = float | str | Sequence[float] | Sequence[tuple[float, float]] | Array
"""A number, "typical", one factor for every step, or phases (share of the steps, factor)."""

TYPICAL = (*((0.05, 6 ** (1 - (phase + 0.5) / 8)) for phase in range(8)), (0.6, 1.0))
"""Noise that falls from 5.4 to 1.1 times its later level over the first 40 % of the steps, in eight phases (H13).

A step costs a record about (q |clip(g)| / (C z_t))². In the first steps everybody's gradient is long, so these make up
most of what a typical person pays; what calibration takes back it takes late,
when typical gradients have become short. Give the learning rate the inverse factors: steps with more noise should be
shorter. Shape and length were found on MNIST with scattering features (`reproduce mnist-scattering`)."""


def factors(name: str, schedule: Schedule, steps: int) -> Array:
    """One positive factor per step.

    `schedule` is a number, `steps` numbers, "typical" (see `TYPICAL`), or phases `((share of the steps, factor), …)`
    whose shares sum to 1.

    Bad input: factors that are not positive, another length, or shares that do not sum to 1 get `InputError`.
    """
    if isinstance(schedule, str):
        errors.one_of(name, schedule, ["typical"])
        schedule = TYPICAL
    values = errors.array(name, schedule, above=0, ndim=(0, 1, 2))
    if values.ndim == 0:
        return np.full(steps, float(values))
    if values.ndim == 1:
        if len(values) != steps:
            raise refuse(name, len(values), f"with one factor for each of the {steps} steps", got=f"{len(values)}")
        return values
    if values.shape[1] != 2 or abs(values[:, 0].sum() - 1) > 1e-9:
        raise errors.refuse(name, schedule, "to be phases (share, factor) whose shares sum to 1")
    ends = np.rint(np.cumsum(values[:, 0]) * steps).astype(int)
    return np.repeat(values[:, 1], np.diff(ends, prepend=0))
