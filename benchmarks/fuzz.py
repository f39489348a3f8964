"""Throw 10,000 damaged files at every reader and as many lines at the command line: `make fuzz`.

Each must be answered or refused in one sentence (`InputError`; exit code 0 to 2, or 130 never): no traceback, no hang
(a second each), and where a file carries its own checksum no answer that differs from the whole file's.

    python benchmarks/fuzz.py [--inputs 10000] [--seed 0] [--readers a,b] [--atheris READER]

With --atheris one reader is fuzzed by coverage instead, where that package is installed, until it is stopped.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bayesdp as bd
from bayesdp import InputError, storage
from bayesdp.data import read_features, recipe_from_dict
from bayesdp.data.distances_file import Source
from bayesdp.data.distances_file import read as read_distances
from bayesdp.data.own import Options, load_own
from bayesdp.data.preparation.declared import typed
from bayesdp.learn.loop import checkpoint
from bayesdp.learn.loop.iterates import Iterates
from bayesdp.ledger import Charge, Ledger
from bayesdp.report import read as read_report
from bayesdp.report import write as write_report
from bayesdp.report.records.table import RecordTable
from bayesdp.report.sample import sample
from bayesdp.storage.manifest import seal

SECONDS = 5
"""An input that takes longer hangs. The machine may be busy."""

WORDS = (
    b"NaN",
    b"1e999",
    b"-1",
    b"null",
    b"[]",
    b'""',
    b"9" * 20,
    b"\x00",
    b"=1+1",
    b'"',
    b"\n",
    b"\xff\xfe",
    b",",
    b"{",
)
TABLE = b"a,b,rich\n" + b"".join(b"%d,%d,%s\n" % (i, i * i, b"yes" if i % 3 else b"no") for i in range(12))
RECORDS = RecordTable(title="t", ids=(1, 2, 3), epsilon=(0.1, 0.2, 0.3), delta=1e-5, direction=("remove",) * 3)


class Reader(NamedTuple):
    """How to make a good file, how to read one, and whether it carries its own checksum."""

    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    checked: bool = False


def _array(path: Path) -> None:
    np.save(path, np.arange(12, dtype=np.float32).reshape(3, 4))


def _arrays(path: Path) -> None:
    path.write_bytes(storage.packed({"x": np.arange(24.0).reshape(12, 2), "y": np.arange(12) % 2}))


def _tally(path: Path) -> None:
    account = bd.WorstCaseAccountant()
    account.step(noise_multiplier=1.0, sampling_rate=0.1, steps=5)
    account.save(path)


def _ledger(path: Path) -> None:
    book = Ledger.open(path)
    for name in "ab":
        book.charge(Charge(run=name, steps=((4.0, 0.5, 6),)))


def _spent(path: Path) -> Any:
    book = Ledger.existing(path)
    return [one.to_dict() for one in book.charges]


def _iterates(path: Path) -> Any:
    seal(path.parent, [path.name])
    return list(Iterates(path.parent, 1, 3).read(np.zeros(4, np.float32)))


def _text(content: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(content)


READERS = {
    "table.csv": Reader(
        lambda path: path.write_bytes(TABLE), lambda path: load_own(path, Options(target="rich", draw=0))
    ),
    "arrays.npz": Reader(_arrays, lambda path: load_own(path, Options(draw=0))),
    "distances.csv": Reader(_text("1,2\n3,4\n"), lambda path: list(read_distances(Source("file", path)))),
    "distances.npy": Reader(_array, lambda path: list(read_distances(Source("file", path)))),
    "accountants.json": Reader(_tally, bd.WorstCaseAccountant.load),
    "report.json": Reader(lambda path: write_report(sample(people=200, steps=20, evaluations=2), path), read_report),
    "records.csv": Reader(RECORDS.write, RecordTable.read),
    "records.json": Reader(RECORDS.write, RecordTable.read),
    "checkpoint.npz": Reader(_arrays, lambda path: checkpoint.read(path.parent)),
    "iterates.npy": Reader(_array, _iterates),
    "params.npz": Reader(_arrays, storage.read_arrays),
    "model.json": Reader(
        _text('{"format": "bayesdp/model", "version": 1}'),
        lambda path: read_features(path, recipe_from_dict({"kind": "table", "columns": []})),
    ),
    "people.ledger": Reader(_ledger, _spent, checked=True),
    "unlearning.json": Reader(
        lambda path: storage.write_tagged(path, "bayesdp/unlearning", 2, {"asked": 3, "budget": 0.1}, checked=True),
        lambda path: storage.read_tagged(path, "bayesdp/unlearning", 2, checked=True),
        checked=True,
    ),
    "bounds.csv": Reader(_text("column,low,high\nage,0,120\nwage,0,1e6\n"), lambda path: typed((), (), path)),
}

COMMANDS = {
    "epsilon": ("--noise-multiplier", "--sampling-rate", "--steps", "--delta", "--engine", "--adjacency", "--json"),
    "delta": ("--noise-multiplier", "--sampling-rate", "--steps", "--epsilon", "--engine", "--json"),
    "sgld-step": ("--epsilon", "--delta", "--steps", "--sampling-rate", "--records", "--json"),
    "check": ("--target", "--drop", "--missing", "--person", "table.csv"),
    "ledger": ("show", "verify", "export", "people.ledger", "--json", "--delta"),
    "report": ("run", "table.csv", "--json"),
    "verify": ("run", "table.csv", "--json"),
    "account": ("records.csv", "distances.csv", "--delta", "--noise-std", "--json"),
}
"""Commands that answer at once, and words that they know."""

ARGUMENTS = (
    "1",
    "0",
    "-1",
    "1e-5",
    "0.5",
    "1e999",
    "nan",
    "",
    "rdp",
    "rich",
    "a",
    "--",
    "9" * 30,
    "\u0000",
    "=1",
    "é",
    "1,2",
    "../..",
)


def damaged(draw: random.Random, content: bytes) -> bytes:
    """Cut, overwritten, spliced, with a word put in; or something else altogether."""
    place, kind = draw.randint(0, len(content)), draw.randrange(6)
    if kind == 0:
        return draw.randbytes(draw.randint(0, 200))
    if kind == 1:
        return content[:place]
    if kind == 2:
        return content[:place] + draw.randbytes(draw.randint(1, 8)) + content[place + 4 :]
    if kind == 3:
        return content[:place] + content[draw.randint(0, len(content)) :]
    if kind == 4 and content:
        at = min(place, len(content) - 1)
        return content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
    return content[:place] + draw.choice(WORDS) + content[place:]


@contextlib.contextmanager
def bounded() -> Any:
    """Whatever takes longer than `SECONDS` of its own time is a hang."""

    def late(*_: Any) -> None:
        raise TimeoutError("hangs")

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def fuzzed(name: str, folder: Path, inputs: int, seed: int) -> collections.Counter[str]:
    """How many inputs of a reader were answered and refused. Anything else is raised."""
    reader, path, draw = READERS[name], folder / name, random.Random(seed)
    reader.make(path)
    whole, counts = path.read_bytes(), collections.Counter[str]()
    before = reader.read(path) if reader.checked else None
    for _ in range(inputs):
        content = damaged(draw, whole)
        path.write_bytes(content)
        try:
            with bounded():
                found = reader.read(path)
        except InputError:
            counts["refused"] += 1
            continue
        except BaseException:
            raise AssertionError(f"{name} with {content!r}") from None if sys.flags.optimize else sys.exception()
        assert not reader.checked or found == before or found == (before or [])[: len(found)], (
            f"{name} believed {content!r}"
        )
        counts["answered"] += 1
    return counts


def typed_lines(inputs: int, seed: int) -> collections.Counter[str]:
    """How many lines at the command line left with which exit code, in a folder with the readers' files."""
    from bayesdp.cli import main

    draw, counts = random.Random(seed), collections.Counter[str]()
    for _ in range(inputs):
        command = draw.choice([*COMMANDS])
        words = [command, *(draw.choice([*COMMANDS[command], *ARGUMENTS]) for _ in range(draw.randint(0, 7)))]
        out, err, code = io.StringIO(), io.StringIO(), 0
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), bounded():
                main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        except BaseException:
            raise AssertionError(f"{words}") from sys.exception()
        assert code in (0, 1, 2), f"{words}: exit {code}"
        assert "Traceback" not in out.getvalue() + err.getvalue(), f"{words}: a traceback"
        assert code == 0 or out.getvalue() or err.getvalue(), f"{words}: exit {code} without a word"
        counts[f"exit {code}"] += 1
    return counts


