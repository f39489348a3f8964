"""Figure 1 of S1 (J1): the paper's numbers in the paper's way, and the sound way beside them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from curves import epsilon
from pictures import drawn

from bayesdp.experiments.bayesian_dp import fig1


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return fig1.compute(0, sigmas=(0.55, 0.85, 1.35))


def test_dp_as_printed(rows: list[dict[str, Any]]) -> None:
    assert epsilon(rows, way="dp", curve="as printed", sigma=0.55) == pytest.approx(34.61, abs=0.005)
    assert epsilon(rows, way="dp", curve="as printed", sigma=0.85) == pytest.approx(10.59, abs=0.005)


@pytest.mark.parametrize(
    ("sigma", "indicative", "within"), [(0.55, (12.0, 11.7, 10.4), 1.4), (0.85, (1.01, 0.90, 0.48), 0.45)]
)
def test_bayesian_as_printed_is_near_the_indicative_values(
    rows: list[dict[str, Any]], sigma: float, indicative: tuple[float, ...], within: float
) -> None:
    """Within the spread over eight seeds: 11.6-12.1, 11.6-12.1, 10.6-11.8 at 0.55."""
    found = [epsilon(rows, way="paper", sigma=sigma, quantile=q) for q in fig1.QUANTILES]
    np.testing.assert_allclose(found, indicative, atol=within)
    assert found == sorted(found, reverse=True)
    assert found[0] < epsilon(rows, way="dp", curve="as printed", sigma=sigma)


def test_one_fixed_order_has_a_floor(rows: list[dict[str, Any]]) -> None:
    floor = math.log(1e5) / 24
    at_most_noise = epsilon(rows, way="paper", sigma=1.35, quantile=0.5)
    assert floor < at_most_noise == pytest.approx(0.4797, abs=1e-4)


def test_the_papers_gap_is_not_there(rows: list[dict[str, Any]]) -> None:
    """Printed: BDP a third of DP. Sound, at C below the median: almost everybody is at C, so no gap."""
    for sigma in (0.55, 0.85):
        printed = epsilon(rows, way="paper", sigma=sigma, quantile=0.01)
        assert printed < 0.4 * epsilon(rows, way="dp", curve="as printed", sigma=sigma)
        dp = epsilon(rows, way="dp", curve="tail", sigma=sigma)
        assert dp <= epsilon(rows, way="sound", curve="tail", sigma=sigma, quantile=0.01) <= dp + 0.01
        exact = epsilon(rows, way="dp", curve="exact", sigma=sigma)
        assert epsilon(rows, way="sound", curve="exact", sigma=sigma, quantile=0.01) == exact


def test_rows_are_complete(rows: list[dict[str, Any]]) -> None:
    assert {row["way"] for row in rows} == {"paper", "sound", "dp"}
    assert all(list(row) == list(rows[0]) and 0 < row["epsilon"] < math.inf for row in rows)


def test_the_picture_has_axes_and_a_legend(rows: list[dict[str, Any]]) -> None:
    figure = drawn("bdp-fig1", rows)
    assert len(figure.legends) == 1
    assert len(figure.axes) == len(fig1.QUANTILES)
    assert all(axes.get_xlabel() and axes.get_title() for axes in figure.axes)


def test_same_seed_same_rows() -> None:
    again, other = (fig1.compute(seed, sigmas=(0.85,), people=500) for seed in (3, 4))
    assert again == fig1.compute(3, sigmas=(0.85,), people=500)
    assert again != other
