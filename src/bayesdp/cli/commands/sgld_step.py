"""`bayesdp sgld-step`: how long the steps of private Langevin dynamics may be, by every bound that there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from bayesdp import errors
from bayesdp.cli import options, terminal
from bayesdp.rounding import down, up

if TYPE_CHECKING:
    from bayesdp.accountant.langevin.printed_bounds import Bound
    from bayesdp.accountant.langevin.step_size import Langevin

BOTH = "both"

Records = Annotated[float, options.plan("--records", "N", "How many records the data has, e.g. 50000.")]
Rate = Annotated[float, options.plan("--sampling-rate", "Q", "Chance that a record enters a step, e.g. 0.002.")]
Steps = Annotated[float, options.plan("--steps", "T", "Number of steps; all iterates are released, e.g. 10000.")]
ClipNorm = Annotated[float, options.plan("--clip-norm", "L", "Bound on the gradient of one record, e.g. 1.")]
Temperature = Annotated[
    float, options.plan("--temperature", "K", "Noise variance 2Kη/N: 1 is the posterior, 0.5 the paper's Algorithm 1.")
]
Schedule = Annotated[
    str,
    options.plan(
        "--schedule", "NAME", "fixed, decreasing (as t^(-1/3): a minute or more, unless --engine rdp) or both.", None
    ),
]
Json = Annotated[bool, options.output("--json", " ", "Print the table as a JSON list and nothing else.")]

HEADS = {"fixed": "fixed step", "decreasing": "first of t^-⅓"}


def sgld_step(
    epsilon: options.Epsilon,
    delta: options.Delta,
    records: Records,
    sampling_rate: Rate,
    steps: Steps,
    clip_norm: ClipNorm = 1.0,
    temperature: Temperature = 1.0,
    schedule: Schedule = "fixed",
    engine: options.Engine = "pld",
    adjacency: options.Adjacency = "add-remove",
    json: Json = False,
) -> None:
    r"""
    The largest step of private Langevin dynamics (SGLD) for a promised DP (ε, δ).

    The noise that the sampler needs anyway is all the noise there is; a longer step has less of it for each unit of
    gradient. Beside the exact answer stand the bounds of the papers, each with what its step really costs and which
    of its assumptions fail. The step η is that of the mean gradient: θ moves by η times (prior/N + batch mean).

    For example:
      bayesdp sgld-step --epsilon 0.1 --delta 1e-5 --records 50000 \
              --sampling-rate 0.002 --steps 10000
      bayesdp sgld-step --epsilon 1 --delta 1e-5 --records 60000 \
              --sampling-rate 0.002 --steps 9375 --clip-norm 0.3 \
              --schedule both --engine rdp
    """
    from bayesdp.accountant.langevin.printed_bounds import bounds
    from bayesdp.accountant.langevin.step_size import SCHEDULES, Langevin

    errors.one_of("schedule", schedule, [*SCHEDULES, BOTH])
    count = errors.whole("records", records, least=1)
    rate = errors.number("sampling_rate", sampling_rate, above=0, most=1)
    wanted = SCHEDULES if schedule == BOTH else (schedule,)
    chains = [
        Langevin(
            records=count,
            batch=rate * count,
            steps=errors.whole("steps", steps, least=1),
            bound=errors.number("clip_norm", clip_norm, above=0),
            schedule=one,  # type: ignore[arg-type]  # Langevin checks this and the next two
            temperature=temperature,
            adjacency=adjacency,  # type: ignore[arg-type]
        )
        for one in wanted
    ]
    with terminal.waiting("Searching"):
        found = [(chain, row) for chain in chains for row in bounds(chain, epsilon, delta, engine)]  # type: ignore[arg-type]
    if json:
        terminal.json_list([_plain(chain, row) for chain, row in found])
        return
    _show(found, chains[0], delta, engine)


def _plain(chain: Langevin, row: Bound) -> dict[str, Any]:
    from bayesdp.accountant.langevin import printed_bounds, utility_bounds

    return {
        **row.to_dict(),
        "adjacency": chain.adjacency,
        "utility": utility_bounds.terms(chain, row.step)._asdict(),
        "printed_limits": printed_bounds.printed_limits(chain)._asdict(),
        "corrected_limits": printed_bounds.corrected_limits(chain)._asdict(),
    }


def _show(found: list[tuple[Langevin, Bound]], chain: Langevin, delta: float, engine: str) -> None:
    from bayesdp.accountant.langevin import printed_bounds, utility_bounds

    broken: list[str] = []
    for schedule, head in HEADS.items():
        rows = []
        for one, row in found:
            if row.schedule != schedule:
                continue
            if row.fails:
                broken.append(f"[{len(broken) + 1}] fails: {'; '.join(row.fails)}.")
            mark = f" [{len(broken)}]" if row.fails else ""
            noise = f"{2 * row.temperature:g}η/N" if row.temperature != 0.5 else "η/N"
            terms = utility_bounds.terms(one, row.step)
            values = down(row.step, 4), noise, up(row.epsilon, 4), f"{terms.start:.3g}", f"{terms.bias:.3g}"
            rows.append((row.name, *values, row.label + mark))
        if rows:
            terminal.line("")
            terminal.table((head, "η at most", "noise", "DP ε there", "1/Ση", "bias", "kind"), rows)
    terminal.line(
        f"\nDP ε there: what all iterates are accounted at, δ = {up(delta, 3)}, {chain.adjacency}, engine "
        f"{engine}. bd.SGLD's step_size is η divided by the number of records; chains count as so many times the "
        "steps. 1/Ση and bias (Ση²/Ση)²: terms of the utility bound that depend on the step (F9), up to an unknown "
        f"constant; their sum is least at a fixed step of {utility_bounds.best_fixed_step(chain.steps)[0]:.3g}."
    )
    for _, row in found:
        if row.constants is not None:
            terminal.line(f"{row.name}: c₁ = {row.constants.first:.4g}, c₂ = {row.constants.second:.4g}.")
    for words in broken:
        terminal.line(words)
    limits = [
        (name, f"η > {one.least:.4g}", f"η ≤ {one.most:.4g}")
        for name, one in (
            ("as printed", printed_bounds.printed_limits(chain)),
            ("corrected: the q² that was lost (ERR 26)", printed_bounds.corrected_limits(chain)),
        )
    ]
    terminal.line("")
    terminal.table(("conditions of Theorems 3 and 4", "q < 1/(16z)", "z ≥ 1"), limits)
