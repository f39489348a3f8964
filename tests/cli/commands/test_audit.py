"""`bayesdp audit`, of a plan and of a run."""

import json

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from people_files import write_people

from bayesdp.learn import SGD
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.report import read
from bayesdp.unlearn.folder import opened

SMALL = ("--game", "step", "--plays", "4000", "--seed", "1")
PLAN = ("--noise-multiplier", "1", "--sampling-rate", "0.5", "--steps", "2", "--delta", "1e-5")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run as small as can be."""
    plan = SGD(sampling_rate=0.5, steps=2, clip_norm=0.5, noise_multiplier=1.0, engine="rdp", optimizer=optax.sgd(0.1))
    x = np.ones((8, 2), np.float32)
    done = plan.fit(lambda params, record: jnp.sum(params * record[0]), jnp.zeros(2), (x,), members=0, seed=0)
    return done.save(tmp_path_factory.mktemp("audited") / "run")


def test_a_plan_is_audited_and_its_bounds_are_below_what_it_promises(cli):
    bounds = cli("audit", *PLAN, *SMALL, "--json").json
    assert [(one["method"], one["form"]) for one in bounds] == [("step", "counting"), ("step", "f-dp")]
    assert all(0 < one["epsilon"] < one["upper"] for one in bounds)


def test_the_findings_of_a_run_go_into_its_report(cli, run):
    done = cli("audit", run, *SMALL)
    assert done.code == 0, done.err
    assert "ε at least" in done.out
    assert "No bound is above its upper one" in " ".join(done.out.split())
    folder = RunFolder(run)
    found = read(folder.need(folder.report))
    assert [one.form for one in found.audit.bounds] == ["counting", "f-dp"]
    assert found.audit.bounds[1].upper == pytest.approx(found.guarantees[0].epsilon, rel=0.2)  # pld there, rdp here
    page = folder.need(folder.page).read_text()
    assert "What an attack found" in page
    document = json.loads(folder.report.read_text())
    assert document["derived"]["audit"][0]["refutes"] is False
    assert cli("report", run).code == 0


def test_what_cannot_be_audited_is_refused(cli, run, tmp_path):
    assert "--delta" in cli("audit", "--noise-multiplier", "1", "--steps", "2").refused()
    assert "left out with a run" in cli("audit", run, *PLAN).refused()
    assert "--game" in cli("audit", *PLAN, "--game", "poker").refused()
    assert "folder of a run" in cli("audit", tmp_path).refused()


def test_single_records_are_attacked_over_many_small_runs(cli, tmp_path):
    table, folder = write_people(tmp_path / "people.csv"), tmp_path / "run"
    plan = ("--noise-multiplier", 2, "--steps", 2, "--sampling-rate", 0.5, "--clip-norm", 1, "--engine", "rdp")
    given = ("--target", "rich", "--model", "logistic", "--holdout", 0, "--members", 0, "--delta", 1e-4)
    assert cli("train", table, *given, *plan, "--test-share", 0, "--out", folder).code == 0
    one = str(opened(folder).numbers[0])
    found = cli("audit", folder, *SMALL, "--attack", one, "--attack-runs", 64, "--json").json[-1]
    assert found["names"] == [f"record {one}"]
    assert 0 <= found["lower"][0] <= found["upper"][0]
    assert read(RunFolder(folder).report).audit.canaries.plays == 64
    assert "--attack" in cli("audit", *PLAN, *SMALL, "--attack", "1").refused()
    assert "counted from 1" in cli("audit", folder, *SMALL, "--attack", "100000").refused()
