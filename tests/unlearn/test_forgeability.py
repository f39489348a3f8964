"""The statement that a model could have come from other data, and that it is about these data and no others."""

import json
import math

import numpy as np
import pytest

from bayesdp import Guarantee, InputError
from bayesdp.unlearn.forgeability import differences, statement

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6)
LEFT = (np.delete(X, 2, axis=0), np.delete(Y, 2))
CHECKPOINTS = [{"w": np.zeros(2)}, {"w": np.ones(2)}]
DP = Guarantee(notion="dp", epsilon=1.0, delta=1e-5, assumptions=("Fixed beforehand.",))


def made(**more):
    given = {"records": [3], "bound": DP, "data": LEFT, "checkpoints": CHECKPOINTS, "plan": {"steps": 2}}
    return statement(**{**given, **more})


def test_it_says_what_it_is_about():
    found = json.loads(json.dumps(made(), allow_nan=False))
    assert (found["records"], found["plan"]) == ([3], {"steps": 2})
    assert Guarantee.from_dict(found["bound"]) == DP
    assert "at most 73.2 % of the time (DP ε = 1, δ = 1e-05)" in found["claim"]
    assert found["assumptions"][0] == "Fixed beforehand."
    assert "does not say that the records were not used" in found["assumptions"][-1]
    assert found["sensitive"].startswith("Sensitive")


def test_who_has_the_data_can_check_it():
    found = json.loads(json.dumps(made()))
    assert differences(found, data=LEFT, checkpoints=CHECKPOINTS) == []
    assert differences(found, data=(X, Y), checkpoints=CHECKPOINTS) == ["data without the records"]
    assert differences(found, data=LEFT, checkpoints=CHECKPOINTS[::-1]) == ["checkpoints"]
    assert len(differences(found, data=(X, Y), checkpoints=CHECKPOINTS[1:])) == 2
    with pytest.raises(InputError, match="statement"):
        differences({"format": "other"}, data=LEFT, checkpoints=CHECKPOINTS)


def test_ex_post_speaks_for_this_run_alone():
    bound = Guarantee(notion="per-instance", epsilon=0.3, delta=1e-5, ex_post=True, strength="strong", sensitive=True)
    assert "ex-post, for this run alone" in made(bound=bound)["claim"]
    assert "%" not in made(bound=bound)["claim"]


def test_bad_input():
    with pytest.raises(InputError, match="seed"):
        made(seeded=True)
    for more in ({"records": []}, {"checkpoints": []}):
        with pytest.raises(InputError, match="at least one"):
            made(**more)
    for bound in (
        Guarantee(notion="bdp", epsilon=1.0, delta=1e-5, coverage=0.9),
        Guarantee(notion="dp", epsilon=math.inf, delta=1e-5),
    ):
        with pytest.raises(InputError, match="finite guarantee"):
            made(bound=bound)
