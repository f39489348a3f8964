"""`study`: a finished run's plan many times over, for records by their number in the file."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest
from people_files import write_people

from bayesdp.cli import main
from bayesdp.experiments.per_instance.checkpoint_distances import distances
from bayesdp.jobs.prepared_sgd import prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn import StudyResult
from bayesdp.learn.loop.run_folder import RunFolder

PLAN = (
    "--noise-multiplier",
    3,
    "--steps",
    8,
    "--engine",
    "rdp",
    "--holdout",
    30,
    "--members",
    0,
    "--seed",
    0,
    "--test-share",
    0.2,
)
QUICK = ("--runs", 2, "--seed", 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    table = write_people(folder / "people.csv")
    with pytest.raises(SystemExit) as left:
        main(
            [
                str(word)
                for word in ("train", table, "--target", "rich", "--drop", "wage", *PLAN, "--out", folder / "run")
            ]
        )
    assert not left.value.code
    return folder / "run"


@pytest.fixture(scope="module")
def asked(run):
    """The numbers of a member, of a record that was held out, and of one to test on."""
    ready = prepare(SGDJob.read(RunFolder(run)))
    inside, tests = ready.data.places[: len(ready.data.x)], ready.data.places[len(ready.data.x) :]
    held_out = sorted(set(range(240)) - set(ready.data.places.tolist()))
    return [int(inside[5]) + 1, held_out[0] + 1, int(tests[0]) + 1]


def test_json_is_the_table_and_nothing_else(cli, run, asked, tmp_path):
    words = ",".join(map(str, asked))
    found = cli("study", run, "--records", words, *QUICK, "--out", tmp_path / "study", "--json").json
    result = StudyResult.load(tmp_path / "study")
    assert found == result.table
    assert [(one.name, one.member) for one in result.facts.subjects] == [
        (f"number {asked[0]}", True),
        (f"number {asked[1]}", False),
        (f"number {asked[2]}", False),
    ]
    assert {(line["record"], line["direction"]) for line in found} == {
        (f"number {number}", way) for number in asked for way in ("remove", "add")
    }
    with (tmp_path / "study" / "table.csv").open() as file:
        assert [float(row["upper"]) for row in csv.DictReader(file)] == [line["upper"] for line in found]
    # What was studied are these very records, from the run's own start.
    ready = prepare(dataclasses.replace(SGDJob.read(RunFolder(run)), watch=tuple(asked)))
    first = distances(ready.model.loss(), [[ready.params]], ready.watch, ready.plan.clip_norm)
    np.testing.assert_allclose(result.chains[-1][:, 0], np.broadcast_to(first[0, 0], (2, 3)), rtol=1e-5)


def test_a_person_reads_what_it_means_and_may_start_again(cli, run, asked, tmp_path):
    names = tmp_path / "people.txt"
    names.write_text("# hard cases\n" + "\n".join(map(str, asked)) + "\n")
    moments = []
    for _ in range(2):  # the second time everything is there already
        result = cli("study", run, "--records", names, *QUICK)
        assert result.code == 0
        shown = " ".join(result.out.split())
        for sentence in (
            "2 runs of 8 steps on each data set",
            "most exposed first (sensitive)",
            "a promise to each record that was named before the run",
            f"number {asked[0]} (member) remove",
            f"number {asked[1]} (outsider) add",
            "certify no more than the worst case",
            "The study's runs must not be published.",
            f"All lines: {run / 'study' / 'table.csv'}",
        ):
            assert sentence in shown
        moments.append({path.name: path.stat().st_mtime_ns for path in (run / "study" / "units").iterdir()})
    assert len(moments[0]) == 4
    assert moments[0] == moments[1]
    line = cli("study", run, "--records", names, *QUICK, "--every", 2).refused()
    assert "another every" in line
    assert "nothing in this one was changed" in line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--records", "9999"), "There are 240 records, counted from 1"),
        (("--records", "0"), "--records"),
        (("--records", "7,7"), "each record once"),
        (("--records", "seven"), "numbers separated by commas"),
        (("--records", "7", "--runs", "0"), "--runs"),
        (("--records", "7", "--direction", "up"), "direction"),
        (("--records", "7", "--failure", "2"), "failure"),
        (("--records", "7", "--ray", "nowhere", "--seed", "5"), "Ray cluster"),
    ],
)
def test_bad_words(cli, run, words, expected, tmp_path):
    assert expected in cli("study", run, *words, "--out", tmp_path / "out").refused()


def test_a_folder_that_is_no_run_of_train(cli, run, tmp_path):
    assert "job.json" in cli("study", tmp_path, "--records", "7").refused()
    job = json.loads((run / "job.json").read_text())
    (tmp_path / "job.json").write_text(json.dumps({**job, "format": "bayesdp/fit-job"}))
    cli("study", tmp_path, "--records", "7").refused()
