"""The sound way of S1's figures: it covers whom it says, and spends δ and no more."""

from __future__ import annotations

import numpy as np
import pytest

from bayesdp.compose.ex_post import tail
from bayesdp.divergence import hockey_stick, replace_one, sgm
from bayesdp.errors import InputError
from bayesdp.experiments.bayesian_dp import sound, synthetic

RATE, DELTA = 1e-3, 1e-5


def test_covering_norm_covers() -> None:
    """Of 40 samples of 500 none falls short of its share (failure 1e-6 each)."""
    truth = np.sort(synthetic.fresh_norms(20_000, 10, np.random.default_rng(5)))
    for seed in range(40):
        norm = sound.norm_covering(0.9, synthetic.fresh_norms(500, 10, np.random.default_rng(100 + seed)))
        assert np.searchsorted(truth, norm, side="right") / len(truth) >= 0.9
    with pytest.raises(InputError, match="coverage"):
        sound.norm_covering(0.99, truth[:100])


def test_mean_is_between_the_population_and_the_worst_case() -> None:
    people = np.minimum(synthetic.fresh_norms(20_000, 10, np.random.default_rng(6)), 40) / 40
    found = sound.mean_epsilon(people[:2000], 1.0, sampling_rate=RATE, delta=DELTA)
    costs = sgm.cost(people, sound.ORDERS, sampling_rate=RATE)
    population = np.log(np.mean(np.exp(costs - costs.max(axis=0)), axis=0)) + costs.max(axis=0)
    assert float(tail(population, sound.ORDERS, DELTA).min()) < found
    worst = float(sound.tail_epsilon(np.array([1.0]), sampling_rate=RATE, delta=DELTA)[0])
    assert found <= worst + 0.01


def test_exact_values_spend_delta() -> None:
    shift = 1 / 1.1
    alone = float(sound.exact_epsilon(np.array([shift]), sampling_rate=RATE, delta=DELTA)[0])
    spent = [
        float(hockey_stick.sampled_delta(alone, shift, sampling_rate=RATE, direction=side))
        for side in ("remove", "add")
    ]
    assert max(spent) == pytest.approx(DELTA, rel=1e-6)
    assert max(spent) <= DELTA
    replaced = sound.exact_replace_one_epsilon(shift, sampling_rate=RATE, delta=DELTA)
    assert DELTA * (1 - 1e-6) < float(replace_one.hockey_stick(replaced, RATE, shift, shift)) <= DELTA
    assert replaced > alone
    assert sound.exact_replace_one_epsilon(0.001, sampling_rate=RATE, delta=DELTA) == 0


def test_tail_grid_is_near_the_best_order() -> None:
    for shift in (0.37, 0.6, 0.91, 1.5):
        every = np.arange(2.0, 260.0)
        best = float(tail(sgm.cost(shift, every, sampling_rate=RATE), every, DELTA).min())
        found = float(sound.tail_epsilon(np.array([shift]), sampling_rate=RATE, delta=DELTA)[0])
        assert best * (1 - 1e-12) <= found <= best * 1.08
