"""Metrics of test records against scikit-learn's, and what is not defined."""

import numpy as np
import pytest
from sklearn import metrics

from bayesdp.errors import InputError
from bayesdp.report.quality import Confusion, auc, is_share, of_classes, of_numbers


@pytest.fixture(scope="module", params=[2, 4])
def answers(request):
    rng = np.random.default_rng(0)
    k = request.param
    truth = rng.integers(0, k, 300)
    scores = rng.normal(size=(300, k)).round(1) + 1.2 * np.eye(k)[truth]
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return tuple("abcd"[:k]), shares, truth


def test_they_are_those_of_scikit_learn(answers):
    classes, shares, truth = answers
    found, taken = of_classes(classes, shares, truth), shares.argmax(axis=1)
    several = len(classes) > 2
    whose, average = ("mean over classes", "macro") if several else ("of b", "binary")
    area = metrics.roc_auc_score(truth, shares if several else shares[:, 1], multi_class="ovr", average="macro")
    assert found == pytest.approx(
        {
            "test log-loss": metrics.log_loss(truth, shares),
            f"test AUC ({whose})": area,
            f"test precision ({whose})": metrics.precision_score(truth, taken, average=average),
            f"test recall ({whose})": metrics.recall_score(truth, taken, average=average),
        }
    )
    seen = Confusion.of(classes, truth, taken)
    assert np.array_equal(seen.counts, metrics.confusion_matrix(truth, taken))
    assert seen.recall == pytest.approx(metrics.recall_score(truth, taken, average=None))
    assert seen.precision == pytest.approx(metrics.precision_score(truth, taken, average=None))
    assert Confusion.from_dict(seen.to_dict()) == seen


def test_what_is_not_defined_is_left_out():
    shares = np.array([[0.9, 0.1], [0.8, 0.2]])
    assert set(of_classes(("no", "yes"), shares, np.zeros(2, int))) == {"test log-loss"}
    assert auc(np.array([np.nan, 1.0]), np.array([True, False])) is None
    assert of_numbers(np.ones(3), np.full(3, 2.0)) == {}
    assert Confusion.of(("no", "yes"), np.zeros(2, int), np.zeros(2, int)).recall == (1.0, None)


def test_ties_count_half():
    assert auc(np.array([1.0, 1.0, 2.0, 0.0]), np.array([True, False, True, False])) == 0.875


def test_numbers():
    truth, said = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 3.0])
    assert of_numbers(said, truth) == pytest.approx({"test R²": metrics.r2_score(truth, said)})


def test_which_metrics_are_shares():
    assert is_share("test recall (of yes)")
    assert is_share("test accuracy")
    assert not is_share("test AUC (of yes)")


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(InputError, match="counts"):
        Confusion(classes=("a", "b"), counts=((1, 2),))
