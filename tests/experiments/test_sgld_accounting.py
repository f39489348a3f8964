"""`sgld-stepsize` and `sgld-svhn` (SPEC J20, J23): the tables say what the specification says, and draw."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayesdp.data import load as load_data
from bayesdp.experiments import load, sgld_stepsize, sgld_svhn
from bayesdp.experiments.style import pick


@pytest.fixture(scope="module")
def steps():
    return sgld_stepsize.compute(epsilons=(0.1,), sizes=(10**4,), second_epsilons=(0.2,))


@pytest.fixture(scope="module")
def svhn():
    return sgld_svhn.compute(batches=(128, 2048))


def step(rows, **where):
    (row,) = pick(rows, **where)
    return row["step"]


def test_figure_one_at_the_papers_example(steps):
    rows = pick(steps, figure=1)
    assert step(rows, curve="Theorem 3") == pytest.approx(0.103)
    assert step(rows, curve="Wang et al.") == pytest.approx(1.4788895e-6)
    exact = {one: step(rows, curve="exact", schedule=one) for one in ("fixed", "decreasing")}
    assert 0.0051 < exact["fixed"] < 0.0052881
    assert 0.065 < exact["decreasing"] < 0.0760549
    (printed,) = pick(rows, curve="Theorem 3")
    assert printed["cost"] > 0.118  # what the limit of much noise says already
    # Section C's constants, computed as the paper says, are sound; they do not give the paper's 0.103.
    by_moments = {one: step(rows, curve="section C", schedule=one) for one in ("fixed", "decreasing")}
    assert all(by_moments[one] < exact[one] for one in exact)


def test_figure_two_falls_with_the_square_of_the_bound(steps):
    rows = pick(steps, figure=2)
    for way in ("paper", "sound"):
        values = np.array([step(rows, way=way, bound=bound) for bound in sgld_stepsize.BOUNDS])
        np.testing.assert_allclose(values * np.square(sgld_stepsize.BOUNDS), values[2], rtol=1e-12)


def test_svhn_costs_what_the_erratum_says(svhn):
    (accounted,) = pick(svhn, batch=128, epochs=1, noise="Algorithm 1", way="sound")
    assert accounted["noise_multiplier"] == pytest.approx(0.10413148188786399)
    assert accounted["epsilon"] > 100 * sgld_svhn.STATED
    (limit,) = pick(svhn, batch=128, epochs=20, noise="Algorithm 1", way="paper")
    assert limit["epsilon"] == pytest.approx(2.88, abs=5e-3)  # seemingly where 2.97 comes from
    for row in pick(svhn, way="sound"):
        (bare,) = pick(svhn, way="paper", **{name: row[name] for name in ("batch", "epochs", "noise")})
        assert row["epsilon"] > bare["epsilon"]


def test_more_noise_costs_less(svhn):
    for batch in (128, 2048):
        half, full = (pick(svhn, batch=batch, epochs=20, noise=n, way="sound")[0] for n in ("Algorithm 1", "posterior"))
        assert full["noise_multiplier"] == pytest.approx(half["noise_multiplier"] * math.sqrt(2))
        assert full["epsilon"] < half["epsilon"]


@pytest.mark.parametrize(("name", "panels"), [("sgld-stepsize", 3), ("sgld-svhn", 2)])
def test_they_draw(name, panels, request):
    rows = request.getfixturevalue({"sgld-stepsize": "steps", "sgld-svhn": "svhn"}[name])
    experiment = load(name)
    figure = Figure(figsize=experiment.SIZE, layout="constrained")
    experiment.draw(figure, rows)
    assert len(figure.axes) == panels
    assert all(axes.lines for axes in figure.axes)


def test_svhn_is_trained_on_where_it_is_asked_for():
    rows = sgld_svhn.compute(full=True, batches=(128,), chosen=load_data("digits"), steps=6)
    trained = [row for row in rows if row["curve"].endswith("trained")]
    assert [row["curve"] for row in trained] == ["SGLD, trained", "SGHMC, trained"]
    for row in trained:
        assert row["epsilon"] == pytest.approx(1.0, rel=0.01)
        assert 0 <= row["accuracy"] <= 1
        assert set(row) == set(rows[0])
