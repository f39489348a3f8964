"""A charge is checked, and comes back from plain values as it was."""

import json
import math

import pytest

from bayesdp import InputError
from bayesdp.ledger import Charge, Selection

CHARGES = [
    Charge(run="a", steps=((1.1, 0.01, 1000), (2.0, 1, 3)), source="people", looks=("test accuracy",)),
    Charge(run="b", what="samples", epsilon=math.inf),
    Charge(run="c", epsilon=0.5, delta=1e-6, adjacency="replace-one"),
    Charge(run="d", steps=((1.0, 0.5, 2),), selection=Selection("poisson", mean=3.0)),
]


@pytest.mark.parametrize("charge", CHARGES, ids=lambda one: one.run)
def test_it_comes_back(charge):
    assert Charge.from_dict(json.loads(json.dumps(charge.to_dict(), allow_nan=False))) == charge
    assert charge.bounded == (charge.run != "b")


@pytest.mark.parametrize(
    "bad",
    [
        {"run": ""},
        {"run": 3},
        {"steps": ((0, 0.1, 1),)},
        {"steps": ((1, 1.1, 1),)},
        {"steps": ((1, 0.1, 0),)},
        {"steps": ((1, 0.1),)},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"delta": 2},
        {"adjacency": "other"},
        {"looks": (1,)},
        {"selection": Selection(), "epsilon": 1.0},
    ],
    ids=str,
)
def test_bad_input(bad):
    with pytest.raises(InputError):
        Charge(**({"run": "a"} | bad))


def test_other_keys_and_kinds_are_refused():
    good = CHARGES[0].to_dict()
    for bad in ({}, good | {"more": 1}, good | {"steps": 3}, good | {"selection": {"law": "x"}}, good | {"looks": 5}):
        with pytest.raises(InputError):
            Charge.from_dict(bad)
