"""`bayesdp calibrate`: the noise, the steps or the rate that keep a promise."""

from __future__ import annotations

from functools import partial
from typing import Any

from bayesdp.cli import options, show
from bayesdp.errors import InputError
from bayesdp.rounding import down, up


def calibrate(
    epsilon: options.Epsilon,
    delta: options.Delta,
    noise_multiplier: options.NoiseMultiplier = None,
    sampling_rate: options.SamplingRateOrNone = None,
    steps: options.Steps = None,
    engine: options.Engine = "pld",
    adjacency: options.Adjacency = "add-remove",
    json: options.Json = False,
) -> None:
    r"""
    The least noise, the most steps or the highest rate for a promised DP (ε, δ).

    Give two of --noise-multiplier, --sampling-rate and --steps; the third is found. What is printed was itself
    accounted for and never overshoots the ε. With --json the guarantee also carries the three numbers.

    For example:
      bayesdp calibrate --epsilon 2 --delta 1e-5 --sampling-rate 0.01 --steps 1000
      bayesdp calibrate --epsilon 2 --delta 1e-5 \
              --noise-multiplier 1.1 --sampling-rate 0.01
      bayesdp calibrate --epsilon 2 --delta 1e-5 \
              --noise-multiplier 1.1 --steps 1000
    """
    plan: dict[str, Any] = {"noise_multiplier": noise_multiplier, "sampling_rate": sampling_rate, "steps": steps}
    missing = [name for name, value in plan.items() if value is None]
    if len(missing) != 1:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in plan if name not in missing) or "none"
        raise InputError(f"Expected two of --noise-multiplier, --sampling-rate and --steps, got {given}.")

    from bayesdp.accountant import WorstCaseAccountant
    from bayesdp.accountant.calibrate import noise_for, rate_for, steps_for

    searches: dict[str, Any] = {"noise_multiplier": noise_for, "sampling_rate": rate_for, "steps": steps_for}
    (wanted,) = missing
    known = {name: value for name, value in plan.items() if name != wanted}
    with show.waiting("Searching"):
        plan[wanted] = searches[wanted](epsilon, delta, **known, engine=engine, adjacency=adjacency)
    plan["steps"] = int(plan["steps"])
    accountant = WorstCaseAccountant(engine, adjacency)  # type: ignore[arg-type]  # the search has checked both
    accountant.step(**plan)
    if json:
        show.json_list([{**accountant.guarantee(delta).to_dict(), **plan}])
        return
    # A rounded answer must keep the promise too: noise goes up, the rate down.
    rounded: dict[str, Any] = {
        "noise_multiplier": partial(up, digits=5),
        "sampling_rate": partial(down, digits=5),
        "steps": str,
    }
    show.line(f"{wanted.replace('_', ' ')} = {rounded[wanted](plan[wanted])}")
    show.guarantees([accountant.guarantee(delta)])
