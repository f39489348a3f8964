"""`unlearn`: the folder of a run is asked to forget, request after request, and keeps the tally."""

from __future__ import annotations

import dataclasses
import json
import shutil
import stat
import subprocess
import sys

import jax
import numpy as np
import pytest

from bayesdp import Filter, WorstCaseAccountant, storage
from bayesdp.accountant import state as states
from bayesdp.cli import main
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.study import folder as study_folder
from bayesdp.learn.study.facts import Subject
from bayesdp.learn.study.study import Study
from bayesdp.learn.study.units import Material
from bayesdp.storage import manifest
from bayesdp.unlearn import Ledger, budget, folder
from bayesdp.unlearn.forgeability import differences

QUICK = (
    "--model",
    "logistic",
    "--schedule",
    "constant",
    "--steps",
    3,
    "--engine",
    "rdp",
    "--members",
    0,
    "--delta",
    1e-4,
)
NOISE = 8.0


def called(*arguments) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    assert called("train", "digits", *QUICK, "--noise-multiplier", NOISE, "--holdout", 0, "--out", path) == 0
    return path


@pytest.fixture
def run(original, tmp_path):
    """A run to forget in, each test its own."""
    return shutil.copytree(original, tmp_path / "run")


@pytest.fixture(scope="module")
def numbers(original):
    """Those that the model was trained on."""
    return folder.opened(original).numbers


@pytest.fixture(scope="module")
def worst(original):
    """D_2 of the plan for one record, by the accountant."""
    accountant = WorstCaseAccountant(engine="rdp")
    accountant.step(noise_multiplier=NOISE, sampling_rate=SGDJob.read(RunFolder(original)).sampling_rate, steps=3)
    return accountant.cost(2.0)


def test_requests_add_up_until_the_budget_is_spent(cli, run, numbers, worst):
    a, b, c, d = (int(number) for number in numbers[:4])
    first = cli("unlearn", run, "--record", a, "--beta", 6 * worst, "--json").json
    assert (first["answer"], first["records"], first["order"], first["budget"]) == ("keep", [a], 2, 6 * worst)
    assert first["left"] == pytest.approx(worst)
    assert first["protocol"]["name"] == "internal audit"
    second = cli("unlearn", run, "--record", b, "--json").json
    assert second["answer"] == "keep"
    assert (
        4 * worst <= second["left"] < 4.5 * worst
    )  # two records at once: nearly twice as far, four times the divergence
    assert second["terms"][0]["records"] == [a, b]
    third = cli("unlearn", run, "--record", c)
    assert third.code == 0
    shown = " ".join(third.out.split())
    assert shown.startswith(f"RETRAIN: record {c} of digits.")
    for words in (
        f"{a}, {b}, {c}",
        "worst case of the plan",
        "> β = ",
        "second release",
        "internal audit",
        "oblivious",
    ):
        assert words in shown, words
    last = cli("unlearn", run, "--record", d, "--json").json
    assert (last["answer"], last["terms"]) == ("retrain", [])
    ledger = Ledger.from_dict(
        {k: v for k, v in _note(run).items() if k not in ("format", "version", "decisions", "sha256")}
    )
    assert (ledger.forgotten, ledger.due, ledger.asked) == ((a, b, c, d), True, 4)
    assert [one["answer"] for one in _note(run)["decisions"]] == ["keep", "keep", "retrain", "retrain"]
    assert stat.S_IMODE((run / "unlearning.json").stat().st_mode) == 0o600


def _note(run):
    return json.loads((run / "unlearning.json").read_text(encoding="utf-8"))


def test_it_says_everything_in_words(cli, run, numbers):
    result = cli("unlearn", run, "--record", f"{numbers[5]},{numbers[6]}", "--beta", 20, "--order", 2.5)
    assert (result.code, result.err) == (0, "")
    shown = " ".join(result.out.split())
    for words in (
        f"KEEP: records {numbers[5]}, {numbers[6]} of digits.",
        "coefficient order divergence product from",
        "≤ β = 20, at order α = 2.5.",
        "trained without them can tell which at most ",
        "there is room for ",
        "Protocol: internal audit.",
        "the same rate, noise, steps, divisor",
        "unlearning.json (sensitive",
    ):
        assert words in shown, words


