"""The audit of a plan: lower bounds on its ε by three games with canaries, each in two forms (L9).

step       one step, the canary surely in its batch; many plays with it and without            clipping and noise
runs       all steps, sampled as planned; many runs with it and without                        and sampling
one-run    all steps once, with many canaries, each in by a coin                               and what they share

No record is needed: the promise is about every record, and canaries are its worst ones. Every number holds by itself
with confidence 1 − `failure`; a bound above the plan's ε says that the mechanism is not what was accounted for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
from scipy.special import ndtr, ndtri

from bayesdp import errors
from bayesdp.accountant.rdp import History
from bayesdp.audit.mechanism import WIDTH, AuditedPlan, scores
from bayesdp.audit.one_run import Guesses, guessed
from bayesdp.audit.trade_off import accountant_of, with_noise
from bayesdp.audit.two_errors import two_errors
from bayesdp.divergence.hockey_stick import gaussian_shift
from bayesdp.errors import Array
from bayesdp.learn.loop.saved_plan import RunPlan
from bayesdp.report.audit import Audit, Form, LowerBound, Method

Told = Callable[[str], None]
"""Told what is about to be done."""

GAMES: tuple[Method, ...] = ("step", "runs", "one-run")
PLAYS, CANARIES = 200_000, 1_000
"""Steps of each kind that are played, and canaries of one run."""

MOST_STEPS, MOST_RUNS, LEAST_RUNS = 1_000_000, 20_000, 500
"""How many steps the repeated runs of each kind have in all, about, and how many runs that may be."""

NOTES = (
    "The mechanism was attacked, not the released model: the sampler, clipping, noise and loop of training were run "
    "with the plan's numbers on canaries, records whose gradients are worst for the promise. No private record was "
    "used.",
    "The form for Gaussian noise (f-dp) takes the noise to be Gaussian, of any size; the one for any noise (counting) "
    "takes nothing for granted. Of one step, counting speaks of that step alone, with the record surely in its batch; "
    "f-dp speaks of all steps, if the noise of all is as far off.",
)


def audit(
    plan: RunPlan | AuditedPlan,
    *,
    chains: int = 1,
    games: Sequence[Method] = GAMES,
    plays: int = PLAYS,
    runs: int | None = None,
    canaries: int = CANARIES,
    failure: float = 0.01,
    seed: int | None = None,
    told: Told | None = None,
) -> Audit:
    """Lower bounds on the DP ε of a plan at its δ.

    Args:
        plan: a learner's, or the one that a saved run has; clipped, with noise, and with the sum rule.
        chains: how many trajectories each are charged.
        games: which of "step", "runs" and "one-run" are played.
        plays: steps of the first game, of each kind.
        runs: of the second, of each kind; None: as many as a million steps make.
        canaries: of the third.
        failure: the chance that a bound is too high, of each by itself.
        seed: makes the audit reproducible.
        told: called before each game with what it is.

    Guarantee: each bound is at most the ε of the mechanism that was run, with probability 1 − `failure`.
    Bad input gets `InputError` naming the argument.
    """
    audited = plan if isinstance(plan, AuditedPlan) else AuditedPlan.of(plan, chains)
    errors.whole("plays", plays, least=8)
    errors.whole("canaries", canaries, least=8)
    errors.probability("failure", failure)
    for one in games:
        errors.one_of("games", one, GAMES)
    steps = len(audited.noise)
    count = (
        max(LEAST_RUNS, min(MOST_RUNS, MOST_STEPS // steps)) if runs is None else errors.whole("runs", runs, least=8)
    )
    found: list[LowerBound] = []
    for place, game in enumerate(dict.fromkeys(games)):
        own = None if seed is None else seed + 10 * place
        if told is not None:
            told(game)
        if game == "step":
            found += step_bounds(audited, plays, failure, own)
        elif game == "runs":
            found += run_bounds(audited, count, failure, own)
        else:
            found += one_run_bounds(audited, canaries, failure, own)
    return Audit(bounds=tuple(found), notes=NOTES)


def step_bounds(audited: AuditedPlan, plays: int, failure: float, seed: int | None = None) -> list[LowerBound]:
    """Of one step with the record in its batch; in form "f-dp" of the whole plan, if all its noise is as far off."""
    return _both_forms("step", audited.one_step(), audited, plays, failure, seed)


def run_bounds(audited: AuditedPlan, runs: int, failure: float, seed: int | None = None) -> list[LowerBound]:
    """Of all steps, by the likelihood ratio of whole runs."""
    return _both_forms("runs", audited, audited, runs, failure, seed)


def _both_forms(
    method: Method, attacked: AuditedPlan, whole: AuditedPlan, plays: int, failure: float, seed: int | None
) -> list[LowerBound]:
    tested = two_errors(*played(attacked, plays, seed), delta=whole.delta, failure=failure)
    counting = tested.ratio.epsilon(whole.delta)
    factor = tested.curve.noise(attacked.history, whole.adjacency)
    return [
        _bound(method, "counting", counting, attacked.epsilon, whole, failure, tested.ratio.plays),
        _fdp(method, factor, whole, failure, tested.curve.plays),
    ]


def one_run_bounds(audited: AuditedPlan, canaries: int, failure: float, seed: int | None = None) -> list[LowerBound]:
    """Of all steps, by guesses about many canaries in one run."""
    rng = np.random.default_rng(seed)
    coins = rng.random(canaries) < 0.5
    told = scores(audited.plant(np.eye(canaries)).by(coins), 1, seed)[0]
    # How many guesses to make follows from the plan alone: from the shift of the Gaussian that has its ε.
    shift = float(gaussian_shift(audited.epsilon, audited.delta))
    counted = guessed(told, coins, best_number(canaries, shift, audited.delta, failure, "counting"))
    curved = guessed(told, coins, best_number(canaries, shift, audited.delta, failure, "f-dp"))
    epsilon = counted.epsilon(audited.delta, failure)
    factor = curved.noise(audited.history, audited.adjacency, failure)
    return [
        _bound("one-run", "counting", epsilon, audited.epsilon, audited, failure, canaries),
        _fdp("one-run", factor, audited, failure, canaries),
    ]


def played(audited: AuditedPlan, plays: int, seed: int | None = None) -> tuple[Array, Array]:
    """Scores of plays without the canary, and of as many with it; its direction is drawn first."""
    drawn = np.random.default_rng(seed).normal(size=(1, WIDTH))
    planted = audited.plant(drawn / np.linalg.norm(drawn))
    seeds = (None, None) if seed is None else (seed + 1, seed + 2)
    absent, present = (
        scores(planted.by(np.array([coin])), plays, own)[:, 0] for coin, own in zip((False, True), seeds, strict=True)
    )
    return absent, present


def best_number(canaries: int, shift: float, delta: float, failure: float, form: Form) -> int:
    """How many guesses promise most if scores are normal, `shift` apart: from public numbers, before any is seen."""
    errors.one_of("form", form, get_args(Form))

    def promise(made: int) -> float:
        share = made / (2 * canaries)
        low, high = -12.0, shift + 12.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if (ndtr(shift - middle) + ndtr(-middle)) / 2 > share else (low, middle)
        right = int(made * ndtr(shift - low) / (2 * share))
        expected = Guesses(canaries, made, min(right, made))
        if form == "counting":
            return expected.epsilon(delta, failure)
        return _gaussian_shift_refuted(expected, failure)

    numbers = sorted({2 * max(1, round(canaries * part / 2)) for part in np.geomspace(0.01, 1, 20)})
    best: int = max((one for one in numbers if one <= canaries), key=promise)
    return best


def _gaussian_shift_refuted(expected: Guesses, failure: float) -> float:
    """The shift of the Gaussian trade-off function that such guesses refute."""
    low, high = 0.0, 8.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if expected.refute(_Gaussian(middle), failure) else (low, middle)
    return low


class _Gaussian:
    """The trade-off function of a Gaussian pair, exactly."""

    def __init__(self, shift: float) -> None:
        self.shift = shift

    def false_alarms(self, power: float) -> float:
        return float(ndtr(ndtri(power) - self.shift))


def _fdp(method: Method, factor: float | None, audited: AuditedPlan, failure: float, plays: int) -> LowerBound:
    history: History = audited.history
    epsilon = 0.0
    if factor is not None:
        epsilon = accountant_of(with_noise(history, factor), audited.adjacency).epsilon(audited.delta)
    return _bound(method, "f-dp", epsilon, audited.epsilon, audited, failure, plays, factor)


def _bound(
    method: Method,
    form: Form,
    epsilon: float,
    upper: float,
    audited: AuditedPlan,
    failure: float,
    plays: int,
    noise: float | None = None,
) -> LowerBound:
    return LowerBound(
        method=method,
        form=form,
        epsilon=epsilon,
        upper=upper,
        delta=audited.delta,
        failure=failure,
        plays=plays,
        noise=noise,
    )
