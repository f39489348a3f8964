"""The largest Langevin step (F3, F8, I-11; M10): round trips, the test vectors, and that it is kept."""

import dataclasses
import math

import numpy as np
import pytest

from bayesdp.accountant import WorstCaseAccountant
from bayesdp.accountant.langevin.step_size import Langevin
from bayesdp.errors import InputError

MNIST = Langevin(records=60000, batch=128, steps=9375, bound=0.3, temperature=0.5)
EXAMPLE = Langevin(records=50000, batch=100, steps=10**4, bound=1.0, temperature=0.5)
SHORT = Langevin(records=1000, batch=20, steps=60, bound=2.0, schedule="decreasing")


def test_noise_of_a_step_is_that_of_the_vectors():
    assert MNIST.noise_multiplier(0.3) == pytest.approx(3.1801855679997013, rel=1e-14)
    posterior = dataclasses.replace(MNIST, temperature=1.0)
    assert posterior.noise_multiplier(0.3) == pytest.approx(4.497461561128363, rel=1e-14)
    svhn = Langevin(records=604388, batch=128, steps=1, bound=5.0, temperature=0.5)
    assert svhn.noise_multiplier(0.1) == pytest.approx(0.10413148188786399, rel=1e-13)


@pytest.mark.parametrize("step", [1e-9, 0.3, 50.0])
def test_step_and_noise_go_round(step):
    assert MNIST.step_size(MNIST.noise_multiplier(step)) == pytest.approx(step, rel=1e-14)


@pytest.mark.parametrize(
    ("engine", "temperature", "epsilon"), [("moments", 0.5, 0.3244060652), ("rdp", 0.5, 0.2436278)]
)
def test_epsilon_of_mnist_is_that_of_the_vectors(engine, temperature, epsilon):
    chain = dataclasses.replace(MNIST, temperature=temperature)
    assert chain.accountant(0.3, engine).epsilon(1e-5) == pytest.approx(epsilon, abs=5e-8)


@pytest.mark.parametrize(("batch", "pld", "rdp"), [(100, 0.00510, 0.004258), (500, 0.00521, 0.004321)])
def test_largest_fixed_step_of_the_papers_example(batch, pld, rdp):
    chain = dataclasses.replace(EXAMPLE, batch=batch)
    assert rdp < chain.largest_step(0.1, 1e-5, "rdp") < 1.001 * rdp
    step = chain.largest_step(0.1, 1e-5)
    # The vectors had fewer orders and a coarser grid, so its steps are a little smaller.
    assert pld < step < chain.limit_step(0.1, 1e-5)
    assert chain.limit_step(0.1, 1e-5) == pytest.approx(0.0052880069781537, rel=1e-10)
    assert chain.accountant(step).epsilon(1e-5) <= 0.1 < chain.accountant(step * 1.001).epsilon(1e-5)


def test_a_large_noise_limit_of_decreasing_steps_is_that_of_the_vectors():
    chain = dataclasses.replace(EXAMPLE, schedule="decreasing")
    assert float(chain.shape.sum()) == pytest.approx(695.2881726088048, rel=1e-14)
    assert chain.limit_step(0.1, 1e-5) == pytest.approx(0.07605489617797558, rel=1e-10)


def test_twice_the_temperature_is_twice_the_step_and_a_bound_counts_squared():
    # S4 says that its bound is "approximately proportional to 1/L": z does not depend on L, so it is 1/L² exactly.
    step = EXAMPLE.largest_step(1.0, 1e-5, "rdp")
    warm = dataclasses.replace(EXAMPLE, temperature=1.0).largest_step(1.0, 1e-5, "rdp")
    loose = dataclasses.replace(EXAMPLE, bound=10.0).largest_step(1.0, 1e-5, "rdp")
    assert warm == pytest.approx(2 * step, rel=3e-4)
    assert loose == pytest.approx(step / 100, rel=3e-4)


class TestDecreasing:
    def test_stretches_cover_every_step_and_none_is_charged_too_little(self):
        for steps in (1, 5, 60, 10**4):
            chain = dataclasses.replace(SHORT, steps=steps)
            levels = np.repeat(*zip(*chain.levels, strict=True))
            assert len(levels) == steps
            assert (levels <= chain.shape**-0.5 * (1 + 1e-12)).all()
        excess = (levels**-2.0).sum() / chain.shape.sum() - 1
        assert 0 < excess < 0.07

    def test_it_is_above_an_account_of_every_single_step(self):
        exact = WorstCaseAccountant(engine="rdp")
        for share in SHORT.shape:
            exact.step(noise_multiplier=SHORT.noise_multiplier(0.05 * float(share)), sampling_rate=SHORT.rate)
        for order in (2.0, 8.0, 20.0):
            ours = SHORT.accountant(0.05).cost(order)
            assert exact.cost(order) <= ours <= 1.1 * exact.cost(order)

    def test_the_largest_first_step_is_kept(self):
        step = SHORT.largest_step(1.0, 1e-5, "moments")
        assert 0.999 < SHORT.accountant(step, "moments").epsilon(1e-5) <= 1.0
        fixed = dataclasses.replace(SHORT, schedule="fixed")
        assert step > fixed.largest_step(1.0, 1e-5, "moments")  # later steps are shorter, so the first may be longer


def test_replacing_a_record_allows_less():
    replaced = dataclasses.replace(MNIST, adjacency="replace-one")
    ratio = MNIST.largest_step(1.0, 1e-5, "rdp") / replaced.largest_step(1.0, 1e-5, "rdp")
    assert 2 < ratio < 4  # 4 in the limit of much noise
    assert MNIST.limit_step(1.0, 1e-5) == pytest.approx(4 * replaced.limit_step(1.0, 1e-5))


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"records": 0}, "records"),
        ({"batch": 0}, "batch"),
        ({"batch": 60001}, "batch"),
        ({"steps": 1.5}, "steps"),
        ({"bound": 0}, "bound"),
        ({"schedule": "cosine"}, "schedule"),
        ({"temperature": 0}, "temperature"),
        ({"adjacency": "swap"}, "adjacency"),
    ],
)
def test_bad_chains_are_refused(values, name):
    with pytest.raises(InputError, match=f"Expected {name} "):
        dataclasses.replace(MNIST, **values)


def test_bad_questions_are_refused():
    for step in (0, -1, math.nan):
        with pytest.raises(InputError, match="Expected step "):
            MNIST.noise_multiplier(step)
    with pytest.raises(InputError, match="Expected noise_multiplier "):
        MNIST.step_size(0)
    with pytest.raises(InputError, match="Expected epsilon "):
        MNIST.largest_step(0, 1e-5)
    with pytest.raises(InputError, match="Expected delta "):
        MNIST.largest_step(1, 1)
