"""`bayesdp epsilon` and `bayesdp delta`: what a plan of noisy steps promises everybody."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from bayesdp.cli import options, show
from bayesdp.errors import InputError

if TYPE_CHECKING:
    from bayesdp.accountant import WorstCaseAccountant


def epsilon(
    delta: options.Delta,
    noise_multiplier: options.NoiseMultiplier = None,
    sampling_rate: options.SamplingRate = 1.0,
    steps: options.Steps = None,
    phase: options.Phases = None,
    engine: options.Engine = "pld",
    adjacency: options.Adjacency = "add-remove",
    orders: options.Orders = None,
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
    accountant = _counted(noise_multiplier, sampling_rate, steps, phase, engine, adjacency, orders)
    show.guarantees([accountant.guarantee(delta)], json=json)


def delta(
    epsilon: options.Epsilon,
    noise_multiplier: options.NoiseMultiplier = None,
    sampling_rate: options.SamplingRate = 1.0,
    steps: options.Steps = None,
    phase: options.Phases = None,
    engine: options.Engine = "pld",
    adjacency: options.Adjacency = "add-remove",
    orders: options.Orders = None,
    json: options.Json = False,
) -> None:
    r"""
    The δ of a plan, at a given DP ε.

    The same question as "bayesdp epsilon", asked the other way round: the chance that the ε does not hold.

    For example:
      bayesdp delta --noise-multiplier 1.1 --sampling-rate 0.01 \
              --steps 1000 --epsilon 2
    """
    accountant = _counted(noise_multiplier, sampling_rate, steps, phase, engine, adjacency, orders)
    found = accountant.delta(epsilon)
    # The fine print of the plan does not depend on δ; the pair (ε, δ) is the one just computed.
    fine_print = accountant.guarantee(0.5)
    show.guarantees([dataclasses.replace(fine_print, epsilon=epsilon, delta=found, delta_split={})], json=json)


def _counted(
    noise_multiplier: float | None,
    sampling_rate: float,
    steps: float | None,
    phases: list[str] | None,
    engine: Any,
    adjacency: Any,
    orders: str | None,
) -> WorstCaseAccountant:
    from bayesdp.accountant import WorstCaseAccountant

    accountant = WorstCaseAccountant(engine, adjacency, options.order_list(orders))
    if (noise_multiplier is None) != (steps is None) or (steps is None and not phases):
        given = f"--noise-multiplier={noise_multiplier} and --steps={steps}"
        raise InputError(f"Expected --noise-multiplier and --steps together, or --phase Z,Q,N, got {given}.")
    if steps is not None:
        accountant.step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps)  # type: ignore[arg-type]
    for phase in phases or []:
        noise, rate, count = options.numbers("--phase", phase, 3)
        try:
            accountant.step(noise_multiplier=noise, sampling_rate=rate, steps=count)  # type: ignore[arg-type]
        except InputError as problem:
            raise InputError(f"{problem} In --phase={phase!r}.") from None
    return accountant
