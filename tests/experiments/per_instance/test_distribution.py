"""`instance-distribution` (J17, E14) on a few digits."""

import dataclasses

import pytest
from pictures import drawn

from bayesdp.data import load as load_data
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.per_instance import distribution, training
from bayesdp.experiments.per_instance.distribution import FULL, RUN, STEP, Setting, Size

SIZE = Size(
    epochs=12,
    base=Setting("base", "", model="logistic", batch=16),
    batches=(),
    epsilons=(100.0,),
    models=(),
    points=60,
    watched=40,
    chosen=load_data("digits"),
)


@pytest.fixture(scope="module")
def rows():
    return distribution.compute(size=SIZE)


def only(rows, **where):
    (row,) = pick(rows, **where)
    return row


def test_records_get_cheaper_while_training(rows):
    start, end = (
        only(rows, sweep="base", stage=stage, whose="all", order=8, who="10 %") for stage in ("initial", "final")
    )
    assert end["relative"] < start["relative"] <= 1 + 1e-5
    assert end["epsilon"] < start["epsilon"]
    assert end["accuracy"] > start["accuracy"] + 0.3


def test_right_records_are_cheaper_than_wrong_ones(rows):
    right, wrong = (
        only(rows, sweep="base", stage="final", whose=whose, order=8, who="half") for whose in ("right", "wrong")
    )
    assert right["epsilon"] <= wrong["epsilon"]
    assert right["records"] + wrong["records"] == SIZE.points


def test_every_order_is_costed_for_the_base_alone(rows):
    orders = {row["order"] for row in pick(rows, sweep="base", curve=STEP)}
    assert orders == set(distribution.ORDERS)
    assert {row["order"] for row in pick(rows, sweep="data")} == {training.ORDER}
    # Divergences grow with the order; the ε beside them is one and the same.
    final = [
        only(rows, sweep="base", stage="final", whose="all", order=order, who="half") for order in distribution.ORDERS
    ]
    costs = [row["divergence"] for row in final]
    assert costs == sorted(costs)
    assert len({row["epsilon"] for row in final}) == 1


def test_the_run_that_happened_is_asked_about_where_the_noise_changes(rows):
    asked = {(row["sweep"], row["dp"]) for row in pick(rows, curve=RUN)}
    assert asked == {("base", 10.0), ("training ε", 100.0)}
    for row in pick(rows, curve=RUN, who="most"):
        assert row["epsilon"] < 1.15 * row["dp"]


def test_the_full_size_has_all_of_the_papers_batches():
    assert [setting.model for setting in FULL.settings() if setting.data == distribution.PIXELS] == ["resnet20"]
    batches = {setting.batch for setting in FULL.settings()}
    assert batches == set(training.SIGMAS)
    assert dataclasses.replace(FULL, chosen=None).epochs == training.EPOCHS


def test_it_draws(rows):
    figure = drawn("instance-distribution", rows)
    assert len(figure.axes) == 10
    assert all(axes.lines for axes in figure.axes)
