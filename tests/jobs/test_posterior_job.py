"""Jobs for a posterior: plain values that survive a folder, settle from public quantities, and fit the target."""

import dataclasses

import numpy as np
import pytest

from bayesdp.data.recipe import Numeric, OneHot, TableRecipe
from bayesdp.errors import InputError
from bayesdp.jobs import defaults
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.plans import methods
from bayesdp.jobs.posterior_job import PosteriorJob
from bayesdp.jobs.resume import read_job
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models.table_models import OUTCOMES, family, outcome_of
from bayesdp.learn.second_order.newton import Newton
from bayesdp.learn.vi.vi import VI

CANCER = DataSource(name="breast-cancer")
JOB = PosteriorJob(
    data=CANCER, model="logistic", epsilon=2.0, sampling_rate=1.0, steps=120, engine="rdp", holdout=40, seed=3
)
RECIPE = TableRecipe((Numeric("age", 0.0, 1.0), OneHot("ward", ("a", "b")), Numeric("hours", 0.0, 1.0)))
NAMES = ("age", "ward=a", "ward=b", "hours")


@pytest.fixture(scope="module")
def data():
    return JOB.load()


@pytest.fixture(scope="module")
def settled(data):
    return JOB.settled(data)


def test_a_job_survives_its_file(tmp_path):
    own = DataSource(name="people.csv", target="rich", drop=("name",))
    secret = PosteriorJob(data=own, model="mixture", method="posterior-vi", components=3, radius=2.0, scales=(0.1, 1.0))
    for job in (JOB, secret):
        job.write(RunFolder(tmp_path))
        assert PosteriorJob.read(RunFolder(tmp_path)) == job == read_job(RunFolder(tmp_path))
    assert (tmp_path / "job.json").stat().st_mode & 0o077 == 0
    other = SGDJob(data=CANCER, epsilon=1.0)
    other.write(RunFolder(tmp_path))
    assert read_job(RunFolder(tmp_path)) == other
    with pytest.raises(InputError, match="to be 'bayesdp/fit-job'"):
        PosteriorJob.read(RunFolder(tmp_path))


def test_what_is_left_open_is_chosen_from_sizes_alone(data, settled):
    rng = np.random.default_rng(0)
    other = dataclasses.replace(
        data, x=rng.normal(size=data.x.shape).astype(np.float32), y=rng.integers(0, 2, len(data.y)).astype(np.int32)
    )
    assert JOB.settled(other) == settled
    assert settled.settled(data) == settled
    assert settled.plan().calibrate(2.0).noise_multiplier == settled.noise_multiplier
    assert isinstance(settled.plan(), VI)
    assert settled.plan().noise_aware  # there are steps enough
    assert (settled.members, settled.delta) == (415, 1e-5)
    # Noise that would carry the means beyond the prior makes for short steps.
    assert settled.wander(415) * settled.learning_rate <= 1.05
    assert "steps of" in settled.step_in_words


def test_the_method_follows_the_model(data):
    plain = PosteriorJob(data=CANCER, model="logistic", epsilon=2.0, engine="rdp", holdout=40, seed=3).settled(data)
    assert plain.method == "newton"
    assert plain.settled(data) == plain
    assert isinstance(plain.plan(), Newton)
    assert plain.plan().calibrate(2.0).noise_multiplier == plain.noise_multiplier
    known = plain.described(data).read_model(data.x, data.y)
    assert methods.suited("my_model.py:model", known, paced=False) == "newton"
    assert methods.suited("hierarchical", known, paced=False) == "vi"
    assert methods.suited("linear", dataclasses.replace(known, binary=False), paced=False) == "vi"
    assert methods.suited("logistic", dataclasses.replace(known, dim=500), paced=False) == "vi"
    with pytest.raises(InputError, match="Expected guide to be left out with method='newton'"):
        PosteriorJob(data=CANCER, model="logistic", epsilon=2.0, method="newton", guide="full-rank")


def test_steps_are_shortened_only_where_noise_asks_for_it():
    assert defaults.step_of_means(wander=2.0, paced=0.4) is None
    assert defaults.step_of_means(wander=20.0, paced=0.4) == 0.05


def test_samples_of_a_secret_posterior_are_widened_to_an_epsilon(data):
    job = PosteriorJob(
        data=CANCER, model="logistic", method="posterior-vi", epsilon=2.0, radius=1.0, scales=(0.2, 1.0), samples=3
    ).settled(data)
    assert job.holdout >= 138  # who can speak for nine in ten
    assert job.extra_std > 0
    plan = job.secret_plan()
    assert plan.calibrate(2.0, dim=31).extra_std == pytest.approx(job.extra_std, rel=1e-3)
    assert (plan.samples, plan.steps) == (3, 400)


def test_models_know_their_target():
    assert {name: outcome_of(name) for name in OUTCOMES} == OUTCOMES
    x, y = np.array([[1, 0, 1, 2], [3, 0, 0, 4]], np.float32), np.array([0.0, 2.0], np.float32)
    for name in ("poisson", "negative-binomial"):
        features, counts = family(name, NAMES, RECIPE).arguments(x, y)
        assert features[:, -1].tolist() == [1, 1]
        assert counts.dtype == np.int32
        assert family(name, NAMES, RECIPE).arguments(x, None)[1] is None
    group, rest, _ = family("hierarchical", NAMES, RECIPE, group="ward").arguments(x, y)
    assert group.tolist() == [1, 2]  # b, and one that was not seen
    assert rest.tolist() == [[1, 2], [3, 4]]
    assert len(family("mixture", NAMES, RECIPE, components=2).arguments(x, y)) == 1
    label = family("mixture", NAMES, RECIPE, components=2).label
    assert [label("weight", (0,)), label("mu", (1, 3)), label("tau", (1,))] == [
        "weight 1",
        "mean 2: hours",
        "variance 2",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "forest"}, "Expected model to be one of logistic"),
        ({"method": "mcmc"}, "method"),
        ({"epsilon": None}, "Expected epsilon .* or noise_multiplier, got neither"),
        ({"samples": 3}, "Expected samples to be left out with method='vi'"),
        ({"method": "posterior-vi"}, "Expected engine to be left out with method='posterior-vi'"),
        ({"method": "posterior-vi", "engine": "pld"}, "to come with radius and scales"),
        ({"group": "ward"}, "Expected group to be left out but for model='hierarchical'"),
        ({"scales": (2.0, 1.0)}, "scales"),
    ],
)
def test_jobs_that_cannot_be(change, said):
    with pytest.raises(InputError, match=said):
        dataclasses.replace(JOB, **change)
