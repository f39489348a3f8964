"""NPZ files: damaged and crafted ones are refused in words, whatever is in them; sealed ones notice every bit."""

import io
import random
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import InputError, storage
from bayesdp.storage import arrays


def npy(header):
    """A .npy file with this text for a header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zipped(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


GOOD = storage.packed({"a": np.arange(6.0), "b": np.array(["x", "yz"])})
CRAFTED = [
    b"",
    b"PK\x05\x06" + bytes(18),  # an archive of nothing is no error of its own: see below
    GOOD[:-1],
    GOOD[:100],
    zipped(a_npy=b""),
    zipped(a_npy=b"\x93NUMPY\x09\x00"),
    zipped(a_npy=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}")),
    zipped(a_npy=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9999,)}")),
    zipped(a_npy=npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}")),
    zipped(a_npy=npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}")),
    zipped(a_npy=npy("__import__('os').system('true')")),
    zipped(a_npy=npy("(" * 500)),
    zipped(a_txt=b"no array"),
    np.lib.format.magic(1, 0) + b"junk",
    b"\x80\x04K\x01.",  # a pickle
]


@pytest.mark.parametrize("content", [one for one in CRAFTED if one != CRAFTED[1]], ids=range(len(CRAFTED) - 1))
def test_crafted_files_are_one_error(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="to be a readable NPZ file"):
        storage.read_arrays(path)


def test_an_archive_that_claims_to_be_huge_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MOST_BYTES", 1000)
    path = tmp_path / "a.npz"
    path.write_bytes(storage.packed({"a": np.zeros(10_000)}, compressed=True))
    with pytest.raises(InputError, match="unpacks to more than 1,000 bytes"):
        storage.read_arrays(path)


@given(st.binary(max_size=300))
def test_any_bytes_are_arrays_or_one_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "a.npz"
    path.write_bytes(content)
    with pytest.raises(InputError):
        storage.read_arrays(path)


def test_a_sealed_file_notices_every_bit_and_every_cut(tmp_path):
    path = storage.write_sealed(tmp_path / "a.npz", {"a": np.arange(6.0)})
    whole = path.read_bytes()
    np.testing.assert_array_equal(storage.read_sealed(path)["a"], np.arange(6.0))
    flips = random.Random(0).sample(range(8 * len(whole)), 300)

    def damaged(place, bit):
        return whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]

    for content in (*(damaged(*divmod(flip, 8)) for flip in flips), b"", whole[:-1], whole[1:], whole + b"\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="its checksum is another"):
            storage.read_sealed(path)
