"""A job that is charged to a ledger of the user's own, before the first of its noise is drawn, beside its folder's.

    intended    in the folder: which ledger, and under which name, before anything else is written
    charged     in the ledger: what all planned steps may cost
    begun       the job stands in the folder, and may be taken up

A crash after "intended" leaves a run that is charged when it is taken up; one after "charged" a run that has paid.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bayesdp import errors
from bayesdp.accountant.rdp import phases
from bayesdp.guarantee import Guarantee
from bayesdp.jobs.prepared import PreparedJob, UnderWay
from bayesdp.learn.loop.plan import Plan
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.ledger import Charge, Ledger
from bayesdp.ledger.ledger import Terms, check_budget
from bayesdp.storage.values import checksum

_SHARE = 0.1
"""Of a job's δ, what samples are charged at."""


class Intended(NamedTuple):
    """The ledger that a folder's run is charged to, and the name it has there."""

    ledger: Path
    run: str


def begin(
    prepared: PreparedJob[Any, Any], folder: str | Path, ledger: str | Path | None, budget: float | None = None
) -> UnderWay[Any]:
    """`prepared.begin`, charged to a ledger; `budget`: the DP ε that a new one allows at the job's δ.

    Bad input: what the ledger does not pay for, a budget without a ledger, and see `PreparedJob.begin`. Then nothing is
    written.
    """
    if ledger is None:
        if budget is not None:
            raise errors.refuse("ledger_budget", budget, f"to come with {errors.named('ledger')}")
        return prepared.begin(folder)
    place = RunFolder(Path(folder))
    place.check_free()
    charge = charge_of(prepared, secrets.token_hex(8))
    delta = None if budget is None else prepared.job.chosen.delta
    if not Path(ledger).exists():
        check_budget(Terms(budget, delta), (), charge)  # a refused job leaves no ledger either
    book = Ledger.open(ledger, budget=budget, delta=delta)
    with book.locked():
        book.afford(charge)
        own = Ledger.open(RunFolder.make(folder, "out").journal)
        own.note({"ledger": str(book.path.absolute()), "run": charge.run})
        under_way = prepared.begin(folder)
        _pay(own, book, charge)
    return under_way


def resume(prepared: PreparedJob[Any, Any], folder: str | Path) -> UnderWay[Any]:
    """`prepared.resume`, charged where that was intended and not done, else counted.

    Bad input: a ledger that is gone, was rolled back, or knows of a copy that went on elsewhere.
    """
    place = RunFolder.open(folder)
    known = intended(place)
    if known is None:
        return prepared.resume(folder)
    own, book = Ledger.existing(place.journal), Ledger.existing(known.ledger)
    under_way = prepared.resume(folder)
    with book.locked():
        if not book.charged(known.run):
            if _paid(own):
                hint = "Its charge is gone: an older copy of the ledger was put back."
                raise errors.refuse("ledger", str(known.ledger), f"to have charged the run {known.run!r}", hint)
            _pay(own, book, charge_of(prepared, known.run))
        else:
            for line in _paid(own):
                if not book.has(line):
                    hint = "An older copy of it, or another, was put back."
                    raise errors.refuse("ledger", str(known.ledger), "to be the one that this run was charged to", hint)
            before = sum("taken_up" in note for note in own.notes())
            book.resumed(known.run, before)
            own.note({"taken_up": before + 1})
    return under_way


def measured(prepared: PreparedJob[Any, Any], folder: str | Path, guarantees: Sequence[Guarantee]) -> None:
    """Tell the ledger what a run that is done says of itself."""
    known = intended(RunFolder(Path(folder)))
    if known is not None:
        watched = prepared.job.watch
        numbers = watched if isinstance(watched, str) else list(watched)
        told = checksum([_source(prepared), numbers])
        Ledger.existing(known.ledger).measured(known.run, guarantees, told)


def note_decision(folder: RunFolder, answer: str, *, covered: bool) -> None:
    """Tell the ledger of a run that it was asked to forget; `covered`: what was decided costs nothing more."""
    known = intended(folder)
    if known is not None:
        Ledger.existing(known.ledger).note({"run": known.run, "unlearn": answer, "covered": covered})


def intended(folder: RunFolder) -> Intended | None:
    """The ledger of a folder's run; None where it has none but its own."""
    if not folder.journal.is_file():
        return None
    found = [note for note in Ledger.existing(folder.journal).notes() if "ledger" in note]
    return Intended(Path(found[-1]["ledger"]), str(found[-1]["run"])) if found else None


def charge_of(prepared: PreparedJob[Any, Any], run: str) -> Charge:
    """What a job may cost everybody: all planned steps, infinite where nothing bounds them or none are planned."""
    looks = ("how well the model does on test records",) if prepared.tests else ()
    common: dict[str, Any] = {"run": run, "adjacency": prepared.job.adjacency, "looks": looks}
    common |= {"source": _source(prepared), "what": prepared.data.name}
    return Charge(**common, **cost_of(prepared.plan, prepared.parameters))


def cost_of(plan: object, parameters: int) -> dict[str, Any]:
    """What a plan may cost everybody, as fields of a `Charge`; `parameters`: numbers that a sample is made of."""
    if not isinstance(plan, Plan):
        return _samples(plan, parameters)
    if not plan.bounded or not (plan.noise > 0).all():
        return {"epsilon": math.inf}
    planned = phases(plan.noise[: plan.affordable_steps(1)], plan.rates[: plan.affordable_steps(1)])
    return {"steps": tuple((one.noise_multiplier, one.sampling_rate, one.steps) for one in planned)}


def _samples(plan: object, parameters: int) -> dict[str, Any]:
    """ε and δ of samples of a secret posterior, all that are planned; infinite without public bounds for it.

    A share of δ only, so that there is some left for what else the ledger holds.
    """
    from bayesdp.accountant.release_account import ORDERS, worst_epsilon
    from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI

    if not isinstance(plan, PosteriorVI):
        return {"epsilon": math.inf}
    delta = _SHARE * plan.delta
    worst = worst_epsilon(plan.softening.worst_cost(parameters, ORDERS), plan.samples, delta)
    return {"epsilon": worst, "delta": delta} if math.isfinite(worst) else {"epsilon": math.inf}


def _source(prepared: PreparedJob[Any, Any]) -> str:
    """Which data: the name of a known set, or a digest of the file."""
    name = prepared.job.data.name
    if prepared.job.data.named or not Path(name).is_file():
        return str(name)
    with Path(name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pay(own: Ledger, book: Ledger, charge: Charge) -> None:
    line = book.charge(charge)
    own.note({"paid": [line.number, line.checksum]})


def _paid(own: Ledger) -> list[tuple[int, str]]:
    """Number and checksum of the line in the ledger that the folder's run was charged by."""
    return [(int(note["paid"][0]), str(note["paid"][1])) for note in own.notes() if "paid" in note]
