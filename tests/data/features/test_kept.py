"""Features that were computed once: by content, for their owner alone, and never in the way."""

import numpy as np
import pytest

from bayesdp.data.features import kept as module
from bayesdp.data.features.kept import kept


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "_LEAST", 1)
    return tmp_path / "bayesdp" / "features"


class Doubled:
    def __init__(self):
        self.calls = 0

    def __call__(self, images):
        self.calls += 1
        return 2 * images


def test_what_was_computed_once_is_read_again(cache):
    images, compute = np.arange(12, dtype=np.float32).reshape(3, 4), Doubled()
    for _ in range(2):
        np.testing.assert_array_equal(kept("twice", images, compute), 2 * images)
    assert compute.calls == 1
    (file,) = cache.glob("*.npy")
    assert file.stat().st_mode & 0o077 == 0
    assert cache.stat().st_mode & 0o077 == 0


def test_other_pixels_or_another_transform_are_not_mixed_up(cache):
    images, compute = np.ones((3, 4), np.float32), Doubled()
    kept("twice", images, compute)
    kept("twice", images + 1, compute)
    kept("otherwise", images, compute)
    kept("twice", images.reshape(4, 3), compute)
    assert compute.calls == 4


def test_a_damaged_file_is_made_anew(cache):
    images, compute = np.ones((3, 4), np.float32), Doubled()
    kept("twice", images, compute)
    (file,) = cache.glob("*.npy")
    file.write_bytes(b"half a file")
    np.testing.assert_array_equal(kept("twice", images, compute), 2 * images)
    assert compute.calls == 2


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    images = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(kept("twice", images, Doubled()), 2 * images)
