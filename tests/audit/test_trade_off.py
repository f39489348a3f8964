import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from bayesdp.accountant.rdp import Run
from bayesdp.attacker import true_positives
from bayesdp.audit.trade_off import TradeOff, accountant_of, least_epsilon, most_noise, with_noise

RATES = np.array([1e-4, 0.01, 0.1, 0.5, 0.9])


@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_the_lines_of_a_gaussian_step_are_its_trade_off_function(noise):
    curve = TradeOff.of_plan((Run(noise, 1.0, 1),), "add-remove")
    exact = ndtr(ndtri(RATES) + 1 / noise)
    found = np.array([curve.power(rate) for rate in RATES])
    assert (found >= exact * (1 - 1e-12)).all()
    np.testing.assert_allclose(found, exact, rtol=2e-3)
    for rate, power in zip(RATES, found, strict=True):
        assert curve.false_alarms(power) == pytest.approx(rate, rel=1e-6)


def test_the_lines_of_a_sampled_plan_are_above_both_of_its_directions():
    history = (Run(1.0, 0.1, 20), Run(2.0, 0.3, 5))
    laws, slack = accountant_of(history, "add-remove").loss_laws()
    assert len(laws) == 2
    worse = np.max([true_positives(law, RATES, slack) for law in laws], axis=0)
    found = np.array([TradeOff.of_plan(history, "add-remove").power(rate) for rate in RATES])
    assert (found >= worse * (1 - 1e-9)).all()
    np.testing.assert_allclose(found, worse, rtol=5e-3)


def test_a_promise_is_two_lines():
    curve = TradeOff.of_promise(math.log(3), 0.01)
    assert curve.power(0.1) == pytest.approx(0.31)
    assert 1 - curve.power(0.9) == pytest.approx((1 - 0.01 - 0.9) / 3)
    assert curve.refuted_by(0.1, 0.68)
    assert not curve.refuted_by(0.1, 0.70)


def test_the_least_epsilon_is_the_classical_one_in_both_directions():
    for alarms, missed in ((0.01, 0.6), (0.6, 0.01)):
        found = least_epsilon(lambda curve, a=alarms, b=missed: curve.refuted_by(a, b), 1e-3)
        assert found == pytest.approx(math.log((1 - 1e-3 - 0.6) / 0.01), abs=1e-5)
    assert least_epsilon(lambda curve: curve.refuted_by(0.5, 0.5), 1e-3) == 0


@pytest.mark.parametrize("factor", [0.5, 1.3, 7.0])
def test_the_factor_of_the_noise_is_found_from_the_refuted_side(factor):
    history, alarms = (Run(1.0, 1.0, 1),), 0.05
    missed = 1 - float(ndtr(ndtri(alarms) + 1 / factor))
    found = most_noise(lambda curve: curve.refuted_by(alarms, missed), history, "add-remove")
    assert factor * (1 - 1e-3) <= found <= factor * 1.02
    assert TradeOff.of_plan(with_noise(history, found), "add-remove").refuted_by(alarms, missed)


def test_a_coin_refutes_no_noise():
    assert most_noise(lambda curve: curve.refuted_by(0.5, 0.5), (Run(1.0, 1.0, 1),), "add-remove") is None
