"""`bayesdp epsilon` and `bayesdp delta`: what a plan of noisy steps promises everybody."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayesdp import errors
from bayesdp.cli import options, terminal
from bayesdp.cli.option_groups import spread
from bayesdp.errors import InputError

if TYPE_CHECKING:
    from bayesdp.accountant import WorstCaseAccountant


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """A plan of noisy steps."""

    noise_multiplier: options.NoiseMultiplier = None
    sampling_rate: options.SamplingRate = 1.0
    steps: options.Steps = None
    phase: options.Phases = None
    engine: options.Engine = "pld"
    adjacency: options.Adjacency = "add-remove"
    orders: options.Orders = None


@spread
def epsilon(
    *,
    delta: options.Delta,
    plan: PlanOptions,
    json: options.Json = False,
) -> None:
    r"""
    The DP ε of a plan, at a given δ.

    It holds for everybody, whatever the data, and needs no data: the noise, the chance that a record enters a step and
    the number of steps are enough. Steps of several kinds are added with --phase.

    For example:
      bayesdp epsilon --noise-multiplier 1.1 --sampling-rate 0.01 \
              --steps 1000 --delta 1e-5
      bayesdp epsilon --phase 2,0.01,500 --phase 1,0.01,100 --delta 1e-5 --json
    """
    accountant = counted(plan)
    terminal.guarantees([accountant.guarantee(delta)], json=json)


@spread
def delta(
    *,
    epsilon: options.Epsilon,
    plan: PlanOptions,
    json: options.Json = False,
) -> None:
    r"""
    The δ of a plan, at a given DP ε.

    The same question as "bayesdp epsilon", asked the other way round: the chance that the ε does not hold.

    For example:
      bayesdp delta --noise-multiplier 1.1 --sampling-rate 0.01 \
              --steps 1000 --epsilon 2
    """
    accountant = counted(plan)
    found = accountant.delta(epsilon)
    # The fine print of the plan does not depend on δ; the pair (ε, δ) is the one just computed.
    fine_print = accountant.guarantee(0.5)
    terminal.guarantees([dataclasses.replace(fine_print, epsilon=epsilon, delta=found, delta_split={})], json=json)


def counted(plan: PlanOptions) -> WorstCaseAccountant:
    """An accountant that has counted the steps of the options."""
    from bayesdp.accountant import WorstCaseAccountant

    noise_multiplier, steps = plan.noise_multiplier, plan.steps
    accountant = WorstCaseAccountant(
        engine=plan.engine,  # type: ignore[arg-type]  # checked there, as all that follows
        adjacency=plan.adjacency,  # type: ignore[arg-type]
        orders=options.order_list(plan.orders),
    )
    if (noise_multiplier is None) != (steps is None) or (steps is None and not plan.phase):
        given = f"{errors.Argument('noise_multiplier', noise_multiplier)} and {errors.Argument('steps', steps)}"
        raise errors.unmet(
            "noise_multiplier",
            noise_multiplier,
            f"{errors.named('noise_multiplier')} and {errors.named('steps')} together, or "
            f"{errors.named('phase')} Z,Q,N",
            given,
        )
    if steps is not None:
        accountant.step(noise_multiplier=noise_multiplier, sampling_rate=plan.sampling_rate, steps=steps)  # type: ignore[arg-type]
    for phase in plan.phase or []:
        noise, rate, count = options.numbers("phase", phase, 3)
        try:
            accountant.step(noise_multiplier=noise, sampling_rate=rate, steps=count)  # type: ignore[arg-type]
        except InputError as problem:
            raise problem.adding(f"In {errors.Argument('phase', phase)}.") from None
    return accountant
