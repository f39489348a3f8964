"""Strict JSON, and files that carry their own checksum."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import InputError, storage
from bayesdp.storage import values


@pytest.mark.parametrize("text", ['{"a": NaN}', "[Infinity]", '{"a": 1, "a": 2}', "[" * 100_000, "", "\xff", '"\ud800'])
def test_what_is_no_strict_json_is_one_error(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1", errors="replace"))
    with pytest.raises(InputError, match="to be a readable JSON file"):
        storage.read_json(path)


def test_a_changed_value_is_noticed_and_spaces_are_not(tmp_path):
    path = storage.write_tagged(tmp_path / "a.json", "bayesdp/test", 1, {"z": 1.5, "names": ["b"]}, checked=True)
    assert storage.read_tagged(path, "bayesdp/test", 1, checked=True) == {"z": 1.5, "names": ["b"]}
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found))
    assert storage.read_tagged(path, "bayesdp/test", 1, checked=True)["z"] == 1.5
    for name, other in (("z", 1.25), ("names", ["c"]), ("sha256", "0" * 64)):
        path.write_text(json.dumps(found | {name: other}))
        with pytest.raises(InputError, match="another checksum"):
            storage.read_tagged(path, "bayesdp/test", 1, checked=True)


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_one_spelling_comes_back(value):
    assert values.parsed(values.canonical(value)) == value
