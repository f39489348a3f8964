"""Worst-case accountant: ordinary differential privacy of a run of noisy steps, whatever the data.

    step:  θ' = f(θ, Σ_{i in batch} clip(g_i) + N(0, z²C² I)),   batch: every record with probability q

The tally is how often each (z, q) was used; an engine turns it into (ε, δ) when asked. "pld" is the tightest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant import pld, rdp
from bayesdp.accountant import state as states
from bayesdp.attacker import AttackerBounds, LossLaw, bounds
from bayesdp.compose.advanced import gaussian_run
from bayesdp.compose.ex_post import DP_SHARE
from bayesdp.errors import Array
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee

Engine = Literal["pld", "rdp", "moments", "advanced"]
ENGINES = get_args(Engine)

KIND = "bayesdp/worst-case"
VERSION = 1

_HOW = {
    "pld": "Privacy loss distributions composed by FFT, rounded up (B11); never above Rényi accounting.",
    "rdp": "Rényi accounting, best of many orders, hockey-stick conversion (B10).",
    "moments": "Moments accountant: whole orders, tail conversion (C16, B10).",
    "advanced": "Advanced composition of single steps (D6-D8); half of δ is its slack.",
}
_PAIR = {
    "add-remove": "One record enters or leaves the data and moves a sum by at most the clip norm.",
    "replace-one": "One record is exchanged for another: shifts of a clip norm either way (H10).",
}
_REACH = 1e-5
"""The δ whose ε says how far the grid of losses must reach where none is asked for."""
_FIXED = "Noise, rates and number of steps were fixed without looking at the data."


class WorstCaseAccountant(states.Saved):
    """(ε, δ)-DP of steps with noise multiplier z = noise / clip norm and Poisson sampling rate q.

    Args:
        engine: "pld" (privacy loss distributions, B11), "rdp" (Rényi curve, B10), "moments" (C16, strong form) or
            "advanced" (D6-D8).
        adjacency: "add-remove" or "replace-one"; z is relative to the clip norm for both.
        orders: Rényi orders for "rdp", "pld" and "moments" (whole there); searched for when not given.
        total_steps: stepping past it is an error and changes nothing.

    Guarantee: valid for steps fixed in advance, in any order, the noise drawn afresh each time. Queries
    change nothing. Bad input gets `InputError` and leaves no trace.

    Examples:
        >>> account = bd.WorstCaseAccountant()
        >>> account.step(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)
        >>> round(account.epsilon(delta=1e-5), 3)
        1.828
    """

    def __init__(
        self,
        *,
        engine: Engine = "pld",
        adjacency: Adjacency = "add-remove",
        orders: Any = None,
        total_steps: int | None = None,
    ) -> None:
        self.engine: Engine = errors.one_of("engine", engine, ENGINES)
        self.adjacency: Adjacency = errors.one_of("adjacency", adjacency, ADJACENCIES)
        self.orders: Array | None = None if orders is None else errors.orders("orders", orders)
        if self.orders is not None and engine == "moments" and (self.orders != np.floor(self.orders)).any():
            raise errors.refuse("orders", orders, 'to be whole numbers for engine "moments"', 'Use engine "rdp".')
        if self.orders is not None and engine == "advanced":
            raise errors.refuse("orders", orders, 'to be left out for engine "advanced", which has none')
        self.total_steps = None if total_steps is None else errors.whole("total_steps", total_steps, least=0)
        self.usual_width = pld.USUAL
        """Of the grid of losses where no finer one is needed: a wider one is faster, and a little looser."""
        self._tally: dict[tuple[float, float], int] = {}

    @property
    def steps(self) -> int:
        """How many steps were counted."""
        return sum(self._tally.values())

    @property
    def history(self) -> rdp.History:
        """The steps counted, run-length encoded by (noise multiplier, sampling rate)."""
        return tuple(rdp.Run(z, q, n) for (z, q), n in self._tally.items())

    def step(self, *, noise_multiplier: float, sampling_rate: float = 1.0, steps: int = 1) -> None:
        """Count `steps` steps of N(0, z²C²) noise on a sum of clipped records sampled with rate q.

        Bad input: z not positive, q outside [0, 1], a negative or broken number of steps, or more steps than
        `total_steps` get `InputError`; nothing is counted then.
        """
        z = errors.noise("noise_multiplier", noise_multiplier)
        q = errors.rate("sampling_rate", sampling_rate)
        count = errors.whole("steps", steps, least=0)
        errors.more_steps(self.total_steps, self.steps, count)
        if count:
            self._tally[z, q] = self._tally.get((z, q), 0) + count

    def cost(self, order: float) -> float:
        """Σ_t (α−1) D_α of all steps at order α, by our own sums and integrals (B4, B5; replaced: H10)."""
        alpha = errors.number("order", order, above=1)
        return float(rdp.cost(self.history, self.adjacency, np.array([alpha]))[0])

    def epsilon(self, delta: float) -> float:
        """The ε at δ: 0 without steps, infinite where nothing can be said. Bad input: δ outside (0, 1)."""
        delta = errors.probability("delta", delta)
        history = self._active()
        if not history:
            return 0.0
        if self.engine == "advanced":
            return self._advanced(history, delta)
        if self.engine == "moments":
            return max(0.0, self._search(history, partial(_epsilons, delta=delta, strength="strong")))
        bound = 0.0
        if delta**2 <= self._bretagnolle_huber(history):
            bound = max(0.0, self._search(history, partial(_epsilons, delta=delta, strength="weak")))
        if self.engine == "rdp" or bound == 0 or math.isinf(bound):
            return bound
        return min(bound, pld.epsilon(history, self.adjacency, delta, self._width(history, bound)))

    def delta(self, epsilon: float) -> float:
        """The δ at ε: 0 without steps, at most 1. Bad input: ε negative or not finite."""
        epsilon = errors.number("epsilon", epsilon, least=0)
        history = self._active()
        if not history:
            return 0.0
        if self.engine == "advanced":
            return self._advanced_delta(history, epsilon)
        strength: convert.Strength = "strong" if self.engine == "moments" else "weak"
        log_delta = self._search(history, partial(_log_deltas, epsilon=epsilon, strength=strength))
        bound = float(convert.from_log_delta(log_delta))
        if self.engine == "moments":
            return bound
        bound = min(bound, math.sqrt(self._bretagnolle_huber(history)))
        if self.engine == "rdp" or bound == 0:
            return bound
        # Only the order of magnitude of the largest loss that matters is needed for the grid.
        reach = self._search(history, partial(_epsilons, delta=_REACH, strength="weak"))
        if math.isinf(reach):
            return bound
        return min(bound, pld.delta(history, self.adjacency, epsilon, self._width(history, max(reach, epsilon))))

    def attacker(self) -> AttackerBounds:
        """What no attacker exceeds against these steps: advantage, right guesses, the trade-off curve (H17).

        From the loss distribution, whichever the engine; from δ(0) alone where its grid would be too coarse.
        """
        history = self._active()
        if not history:
            return bounds((), 0.0, 0.0)
        advantage = self.delta(0.0)
        width = self._loss_width(history)
        if math.isinf(width):
            return bounds((), advantage, 0.0)
        advantage = min(advantage, pld.delta(history, self.adjacency, 0.0, width))
        return bounds(pld.laws(history, self.adjacency, width), advantage, pld.rounding(history))

    def loss_laws(self, usual: float = 1e-4) -> tuple[tuple[LossLaw, ...], float]:
        """The law of the privacy loss in both directions (one where they are the same), never below the run's own, and
        how much probability rounding may have misplaced in each; no laws without steps or where nothing can be said.

        `usual` is the width of the grid where no finer one is needed: a coarser one is faster, and a little looser.
        """
        history = self._active()
        width = self._loss_width(history, usual) if history else math.inf
        if math.isinf(width):
            return (), 0.0
        return pld.laws(history, self.adjacency, width), pld.rounding(history)

    def guarantee(self, delta: float) -> Guarantee:
        """The promise at δ, with its fine print. Strong for "moments" (tail conversion), else weak.

        With the engine "pld" it also holds what an attacker can do (`attacker`).
        """
        sampled = any(run.sampling_rate < 1 for run in self.history)
        return Guarantee(
            notion="dp",
            epsilon=self.epsilon(delta),
            delta=delta,
            strength="strong" if self.engine == "moments" else "weak",
            adjacency=self.adjacency,
            sampling="poisson" if sampled else "none",
            assumptions=(_HOW[self.engine], _PAIR[self.adjacency], _FIXED),
            delta_split={"steps": delta / 2, "slack": delta / 2} if self.engine == "advanced" else {"dp": delta},
            attacker=self.attacker() if self.engine == "pld" else None,
        )

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere, as plain JSON values."""
        return {
            "kind": KIND,
            "version": VERSION,
            "engine": self.engine,
            "adjacency": self.adjacency,
            "orders": None if self.orders is None else self.orders.tolist(),
            "total_steps": self.total_steps,
            "history": [list(run) for run in self.history],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The accountant that `state` describes. Another kind or version, or malformed: `InputError`."""
        states.check(state, KIND, VERSION, {"engine", "adjacency", "orders", "total_steps", "history"})
        history = state["history"]
        if not isinstance(history, list) or not all(isinstance(run, list) and len(run) == 3 for run in history):
            raise errors.refuse("history", history, "to be a list of [noise_multiplier, sampling_rate, steps]")
        accountant = cls(**{name: state[name] for name in ("engine", "adjacency", "orders", "total_steps")})
        for z, q, n in history:
            accountant.step(noise_multiplier=z, sampling_rate=q, steps=n)
        return accountant

    def _active(self) -> rdp.History:
        return tuple(run for run in self.history if run.sampling_rate > 0)

    def _search(self, history: rdp.History, score: rdp.Score) -> float:
        search = rdp.whole_minimum if self.engine == "moments" else rdp.minimum
        return search(history, self.adjacency, score, self.orders)

    def _bretagnolle_huber(self, history: rdp.History) -> float:
        """1 − e^{−D} ≥ TV²: a δ above the total variation needs no ε. D at order 1.1 is above KL."""
        return -math.expm1(-float(rdp.cost(history, self.adjacency, np.array([1.1]))[0]) / 0.1)

    def _loss_width(self, history: rdp.History, usual: float = 1e-4) -> float:
        """The width of the grid for the whole law of the loss; infinite where it would be too coarse."""
        reach = rdp.minimum(history, self.adjacency, partial(_epsilons, delta=_REACH, strength="weak"), None)
        return math.inf if math.isinf(reach) else self._width(history, reach, usual)

    def _width(self, history: rdp.History, reach: float, usual: float | None = None) -> float:
        variance = float(rdp.cost(history, self.adjacency, np.array([2.0]))[0])
        return pld.grid_width(history, self.adjacency, variance, reach, self.usual_width if usual is None else usual)

    def _advanced(self, history: rdp.History, delta: float) -> float:
        noises, rates, counts = zip(*history, strict=True)
        shift = 1.0 if self.adjacency == "add-remove" else 2.0
        return float(gaussian_run(noises, rates, counts, delta, shift=shift))

    def _advanced_delta(self, history: rdp.History, epsilon: float) -> float:
        """Bisection on log δ, kept on the side where ε(δ) ≤ ε was seen; 1 where no δ will do."""
        low, high = -690.0, math.log1p(-1e-9)
        if self._advanced(history, math.exp(high)) > epsilon:
            return 1.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            if self._advanced(history, math.exp(middle)) <= epsilon:
                high = middle
            else:
                low = middle
        return math.exp(high)


class PlanDP(NamedTuple):
    """What the plan promises everybody: ε at δ, and at the share of δ that a mixture gives it (H14)."""

    epsilon: float
    at_share: float

    @classmethod
    def of(cls, accountant: WorstCaseAccountant, delta: float) -> PlanDP:
        """Of the steps that `accountant` has counted."""
        return cls(accountant.epsilon(delta), accountant.epsilon(DP_SHARE * delta))


def _epsilons(costs: Array, orders: Array, *, delta: float, strength: convert.Strength) -> Array:
    return convert.epsilon_per_order(costs, orders, delta, strength)


def _log_deltas(costs: Array, orders: Array, *, epsilon: float, strength: convert.Strength) -> Array:
    return convert.log_delta_per_order(costs, orders, epsilon, strength)
