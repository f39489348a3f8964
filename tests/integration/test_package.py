"""The package's face: the names of the public surface, lazily loaded."""

import subprocess
import sys
from pathlib import Path

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


HEAVY = ("numpyro", "sklearn", "matplotlib", "arviz", "ray", "blackjax", "pyarrow", "pandas")
TRAIN = """
import numpy as np
from bayesdp.cli import main
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 2))
np.savetxt("people.csv", np.column_stack([x, x[:, 0] > 0]), "%g", ",", header="a,b,rich", comments="")
plan = "--noise-multiplier 4 --steps 2 --sampling-rate 0.5 --engine rdp --holdout 10 --members 10".split()
def call(*words):
    try:
        main([*words, "--json"])
    except SystemExit as left:
        assert not left.code, words
table = "people.csv --target rich --scale public-statistics --model logistic".split()
call("train", *table, *plan, "--watch", "3", "--out", "run")
call("report", "run")
call("instance", "run")
"""


def loaded_by(code, folder):
    """Which of the heavy libraries a program loads."""
    ask = f"\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + ask], capture_output=True, text=True, check=True, cwd=folder)
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "more",
    [
        "",
        "\nimport bayesdp as bd\nassert bd.load('run').guarantees",
        "\nfrom bayesdp.jobs.predict import predict\nassert len(predict('run', 'people.csv')) == 61",
    ],
    ids=["train, report, instance", "load", "predict"],
)
def test_a_network_is_trained_and_used_without_what_others_need(more, tmp_path):
    assert loaded_by(TRAIN + more, tmp_path) == "[]"


def test_sampling_functions_of_ones_own_does_not_load_numpyro(tmp_path):
    code = """
import bayesdp as bd, numpy as np
def log_likelihood(w, x):
    return -((x - w) ** 2).sum() / 2
plan = bd.SGLD(step_size=1e-3, sampling_rate=0.5, steps=4, engine="rdp")
plan.fit((bd.NormalPrior(np.zeros(2)), log_likelihood), np.ones((20, 2), np.float32), seed=0).save("fit")
"""
    assert loaded_by(code, tmp_path) == "[]"


def test_the_version_stands_everywhere_the_same():
    root = Path(__file__).parents[2]
    for file, words in (
        ("CITATION.cff", "version: {}"),
        ("conda/meta.yaml", 'version = "{}"'),
        ("pyproject.toml", 'version = "{}"'),
    ):
        assert words.format(bayesdp.__version__) in (root / file).read_text(encoding="utf-8")


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "bayesdp", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"bayesdp {bayesdp.__version__}\n"


def test_accounting_is_loaded_without_jax_and_learners():
    code = "import sys, bayesdp.accountant; print([m for m in ('jax', 'sklearn', 'numpyro') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
