"""Columns of one's own table that are not learned from: each record keeps its own cell, wherever it went."""

import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.jobs import prepared_sgd
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.jobs.table_column import table_with


@pytest.fixture
def table(tmp_path):
    """The ward follows from the only feature, so that a record can be recognised."""
    rng = np.random.default_rng(0)
    lines = [f"{place},{'north' if place % 3 else 'south'},{rng.integers(2)}" for place in range(300)]
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(["age,ward,ill", *lines]) + "\n")
    return path


def job(path, **others):
    source = DataSource(name=str(path), target="ill", drop=("ward",), keep=("age",), scale="none")
    return SGDJob(data=source, noise_multiplier=5.0, holdout=60, seed=3, **others)


def test_groups_follow_the_records_to_their_side(table):
    prepared = prepared_sgd.prepare(job(table, groups="ward"))
    members = np.array([5, 0, 17])
    ages = [*prepared.holdout.x[:, 0], *prepared.data.x[members, 0]]
    assert prepared.groups_of(members) == ["north" if round(age) % 3 else "south" for age in ages]
    assert len(prepared.groups) == len(prepared.holdout.x) + len(prepared.data.x)


def test_without_a_column_the_groups_are_the_classes(table):
    prepared = prepared_sgd.prepare(job(table))
    assert prepared.groups is None
    assert set(prepared.groups_of(np.arange(50))) == {"0", "1"}


def test_a_column_is_of_a_table_and_is_there(table):
    with pytest.raises(InputError, match="floor"):
        prepared_sgd.prepare(job(table, groups="floor"))
    with pytest.raises(InputError, match="unless the data are a table"):
        table_with("groups", "ward", DataSource(name="digits"))
