"""One training run on heavy-tailed synthetic gradients, accounted three ways: what `bayesdp demo` shows.

Every person has a size of their own, the norm of a Weibull(1/2) gradient in three dimensions (S1 V-A), and
their gradient at a step is that size give or take a half, clipped. C is the 0.99-quantile of other people's
norms: few are clipped, and most are far below. Nothing depends on what the run released, so people inside and
outside of the data pay alike; both are accounted all the same, as a real run has to (H5).

The setting was picked to show what the three notions can look like, not how large their gap usually is: with C
at the 0.9-quantile, say, nine people in ten gain nothing over the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesdp.accountant import BayesianAccountant, Curve, InstanceAccountant, WorstCaseAccountant
from bayesdp.compose import orders
from bayesdp.errors import Array, whole
from bayesdp.experiments import synthetic
from bayesdp.guarantee import Guarantee

NOISE_MULTIPLIER, RATE, STEPS, DELTA, COVERAGE = 1.5, 0.01, 1000, 1e-5, 0.9
CLIPPED_AT = 0.99
PEOPLE, DIMENSIONS = 2000, 3
"""People outside of the data, as many inside, as many others for the clip norm; coordinates of a size."""

NAMED = 1
"""The member who asks: an ordinary one, picked for the illustration."""


@dataclass(frozen=True)
class ThreeWays:
    """What the demo shows: one guarantee for each audience, and the whole curve share of people → ε.

    `guarantees` are for everybody ("dp"), for 90 % of people ("bdp") and for one named member
    ("per-instance"); `named_size` is that member's typical norm as a multiple of the clip norm.
    """

    guarantees: list[Guarantee]
    curve: Curve
    named_size: float


def three_ways(seed: int = 0, *, people: int = PEOPLE, steps: int = STEPS) -> ThreeWays:
    """Run the plan (z = 1.5, q = 0.01, 1000 steps, δ = 1e-5) and account it three ways; a few seconds.

    Bad input: a negative seed, fewer than 200 people (too few to speak for 90 %), or no steps get `InputError`.
    """
    rng = np.random.default_rng(whole("seed", seed, least=0))
    people = whole("people", people, least=200)
    steps = whole("steps", steps, least=1)
    clip_norm = float(np.quantile(_norms(_sizes(people, rng), rng), CLIPPED_AT))
    outsiders, members = _sizes(people, rng), _sizes(people, rng)
    noise = NOISE_MULTIPLIER * clip_norm

    everybody = WorstCaseAccountant("pld")
    everybody.step(noise_multiplier=NOISE_MULTIPLIER, sampling_rate=RATE, steps=steps)
    # Half of δ pays for the minimum with the worst case.
    grid, weights = orders.planned(NOISE_MULTIPLIER, RATE, steps, DELTA / 2)
    alike = BayesianAccountant(orders=grid, weights=weights, cap=clip_norm, total_steps=steps)
    named = InstanceAccountant(1, orders=grid, weights=weights, cap=clip_norm, total_steps=steps)
    for _ in range(steps):
        outside = np.minimum(_norms(outsiders, rng), clip_norm)
        inside = np.minimum(_norms(members, rng), clip_norm)
        alike.step(outside, noise_std=noise, sampling_rate=RATE, orientation="absent")
        alike.step(inside, noise_std=noise, sampling_rate=RATE, orientation="present")
        named.step(inside[[NAMED]], noise_std=noise, sampling_rate=RATE)
    return ThreeWays(
        guarantees=[
            everybody.guarantee(DELTA),
            alike.guarantee(DELTA, coverage=COVERAGE),
            named.guarantee(DELTA, record=0),
        ],
        curve=alike.curve(DELTA),
        named_size=float(members[NAMED]) / clip_norm,
    )


def _sizes(people: int, rng: np.random.Generator) -> Array:
    return synthetic.fresh_norms(people, DIMENSIONS, rng)


def _norms(sizes: Array, rng: np.random.Generator) -> Array:
    """Gradient norms of one step, before clipping."""
    return sizes * rng.uniform(0.5, 1.5, sizes.shape)
