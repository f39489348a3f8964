"""Does a bundle leak a private number? A second pass over all of its files.

    every number of the run's folder      minus   what is public: the plan, what was typed, the promise to everybody
    every number that the bundle's files hold, to the digits that it is written with

A number of at least three digits that is a rounding of a private one, up, down or to the nearest, as it is or in
percent, and of no public one, is a leak. So is a digest or a secret of the folder in any text, and a private number
that stands as it is in an array. Pages and cards are made from release.json alone, which `publishing` checks: three
digits that were computed from public ones meet some private number by chance, so those are not looked through.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import storage
from bayesdp.errors import unmet

Numbers = npt.NDArray[np.float64]

_NUMBER = re.compile(r"(?<![\w.,-])-?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d(?:T[\d:.+]+)?\b")
_STYLE = re.compile(r"<style>.*?</style>|<[^>]*>", re.S)
_DIGITS = 3
_LONG = 16
"""Digests and secrets have at least so many letters or digits."""
_TEXTS = (".json", ".md", ".html", ".py", ".txt")


def private_numbers(folder: Path, released: Iterable[str]) -> tuple[Numbers, set[str]]:
    """All numbers of a folder, sorted, and its long words; files named in `released` are left alone.

    What a report says of a released posterior is computed from it; of one without noise beside it, it is not.
    """
    known = set(released)
    numbers: list[Any] = []
    words: set[str] = set()
    for path in sorted(folder.rglob("*")):
        if path.name in known or not path.is_file():
            continue
        if path.suffix in (".json", ".jsonl"):
            lines = path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else []
            whole = [json.loads(line) for line in lines] if lines else storage.read_json(path)
            for one in _leaves(_unpaid(whole)):
                _sort_in(one, numbers, words)
        elif path.suffix == ".npz":
            for array in storage.read_arrays(path).values():
                if array.dtype.kind in "fiu":
                    numbers.extend(np.unique(array.astype(np.float64)).tolist())
    found = np.array(numbers, np.float64)
    return np.unique(found[np.isfinite(found)]), words


def public_numbers(*documents: Any) -> Numbers:
    """All numbers in plain values, sorted, those in their sentences too."""
    numbers: list[float] = [1, 10, 100, 1000]
    for document in documents:
        for one in _leaves(document):
            if isinstance(one, str):
                numbers += [float(token) for token, _ in _tokens(one)]
            elif not isinstance(one, bool) and isinstance(one, int | float):
                numbers.append(float(one))
    found = np.array(numbers)
    return np.unique(found[np.isfinite(found)])


def leaks(files: Mapping[str, bytes], private: Numbers, words: set[str], public: Numbers) -> list[str]:
    """What was found, a few words each: which file, and what in it."""
    found = []
    for name, content in files.items():
        if name.endswith(_TEXTS):
            text = _STYLE.sub(" ", content.decode()) if name.endswith(".html") else content.decode()
            found += [f"{name} holds a secret of the run" for word in sorted(words) if word in text]
            for value, unit in _tokens(_DATE.sub(" ", text)):
                if _rounds(private, value, unit) and not _rounds(public, value, unit):
                    found.append(f"{name} holds {value}")
        elif name.endswith(".npz"):
            secret = private[[len(f"{one:.12g}".strip("-0.").replace(".", "")) >= 6 for one in private]]
            for array in storage.unpacked(content, Path(name)).values():
                if array.dtype.kind == "f" and np.isin(array.astype(np.float64), secret).any():
                    found.append(f"{name} holds a private number")
    return found


def _rounds(known: Numbers, value: Decimal, unit: Decimal) -> bool:
    """Whether one of `known` is printed as `value`, whichever way it was rounded to a multiple of `unit`."""
    for scale in (1, 100):
        low, high = (value - unit) / scale, (value + unit) / scale
        start, stop = np.searchsorted(known, float(low), side="right"), np.searchsorted(known, float(high))
        if stop > start:
            return True
    return False


def _tokens(text: str) -> Iterator[tuple[Decimal, Decimal]]:
    """The printed numbers of at least three digits, each with the unit of its last digit."""
    for found in _NUMBER.findall(text):
        value = Decimal(found.replace(",", ""))
        digits = value.as_tuple()
        exponent = int(digits.exponent)
        if len("".join(map(str, digits.digits)).strip("0") if exponent < 0 else digits.digits) >= _DIGITS:
            yield value, Decimal(1).scaleb(exponent)


def _unpaid(document: Any) -> Any:
    """A document without the intervals of a posterior that was released."""
    if not isinstance(document, Mapping) or not isinstance(document.get("report"), Mapping):
        return document
    own = document["report"].get("posterior")
    kept = own.get("non_private") if isinstance(own, Mapping) else None
    return {**document, "report": {**document["report"], "posterior": kept}}


def _leaves(document: Any) -> Iterator[Any]:
    if isinstance(document, Mapping):
        for one in document.values():
            yield from _leaves(one)
    elif isinstance(document, list | tuple):
        for one in document:
            yield from _leaves(one)
    else:
        yield document


def _sort_in(one: Any, numbers: list[Any], words: set[str]) -> None:
    if isinstance(one, bool) or one is None:
        return
    if isinstance(one, int | float):
        if isinstance(one, int) and len(str(abs(one))) >= _LONG:
            words.add(str(abs(one)))
        else:
            numbers.append(one)
    elif re.fullmatch(rf"[0-9a-f]{{{_LONG},}}", one):
        words.add(one)


def check(files: Mapping[str, bytes], folder: Path, released: Iterable[str], *public: Any) -> None:
    """Refuse files that hold a private number of the run in `folder`. `public`: plain values that may be told."""
    private, words = private_numbers(folder, released)
    found = leaks(files, private, words, public_numbers(*public))
    if found:
        raise unmet(
            "run",
            str(folder),
            "nothing of the run's private numbers in the bundle",
            "; ".join(found[:3]),
            "Nothing was written. Please report this: it should not happen.",
        )


def plain(content: bytes) -> Any:
    """A JSON file's values."""
    return json.loads(content)
