from collections import Counter

import numpy as np
import pytest
from people_files import visits, write_people

from bayesdp import InputError
from bayesdp.data import load
from bayesdp.data.people.grouping import Grouping

NAMES = [f"p{i % 12}" for i in range(60)]
PEOPLE = Grouping.of("patient", NAMES, 3, "the file")


def owners(dataset):
    held = len(dataset.x)
    return dataset.people.owner[:held], dataset.people.owner[held:]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("data") / "visits.csv", visits())


def test_people_are_numbered_as_they_appear():
    assert PEOPLE.names[:3] == ("p0", "p1", "p2")
    assert PEOPLE.owner[:3].tolist() == [0, 1, 2]
    assert PEOPLE.number("watch", "p4") == 5
    with pytest.raises(InputError, match="as the column 'patient' does, got 'q', which is nobody there"):
        PEOPLE.number("watch", "q")


def test_a_person_is_on_one_side_with_at_most_so_many_rows():
    train, test = PEOPLE.split(7, 0.4)
    assert not {*PEOPLE.owner[train]} & {*PEOPLE.owner[test]}
    assert {*PEOPLE.owner[train]} | {*PEOPLE.owner[test]} == {*range(12)}
    assert set(Counter(PEOPLE.owner[[*train, *test]].tolist()).values()) == {3}
    drawn = {tuple(row for row in PEOPLE.bounded(draw) if PEOPLE.owner[row] == 0) for draw in range(60)}
    assert len(drawn) > 5  # of ten
    assert {row for some in drawn for row in some} == {0, 12, 24, 36, 48}


def test_a_person_more_moves_nobody():
    more = Grouping.of("patient", [*NAMES, *["new"] * 9], 3, "the file")
    for draw in range(20):
        before, after = PEOPLE.split(draw, 0.4), more.split(draw, 0.4)
        new = {*range(60, 69)}
        assert [sorted({*side} - new) for side in after] == [side.tolist() for side in before]
        assert len(new & {*np.concatenate(after)}) == 3


def test_a_table_is_split_and_bounded_by_person(table):
    found = load(table, target="stay", drop=["days"], person="patient", rows_per_person=4, seed=1)
    inside, outside = owners(found)
    assert not {*inside} & {*outside}
    assert len({*inside, *outside}) == 60
    assert max(Counter(inside.tolist()).values()) == 4 == found.people.width
    assert (found.size, found.unit) == (len({*inside}), "person")
    assert not any("patient" in name for name in found.feature_names)
    left, (x, y) = found.set_apart(0.3, draw=5)
    assert not {*owners(left)[0]} & ({*inside} - {*owners(left)[0]})
    assert len(left.x) + len(x) == len(found.x)
    assert len(y) == np.isin(inside, [*({*inside} - {*owners(left)[0]})]).sum()
    words = " ".join(left.public)
    assert f"The number of people to train on, N = {left.size}, is public." in words
    assert "at most 4 rows" in words
    assert "record" not in words
    with pytest.raises(InputError, match="set_apart"):
        found.split(3, 0)


def test_an_npz_has_an_array_of_people(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(60, 8, 8)), "y": np.arange(60) % 2, "who": np.arange(60) % 12}
    np.savez(tmp_path / "images.npz", **arrays)
    found = load(tmp_path / "images.npz", person="who", rows_per_person=2, seed=0)
    assert (found.people.names[3], found.people.width, found.image_shape) == ("3", 2, (8, 8, 1))
    np.savez(tmp_path / "tested.npz", **arrays, x_test=arrays["x"][:7], y_test=arrays["y"][:7])
    fixed = load(tmp_path / "tested.npz", person="who")
    assert (len(fixed.x_test), fixed.size, len(fixed.x)) == (7, 12, 60)
    assert (owners(fixed)[1] == -1).all()


def test_bad_people_are_refused(table, tmp_path):
    columns = visits()
    cases = {
        "alone": (
            {**columns, "patient": ["p0"] * len(columns["stay"])},
            {},
            "at least 10 people in column 'patient', got 1",
        ),
        "missing": ({**columns, "patient": ["", *columns["patient"][1:]]}, {}, "none in line 2, column 'patient'"),
        "few": (columns, {"rows_per_person": 0}, "rows_per_person to be a whole number >= 1"),
        "other": (columns, {"person": "patients"}, "Did you mean 'patient'"),
        "learned": (columns, {"person": "stay"}, "a column that is not learned from"),
        "nobody": (columns, {"person": None, "rows_per_person": 3}, "rows_per_person to come with person"),
    }
    for name, (table_, options, words) in cases.items():
        path = write_people(tmp_path / f"{name}.csv", table_)
        with pytest.raises(InputError, match=words):
            load(path, target="stay", **{"person": "patient", **options})
    with pytest.raises(InputError, match="which is prepared in a fixed way"):
        load("digits", person="patient")
    np.savez(tmp_path / "short.npz", x=np.zeros((40, 2)), y=np.arange(40) % 2, who=np.arange(39))
    for name, words in (("who", "one for each of the 40 records"), ("whom", "to name an array of")):
        with pytest.raises(InputError, match=words):
            load(tmp_path / "short.npz", person=name)
