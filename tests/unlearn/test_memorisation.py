"""Membership advantage and memorisation: never below the truth of any pair, and reached by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import Guarantee, InputError
from bayesdp.unlearn import exposure, membership_advantage, memorisation


def promise(epsilon, delta=0.0, **more):
    return Guarantee(**{"notion": "dp", "epsilon": epsilon, "delta": delta, **more})


def stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@given(st.integers(0, 10**6), st.floats(0.0, 2.0))
def test_no_pair_of_laws_does_better(seed, epsilon):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(5), size=2)
    variation = float(np.abs(p - q).sum() / 2)
    remove, add = stick(p, q, epsilon), stick(q, p, epsilon)
    assert variation <= membership_advantage(promise(epsilon, min(1.0, max(remove, add)))) + 1e-12
    one_way = {"notion": "per-instance", "epsilon": epsilon, "sensitive": True}
    assert (
        variation <= membership_advantage(Guarantee(**one_way, delta=min(1.0, remove), orientation="present")) + 1e-12
    )
    assert variation <= membership_advantage(Guarantee(**one_way, delta=min(1.0, add), orientation="absent")) + 1e-12
    label = rng.random(5) < 0.5
    with_it, without = float(p[label].sum()), float(q[label].sum())
    both = promise(epsilon, min(1.0, max(remove, add)))
    assert with_it - without <= memorisation(both, min(1.0, without)) + 1e-12
    assert memorisation(both, min(1.0, without)) <= membership_advantage(both) + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_one_pair_reaches_it(epsilon, delta):
    """The pair that every (ε, δ) pair is a post-processing of."""
    e = math.exp(epsilon)
    p = np.array([delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0])
    found = membership_advantage(promise(epsilon, delta))
    assert found == pytest.approx(np.abs(p - p[::-1]).sum() / 2)
    assert found == pytest.approx((e - 1 + 2 * delta) / (e + 1))
    known = float(p[::-1][:2].sum())  # the event on which it is reached
    assert memorisation(promise(epsilon, delta), known) == pytest.approx(found)


def test_one_way_reaches_its_own():
    one = Guarantee(notion="per-instance", epsilon=1.0, delta=0.01, orientation="present", sensitive=True)
    assert membership_advantage(one) == pytest.approx(1 - 0.99 * math.exp(-1))
    assert memorisation(one, 0.99 * math.exp(-1)) == pytest.approx(1 - 0.99 * math.exp(-1))


def test_ends():
    assert membership_advantage(promise(0.0)) == 0
    assert membership_advantage(promise(math.inf)) == 1
    assert memorisation(promise(math.inf), 0.25) == 0.75
    assert memorisation(promise(800.0), 0.25) == 0.75
    assert memorisation(promise(1.0), 1.0) == 0


def test_exposure_in_words():
    found = exposure(Guarantee(notion="per-instance", epsilon=1.0, delta=1e-5, failure=0.05, sensitive=True))
    assert found.sensitive
    assert found.success == pytest.approx((1 + found.advantage) / 2)
    assert "at most 73.2 % of the time (advantage 0.463)" in found.words
    assert "per-instance ε = 1" in found.words
    assert "confidence 0.95" in found.words


def test_what_names_no_record_or_one_run_only_is_refused():
    bayesian = Guarantee(notion="bdp", epsilon=1.0, delta=1e-5, coverage=0.9, sensitive=True)
    ex_post = Guarantee(notion="per-instance", epsilon=1.0, delta=1e-5, ex_post=True, strength="strong", sensitive=True)
    for call in (membership_advantage, memorisation, exposure, lambda one: memorisation(one, 0.5)):
        with pytest.raises(InputError, match="names no record"):
            call(bayesian)
        with pytest.raises(InputError, match="averages over runs"):
            call(ex_post)
    with pytest.raises(InputError):
        memorisation(promise(1.0), 1.5)
