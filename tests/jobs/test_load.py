"""`bd.load` gives back what lies in a folder: a run, a posterior with its model, or samples."""

import numpy as np
import pytest
from command_line import cli
from people_files import write_people

import bayesdp as bd
from bayesdp import InputError
from bayesdp.jobs.predict import predict
from bayesdp.learn.posterior_sampling.released_samples import SavedSamples
from bayesdp.report import read

__all__ = ["cli"]

RICH = ("--target", "rich", "--drop", "wage", "--steps", "6", "--sampling-rate", "0.5", "--seed", "0")
NOISY = (*RICH, "--noise-multiplier", "4", "--engine", "rdp", "--watch", "7")
COMMANDS = {
    "train": ("train", "--model", "logistic", *NOISY),
    "fit": ("fit", "--model", "logistic", *NOISY),
    "samples": ("fit", "--model", "linear", "--method", "posterior-vi", "--samples", "3", "--coverage", "0.5", *RICH),
}


@pytest.fixture
def made(cli, tmp_path):
    write_people(tmp_path / "people.csv")

    def make(command):
        word, *plan = COMMANDS[command]
        if command == "samples":
            plan = ["wage" if one == "rich" else "rich" if one == "wage" else one for one in plan]
        done = cli(word, tmp_path / "people.csv", *plan, "--out", tmp_path / "run", "--json")
        assert done.code == 0, done.err
        return tmp_path / "run"

    return make


def test_a_run_of_train(made):
    folder = made("train")
    run, report = bd.load(folder), read(folder / "report.json")
    assert isinstance(run, bd.Run)
    assert tuple(run.guarantees) == report.guarantees
    assert tuple(run.losses()) == report.records.epsilon
    assert run.snapshots[-1].metrics.items() <= report.metrics.items()
    assert {leaf.shape for layer in run.params if layer for leaf in layer.values()} == {(5, 2), (2,)}


def test_a_posterior_of_fit_has_its_model(made, tmp_path):
    folder = made("fit")
    posterior, report = bd.load(folder), read(folder / "report.json")
    assert isinstance(posterior, bd.Posterior)
    assert tuple(posterior.guarantees) == report.guarantees
    assert posterior.labels == tuple(f"w[{i}]" for i in range(6))
    assert posterior.summary().mean == pytest.approx(report.posterior.mean, rel=1e-6)
    x = np.ones((3, 6), np.float32)
    assert posterior.predict((x,), seed=0).shape == (3,)
    assert len(predict(folder, tmp_path / "people.csv")) == 241


def test_samples_of_a_secret_posterior(made):
    folder = made("samples")
    samples, report = bd.load(folder), read(folder / "report.json")
    assert isinstance(samples, SavedSamples)
    with np.load(folder / "samples.npz") as stored:
        np.testing.assert_array_equal(samples.draws, stored["draws"])
    assert tuple(samples.guarantees) == report.guarantees
    assert tuple(samples.losses) == report.records.epsilon
    assert tuple(samples.curve().epsilon) == report.curve.epsilon
    assert samples.summary().mean == pytest.approx(report.posterior.mean, rel=1e-6)
    assert set(samples.samples) == {"w", "noise"}


def test_an_unfinished_or_foreign_folder_is_refused(made, tmp_path):
    folder = made("train")
    (folder / "report.json").unlink()
    with pytest.raises(InputError, match=r"finished run, which has a report\.json"):
        bd.load(folder)
    with pytest.raises(InputError, match="to be the folder of a run"):
        bd.load(tmp_path)
