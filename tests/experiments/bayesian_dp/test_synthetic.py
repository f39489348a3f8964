"""The synthetic gradients of S1's figures: their law, clipping, pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.experiments.bayesian_dp import synthetic


def test_coordinates_are_weibull_with_shape_one_half() -> None:
    draws = synthetic.gradients(200, 1000, np.random.default_rng(1)).ravel()
    for x in (0.01, 0.5, 2.0, 20.0):
        assert np.mean(draws > x) == pytest.approx(math.exp(-math.sqrt(x)), abs=5 * 0.5 / math.sqrt(draws.size))
    assert draws.mean() == pytest.approx(2, rel=0.03)


def test_clipping_keeps_directions_and_limits_norms() -> None:
    rows = synthetic.gradients(30, 20, np.random.default_rng(2))
    limit = float(np.median(synthetic.norms(rows)))
    cut = synthetic.clipped(rows, limit)
    assert synthetic.norms(cut).max() <= limit * (1 + 1e-12)
    small = synthetic.norms(rows) <= limit
    np.testing.assert_array_equal(cut[small], rows[small])
    factor = cut / rows
    np.testing.assert_allclose(factor, np.broadcast_to(factor[:, :1], factor.shape))


def test_all_pairs() -> None:
    rows = synthetic.gradients(50, 3, np.random.default_rng(3))
    distances = synthetic.pair_distances(rows)
    assert distances.shape == (1225,)
    assert distances[1] == pytest.approx(float(np.linalg.norm(rows[0] - rows[2])))


def test_fresh_norms_do_not_depend_on_how_they_are_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = synthetic.fresh_norms(100, 7, np.random.default_rng(4))
    monkeypatch.setattr(synthetic, "_CHUNK", 21)
    np.testing.assert_array_equal(synthetic.fresh_norms(100, 7, np.random.default_rng(4)), whole)


@pytest.mark.parametrize("bad", [(0, 3), (3, 0), (2.5, 3), (-1, 3)])
def test_bad_counts(bad: tuple[float, float]) -> None:
    for make in (synthetic.gradients, synthetic.fresh_norms):
        with pytest.raises(InputError, match=r"records|dimensions"):
            make(*bad, np.random.default_rng(0))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="clip_norm"):
        synthetic.clipped(np.ones((2, 2)), 0.0)
