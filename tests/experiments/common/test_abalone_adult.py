"""Abalone and Adult as S2 has them (J10, J11)."""

import os

import numpy as np
import pytest

from bayesdp.experiments.common import abalone_adult


@pytest.mark.skipif(not os.environ.get("BAYESDP_DATA"), reason="BAYESDP_DATA is not set")
def test_the_data_are_s2s():
    split = abalone_adult.abalone()
    assert split.x.shape == (3341, 9)
    assert split.x_test.shape == (836, 9)
    assert (split.x[:, 0] == 1).all()
    assert not np.array_equal(split.y, abalone_adult.abalone(1).y)
    together = np.concatenate([split.x, split.x_test])[:, 1:]
    np.testing.assert_allclose(together.std(axis=0), 1, rtol=1e-4)
    assert split.public
    assert abalone_adult.adult().x.shape == (39073, 15)
