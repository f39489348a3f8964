"""From trained posteriors to what is released of one of them: its moments, and who answers for its samples.

coupled      the run, and a coupled neighbouring run for every witness: their divergence is a sample's cost (H6), and
             the law of their loss that of all samples (B16)
one-step     S1's recipe, which compares single steps from a common θ: labelled, and no bound (ERR 8)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesdp.accountant.gaussian_release import both_ways, two_sided_cost
from bayesdp.accountant.one_step_as_printed import OneStep
from bayesdp.accountant.release_account import ORDERS, People
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.convert import Strength
from bayesdp.errors import Array, unmet
from bayesdp.guarantee import Adjacency, Sampling
from bayesdp.learn.posterior_sampling.witness_groups import WitnessGroups


class Release(NamedTuple):
    """The posterior N(mean, spread) to be sampled, and the accounts of the population and of the watched records."""

    mean: Array
    spread: Array
    population: People | None
    watched: RepeatedRelease | None


def coupled_release(
    mean: Array,
    spread: Array,
    groups: WitnessGroups,
    *,
    planned: int,
    strength: Strength,
    sampling: Sampling,
    adjacency: Adjacency,
    coverage: float,
    failure: float,
    members_counted: bool = False,
) -> Release:
    """`mean` and `spread`, (1 + witnesses, …), of the run and of the neighbouring runs of `groups`."""
    _check_finite(mean[0], spread[0])
    each = two_sided_cost(mean[0], spread[0], mean[1:], spread[1:], ORDERS)
    pairs = groups.pairs(both_ways(mean[0], spread[0], mean[1:], spread[1:])) if len(each) else {}
    accounts = {
        name: RepeatedRelease(
            cost,
            ORDERS,
            planned=planned,
            strength=strength,
            sampling=sampling,
            adjacency=adjacency,
            pairs=pairs[name] if strength == "weak" else None,
        )
        for name, cost in groups.costs(each).items()
    }
    watched = accounts.pop("watched", None)
    population = None
    if accounts:
        population = RepeatedWitnesses(
            accounts, coverage=coverage, failure=failure, members_counted=members_counted and "present" in accounts
        )
    return Release(mean[0], spread[0], population, watched)


def one_step_release(mean: Array, spread: Array, *, sampling_rate: float, samples: int) -> Release:
    """`mean` and `spread`, (steps, 1 + witnesses, …), of forgetful neighbours after every step."""
    _check_finite(mean, spread)
    return Release(mean[-1, 0], spread[-1, 0], OneStep(mean, spread, sampling_rate, samples), None)


def _check_finite(mean: Array, spread: Array) -> None:
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        raise unmet(
            "learning_rate", None, "training to end at finite numbers", "others", "Use a smaller learning rate."
        )
