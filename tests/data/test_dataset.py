import dataclasses

import numpy as np
import pytest

import bayesdp.data as data
from bayesdp.errors import InputError


def small(n=50, **changes):
    fields = {
        "name": "small",
        "task": "classification",
        "x": np.arange(2 * n, dtype=np.float32).reshape(n, 2),
        "y": np.arange(n, dtype=np.int32) % 2,
        "x_test": np.zeros((3, 2), np.float32),
        "y_test": np.zeros(3, np.int32),
        "classes": ("no", "yes"),
        "public": ("Something is public.",),
    }
    return data.Dataset(**(fields | changes))


def test_split_takes_holdout_records_out_and_loses_none():
    whole = small()
    rest, (x, y) = whole.split(holdout=20, seed=3)
    assert rest.x.shape == (30, 2)
    assert x.shape == (20, 2)
    assert y.shape == (20,)
    together = np.concatenate([rest.x, x])
    assert np.array_equal(together[np.argsort(together[:, 0])], whole.x)
    # Each record keeps its own label.
    for features, labels in ((rest.x, rest.y), (x, y)):
        assert np.array_equal(labels, (features[:, 0] / 2).astype(int) % 2)
    assert len(rest.x_test) == 3


def test_split_is_random_and_repeatable():
    whole = small(400)
    one, again, other = (whole.split(100, seed)[1][0] for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    generator = np.random.default_rng(1)
    assert np.array_equal(whole.split(100, generator)[1][0], one)
    # Every record is taken about as often: 200 draws of 100 in 400, standard deviation 6.1.
    times = np.zeros(400)
    for seed in range(200):
        times[(whole.split(100, seed)[1][0][:, 0] / 2).astype(int)] += 1
    assert times.min() > 25
    assert times.max() < 75


def test_coins_set_records_apart_one_by_one():
    whole = small(1000)
    rest, (x, y) = whole.set_apart(0.2, draw=7)
    assert len(rest.x) + len(x) == 1000
    assert 140 < len(x) < 260
    for features, labels in ((rest.x, rest.y), (x, y)):
        assert np.array_equal(labels, (features[:, 0] / 2).astype(int) % 2)
    assert np.array_equal(rest.places[: len(rest.x)], rest.x[:, 0] / 2)
    # A record's side is its own: with some of the others gone it is where it was.
    fewer = whole.subset(300, 0)
    _, (some, _) = fewer.set_apart(0.2, draw=7)
    assert {*some[:, 0]} == {*x[:, 0]} & {*fewer.x[:, 0]}
    assert not np.array_equal(whole.set_apart(0.2)[1][0], whole.set_apart(0.2)[1][0])
    with pytest.raises(InputError, match="share to leave some of the 50 training records"):
        small(50).set_apart(0.999999)
    with pytest.raises(InputError, match="share"):
        small(50).set_apart(1)


def test_places_stay_with_their_records():
    """Where a record stands in its source is known whatever was split off since."""
    rest, _ = small().split(holdout=20, seed=3)
    assert np.array_equal(rest.places[:30], rest.x[:, 0] / 2)
    assert rest.places[30:].tolist() == [50, 51, 52]
    shuffled = small(places=np.arange(53)[::-1])
    fewer = shuffled.subset(12, 0).split(holdout=2, seed=0)[0]
    assert np.array_equal(fewer.places[:10], 52 - fewer.x[:, 0] / 2)
    with pytest.raises(InputError, match="places with one number for each record"):
        small(places=np.arange(50))


def test_own_files_know_their_places(tmp_path):
    lines = [f"{row},{'yes' if row % 3 else 'no'}" for row in range(40)]
    (tmp_path / "own.csv").write_text("\n".join(["row,odd", *lines]))
    loaded = data.load(tmp_path / "own.csv", target="odd", scale="none", keep=["row"])
    assert np.array_equal(np.concatenate([loaded.x, loaded.x_test])[:, 0], loaded.places)


def test_the_sentence_on_the_number_of_records_follows_them():
    whole = small(1200)
    assert whole.public == ("The number of training records, N = 1,200, is public.", "Something is public.")
    assert whole.split(200, 0)[0].public[0] == "The number of training records, N = 1,000, is public."
    assert whole.subset(12, 0).public == ("The number of training records, N = 12, is public.", "Something is public.")
    replaced = dataclasses.replace(whole, x=whole.x[:, :1], x_test=whole.x_test[:, :1])
    assert replaced.public == whole.public


def test_subset_keeps_test_records_and_pairs():
    part = small().subset(7, seed=0)
    assert part.x.shape == (7, 2)
    assert len(part.x_test) == 3
    assert np.array_equal(part.y, (part.x[:, 0] / 2).astype(int) % 2)
    assert len(small().subset(50, seed=0).x) == 50


def test_arrays_are_read_only_and_the_given_ones_are_not_touched():
    x = np.ones((4, 2), np.float32)
    frozen = small(x=x, y=np.zeros(4, np.int32))
    with pytest.raises(ValueError, match="read-only"):
        frozen.x[0] = 2
    x[0] = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        frozen.name = "other"


@pytest.mark.parametrize("holdout", [0, -1, 50, 51, 1.5, "many", True])
def test_split_refuses(holdout):
    with pytest.raises(InputError, match=r"holdout.*There are 50 training records"):
        small().split(holdout, seed=0)


@pytest.mark.parametrize("call", [lambda d: d.subset(51, 0), lambda d: d.subset(0, 0), lambda d: d.subset(5, -1)])
def test_subset_refuses(call):
    with pytest.raises(InputError, match=r"Expected (n|seed)"):
        call(small())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.zeros(49, np.int32)}, "one label for each of the 50 records of x"),
        ({"y_test": np.zeros((3, 1), np.int32)}, "one label for each of the 3 records of x_test"),
        ({"x_test": np.zeros((3, 4), np.float32)}, r"x_test with records of shape \(2,\)"),
        ({"y": np.full(50, 2, np.int32)}, "number the 2 classes from 0"),
        ({"image_shape": (1, 2, 1)}, "image_shape to be the shape of a record"),
        ({"x": np.zeros((0, 2), np.float32), "y": np.zeros(0, np.int32)}, "at least one training record"),
        ({"task": "clustering"}, "task to be one of"),
    ],
)
def test_a_data_set_that_does_not_hold_together_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        small(**changes)
