"""Individual privacy filters (H4): each record takes part until its own budget is spent, then no more.

A filter turns realised, per-record costs back into an ordinary guarantee fixed in advance: a record's steps
are chosen by the past, but its total never passes the budget, and that is enough (Feldman and Zrnic 2021
for Rényi costs at one fixed order, Koskela, Tobaben and Honkela 2023 for Gaussians without sampling).

Call `admit` once per step, **before** the step, with the cost of every record, sampled or not: a record
that the batch happens to miss is charged too. Which records are dropped is private; do not publish it.
Filters on other curves (PLD, f-DP) are invalid in general and not offered here.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayesdp.errors import Array, InputError, array, number, one_of, whole

Mask = npt.NDArray[np.bool_]


class _Budget:
    """Amounts per record that add up to at most a limit; a record that would pass it is out for good."""

    def __init__(self, records: int, limit: float) -> None:
        self._limit = limit
        self._spent = np.zeros(whole("records", records, least=1))
        self._active = np.ones(self._spent.size, dtype=bool)

    @property
    def active(self) -> Mask:
        """Which records may still take part (a copy)."""
        return self._active.copy()

    def _charge(self, amounts: Array) -> Mask:
        # Refused amounts may be infinite; the comparison then fails, as it should.
        after = self._spent + amounts
        self._active &= after <= self._limit
        self._spent = np.where(self._active, after, self._spent)
        return self._active.copy()

    def _amounts(self, name: str, values: Any) -> Array:
        result = array(name, values, least=0, infinite=True, ndim=1)
        if result.size != self._spent.size:
            raise InputError(f"Expected {name} with one entry per record, {self._spent.size}, got {result.size}.")
        return result

    def _restore(self, state: dict[str, Any]) -> None:
        spent = array("state spent", state["spent"], least=0, most=self._limit, ndim=1)
        active = np.asarray(state["active"])
        if spent.shape != self._spent.shape or active.shape != spent.shape or active.dtype != np.bool_:
            raise InputError(f"Expected a filter state of {self._spent.size} records, got shape {spent.shape}.")
        self._spent, self._active = spent.copy(), active.copy()


class RenyiFilter(_Budget):
    """Drop record i from step t on if Σ_{s<=t} D_α(step s, record i) would exceed the budget R (H4).

    Guarantee: (α, R)-RDP of the whole run for every record, whatever the adaptive choice of costs, if each
    cost is that record's own divergence at `order` given the past (both directions; clip each record at the
    norm it was charged for). Convert with B10.

    Bad input: fewer than one record, order ≤ 1, a budget that is negative or not finite get `InputError`.
    """

    kind = "renyi-filter"

    def __init__(self, records: int, order: float, budget: float) -> None:
        self.order = number("order", order, above=1)
        self.budget = number("budget", budget, least=0)
        super().__init__(records, self.budget)

    @property
    def spent(self) -> Array:
        """Σ D_α charged so far, per record, never above `budget` (a copy)."""
        return self._spent.copy()

    def admit(self, costs: Any) -> Mask:
        """Who takes part in this step; exactly those are charged cost/(α − 1).

        `costs` are (α − 1) D_α of this step, one per record, as everywhere. Infinite costs drop the record.
        Bad input (negative, NaN, wrong number of records) gets `InputError` and charges nobody.
        """
        return self._charge(self._amounts("costs", costs) / (self.order - 1))

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later: plain numbers and arrays (copies)."""
        return {
            "kind": self.kind,
            "order": self.order,
            "budget": self.budget,
            "spent": self.spent,
            "active": self.active,
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The filter of `state`. A state of another kind or with spent > budget gets `InputError`."""
        _has(state, cls.kind, "order", "budget", "spent", "active")
        result = cls(np.size(state["spent"]), state["order"], state["budget"])
        result._restore(state)
        return result


class GaussianFilter(_Budget):
    """Drop record i from step t on if Σ_{s<=t} r_{s,i}² would exceed μ² (H4); sampling rate 1 only.

    r = norm/noise_std is the record's shift in noise units, so the budget on squared norms is μ² noise_std².
    Guarantee: μ-GDP of the whole run, whatever the adaptive choice of norms, if every record takes part in
    every step (no sampling): a subsampled Gaussian has no such filter. Convert with B8.

    Bad input: fewer than one record, μ that is negative or not finite get `InputError`.
    """

    kind = "gaussian-filter"

    def __init__(self, records: int, mu: float) -> None:
        self.mu = number("mu", mu, least=0)
        super().__init__(records, self.mu**2)

    @property
    def spent(self) -> Array:
        """Σ r² charged so far, per record, never above mu² (a copy)."""
        return self._spent.copy()

    def admit(self, shifts: Any) -> Mask:
        """Who takes part in this step; exactly those are charged their squared shift.

        Bad input (negative, NaN, wrong number of records) gets `InputError` and charges nobody.
        """
        with np.errstate(over="ignore"):
            return self._charge(np.square(self._amounts("shifts", shifts)))

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later: plain numbers and arrays (copies)."""
        return {"kind": self.kind, "mu": self.mu, "spent": self.spent, "active": self.active}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The filter of `state`. A state of another kind or with spent > mu² gets `InputError`."""
        _has(state, cls.kind, "mu", "spent", "active")
        result = cls(np.size(state["spent"]), state["mu"])
        result._restore(state)
        return result


def _has(state: dict[str, Any], kind: str, *keys: str) -> None:
    one_of("state kind", state.get("kind"), (kind,))
    missing = [key for key in keys if key not in state]
    if missing:
        raise InputError(f"Expected a filter state with {', '.join(keys)}, missing {', '.join(missing)}.")
