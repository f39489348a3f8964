"""Watched records come back from JSON, and every one has its loss."""

import math

import pytest

from bayesdp.errors import InputError
from bayesdp.report.watched import WatchedRecords


def test_it_comes_back_from_json():
    one = WatchedRecords(names=("record 7", "record 9"), epsilon=(0.5, math.inf))
    assert WatchedRecords.from_dict(one.to_dict()) == one


@pytest.mark.parametrize("wrong", [{"names": ()}, {"epsilon": (1.0,)}, {"epsilon": (1.0, -1.0)}])
def test_bad_fields_are_refused(wrong):
    with pytest.raises(InputError):
        WatchedRecords(**({"names": ("a", "b"), "epsilon": (1.0, 2.0)} | wrong))
