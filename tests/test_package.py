"""The package's face: the names of the public surface, lazily loaded."""

import subprocess
import sys

import pytest

import bayesdp


@pytest.mark.parametrize("name", [n for n in bayesdp.__all__ if n != "__version__"])
def test_public_names_are_there_and_listed(name):
    assert getattr(bayesdp, name).__name__ == name
    assert name in dir(bayesdp)


def test_unknown_names_are_refused_as_usual():
    with pytest.raises(AttributeError, match="no attribute 'Accountant'"):
        _ = bayesdp.Accountant


def test_help_loads_no_heavy_libraries():
    code = "import sys, bayesdp.cli; print([m for m in ('scipy', 'dp_accounting', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_agrees_with_the_installed_one():
    from importlib.metadata import version

    assert version("bayesdp") == bayesdp.__version__
