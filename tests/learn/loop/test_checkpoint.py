"""Noise is used once: whoever goes on with another job, in a copy, or twice at a time is refused."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.loop import checkpoint
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.ledger import Ledger
from bayesdp.storage.lock import locked

X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
PLAN = bd.SGD(sampling_rate=0.5, steps=6, noise_multiplier=2.0, engine="rdp", report_every=2, optimizer=optax.sgd(0.5))


def loss(weights, record):
    return jax.nn.softplus(-(record @ weights))


def stop(so_far):
    raise KeyboardInterrupt


@pytest.fixture
def cut(tmp_path):
    """The folder of a run that was interrupted after two steps."""
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        PLAN.fit(loss, jnp.zeros(2), X, folder=folder, progress=stop)
    return folder


def resumed(folder):
    return PLAN.resume(folder, loss, jnp.zeros(2), X)


def test_all_steps_are_charged_before_the_first_and_taking_up_is_counted(cut):
    ledger = Ledger.existing(RunFolder(cut).journal)
    assert [one.steps for one in ledger.charges] == [((2.0, 0.5, 6),)]
    run = resumed(cut)
    assert ledger.times_resumed(ledger.charges[0].run) == 1
    assert len(ledger.charges) == 1
    assert ledger.total().guarantees(PLAN.delta)[0].epsilon <= run.guarantees[0].epsilon


def test_a_copy_is_not_gone_on_with_unless_it_is_said_to_be_the_only_one(cut, tmp_path):
    copied = shutil.copytree(cut, tmp_path / "copy")
    with pytest.raises(InputError, match="to be where the run began, got a copy"):
        resumed(copied)
    checkpoint.moved(copied)
    np.testing.assert_array_equal(resumed(copied).params, resumed(cut).params)


def test_a_folder_that_was_renamed_is_the_same(cut, tmp_path):
    cut.rename(tmp_path / "renamed")
    assert resumed(tmp_path / "renamed").steps == 6


def test_fresh_noise_does_not_come_on_top(cut):
    for _ in range(2):
        with pytest.raises(InputError, match="It holds this very run, under way or done"):
            PLAN.fit(loss, jnp.zeros(2), X, folder=cut)
    resumed(cut)
    with pytest.raises(InputError, match="under way or done"):
        PLAN.fit(loss, jnp.zeros(2), X, folder=cut)


def test_files_that_say_what_is_to_be_done_belong_to_it(cut):
    found = json.loads(RunFolder(cut).fingerprint.read_text())
    assert {"pace", "number of devices", "kind of devices"} <= set(found)
    RunFolder(cut).model_code.write_text("def model(): ...")
    with pytest.raises(InputError, match="the same file of the model as the checkpoint was made with"):
        resumed(cut)


def test_another_pace_is_refused(tmp_path):
    """The sizes of a sampler's steps are numbers that the compiled program is given, not a part of it."""

    def walk(size):
        return bd.SGLD(sampling_rate=0.5, steps=6, step_size=size, engine="rdp", report_every=2)

    model = (lambda w: -jnp.sum(w**2) / 2, lambda w, x: -loss(w, x))
    with pytest.raises(KeyboardInterrupt):
        walk(1e-3).fit(model, X, params=np.zeros(2), folder=tmp_path, progress=stop)
    with pytest.raises(InputError, match="the same"):
        walk(2e-3).resume(tmp_path, model, X, params=np.zeros(2))


def test_one_process_at_a_time(cut):
    import threading

    refused = []

    def other():
        try:
            resumed(cut)
        except InputError as problem:
            refused.append(str(problem))

    with locked(cut):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "another process is working on" in refused[0]
    assert resumed(cut).steps == 6


def test_who_read_the_checkpoint_before_another_went_on_is_refused(cut):
    from bayesdp.learn.loop.training import Training

    course = PLAN.course(loss, jnp.zeros(2))
    early = Training.resumed(course, cut, X)
    resumed(cut)
    with pytest.raises(InputError, match="Another process has gone on with it"):
        early.run(folder=cut)


def test_an_empty_or_damaged_checkpoint_is_one_error(cut):
    path = RunFolder(cut).checkpoint
    for content in (b"", path.read_bytes()[:-1], b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="It is damaged"):
            resumed(cut)
