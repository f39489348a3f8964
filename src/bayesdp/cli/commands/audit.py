"""`bayesdp audit`: lower bounds on ε by attacks on the mechanism of a run or of a plan."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesdp import errors
from bayesdp.cli import options, shared_options, terminal
from bayesdp.cli.commands.epsilon_delta import PlanOptions, counted
from bayesdp.cli.option_groups import spread
from bayesdp.rounding import down, up

if TYPE_CHECKING:
    from bayesdp.audit import Audit
    from bayesdp.audit.mechanism import AuditedPlan
    from bayesdp.learn.loop.run_folder import RunFolder
    from bayesdp.report.audit import CanaryBounds

GAMES = {
    "step": "one step, with and without a canary",
    "runs": "whole runs, with and without a canary",
    "one-run": "one run with many canaries",
}

Run = Annotated[
    Path | None, typer.Argument(metavar="RUN", help="The folder that training wrote; left out, a plan by options.")
]
DeltaOrNone = Annotated[
    float | None, options.plan("--delta", "D", "The δ of a plan given by options, e.g. 1e-5; a run has its own.")
]
Games = Annotated[
    list[str] | None,
    options.output("--game", "NAME", "step, runs or one-run; repeat it for several. All three if left out."),
]
Plays = Annotated[
    float | None,
    options.output(
        "--plays", "N", "Steps of the first game, with and without each: 200000 if left out.", options.number
    ),
]
Runs = Annotated[
    float | None,
    options.output(
        "--runs",
        "N",
        "Runs of the second game, of each kind; as many as a million steps make if left out.",
        options.number,
    ),
]
Canaries = Annotated[
    float | None, options.output("--canaries", "M", "Canaries of the third game: 1000 if left out.", options.number)
]
Attack = Annotated[
    str | None,
    options.output(
        "--attack",
        "NUMBERS",
        "Of a RUN: attack these records, e.g. 7,12, by the likelihood ratio over many small runs like it with each of "
        "them in by a coin. From private records: sensitive.",
    ),
]
AttackRuns = Annotated[
    float,
    options.output("--attack-runs", "N", "Small runs of that attack.", options.number),
]
Failure = Annotated[
    float, options.output("--failure", "F", "Chance that a lower bound is too high, of each by itself.", options.number)
]
Seed = Annotated[
    float | None, options.output("--seed", "S", "Play with this seed: the same answer again.", options.number)
]
Json = Annotated[bool, options.output("--json", " ", "Print the findings as JSON and nothing else.")]


@spread
def audit(
    run: Run = None,
    *,
    plan: PlanOptions,
    delta: DeltaOrNone = None,
    game: Games = None,
    plays: Plays = None,
    runs: Runs = None,
    canaries: Canaries = None,
    attack: Attack = None,
    attack_runs: AttackRuns = 1000,
    trust_code: shared_options.TrustCode = False,
    failure: Failure = 0.01,
    seed: Seed = None,
    json: Json = False,
) -> None:
    r"""
    Attack the mechanism of a run, or of a plan, and say what ε is at least.

    The sampler, clipping, noise and loop of training are run with the plan's numbers on canaries: planted records that
    are the worst case of the promise. No private record is used, and what is found may be told to anybody. A lower
    bound above its upper bound means that the mechanism is not what was accounted for: exit code 1.

    Of a RUN the findings are also put into its report. With --attack single records are attacked too, each beside its
    own per-instance ε, in new runs on the records themselves.

    For example:
      bayesdp audit run
      bayesdp audit run --attack 7,12 --attack-runs 2000
      bayesdp audit --noise-multiplier 1 --sampling-rate 0.1 --steps 50 --delta 1e-5
    """
    from bayesdp.audit.audit import CANARIES, PLAYS
    from bayesdp.audit.audit import GAMES as PLAYED
    from bayesdp.audit.audit import audit as audited_by

    if attack is not None and run is None:
        raise errors.refuse("attack", attack, "to come with the folder of a run")
    folder, audited = _of_run(run, plan, delta) if run is not None else (None, _of_plan(plan, delta))
    for one in game or ():
        errors.one_of("game", one, [*PLAYED])
    games = tuple(one for one in PLAYED if game is None or one in game)
    with terminal.waiting("Attacking") as bar:
        [task] = bar.task_ids

        def told(name: str) -> None:
            bar.update(task, description=f"Attacking: {GAMES[name]}")

        found = audited_by(
            audited,
            games=games,
            plays=PLAYS if plays is None else errors.whole("plays", plays),
            runs=None if runs is None else errors.whole("runs", runs),
            canaries=CANARIES if canaries is None else errors.whole("canaries", canaries),
            failure=failure,
            seed=None if seed is None else errors.whole("seed", seed, least=0),
            told=told,
        )
        if attack is not None and run is not None:
            bar.update(task, description="Attacking: single records, over many small runs")
            found = dataclasses.replace(found, canaries=_attacked(run, attack, attack_runs, failure, seed, trust_code))
    page = None if folder is None else _into_report(folder, found)
    if json:
        single = [] if found.canaries is None else [found.canaries.to_dict()]
        terminal.json_list([*(one.to_dict() for one in found.bounds), *single])
    else:
        _tell(found, page)
    if found.refuted:
        raise typer.Exit(1)


def _of_plan(plan: PlanOptions, delta: float | None) -> AuditedPlan:
    from bayesdp.audit.mechanism import AuditedPlan

    if delta is None:
        raise errors.unmet("delta", None, f"{errors.named('delta')} with a plan, or the folder of a run")
    accountant = counted(plan)
    return AuditedPlan.of_history(accountant.history, delta, accountant.adjacency)


def _of_run(run: Path, plan: PlanOptions, delta: float | None) -> tuple[RunFolder, AuditedPlan]:
    from bayesdp.audit.mechanism import AuditedPlan
    from bayesdp.learn.loop.run import Run
    from bayesdp.learn.loop.run_folder import RunFolder

    if plan != PlanOptions() or delta is not None:
        raise errors.refuse("delta", delta, "to be left out with a run, as all of the plan: the run has its own")
    folder = RunFolder.open(run)
    if folder.samples.exists():
        raise errors.refuse("run", str(run), "to be a run of noisy steps: samples of a secret posterior have none")
    folder.check_finished()
    found = Run.load(run, shapeless=True)
    return folder, AuditedPlan.of(found.plan, found.tallies.chains).until(len(found.tallies.noise))


def _attacked(
    run: Path, attack: str, runs: float, failure: float, seed: float | None, trust_code: bool
) -> CanaryBounds:
    """Lower bounds of single records by the membership attack, beside their per-instance ε (L9)."""
    from bayesdp.audit.membership import membership
    from bayesdp.cli.learning import records
    from bayesdp.jobs.prepared_sgd import PreparedSGD
    from bayesdp.unlearn.folder import opened

    found = opened(run, trust_code=trust_code)
    prepared = found.prepared
    if not isinstance(prepared, PreparedSGD) or prepared.data.people is not None:
        raise errors.refuse("attack", attack, "to be left out but for records of a run of train")
    asked = records(attack, "attack")
    if isinstance(asked, str) or found.held_out(asked):
        hint = "Others were held out, or are tested on: the model has not seen them."
        raise errors.refuse("attack", attack, "to be numbers of records that were trained on", hint)
    numbers = found.numbers.tolist()
    bounds = membership(
        prepared.plan,
        prepared.loss,
        prepared.params,
        prepared.trained_on,
        [numbers.index(one) for one in asked],
        runs=errors.whole("attack_runs", runs),
        failure=failure,
        seed=None if seed is None else errors.whole("seed", seed, least=0),
    )
    return dataclasses.replace(bounds, names=tuple(f"record {one}" for one in asked))


def _into_report(folder: RunFolder, found: Audit) -> Path:
    from bayesdp.report import read, write

    with folder.locked(wait=True):
        report = dataclasses.replace(read(folder.need(folder.report)), audit=found)
        for file in (folder.report, folder.page):
            write(report, file)
        folder.seal(folder.report, folder.page)
    return folder.page


def _tell(found: Audit, page: Path | None) -> None:
    terminal.line("Lower bounds on ε by attacks on the mechanism, each beside the upper bound of the same:\n")
    rows = [
        (
            GAMES[one.method],
            "any noise" if one.form == "counting" else "Gaussian noise",
            down(one.epsilon, 3),
            up(one.upper, 4),
            f"{down(100 * (1 - one.failure), 4)} %",
        )
        for one in found.bounds
    ]
    terminal.table(["attack", "if", "ε at least", "ε at most", "confidence"], rows)
    if found.canaries is not None:
        terminal.line("\nSingle records, each beside its own per-instance ε. Sensitive: not for publication.\n")
        single = zip(found.canaries.names, found.canaries.lower, found.canaries.upper, strict=True)
        terminal.table(["record", "ε at least", "ε at most"], [(name, down(a, 3), up(b, 4)) for name, a, b in single])
    terminal.line("")
    for one in found.refuted:
        terminal.line(
            f"REFUTED: by {GAMES[one.method]}, ε is at least {down(one.epsilon, 3)}, above the {up(one.upper, 4)} that "
            "was promised. The mechanism is not what was accounted for."
        )
    if not found.refuted:
        terminal.line("No bound is above its upper one. An attack that fails proves nothing: a better one may exist.")
    for sentence in found.notes:
        terminal.item(sentence)
    if page is not None:
        terminal.uncut(f"\nThe page: {page}")
