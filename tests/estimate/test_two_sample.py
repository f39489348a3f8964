import itertools

import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.estimate.two_sample import kernel_test, mean_test


def test_the_p_value_of_means_is_that_of_all_permutations():
    one, other = np.array([0.1, 0.4, 0.9, 0.3]), np.array([1.1, 0.8, 1.4, 0.7])
    pooled = np.concatenate([one, other])
    gaps = [
        abs(pooled[list(chosen)].mean() - np.delete(pooled, chosen).mean())
        for chosen in itertools.combinations(range(8), 4)
    ]
    exact = np.mean(np.array(gaps) >= abs(one.mean() - other.mean()) - 1e-12)
    assert mean_test(one, other) == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("test", [mean_test, kernel_test])
def test_it_alarms_no_more_often_than_it_says(test):
    rng = np.random.default_rng(0)
    found = [test(rng.exponential(size=25), rng.exponential(size=40), seed) for seed in range(100)]
    assert np.sum(np.array(found) <= 0.1) <= 20


def test_each_sees_what_it_is_for():
    rng = np.random.default_rng(1)
    one, wide = rng.normal(size=600), 3 * rng.normal(size=500)
    assert kernel_test(one, wide) == pytest.approx(1e-3)
    assert mean_test(one, one[:300] + 0.5) == pytest.approx(1e-3)
    assert mean_test(np.ones(30), np.ones(20)) == 1
    assert kernel_test(np.ones(30), np.ones(20)) == 1


def test_too_few_are_refused():
    with pytest.raises(InputError, match="at least two"):
        mean_test([1.0], [1.0, 2.0])
