"""What follows from noisy counts, and how much noise is in them."""

import math

import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.report.paid import BOUND, GRID, PaidMetrics, sensitivity_of


def paid(**changes):
    values = {"kind": "classes", "epsilon": 0.5, "sensitivity": 1, "counts": (40, 30, 10, 20), "classes": ("no", "yes")}
    return PaidMetrics(**(values | changes))


def test_accuracy_and_the_constant_answer_follow_from_the_counts():
    found = paid().metrics()
    assert found["test accuracy, with noise"] == 0.7
    assert found["accuracy of a constant answer, with noise"] == 0.5
    # By simulation of the noise around these counts.
    rng = np.random.default_rng(0)
    a = math.exp(-0.5)
    noise = rng.geometric(1 - a, (2, 20_000, 4))
    noisy = 1000 * np.array([40, 30, 10, 20]) + noise[0] - noise[1]
    spread = (noisy[:, :2].sum(axis=1) / noisy.sum(axis=1)).std()
    large = paid(counts=(40_000, 30_000, 10_000, 20_000)).metrics()
    assert large["standard deviation of the noise in the accuracy"] == pytest.approx(spread, rel=0.05)
    assert paid().noise == pytest.approx((noise[0] - noise[1]).std(), rel=0.02)


def test_noise_may_leave_nothing_to_say():
    assert paid(counts=(-3, 1, 1, 0)).metrics() == {}
    assert paid(kind="errors", counts=(-1, 2, 3), classes=()).metrics() == {}
    assert paid(counts=(9, 9, -1, -1)).metrics()["test accuracy, with noise"] == 1.0  # never above


def test_errors_are_in_the_units_of_the_target():
    one = paid(kind="errors", counts=(100 * GRID, GRID, 4 * GRID), classes=(), scale=5.0, sensitivity=3 * GRID)
    found = one.metrics()
    assert found["test RMSE, with noise"] == pytest.approx(BOUND * 5 * 0.1)
    assert found["RMSE of a constant answer, with noise"] == pytest.approx(BOUND * 5 * 0.2)
    assert found["test R², with noise"] == pytest.approx(0.75)


def test_it_comes_back_from_json():
    assert PaidMetrics.from_dict(paid().to_dict()) == paid()


@pytest.mark.parametrize(
    "wrong", [{"counts": (1, 2, 3)}, {"epsilon": 0}, {"sensitivity": 0}, {"kind": "sums"}, {"classes": ()}]
)
def test_bad_fields_are_refused(wrong):
    with pytest.raises(InputError):
        paid(**wrong)


def test_sensitivities():
    assert [sensitivity_of("classes", one) for one in ("add-remove", "replace-one")] == [1, 2]
    assert sensitivity_of("errors", "replace-one") == 3 * GRID
