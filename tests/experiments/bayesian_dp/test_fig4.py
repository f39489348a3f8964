"""Figure 4 of S1 (J4, I-2), to the printed digits."""

from __future__ import annotations

import numpy as np
import pytest
from curves import epsilon

from bayesdp.experiments.bayesian_dp import fig4
from bayesdp.experiments.common.style import pick


@pytest.mark.parametrize(
    ("clip", "values"),
    [
        (1.0, {1: 11.532476, 2: 5.7858725, 8: 1.5289373, 16: 12292.663, 32: 94429.687}),
        (0.7, {1: 11.52012, 8: 1.4716766, 16: 0.78147225, 32: 10281.186}),
        (0.1, {1: 11.51304, 8: 1.4396303, 32: 0.3616663, 49: 0.23781785, 256: 0.059706563, 512: 0.051978819}),
    ],
)
def test_sweep(clip: float, values: dict[int, float]) -> None:
    np.testing.assert_allclose(fig4.at_lambda(clip, list(values)), list(values.values()), rtol=5e-8)


@pytest.mark.parametrize(
    ("clip", "lam", "value"),
    [(1.0, 12, 1.10646818056), (0.7, 26, 0.543146467015), (0.1, 400, 0.0518080572362)],
)
def test_best(clip: float, lam: int, value: float) -> None:
    assert fig4.at_lambda(clip, [lam])[0] == pytest.approx(value, rel=5e-12)


def test_best_whole_orders() -> None:
    """I-2 says "about 400" for C = 0.1; the best whole λ is 447, 0.6 % lower."""
    lambdas = np.arange(1, 600)
    best = [int(lambdas[np.argmin(fig4.at_lambda(clip, lambdas.tolist()))]) for clip in fig4.CLIPS]
    assert best == [447, 26, 12]


def test_table() -> None:
    rows = fig4.compute()
    for clip in fig4.CLIPS:
        printed = min(row["epsilon"] for row in pick(rows, clip_norm=clip, way="paper"))
        tail_best = min(row["epsilon"] for row in pick(rows, clip_norm=clip, way="sound", curve="tail"))
        stick = min(row["epsilon"] for row in pick(rows, clip_norm=clip, way="sound", curve="hockey-stick"))
        exact = epsilon(rows, clip_norm=clip, way="dp")
        assert exact < stick < tail_best <= printed
