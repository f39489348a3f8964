"""All records measured now and then, and clipped at what was measured until the next time (SPEC E3, H3, H4).

    at every k-th step     c_i = |clip(g_i(θ_t); C_t)|   for every record i, and for the witnesses outside
    until the next one     record i moves the sum by at most min(c_i, C_t)

c_i depends on the past and on the record itself: the record's cost in those steps is known before they are taken, so
that ex-post accounting and filters are exact without a gradient of every record at every step. With k = 1 nothing is
clipped that would not have been anyway.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.errors import Array
from bayesdp.mechanism.clip_rule import ClipRule
from bayesdp.mechanism.devices import Records
from bayesdp.mechanism.step import Limits, PrivateStep

EVERYONE = "everyone"
"""The `watch` that means all records of the data."""

Floats = npt.NDArray[np.float32]


class Pace(NamedTuple):
    """Of each of some steps: the sensitivity (1 where nothing is clipped), the noise in its units, the rate."""

    sensitivity: Array
    noise: Array
    rates: Array
    bounded: bool

    def distances(self, norms: Floats, i: int) -> Floats:
        """How far records of these norms move the sum of step `i`, in units of its sensitivity."""
        unit = np.float32(self.sensitivity[i])
        moved: Floats = np.minimum(norms, unit) if self.bounded else norms
        return np.divide(moved, unit, dtype=np.float32)


class Stretch(NamedTuple):
    """`steps` steps from `start` on with the same records in; `distances` of all, in units of the sensitivity."""

    start: int
    steps: int
    distances: Floats


class Everyone:
    """The records of a run and the witnesses outside of it, in this order in every array."""

    def __init__(self, step: PrivateStep, records: Records, witnesses: Records | None) -> None:
        self.step, self.records, self.witnesses = step, records, witnesses
        self.raw: Floats = np.zeros(0, np.float32)
        self._measure = jax.jit(step.witness_norms)

    def measure(self, params: Any, rule: ClipRule) -> Floats:
        """|clip(g)| of everyone at `params`; |g| is kept as `raw`."""
        groups = [group for group in (self.records, self.witnesses) if group is not None]
        norms = [jax.device_get(self._measure(params, group, rule)) for group in groups]
        self.raw = np.concatenate([one.raw for one in norms])
        return np.concatenate([one.clipped for one in norms])

    def admit(
        self, norms: Floats, start: int, pace: Pace, budgets: InstanceAccountant | None
    ) -> tuple[Records, list[Stretch]]:
        """Charge the budgets for the steps of `pace`, which begin with step `start`.

        `budgets` is the filter's accountant for everyone, None without a filter: a witness is admitted as it would be
        if it were a record. Returns the records with their limits, and who moves the sum by how much.
        """
        steps = len(pace.noise)
        until = np.full(len(norms), start + steps, np.int32)
        if budgets is not None:
            until[:] = start
            for i in range(steps):
                inside = budgets.step(
                    pace.distances(norms, i), noise_std=float(pace.noise[i]), sampling_rate=float(pace.rates[i])
                )
                assert inside is not None
                until += inside  # who is out stays out
        size = self.records.size
        limits = Limits(jnp.asarray(norms[:size]), jnp.asarray(until[:size]))
        return self.records.beside(limits, self.step.mesh), _stretches(norms, until, start, pace)


def _stretches(norms: Floats, until: npt.NDArray[np.int32], start: int, pace: Pace) -> list[Stretch]:
    """Steps that are alike, cut where a setting changes or somebody leaves."""
    steps = len(pace.noise)
    settings = np.stack([pace.sensitivity, pace.noise, pace.rates])
    changes = 1 + np.flatnonzero((np.diff(settings, axis=1) != 0).any(axis=0))
    leaving = np.unique(until) - start
    cuts = sorted({0, *changes.tolist(), *leaving[(leaving > 0) & (leaving < steps)].tolist(), steps})
    return [
        Stretch(start + i, end - i, pace.distances(np.where(until > start + i, norms, np.float32(0)), i))
        for i, end in pairwise(cuts)
    ]
