import numpy as np
import pytest

from bayesdp.learn.second_order import doubts
from bayesdp.learn.second_order.reading import Read, Told, read

D, N = 3, 1000
WHITE = np.diag([1.0, 2.0, 0.5])
SCORE = np.array([30.0, -10.0, 5.0])


def told(stds=(1e-6, 1e-6, 1e-6), spread=1.0):
    return Told(
        theta=np.array([0.1, 0.2, 0.3]),
        white=WHITE,
        score=SCORE,
        curvature=N * np.eye(D),
        spread=spread * N * np.eye(D),
        stds=stds,
        shape=np.eye(D),
        records=N,
        gradient=np.zeros(D),
        precision=np.eye(D),
    )


def test_without_noise_it_is_laplaces():
    found = read(told())
    precision = N * np.linalg.inv(WHITE) @ np.linalg.inv(WHITE).T + np.eye(D)
    np.testing.assert_allclose(found.cov, np.linalg.inv(precision), rtol=1e-3, atol=1e-12)
    expected = told().theta + np.linalg.solve(precision, np.linalg.inv(WHITE) @ SCORE)
    np.testing.assert_allclose(found.mean, expected, rtol=1e-4)
    np.testing.assert_allclose(found.information, 1, rtol=1e-3)
    assert doubts.doubts(found) == ("", "", "")


def test_noise_widens_by_its_own_variance():
    quiet, loud = read(told()), read(told(stds=(50.0, 1e-6, 1e-6)))
    wider = np.diagonal(loud.cov) / np.diagonal(quiet.cov)
    np.testing.assert_allclose(wider, 1 + 50.0**2 / N, rtol=0.02)
    np.testing.assert_allclose(read(told(spread=0.5)).cov, 0.5 * quiet.cov, rtol=0.01, atol=1e-9)
    assert (np.diagonal(read(told(stds=(50.0, 300.0, 300.0))).cov) > np.diagonal(loud.cov)).all()


def test_order_changes_nothing():
    order = [2, 0, 1]
    given = told(stds=(50.0, 1e-6, 1e-6))
    moved = given._replace(theta=given.theta[order], score=SCORE[order], white=WHITE[np.ix_(order, order)])
    np.testing.assert_allclose(read(moved).mean, read(given).mean[order], rtol=1e-6)
    np.testing.assert_allclose(read(moved).cov, read(given).cov[np.ix_(order, order)], rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unsure": np.array([0.0, 0.9, 0.0])}, doubts.CURVATURE),
        ({"information": np.array([1.0, 0.1, 1.0])}, doubts.CLIPPING),
        ({"information": np.array([1.0, 9.0, 1.0])}, doubts.MODEL),
        ({"distance": np.array([0.0, np.nan, 0.0])}, doubts.CONVERGENCE),
    ],
)
def test_what_speaks_against_an_interval_is_said(change, words):
    found: Read = read(told())._replace(**change)
    assert doubts.doubts(found) == ("", words, "")
    assert doubts.doubts(found._replace(weights=(0.1, 1.0)))[0] == doubts.CURVATURE
