"""The key of the noise is in one file on the disk and nowhere else, and is gone when training is done."""

import json
import os
import stat

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.storage import noise_key
from bayesdp.storage.files import wipe

X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
PLAN = bd.SGD(sampling_rate=0.5, steps=4, noise_multiplier=2.0, engine="rdp", report_every=2, optimizer=optax.sgd(0.5))


def loss(weights, record):
    return jax.nn.softplus(-(record @ weights))


def test_it_comes_back_for_its_owner_by_its_name(tmp_path):
    keys = np.array([[1, 2**32 - 1]], np.uint32)
    path = RunFolder(tmp_path).key
    name = noise_key.write(path, keys)
    np.testing.assert_array_equal(noise_key.read(path, name), keys)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="that of another run"):
        noise_key.read(path, "other")
    path.write_text(path.read_text().replace("4294967295", "4294967294"))
    with pytest.raises(InputError, match="another checksum"):
        noise_key.read(path, name)
    wipe(path)
    assert not path.exists()
    with pytest.raises(InputError, match="to have the key of its noise"):
        noise_key.read(path, name)


def test_no_other_file_ever_holds_it_and_at_the_end_none_does(tmp_path, monkeypatch):
    """Every byte that is written, in every file, as text and as words: the key is in the key's own file alone."""
    written, real, folder = [], os.write, RunFolder(tmp_path)
    key = []

    def record(handle, content):
        written.append((os.readlink(f"/proc/self/fd/{handle}"), bytes(content)))
        return real(handle, content)

    def look(so_far):
        key[:] = json.loads(folder.key.read_text())["keys"][0]

    monkeypatch.setattr(os, "write", record)
    PLAN.fit(loss, jnp.zeros(2), X, folder=tmp_path, progress=look).save(tmp_path)
    assert len(key) == 2
    words = [str(key[0]).encode(), np.array(key, np.uint32).tobytes()]
    assert any(words[0] in content for _, content in written)
    held = {os.path.basename(path) for path, content in written if any(word in content for word in words)}
    assert all(name.startswith(f".{folder.key.name}.") for name in held), held  # beside, and renamed
    assert not folder.key.exists()
