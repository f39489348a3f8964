"""The `bayesdp` program: its commands, and the one place where bad input becomes a line and exit code 2."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn, cast

import typer

from bayesdp import __version__
from bayesdp.cli.account import account
from bayesdp.cli.calibrate import calibrate
from bayesdp.cli.demo import demo
from bayesdp.cli.refusal import one_line
from bayesdp.cli.reproduce import reproduce
from bayesdp.cli.worst_case import delta, epsilon
from bayesdp.errors import InputError

# Typer does not name the parent of all its complaints about usage; BadParameter is one of them.
_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)

app = typer.Typer(name="bayesdp", add_completion=False, no_args_is_help=True, rich_markup_mode="rich")

_COMPUTE = "Differential privacy of a plan"
_ACCOUNT = "Privacy of a run that happened"
_LOOK = "Look around"
app.command(rich_help_panel=_COMPUTE)(epsilon)
app.command(rich_help_panel=_COMPUTE)(delta)
app.command(rich_help_panel=_COMPUTE)(calibrate)
app.command(rich_help_panel=_ACCOUNT)(account)
app.command(rich_help_panel=_LOOK)(demo)
app.command(rich_help_panel=_LOOK)(reproduce)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"bayesdp {__version__}")
        raise typer.Exit


@app.callback()
def bayesdp(
    version: Annotated[  # noqa: ARG001 - the callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """
    Say truthfully what training on people's data costs in privacy.

    Three answers for three audiences: to everybody, whatever the data ([bold]DP[/bold]); to people like those in the
    data ([bold]Bayesian DP[/bold]); and to one named record ([bold]per-instance DP[/bold]). Only the first may be
    published without a thought: the other two are computed from private data.

    \b
    Start here:
      bayesdp demo
      bayesdp epsilon --noise-multiplier 1.1 --sampling-rate 0.01 --steps 1000 --delta 1e-5
      bayesdp calibrate --epsilon 2 --delta 1e-5 --sampling-rate 0.01 --steps 1000
      bayesdp account norms.csv --noise-std 1 --sampling-rate 0.01 --clip-norm 1 --delta 1e-5

    [bold]bayesdp COMMAND --help[/bold] explains the options of a command. Exit code 0: answered; 2: bad input, one
    line on stderr says which and nothing is written.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program on `arguments` (the command line's when not given) and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # A terminal without Greek letters gets "?" rather than a traceback.
            stream.reconfigure(errors="replace")
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        answer = app(arguments, prog_name="bayesdp", standalone_mode=False)
        sys.stdout.flush()
        return answer if isinstance(answer, int) else 0
    except _UsageError as problem:
        message = problem.format_message()
        if not message:  # No command given: the help was printed instead.
            return 2
    except InputError as problem:
        message = str(problem)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough; nothing may be flushed into it at exit.
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return 1
    except OSError as problem:
        message = f"{problem.strerror or problem}: {problem.filename}" if problem.filename else str(problem)
    print(f"bayesdp: {one_line(message)}", file=sys.stderr)
    return 2
