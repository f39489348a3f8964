"""All records measured now and then, and clipped at what was measured until the next time (as filters ask, H4).

    at every k-th step     c_i = |clip(g_i(θ_t); C_t)|   for every record i, and for the witnesses outside
    until the next one     record i moves the sum by at most min(c_i, C_t)

c_i depends on the past and on the record itself: the record's cost in those steps is known before they are taken, so
that ex-post accounting and filters are exact without a gradient of every record at every step. With k = 1 nothing is
clipped that would not have been anyway.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.errors import Array
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.setup import Setup
from bayesdp.learn.loop.witnesses import Floats
from bayesdp.mechanism.devices import Records
from bayesdp.mechanism.step import Limits


class Terms(NamedTuple):
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
    """Steps start … stop-1 with the same records in; `distances` (everyone,), in units of the sensitivity."""

    start: int
    stop: int
    distances: Floats


class Measured(NamedTuple):
    """|g| of everyone, the records with limits for the steps to come, and who moves these by how much."""

    raw: Floats
    records: Records
    stretches: list[Stretch]


class Measurement:
    """Of one run. Everyone is the records, then the witnesses outside of the data: in this order in every array.

    `budgets` is the filter's accountant for everyone, None without a filter.
    """

    def __init__(self, setup: Setup, budgets: InstanceAccountant | None) -> None:
        self.setup, self.budgets = setup, budgets
        self._norms = jax.jit(setup.step.witness_norms)

    def measure(self, start: int, stop: int, params: Params) -> Measured:
        """Measure everyone at `params`, and charge the budgets for steps start … stop-1.

        A witness outside is admitted as it would be if it were a record.
        """
        setup, plan, steps = self.setup, self.setup.course.plan, slice(start, stop)
        groups = [group for group in (setup.fixed.records, setup.fixed.witnesses) if group is not None]
        norms = [jax.device_get(self._norms(params, group, setup.rule(start))) for group in groups]
        clipped = np.concatenate([one.clipped for one in norms])
        terms = Terms(setup.sensitivity[steps], plan.noise[steps], plan.rates[steps], plan.bounded)
        until = self._admitted(clipped, start, terms)
        size = setup.fixed.records.size
        limits = Limits(jnp.asarray(clipped[:size]), jnp.asarray(until[:size]))
        return Measured(
            np.concatenate([one.raw for one in norms]),
            setup.fixed.records.beside(limits, setup.step.mesh),
            _stretches(clipped, until, start, terms),
        )

    def _admitted(self, clipped: Floats, start: int, terms: Terms) -> npt.NDArray[np.int32]:
        """The first step that each takes no part in any more."""
        steps = len(terms.noise)
        if self.budgets is None:
            return np.full(len(clipped), start + steps, np.int32)
        until = np.full(len(clipped), start, np.int32)
        for i in range(steps):
            inside = self.budgets.step(
                terms.distances(clipped, i), noise_std=float(terms.noise[i]), sampling_rate=float(terms.rates[i])
            )
            assert inside is not None
            until += inside  # who is out stays out
        return until


def _stretches(clipped: Floats, until: npt.NDArray[np.int32], start: int, terms: Terms) -> list[Stretch]:
    """Steps that are alike, cut where a setting changes or somebody leaves."""
    steps = len(terms.noise)
    settings = np.stack([terms.sensitivity, terms.noise, terms.rates])
    changes = 1 + np.flatnonzero((np.diff(settings, axis=1) != 0).any(axis=0))
    leaving = np.unique(until) - start
    cuts = sorted({0, *changes.tolist(), *leaving[(leaving > 0) & (leaving < steps)].tolist(), steps})
    return [
        Stretch(start + i, start + end, terms.distances(np.where(until > start + i, clipped, np.float32(0)), i))
        for i, end in pairwise(cuts)
    ]
