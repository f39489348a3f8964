"""dp-accounting: compose its events into our worst-case accountant, and ask it dp-accounting's questions.

    Adapter(WorstCaseAccountant("pld")).compose(event, count).get_epsilon(target_delta)

    event_of(plan)                      our plan, accountant or charge as a DpEvent
    guarantee_of(event, delta)          their event, or a plan that has one (JAX-Privacy), as our Guarantee

Events: no-op, non-private, Gaussian, Poisson-sampled Gaussian, and compositions of these. A Gaussian event's
noise multiplier is noise / (what one record can add), as in dp-accounting's own PLD, under either adjacency.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import dp_accounting
from dp_accounting import dp_event

from bayesdp.accountant.rdp import Run, phases
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import number, refuse
from bayesdp.errors import rate as checked_rate
from bayesdp.guarantee import Adjacency, Guarantee
from bayesdp.ledger import Charge

if TYPE_CHECKING:
    from bayesdp.learn.loop.plan import Plan

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


def event_of(spent: Plan | WorstCaseAccountant | Charge) -> Any:
    """What was or will be spent, as one dp-accounting event: a composition of Poisson-sampled Gaussians.

    Args:
        spent: a plan with its noise set, a `WorstCaseAccountant`, or a ledger's `Charge` of noisy steps.

    Returns:
        a `dp_event.DpEvent`; no-op where nothing was spent, non-private where nothing bounds it.

    Bad input: a selection, or an (ε, δ) beside the steps, for which there is no such event.

    Example:
        >>> import bayesdp as bd
        >>> from bayesdp.interop.dp_accounting import event_of, guarantee_of
        >>> account = bd.WorstCaseAccountant()
        >>> account.step(noise_multiplier=1.1, sampling_rate=0.01, steps=1000)
        >>> guarantee_of(event_of(account), 1e-5).epsilon == account.epsilon(1e-5)
        True
    """
    if isinstance(spent, Charge):
        if spent.selection is not None or spent.delta or 0 < spent.epsilon < math.inf:
            raise refuse("spent", spent.what, "to be made of noisy steps alone", got="another charge")
        history = None if spent.epsilon else spent.history
    elif isinstance(spent, WorstCaseAccountant):
        history = spent.history
    else:
        noisy = spent.bounded and bool((spent.noise > 0).all())
        before = () if spent.prelude is None else (Run(spent.prelude, 1.0, 1),)
        history = (*before, *phases(spent.noise, spent.rates)) if noisy else None
    if history is None:
        return dp_event.NonPrivateDpEvent()
    events = [_steps(*run) for run in history]
    return dp_event.ComposedDpEvent(events) if events else dp_event.NoOpDpEvent()


def _steps(noise: float, rate: float, count: int) -> Any:
    one = dp_event.GaussianDpEvent(noise)
    return dp_event.SelfComposedDpEvent(one if rate == 1 else dp_event.PoissonSampledDpEvent(rate, one), count)


def guarantee_of(event: Any, delta: float, *, adjacency: Adjacency = "add-remove") -> Guarantee:
    """What an event of dp-accounting promises everybody, by our accountant.

    Args:
        event: a `DpEvent`, or a plan that has one as `dp_event`, such as JAX-Privacy's.
        delta: of the promise.
        adjacency: of neighbours; a Gaussian's noise multiplier is noise / what one record can add under either.

    Returns:
        a "dp" `Guarantee`.

    Bad input: an event of another kind, or one that is not private.
    """
    found = event if isinstance(event, dp_event.DpEvent) else vars(type(event)).get("dp_event")
    if not isinstance(event, dp_event.DpEvent):
        found = None if found is None else event.dp_event
    if not isinstance(found, dp_event.DpEvent):
        raise refuse("event", event, "to be a DpEvent, or a plan that has one as dp_event")
    adapter = Adapter(WorstCaseAccountant(adjacency=adjacency))
    try:
        adapter.compose(found)
    except dp_accounting.UnsupportedEventError as problem:
        hint = "Supported are Gaussian events, Poisson-sampled or not, and their compositions."
        raise refuse(
            "event", found, "to be of a kind that is accounted for here", hint, got=str(problem)[:200]
        ) from None
    if adapter.get_epsilon(delta) == math.inf:
        raise refuse("event", found, "to be private", got="one that is not")
    return adapter.accountant.guarantee(delta)
