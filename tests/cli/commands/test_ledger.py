"""`ledger show`, `verify` and `export`: what several runs cost together, and whether the file is whole."""

import json

import pytest

from bayesdp.ledger import Charge, Ledger


@pytest.fixture
def path(tmp_path):
    book = Ledger.open(tmp_path / "people.ledger", budget=4.0, delta=1e-5)
    for run in ("first", "second"):
        book.charge(Charge(run=run, steps=((2.0, 0.1, 50),), source="people", looks=("test accuracy",)))
    return book.path


def test_show_says_what_all_runs_come_to(cli, path):
    shown = " ".join(cli("ledger", "show", path).out.split())
    assert "first" in shown
    assert "All 2 runs together: DP ε" in shown
    assert "If all runs were planned before the first result was seen: DP ε" in shown
    assert "Budget: DP ε 4 at δ = 1e-05" in shown
    assert "Not paid for: 2 runs showed how well the model does" in shown
    (dp,) = cli("ledger", "show", path, "--json").json
    assert dp["epsilon"] == Ledger.existing(path).total().dp(1e-5).epsilon
    assert cli("ledger", "show", path, "--delta", 1e-6, "--json").json[0]["epsilon"] > dp["epsilon"]


def test_verify_and_export(cli, path):
    assert cli("ledger", "verify", path).out == "Whole: 3 lines.\n"
    lines = json.loads(cli("ledger", "export", path).out)
    assert [line["value"]["kind"] for line in lines] == ["opened", "charge", "charge"]
    path.write_text(path.read_text().replace("second", "secomd"))
    for ask in ("verify", "show", "export"):
        assert "line 3 to be as it was written" in cli("ledger", ask, path).refused()


def test_bad_input(cli, path, tmp_path):
    assert "to be one of 'show', 'verify', 'export'" in cli("ledger", "spend", path).refused()
    assert "to be the file of a ledger" in cli("ledger", "show", tmp_path / "none").refused()
