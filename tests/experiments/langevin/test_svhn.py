"""`sgld-svhn` (J23, ERR 29): the table says what the erratum says, and draws."""

import math

import pytest
from pictures import drawn

from bayesdp.data import load as load_data
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.langevin import svhn


@pytest.fixture(scope="module")
def rows():
    return svhn.compute(batches=(128, 2048))


def test_svhn_costs_what_the_erratum_says(rows):
    (accounted,) = pick(rows, batch=128, epochs=1, noise="Algorithm 1", way="sound")
    assert accounted["noise_multiplier"] == pytest.approx(0.10413148188786399)
    assert accounted["epsilon"] > 100 * svhn.STATED
    (limit,) = pick(rows, batch=128, epochs=20, noise="Algorithm 1", way="paper")
    assert limit["epsilon"] == pytest.approx(2.88, abs=5e-3)  # seemingly where 2.97 comes from
    for row in pick(rows, way="sound"):
        (bare,) = pick(rows, way="paper", **{name: row[name] for name in ("batch", "epochs", "noise")})
        assert row["epsilon"] > bare["epsilon"]


def test_more_noise_costs_less(rows):
    for batch in (128, 2048):
        half, full = (pick(rows, batch=batch, epochs=20, noise=n, way="sound")[0] for n in ("Algorithm 1", "posterior"))
        assert full["noise_multiplier"] == pytest.approx(half["noise_multiplier"] * math.sqrt(2))
        assert full["epsilon"] < half["epsilon"]


def test_it_draws(rows):
    figure = drawn("sgld-svhn", rows)
    assert len(figure.axes) == 2
    assert all(axes.lines for axes in figure.axes)


def test_svhn_is_trained_on_where_it_is_asked_for():
    rows = svhn.compute(full=True, batches=(128,), chosen=load_data("digits"), steps=6)
    trained = [row for row in rows if row["curve"].endswith("trained")]
    assert [row["curve"] for row in trained] == ["SGLD, trained", "SGHMC, trained"]
    for row in trained:
        assert row["epsilon"] == pytest.approx(1.0, rel=0.01)
        assert 0 <= row["accuracy"] <= 1
        assert set(row) == set(rows[0])
