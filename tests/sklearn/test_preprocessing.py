"""The scaler and the imputer: public bounds, and noise that was paid for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesdp.errors import InputError
from bayesdp.ledger import Ledger
from bayesdp.sklearn import PrivateImputer, PrivateScaler

X = np.random.default_rng(0).normal([3.0, 50.0], [1.0, 5.0], (20_000, 2))
BOUNDS = ([0.0, 0.0], [10.0, 100.0])


@pytest.fixture
def book(tmp_path):
    return Ledger.open(tmp_path / "people.ledger")


def test_free_ones_look_at_nothing():
    low = PrivateScaler(BOUNDS).fit(X[:5]).transform([[-1.0, 50.0], [10.0, 200.0]])
    np.testing.assert_allclose(low, [[-1, 0], [1, 1]])
    assert PrivateScaler(BOUNDS).fit(X).guarantees_ == []
    filled = PrivateImputer(BOUNDS).fit(X[:3]).transform([[np.nan, 1.0]])
    np.testing.assert_allclose(filled, [[5.0, 1.0]])


def test_paid_scaler_is_near_the_truth_and_charged(book):
    scaler = PrivateScaler(BOUNDS, epsilon=1.0, ledger=book, random_state=0).fit(X)
    np.testing.assert_allclose(scaler.mean_, [3, 50], atol=0.2)
    np.testing.assert_allclose(scaler.scale_, [1, 5], rtol=0.1)
    assert scaler.guarantees_[0].epsilon <= 1.0
    assert book.charges[0].what == "PrivateScaler"
    again = PrivateScaler(BOUNDS, epsilon=1.0, ledger=book).fit(X)
    assert (again.mean_ != scaler.mean_).all()


def test_noise_has_the_size_of_the_sensitivity(book):
    """Noise z √(2d) on each of 2d sums: seen from sums that are 0 without noise."""
    middle = np.full((1, 40), 5.0)
    scaler = PrivateScaler((0, 10), epsilon=1.0, ledger=book, random_state=0).fit(middle)
    (z, _, _) = book.charges[0].steps[0]
    sums, _ = scaler._released(np.zeros((1, 40)), np.zeros((1, 40)))
    assert abs(np.std(sums) / (z * np.sqrt(80)) - 1) < 0.4


def test_paid_imputer_fills_in_the_noisy_mean(book):
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.5, np.nan, X)
    imputer = PrivateImputer(BOUNDS, epsilon=1.0, ledger=book, random_state=0).fit(holes)
    np.testing.assert_allclose(imputer.statistics_, [3, 50], atol=0.5)
    assert not np.isnan(imputer.transform(holes)).any()


def test_frames_keep_their_names():
    frame = pd.DataFrame(X[:4], columns=["a", "b"])
    scaler = PrivateScaler({"a": (0, 10), "b": (0, 100)}).set_output(transform="pandas")
    assert list(scaler.fit_transform(frame).columns) == ["a", "b"]


@pytest.mark.parametrize("bounds", [None, (1, 0), ([0, 0, 0], [1, 1, 1]), {"a": (0, 1)}])
def test_bad_bounds(bounds):
    with pytest.raises(InputError, match="bounds"):
        PrivateScaler(bounds).fit(X[:4])
