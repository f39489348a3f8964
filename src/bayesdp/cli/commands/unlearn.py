"""`bayesdp unlearn`: may a record be forgotten without training anew?"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from bayesdp import errors
from bayesdp.cli import options, shared_options, terminal
from bayesdp.cli.learning import names
from bayesdp.rounding import up

if TYPE_CHECKING:
    from bayesdp.jobs.people import Whom
    from bayesdp.unlearn import Decision, Ledger
    from bayesdp.unlearn.folder import Opened

_BUDGET = "How far from a model without the record"
Record = Annotated[
    str,
    shared_options.option(
        shared_options.DATA,
        "--record",
        "N,N,…",
        "Whom to forget: numbers in the file, from 1, as --watch counts; people by their names.",
    ),
]
Beta = Annotated[
    float | None,
    shared_options.option(
        _BUDGET,
        "--beta",
        "B",
        "The largest Rényi divergence from a model trained without the records, e.g. 0.1. This, --told-apart or "
        "--epsilon is needed once.",
        options.number,
    ),
]
ToldApart = Annotated[
    float | None,
    shared_options.option(
        _BUDGET,
        "--told-apart",
        "P",
        "The budget in other words: nobody tells the model from one trained without the records more often, e.g. 0.6.",
        options.number,
    ),
]
Epsilon = Annotated[
    float | None,
    shared_options.option(
        _BUDGET,
        "--epsilon",
        "E",
        "The budget as the ε of an (ε, δ) between the two models; with --delta.",
        options.number,
    ),
]
Delta = Annotated[
    float | None, shared_options.option(_BUDGET, "--delta", "D", "The δ of --epsilon, e.g. 1e-5.", options.number)
]
Order = Annotated[
    float | None,
    shared_options.option(
        _BUDGET,
        "--order",
        "A",
        "The order of that divergence, above 1; 2 if left out, and the best for --epsilon.",
        options.number,
    ),
]
Gamma = Annotated[
    float | None,
    shared_options.option(
        _BUDGET,
        "--gamma",
        "G",
        "Chance that all this is wrong, e.g. 0.05: for studies and adaptive requests; 0 if left out.",
        options.number,
    ),
]
Requests = Annotated[
    str | None,
    shared_options.option(
        _BUDGET,
        "--requests",
        "NAME",
        "oblivious (taken if left out): made without looking at the model; or adaptive, which costs a lot.",
    ),
]
HELD_OUT = (
    "Held out of training: no step of the model depends on it, and there is nothing to forget but what preparing the "
    "data took from all records, which the report declares public."
)

From = Annotated[
    str,
    shared_options.option(
        _BUDGET, "--from", "SOURCE", "What bounds the divergence: worst-case, filter, or the folder of a study."
    ),
]
Statement = Annotated[
    Path | None,
    shared_options.option(
        shared_options.OUTPUT,
        "--statement",
        "FILE",
        "Also write, as JSON, that the model could have come from the data without the records: a new file.",
    ),
]
Json = Annotated[
    bool,
    shared_options.option(shared_options.OUTPUT, "--json", " ", "Print the decision as JSON and nothing else."),
]


def unlearn(
    run: shared_options.RunFolder,
    *,
    record: Record,
    beta: Beta = None,
    told_apart: ToldApart = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    order: Order = None,
    gamma: Gamma = None,
    requests: Requests = None,
    source: From = "worst-case",
    statement: Statement = None,
    trust_code: shared_options.TrustCode = False,
    json: Json = False,
) -> None:
    """
    Say whether records can be forgotten without training anew.

    "keep": the model is so close to one that was trained without them that it may stay; "retrain": that could not be
    shown. The requests of a run add up: its folder keeps the tally, in unlearning.json, and the budget of the first
    request is that of all. Leave the data as they are until the model is trained anew.

    For example:
      bayesdp unlearn run --record 17 --told-apart 0.6
      bayesdp unlearn run --record 42,99
      bayesdp unlearn other --record 5 --beta 0.1 --from other/study --gamma 0.05
    """
    by_people = _by_people(run)
    asked: tuple[Whom, ...] = names(record, "record") if by_people else _numbers(record)
    if statement is not None and statement.exists():
        raise errors.refuse("statement", str(statement), "to be a new file")

    from bayesdp.unlearn import folder

    with terminal.waiting("Loading the records"):
        found = folder.opened(run, trust_code=trust_code)
    # From reading what is left to writing what is taken: two at once would both spend it.
    with found.folder.locked(wait=True):
        ledger = _ledger(found, _Budget(beta, told_apart, epsilon, delta), order, gamma, requests)
        _decide(found, ledger, asked, record, source, statement, json=json)


def _decide(
    found: Opened,
    ledger: Ledger,
    asked: tuple[Whom, ...],
    record: str,
    source: str,
    statement: Path | None,
    *,
    json: bool,
) -> None:
    from bayesdp.jobs import charged
    from bayesdp.unlearn import folder

    who, by_people = found.numbered(asked), found.prepared.data.people is not None
    outside = found.held_out(who)
    again = [one for one in who if one in ledger.forgotten]
    if by_people and again:
        hint = "Forgotten already."
        raise errors.refuse("record", found.called(again), "to be people who were not forgotten yet", hint)
    with terminal.speaking_of(found.prepared.data.unit):
        if outside == who:
            _nothing_to_forget(found, who, json=json)
            return
    if outside:
        raise errors.refuse("record", record, f"without {found.called(outside)}", HELD_OUT)
    decision = found.drawn(ledger.request(who, folder.source(found, source, who, ledger)))
    claim = None if statement is None else found.statement(decision.ledger.forgotten)
    charged.note_decision(found.folder, decision.answer, covered=decision.protocol.keeps_dp)
    path = found.write(decision)
    if statement is not None:
        from bayesdp.storage import write_json

        write_json(statement, claim, private=True)
    if json:
        told = decision.to_dict() | ({"people": list(asked)} if by_people else {})
        print(json_format.dumps(told, allow_nan=False, indent=2))
        return
    with terminal.speaking_of(found.prepared.data.unit):
        _tell(found, decision, found.folder.path)
    terminal.line("")
    terminal.uncut(f"Ledger: {path}  (sensitive: it names who asked to be forgotten)")
    if statement is not None:
        terminal.uncut(f"Statement: {statement}  (sensitive, as it says)")


def _nothing_to_forget(found: Opened, who: tuple[int, ...], *, json: bool) -> None:
    if json:
        print(json_format.dumps({"answer": "keep", "records": list(who), "reason": HELD_OUT}, indent=2))
        return
    terminal.line(f"KEEP: record{'s' if len(who) > 1 else ''} {found.called(who)}.\n")
    terminal.line(HELD_OUT)


def _numbers(record: str) -> tuple[int, ...]:
    return tuple(errors.whole("record", one) for one in options.numbers("record", record))


def _by_people(run: Path) -> bool:
    """Whether the run was made with --person. Bad input: no run."""
    from bayesdp.jobs.resume import read_job
    from bayesdp.learn.loop.run_folder import RunFolder

    return read_job(RunFolder(run)).data.person is not None


class _Budget(NamedTuple):
    """β in one of three ways of saying it."""

    beta: float | None
    told_apart: float | None
    epsilon: float | None
    delta: float | None

    def check(self) -> None:
        """Refuse more than one way, and an ε without its δ."""
        given = {n: value for n, value in self._asdict().items() if value is not None and n != "delta"}
        if len(given) > 1:
            name, value = list(given.items())[1]
            raise errors.refuse(name, value, f"to be left out beside {errors.named(next(iter(given)))}")
        if (self.epsilon is None) != (self.delta is None):
            raise errors.unmet(
                "delta", self.delta, f"{errors.named('epsilon')} and {errors.named('delta')} together", "one alone"
            )
        if self.beta is not None:
            errors.number("beta", self.beta, above=0)

    def order(self, found: Opened) -> float:
        """The order where none was given."""
        from bayesdp.unlearn import budget

        if self.epsilon is None or self.delta is None or not found.everybody.steps:
            return budget.ORDER
        return budget.best_order(self.epsilon, self.delta, found.worst_case.divergence)

    def at(self, order: float) -> float | None:
        """β at this order; None where nothing was said."""
        from bayesdp.unlearn import budget

        if self.told_apart is not None:
            return budget.from_success(self.told_apart, order)
        if self.epsilon is not None and self.delta is not None:
            return budget.from_epsilon(self.epsilon, self.delta, order)
        return self.beta


def _ledger(found: Opened, wanted: _Budget, order: float | None, gamma: float | None, requests: str | None) -> Ledger:
    """The run's ledger, or a new one. Bad input: no budget yet, or another than the ledger has."""
    from bayesdp.unlearn import Ledger

    wanted.check()
    if order is not None:
        errors.number("order", order, above=1)
    if gamma is not None:
        errors.number("gamma", gamma, least=0, below=1)
    kept = found.ledger()
    if order is None:
        order = wanted.order(found) if kept is None else kept.order
    beta = wanted.at(order)
    given: dict[str, Any] = {"budget": beta, "order": order, "failure": gamma, "requests": requests}
    if kept is None:
        if beta is None:
            raise errors.unmet(
                "beta",
                None,
                f"{errors.named('beta')} or {errors.named('told_apart')}, the budget of this run's requests",
                "none: this is the first request",
            )
        chosen = {name: value for name, value in given.items() if value is not None}
        return Ledger(**chosen, records=found.prepared.data.size, training=found.training)
    for name, value in given.items():
        if value is not None and value != getattr(kept, name):
            option = {"budget": "--beta", "failure": "--gamma"}.get(name, f"--{name}")
            raise errors.refuse(
                option,
                value,
                f"to be left out or {getattr(kept, name)}, as at the first request",
                "One budget is for all.",
            )
    return kept


