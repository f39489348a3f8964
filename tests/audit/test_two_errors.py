import numpy as np
import pytest

from bayesdp.accountant.rdp import Run
from bayesdp.audit.two_errors import Errors, two_errors
from bayesdp.errors import InputError
from bayesdp.estimate.binary import clopper_pearson_upper

JAX_PRIVACY = {0.5: 0.2902160193159151, 1.0: 0.6920876053767215, 2.0: 1.3303170278950467}
"""By shift: the ε of JAX-Privacy's auditing (2.3.0.dev0) at the threshold 2; benchmarks/audit_jax_privacy.py."""


def quantile_scores(count, shift):
    shares = (np.arange(count) + 0.5) / count
    return np.log(shares / (1 - shares)) + shift


@pytest.mark.parametrize("shift", JAX_PRIVACY)
def test_the_epsilon_of_two_error_rates_is_jax_privacys(shift):
    count, failure, delta = 5000, 0.05, 1e-5
    alarms = int(np.sum(quantile_scores(count, 0.0) >= 2))
    missed = int(np.sum(quantile_scores(count, shift) < 2))
    limits = [clopper_pearson_upper(one, count, failure / 2) for one in (alarms, missed)]
    assert Errors(*limits, count).epsilon(delta) == pytest.approx(JAX_PRIVACY[shift], abs=2e-6)


def test_bounds_of_a_known_pair_hold_and_come_near():
    """Gaussian plays, shift 1: ε(1e-5) is 4.377, the noise multiplier 1."""
    rng, beyond = np.random.default_rng(0), 0
    for _ in range(60):
        tested = two_errors(rng.normal(size=4000), rng.normal(size=4000) + 1, delta=1e-5, failure=0.05)
        beyond += tested.curve.false_alarms < 1 and 1 - tested.curve.missed > _power(tested.curve.false_alarms)
        assert tested.ratio.plays == tested.curve.plays == 2000
    assert beyond <= 8  # of 60, each with a chance of at most 5 %
    factor = two_errors(rng.normal(size=60000), rng.normal(size=60000) + 1, delta=1e-5, failure=0.05).curve.noise(
        (Run(1.0, 1.0, 1),), "add-remove"
    )
    assert 0.98 < factor < 1.06


def _power(alarms):
    from scipy.special import ndtr, ndtri

    return ndtr(ndtri(alarms) + 1)


def test_a_threshold_that_was_fitted_is_not_tried_on_the_same_plays():
    """Of plays that are all noise the best threshold of the first half says nothing in the second."""
    rng = np.random.default_rng(1)
    found = [
        two_errors(rng.normal(size=400), rng.normal(size=400), delta=1e-5, failure=0.05).ratio.epsilon(1e-5)
        for _ in range(100)
    ]
    assert np.sum(np.array(found) > 0) <= 12


def test_too_few_plays_are_refused():
    with pytest.raises(InputError, match="at least 4 plays"):
        two_errors(np.zeros(3), np.zeros(9), delta=1e-5, failure=0.05)
    with pytest.raises(InputError):
        two_errors(np.full(9, np.nan), np.zeros(9), delta=1e-5, failure=0.05)