def test_the_statement_can_be_checked(cli, run, numbers, tmp_path):
    target = tmp_path / "statement.json"
    who = int(numbers[9])
    assert cli("unlearn", run, "--record", who, "--beta", 1, "--statement", target).code == 0
    found = json.loads(target.read_text(encoding="utf-8"))
    opened = folder.opened(run)
    x, y = opened.without([who])
    assert (len(x), found["records"]) == (len(numbers) - 1, [who])
    assert found["bound"]["notion"] == "dp"
    model = storage.read_arrays(run / "params.npz")
    assert differences(found, data=(x, y), checkpoints=[model]) == []
    assert differences(found, data=opened.without([]), checkpoints=[model]) == ["data without the records"]
    before = _note(run)
    assert "new file" in cli("unlearn", run, "--record", numbers[10], "--statement", target).refused()
    assert _note(run) == before


def test_requests_that_may_depend_on_the_model(cli, run, numbers):
    refused = cli("unlearn", run, "--record", numbers[0], "--beta", 50, "--requests", "adaptive").refused()
    assert "change its law (ERR 21)" in refused
    found = cli(
        "unlearn", run, "--record", numbers[0], "--beta", 50, "--requests", "adaptive", "--gamma", 0.01, "--json"
    ).json
    assert found["answer"] == "keep"
    assert found["surcharge"] > 15
    assert found["failure"] == 0.005
    assert "adaptive requests" in cli("unlearn", run, "--record", numbers[1]).out


# --- a study ----------------------------------------------------------------------------------------------------


def study(run, path, rows, forgotten=(), plan=None):
    """The folder of a study of eight runs in which every record moved a step by a twentieth of the clip norm.

    Its distances are there before it begins, so that nothing has to be trained.
    """
    opened = folder.opened(run)
    data, start, loss = opened.without(forgotten), opened.prepared.params, opened.prepared.model.loss()
    wanted = Study(plan or opened.prepared.plan, runs=8, direction="remove", failure=0.02, seed=7)
    records = jax.tree.map(lambda leaf: leaf[np.array(rows)], data)
    material = Material(wanted.plan, loss, start, data, records, tuple(rows), wanted.every, wanted.seed)
    kept = study_folder.claim(path, material, wanted.fixed, seeded=True)
    (unit,) = wanted.units([Subject("", True)] * len(rows))
    kept.write(unit, np.full((wanted.runs, wanted.plan.steps, len(rows)), 0.05, np.float32))
    wanted.run(loss, start, data, members=rows, folder=path)
    return path


def test_a_study_certifies_more_and_is_an_audit_to_modify(cli, run, numbers, worst, tmp_path):
    path = study(run, tmp_path / "study", [4, 7])
    who = int(numbers[7])
    assert "γ = 0" in cli("unlearn", run, "--record", who, "--beta", 20 * worst, "--from", path).refused()
    assert not (run / "unlearning.json").exists()
    found = cli("unlearn", run, "--record", who, "--beta", 20 * worst, "--from", path, "--gamma", 0.05, "--json").json
    assert found["answer"] == "keep"
    assert (found["terms"][0]["source"], found["failure"]) == ("study", 0.02)
    assert found["left"] < 0.9 * worst
    assert (found["protocol"]["name"], found["sensitive"]) == ("audit to modify", True)
    # The next study must be of the data without that record, in which rows have moved up.
    assert (
        "data without the records forgotten so far"
        in cli("unlearn", run, "--record", numbers[4], "--from", path).refused()
    )
    later = study(run, tmp_path / "later", [4], forgotten=[who])
    found = cli("unlearn", run, "--record", numbers[4], "--from", later, "--json").json
    assert [one["source"] for one in found["terms"]] == ["study", "study"]
    assert found["failure"] == 0.04
    third = study(run, tmp_path / "third", [0], forgotten=[who, int(numbers[4])])
    assert "0.04 is used" in cli("unlearn", run, "--record", numbers[0], "--from", third).refused()


def test_studies_that_do_not_fit_are_refused(cli, run, numbers, tmp_path):
    path = study(run, tmp_path / "study", [4, 7])
    ask = ("--beta", 1, "--gamma", 0.05, "--from")
    assert "asked about" in cli("unlearn", run, "--record", numbers[5], *ask, path).refused()
    assert "one for a study" in cli("unlearn", run, "--record", f"{numbers[4]},{numbers[7]}", *ask, path).refused()
    assert "folder of a study" in cli("unlearn", run, "--record", numbers[4], *ask, tmp_path / "none").refused()
    other = dataclasses.replace(folder.opened(run).prepared.plan, noise_multiplier=9.0)
    path = study(run, tmp_path / "other", [4], plan=other)
    assert "study of this run's plan" in cli("unlearn", run, "--record", numbers[4], *ask, path).refused()
    assert not (run / "unlearning.json").exists()


