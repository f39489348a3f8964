"""Noise of a label is normal, its own, and the same again."""

import numpy as np
from scipy import stats

from bayesdp.data.preparation.secret_normals import secret_normals


def test_noise_is_standard_normal():
    drawn = secret_normals(2**200 + 1, "bins 'age'", 20_000)
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03


def test_each_label_and_each_secret_has_its_own_and_finds_it_again():
    one = secret_normals(7, "a", 1000)
    np.testing.assert_array_equal(one, secret_normals(7, "a", 1000))
    for other in (secret_normals(7, "b", 1000), secret_normals(8, "a", 1000)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.12
