"""A NumPyro model from a file of the user's own: `my_model.py:model`.

The contract: `model(x, y)` with x float32 (records, features), prepared as the report says, and y the target: class
numbers from 0 (int32) or numbers (float32, standardised unless told otherwise). The observed site is in a data plate,
`numpyro.plate("records", x.shape[0])`. To predict, the model is called with y = None. An intercept is its own business.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayesdp.errors import InputError, refuse

EXAMPLE = "my_model.py:model"
COPY = "model.py"
"""What a run's folder keeps the file as: it then is enough by itself."""


def is_file(model: str) -> bool:
    """Whether a model's name is that of a function in a file."""
    return ":" in model or model.endswith(".py")


def parts(model: str) -> tuple[Path, str]:
    """File and function of `my_model.py:model`. Bad input: another form, or no such file."""
    file, _, name = model.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise refuse("model", model, f"to be a file and a function in it, such as {EXAMPLE}")
    path = Path(file).expanduser()
    if not path.is_file():
        raise refuse("model", model, "to name a file that is there", f"There is none at {str(path.absolute())!r}.")
    return path, name


def keep(model: str, folder: Path) -> None:
    """Copy the file of a model into a run's folder, unless it is there."""
    path, _ = parts(model)
    if path.absolute() != (folder / COPY).absolute():
        (folder / COPY).write_bytes(path.read_bytes())


def kept(model: str, folder: Path) -> str:
    """The name of a model whose file was copied into `folder`, as it is to be loaded from there; others as they are."""
    return f"{(folder / COPY).absolute()}:{model.rpartition(':')[2]}" if is_file(model) else model


def load_model(model: str) -> Callable[..., Any]:
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
        raise InputError(
            f"Expected model={model!r} to be in a file that runs, got {type(problem).__name__}: {problem}."
        ) from problem
    finally:
        sys.path.pop(0)
    found = getattr(module, name, None)
    if not callable(found):
        there = [key for key, value in vars(module).items() if callable(value) and value.__module__ == module.__name__]
        has = f"The file has {', '.join(map(repr, there))}." if there else "The file defines no function."
        raise refuse("model", model, f"to name a function of {path.name}, which has no {name!r}", has)
    return found  # type: ignore[no-any-return]
