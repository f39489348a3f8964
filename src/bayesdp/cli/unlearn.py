"""`bayesdp unlearn`: may a record be forgotten without training anew?"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bayesdp import errors
from bayesdp.cli import options, show
from bayesdp.cli import train_options as words
from bayesdp.errors import InputError
from bayesdp.rounding import up

if TYPE_CHECKING:
    from bayesdp.unlearn import Decision, Ledger
    from bayesdp.unlearn.folder import Opened

_BUDGET = "How far from a model without the record"
ORDER = 8.0
"""S3's order, where none is given."""

Record = Annotated[
    str,
    words.option(words.DATA, "--record", "N,N,…", "Whom to forget: numbers in the file, from 1, as --watch counts."),
]
Beta = Annotated[
    float | None,
    words.option(
        _BUDGET,
        "--beta",
        "B",
        "The largest Rényi divergence from a model trained without the records, e.g. 1. Needed once.",
        options.number,
    ),
]
Order = Annotated[
    float | None,
    words.option(_BUDGET, "--order", "A", "The order of that divergence, above 1; 8 if left out.", options.number),
]
Gamma = Annotated[
    float | None,
    words.option(
        _BUDGET,
        "--gamma",
        "G",
        "Chance that all this is wrong, e.g. 0.05: for studies and adaptive requests; 0 if left out.",
        options.number,
    ),
]
Requests = Annotated[
    str | None,
    words.option(
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
    words.option(
        _BUDGET, "--from", "SOURCE", "What bounds the divergence: worst-case, filter, or the folder of a study."
    ),
]
Statement = Annotated[
    Path | None,
    words.option(
        words.OUTPUT,
        "--statement",
        "FILE",
        "Also write, as JSON, that the model could have come from the data without the records: a new file.",
    ),
]
Json = Annotated[bool, words.option(words.OUTPUT, "--json", " ", "Print the decision as JSON and nothing else.")]


def unlearn(
    run: words.RunFolder,
    *,
    record: Record,
    beta: Beta = None,
    order: Order = None,
    gamma: Gamma = None,
    requests: Requests = None,
    source: From = "worst-case",
    statement: Statement = None,
    json: Json = False,
) -> None:
    """
    Say whether records can be forgotten without training anew.

    "keep": the model is so close to one that was trained without them that it may stay; "retrain": that could not be
    shown. The requests of a run add up: its folder keeps the tally, in unlearning.json, and the budget of the first
    request is that of all. Leave the data as they are until the model is trained anew.

    For example:
      bayesdp unlearn run --record 17 --beta 1
      bayesdp unlearn run --record 42,99
      bayesdp unlearn other --record 5 --beta 1 --from other/study --gamma 0.05
    """
    who = tuple(errors.whole("--record", one) for one in options.numbers("--record", record))
    if statement is not None and statement.exists():
        raise errors.refuse("--statement", str(statement), "to be a new file")

    from bayesdp.unlearn import folder

    with show.waiting("Loading the records"):
        found = folder.opened(run)
    ledger = _ledger(found, beta, order, gamma, requests)
    outside = found.held_out(who)
    if outside == who:
        _nothing_to_forget(who, json=json)
        return
    if outside:
        names = ", ".join(map(str, outside))
        raise errors.refuse("--record", record, f"without {names}", HELD_OUT)
    decision = ledger.request(who, folder.source(found, source, who, ledger))
    claim = None if statement is None else found.statement(decision.ledger.forgotten)
    path = found.write(decision)
    if statement is not None:
        from bayesdp.learn.files import write_json

        write_json(statement, claim, private=True)
    if json:
        print(json_format.dumps(decision.to_dict(), allow_nan=False, indent=2))
        return
    _tell(found, decision, run)
    show.line("")
    show.uncut(f"Ledger: {path}  (sensitive: it names who asked to be forgotten)")
    if statement is not None:
        show.uncut(f"Statement: {statement}  (sensitive, as it says)")


def _nothing_to_forget(who: tuple[int, ...], *, json: bool) -> None:
    if json:
        print(json_format.dumps({"answer": "keep", "records": list(who), "reason": HELD_OUT}, indent=2))
        return
    show.line(f"KEEP: record{'s' if len(who) > 1 else ''} {', '.join(map(str, who))}.\n")
    show.line(HELD_OUT)


def _ledger(
    found: Opened, beta: float | None, order: float | None, gamma: float | None, requests: str | None
) -> Ledger:
    """The run's ledger, or a new one. Bad input: no budget yet, or another than the ledger has."""
    from bayesdp.unlearn import Ledger

    if beta is not None:
        errors.number("--beta", beta, above=0)
    if order is not None:
        errors.number("--order", order, above=1)
    if gamma is not None:
        errors.number("--gamma", gamma, least=0, below=1)
    kept = found.ledger()
    given: dict[str, Any] = {"budget": beta, "order": order, "failure": gamma, "requests": requests}
    if kept is None:
        if beta is None:
            raise InputError("Expected --beta, the budget of this run's requests, got none: this is the first request.")
        chosen = {name: value for name, value in given.items() if value is not None}
        return Ledger(**{"order": ORDER, **chosen}, records=len(found.prepared.data.x), training=found.training)
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
    who = f"record{'s' if len(decision.records) > 1 else ''} {', '.join(map(str, decision.records))}"
    keep = decision.answer == "keep"
    show.line(f"{'KEEP' if keep else 'RETRAIN'}: {who} of {found.prepared.data.name}.\n")
    if decision.terms:
        rows = [
            (
                ", ".join(map(str, one.records)),
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
        show.table(("forgotten", "coefficient", "order", "divergence", "product", "from"), rows)
        sign = "≤" if keep else ">"
        show.line(f"\nSum {up(decision.left, 4)} {sign} β = {decision.budget:g}, at order α = {decision.order:g}.")
    show.line(decision.reason)
    if keep:
        sure = f", with confidence {1 - decision.failure:g}" if decision.failure else ""
        show.line(
            f"Who is shown this model or one trained without {'them' if len(ledger.forgotten) > 1 else 'it'} can tell "
            f"which at most {show.percent(decision.told_apart)} of the time{sure}."
        )
        if found.everybody.steps:
            room = ledger.room(found.worst_case, most=100)
            show.line(f"By the worst case there is room for {room}{' or more' if room == 100 else ''} more.")
    else:
        show.line(
            f"Train again on the data without the records forgotten so far ({', '.join(map(str, ledger.forgotten))}), "
            f"into another folder than {run}, which begins with a ledger of its own."
        )
    show.line(f"\nProtocol: {decision.audit.name}. {decision.audit.words}")
    if decision.terms:
        show.line("\nAssumed:")
    for one in decision.assumptions if decision.terms else ():
        show.item(one)
