"""No file of a folder is believed for itself alone."""

import hashlib
import json

import pytest

from bayesdp import InputError
from bayesdp.storage import manifest


@pytest.fixture
def folder(tmp_path):
    for name in ("a.json", "b.npz"):
        (tmp_path / name).write_text(name)
    manifest.seal(tmp_path, ["a.json", "b.npz"])
    return tmp_path


def test_files_as_they_were_written_pass(folder):
    assert manifest.check(folder / "a.json") == folder / "a.json"
    assert manifest.listed(folder) == ("a.json", "b.npz")


def test_what_was_changed_put_in_or_lost_is_named(folder):
    (folder / "a.json").write_text("A.json")
    with pytest.raises(InputError, match=r"a\.json' to have the checksum that checksums\.json says"):
        manifest.check(folder / "a.json")
    (folder / "c.json").touch()
    with pytest.raises(InputError, match=r"c\.json' to be listed in checksums\.json"):
        manifest.check(folder / "c.json")
    (folder / "b.npz").unlink()
    with pytest.raises(InputError, match="to be a readable file"):
        manifest.check(folder / "b.npz")
    (folder / manifest.NAME).unlink()
    with pytest.raises(InputError, match=r"to have a checksums\.json, got none"):
        manifest.check(folder / "a.json")


def test_sealing_one_file_keeps_what_is_known_of_the_others(folder):
    (folder / "a.json").write_text("new")
    (folder / "b.npz").write_text("changed by accident")
    manifest.seal(folder, ["a.json"])
    assert manifest.check(folder / "a.json")
    with pytest.raises(InputError, match="to have the checksum"):
        manifest.check(folder / "b.npz")


def test_every_byte_of_the_manifest_counts(folder):
    path = folder / manifest.NAME
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        if whole[place : place + 1].isspace():
            continue
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError):
            manifest.check(folder / "a.json")


def test_a_published_bundle_has_checksums_of_its_own(tmp_path):
    (tmp_path / "model.json").write_text("{}")
    digest = hashlib.sha256(b"{}").hexdigest()
    note = {"format": "bayesdp/bundle", "version": 1, "sha256": {"model.json": digest}}
    (tmp_path / "manifest.json").write_text(json.dumps(note))
    assert manifest.check(tmp_path / "model.json")
    (tmp_path / "model.json").write_text("[]")
    with pytest.raises(InputError, match="to have the checksum"):
        manifest.check(tmp_path / "model.json")
