"""Whatever lies in a file, its reader answers or refuses it in one sentence: no traceback, no hang, nothing believed.

Valid files are cut, doubled, overwritten and spliced; a table may be anything.
"""

import contextlib
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesdp as bd
from bayesdp import InputError, storage
from bayesdp.data import read_features, recipe_from_dict
from bayesdp.data.distances_file import Source
from bayesdp.data.distances_file import read as read_distances
from bayesdp.data.own import Options, load_own
from bayesdp.learn.loop import checkpoint
from bayesdp.learn.loop.iterates import Iterates
from bayesdp.report import read as read_report
from bayesdp.report.records.table import RecordTable
from bayesdp.report.sample import sample
from bayesdp.storage.manifest import seal


def array_file():
    content = io.BytesIO()
    np.save(content, np.arange(12, dtype=np.float32).reshape(3, 4))
    return content.getvalue()


TABLE = b"a,b,rich\n" + b"".join(b"%d,%d,%s\n" % (i, i * i, b"yes" if i % 3 else b"no") for i in range(12))
NPZ = storage.packed({"x": np.arange(24.0).reshape(12, 2), "y": np.arange(12) % 2})
RECORDS = RecordTable(title="t", ids=(1, 2, 3), epsilon=(0.1, 0.2, 0.3), delta=1e-5, direction="remove")


def features(path):
    recipe = {"kind": "table", "columns": []}
    return read_features(path, recipe_from_dict(recipe))


def iterates(path):
    seal(path.parent, [path.name])
    return list(Iterates(path.parent, 1, 3).read(np.zeros(4, np.float32)))


READERS = {
    "table.csv": (TABLE, lambda path: load_own(path, Options(target="rich", draw=0))),
    "arrays.npz": (NPZ, lambda path: load_own(path, Options(draw=0))),
    "distances.csv": (b"1,2\n3,4\n", lambda path: list(read_distances(Source("file", path)))),
    "distances.npy": (array_file(), lambda path: list(read_distances(Source("file", path)))),
    "accountants.json": (None, bd.WorstCaseAccountant.load),
    "report.json": (None, read_report),
    "records.csv": (None, RecordTable.read),
    "records.json": (None, RecordTable.read),
    "checkpoint.npz": (NPZ, lambda path: checkpoint.read(path.parent)),
    "iterates.npy": (array_file(), iterates),
    "model.json": (b'{"format": "bayesdp/model", "version": 1}', features),
}


def good(name, folder):
    """A valid file of this name."""
    path, content = folder / name, READERS[name][0]
    if content is not None:
        path.write_bytes(content)
    elif name == "accountants.json":
        account = bd.WorstCaseAccountant()
        account.step(noise_multiplier=1.0, sampling_rate=0.1, steps=5)
        account.save(path)
    elif name == "report.json":
        from bayesdp.report import write

        write(sample(people=200, steps=20, evaluations=2), path)
    else:
        RECORDS.write(path)
    return path


def damage(draw, content):
    """Cut, overwrite, splice or double; or something else altogether."""
    kind = draw.draw(st.sampled_from(["any", "cut", "bytes", "splice", "word"]))
    place = draw.draw(st.integers(0, len(content)))
    if kind == "any":
        return draw.draw(st.binary(max_size=200))
    if kind == "cut":
        return content[:place]
    if kind == "bytes":
        return content[:place] + draw.draw(st.binary(min_size=1, max_size=8)) + content[place + 4 :]
    if kind == "splice":
        return content[:place] + content[draw.draw(st.integers(0, len(content))) :]
    words = [b"NaN", b"1e999", b"-1", b"null", b"[]", b'""', b"99999999999999999999", b"\x00", b"=1+1", b'"', b"\n"]
    return content[:place] + draw.draw(st.sampled_from(words)) + content[place:]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_answers_or_refuses(name, tmp_path):
    path = good(name, tmp_path)
    whole = path.read_bytes()

    @settings(max_examples=60)
    @given(st.data())
    def fuzz(draw):
        path.write_bytes(damage(draw, whole))
        with contextlib.suppress(InputError):
            READERS[name][1](path)

    fuzz()


@given(st.recursive(st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_any_json_is_a_report_or_refused(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("any") / "report.json"
    path.write_text(json.dumps({"format": "bayesdp/report", "version": 4, "report": value}))
    with pytest.raises(InputError):
        read_report(path)