# --- a filter ---------------------------------------------------------------------------------------------------


def test_a_filters_budget(cli, run, numbers):
    assert (
        "run without a filter" in cli("unlearn", run, "--record", numbers[0], "--beta", 1, "--from", "filter").refused()
    )
    # As a run with a filter leaves it: the accounts hold the budgets.
    state = states.read(run / "accountants.json")
    plan = folder.opened(run).prepared.plan
    budgets = Filter(epsilon=1.0, order=20.0).accountant(len(numbers), plan)
    states.write(run / "accountants.json", {**state, "budgets": budgets.state()})
    manifest.seal(run, ["accountants.json"])
    found = cli("unlearn", run, "--record", numbers[0], "--beta", 5, "--order", 8, "--from", "filter", "--json").json
    assert (found["answer"], found["left"]) == ("keep", pytest.approx(budgets.budget))
    assert found["protocol"]["keeps_dp"]
    found = cli("unlearn", run, "--record", f"{numbers[1]},{numbers[2]}", "--from", "filter", "--json").json
    assert found["answer"] == "retrain"
    assert found["left"] == "inf"  # three records need orders beyond the filter's


# --- bad input --------------------------------------------------------------------------------------------------


def test_records_that_cannot_be_forgotten(cli, run, numbers):
    held_out = next(number for number in range(1, 1797) if number not in numbers)
    both = f"{held_out},{numbers[0]}"
    assert f"without {held_out}" in cli("unlearn", run, "--record", both, "--beta", 1).refused()
    assert "1,797 records" in cli("unlearn", run, "--record", 1798, "--beta", 1).refused()
    assert "1,797 records" in cli("unlearn", run, "--record", 0, "--beta", 1).refused()
    for bad in ("x", "1.5", "", "1,1"):
        assert "record" in cli("unlearn", run, "--record", bad, "--beta", 1).refused()
    assert not (run / "unlearning.json").exists()
    assert cli("unlearn", run, "--record", numbers[3], "--beta", 1).code == 0
    before = (run / "unlearning.json").read_bytes()
    assert "forgotten already" in cli("unlearn", run, "--record", numbers[3]).refused()
    assert (run / "unlearning.json").read_bytes() == before


def test_budgets_that_do_not_fit(cli, run, numbers):
    assert "--beta" in cli("unlearn", run, "--record", numbers[0]).refused()
    for option, bad in (("--beta", 0), ("--order", 1), ("--gamma", 1), ("--beta", "x"), ("--requests", "some")):
        given = {"--beta": 1, option: bad}
        words = [word for pair in given.items() for word in pair]
        assert option.strip("-") in cli("unlearn", run, "--record", numbers[0], *words).refused()
    assert cli("unlearn", run, "--record", numbers[0], "--beta", 1).code == 0
    for option, other in (("--beta", 2), ("--order", 4), ("--gamma", 0.1), ("--requests", "adaptive")):
        refused = cli("unlearn", run, "--record", numbers[1], option, other).refused()
        assert option in refused
        assert "at the first request" in refused
    assert cli("unlearn", run, "--record", numbers[1], "--beta", 1, "--order", 2).code == 0


def test_budgets_in_other_words(cli, original, numbers, tmp_path):
    def asked(name, *words):
        return cli("unlearn", shutil.copytree(original, tmp_path / name), "--record", numbers[0], *words, "--json").json

    success = asked("success", "--told-apart", 0.6)
    assert (success["order"], success["budget"]) == (2, budget.from_success(0.6))
    assert success["told_apart"] <= 0.6
    pair = asked("pair", "--epsilon", 1, "--delta", 1e-5)
    assert pair["order"] > 2
    assert pair["budget"] == budget.from_epsilon(1, 1e-5, pair["order"])
    again = cli("unlearn", tmp_path / "pair", "--record", numbers[1], "--epsilon", 1, "--delta", 1e-5, "--json").json
    assert again["budget"] == pair["budget"]
    fresh = shutil.copytree(original, tmp_path / "fresh")
    for words, told in (
        (("--told-apart", 0.6, "--beta", 1), "left out beside"),
        (("--epsilon", 1), "together"),
        (("--told-apart", 0.5), "0.5"),
        (("--epsilon", 1, "--delta", 1e-5, "--order", 2), "to be above 10.1"),
    ):
        assert told in cli("unlearn", fresh, "--record", numbers[0], *words).refused()


