"""What seeded runs give is what they gave when seeded_runs.json was recorded.

Later speed-ups and better defaults remain possible; silent changes do not. Whoever changes what a seed gives on purpose
records it anew, all of it or the runs that are meant to change, and says why in the change:

    python tests/integration/seeded_runs.py record tests/integration/seeded_runs.json [NAME …]

Floats are compared loosely enough for another machine's rounding. To know that nothing at all has changed on this one,
record before, and afterwards `compare`. The runs have a process of their own: their numbers depend on how many devices
JAX has, which is settled when it starts.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import seeded_runs
from seeded_runs import RUNS

pytestmark = pytest.mark.simulation

KEPT = json.loads(Path(__file__).with_name("seeded_runs.json").read_text(encoding="utf-8"))
RELATIVE = 1e-4
OF_THE_LARGEST = 1e-5
"""How far apart two entries may be, as a share of their value and of the array's largest."""


@pytest.fixture(scope="module")
def found(request, tmp_path_factory):
    """The summaries of all runs that were asked for, and what the process said."""
    chosen = [getattr(item, "callspec", None) for item in request.session.items if item.path == Path(__file__)]
    names = [spec.params["name"] for spec in chosen if spec is not None and "name" in spec.params]
    path = tmp_path_factory.mktemp("seeded") / "found.json"
    quick = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "true"}  # most of the time goes into compiling
    command = [sys.executable, seeded_runs.__file__, "record", str(path), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=quick, check=False)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}, done.stdout + done.stderr


def off(expected, got):
    """Words for what is not as it was in the summary of one array; none if all is."""
    if any(expected[name] != got[name] for name in ("dtype", "shape")):
        return f"was {expected['dtype']} {expected['shape']}, is {got['dtype']} {got['shape']}"
    if expected["dtype"][1] != "f":
        return "" if expected["sha256"] == got["sha256"] else "differs"
    lists = [note.get("values", note.get("entries")) for note in (expected, got)]
    sizes = [abs(one) for one in (*lists[0], expected.get("least", 0), expected.get("most", 0)) if one == float(one)]
    wide = OF_THE_LARGEST * max((size for size in sizes if math.isfinite(size)), default=0)
    pairs = [(a, b, RELATIVE * abs(float(a)) + wide) for a, b in zip(*lists, strict=True)]
    if "sum" in expected:
        for kind in ("finite", "nan", "inf"):
            if expected[kind] != got[kind]:
                return f"had {expected[kind]} entries that are {kind}, has {got[kind]}"
        squares = expected["squares"]
        # |Σx| may be small by chance: it moves by no more than Σ|x| does, which is at most √(n Σx²).
        pairs.append((expected["sum"], got["sum"], RELATIVE * math.sqrt(expected["finite"] * squares)))
        pairs.append((squares, got["squares"], 2 * RELATIVE * squares))
        pairs += [(expected[end], got[end], RELATIVE * abs(float(expected[end])) + wide) for end in ("least", "most")]
    # What is not finite is a word, and the same or not.
    apart = [(a, b) for a, b, room in pairs if a != b and (str in (type(a), type(b)) or abs(a - b) > room)]
    return "; ".join(f"was {a}, is {b}" for a, b in apart[:3])


def test_every_run_is_recorded():
    assert KEPT.keys() == RUNS.keys()


@pytest.mark.parametrize("name", RUNS)
def test_a_seed_gives_what_it_gave(name, found):
    runs, said = found
    assert name in runs, said
    expected, got = KEPT[name], runs[name]
    assert got.keys() == expected.keys()
    changed = {key: words for key in expected if (words := off(expected[key], got[key]))}
    assert not changed


def test_a_change_is_noticed():
    """Rounding is let through; a change of a thousandth, of a type or of an infinity is not."""
    rng = np.random.default_rng(0)
    for size in (5, 500):
        values = rng.normal(size=size)
        values[1] = math.inf
        one = seeded_runs.summary(values)
        assert off(one, json.loads(json.dumps(one))) == ""
        assert off(one, seeded_runs.summary(values * (1 + 1e-7))) == ""
        assert off(one, seeded_runs.summary(values * (1 + 1e-3)))
        assert off(one, seeded_runs.summary(values.astype(np.float32)))
        for other in (math.nan, 0.0, -math.inf):
            assert off(one, seeded_runs.summary(np.where(np.isinf(values), other, values)))
        whole = np.arange(size)
        assert off(seeded_runs.summary(whole), seeded_runs.summary(np.where(whole == 3, 4, whole)))
