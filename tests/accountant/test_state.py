"""On disk and back: the same numbers or a clear refusal, never half a state."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bayesdp.accountant import state as states
from bayesdp.errors import InputError

LARGE = np.arange(2.0 * states.INLINE).reshape(2, -1) / 3
KEYS = {"config", "tally"}


def a_state(tally=LARGE):
    return {
        "kind": "test",
        "version": 1,
        "config": {"orders": np.array([1.1, 2.0]), "p": "3n", "cap": None},
        "tally": {"0": tally, "history": [[1.0, 0.5, 3]]},
    }


@pytest.mark.parametrize(
    "tally", [LARGE, np.array([0.1, np.inf]), np.array([[1 / 3, 1e-308, 5e-324]]), np.empty((0, 2)), np.array(2.5)]
)
def test_round_trip(equal, tmp_path, tally):
    path = tmp_path / "deep" / "a.json"
    states.write(path, a_state(tally))
    assert equal(states.read(path), a_state(tally))


@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=4), elements=st.floats(0, allow_nan=False)))
def test_every_float_survives(tmp_path_factory, tally):
    path = tmp_path_factory.mktemp("s") / "a.json"
    states.write(path, a_state(tally))
    np.testing.assert_array_equal(states.read(path)["tally"]["0"], tally)


def test_small_states_are_one_plain_json_file(tmp_path):
    states.write(tmp_path / "a.json", a_state(np.ones(3)))
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert json.loads((tmp_path / "a.json").read_text())["tally"]["0"] == {"values": [1.0, 1.0, 1.0], "shape": [3]}
    states.write(tmp_path / "b.json", a_state())
    assert {p.name for p in tmp_path.iterdir()} == {"a.json", "b.json", "b.npz"}


def test_names_that_differ_do_not_share_a_file(equal, tmp_path):
    names = ("run.1", "run.2", "run.json", "only.npz")
    for i, name in enumerate(names):
        states.write(tmp_path / name, a_state(LARGE + i))
    for i, name in enumerate(names):
        assert equal(states.read(tmp_path / name), a_state(LARGE + i))


def test_what_cannot_be_read_is_refused(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(InputError, match=r"Expected path to be a readable JSON file, got path='.*a\.json'"):
        states.read(path)
    for text in ("", "{", "not json", '"\\ud800', "\x00"):
        path.write_text(text, encoding="utf-8", errors="replace")
        with pytest.raises(InputError, match="readable JSON"):
            states.read(path)
    path.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(InputError, match="readable JSON"):
        states.read(path)
    path.write_text("[1, 2]")
    with pytest.raises(InputError, match="JSON object"):
        states.read(path)
    with pytest.raises(InputError, match="readable JSON"):
        states.read(tmp_path)


def test_every_truncation_is_refused(equal, tmp_path):
    path = tmp_path / "a.json"
    states.write(path, a_state())
    for file in (path, tmp_path / "a.npz"):
        whole = file.read_bytes()
        for keep in (0, 1, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:keep])
            with pytest.raises(InputError):
                states.read(path)
        file.write_bytes(whole)
    assert equal(states.read(path), a_state())


def test_a_missing_tampered_or_foreign_npz_is_refused(tmp_path):
    path, other = tmp_path / "a.json", tmp_path / "b.json"
    states.write(path, a_state())
    states.write(other, a_state(LARGE + 1))
    beside = tmp_path / "a.npz"
    beside.write_bytes((tmp_path / "b.npz").read_bytes())
    with pytest.raises(InputError, match=r"a\.npz to be the file that a\.json was saved with"):
        states.read(path)
    beside.unlink()
    with pytest.raises(InputError, match="to hold the arrays of the state"):
        states.read(path)


@pytest.mark.parametrize(
    "tally",
    [
        {"array": "nowhere"},
        {"array": ["list"]},
        {"values": [1, 2], "shape": [3]},
        {"values": [1, 2], "shape": "x"},
        {"values": ["a"], "shape": [1]},
        {"values": [[1], [2, 3]], "shape": [2, 2]},
        {"values": [], "shape": [7]},
    ],
)
def test_arrays_that_are_none_are_refused(tmp_path, tally):
    path = tmp_path / "a.json"
    states.write(path, a_state())
    plain = json.loads(path.read_text())
    plain["tally"]["0"] = tally
    path.write_text(json.dumps(plain))
    with pytest.raises(InputError):
        states.read(path)


def test_kind_version_and_keys_are_checked():
    good = a_state()
    states.check(good, "test", 1, KEYS)
    with pytest.raises(InputError, match=r"Expected kind of the state to be 'other', got 'test'"):
        states.check(good, "other", 1, KEYS)
    with pytest.raises(InputError, match=r"Expected version of the state to be 2, got 1. Another release"):
        states.check(good, "test", 2, KEYS)
    for wrong in ({**good, "more": 1}, {k: v for k, v in good.items() if k != "tally"}):
        with pytest.raises(InputError, match="to have the keys"):
            states.check(wrong, "test", 1, KEYS)
    for nothing in (None, [], 3, {}):
        with pytest.raises(InputError, match="kind of the state"):
            states.check(nothing, "test", 1, KEYS)


def test_a_tally_has_its_shape_and_nothing_negative():
    given_array = np.ones((2, 2))
    taken = states.shaped(given_array, (2, 2))
    given_array[:] = 5
    assert taken.max() == 1
    for bad in (np.ones(4), -np.ones((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(InputError, match="state tally"):
            states.shaped(bad, (2, 2))


def crash_at(monkeypatch, count):
    """Let `count` renames pass, then fail."""
    rename, seen = Path.replace, []

    def replace(self, target):
        seen.append(target)
        if len(seen) > count:
            raise OSError("power cut")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)


@pytest.mark.parametrize("passed", [0, 1])
def test_a_crash_leaves_no_half_state(equal, tmp_path, monkeypatch, passed):
    path = tmp_path / "a.json"
    with monkeypatch.context() as patch:
        crash_at(patch, passed)
        with pytest.raises(InputError, match="power cut"):
            states.write(path, a_state())
    assert not path.exists()
    with pytest.raises(InputError):
        states.read(path)
    states.write(path, a_state())
    assert equal(states.read(path), a_state())


@pytest.mark.parametrize("tally", [np.ones(3), LARGE])
def test_a_crash_while_overwriting_gives_the_old_state_or_a_refusal(equal, tmp_path, monkeypatch, tally):
    path = tmp_path / "a.json"
    states.write(path, a_state(tally))
    for passed in range(2 if tally is LARGE else 1):
        with monkeypatch.context() as patch:
            crash_at(patch, passed)
            with pytest.raises(InputError, match="power cut"):
                states.write(path, a_state(tally * 2))
        if passed == 0:
            assert equal(states.read(path), a_state(tally))
        else:
            with pytest.raises(InputError, match="digest differs"):
                states.read(path)
