"""From the library's words to the command line's: `noise_multiplier` is typed as `--noise-multiplier` here.

A refused argument is a field of the error (`InputError.argument`), and so is every other that its sentence names: each
is looked up among the options of the command that was typed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand

from bayesdp.errors import InputError

_ALSO = {"cap": "clip_norm", "noise_schedule": "schedule", "norm": "feature_norm"}
"""Arguments that a command has under another name of its own."""

_WORDS = {"sensitivities": "distances"}
"""Arguments that are no options: what they are called here."""

_OF_RUNS = ("fit", "train")
"""The commands whose options a run was made with: what is wrong with a run's folder is in their words."""


class Refusal(Exception):
    """Bad input in the words of the command line, on one line."""


class Command(TyperCommand):
    """A command that says what it cannot use under the names that were typed, and finds --epsilon for --eps."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # as below
        """Options may be typed as far as no other begins like that."""
        known = [name for param in self.get_params(ctx) for name in (*param.opts, *param.secondary_opts)]
        ends = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*(unabbreviated(one, known) for one in args[:ends]), *args[ends:]])

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # Typer's Context is click's
        try:
            return super().invoke(ctx)
        except InputError as problem:
            others = ctx.parent.command.commands if ctx.parent else {}  # type: ignore[attr-defined]
            known = [*(others[name] for name in _OF_RUNS if name in others), self]
            raise Refusal(one_line(in_options(problem, known))) from problem


def unabbreviated(typed: str, known: Iterable[str]) -> str:
    """The one of `known` options that all others which begin as typed go on from, with its value; else as typed."""
    name, equals, value = typed.partition("=")
    begun = sorted({one for one in known if one.startswith(name)}, key=len)
    clear = bool(begun) and all(one.startswith(begun[0]) for one in begun)
    return begun[0] + equals + value if len(name) >= 4 and name.startswith("--") and clear else typed


def in_options(problem: InputError, commands: Iterable[TyperCommand]) -> str:
    """The sentence of `problem` with the options of these commands for its arguments; the last command counts most."""
    options = {param.name: param for command in commands for param in command.params}

    def spell(argument: str, value: str | None) -> str:
        name, bracket, index = argument.partition("[")
        option: Any = options.get(_ALSO.get(name, name)) or options.get(name)
        if option is None:
            word = _WORDS.get(name, name)
        elif option.param_type_name == "argument":
            word = option.metavar
        else:
            word = option.opts[0]
            if option.multiple and value is not None and value.startswith("("):
                return f"{word} {value[1:-1].rstrip(',')}"  # a list of one is typed as it is
        word += bracket + index
        return word if value is None else f"{word}={value}"

    return problem.spelled(spell)


def one_line(message: str) -> str:
    """`message` without line breaks."""
    return " ".join(message.split())
