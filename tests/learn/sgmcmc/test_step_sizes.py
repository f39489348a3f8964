"""Schedules of step sizes: their shapes, few levels, and which iterates are kept."""

import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.learn.sgmcmc.step_sizes import KEPT, Cyclical, Decreasing, kept, shape


def test_decreasing_steps_follow_s4():
    found = shape("decreasing", 10_000)
    np.testing.assert_allclose(found, np.arange(1, 10_001) ** (-1 / 3), rtol=0.051)
    assert len(np.unique(found)) < 40
    assert found[0] == 1
    # I-11: Σ t^(-1/3), which the rounding of the sizes moves by less than one in a hundred.
    assert found.sum() == pytest.approx(695.2881726088048, rel=0.01)
    np.testing.assert_array_equal(shape(Decreasing(), 50), shape("decreasing", 50))


def test_cycles_begin_long_and_end_short():
    found = shape(Cyclical(3), 300)
    assert found[[0, 100, 200]].tolist() == [1, 1, 1]
    assert found[[99, 199, 299]].max() < 0.02
    assert len(np.unique(found)) < 55
    np.testing.assert_allclose(found[50], 0.5, rtol=0.051)


def test_what_is_kept():
    assert kept(1.0, 10, 4, 1).tolist() == [4, 5, 6, 7, 8, 9]
    assert kept(1.0, 10, None, 1).tolist() == [5, 6, 7, 8, 9]
    assert kept(1.0, 10, 5, 2).tolist() == [6, 8]
    assert len(kept(1.0, 10_000, 2_000, None)) == KEPT
    assert kept(Cyclical(2), 8, 2, 1).tolist() == [2, 3, 6, 7]
    assert kept("cyclical", 8, None, 1).tolist() == [1, 3, 5, 7]


def test_bad_input():
    with pytest.raises(InputError, match="num_warmup=5 and thin=6 to leave at least one of 10 steps"):
        kept(1.0, 10, 5, 6)
    with pytest.raises(InputError, match="cycles"):
        shape(Cyclical(5), 4)
    with pytest.raises(InputError, match="step_schedule"):
        shape("falling", 4)
    with pytest.raises(InputError, match="power"):
        Decreasing(0.0)
