"""The ledger: nothing is spent twice, by whomever; nothing is spent that was not written down; copies are noticed."""

import contextlib
import json
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import InputError
from bayesdp.guarantee import Guarantee
from bayesdp.ledger import Charge, Ledger

STEPS = ((2.0, 0.1, 50),)


def charge(run, **more):
    return Charge(run=run, steps=STEPS, **more)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "people.ledger", budget=3.0, delta=1e-5)


def test_a_budget_is_kept_and_what_it_does_not_pay_for_is_not_written(ledger):
    made = 0
    while ledger.total().dp(1e-5).epsilon < 2.6:
        ledger.charge(charge(f"run {made}"))
        made += 1
    assert made >= 1
    with pytest.raises(InputError, match=r"the ledger's budget, DP ε 3 at δ = 1e-05, to pay for train"):
        ledger.charge(Charge(run="large", steps=((1.0, 0.1, 50),)))
    assert len(Ledger.existing(ledger.path).charges) == made
    assert ledger.total().dp(1e-5).epsilon <= 3.0
    # Something smaller still fits.
    ledger.charge(Charge(run="small", steps=((100.0, 0.001, 1),)))


def test_a_run_is_charged_once_and_neighbours_are_of_one_kind(ledger):
    ledger.charge(charge("a"))
    assert ledger.charged("a")
    assert not ledger.charged("b")
    with pytest.raises(InputError, match="has charged it already"):
        ledger.charge(charge("a"))
    with pytest.raises(InputError, match="do not add up"):
        ledger.charge(charge("b", adjacency="replace-one"))


def test_terms_are_those_of_the_beginning(ledger, tmp_path):
    assert Ledger.open(ledger.path).terms == (3.0, 1e-5)
    with pytest.raises(InputError, match=r"Expected budget to be left out or 3\.0, as the ledger began"):
        Ledger.open(ledger.path, budget=4.0, delta=1e-5)
    with pytest.raises(InputError, match="delta beside budget"):
        Ledger.open(tmp_path / "other", budget=1.0)
    with pytest.raises(InputError, match="to be in a folder that is there"):
        Ledger.open(tmp_path / "nowhere" / "a.ledger")
    with pytest.raises(InputError, match="to be the file of a ledger"):
        Ledger.existing(tmp_path / "none.ledger")


def test_a_copy_that_went_on_elsewhere_is_noticed(ledger):
    ledger.charge(charge("a"))
    assert ledger.resumed("a", 0) == 1
    with pytest.raises(InputError, match=r"taken up 0 times, got 1 times\. A copy went on with the same noise"):
        ledger.resumed("a", 0)
    assert ledger.resumed("a", 1) == 2
    assert ledger.resumed("b", 0) == 1


def test_what_runs_say_of_themselves_is_summed(ledger):
    for run in ("a", "b"):
        ledger.charge(charge(run, source="people"))
        told = Guarantee(notion="per-instance", epsilon=0.1, delta=1e-6, ex_post=True)
        ledger.measured(run, [told], "the same")
    dp, one = ledger.total().guarantees(1e-5)
    assert (one.notion, one.epsilon) == ("per-instance", pytest.approx(0.2))
    assert dp.epsilon < 3


def test_a_rollback_is_noticed_by_who_kept_a_line(ledger, tmp_path):
    names = [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")]
    for path in names:
        shutil.copy(path, tmp_path / f"{path.name}.old")
    line = ledger.charge(charge("a"))
    assert ledger.has((line.number, line.checksum))
    for path in names:
        shutil.copy(tmp_path / f"{path.name}.old", path)
    assert not ledger.has((line.number, line.checksum))


SPEND = """
import sys
from bayesdp import InputError
from bayesdp.ledger import Charge, Ledger
for i in range(6):
    try:
        Ledger.existing(sys.argv[1]).charge(Charge(run=f"{sys.argv[2]}.{i}", steps=((2.0, 0.1, 50),)))
        print("paid")
    except InputError:
        print("refused")
"""


def test_two_processes_cannot_spend_the_same_budget(ledger):
    command = [sys.executable, "-c", SPEND, str(ledger.path)]
    several = [subprocess.Popen([*command, str(i)], stdout=subprocess.PIPE, text=True) for i in range(2)]
    answers = [word for one in several for word in one.communicate()[0].split()]
    assert answers.count("paid") == len(ledger.charges)
    assert answers.count("refused") > 0
    assert ledger.total().dp(1e-5).epsilon <= 3.0


def test_a_damaged_or_foreign_file_is_refused(ledger, tmp_path):
    ledger.charge(charge("a"))
    text = ledger.path.read_text()
    ledger.path.write_text(text.replace("[2.0,0.1,50]", "[9.0,0.1,50]"))
    with pytest.raises(InputError, match="line 2 to be as it was written"):
        Ledger.existing(ledger.path)
    with pytest.raises(InputError):
        ledger.charge(charge("b"))
    from bayesdp.storage.journal import Journal

    Journal(tmp_path / "other").add({"kind": "letter", "value": {}})
    with pytest.raises(InputError, match="something else in line 1"):
        Ledger.existing(tmp_path / "other")


@given(st.dictionaries(st.text(max_size=6), st.recursive(st.none() | st.floats() | st.text(), st.lists), max_size=9))
def test_any_values_are_a_charge_or_one_error(values):
    good = charge("a").to_dict()
    for found in (values, good | values, good | dict(zip(good, values.values(), strict=False))):
        with contextlib.suppress(InputError):
            json.dumps(Charge.from_dict(found).to_dict(), allow_nan=False)
