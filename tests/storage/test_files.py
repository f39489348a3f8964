"""Bytes on a disk: unpredictable names beside, synced before they are relied on, wiped before they are unlinked."""

import os
import stat

import pytest

from bayesdp import InputError
from bayesdp.storage import files


def test_a_file_in_the_way_of_the_temporary_one_is_not_followed(tmp_path, monkeypatch):
    """Who guesses the name could have a link there: it is not written through."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "0" * 16)
    target = tmp_path / "elsewhere"
    (tmp_path / f".a.bin.{'0' * 16}.part").symlink_to(target)
    with pytest.raises(InputError, match="to be writable"):
        files.replace(tmp_path / "a.bin", b"secret")
    assert not target.exists()


def test_names_beside_differ_each_time(tmp_path, monkeypatch):
    seen = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *how, **more: (seen.append(str(path)), real(path, *how, **more))[1])
    for _ in range(2):
        files.replace(tmp_path / "a.bin", b"x")
    parts = [name for name in seen if name.endswith(files.PART)]
    assert len(parts) == len(set(parts)) == 2


def test_content_is_synced_before_the_name_and_the_name_before_it_returns(tmp_path, monkeypatch):
    done = []
    real_sync, real_rename = os.fsync, os.rename

    def sync(handle):
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real_sync(handle)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr("pathlib.Path.replace", lambda one, other: (done.append("name"), real_rename(one, other)))
    files.replace(tmp_path / "a.bin", b"x")
    assert done == ["file", "name", "folder"]


def test_files_are_their_owners_unless_said_otherwise(tmp_path):
    before = os.umask(0)
    try:
        assert stat.S_IMODE(files.replace(tmp_path / "a", b"").stat().st_mode) == 0o600
        assert stat.S_IMODE(files.replace(tmp_path / "b", b"", private=False).stat().st_mode) == 0o666
        assert stat.S_IMODE(files.make_folder(tmp_path / "c", private=True).stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_a_secret_is_overwritten_where_it_stands(tmp_path, monkeypatch):
    path = files.replace(tmp_path / "key", b"secret key")
    inode, synced = path.stat().st_ino, []
    real = os.fsync

    def sync(handle):
        if os.fstat(handle).st_ino == inode:
            synced.append(path.read_bytes())
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    files.wipe(path)
    assert not path.exists()
    assert synced[-1] == bytes(10)
    assert all(len(one) == 10 and b"secret" not in one for one in synced)
    files.wipe(path)  # there is none any more


def test_what_interrupted_writes_left_is_swept(tmp_path):
    (tmp_path / f".a.json.{'0f' * 8}.part").touch()
    (tmp_path / ".mine.part").touch()
    files.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".mine.part"]


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    path = files.replace(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InputError, match="No space left on device"):
        files.replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
