"""A public extractor of the user's own, such as a pretrained embedding: `my_features.py:embed`, with a declared norm.

    features of a record  =  f(x) · min(1, B / |f(x)|),     f = embed, B the declared norm

The contract: `embed(images)` with images float32 (records, height, width, channels), pixels as the data set has them,
gives numbers (records, features). It looks at each record by itself, and nothing of the private data went into it: both
are declared by whoever names it. The first is also tried on the first records: alone they must get what they get among
others. The file's digest is kept with the recipe, so that a model is never used with another extractor.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp.errors import Argument, number, refuse, unfit

Floats = npt.NDArray[np.float32]

EXAMPLE = "my_features.py:embed"
_BATCH = 256
_TRIED = 3
"""Records that are also given to the extractor alone."""

_NEAR = 1e-3
"""How far, in parts of their length, features of a record alone may be from those among others: float32 sums."""


def is_file(features: str) -> bool:
    """Whether features are named as a function in a file."""
    return ":" in features or features.endswith(".py")


@dataclass(frozen=True)
class Extractor:
    """The function `name` of a file with this sha256, its features shortened to `norm` where they are longer."""

    path: str
    name: str
    sha256: str
    norm: float

    @classmethod
    def given(cls, features: str, norm: float | None) -> Extractor:
        """As a user says it. Bad input: another form, no such file, or no norm that is a positive number."""
        file, _, name = features.rpartition(":")
        if not file.endswith(".py") or not name.isidentifier():
            raise refuse("features", features, f"to be scattering, or a file and a function in it, such as {EXAMPLE}")
        path = Path(file).expanduser()
        if not path.is_file():
            raise refuse(
                "features", features, "to name a file that is there", f"There is none at {str(path.absolute())!r}."
            )
        if norm is None:
            raise refuse(
                "feature_norm",
                None,
                f"to be given with {Argument('features', features)}: the length that no record's features exceed",
                "Longer ones are shortened to it.",
                got="none",
            )
        number("feature_norm", norm, above=0)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return cls(str(path.absolute()), name, digest, float(norm))

    @property
    def sentence(self) -> str:
        """What is assumed of it."""
        return (
            f"The features come from {Path(self.path).name}:{self.name} (sha256 {self.sha256[:12]}…), which is "
            "declared to be public, to look at one record at a time and to owe nothing to these records; each "
            f"record's are shortened to a length of at most {self.norm:g}."
        )

    def __call__(self, images: Floats) -> Floats:
        """The features (records, features) of images (records, height, width, channels).

        Bad input: a file that does not run or has changed, no such function, or answers that are not finite numbers of
        that form, or that depend on other records.
        """
        embed = _function(self.path, self.name, self.sha256)
        parts = [self._batch(embed, images[start : start + _BATCH]) for start in range(0, len(images), _BATCH)]
        found = np.concatenate(parts) if parts else np.zeros((0, self.size(images.shape[1:])), np.float32)
        for i in range(min(_TRIED, len(images))) if len(images) > 1 else ():
            alone = self._batch(embed, images[i : i + 1])[0]
            if np.linalg.norm(alone - found[i]) > _NEAR * max(1e-30, float(np.linalg.norm(alone))):
                raise unfit(
                    Argument("features", self._said),
                    "to look at each record by itself",
                    f"other features for record {i} alone than among others",
                    "Then no clip norm bounds what one record does: leave out what compares records, such as batch "
                    "normalisation in training mode.",
                )
        return found

    def size(self, shape: tuple[int, ...]) -> int:
        """How many features an image of that shape has."""
        embed = _function(self.path, self.name, self.sha256)
        return int(self._batch(embed, np.zeros((1, *shape), np.float32)).shape[1])

    @property
    def _said(self) -> str:
        return f"{Path(self.path).name}:{self.name}"

    def _batch(self, embed: Callable[[Any], Any], images: Floats) -> Floats:
        try:
            answer = np.asarray(embed(images))
        except Exception as problem:
            raise unfit(
                Argument("features", self._said), "to run on images", f"{type(problem).__name__}: {problem}"
            ) from problem
        good = answer.ndim >= 2 and len(answer) == len(images) and answer.dtype.kind in "fiub"
        if not good or not np.isfinite(answer).all():
            raise unfit(
                Argument("features", self._said),
                f"to give finite numbers of shape ({len(images)}, features)",
                f"shape {answer.shape} of {answer.dtype}" if not good else "numbers that are not finite",
            )
        flat = answer.reshape(len(answer), -1).astype(np.float32)
        lengths = np.linalg.norm(flat.astype(np.float64), axis=1)
        shortened: Floats = flat * np.minimum(1, self.norm / np.maximum(lengths, 1e-30))[:, None].astype(np.float32)
        return shortened


@lru_cache(maxsize=4)
def _function(path: str, name: str, sha256: str) -> Callable[[Any], Any]:
    """The function. The file is run as Python runs a script: what lies beside it can be imported."""
    file, said = Path(path), Argument("features", f"{Path(path).name}:{name}")
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise unfit(said, f"to be in {path!r} as it was when the model was trained", "no such file, or another content")
    spec = importlib.util.spec_from_file_location(f"bayesdp_features_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise unfit(said, "to name a file of Python", "another")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.absolute().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        raise unfit(said, "to be in a file that runs", f"{type(problem).__name__}: {problem}") from problem
    finally:
        sys.path.pop(0)
    found: object = vars(module).get(name)
    if not callable(found):
        there = [key for key, value in vars(module).items() if callable(value) and value.__module__ == module.__name__]
        raise unfit(said, f"to name a function of {file.name}", f"none; it has {', '.join(there) or 'no function'}")
    return found
