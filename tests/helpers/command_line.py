"""The command line as a function: `cli("epsilon", "--delta", …)` runs the program that the console script runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bayesdp.cli import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output as strict JSON: NaN and Infinity are refused, and there may be nothing beside it."""

        def refuse(word: str) -> None:
            raise AssertionError(f"not strict JSON: {word}")

        assert (self.code, self.err) == (0, "")
        return json.loads(self.out, parse_constant=refuse)

    def refused(self) -> str:
        """The one line of a refusal."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        assert "Traceback" not in self.err
        assert self.err.startswith("bayesdp: ")
        return self.err


Cli = Callable[..., Result]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(int(left.value.code or 0), out, err)

    return run
