import numpy as np
import pytest
from people_files import visits, write_people

from bayesdp import InputError, People
from bayesdp.jobs import people
from bayesdp.jobs.data_source import DataSource, Labelled
from bayesdp.jobs.prepared import gather
from bayesdp.jobs.sgd_job import SGDJob


def job(table, **more):
    options = {"target": "stay", "drop": ("days",), "person": "patient", "rows_per_person": 3, "test_share": 0.2}
    source = DataSource.given(str(table), **options)
    return SGDJob(**{"data": source, "noise_multiplier": 2.0, "model": "logistic", "seed": 0, **more})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("data") / "visits.csv", visits())


@pytest.fixture(scope="module")
def gathered(table):
    return gather(job(table, holdout=12, watch=("p7", "p3"), num_records=70))


def test_people_are_trained_on_held_out_and_watched(gathered):
    settled, data, holdout, watch, _ = gathered
    inside, names = people.trained_on(data), data.people.names
    assert isinstance(inside, People)
    assert people.count(inside) == data.size == len(people.numbers(data))
    assert inside.present.shape == (data.size, 3)
    assert inside.present.sum() == len(data.x)
    # N, how many are held out and asked as members follow from the declared number of people, not of rows.
    assert settled.expected_records == round(70 * 0.8) - 12
    assert settled.members == settled.expected_records
    assert 0 < people.count(holdout) < 30
    assert settled.watch == (names.index("p7") + 1, names.index("p3") + 1)
    assert people.called(data, settled.watch) == ["p7", "p3"]
    assert people.count(watch) == 2


def test_every_row_is_where_its_owner_is(table, gathered):
    _, data, holdout, watch, _ = gathered
    columns = visits()
    fever = np.array(columns["fever"], float)
    spread = data.recipe.columns[1]
    for records, names in (
        (people.trained_on(data), people.called(data, people.numbers(data))),
        (watch, ["p7", "p3"]),
    ):
        for line, present, name in zip(records.rows.x, records.present, names, strict=True):
            own = {round(one, 2) for one, who in zip(fever, columns["patient"], strict=True) if who == name}
            shown = line[present][:, 1] * spread.scale + spread.mean
            assert {round(float(one), 2) for one in shown} <= own
    everybody = {*people.called(data, people.numbers(data))}
    assert len(everybody) + people.count(holdout) < 60  # the rest are tested on


def test_records_stay_records(table):
    source = DataSource.given(str(table), target="stay", drop=("days", "patient"), test_share=0.2)
    plain = SGDJob(data=source, noise_multiplier=2.0, seed=0, watch=(5,), holdout=20)
    _, data, holdout, watch, _ = gather(plain)
    assert isinstance(people.trained_on(data), Labelled)
    assert isinstance(holdout, Labelled)
    assert isinstance(watch, Labelled)
    assert people.mapped(watch, lambda rows: rows.y.shape) == (1,)
    assert people.mapped(None, len) is None
    with pytest.raises(InputError, match="watch"):
        people.numbered(data, ["p7"])


def test_refusals_speak_of_people(table):
    with pytest.raises(InputError, match="There are 48 people to train on, and some must be left"):
        gather(job(table, holdout=900, draw=1, num_records=60))
    with pytest.raises(InputError, match=r"members to be at most .* the number of people to train on"):
        gather(job(table, members=100))
    with pytest.raises(InputError, match="'p999', which is nobody there"):
        gather(job(table, watch=("p999",)))
    with pytest.raises(InputError, match="budget_column to be left out beside person"):
        job(table, budget_column="days")


def test_people_are_reported_by_a_column_that_is_one_for_each(table, tmp_path):
    columns = visits()
    town = ["north" if int(name[1:]) % 3 else "south" for name in columns["patient"]]
    named = write_people(tmp_path / "towns.csv", {**columns, "town": town})
    _, data, holdout, _, groups = gather(job(named, holdout=12, groups="town"))
    held = people.count(holdout)
    assert len(groups) == held + data.size
    for name, group in zip(people.called(data, people.numbers(data)), groups[held:], strict=True):
        assert group == ("north" if int(name[1:]) % 3 else "south")
    with pytest.raises(InputError, match="one value for all rows of a person"):
        gather(job(named, holdout=12, groups="pulse"))
