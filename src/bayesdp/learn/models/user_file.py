"""A NumPyro model from a file of the user's own: `my_model.py:model`.

The contract: `model(x, y)` with x float32 (records, features), prepared as the report says, and y the target: class
numbers from 0 (int32) or numbers (float32, standardised unless told otherwise). The observed site is in a data plate,
`numpyro.plate("records", x.shape[0])`. To predict, the model is called with y = None. An intercept is its own business.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

from bayesdp import storage
from bayesdp.errors import Argument, refuse, unfit
from bayesdp.learn.models.density import NumPyroModel

EXAMPLE = "my_model.py:model"


def is_file(model: str) -> bool:
    """Whether a model's name is that of a function in a file."""
    return ":" in model or model.endswith(".py")


class Parts(NamedTuple):
    """A file, and the name of a function in it."""

    path: Path
    name: str


def parts(model: str) -> Parts:
    """File and function of `my_model.py:model`. Bad input: another form, or no such file."""
    file, _, name = model.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise refuse("model", model, f"to be a file and a function in it, such as {EXAMPLE}")
    path = Path(file).expanduser()
    if not path.is_file():
        raise refuse("model", model, "to name a file that is there", f"There is none at {str(path.absolute())!r}.")
    return Parts(path, name)


def keep(model: str, copy: Path) -> None:
    """Copy the file of a model into a run's folder, which then is enough by itself, unless it is there."""
    path = parts(model).path
    if path.absolute() != copy.absolute():
        storage.replace(copy, path.read_bytes())


def kept(model: str, copy: Path, *, trusted: bool) -> str:
    """The name of a model whose file was copied to `copy`, as it is to be loaded from there; others as they are.

    Bad input: a file that is not `trusted`: whoever made the folder wrote it, and it would run as a program.
    """
    if is_file(model) and not trusted:
        lines = len(copy.read_bytes().splitlines()) if copy.is_file() else 0
        raise refuse(
            "trust_code",
            False,
            f"to say that {str(copy)!r} may be run",
            f"Its {lines} lines of Python would run with all your rights, and call {model.rpartition(':')[2]!r}: read "
            "it before, if the folder is not your own.",
            got="nothing of the kind",
        )
    return f"{copy.absolute()}:{model.rpartition(':')[2]}" if is_file(model) else model


def load_model(model: str) -> NumPyroModel:
    """The function. The file is run as Python runs a script: what lies beside it can be imported.

    Bad input: a file that cannot be run, or that has no such function: `InputError` that names both.
    """
    path, name = parts(model)
    spec = importlib.util.spec_from_file_location(f"bayesdp_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise refuse("model", model, "to name a file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.absolute().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        raise unfit(
            Argument("model", model), "to be in a file that runs", f"{type(problem).__name__}: {problem}"
        ) from problem
    finally:
        sys.path.pop(0)
    found: object = vars(module).get(name)
    if not callable(found):
        there = [key for key, value in vars(module).items() if callable(value) and value.__module__ == module.__name__]
        has = f"The file has {', '.join(map(repr, there))}." if there else "The file defines no function."
        raise refuse("model", model, f"to name a function of {path.name}, which has no {name!r}", has)
    return found
