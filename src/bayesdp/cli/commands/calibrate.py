"""`bayesdp calibrate`: the noise, the steps or the rate that keep a promise."""

from __future__ import annotations

from functools import partial
from typing import Any

from bayesdp import errors
from bayesdp.cli import options, terminal
from bayesdp.rounding import down, up


def calibrate(
    delta: options.Delta,
    epsilon: options.EpsilonOrNone = None,
    attacker: options.Attacker = None,
    advantage: options.Advantage = None,
    noise_multiplier: options.NoiseMultiplier = None,
    sampling_rate: options.SamplingRateOrNone = None,
    steps: options.Steps = None,
    engine: options.Engine = "pld",
    adjacency: options.Adjacency = "add-remove",
    json: options.Json = False,
) -> None:
    r"""
    The least noise, the most steps or the highest rate for a promised DP (ε, δ), or for a risk.

    Give two of --noise-multiplier, --sampling-rate and --steps; the third is found. What is printed was itself
    accounted for and never overshoots what was promised. Instead of --epsilon a risk can be given: --attacker, how
    often somebody who guesses whether a record was used may be right, or --advantage. With --json the guarantee also
    carries the three numbers.

    For example:
      bayesdp calibrate --epsilon 2 --delta 1e-5 --sampling-rate 0.01 --steps 1000
      bayesdp calibrate --epsilon 2 --delta 1e-5 \
              --noise-multiplier 1.1 --sampling-rate 0.01
      bayesdp calibrate --epsilon 2 --delta 1e-5 \
              --noise-multiplier 1.1 --steps 1000
      bayesdp calibrate --attacker 0.55 --delta 1e-5 \
              --sampling-rate 0.01 --steps 1000
    """
    plan: dict[str, Any] = {"noise_multiplier": noise_multiplier, "sampling_rate": sampling_rate, "steps": steps}
    missing = [name for name, value in plan.items() if value is None]
    if len(missing) != 1:
        given = ", ".join(errors.named(name) for name in plan if name not in missing) or "none"
        raise errors.unmet(
            "noise_multiplier",
            noise_multiplier,
            f"two of {errors.named('noise_multiplier')}, {errors.named('sampling_rate')} and {errors.named('steps')}",
            given,
        )

    from bayesdp.accountant import WorstCaseAccountant
    from bayesdp.accountant.calibrate import noise_for, rate_for, steps_for

    searches: dict[str, Any] = {"noise_multiplier": noise_for, "sampling_rate": rate_for, "steps": steps_for}
    (wanted,) = missing
    known = {name: value for name, value in plan.items() if name != wanted}
    with terminal.waiting("Searching"):
        plan[wanted] = searches[wanted](
            epsilon, delta, attacker=attacker, advantage=advantage, **known, engine=engine, adjacency=adjacency
        )
    plan["steps"] = int(plan["steps"])
    accountant = WorstCaseAccountant(engine=engine, adjacency=adjacency)  # type: ignore[arg-type]  # the search has checked both
    accountant.step(**plan)
    if json:
        terminal.json_list([{**accountant.guarantee(delta).to_dict(), **plan}])
        return
    # A rounded answer must keep the promise too: noise goes up, the rate down.
    rounded: dict[str, Any] = {
        "noise_multiplier": partial(up, digits=5),
        "sampling_rate": partial(down, digits=5),
        "steps": str,
    }
    terminal.line(f"{wanted.replace('_', ' ')} = {rounded[wanted](plan[wanted])}")
    terminal.guarantees([accountant.guarantee(delta)])
