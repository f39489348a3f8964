"""What cannot be fitted: each gets one line on stderr that names the option, exit code 2, and no folder is made."""

from __future__ import annotations

import numpy as np
import pytest
from people_files import people, write_people

PLAN = ("--epsilon", "2", "--engine", "rdp")
SECRET = ("--method", "posterior-vi")
LOGISTIC = ("breast-cancer", "--model", "logistic")
RICH = ("people.csv", "--target", "rich", "--drop", "wage")

MODELS = """
import numpyro
from numpyro import distributions as dist

not_a_function = 3

def no_plate(x, y):
    w = numpyro.sample("w", dist.Normal(0, 1))
    numpyro.sample("y", dist.Bernoulli(logits=w * x[:, 0]).to_event(1), obs=y)

def coin(x, y):
    side = numpyro.sample("side", dist.Bernoulli(0.5))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=side * x[:, 0]), obs=y)

def improper(x, y):
    w = numpyro.sample("w", dist.ImproperUniform(dist.constraints.real, (), ()))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=w * x[:, 0]), obs=y)

def whole(x, y):
    w = numpyro.sample("w", dist.Normal(0, 1))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=w * (x[:, 0] - x[:, 0].mean())), obs=y)

def too_wide(x, y):
    w = numpyro.sample("w", dist.Normal(0, 1))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=w * x[:, 99:100] @ x), obs=y)

def positive(x, y):
    w = numpyro.sample("w", dist.Normal(0, 1))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Exponential(1 + w**2), obs=y)
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    columns = people()
    write_people(folder / "people.csv")
    write_people(folder / "losses.csv", {**columns, "visits": [str(i - 3) for i in range(240)]})
    write_people(folder / "halves.csv", {**columns, "visits": [str(i / 2) for i in range(240)]})
    np.savez(folder / "images.npz", x=np.zeros((60, 4, 4), np.uint8), y=np.arange(60) % 3)
    (folder / "models.py").write_text(MODELS)
    (folder / "broken.py").write_text("def model(x, y:\n")
    (folder / "raises.py").write_text("import nowhere_to_be_found\n")
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["breast-cancer", *PLAN], "Missing option '--model'"),
        (["breast-cancer", "--model", "forest", *PLAN], "Expected --model to be one of logistic, linear, poisson"),
        (["breast-cancer", "--model", "forest", *PLAN], "or a function of your own, such as my_model.py:model"),
        (["breast-cancer", "--model", "nowhere.py:model", *PLAN], "Expected --model to name a file that is there"),
        (["breast-cancer", "--model", "models.py", *PLAN], "to be a file and a function in it, such as"),
        (["breast-cancer", "--model", "models.py:", *PLAN], "to be a file and a function in it, such as"),
        (["breast-cancer", "--model", "models.py:other", *PLAN], "a function of models.py, which has no 'other'"),
        (["breast-cancer", "--model", "models.py:other", *PLAN], "The file has 'no_plate', 'coin'"),
        (["breast-cancer", "--model", "models.py:not_a_function", *PLAN], "which has no 'not_a_function'"),
        (["breast-cancer", "--model", "broken.py:model", *PLAN], "to be in a file that runs, got SyntaxError"),
        (["breast-cancer", "--model", "raises.py:model", *PLAN], "No module named 'nowhere_to_be_found'"),
        (["breast-cancer", "--model", "models.py:no_plate", *PLAN], "Expected the model to have a data plate"),
        (["breast-cancer", "--model", "models.py:no_plate", *PLAN], "models.py:no_plate'."),
        (["breast-cancer", "--model", "models.py:coin", *PLAN], "got the discrete latent site 'side'"),
        (["breast-cancer", "--model", "models.py:improper", *PLAN], "got the improper one of site 'w'"),
        (["breast-cancer", "--model", "models.py:whole", *PLAN], "to depend on that record alone, got site 'y'"),
        (["breast-cancer", "--model", "models.py:too_wide", *PLAN], "got an error after site 'records'"),
        (
            ["people.csv", "--target", "wage", "--drop", "rich", "--model", "models.py:positive", *PLAN],
            "site 'y' to lie",
        ),
        (
            ["digits", "--model", "logistic", *PLAN],
            "two classes, such as 0 and 1, for --model='logistic', got 10 classes",
        ),
        (["people.csv", "--target", "trade", "--model", "logistic", *PLAN], "got 3 classes"),
        (["images.npz", "--model", "logistic", *PLAN], "got 3 classes"),
        (
            ["breast-cancer", "--model", "linear", *PLAN],
            "Expected a target of numbers for --model='linear', got 2 classes",
        ),
        ([*RICH, "--model", "linear", *PLAN], "to hold numbers in column 'rich'"),
        (
            [*RICH, "--task", "regression", "--model", "logistic", *PLAN],
            "Expected --task to be left out or 'classification'",
        ),
        (
            ["losses.csv", "--target", "visits", "--model", "poisson", *PLAN],
            "whole numbers from 0 on, for --model='poisson'",
        ),
        (["losses.csv", "--target", "visits", "--model", "poisson", *PLAN], "for --model='poisson', got others."),
        (
            ["halves.csv", "--target", "visits", "--model", "negative-binomial", *PLAN],
            "for --model='negative-binomial', got others.",
        ),
        ([*RICH, "--model", "hierarchical", *PLAN], "Expected --group to name a column of categories"),
        ([*RICH, "--model", "hierarchical", "--group", "age", *PLAN], "got --group='age'. Such columns here: 'trade'"),
        ([*RICH, "--model", "logistic", "--group", "trade", *PLAN], "Expected --group to be left out but for --model="),
        ([*RICH, "--model", "mixture", "--components", "0", *PLAN], "Expected --components to be a whole number >= 1"),
        ([*RICH, "--model", "linear", "--components", "2", *PLAN], "Expected --components to be left out but for"),
        (["people.csv", "--model", "logistic", *PLAN], "Expected --target to name the column of"),
        ([*LOGISTIC, "--method", "mcmc", *PLAN], "Expected --method to be one of 'newton', 'vi', 'posterior-vi'"),
        ([*LOGISTIC, "--guide", "flow", *PLAN], "Expected --guide to be one of 'mean-field', 'full-rank'"),
        ([*LOGISTIC, "--variant", "wild", *PLAN], "Expected --variant to be one of 'aligned'"),
        (list(LOGISTIC), "Expected --epsilon, the DP ε to keep, or --noise-multiplier, got neither"),
        ([*LOGISTIC, *PLAN, "--noise-multiplier", "1"], "Expected --epsilon or --noise-multiplier, got both"),
        ([*LOGISTIC, "--epsilon", "0"], "Expected --epsilon to be a finite number > 0"),
        (
            [*LOGISTIC, "--epsilon", "1e-9", "--delta", "1e-12", "--engine", "moments", "--sampling-rate", "0.1"],
            "Expected an epsilon within reach, got --epsilon=1e-09",
        ),
        ([*LOGISTIC, *PLAN, "--delta", "0.01"], "Expected --delta to be below one over the number of training"),
        (
            [*LOGISTIC, *PLAN, "--steps", "60", "--noise-aware"],
            "Expected --steps to be at least 100 with --noise-aware",
        ),
        ([*LOGISTIC, *PLAN, "--clip-norm", "0"], "Expected --clip-norm to be a finite number > 0"),
        ([*LOGISTIC, *PLAN, "--learning-rate", "0"], "Expected --learning-rate to be a finite number > 0"),
        ([*LOGISTIC, *PLAN, "--adjacency", "swap"], "Expected --adjacency to be one of"),
        ([*LOGISTIC, *PLAN, "--holdout", "455"], "Expected --holdout to be below 455"),
        ([*LOGISTIC, *PLAN, "--watch", "570"], "There are 569 records, counted from 1"),
        ([*LOGISTIC, *PLAN, "--samples", "5"], "Expected --samples to be left out with --method='vi'"),
        ([*LOGISTIC, "--noise-multiplier", "4", "--engine", "steam"], "Expected --engine to be one of"),
        ([*LOGISTIC, "--noise-multiplier", "4", "--adjacency", "near"], "Expected --adjacency to be one of"),
        ([*LOGISTIC, "--noise-multiplier", "4", "--coverage", "2"], "Expected --coverage to be a finite number > 0"),
        ([*LOGISTIC, "--noise-multiplier", "-4"], "Expected --noise-multiplier to be a finite number >= 0"),
        ([*LOGISTIC, "--noise-multiplier", "1e-300"], "Expected --noise-multiplier to be at least 1e-15"),
        ([*LOGISTIC, *PLAN, "--clip-norm", "1e-40"], "Expected --clip-norm to be at least 1e-15"),
        (
            [*LOGISTIC, *PLAN, "--steps", "1e18"],
            "Expected --steps to be a whole number >= 1 and <= 10000000, got --steps=1e+18. Use fewer steps",
        ),
        ([*LOGISTIC, *PLAN, "--epochs", "1e18"], "which is 10,000,000 steps, got --epochs=1e+18. Use fewer"),
        ([*LOGISTIC, *SECRET, "--steps", "1e18"], "Expected --steps to be a whole number >= 1 and <= 10000000"),
        ([*LOGISTIC, *SECRET, "--samples", "1e18"], "Expected --samples to be a whole number >= 1 and <= 1000000"),
        ([*RICH, "--model", "mixture", "--components", "1e9", *PLAN], "Expected --components to be at most 1"),
        ([*LOGISTIC, *SECRET, "--samples", "0"], "Expected --samples to be a whole number >= 1"),
        ([*LOGISTIC, *SECRET, "--clip-norm", "1"], "Expected --clip-norm to be left out with --method='posterior-vi'"),
        ([*LOGISTIC, *SECRET, "--non-private-too"], "it is the one that stays secret"),
        ([*LOGISTIC, *SECRET, "--epsilon", "1"], "Expected --epsilon to come with --radius and --scales"),
        ([*LOGISTIC, *SECRET, "--scales", "1"], "Expected --scales to be 2 numbers separated by commas"),
        (
            [*LOGISTIC, *SECRET, "--epsilon", "1", "--radius", "2", "--scales", "2,1"],
            "Expected --scales[1] to be a finite number >= 2",
        ),
        ([*LOGISTIC, *SECRET, "--holdout", "20"], "Expected --coverage to be at most"),
        ([*LOGISTIC, *SECRET, "--holdout", "20"], "the share that so few witnesses can speak for"),
    ],
)
def test_one_line_that_names_the_option(cli, shelf, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(shelf)
    refused = cli("fit", *arguments, "--out", tmp_path / "run").refused()
    assert said in refused, refused
    assert not (tmp_path / "run").exists()


def test_a_folder_is_never_overwritten(cli, shelf, monkeypatch):
    monkeypatch.chdir(shelf)
    refused = cli("fit", *LOGISTIC, *PLAN, "--out", ".").refused()
    assert "Expected --out to be new or empty" in refused


def test_help_names_the_contract(cli):
    shown = cli("fit", "--help").out
    for words in ("my_model.py:model", "posterior-vi", "NOT PRIVATE", "numpyro.plate", "--noise-aware"):
        assert words in shown, words
