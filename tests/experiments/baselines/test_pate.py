"""PATE: what it promises whatever the data, what for these votes, and that the student learns."""

import json
import math

import numpy as np
import pytest

from bayesdp.divergence.hockey_stick import gaussian_epsilon
from bayesdp.errors import InputError
from bayesdp.experiments.baselines.pate import PATE, linear

PLAN = PATE(teachers=40, classes=2, queries=200, answers=60, threshold=30, check_noise=12.0, label_noise=6.0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    y = (x @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=4000) > 0).astype(int)
    return (x[:3000], y[:3000]), x[3000:3500], (x[3500:], y[3500:])


@pytest.fixture(scope="module")
def taught(data):
    train, public, _ = data
    return PLAN.fit(train, public, seed=0)


def test_the_promise_to_everybody_is_the_closed_form():
    # 200 checks of shift 1/12 and 60 labels of shift √2/6: one Gaussian of their joint shift.
    shift = math.sqrt(200 / 12**2 + 60 * 2 / 6**2)
    found = PLAN.guarantee()
    assert (found.notion, found.sampling, found.sensitive) == ("dp", "none", False)
    assert gaussian_epsilon(1e-5, shift) <= found.epsilon <= 1.002 * gaussian_epsilon(1e-5, shift)
    # By Rényi orders: (200/(2·12²) + 60/6²) α, converted.
    assert PLAN.accountant().cost(5.0) == pytest.approx(4 * 5 * (200 / 288 + 60 / 36))


def test_calibration_keeps_the_promise_and_the_ratio():
    plan = PLAN.calibrate(1.0)
    assert 0.999 < plan.guarantee().epsilon <= 1.0
    assert plan.check_noise / plan.label_noise == pytest.approx(2)


def test_the_student_learns_and_queries_are_answered_where_teachers_agree(data, taught):
    _, public, (x, y) = data
    assert np.mean(taught.student(x) == y) > 0.9
    assert len(taught.labels) == len(taught.answered) == 60
    right = (public[taught.answered] @ [2.0, -1.0, 0.5] > 0).astype(int)
    assert np.mean(taught.labels == right) > 0.95


def test_these_votes_cost_less_and_the_number_is_marked_private(taught):
    everybody, here = taught.guarantees
    assert everybody == PLAN.guarantee()
    assert (here.notion, here.ex_post, here.sensitive, here.orientation) == ("per-instance", True, True, "present")
    assert any("private itself" in words for words in here.assumptions)
    assert 0 < here.epsilon < everybody.epsilon


def test_teachers_who_do_not_agree_cost_as_much_as_any(data):
    (x, _), public, _ = data
    coin = np.random.default_rng(1).integers(0, 2, len(x))
    plan = PATE(teachers=40, classes=2, queries=50, answers=50, threshold=0, check_noise=12.0, label_noise=6.0)
    noisy = plan.fit((x, coin), public, seed=0)
    agreed = plan.fit((x, np.ones(len(x), int)), public, seed=0)
    assert agreed.guarantees[1].epsilon < 0.5 * noisy.guarantees[1].epsilon
    assert agreed.guarantees[0] == noisy.guarantees[0]  # what everybody is promised does not depend on votes
    assert (agreed.labels == 1).all()


def test_nothing_passes_a_threshold_out_of_reach(data):
    train, public, _ = data
    plan = PATE(teachers=5, classes=2, queries=20, answers=5, threshold=500, check_noise=2.0, label_noise=2.0)
    nobody = plan.fit(train, public, seed=0)
    assert len(nobody.labels) == 0
    assert (nobody.student(public) == 0).all()


def test_a_seed_repeats_it_and_the_report_says_so(data, taught, tmp_path):
    train, public, (x, y) = data
    again = PLAN.fit(train, public, seed=0)
    np.testing.assert_array_equal(again.labels, taught.labels)
    written = json.loads(
        taught.report(tmp_path / "r.json", metrics={"accuracy": np.mean(taught.student(x) == y)}).read_text()
    )
    text = json.dumps(written)
    assert "Confident-GNMax" in text
    assert "not private" in text
    assert "smooth sensitivity" in text
    assert taught.report(tmp_path / "r.html").stat().st_size > 1000


def test_a_teacher_without_records_has_a_vote():
    assert (linear(np.zeros((0, 2)), np.zeros(0, int))(np.zeros((3, 2))) == 0).all()
    assert (linear(np.zeros((2, 2)), np.ones(2, int))(np.zeros((3, 2))) == 1).all()


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"teachers": 1}, "teachers"),
        ({"classes": 1}, "classes"),
        ({"queries": 0}, "queries"),
        ({"answers": 201}, "answers"),
        ({"threshold": -1}, "threshold"),
        ({"check_noise": 0}, "check_noise"),
        ({"label_noise": 0}, "label_noise"),
        ({"delta": 0}, "delta"),
    ],
)
def test_bad_plans_are_refused(values, name):
    given = {f: getattr(PLAN, f) for f in PLAN.__dataclass_fields__} | values
    with pytest.raises(InputError, match=f"Expected {name} "):
        PATE(**given)


def test_bad_data_is_refused(data):
    (x, y), public, _ = data
    with pytest.raises(InputError, match="queries=200 inputs, got 10"):
        PLAN.fit((x, y), public[:10])
    with pytest.raises(InputError, match="Expected labels "):
        PLAN.fit((x, y + 1), public)
    with pytest.raises(InputError, match="a teacher's predictions"):
        PLAN.fit((x, y), public, learn=lambda a, b: lambda asked: np.full(len(asked), 7))
