"""`bayesdp doctor`: the environment, and what each part that is missing would give."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

import typer

from bayesdp.cli import options, terminal
from bayesdp.errors import InputError
from bayesdp.version import __version__

EXTRAS = {
    "matplotlib": ("plot", "figures of the papers (`bayesdp reproduce`)"),
    "pyarrow": ("parquet", "Parquet files, and CSV tables six times faster"),
    "arviz": ("arviz", "posteriors as ArviZ InferenceData"),
    "ray": ("ray", "studies on many machines (`bayesdp study --ray`)"),
    "opacus": ("torch", "Bayesian and per-instance promises for an Opacus loop"),
    "torch": ("torch", "gradient norms of witnesses in PyTorch"),
}
"""Package → extra, and what it is for."""

NEEDED = ("numpy", "scipy", "dp-accounting", "jax", "jaxlib", "optax", "numpyro", "scikit-learn", "typer")


class Finding(NamedTuple):
    """One line: about what, what was found, and whether something has to be done."""

    about: str
    found: str
    good: bool = True


def findings() -> list[Finding]:
    """All lines. Only "devices" loads JAX."""
    return [
        Finding("bayesdp", f"{__version__} in {Path(__file__).parents[1]}"),
        Finding("Python", f"{platform.python_version()}, {sys.executable}", sys.version_info >= (3, 11)),
        *(_package(name) for name in NEEDED),
        _devices(),
        _randomness(),
        _data(),
        *(_extra(*one) for one in EXTRAS.items()),
    ]


def _package(name: str) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "missing: pip install bayesdp again", good=False)


def _extra(name: str, about: tuple[str, str]) -> Finding:
    extra, gives = about
    if importlib.util.find_spec(name) is not None:
        return Finding(name, importlib.metadata.version(name))
    return Finding(name, f'not installed; pip install "bayesdp[{extra}]" gives {gives}')


def _devices() -> Finding:
    try:
        import jax

        shown = ", ".join(map(str, jax.devices()))
    except Exception as problem:  # whatever a broken installation says
        return Finding("devices", f"JAX does not start: {problem}", good=False)
    return Finding("devices", f"{shown}; {os.cpu_count()} cores")


def _randomness() -> Finding:
    drawn = {os.urandom(32) for _ in range(4)}
    if len(drawn) < 4 or bytes(32) in drawn:
        return Finding("secure randomness", "the operating system repeats itself: nothing is private here", good=False)
    return Finding("secure randomness", "from the operating system")


def _data() -> Finding:
    from bayesdp.data.places import Places

    try:
        return Finding("data folders", ", ".join(map(str, Places().folders())))
    except InputError as problem:
        return Finding("data folders", str(problem), good=False)


def doctor(json: options.Json = False) -> None:
    """
    Look at this installation: versions, devices, secure randomness, data folders, and what is not installed.

    Exit code 1 where something has to be done.

    For example:
      bayesdp doctor
    """
    found = findings()
    if json:
        terminal.json_list([one._asdict() for one in found])
    else:
        width = max(len(one.about) for one in found)
        for one in found:
            print(f"{'ok' if one.good else '!!'} {one.about:{width}}  {one.found}")
    if not all(one.good for one in found):
        raise typer.Exit(1)
