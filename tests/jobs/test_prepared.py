"""A command builds its report once, evaluates a model once, and digests its records once."""

from collections import Counter

import jax
import numpy as np
import pytest
from command_line import cli
from people_files import write_people

from bayesdp.jobs import prepared
from bayesdp.jobs.saved.network import SavedNetwork
from bayesdp.jobs.saved.posterior import SavedPosterior
from bayesdp.learn.loop import fingerprint, run
from bayesdp.learn.posterior_sampling.secret_posterior import SecretPosterior

__all__ = ["cli"]

RICH = ("--target", "rich", "--drop", "wage", "--steps", "6", "--sampling-rate", "0.5")
NOISY = (*RICH, "--noise-multiplier", "4", "--engine", "rdp")
SNAPSHOTS = 6
"""A snapshot at each of so few steps, and one evaluation at each snapshot."""

COMMANDS = {
    "train": ("train", "--model", "logistic", "--test-share", "0.2", "--holdout", "48", *NOISY),
    "fit": ("fit", "--model", "logistic", *NOISY),
    "samples": ("fit", "--model", "logistic", "--method", "posterior-vi", "--samples", "3", "--coverage", "0.5", *RICH),
}


def counting(monkeypatch, seen, owner, name, key=None):
    original = getattr(owner, name)

    def counted(*arguments, **named):
        seen[key(*arguments) if key else name] += 1
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, counted)


def records_in(tree):
    """How many records a tree holds, which tells training records, outsiders and parameters apart."""
    leaves = jax.tree.leaves(tree)
    return len(np.atleast_1d(np.asarray(leaves[0]))) if leaves else 0


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_computed_twice(cli, tmp_path, monkeypatch, command):
    write_people(tmp_path / "people.csv")
    seen, digests = Counter(), Counter()
    counting(monkeypatch, seen, run, "report_of")
    counting(monkeypatch, seen, SecretPosterior, "to_report", key=lambda *_: "report_of")
    for owner in (SavedNetwork, SavedPosterior):
        counting(monkeypatch, seen, owner, "measure")
    counting(monkeypatch, seen, SavedPosterior, "log_predictive")
    for owner in (fingerprint, prepared):
        counting(monkeypatch, digests, owner, "digest", key=records_in)
    word, *plan = COMMANDS[command]
    found = cli(word, tmp_path / "people.csv", *plan, "--out", tmp_path / "run", "--seed", 0)
    assert found.code == 0, found.err
    assert seen["report_of"] == 1
    assert seen["measure"] == (1 if command == "samples" else SNAPSHOTS)
    assert seen["log_predictive"] == (0 if command == "train" else 1)
    training, outsiders = sorted((count for count in digests if count > 20), reverse=True)
    assert abs(training + outsiders - 192) < 40  # by coins
    assert digests[training] == digests[outsiders] == 1


@pytest.mark.parametrize("command", ["train", "fit"])
def test_going_on_computes_nothing_twice_either(cli, tmp_path, monkeypatch, command):
    write_people(tmp_path / "people.csv")
    word, *plan = COMMANDS[command]
    with monkeypatch.context() as patch:
        patch.setattr(run.Run, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert cli(word, tmp_path / "people.csv", *plan, "--out", tmp_path / "run", "--seed", 0).code == 130
    seen, digests = Counter(), Counter()
    counting(monkeypatch, seen, run, "report_of")
    for owner in (SavedNetwork, SavedPosterior):
        counting(monkeypatch, seen, owner, "measure")
    for owner in (fingerprint, prepared):
        counting(monkeypatch, digests, owner, "digest", key=records_in)
    assert cli("resume", tmp_path / "run").code == 0
    assert (seen["report_of"], seen["measure"]) == (1, 0)
    assert all(digests[count] == 1 for count in digests if count > 20)
