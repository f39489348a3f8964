"""`plan`: what would be done for a shape, before any record is touched."""

import pytest

from bayesdp.jobs import defaults
from bayesdp.learn.goals import NOISE_OF_COLUMNS, Shape

SHAPE = ("--num-records", 400, "--features", 30, "--classes", 2, "--epsilon", 1)


def test_a_plan_is_shown_with_its_noise_and_what_was_measured(cli):
    result = cli("plan", *SHAPE, "--goal", "balanced")
    shown = " ".join(result.out.split())
    for words in (
        "Goal balanced: ",
        "150 steps, each with a record's chance of 0.8; clip norm ",
        "noise multiplier ",
        "DP ε = ",
        "at δ = 1e-05",
        "times the noise on their sum",
        "Measured, goal ",
        " % right, a constant answer ",
        defaults.MEMBERS_ALONE,
    ):
        assert words in shown, words


def test_json_has_the_numbers_and_keeps_the_promise(cli):
    found = cli("plan", *SHAPE, "--json").json
    assert [one["goal"] for one in found] == ["accuracy", "typical", "balanced"]
    assert all(0.99 < one["epsilon"] <= 1 for one in found)
    most = Shape(400, 30, 2).noise_of_columns  # less than where there are more records a column
    assert most < NOISE_OF_COLUMNS["classes"]
    assert all(one["noise_on_outputs"] < 1.05 * most for one in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--goal", "fame"), "Expected --goal to be one of"),
        (("--features", 0), "Expected --features to be a whole number >= 1"),
        (("--num-records", 1.5), "Expected --num-records to be a whole number"),
        (("--classes", -1), "Expected --classes to be a whole number >= 0"),
        (("--delta", 2), "Expected --delta"),
        (("--feature-norm", 0), "Expected --feature-norm"),
    ],
)
def test_bad_shapes_are_one_line(cli, change, said):
    assert said in cli("plan", *SHAPE, *change).refused()
