"""Files are written whole or not at all, for whom they should be, and what cannot be read is refused in words."""

import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from bayesdp import InputError, storage


def test_nothing_but_the_whole_file_is_ever_there(tmp_path, monkeypatch):
    path = storage.replace(tmp_path / "a.bin", b"old")

    def full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", full)
        with pytest.raises(InputError, match=r"to be writable.*no space left"):
            storage.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]
    with pytest.raises(InputError, match="to be writable"):
        storage.replace(tmp_path / "nowhere" / "a.bin", b"new")


@pytest.mark.parametrize("private", [True, False])
def test_private_files_are_their_owners(tmp_path, private):
    before = os.umask(0o022)
    try:
        (tmp_path / "a.json").write_text("readable by all")
        for path in (tmp_path / "a.json", tmp_path / "b.json"):
            storage.write_json(path, {}, private=private)
            assert stat.S_IMODE(path.stat().st_mode) == (0o600 if private else 0o644)
    finally:
        os.umask(before)


def test_what_a_crash_left_does_not_open_a_private_file(tmp_path):
    beside = tmp_path / f".a.json.{os.getpid()}"
    beside.write_text("{}")
    beside.chmod(0o666)
    storage.write_json(tmp_path / "a.json", {}, private=True)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600


def test_tags_tell_files_apart(tmp_path):
    path = storage.write_tagged(tmp_path / "a.json", "bayesdp/test", 2, {"x": [1, 2]})
    assert json.loads(path.read_text()) == {"format": "bayesdp/test", "version": 2, "x": [1, 2]}
    assert storage.read_tagged(path, "bayesdp/test", 2) == {"x": [1, 2]}
    with pytest.raises(InputError, match=r"Expected format of .*a\.json to be 'bayesdp/other', got 'bayesdp/test'"):
        storage.read_tagged(path, "bayesdp/other", 2)
    with pytest.raises(InputError, match=r"Expected version of .*a\.json to be 1, got 2. Another release"):
        storage.read_tagged(path, "bayesdp/test", 1)
    for text, got in (("[]", "'list'"), ("{}", "None")):
        path.write_text(text)
        with pytest.raises(InputError, match=f"got {got}"):
            storage.read_tagged(path, "bayesdp/test", 2)
    with pytest.raises(ValueError, match="JSON"):
        storage.write_json(path, float("nan"))


def test_arrays_come_back_as_they_were_and_pickles_never(tmp_path):
    arrays = {"a": np.arange(3), "b": np.array(["x", "yz"]), "c": np.float32(1.5)}
    path = storage.write_arrays(tmp_path / "a.npz", arrays)
    found = storage.read_arrays(path)
    for name, value in arrays.items():
        assert found[name].dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(found[name], value)
    np.savez(path, a=np.array([{}], dtype=object))
    for content in (path.read_bytes(), b"PK\x03\x04", b"", b"no archive"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="to be a readable NPZ file"):
            storage.read_arrays(path)


def test_malformed_content_is_one_error():
    for problem in (KeyError("x"), TypeError("x"), ValueError("x"), AttributeError("x")):
        with pytest.raises(InputError, match=r"Expected a\.json to be well-formed"), storage.reading("a.json"):
            raise problem
    with pytest.raises(InputError, match=r"^as it is$"), storage.reading("a.json"):
        raise InputError("as it is")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="Expected out to be a folder that can be made"):
        storage.make_folder(tmp_path / "file" / "below", "out")
    assert storage.make_folder(tmp_path / "a" / "b").is_dir()


def test_it_does_not_load_jax():
    code = "import sys, bayesdp.storage; print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