def _tell(found: Opened, decision: Decision, run: Path) -> None:
    ledger = decision.ledger
    who = f"record{'s' if len(decision.records) > 1 else ''} {found.called(decision.records)}"
    keep = decision.answer == "keep"
    terminal.line(f"{'KEEP' if keep else 'RETRAIN'}: {who} of {found.prepared.data.name}.\n")
    if decision.terms:
        rows = [
            (
                found.called(one.records),
                up(one.coefficient, 4),
                up(one.order, 4),
                up(one.divergence, 4),
                up(one.value, 4),
                one.source,
            )
            for one in decision.terms
        ]
        if decision.surcharge:
            rows.append(("anybody", "", "", "", up(decision.surcharge, 4), "adaptive requests"))
        terminal.table(("forgotten", "coefficient", "order", "divergence", "product", "from"), rows)
        sign = "≤" if keep else ">"
        terminal.line(f"\nSum {up(decision.left, 4)} {sign} β = {decision.budget:g}, at order α = {decision.order:g}.")
    terminal.line(decision.reason)
    if keep:
        sure = f", with confidence {1 - decision.failure:g}" if decision.failure else ""
        terminal.line(
            f"Who is shown this model or one trained without {'them' if len(ledger.forgotten) > 1 else 'it'} can tell "
            f"which at most {terminal.percent(decision.told_apart)} of the time{sure}."
        )
        if found.everybody.steps:
            room = ledger.room(found.worst_case, most=100)
            terminal.line(f"By the worst case there is room for {room}{' or more' if room == 100 else ''} more.")
    else:
        terminal.line(
            f"Train again on the data without the records forgotten so far ({found.called(ledger.forgotten)}), "
            f"into another folder than {run}, which begins with a ledger of its own."
        )
    terminal.line(f"\nProtocol: {decision.protocol.name}. {decision.protocol.words}")
    if decision.terms:
        terminal.line("\nAssumed:")
    for one in decision.assumptions if decision.terms else ():
        terminal.item(one)
