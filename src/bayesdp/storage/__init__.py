"""Files of plain values and of arrays: whole or not at all, for their owner; what is damaged is refused in words.

files       replace, folders, wiping: beside and renamed, synced before anybody relies on it
values      strict JSON; a tagged file says its format and version, a checked one its own checksum
arrays      NPZ by name, never pickles, sizes bounded
lock        one process at a time
manifest    one file with the checksum of each file of a folder
noise_key   the key of a run's noise, wiped when training is done
journal     lines that are only ever added, each sealed by a chain of checksums

Trees of arrays, which need JAX, are in `learn.loop.tree_file`.
"""

from bayesdp.storage.arrays import Arrays, packed, read_arrays, read_sealed, unpacked, write_arrays, write_sealed
from bayesdp.storage.files import make_folder, replace
from bayesdp.storage.values import read_json, read_tagged, reading, untagged, write_json, write_tagged

__all__ = [
    "Arrays",
    "make_folder",
    "packed",
    "read_arrays",
    "read_json",
    "read_sealed",
    "read_tagged",
    "reading",
    "replace",
    "unpacked",
    "untagged",
    "write_arrays",
    "write_json",
    "write_sealed",
    "write_tagged",
]