def test_ledgers_of_another_training_and_damaged_ones(cli, run, numbers):
    assert cli("unlearn", run, "--record", numbers[0], "--beta", 1).code == 0
    good = (run / "unlearning.json").read_text(encoding="utf-8")
    plan = (run / "plan.json").read_text(encoding="utf-8")
    (run / "plan.json").write_text(plan.replace("{", "{ ", 1), encoding="utf-8")
    assert "plan.json' to have the checksum" in cli("unlearn", run, "--record", numbers[1]).refused()
    manifest.seal(run, ["plan.json"])
    assert "another training" in cli("unlearn", run, "--record", numbers[1]).refused()
    (run / "plan.json").write_text(plan, encoding="utf-8")
    manifest.seal(run, ["plan.json"])
    for damaged in (good[:40], good.replace('"asked"', '"asks"'), "[]"):
        (run / "unlearning.json").write_text(damaged, encoding="utf-8")
        cli("unlearn", run, "--record", numbers[1]).refused()
        assert (run / "unlearning.json").read_text(encoding="utf-8") == damaged
    (run / "unlearning.json").write_text(good, encoding="utf-8")
    assert cli("unlearn", run, "--record", numbers[1]).code == 0


def test_runs_that_cannot_forget(cli, run, numbers, tmp_path):
    assert "job.json" in cli("unlearn", tmp_path, "--record", 1, "--beta", 1).refused()
    job = json.loads((run / "job.json").read_text(encoding="utf-8"))
    del job["sha256"]

    def told(**change):
        rest = {name: value for name, value in job.items() if name not in ("format", "version")}
        storage.write_tagged(run / "job.json", job["format"], job["version"], {**rest, **change}, checked=True)
        manifest.seal(run, ["job.json"])

    def charged(state):
        states.write(run / "accountants.json", state)
        manifest.seal(run, ["accountants.json"])

    told(seed=3)
    assert "not from a seed" in cli("unlearn", run, "--record", numbers[0], "--beta", 1).refused()
    told(holdout=100)
    assert "as they were" in cli("unlearn", run, "--record", numbers[0], "--beta", 1).refused()
    told()
    state = states.read(run / "accountants.json")
    silent = {**state, "worst_case": WorstCaseAccountant(engine="rdp").state()}  # as if nothing had been charged
    charged(silent)
    refused = cli("unlearn", run, "--record", numbers[0], "--beta", 1).refused()
    assert "to have charged the 3 steps that plan.json says" in refused
    charged({**state, "kind": "bayesdp/samples"})
    assert "kind of the state to be" in cli("unlearn", run, "--record", numbers[0], "--beta", 1).refused()
    (run / "report.html").unlink()
    assert "finished run" in cli("unlearn", run, "--record", numbers[0], "--beta", 1).refused()


def test_who_was_held_out_has_nothing_to_forget_and_no_ledger_is_begun(cli, run, numbers):
    held_out = next(number for number in range(1, 1797) if number not in numbers)
    done = cli("unlearn", run, "--record", held_out, "--beta", 1)
    assert done.code == 0
    assert done.out.startswith(f"KEEP: record {held_out}.")
    assert "nothing to forget" in " ".join(done.out.split())
    assert cli("unlearn", run, "--record", held_out, "--beta", 1, "--json").json["answer"] == "keep"
    assert not (run / "unlearning.json").exists()


ASK = """
import sys
from bayesdp.cli import main
main(["unlearn", sys.argv[1], "--record", sys.argv[2], "--beta", sys.argv[3], "--json"])
"""


def test_two_at_once_do_not_spend_the_same_budget(run, numbers, worst):
    """β pays for one of two records: both were told "keep" where each read the tally before the other wrote it."""
    command = [sys.executable, "-c", ASK, str(run)]
    several = [
        subprocess.Popen([*command, str(numbers[i]), str(1.5 * worst)], stdout=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    answers = sorted(json.loads(one.communicate()[0])["answer"] for one in several)
    assert answers == ["keep", "retrain"]
    assert sorted(_note(run)["forgotten"]) == sorted(int(numbers[i]) for i in range(2))
