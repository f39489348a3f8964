"""What a report says follows from the plan: one character made `report --json` print a DP ε of 0.2 instead of 1."""

import json
import shutil

import numpy as np
import pytest
from command_line import cli
from people_files import write_people

import bayesdp as bd
from bayesdp import InputError, storage
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.derived_again import check_derived
from bayesdp.jobs.prepared_sgd import prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.report import read
from bayesdp.storage import manifest

__all__ = ["cli"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    source = DataSource.given(str(write_people(place / "people.csv")), target="rich")
    common = {"noise_multiplier": 4.0, "steps": 2, "sampling_rate": 0.5, "engine": "rdp", "delta": 1e-4}
    prepare(SGDJob(data=source, model="logistic", holdout=20, members=20, **common)).fit(place / "run")
    return place / "run"


@pytest.fixture
def run(whole, tmp_path):
    return RunFolder(shutil.copytree(whole, tmp_path / "run"))


def changed(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_report_as_it_was_written_passes(run, cli):
    check_derived(run, read(run.report))
    assert cli("report", run.path, "--json").code == 0
    assert run.check_all() >= 7


def test_an_epsilon_that_does_not_follow_from_the_plan_is_refused(run, cli):
    epsilon = json.loads(run.report.read_text())["report"]["guarantees"][0]["epsilon"]
    changed(run.report, f'"epsilon": {epsilon}', '"epsilon": 0.2')
    assert "report.json' to have the checksum" in cli("report", run.path, "--json").refused()
    manifest.seal(run.path, [run.report.name])
    refused = cli("report", run.path, "--json").refused()
    assert "to say the DP ε of the run in its folder" in refused
    assert "got 0.2" in refused


def test_charges_that_are_not_the_plans_are_refused(run):
    changed(run.accountants, "4.0,", "9.0,")
    with pytest.raises(InputError, match=r"accountants\.json' to have the checksum"):
        bd.load(run.path)
    manifest.seal(run.path, [run.accountants.name])
    with pytest.raises(InputError, match=r"to have charged the 2 steps that plan\.json says"):
        bd.load(run.path)


def test_weights_that_are_no_numbers_predict_nothing(run, whole, cli):
    arrays = storage.read_arrays(run.params)
    name = next(iter(arrays))
    storage.write_arrays(run.params, arrays | {name: np.full_like(arrays[name], np.nan)})
    manifest.seal(run.path, [run.params.name])
    refused = cli("predict", run.path, whole.parent / "people.csv").refused()
    assert "params.npz' to hold finite numbers" in refused


def test_all_files_are_their_owners(run, whole):
    assert [path.name for path in whole.iterdir() if path.stat().st_mode & 0o077] == []
    assert whole.stat().st_mode & 0o077 == 0
