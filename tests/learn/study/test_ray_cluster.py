"""A study on a real local Ray cluster: the numbers of one machine, though workers are killed under way."""

import contextlib
import os
import signal
import time

import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp.errors import InputError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'bayesdp[ray]'")

OPTIMIZER = optax.sgd(0.1)
X = np.linspace(-0.5, 0.5, 9, dtype=np.float32)[:, None]


def reporting(folder):
    """A loss that leaves the number of every process in which it is compiled."""

    def loss(params, example):  # a function of its own: workers cannot import a test
        with open(os.path.join(folder, str(os.getpid())), "w"):
            pass
        return 0.5 * ((params - example) ** 2).sum()

    return loss


def study(steps=400):
    plan = bd.SGD(
        sampling_rate=0.5,
        steps=steps,
        noise_multiplier=2.0,
        optimizer=OPTIMIZER,
        clip_norm=1.0,
        engine="rdp",
        report_every=20,
    )
    return bd.Study(plan, runs=2, seed=3, direction="add")  # a unit for each member


def started(folder):
    return {int(path.name) for path in folder.iterdir()} - {os.getpid()}


def test_killed_workers_cost_nothing_but_their_own_unit(tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()
    asked = {"members": [0, 4, 8]}
    loss = reporting(str(pids))
    at_home = study().run(loss, np.zeros(1, np.float32), X, **asked)
    units, killed = tmp_path / "study" / "units", []
    kept = {}

    def kill_everybody(_):
        """When the first unit has arrived: all workers, in the midst of whatever they do."""
        if not killed:
            kept.update({path.name: path.stat().st_mtime_ns for path in units.iterdir()})
            for pid in started(pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    options = {"folder": tmp_path / "study", "ray": "local", "progress": kill_everybody}
    found = study().run(loss, np.zeros(1, np.float32), X, **asked, **options)
    assert killed
    assert started(pids) - set(killed)  # others took over
    assert len(kept) < len(list(units.iterdir())) == 3
    for name, moment in kept.items():
        assert (units / name).stat().st_mtime_ns == moment  # what had arrived was not made again
    for chain, distances in at_home.chains.items():
        np.testing.assert_array_equal(found.chains[chain], distances)
    assert not ray.is_initialized()
    began = time.monotonic()
    again = study().run(loss, np.zeros(1, np.float32), X, **asked, folder=tmp_path / "study", ray="local")
    assert time.monotonic() - began < 2  # nothing to do, so no cluster is started
    assert again.facts == found.facts


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:9", "ray://127.0.0.1:9"])
def test_an_address_where_nobody_answers(address, tmp_path):
    began, folder = time.monotonic(), tmp_path / "study"
    with pytest.raises(InputError, match="ray to be the address of a Ray cluster") as refused:
        study().run(reporting("."), np.zeros(1, np.float32), X, members=[0], ray=address, folder=folder)
    assert time.monotonic() - began < 20
    assert "\n" not in str(refused.value)
    assert not folder.exists()  # whoever was refused has claimed nothing
