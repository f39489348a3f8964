"""Arrays read a block at a time."""

from __future__ import annotations

import numpy as np
import pytest

from bayesdp.storage import array_blocks
from bayesdp.storage.array_blocks import open_arrays

VALUES = np.arange(60, dtype=np.float32).reshape(20, 3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["a.npy", "a.npz", "packed.npz"])
def test_blocks_are_the_array(tmp_path, monkeypatch, name, order):
    monkeypatch.setattr(array_blocks, "_BLOCK", 40)  # three rows at a time
    values, path = np.asarray(VALUES, order=order), tmp_path / name
    if name == "a.npy":
        np.save(path, values)
    else:
        (np.savez_compressed if name == "packed.npz" else np.savez)(path, array=values, other=np.ones(2))
    with open_arrays(path) as found:
        assert found.header("array") == ((20, 3), np.float32)
        blocks = list(found.blocks("array"))
    assert len(blocks) == (1 if order == "F" else 7)
    np.testing.assert_array_equal(np.concatenate(blocks), VALUES)


def test_files_that_end_early_and_pickles_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-5])
    np.save(tmp_path / "object.npy", np.array([{}]), allow_pickle=True)
    for name in ("cut.npy", "object.npy"):
        with pytest.raises(ValueError, match=r"early|pickled"), open_arrays(tmp_path / name) as found:
            list(found.blocks("array"))
