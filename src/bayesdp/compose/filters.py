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

from bayesdp.errors import Array, array, number, one_of, refuse, unmet, whole

Mask = npt.NDArray[np.bool_]


class _Budget:
    """Amounts per record that add up to at most a limit, one for all or one each; who would pass it is out for good."""

    def __init__(self, records: int, limit: float | Array) -> None:
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
            raise refuse(name, result.size, f"with one entry per record, {self._spent.size}", got=f"{result.size}")
        return result

    def _restore(self, state: dict[str, Any]) -> None:
        spent = array("state spent", state["spent"], least=0, ndim=1)
        active = np.asarray(state["active"])
        if spent.shape == self._spent.shape and (spent > self._limit).any():
            raise refuse("state spent", float(spent.max()), "to be at most the budget")
        if spent.shape != self._spent.shape or active.shape != spent.shape or active.dtype != np.bool_:
            raise unmet("state", spent.shape, f"a filter state of {self._spent.size} records", f"shape {spent.shape}")
        self._spent, self._active = spent.copy(), active.copy()


class RenyiFilter(_Budget):
    """Drop record i from step t on if Σ_{s<=t} D_α(step s, record i) would exceed the budget R (Rényi filter, H4).

    Guarantee: (α, R)-RDP of the whole run for every record, whatever the adaptive choice of costs, if each
    cost is that record's own divergence at `order` given the past (both directions; clip each record at the
    norm it was charged for). Convert with `convert.epsilon` (B10).

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
    """Drop record i from step t on if Σ_{s<=t} r_{s,i}² would exceed μ² (Gaussian filter, H4); sampling rate 1 only.

    r = norm/noise_std is the record's shift in noise units, so the budget on squared norms is μ² noise_std².
    Guarantee: μ-GDP of the whole run, whatever the adaptive choice of norms, if every record takes part in
    every step (no sampling): a subsampled Gaussian has no such filter. Convert with the Gaussian's hockey stick (B8).

    With one μ for each record, each has its own guarantee, and everybody the largest.

    Bad input: fewer than one record, μ that is negative or not finite get `InputError`.
    """

    kind = "gaussian-filter"

    def __init__(self, records: int, mu: float | Array) -> None:
        self.mu = number("mu", mu, least=0) if np.ndim(mu) == 0 else _each("mu", mu, records, ndim=1)
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


class RenyiBudgets:
    """Budgets that people chose: for each record a limit on Σ_s D_α at one or several orders, infinite where none (H4).

    Drop record i from step t on if its sum would pass any of its limits. Guarantee: every finite limit is an
    (α, R)-RDP bound for that record, as for `RenyiFilter`, so that each record has the least ε of its limits, and
    everybody the largest of these. A limit must depend on the record alone (its owner's choice) and on public numbers:
    nobody's choice may move another's. Who has a limit of 0 takes part in nothing.

    Bad input: orders that are ≤ 1 or not ascending, `budgets` that are not (records, orders), negative or NaN, or a
    record without any limit get `InputError`.
    """

    kind = "renyi-budgets"

    def __init__(self, orders: Any, budgets: Any) -> None:
        self.orders = array("orders", orders, above=1, ndim=1)
        self.budgets = array("budgets", budgets, least=0, infinite=True, ndim=2)
        if (np.diff(self.orders) <= 0).any() or self.budgets.shape[1] != self.orders.size or not self.budgets.size:
            raise refuse("budgets", self.budgets.shape, "of shape (records, orders), the orders ascending")
        if np.isinf(self.budgets).all(axis=1).any():
            raise refuse("budgets", np.inf, "to limit every record at one order or more")
        self._spent = np.zeros(self.budgets.shape)
        self._active = np.ones(len(self.budgets), dtype=bool)

    @property
    def active(self) -> Mask:
        """Which records may still take part (a copy)."""
        return self._active.copy()

    @property
    def spent(self) -> Array:
        """Σ D_α charged so far, (records, orders) (a copy)."""
        return self._spent.copy()

    def admit(self, costs: Any) -> Mask:
        """Who takes part in this step; exactly those are charged. `costs` are (α − 1) D_α, (records, orders).

        Bad input (negative, NaN, another shape) gets `InputError` and charges nobody.
        """
        amounts = array("costs", costs, least=0, infinite=True, ndim=2)
        if amounts.shape != self._spent.shape:
            raise refuse("costs", amounts.shape, f"of shape {self._spent.shape}", got=f"shape {amounts.shape}")
        after = self._spent + amounts / (self.orders - 1)
        self._active &= (after <= self.budgets).all(axis=1)
        self._spent = np.where(self._active[:, None], after, self._spent)
        return self._active.copy()

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later: plain numbers and arrays (copies)."""
        return {
            "kind": self.kind,
            "orders": self.orders.copy(),
            "budgets": self.budgets.copy(),
            "spent": self.spent,
            "active": self.active,
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The filter of `state`. A state of another kind or with spent > budget gets `InputError`."""
        _has(state, cls.kind, "orders", "budgets", "spent", "active")
        result = cls(state["orders"], state["budgets"])
        spent = array("state spent", state["spent"], least=0, infinite=True, ndim=2)
        active = np.asarray(state["active"])
        if spent.shape != result._spent.shape or active.shape != result._active.shape or active.dtype != np.bool_:
            raise unmet("state", spent.shape, f"a filter state of {len(active)} records", f"shape {spent.shape}")
        if (spent > result.budgets).any():
            raise refuse("state spent", float(spent.max()), "to be at most the budget")
        result._spent, result._active = spent.copy(), active.copy()
        return result


def _each(name: str, value: Any, records: int, ndim: int) -> Array:
    result = array(name, value, least=0, ndim=ndim)
    if len(result) != records:
        raise refuse(name, len(result), f"with one entry for each of the {records} records", got=f"{len(result)}")
    return result


def _has(state: dict[str, Any], kind: str, *keys: str) -> None:
    one_of("state kind", state.get("kind"), (kind,))
    missing = [key for key in keys if key not in state]
    if missing:
        raise unmet("state", sorted(missing), f"a filter state with {', '.join(keys)}, missing {', '.join(missing)}")
