"""What was found in a table, and what is done about each: a list for the owner's eyes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bayesdp.data.table import Table
from bayesdp.errors import Argument, InputError, unfit

SENSITIVE = (
    "Sensitive: this list is computed from private records and not paid for. Options that are chosen because of it "
    "tell a little of the records too; every guarantee takes them as public."
)


class Option(NamedTuple):
    """An option with its value, under its name in Python."""

    name: str
    value: str

    def __str__(self) -> str:
        """As it is typed in a shell."""
        return f"--{self.name.replace('_', '-')} {shlex.quote(self.value)}"

    @property
    def argument(self) -> Argument:
        """As a message of the library has it."""
        return Argument(self.name, self.value if self.name == "task" else (self.value,))


@dataclass(frozen=True)
class Finding:
    """One thing that was found; `column` is empty where it is about the whole table.

    A problem has the `refusal` that it gets alone, and `options` are those that settle it. Of anything else `done` says
    what is done about it, and `options` change that. `examples` are cells, which no message may have but this list.
    """

    column: str
    found: str
    done: str = ""
    options: tuple[Option, ...] = ()
    refusal: InputError | None = None
    examples: str = ""

    @property
    def is_problem(self) -> bool:
        return self.refusal is not None

    def __str__(self) -> str:
        where = f"{self.column!r}: " if self.column else ""
        typed = " ".join(map(str, self.options))
        if self.is_problem:
            shown = f" ({self.examples})" if self.examples else ""
            return f"{where}{self.found}{shown}. To be decided{f': {typed}' if typed else ' in the file'}."
        return f"{where}{self.found}. {self.done}.{f' To change it: {typed}' if typed else ''}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.column or None,
            "found": self.found,
            "problem": self.is_problem,
            "done": self.done or None,
            "options": [str(option) for option in self.options],
            "sensitive": True,
        }


def suggested(findings: Sequence[Finding]) -> tuple[Option, ...]:
    """The options that settle all problems, each once."""
    return tuple(dict.fromkeys(option for one in findings if one.is_problem for option in one.options))


def refuse_problems(table: Table, findings: Sequence[Finding]) -> None:
    """Refuse a table that has problems: with all of them in one sentence."""
    problems = [one for one in findings if one.refusal is not None]
    if not problems:
        return
    if len(problems) == 1 and problems[0].refusal is not None:
        raise problems[0].refusal
    told = "; ".join(f"({number}) {_told(one)}" for number, one in enumerate(problems, 1))
    raise unfit(table.source, "to have nothing left to decide", f"{len(problems)} problems: {told}")


def _told(problem: Finding) -> str:
    where = f"{problem.column!r}: " if problem.column else ""
    settled = " ".join(str(option.argument) for option in problem.options)
    return f"{where}{problem.found}{f': give {settled}' if settled else ''}"


@dataclass
class Findings:
    """What was found so far."""

    all: list[Finding] = field(default_factory=list)

    def tell(self, column: str, found: str, done: str, *options: Option) -> None:
        """Something about which nothing has to be decided."""
        self.all.append(Finding(column, found, done, options))

    def problem(self, column: str, found: str, refusal: InputError, *options: Option, examples: str = "") -> None:
        """Something that has to be decided, by these options or in the table itself."""
        self.all.append(Finding(column, found, "", options, refusal, examples))

    @property
    def problems(self) -> bool:
        return any(one.is_problem for one in self.all)