def by_coverage(name: str) -> None:
    """Hand a reader to atheris, which looks for inputs that reach new code."""
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

    folder = Path(tempfile.mkdtemp(prefix="bayesdp-fuzz-"))
    path = folder / name

    def one(content: bytes) -> None:
        path.write_bytes(content)
        with contextlib.suppress(InputError):
            READERS[name].read(path)

    atheris.instrument_all()
    READERS[name].make(path)
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "good").write_bytes(path.read_bytes())
    atheris.Setup([sys.argv[0], str(corpus)], one)
    atheris.Fuzz()


def main() -> None:
    """Throw and count."""
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    words.add_argument("--inputs", type=int, default=10_000)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--readers", default=",".join([*READERS, "lines"]))
    words.add_argument("--atheris")
    asked = words.parse_args()
    if asked.atheris:
        by_coverage(asked.atheris)
        return
    bad = 0
    with tempfile.TemporaryDirectory(prefix="bayesdp-fuzz-") as place, contextlib.chdir(place):
        for name in asked.readers.split(","):
            try:
                if name == "lines":
                    counts = typed_lines(asked.inputs, asked.seed)
                else:
                    counts = fuzzed(name, Path(place), asked.inputs, asked.seed)
            except AssertionError:
                traceback.print_exc()
                bad += 1
                continue
            told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
            print(f"{name:18} {told}", flush=True)
    if bad:
        raise SystemExit(f"{bad} of them broke.")


if __name__ == "__main__":
    main()
