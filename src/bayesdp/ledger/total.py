"""What charges come to together: for everybody, for people like those in the data, for one record.

    fixed      all plans were made before the first result was seen: loss distributions composed (B11), or Rényi costs
               added (B10) where something was selected; an (ε, δ) beside them adds to both
    adaptive   a plan may depend on the results before it: costs add up to an exponential martingale, a mixture over
               orders that were fixed in advance (H3, H12)

Bayesian and per-instance statements of several runs add up in ε and in δ: with a = e^{ε₁−L₁}, b = e^{ε₂−L₂} the loss
L₁+L₂ has (1 − ab)₊ ≤ (1 − a)₊ + (1 − b)₊. Who is outside of a share in one run may be inside in another: of the shares
what is left after taking all who are outside of one. That needs the same people, and for one record the same record;
otherwise there is what everybody is promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant import InstanceAccountant, WorstCaseAccountant, rdp
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency, Guarantee, Orientation
from bayesdp.ledger.charge import Charge

ORDERS: Array = np.array([1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256])
"""Fixed in advance, for all ledgers."""

_FIXED = "All plans were made before the first result was seen, and every charge is the most that its run may cost."
_ADAPTIVE = (
    "A plan may depend on the results before it: an exponential martingale over orders fixed in advance (H3, H12). "
    "Every charge is the most that its run may cost."
)
_SUM = "ε, δ and the people left out of several runs on the same data are added up; so is what may fail."


@dataclass(frozen=True)
class Total:
    """All charges of a ledger, and what runs that are done said of themselves (`measured`, by name)."""

    charges: tuple[Charge, ...]
    measured: Mapping[str, Sequence[Guarantee]]
    watched: Mapping[str, str]

    @property
    def adjacency(self) -> Adjacency:
        """Of all charges."""
        return self.charges[0].adjacency if self.charges else "add-remove"

    def dp(self, delta: float, *, adaptive: bool = True) -> Guarantee:
        """What everybody is promised for all of it at δ. Bad input: δ outside (0, 1)."""
        errors.probability("delta", delta)
        pieces = [one for one in self.charges if one.epsilon or one.delta]
        beside, left = sum(one.epsilon for one in pieces), delta - sum(one.delta for one in pieces)
        epsilon = math.inf
        if math.isfinite(beside):
            epsilon = self._with_draws(delta, left, lambda d: beside + (self._adaptive if adaptive else self._fixed)(d))
        sampled = any(q < 1 for one in self.charges for _, q, _ in one.steps)
        return Guarantee(
            notion="dp",
            epsilon=epsilon,
            delta=delta,
            adjacency=self.adjacency,
            sampling="poisson" if sampled else "none",
            assumptions=(_ADAPTIVE if adaptive else _FIXED,),
            delta_split={"dp": delta},
        )

    def _with_draws(self, delta: float, left: float, at: Callable[[float], float]) -> float:
        """ε at what is left of δ after what drawing noise takes of it: 1e-4, or (1 + e^ε) τ if that is more (H26)."""
        draws = sum(one.draws for one in self.charges)
        kept = delta - (1 - convert.DRAWN_SHARE) * delta if draws else 0.0
        for _ in range(8):
            if left <= kept:
                return math.inf
            epsilon = at(left - kept)
            if convert.drawn_delta(kept, draws, epsilon) == kept:
                return epsilon
            kept = convert.drawn_delta(2 * kept, draws, epsilon)
        return math.inf

    def guarantees(self, delta: float, *, adaptive: bool = True) -> list[Guarantee]:
        """One per notion, of all charges; only "dp" where runs are not done, or not about the same people."""
        adaptive = adaptive and len(self.charges) > 1  # of a single run nothing came before
        found = [self.dp(delta, adaptive=adaptive)]
        for notion in ("bdp", "per-instance"):
            one = self._summed(notion, adaptive)
            if one is not None:
                found.append(one)
        return found

    def _fixed(self, delta: float) -> float:
        if any(one.selection for one in self.charges):
            return float(convert.epsilon(self._costs(rdp.GRID).sum(axis=0), rdp.GRID, delta))
        account = WorstCaseAccountant(adjacency=self.adjacency)
        for one in self.charges:
            for z, q, n in one.steps:
                account.step(noise_multiplier=z, sampling_rate=q, steps=n)
        return account.epsilon(delta)

    def _adaptive(self, delta: float) -> float:
        account = InstanceAccountant(records=1, orders=ORDERS, adjacency=self.adjacency)
        for cost in self._costs(ORDERS):
            if cost.any():
                account.step(cost=cost[None])
        return float(account.epsilon(delta)[0]) if account.steps else 0.0

    def _costs(self, orders: Array) -> Array:
        """(α−1) D_α of each charge, (charges, orders)."""
        found = np.zeros((len(self.charges), len(orders)))
        for i, one in enumerate(self.charges):
            if not one.steps:
                continue
            costs = rdp.cost(one.history, self.adjacency, orders)
            if one.selection is not None:
                account = WorstCaseAccountant(engine="rdp", adjacency=self.adjacency)
                for z, q, n in one.steps:
                    account.step(noise_multiplier=z, sampling_rate=q, steps=n)
                costs = one.selection.cost(costs, orders, account.delta)
            found[i] = costs
        return found

    def _summed(self, notion: str, adaptive: bool) -> Guarantee | None:
        """The sum of what all runs said of themselves; None where one of them did not, or spoke of others."""
        several = [self._of(one.run, notion) for one in self.charges]
        known = [one for one in several if one is not None]
        if not known or len(known) < len(several) or len({one.source for one in self.charges}) > 1:
            return None
        if any(one.selection for one in self.charges):
            return None  # of the runs that were not the best nothing is known
        if notion == "per-instance" and (len({self.watched.get(one.run, "") for one in self.charges}) > 1):
            return None
        if any(one.coverage is None for one in known) or len({one.adjacency for one in known}) > 1:
            return None
        delta = sum(one.delta for one in known)
        if not 0 < delta < 1:
            return None
        dp = self.dp(delta, adaptive=adaptive).epsilon
        outside = sum(1 - float(one.coverage or 0) for one in known if not one.no_better)
        sides: set[Orientation] = {one.orientation for one in known}
        return Guarantee(
            notion="bdp" if notion == "bdp" else "per-instance",
            epsilon=sum(_least(one) for one in known),
            delta=delta,
            coverage=max(0.0, 1 - outside) if notion == "bdp" else known[0].coverage,
            failure=min(1.0, sum(one.failure for one in known)),
            orientation=sides.pop() if len(sides) == 1 else "both",
            adjacency=self.adjacency,
            ex_post=any(one.ex_post for one in known),
            assumptions=tuple(dict.fromkeys((_SUM, *(words for one in known for words in one.assumptions)))),
            sensitive=True,
            dp_epsilon=dp if math.isfinite(dp) else None,
        )

    def _of(self, run: str, notion: str) -> Guarantee | None:
        return next((one for one in self.measured.get(run, ()) if one.notion == notion and _proved(one)), None)


def _least(one: Guarantee) -> float:
    return one.epsilon if one.dp_epsilon is None else min(one.epsilon, one.dp_epsilon)


def _proved(one: Guarantee) -> Any:
    return one.standing == "proved" and math.isfinite(one.epsilon)
