import dataclasses
import math

import numpy as np
import optax
import pytest
from scipy import stats

from bayesdp.audit.mechanism import AuditedPlan, scores
from bayesdp.errors import InputError
from bayesdp.learn import SGD
from bayesdp.mechanism import Mean


def plan(**fields):
    settings = {
        "sampling_rate": 1.0,
        "steps": 1,
        "clip_norm": 0.7,
        "noise_multiplier": 0.9,
        "optimizer": optax.sgd(1.0),
    }
    return SGD(**settings | fields)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_scores_of_one_step_have_the_law_of_the_likelihood_ratio(adjacency):
    """N(∓μ²/2, μ²) with μ = 1/z, or 2/z where a record is turned round."""
    audited = AuditedPlan.of(plan(adjacency=adjacency))
    shift = (1 if adjacency == "add-remove" else 2) / 0.9
    planted = audited.plant(np.array([[0.6, 0.8, 0.0]]))
    for coin, sign in ((0, -1), (1, 1)):
        found = scores(planted.by(np.array([coin])), 3000, 5 + coin)[:, 0]
        assert stats.kstest((found - sign * shift**2 / 2) / shift, "norm").pvalue > 1e-3
    assert audited.epsilon > 0


def test_scores_of_sampled_and_scheduled_steps_average_to_one_without_the_record():
    """E[e^S] = 1 of any likelihood ratio, S of whole runs with three levels of everything."""
    audited = AuditedPlan.of(
        plan(
            sampling_rate=0.3,
            steps=6,
            noise_schedule=((0.5, 1.5), (0.5, 1.0)),
            clip_schedule=((0.5, 1.0), (0.5, 0.4)),
            rate_schedule=((1 / 3, 1.0), (2 / 3, 0.5)),
        )
    )
    planted = audited.plant(np.eye(2)[:1])
    weights = np.exp(scores(planted.by(np.array([0])), 4000, 1)[:, 0])
    assert weights.mean() == pytest.approx(1, abs=4 * weights.std() / math.sqrt(len(weights)))
    there = scores(planted.by(np.array([1])), 4000, 2)[:, 0]
    assert np.exp(-there).mean() == pytest.approx(1, abs=0.1)
    assert there.mean() > 0


def test_the_step_that_is_audited_alone_has_the_least_noise_and_everybody():
    alone = AuditedPlan.of(plan(sampling_rate=0.1, steps=4, noise_schedule=(2.0, 1.0, 3.0, 2.0))).one_step()
    assert alone.history == ((0.9, 1.0, 1),)


def test_chains_are_steps():
    twice = AuditedPlan.of(plan(steps=3), chains=2)
    assert twice.history == ((0.9, 1.0, 6),)


@pytest.mark.parametrize(
    "fields",
    [{"clip_norm": None, "noise_multiplier": None, "noise_std": 1.0}, {"update": Mean(3)}],
    ids=["no clip", "mean"],
)
def test_a_plan_that_has_no_canaries_is_refused(fields):
    with pytest.raises(InputError, match=r"clips and adds noise|sum rule"):
        AuditedPlan.of(dataclasses.replace(plan(), **fields))
