"""The demo's setting: it can say what it is meant to show."""

from __future__ import annotations

from bayesdp.jobs import demo
from bayesdp.jobs.sgd_job import SGDJob


def test_the_demo_is_private_unless_seeded() -> None:
    assert demo.job().seed is None
    assert demo.job(3).seed == 3
    assert isinstance(demo.job(), SGDJob)


def test_its_witnesses_are_enough_for_its_share() -> None:
    job = demo.job(0)
    settled = job.settled(job.data.load())
    assert settled.supported is not None
    assert settled.supported > max(job.coverage, 0.9)
    assert settled.steps is not None
    assert settled.steps <= 200
