"""ε by group: all groups hold together, against the true shares of known populations (H5)."""

import math

import numpy as np
import pytest
from scipy.stats import expon

from bayesdp.accountant import by_group
from bayesdp.accountant.coverage import covered
from bayesdp.errors import InputError

SCALES = {"a": 0.5, "b": 1.0, "c": 2.0, "d": 4.0}
SHARES = (0.1, 0.2, 0.3, 0.4)


def drawn(rng, count):
    """The group of each of `count` people, and their ε: exponential, its mean that of their group."""
    labels = rng.choice(list(SCALES), count, p=SHARES)
    return labels, rng.exponential([SCALES[one] for one in labels])


def broken(found, coverage):
    """Whether any group that is spoken for has a smaller share below its ε than it is said to have."""
    told = [one for one in found.groups if one.epsilon is not None]
    return any(expon.cdf(one.epsilon, scale=SCALES[one.name]) < coverage for one in told)


@pytest.mark.parametrize("sides", [("absent",), ("absent", "present")])
def test_all_groups_hold_together_as_often_as_is_said(sides):
    rng, failure, coverage, trials = np.random.default_rng(0), 0.2, 0.8, 1500
    wrong = careless = 0
    for _ in range(trials):
        people = {side: drawn(rng, 300) for side in sides}
        labels, losses = ({side: one[i] for side, one in people.items()} for i in (0, 1))
        found = by_group(losses, labels, delta=1e-5, coverage=coverage, failure=failure)
        wrong += broken(found, coverage)
        # Each group at the whole failure probability, as if it had been the only one.
        careless += any(
            expon.cdf(
                covered({side: losses[side][labels[side] == name] for side in sides}, coverage, failure, math.inf),
                scale=SCALES[name],
            )
            < coverage
            for name in SCALES
        )
    noise = 3 * math.sqrt(failure * (1 - failure) / trials)
    assert wrong / trials <= failure + noise
    assert careless / trials > failure + noise or len(sides) > 1  # the larger of two sides is on the safe side
    assert wrong > 0


def test_a_group_is_what_its_own_witnesses_say():
    rng = np.random.default_rng(1)
    people = {side: drawn(rng, 2000) for side in ("absent", "present")}
    labels, losses = ({side: one[i] for side, one in people.items()} for i in (0, 1))
    found = by_group(losses, labels, delta=1e-5, coverage=0.9, failure=1e-3, dp=2.5)
    assert [one.name for one in found.groups] == ["a", "b", "c", "d"]
    assert (found.delta, found.coverage, found.failure, found.dp) == (1e-5, 0.9, 1e-3, 2.5)
    for one in found.groups:
        own = {side: losses[side][labels[side] == one.name] for side in losses}
        assert one.epsilon == covered(own, 0.9, 1e-3 / 4)
        assert one.witnesses == {side: len(values) for side, values in own.items()}


def test_too_few_witnesses_speak_for_nobody():
    needed = by_group({"absent": np.ones(1)}, {"absent": ["x"]}, delta=1e-5, coverage=0.9, failure=1e-6).needed
    assert needed == math.ceil(math.log(1e-6) / math.log(0.9))
    for count, spoken in ((needed - 1, False), (needed, True)):
        found = by_group(
            {"absent": np.arange(1.0, count + 1)}, {"absent": ["x"] * count}, delta=1e-5, coverage=0.9, failure=1e-6
        )
        (one,) = found.groups
        assert one.epsilon == (count if spoken else None)
    # A group without witnesses on one side says nothing about that side.
    both = by_group(
        {"absent": np.ones(500), "present": np.ones(500)},
        {"absent": ["x"] * 500, "present": ["y"] * 250 + ["x"] * 250},
        delta=1e-5,
        coverage=0.9,
        failure=1e-6,
    )
    assert {one.name: one.epsilon for one in both.groups} == {"x": 1.0, "y": None}


def test_groups_stand_in_order_and_bad_input_is_refused():
    found = by_group({"absent": np.ones(4)}, {"absent": [10, 9, "b", "a"]}, delta=1e-5, coverage=0.5, failure=0.1)
    assert [one.name for one in found.groups] == ["9", "10", "a", "b"]
    with pytest.raises(InputError, match=r'one entry for each of the 4 witnesses "absent"'):
        by_group({"absent": np.ones(4)}, {"absent": ["x"]}, delta=1e-5, coverage=0.5, failure=0.1)
    with pytest.raises(InputError, match="at least one witness"):
        by_group({"absent": np.ones(0)}, {"absent": []}, delta=1e-5, coverage=0.5, failure=0.1)
    for bad in ({"delta": 0}, {"coverage": 1}, {"failure": 0}):
        with pytest.raises(InputError, match=next(iter(bad))):
            by_group(
                {"absent": np.ones(1)}, {"absent": ["x"]}, **{"delta": 1e-5, "coverage": 0.5, "failure": 0.1, **bad}
            )


def test_members_who_are_counted_need_no_failure_probability():
    labels = {"present": ["x"] * 10 + ["y"] * 3}
    losses = {"present": np.concatenate([np.arange(1.0, 11), [5.0, 7.0, 6.0]])}
    found = by_group(losses, labels, delta=1e-5, coverage=0.9, failure=1e-6, counted=("present",))
    assert [one.epsilon for one in found.groups] == [9.0, 7.0]
    assert found.failure == 0
    both = by_group(
        {"absent": np.ones(300), **losses},
        {"absent": ["x"] * 290 + ["y"] * 10, **labels},
        delta=1e-5,
        coverage=0.9,
        failure=1e-6,
        counted=("present",),
    )
    assert [one.epsilon for one in both.groups] == [9.0, None]
    assert both.needed == math.ceil(math.log(1e-6 / 2) / math.log(0.9))
