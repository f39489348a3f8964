"""The power fails just after any sync of a run: what is left is charged, whole or refused, and goes on to the same end.

Kills at random moments of the real program are in benchmarks/crashes.py (`make crash`), of which a few are tried here.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from power_loss import Disk

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.loop import checkpoint
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.ledger import Charge, Ledger

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
PLAN = bd.SGD(
    clip_norm=1.0,
    sampling_rate=0.5,
    steps=4,
    noise_multiplier=2.0,
    engine="rdp",
    report_every=2,
    optimizer=optax.sgd(0.5),
)
START = jnp.zeros(3)


def loss(weights, record):
    return jax.nn.softplus(-(record @ weights))


@pytest.fixture(scope="module")
def lost(tmp_path_factory):
    """A run that saw its disk after every sync, and what it came to. Its noise is the operating system's."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("disk") / "run"
        folder.mkdir()
        disk = Disk(folder, patch)
        run = PLAN.fit(loss, START, X, folder=folder, members=5)
        run.save(folder)
    assert len(disk.states) > 20
    return disk, run


def reached(folder):
    """How many steps were taken, as far as anybody can see."""
    try:
        return checkpoint.read(folder, finished=True).done
    except InputError:
        return None


def test_whatever_was_released_is_charged_and_nothing_half_is_believed(lost):
    disk, run = lost
    seen = set()
    for view in disk.states:
        disk.restore(view)
        folder = RunFolder(disk.root)
        if "checkpoint.npz" in view:
            steps = reached(disk.root)
            assert steps is not None  # renamed after its content was synced
            seen.add(steps)
        if view.get("params.npz") or seen - {0, None}:
            charged = Ledger.existing(folder.journal).charges
            assert sum(n for one in charged for _, _, n in one.steps) == 4
        try:
            again = bd.Run.load(disk.root)
        except InputError:
            continue
        np.testing.assert_array_equal(again.params, run.params)
        assert again.guarantees == run.guarantees
    assert seen == {0, 2, 4}


def test_it_goes_on_to_the_same_end(lost):
    """One state for each number of steps that a checkpoint has: the last before the next."""
    disk, run = lost
    latest = {}
    for view in disk.states:
        disk.restore(view)
        if "checkpoint.npz" in view and "noise.key" in view:
            latest.setdefault(reached(disk.root), view)
    assert sorted(latest) == [0, 2, 4]
    for view in latest.values():
        disk.restore(view)
        again = PLAN.resume(disk.root, loss, START, X)
        np.testing.assert_array_equal(again.params, run.params)
        assert again.guarantees == run.guarantees
        assert not RunFolder(disk.root).key.exists()


def test_a_ledger_is_never_short(tmp_path, monkeypatch):
    disk, paid = Disk(tmp_path, monkeypatch), []
    book = Ledger.open(tmp_path / "people.ledger")
    for i in range(5):
        book.charge(Charge(run=str(i), steps=((2.0, 0.1, 5),)))
        paid.append(len(disk.states))  # acknowledged: every later state must have it
    for place, view in enumerate(disk.states):
        disk.restore(view)
        known = sum(one <= place for one in paid)
        if known or "people.ledger" in view:
            charges = Ledger.open(book.path).charges
            assert known <= len(charges) <= known + 1


@pytest.mark.parametrize("room", [0, 3, 7, 9, 11])
def test_a_full_disk_stops_it_and_with_room_again_it_goes_on(tmp_path, monkeypatch, room):
    """`room`: how many files can still be written."""
    whole, left, real = PLAN.fit(loss, START, X, members=5, seed=3), [room], os.write

    def write(handle, content):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, content)

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(InputError, match="No space left on device"):
            PLAN.fit(loss, START, X, members=5, seed=3, folder=folder)
    assert not [path for path in folder.iterdir() if path.name.endswith(".part")]
    begun = RunFolder(folder).checkpoint.exists()
    run = PLAN.resume(folder, loss, START, X) if begun else PLAN.fit(loss, START, X, members=5, seed=3, folder=folder)
    np.testing.assert_array_equal(run.params, whole.params)
    assert sum(n for one in Ledger.existing(RunFolder(folder).journal).charges for _, _, n in one.steps) == 4


def test_a_folder_that_cannot_be_written_to_takes_no_step(tmp_path, monkeypatch):
    real, seen = os.open, []

    def read_only(path, flags, *more, **others):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(InputError, match="Read-only file system"):
        PLAN.fit(loss, START, X, folder=tmp_path, progress=seen.append)
    assert not seen


def test_no_clock_decides_anything():
    """A clock that jumps changes no answer: what is kept and charged never asks for the time."""
    source = Path(bd.__file__).parent
    files = [*source.glob("storage/*.py"), *source.glob("ledger/*.py"), *source.glob("unlearn/*.py")]
    files += [source / "learn" / "loop" / name for name in ("checkpoint.py", "training.py")]
    for path in files:
        assert not re.search(r"\bimport (time|datetime)\b|st_mtime|st_ctime", path.read_text(encoding="utf-8")), path


@pytest.mark.simulation
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "crashes.py"
    command = [sys.executable, str(script), "--kills", "10", "--seed", "1"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "10 kills: nothing was short, trusted or lost." in found.stdout
