"""The ledger: an append-only, checksummed journal of charges, written ahead of use (`storage.journal`).

    opened     budget and δ, once
    charge     what a run may cost at most: on the disk before the first of its noise is drawn
    resumed    a run was taken up again: how often, so that a copy that goes on elsewhere is noticed
    measured   what a run that is done says of itself: Bayesian and per-instance, sensitive
    note       anything else that whoever reads it should know

Reopened after a crash it is complete or rounded up, never short. Charging holds a lock on the file from reading what is
left to writing what is taken: two processes cannot spend the same budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bayesdp import errors
from bayesdp.guarantee import Guarantee
from bayesdp.ledger.charge import Charge
from bayesdp.ledger.total import Total
from bayesdp.storage import reading
from bayesdp.storage.journal import Journal, Line

FORMAT, VERSION = "bayesdp/ledger", 1
KINDS = ("opened", "charge", "resumed", "measured", "note")


class Terms(NamedTuple):
    """What a ledger was opened with: the DP ε that all charges may come to at δ; None for no limit."""

    budget: float | None
    delta: float | None


@dataclass(frozen=True)
class Ledger:
    """The ledger in the file at `path`."""

    path: Path

    @classmethod
    def open(cls, path: str | Path, *, budget: float | None = None, delta: float | None = None) -> Ledger:
        """The ledger at `path`, begun where there is none.

        `budget`: the DP ε that all charges may come to at `delta`, whatever is seen in between; fixed when the ledger
        is begun. Bad input: another budget or δ than it was begun with, a budget without δ, a damaged file.
        """
        if budget is not None:
            errors.number("budget", budget, above=0)
            if delta is None:
                raise errors.unmet("delta", None, f"{errors.named('delta')} beside {errors.named('budget')}", "none")
        if delta is not None:
            errors.probability("delta", delta)
        ledger = cls(Path(path))
        if not ledger.path.parent.is_dir():
            raise errors.refuse("ledger", str(path), "to be in a folder that is there")
        with ledger.locked():
            if not ledger._journal.lines():
                ledger._add("opened", {"format": FORMAT, "version": VERSION, "budget": budget, "delta": delta})
            known = ledger.terms
            for name, given, kept in (("budget", budget, known.budget), ("delta", delta, known.delta)):
                if given is not None and given != kept and (name == "budget" or budget is not None):
                    hint = "One budget is for all that the ledger holds."
                    raise errors.refuse(name, given, f"to be left out or {kept}, as the ledger began", hint)
        return ledger

    @classmethod
    def existing(cls, path: str | Path) -> Ledger:
        """The ledger at `path`. Bad input: there is none, or it is damaged."""
        ledger = cls(Path(path))
        if not ledger.path.is_file():
            raise errors.refuse("ledger", str(path), "to be the file of a ledger")
        ledger.terms  # noqa: B018  # reads and checks every line
        return ledger

    @property
    def _journal(self) -> Journal:
        return Journal(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else charges meanwhile: waits for whoever does."""
        with self._journal.locked():
            yield

    def lines(self) -> tuple[Line, ...]:
        """Every line, checked. Bad input: see `storage.journal`, and lines that are none of a ledger's."""
        lines = self._journal.lines()
        for line in lines:
            kind = line.value.get("kind") if isinstance(line.value, dict) else None
            if (
                kind not in KINDS
                or not isinstance(line.value.get("value"), dict)
                or (kind == "opened") == bool(line[0])
            ):
                raise errors.unfit(repr(str(self.path)), "to be a ledger", f"something else in line {line.number + 1}")
        return lines

    @property
    def terms(self) -> Terms:
        """What it was opened with."""
        lines = self.lines()
        if not lines:
            raise errors.refuse("ledger", str(self.path), "to be the file of a ledger", "It is empty.")
        with reading(self.path):
            note = lines[0].value["value"]
            if (note["format"], note["version"]) != (FORMAT, VERSION):
                raise ValueError(note["format"], note["version"])
            return Terms(note["budget"], note["delta"])

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, in the order in which they were made."""
        with reading(self.path):
            return tuple(Charge.from_dict(value) for kind, value in self._values() if kind == "charge")

    def charged(self, run: str) -> bool:
        """Whether the run of this name was charged."""
        return any(one.run == run for one in self.charges)

    def total(self) -> Total:
        """All charges together."""
        measured, watched = {}, {}
        with reading(self.path):
            for kind, value in self._values():
                if kind == "measured":
                    measured[value["run"]] = [Guarantee.from_dict(one) for one in value["guarantees"]]
                    watched[value["run"]] = value["watched"]
        return Total(self.charges, measured, watched)

    def afford(self, charge: Charge) -> None:
        """Refuse a charge that was made before, of another adjacency, or that the budget does not pay for."""
        earlier = self.charges
        if any(one.run == charge.run for one in earlier):
            raise errors.refuse("run", charge.run, "to be a name of its own", "The ledger has charged it already.")
        if earlier and earlier[0].adjacency != charge.adjacency:
            hint = "Charges of two kinds of neighbours do not add up."
            raise errors.refuse("adjacency", charge.adjacency, f"to be {earlier[0].adjacency!r}", hint)
        check_budget(self.terms, earlier, charge)

    def charge(self, charge: Charge) -> Line:
        """Write a charge down; when this returns it survives a loss of power, and what it pays for may be made.

        Bad input: see `afford`; a ledger that cannot be written to. Then nothing is charged.
        """
        with self.locked():
            self.afford(charge)
            return self._add("charge", charge.to_dict())

    def resumed(self, run: str, before: int) -> int:
        """Write down that a run is taken up again, which was so `before` times as far as it knows itself.

        Bad input: the ledger knows of another number: a copy of the run went on elsewhere, with the same noise.
        """
        with self.locked():
            known = self.times_resumed(run)
            if known != before:
                hint = "A copy went on with the same noise: who sees both subtracts it. Begin anew, and pay for it."
                raise errors.unmet("run", run, f"a run that was taken up {before} times", f"{known} times", hint)
            self._add("resumed", {"run": run, "times": known + 1})
            return known + 1

    def times_resumed(self, run: str) -> int:
        """How often a run was taken up again."""
        return sum(kind == "resumed" and value.get("run") == run for kind, value in self._values())

    def measured(self, run: str, guarantees: Sequence[Guarantee], watched: str = "") -> None:
        """Write down what a run that is done says of itself; `watched` tells the records it watched from others."""
        told = [one.to_dict() for one in guarantees]
        self._add("measured", {"run": run, "guarantees": told, "watched": watched})

    def note(self, about: Mapping[str, Any]) -> Line:
        """Write down anything else, as plain values."""
        return self._add("note", dict(about))

    def notes(self) -> list[dict[str, Any]]:
        """What `note` wrote."""
        return [value for kind, value in self._values() if kind == "note"]

    def has(self, line: tuple[int, str]) -> bool:
        """Whether a line of which somebody kept number and checksum is still there: False after a rollback."""
        return self._journal.has(line)

    def _values(self) -> list[tuple[str, dict[str, Any]]]:
        return [(line.value["kind"], line.value["value"]) for line in self.lines()]

    def _add(self, kind: str, value: Mapping[str, Any]) -> Line:
        return self._journal.add({"kind": kind, "value": dict(value)})


def check_budget(terms: Terms, earlier: tuple[Charge, ...], charge: Charge) -> None:
    """Refuse a charge that the budget does not pay for, beside earlier ones."""
    budget, delta = terms
    if budget is None or delta is None:
        return
    after = Total((*earlier, charge), {}, {}).dp(delta).epsilon
    if after > budget:
        before = Total(earlier, {}, {}).dp(delta).epsilon
        raise errors.unmet(
            "ledger",
            None,
            f"the ledger's budget, DP ε {budget:g} at δ = {delta:g}, to pay for {charge.what}",
            f"{before:.4g} spent and {after:.4g} with it",
            "Add more noise, take fewer steps, or stop here.",
        )
