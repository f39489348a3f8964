"""The estimators: scikit-learn's protocol, the ledger, and one fit by every method."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from bayesdp.errors import InputError
from bayesdp.ledger import Ledger
from bayesdp.sklearn import PrivacyWarning, PrivateClassifier, PrivateRegressor, PrivateScaler, payment

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (120, 2))
Y = np.where(X[:, 0] > 5, "yes", "no")


@pytest.fixture
def book(tmp_path):
    return Ledger.open(tmp_path / "people.ledger")


@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateRegressor])
def test_protocol(kind, trained):
    """All of scikit-learn's checks, with a quick learner; `make check-estimators` has them with the real ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(kind(), on_fail=None)
    assert {one["check_name"] for one in found if one["status"] not in ("passed", "skipped")} == set()
    assert len(found) > 40
    assert trained


def test_pipeline_and_cross_validation(trained, book):
    model = make_pipeline(PrivateScaler(bounds=(0, 10)), PrivateClassifier(ledger=book))
    assert cross_val_score(model, X, Y, cv=3).mean() > 0.9
    assert len(book.charges) == len(trained) == 3
    assert book.charges[0].looks == payment.LOOKS


def test_search_stops_where_the_budget_ends(trained, tmp_path):
    book = Ledger.open(tmp_path / "small.ledger", budget=1.3, delta=1e-5)
    grid = GridSearchCV(
        PrivateClassifier(ledger=book), {"goal": ["balanced", "accuracy"]}, cv=3, error_score="raise", refit=False
    )
    with pytest.raises(InputError, match=r"budget, DP ε 1.3 .* to pay for PrivateClassifier") as refused:
        grid.fit(X, Y)
    assert "\n" not in str(refused.value)
    assert 0 < len(trained) == len(book.charges) < 6


def test_guarantees_say_what_nobody_paid_for(trained, book):
    PrivateClassifier(ledger=book).fit(X, Y)
    model = PrivateClassifier(ledger=book.path, random_state=1).fit(X, Y)
    said = " ".join(model.guarantees_[0].assumptions)
    assert payment.SCORES in said
    assert "1 other charges" in said
    assert "nothing is private" in said
    assert "classes there are was taken from the data" in said


def test_without_a_ledger_it_warns(trained):
    with pytest.warns(PrivacyWarning, match="without a ledger"):
        model = PrivateRegressor().fit(X, X[:, 0])
    assert any("nobody counts them" in one for one in model.guarantees_[0].assumptions)


def test_data_frames_keep_their_names(trained, book):
    frame = pd.DataFrame(X, columns=["age", "dose"])
    model = PrivateClassifier(bounds={"dose": (0, 10), "age": (0, 10)}, ledger=book).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["age", "dose"]
    assert model.score(frame, Y) > 0.9
    with pytest.raises(InputError, match="also for 'dose'"):
        PrivateClassifier(bounds={"age": (0, 10)}, ledger=book).fit(frame, Y)


def test_undeclared_class_is_refused_before_anything_is_paid(trained, book):
    with pytest.raises(InputError, match="declared classes only"):
        PrivateClassifier(classes=["no", "perhaps"], ledger=book).fit(X, Y)
    assert not book.charges


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"method": "magic"}, "method"),
        ({"epsilon": 0}, "epsilon"),
        ({"goal": "fun"}, "goal"),
        ({"bounds": 3}, "bounds"),
    ],
)
def test_bad_parameters(wrong, words, book):
    with pytest.raises(InputError, match=words):
        PrivateClassifier(ledger=book, **wrong).fit(X, Y)
    assert not book.charges


@pytest.mark.parametrize("method", ["sgd", "vi", "sgld", "posterior-vi"])
def test_each_method_trains(method, book, tmp_path):
    """What was asked for holds, is charged before, survives pickling and is told on the page."""
    model = PrivateClassifier(method, epsilon=8.0, bounds=(0, 10), max_iter=20, ledger=book, random_state=0).fit(X, Y)
    (charge,) = book.charges
    assert model.guarantees_[0].notion == "dp"
    assert 0 < model.guarantees_[0].epsilon <= 8.0
    assert model.n_iter_ == 20
    assert charge.bounded
    assert charge.steps or charge.epsilon >= model.guarantees_[0].epsilon
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert "people.ledger" not in model.report(tmp_path / "page.html").read_text()
    assert payment.SCORES.split(":")[0] in (tmp_path / "page.html").read_text()


def test_a_number_is_learned_in_its_own_units(book):
    target = 70 - 5 * X[:, 0]
    model = PrivateRegressor(
        epsilon=50.0, bounds=(0, 10), target_bounds=(0, 100), max_iter=60, ledger=book, random_state=0
    )
    assert model.fit(X, target).score(X, target) > 0.5
