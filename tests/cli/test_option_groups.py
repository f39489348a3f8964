"""Options that are declared once and belong to several commands."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from bayesdp.cli.app import app
from bayesdp.cli.option_groups import spread
from bayesdp.cli.shared_options import CommonOptions, RecordOptions

Word = Annotated[str, typer.Option("--word")]


@dataclass(frozen=True, kw_only=True)
class Shared:
    place: Annotated[str, typer.Argument(metavar="PLACE")]
    size: Annotated[float | None, typer.Option("--size")] = None
    names: Annotated[list[str] | None, typer.Option("--name")] = None


@pytest.fixture
def calls():
    return []


@pytest.fixture
def program(calls):
    made = typer.Typer()

    @made.command()
    @spread
    def command(*, shared: Shared, word: Word = "none") -> None:
        """Says what it does."""
        calls.append((shared, word))

    return made


def test_a_group_is_filled_from_the_options_of_the_command(program, calls):
    given = ["here", "--size", "2", "--name", "a", "--name", "b", "--word", "w"]
    assert CliRunner().invoke(program, given).exit_code == 0
    assert CliRunner().invoke(program, ["there"]).exit_code == 0
    assert calls == [(Shared(place="here", size=2.0, names=["a", "b"]), "w"), (Shared(place="there"), "none")]


def test_what_has_no_default_is_needed(program, calls):
    assert CliRunner().invoke(program, []).exit_code == 2
    assert calls == []


def test_options_stand_where_their_group_does_and_the_help_is_the_functions_own():
    def plain(*, word: Word, shared: Shared, last: int = 1) -> None:
        """Says what it does."""

    assert list(inspect.signature(spread(plain)).parameters) == ["word", "place", "size", "names", "last"]
    assert spread(plain).__doc__ == plain.__doc__
    assert spread(plain).__name__ == "plain"


def test_train_and_fit_have_all_shared_options_in_the_same_words():
    train, fit = (
        {one.name: one for one in typer.main.get_command(app).commands[name].params} for name in ("train", "fit")
    )
    for group in (RecordOptions, CommonOptions):
        for name in group.__dataclass_fields__:
            assert (train[name].opts, train[name].help, train[name].default) == (
                fit[name].opts,
                fit[name].help,
                fit[name].default,
            )
    own = {name for name in set(train) & set(fit) if train[name].help == fit[name].help} - {
        "out",
        "json",
        "help",
        "ledger",
        "ledger_budget",
    }
    assert own == {*RecordOptions.__dataclass_fields__, *CommonOptions.__dataclass_fields__}
