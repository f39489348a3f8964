"""The `bayesdp` program: its commands, and the one place where bad input becomes a line and exit code 2."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, NoReturn, cast

import typer

from bayesdp.cli.commands.account import account
from bayesdp.cli.commands.audit import audit
from bayesdp.cli.commands.calibrate import calibrate
from bayesdp.cli.commands.check import check
from bayesdp.cli.commands.demo import demo
from bayesdp.cli.commands.epsilon_delta import delta, epsilon
from bayesdp.cli.commands.fit import fit
from bayesdp.cli.commands.instance import instance
from bayesdp.cli.commands.ledger import ledger
from bayesdp.cli.commands.plan import plan
from bayesdp.cli.commands.predict import predict
from bayesdp.cli.commands.publish import publish
from bayesdp.cli.commands.report import report
from bayesdp.cli.commands.reproduce import reproduce
from bayesdp.cli.commands.resume import resume
from bayesdp.cli.commands.sgld_step import sgld_step
from bayesdp.cli.commands.study import study
from bayesdp.cli.commands.train import train
from bayesdp.cli.commands.unlearn import unlearn
from bayesdp.cli.commands.verify import verify
from bayesdp.cli.doctor import doctor
from bayesdp.cli.learning import INTERRUPTED
from bayesdp.cli.refusal import Command, Refusal, one_line
from bayesdp.version import __version__

# Typer does not name the parent of all its complaints about usage; BadParameter is one of them.
_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)

app = typer.Typer(name="bayesdp", no_args_is_help=True, rich_markup_mode="rich")

_PANELS: dict[str, list[Callable[..., None]]] = {
    "Private training": [check, plan, train, fit, resume, report, predict],
    "Differential privacy of a plan": [epsilon, delta, calibrate, sgld_step],
    "Releases": [publish, verify],
    "Privacy of a run that happened": [account, ledger, audit],
    "One record": [instance, study, unlearn],
    "Look around": [demo, reproduce, doctor],
}


def _help(text: str | None) -> str:
    """A docstring for a terminal of any width: paragraphs without line breaks, except for those of examples.

    An example must not be the second paragraph: Typer would take away its indentation.
    """
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(p if p.startswith(("For example:", "Start here:")) else p.replace("\n", " ") for p in paragraphs)


for _panel, _commands in _PANELS.items():
    for _command in _commands:
        app.command(cls=Command, help=_help(_command.__doc__), rich_help_panel=_panel)(_command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"bayesdp {__version__}")
        raise typer.Exit


_ABOUT = r"""
    Train on people's data and say truthfully what that costs in privacy.

    Three answers for three audiences: to everybody, whatever the data ([bold]DP[/bold]); to people like those in the
    data ([bold]Bayesian DP[/bold]); and to one named record ([bold]per-instance DP[/bold]). Only the first may be
    published without a thought: the other two are computed from private data.

    Start here:
      bayesdp demo
      bayesdp train digits --epsilon 2 --delta 1e-5 --out run
      bayesdp fit breast-cancer --model logistic --epsilon 1 --out fit
      bayesdp epsilon --noise-multiplier 1.1 --sampling-rate 0.01 \
              --steps 1000 --delta 1e-5
      bayesdp calibrate --epsilon 2 --delta 1e-5 --sampling-rate 0.01 --steps 1000
      bayesdp account norms.csv --noise-std 1 --clip-norm 1 \
              --sampling-rate 0.01 --delta 1e-5

    [bold]bayesdp COMMAND --help[/bold] explains the options of a command. Exit code 0: answered; 2: bad input, one
    line on stderr says which, and nothing is written.
    """


@app.callback(help=_help(_ABOUT))
def _program(
    version: Annotated[
        bool, typer.Option("--version", metavar=" ", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The options of the program itself; `version` is answered by its callback."""


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
    except Refusal as problem:
        message = str(problem)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough; nothing may be flushed into it at exit.
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return 1
    except OSError as problem:
        message = f"{problem.strerror or problem}: {problem.filename}" if problem.filename else str(problem)
    print(f"bayesdp: {one_line(message)}", file=sys.stderr)
    return 2
