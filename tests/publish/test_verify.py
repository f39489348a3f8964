"""A bundle is checked file by file, and its ε against its plan: lies are noticed even with a good manifest."""

import json
from dataclasses import replace

import pytest
from release_samples import PAID, release

from bayesdp.errors import InputError
from bayesdp.publish.bundle import MANIFEST, manifest, texts
from bayesdp.publish.verify import verify


def write(folder, one, **more):
    files = {"model.json": b"{}", "params.npz": b"PK", **texts(one), **more}
    for name, content in {**files, MANIFEST: manifest(files)}.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_true_bundle_passes(tmp_path):
    one = release()
    found = verify(write(tmp_path, one))
    assert found.epsilon == found.recomputed == one.dp.epsilon
    assert found.files == 7
    assert found.remarks == ()
    assert len(found.digest) == 64


def test_a_stated_epsilon_below_the_plans_is_refused(tmp_path):
    one = release()
    lie = replace(one, dp=replace(one.dp, epsilon=0.9 * one.dp.epsilon))
    with pytest.raises(InputError, match="follow from the plan"):
        verify(write(tmp_path, lie))


def test_a_page_that_says_something_else_is_refused(tmp_path):
    one = release()
    write(tmp_path, one, **{"MODEL_CARD.md": texts(one)["MODEL_CARD.md"].replace(b"Privacy", b"Privacy!")})
    with pytest.raises(InputError, match=r"MODEL_CARD\.md of the bundle to follow from release\.json"):
        verify(tmp_path)


def test_another_versions_words_are_not_compared(tmp_path):
    one = release(generator="bayesdp 99")
    write(tmp_path, one, **{"MODEL_CARD.md": b"other words"})
    assert "not compared" in verify(tmp_path).remarks[0]


def test_a_filter_is_said(tmp_path):
    one = release(filtered=True)
    found = verify(write(tmp_path, replace(one, dp=replace(one.dp, epsilon=0.1))))
    assert found.epsilon == 0.1
    assert "H4" in found.remarks[0]


def test_counts_that_are_spoken_of_must_be_there(tmp_path):
    with pytest.raises(InputError, match=r"metrics\.json"):
        verify(write(tmp_path, release(paid=PAID)))


@pytest.mark.parametrize("name", ["../evil", "a/b", "", MANIFEST])
def test_a_manifest_names_files_of_its_folder_only(tmp_path, name):
    write(tmp_path, release())
    found = json.loads((tmp_path / MANIFEST).read_text())
    found["sha256"][name] = "0" * 64
    (tmp_path / MANIFEST).write_text(json.dumps(found))
    with pytest.raises(InputError):
        verify(tmp_path)


def test_files_that_are_missing_or_too_many_are_named(tmp_path):
    write(tmp_path, release())
    (tmp_path / "notes.txt").write_text("more")
    with pytest.raises(InputError, match=r"notes\.txt"):
        verify(tmp_path)
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "params.npz").unlink()
    with pytest.raises(InputError, match=r"params\.npz"):
        verify(tmp_path)
    with pytest.raises(InputError, match=r"manifest\.json"):
        verify(tmp_path / "nowhere")
