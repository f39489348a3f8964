"""A job on an own table pays for what was not declared: in its noise, its promises and its folder."""

import dataclasses
import subprocess
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from bayesdp import InputError
from bayesdp.data.payment import MOST_SHARE, NOISE_OF_RECORDS, SHARE, payment_of
from bayesdp.divergence.hockey_stick import gaussian_epsilon
from bayesdp.jobs import data_source
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.posterior_job import PosteriorJob
from bayesdp.jobs.prepared_sgd import prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder

ROWS, EPSILON, DELTA = 6000, 3.0, 1e-5


@pytest.fixture(autouse=True, scope="module")
def _as_for_users():
    """The default of the package, which other tests do not take: see tests/conftest.py."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(data_source, "OWN_SCALE", "private")
        yield


def test_the_default_is_to_pay():
    """In a process of its own: no test has touched it there."""
    told = "from bayesdp.jobs.data_source import OWN_SCALE; print(OWN_SCALE)"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "private\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    age, job = rng.integers(18, 90, ROWS), rng.choice(["clerk", "cook"], ROWS)
    rich = np.where(age + rng.normal(0, 20, ROWS) > 50, "yes", "no")
    path = tmp_path_factory.mktemp("own") / "people.csv"
    path.write_text("\n".join(["age,job,rich", *map(",".join, zip(map(str, age), job, rich, strict=True))]))
    return path


def a_job(table, **options):
    source = {name: options.pop(name) for name in ("scale", "scale_share", "bounds", "levels") if name in options}
    plan = {"epsilon": EPSILON, "delta": DELTA, "steps": 20, "seed": 4, "engine": "rdp", "members": 100}
    plan |= {"noise_schedule": "constant"} | options
    return SGDJob(data=DataSource.given(str(table), target="rich", **source), **plan)


@pytest.fixture(scope="module")
def ready(table):
    return prepare(a_job(table))


def test_an_own_file_is_prepared_privately_unless_something_else_is_said(table, ready):
    assert ready.job.data.scale == "private"
    assert ready.job.paid == ready.data.paid
    assert ready.data.paid.histograms == 2 + 1 + 4
    assert DataSource.given("breast-cancer").scale is None
    taken = prepare(a_job(table, scale="public-statistics"))
    assert taken.job.paid is None
    assert taken.plan.prelude is None


def test_the_share_is_what_the_release_alone_would_cost(ready):
    paid = ready.data.paid
    shift = paid.histograms**0.5 / paid.noise_std
    assert gaussian_epsilon(DELTA, shift) == pytest.approx(SHARE * EPSILON, rel=1e-9)
    assert gaussian_epsilon(DELTA, shift) <= SHARE * EPSILON
    more = payment_of(epsilon=EPSILON, delta=DELTA, share=0.5, adjacency="add-remove", held_out=0, records=5000)
    assert more.noise_multiplier < 0.25 * paid.noise_multiplier
    # Exchanging a record moves counts by √2 of adding one, and the accountant's unit by 2.
    other = payment_of(epsilon=EPSILON, delta=DELTA, share=None, adjacency="replace-one", held_out=0, records=5000)
    assert other.noise_std(8) == pytest.approx(2**0.5 * paid.noise_multiplier * 8**0.5, rel=1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_few_records_or_many_columns_pay_more_for_counts_that_stand_out(adjacency):
    def payment(records, share=None):
        return payment_of(epsilon=EPSILON, delta=DELTA, share=share, adjacency=adjacency, held_out=0, records=records)

    unit = 1 if adjacency == "add-remove" else 2
    for records, histograms in ((100_000, 20), (1500, 20), (300, 60), (20, 4000)):
        paid = payment(records).for_histograms(histograms)
        share = gaussian_epsilon(DELTA, unit / paid.noise_multiplier) / EPSILON
        assert SHARE * (1 - 1e-9) <= share <= MOST_SHARE
        if share < MOST_SHARE * (1 - 1e-6):
            assert paid.noise_std(histograms) <= NOISE_OF_RECORDS * records * (1 + 1e-9)
        assert paid.for_histograms(2 * histograms) == paid  # it is settled
    assert share == pytest.approx(MOST_SHARE, rel=1e-6)
    assert payment(300, share=0.2).for_histograms(60) == payment(300, share=0.2)


def test_both_together_keep_epsilon_by_dp_accounting(ready):
    plan, independent = ready.plan, PLDAccountant()
    independent.compose(dp_accounting.GaussianDpEvent(ready.data.paid.noise_multiplier))
    step = dp_accounting.PoissonSampledDpEvent(plan.sampling_rate, dp_accounting.GaussianDpEvent(plan.noise_multiplier))
    independent.compose(step, plan.steps)
    assert plan.delta + plan.prelude_delta == pytest.approx(DELTA, rel=1e-12)
    assert plan.prelude_delta == ready.data.paid.delta > 0
    assert 0.85 * EPSILON < independent.get_epsilon(plan.delta) <= EPSILON  # by Rényi accounting, which is looser


def test_who_comes_back_finds_the_same_ranges_and_pays_once(table, tmp_path, ready):
    folder = RunFolder.make(tmp_path / "run")
    ready.job.write(folder)
    again = prepare(SGDJob.read(folder))
    assert again.job == ready.job
    assert again.data.recipe == ready.data.recipe
    np.testing.assert_array_equal(again.data.places, ready.data.places)
    np.testing.assert_array_equal(again.holdout.x, ready.holdout.x)


def test_without_a_seed_the_noise_is_new_every_time(table):
    one, other = (prepare(a_job(table, seed=None)).data.recipe for _ in range(2))
    assert one != other


def test_a_number_of_records_that_is_declared_decides_alone(table, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text(table.read_text() + "\n44,cook,yes")
    one, other = (prepare(a_job(path, num_records=8000)) for path in (table, more))
    assert one.job.paid == other.job.paid
    assert one.plan.noise_multiplier == other.plan.noise_multiplier


def test_what_is_declared_is_kept_with_the_job(table, tmp_path):
    known = {"bounds": (("age", 0.0, 110.0),), "levels": (("job", ("cook", "clerk")), ("rich", ("no", "yes")))}
    ready, folder = prepare(a_job(table, **known)), RunFolder.make(tmp_path / "run")
    assert ready.job.paid is None
    ready.job.write(folder)
    assert SGDJob.read(folder) == ready.job


def test_a_secret_posterior_has_nothing_to_pay_with(table):
    job = PosteriorJob(data=DataSource.given(str(table), target="rich"), model="logistic", method="posterior-vi")
    with pytest.raises(InputError, match="Nothing pays for noisy counts"):
        job.settled(job.load())


def test_shares_must_be_shares_of_a_private_preparation(table):
    with pytest.raises(InputError, match="scale_share"):
        a_job(table, scale_share=1.0)
    with pytest.raises(InputError, match="to come with scale='private'"):
        a_job(table, scale="none", scale_share=0.2)
    assert dataclasses.replace(a_job(table), epsilon=None, noise_multiplier=1.0).payment(100, 0.2).noise_multiplier > 0
