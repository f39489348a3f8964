"""dp-accounting: compose its events into our worst-case accountant, and ask it dp-accounting's questions.

    Adapter(WorstCaseAccountant("pld")).compose(event, count).get_epsilon(target_delta)

Events: no-op, non-private, Gaussian, Poisson-sampled Gaussian, and compositions of these. A Gaussian event's
noise multiplier is noise / (what one record can add), as in dp-accounting's own PLD, under either adjacency.
"""

from __future__ import annotations

import math
from typing import Any

import dp_accounting
from dp_accounting import dp_event

from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import number
from bayesdp.errors import rate as checked_rate

RELATIONS = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
}


class Adapter(dp_accounting.PrivacyAccountant):  # type: ignore[misc]  # dp-accounting ships no types
    """A `WorstCaseAccountant` behind dp-accounting's interface: it keeps dp-accounting's contract tests.

    Guarantee: ε and δ are those of `accountant`; a non-private event makes them infinite and 1 for good.
    Bad input: an event of another kind raises dp-accounting's `UnsupportedEventError` and composes nothing;
    `target_delta` outside [0, 1] or a negative `target_epsilon` gets `InputError`.
    """

    def __init__(self, accountant: WorstCaseAccountant | None = None) -> None:
        self.accountant = WorstCaseAccountant() if accountant is None else accountant
        super().__init__(RELATIONS[self.accountant.adjacency])
        self._private = True

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, dp_event.NoOpDpEvent):
            return None
        if isinstance(event, dp_event.NonPrivateDpEvent):
            return self._count(0.0, 1.0, count, do_compose)
        if isinstance(event, dp_event.SelfComposedDpEvent):
            return self._maybe_compose(event.event, event.count * count, do_compose)
        if isinstance(event, dp_event.ComposedDpEvent):
            problems = (self._maybe_compose(one, count, do_compose) for one in event.events)
            return next((problem for problem in problems if problem is not None), None)
        if isinstance(event, dp_event.GaussianDpEvent):
            return self._count(event.noise_multiplier, 1.0, count, do_compose)
        if isinstance(event, dp_event.PoissonSampledDpEvent) and isinstance(event.event, dp_event.GaussianDpEvent):
            return self._count(event.event.noise_multiplier, event.sampling_probability, count, do_compose)
        return self.CompositionErrorDetails(
            invalid_event=event,
            error_message="Supported are Gaussian events, Poisson-sampled or not, and their compositions.",
        )

    def _count(self, noise_multiplier: float, rate: float, count: int, do_compose: bool) -> None:
        # Checked on the dry pass too: dp-accounting writes its ledger between that and the real one.
        z = number("noise_multiplier", noise_multiplier, least=0)
        q = checked_rate("sampling_probability", rate)
        if not do_compose or q == 0:
            return
        if z == 0:
            self._private = False
        else:
            self.accountant.step(noise_multiplier=z, sampling_rate=q, steps=count)

    def get_epsilon(self, target_delta: float) -> float:
        """The ε at δ in [0, 1]: δ = 0 has no finite ε once anything was spent, δ = 1 needs none."""
        delta = number("target_delta", target_delta, least=0, most=1)
        if not self._private:
            return math.inf
        if delta == 1 or self._unspent():
            return 0.0
        return math.inf if delta == 0 else self.accountant.epsilon(delta)

    def get_delta(self, target_epsilon: float) -> float:
        """The δ at ε ≥ 0; 0 at an infinite ε, of which Gaussian noise has no need."""
        if not self._private:
            return 1.0
        if target_epsilon == math.inf or self._unspent():
            return 0.0
        return self.accountant.delta(number("target_epsilon", target_epsilon, least=0))

    def _unspent(self) -> bool:
        return all(run.sampling_rate == 0 for run in self.accountant.history)
