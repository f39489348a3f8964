"""Trees of records: how many there are, whether they are of one form, and records of one form put together."""

import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.learn.records import checked, chosen, joined, like, records_of

DATA = {"x": np.arange(12.0, dtype=np.float32).reshape(4, 3), "y": np.arange(4, dtype=np.int32)}


def test_records_are_counted():
    assert records_of("data", DATA) == 4
    assert checked("holdout", {"x": np.zeros((2, 3)), "y": np.zeros(2)}, DATA) == 2
    assert checked("holdout", None, DATA) == 0


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ((DATA["x"], DATA["y"]), "same form as data"),
        ({"x": DATA["x"]}, "same form as data"),
        ({"x": DATA["x"][:, :2], "y": DATA["y"]}, r"same shape as data, \(3,\), got \(2,\)"),
        ({"x": DATA["x"][0], "y": DATA["y"][0]}, "Give one record as an array with one row"),
        ({"x": DATA["x"][:2], "y": DATA["y"]}, r"same number of records, got \[2, 4\]"),
        ({"x": DATA["x"][:0], "y": DATA["y"][:0]}, r"same number of records, got \[0\]"),
    ],
)
def test_records_of_another_form_are_refused_by_name(records, words):
    for check in (checked, like):
        with pytest.raises(InputError, match=f"Expected watch to .*{words}"):
            check("watch", records, DATA)


def test_nothing_and_no_array_are_refused():
    for bad in ({}, (), {"x": 1.0}):
        with pytest.raises(InputError, match="Expected data to hold arrays"):
            records_of("data", bad)


def test_records_take_the_types_of_the_data():
    found = like("watch", {"x": np.ones((1, 3), int), "y": np.array([2.0])}, DATA)
    assert (found["x"].dtype, found["y"].dtype) == (np.float32, np.int32)
    nobody = like("watch", None, DATA)
    assert (nobody["x"].shape, nobody["y"].dtype) == ((0, 3), np.int32)


def test_chosen_and_joined_are_inverse():
    parts = [chosen(DATA, np.array([0, 2])), chosen(DATA, np.array([1])), chosen(DATA, np.array([3]))]
    together = joined([*parts[:2], {"x": jnp.asarray(parts[2]["x"]), "y": parts[2]["y"]}])
    assert together["y"].tolist() == [0, 2, 1, 3]
    assert np.array_equal(together["x"], DATA["x"][[0, 2, 1, 3]])


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_is_refused(kind):
    with pytest.raises(InputError, match=f"data to hold float32 numbers, got {kind}. .*astype"):
        records_of("data", {**DATA, "x": jnp.asarray(DATA["x"], kind)})
