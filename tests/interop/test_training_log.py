"""A loop of one's own, told step by step."""

from __future__ import annotations

import numpy as np
import pytest

import bayesdp as bd
from bayesdp.errors import InputError
from bayesdp.interop.training_log import TrainingLog

NORMS = np.random.default_rng(0).gamma(2.0, 0.2, size=(5, 400))
STEP = {"noise_multiplier": 1.2, "sampling_rate": 0.05}


def _log(scale=1.0):
    log = TrainingLog(delta=1e-5, assumptions=("It was a loop.",))
    for row in NORMS:
        log.step(**STEP, clip_norm=scale, outsiders=scale * row, members=scale * row[:300], watched=scale * row[:2])
    return log


def test_the_promises_are_those_of_the_accountants():
    log, people, watched = _log(), bd.BayesianAccountant(cap=1.0), bd.InstanceAccountant(records=2, cap=1.0)
    dp = bd.WorstCaseAccountant()
    dp.step(**STEP, steps=5)
    for row in np.minimum(NORMS, 1):
        people.step(row, noise_std=1.2, sampling_rate=0.05)
        people.step(row[:300], noise_std=1.2, sampling_rate=0.05, orientation="present")
        watched.step(row[:2], noise_std=1.2, sampling_rate=0.05)
    found = log.guarantees
    assert [one.notion for one in found] == ["dp", "bdp", "per-instance", "per-instance"]
    assert found[0].epsilon == dp.epsilon(1e-5)
    assert found[1].epsilon == pytest.approx(people.guarantee(1e-5, 0.9).epsilon)
    np.testing.assert_allclose([one.epsilon for one in found[2:]], watched.epsilon(1e-5))
    np.testing.assert_allclose(log.curve().epsilon, people.curve(1e-5).epsilon)
    assert all("It was a loop." in one.assumptions for one in found)


def test_only_the_ratio_to_the_clip_norm_counts(tmp_path):
    for one, other in zip(_log().guarantees, _log(7.0).guarantees, strict=True):
        assert one.epsilon == pytest.approx(other.epsilon)
    assert "loop" in _log().report(tmp_path / "page.html").read_text()


def test_infinite_norms_are_clipped_and_others_refused():
    log = TrainingLog()
    log.step(**STEP, outsiders=[np.inf, 0.1])
    for wrong in ([np.nan, 0.1], [-1.0, 0.1], [0.1]):
        with pytest.raises(InputError):
            log.step(**STEP, outsiders=wrong)
    assert log.steps == log.population.steps == 1


def test_no_step_no_promise_and_no_step_too_many():
    log = TrainingLog(total_steps=1)
    with pytest.raises(InputError, match="a step before"):
        _ = log.guarantees
    log.step(**STEP)
    with pytest.raises(InputError, match="total_steps=1"):
        log.step(**STEP)
