"""A job is charged to the user's ledger before its first step, whatever happens in between; copies are noticed."""

import dataclasses
import shutil

import pytest
from people_files import write_people

from bayesdp import InputError
from bayesdp.accountant import WorstCaseAccountant
from bayesdp.data.payment import Paid
from bayesdp.jobs import charged
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.prepared_sgd import prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.ledger import Ledger


class Killed(BaseException):
    """Nobody catches it, as little as a kill."""


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    path = write_people(tmp_path_factory.mktemp("people") / "people.csv")
    source = DataSource.given(str(path), target="rich", test_share=0.2)
    common = {"noise_multiplier": 8.0, "steps": 2, "sampling_rate": 0.5, "engine": "rdp", "delta": 1e-4}
    common |= {"noise_schedule": "constant"}
    return prepare(SGDJob(data=source, model="logistic", holdout=0, members=0, **common))


def killed(*_, **__):
    raise Killed


def test_it_is_charged_and_refused_beyond_the_budget(ready, tmp_path):
    ledger, out = tmp_path / "people.ledger", tmp_path / "run"
    charged.begin(ready, out, ledger, budget=0.9)(None)
    (one,) = Ledger.existing(ledger).charges
    assert one.steps == ((8.0, 0.5, 2),)
    assert one.looks
    assert len(one.source) == 64  # which file, not its name
    for name in ("a", "b"):
        charged.begin(ready, tmp_path / name, ledger)
    more = prepare(dataclasses.replace(ready.job, noise_multiplier=2.0))
    with pytest.raises(InputError, match="the ledger's budget"):
        charged.begin(more, tmp_path / "h", ledger)
    assert not (tmp_path / "h").exists()
    with pytest.raises(InputError, match="to come with ledger"):
        charged.begin(ready, tmp_path / "x", None, budget=1.0)


def test_what_preparing_the_records_cost_is_charged_with_the_steps_and_so_are_draws_and_paid_metrics(ready):
    paid = Paid(noise_std=5.0, histograms=4, noise_multiplier=2.5, delta=1e-6)
    job = dataclasses.replace(ready.job, paid=paid, noise_kind="lattice", epsilon=1.0, metrics_share=0.1)
    one = charged.charge_of(dataclasses.replace(ready, job=job), "a")
    assert one.steps == ((2.5, 1.0, 1), (8.0, 0.5, 2))
    assert one.delta == 1e-6
    assert one.draws == 2 * ready.parameters
    assert one.epsilon == pytest.approx(0.1)


def test_a_run_costs_its_ledger_what_it_promises(ready, tmp_path):
    job = dataclasses.replace(ready.job, noise_kind="lattice")
    whole = dataclasses.replace(ready, job=job)
    finished = charged.begin(whole, tmp_path / "run", tmp_path / "people.ledger", budget=9.0)(None)
    (dp, *_) = finished.report.guarantees
    account = WorstCaseAccountant()  # its engine is the ledger's, not the job's
    account.step(noise_multiplier=8.0, sampling_rate=0.5, steps=2)
    exact = account.epsilon(dp.delta - dp.delta_split["noise"])
    for book in (tmp_path / "people.ledger", RunFolder(tmp_path / "run").journal):
        promised = Ledger.existing(book).total().dp(dp.delta, adaptive=False).epsilon
        assert promised == pytest.approx(exact, rel=1e-9)
        (one,) = Ledger.existing(book).charges
        assert one.draws == 2 * ready.parameters


@pytest.mark.parametrize("where", ["charge", "note"])
def test_killed_between_intention_and_payment_it_pays_when_it_is_taken_up(ready, tmp_path, monkeypatch, where):
    ledger, out = tmp_path / "people.ledger", tmp_path / "run"
    real = Ledger.note
    with monkeypatch.context() as patch:
        if where == "charge":
            patch.setattr(Ledger, "charge", killed)
        else:
            patch.setattr(Ledger, "note", lambda own, about: killed() if "paid" in about else real(own, about))
        with pytest.raises(Killed):
            charged.begin(ready, out, ledger)
    assert len(Ledger.existing(ledger).charges) == (where == "note")
    assert not RunFolder(out).checkpoint.exists()  # no step before the charge
    charged.resume(ready, out)(None)
    assert len(Ledger.existing(ledger).charges) == 1


def test_a_rollback_and_a_copy_that_went_on_are_noticed(ready, tmp_path):
    ledger, out, old = tmp_path / "people.ledger", tmp_path / "run", tmp_path / "old"
    Ledger.open(ledger)
    shutil.copytree(tmp_path, old)
    charged.begin(ready, out, ledger)  # not run
    copy = shutil.copytree(out, tmp_path / "copy")
    charged.resume(ready, out)
    with pytest.raises(InputError, match="A copy went on with the same noise"):
        charged.resume(ready, copy)
    for name in ("people.ledger", "people.ledger.head"):
        shutil.copy(old / name, tmp_path / name)
    with pytest.raises(InputError, match="an older copy of the ledger was put back"):
        charged.resume(ready, out)
