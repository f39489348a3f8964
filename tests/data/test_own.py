"""A file of the user's own: what is made of it, and what a bad one gets."""

import builtins
import dataclasses
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesdp.data as data
from bayesdp.data.preparation.prepare import EXACT
from bayesdp.errors import InputError

COLOURS = ("blue", "green", "red")


def write_csv(path, rows=40, cells=None, header="age,colour,flat,income", separator=","):
    """A table of numbers, texts, a constant and a label; `cells` changes single ones: {(row, column): text}."""
    lines = [[20 + row, COLOURS[row % 3], 7, ("low", "high")[row // 2 % 2]] for row in range(rows)]
    for (row, column), text in (cells or {}).items():
        lines[row][column] = text
    body = [separator.join(map(str, line)) for line in lines]
    path.write_text("\n".join([header.replace(",", separator), *body]) + "\n", encoding="utf-8")
    return path


def test_a_csv_becomes_features_and_classes(tmp_path):
    own = data.load(write_csv(tmp_path / "people.csv"), target="income")
    assert (own.name, own.task, own.classes, own.source) == ("people", "classification", ("high", "low"), "people.csv")
    assert own.feature_names == ("age", "colour=blue", "colour=green", "colour=red", "flat")
    assert own.x.shape == (len(own.y), 5)
    assert own.x_test.shape == (40 - len(own.y), 5)
    assert own.test_share == 0.2
    assert own.x.dtype == np.float32
    assert own.y.dtype == np.int32
    assert own.image_shape is None
    # Standardised with the training records' own statistics; a constant column is 0.
    assert abs(own.x[:, 0].mean()) < 1e-6
    assert abs(own.x[:, 0].std() - 1) < 1e-6
    assert np.all(own.x[:, 4] == 0)
    assert np.all(own.x_test[:, 4] == 0)
    # The whole record is still the same record: age says which row, the row says colour and label.
    mean, scale = own.recipe.columns[0].mean, own.recipe.columns[0].scale
    for x, y in ((own.x, own.y), (own.x_test, own.y_test)):
        row = np.round(x[:, 0] * scale + mean).astype(int) - 20
        assert np.array_equal(x[:, 1:4], np.eye(3)[row % 3])
        assert np.array_equal(y, 1 - row // 2 % 2)


def test_what_was_taken_from_the_data_is_said(tmp_path):
    own = data.load(write_csv(tmp_path / "people.csv"), target="income")
    assert own.public == (
        f"The number of training records, N = {len(own.x)}, is public.",
        "The names of the columns, and which hold numbers and which texts, are public.",
        "Means and scales of 'age', 'flat', taken from the training records, are declared public.",
        "The vocabularies of 'colour' (3 categories), taken from the training records, are declared public.",
        "The 2 classes of 'income', taken from all records, are declared public.",
        EXACT,
    )
    plain = data.load(tmp_path / "people.csv", target="income", scale="none")
    assert not any("Means" in sentence for sentence in plain.public)
    assert set(plain.x[:, 4]) == {7.0}
    assert plain.x[:, 0].min() >= 20


def test_statistics_never_look_at_test_records(tmp_path):
    own = data.load(write_csv(tmp_path / "a.csv"), target="income", seed=5)
    ages = np.round(own.x_test[:, 0] * own.recipe.columns[0].scale + own.recipe.columns[0].mean).astype(int)
    changed = {(int(age) - 20, 0): 10**6 for age in ages} | {(int(ages[0]) - 20, 1): "violet"}
    other = data.load(write_csv(tmp_path / "b.csv", cells=changed), target="income", seed=5)
    assert np.array_equal(own.x, other.x)
    assert own.recipe == other.recipe
    # A category that the training records do not have gets zeros.
    assert np.all(other.x_test[0, 1:4] == 0)
    assert np.all(other.x_test[1:, 1:4].sum(axis=1) == 1)


def test_options(tmp_path):
    path = write_csv(tmp_path / "people.csv")
    own = data.load(path, target="income", drop=["colour"], categories=["flat"], test_share=0)
    assert own.feature_names == ("age", "flat=7")
    assert own.x_test.shape == (0, 2)
    assert len(own.x) == 40
    first, second = (data.load(path, target="income", seed=seed) for seed in (0, 1))
    assert not np.array_equal(first.y, second.y)
    assert np.array_equal(first.x, data.load(str(path), target="income", seed=0).x)


def test_a_row_more_moves_nobody_else(tmp_path):
    """Who was drawn by number moved in 39 of 1,000 rows: neighbours would have differed in as many records (H18)."""
    short, long = (write_csv(tmp_path / f"{rows}.csv", rows=rows) for rows in (1000, 1001))
    for known in ({"seed": 0}, {"draw": 2**255 + 1}):
        one, more = (data.load(path, target="income", **known) for path in (short, long))
        test, tests = (set(own.places[len(own.x) :].tolist()) for own in (one, more))
        assert test == tests - {1000}
        assert 140 < len(test) < 260
    # Without a seed nobody knows who it is.
    first, second = (data.load(short, target="income") for _ in range(2))
    assert not np.array_equal(first.places, second.places)
    fixed = data.load("digits")
    assert np.array_equal(fixed.places, data.load("digits", draw=5).places)
    assert fixed.test_share == 0


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_a_byte_order_mark(tmp_path, separator):
    path = write_csv(tmp_path / "people.csv", separator=separator)
    path.write_text("\ufeff" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert data.load(path, target="income").feature_names[0] == "age"


@pytest.mark.parametrize(
    ("labels", "task", "classes"),
    [
        ([0, 1], "classification", ("0", "1")),
        ([10, 9, 2], "classification", ("2", "9", "10")),
        ([-1.5, 1.5], "classification", ("-1.5", "1.5")),
        (["True", "False"], "classification", ("False", "True")),
        ([0.5, 1.25, 3.0], "regression", ()),
        (range(40), "regression", ()),
        (range(21), "regression", ()),
        (range(20), "classification", tuple(map(str, range(20)))),
    ],
)
def test_the_task_is_guessed_from_the_target(tmp_path, labels, task, classes):
    labels = list(labels)
    cells = {(row, 3): labels[row % len(labels)] for row in range(40)}
    own = data.load(write_csv(tmp_path / "t.csv", cells=cells), target="income", test_share=0)
    assert (own.task, own.classes) == (task, classes)
    if classes:
        assert [classes[y] for y in own.y] == [str(labels[row % len(labels)]) for row in range(40)]


def test_regression_is_standardised_and_can_be_undone(tmp_path):
    path = write_csv(tmp_path / "t.csv", cells={(row, 3): 1000 + row for row in range(40)})
    own = data.load(path, target="income", test_share=0)
    assert own.task == "regression"
    assert own.y.dtype == np.float32
    assert abs(own.y.std() - 1) < 1e-6
    assert np.allclose(own.y * own.y_scale + own.y_mean, 1000 + np.arange(40))
    assert own.public[-2].startswith("Mean and scale of the target 'income'")
    plain = data.load(path, target="income", scale="none", test_share=0)
    assert np.array_equal(plain.y, np.arange(1000, 1040, dtype=np.float32))
    assert (plain.y_mean, plain.y_scale) == (0, 1)
    few = write_csv(tmp_path / "few.csv", cells={(row, 3): row % 2 for row in range(40)})
    assert data.load(few, target="income", task="regression").task == "regression"
    assert len(data.load(path, target="income", task="classification").classes) == 40


def test_parquet_gives_what_the_csv_gives(tmp_path):
    rows = np.arange(40)
    table = pa.table(
        {
            "age": pa.array(20 + rows, pa.int16()),
            "colour": pa.array([COLOURS[row % 3] for row in rows]).dictionary_encode(),
            "flat": pa.array(np.full(40, 7.0), pa.float32()),
            "income": pa.array([("low", "high")[row // 2 % 2] for row in rows]),
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    one, two = (
        data.load(path, target="income", seed=0) for path in (tmp_path / "p.parquet", write_csv(tmp_path / "c.csv"))
    )
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.y, two.y)
    assert one.recipe == two.recipe


def test_arrays_of_numbers(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(3, 2, (50, 4)), rng.integers(0, 3, 50)
    np.savez(tmp_path / "a.npz", x=x, y=y, x_test=x[:5] + 1, y_test=y[:5, None])
    own = data.load(tmp_path / "a.npz")
    assert own.feature_names == ("x0", "x1", "x2", "x3")
    assert own.classes == ("0", "1", "2")
    assert np.allclose(own.x, (x - x.mean(0)) / x.std(0), atol=1e-5)
    assert np.array_equal(own.y, y)
    assert np.allclose(own.x_test, (x[:5] + 1 - x.mean(0)) / x.std(0), atol=1e-5)
    assert np.array_equal(own.y_test, y[:5])
    np.savez(tmp_path / "b.npz", x=x, y=np.array(["a", "b"])[y % 2])
    assert data.load(tmp_path / "b.npz", target="y").classes == ("a", "b")
    assert data.load(tmp_path / "b.npz").x.shape[1:] == (4,)


def test_arrays_of_images(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (20, 6, 5), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x=images, y=np.arange(20) % 2)
    own = data.load(tmp_path / "a.npz", test_share=0)
    assert own.image_shape == (6, 5, 1)
    assert np.allclose(own.x[..., 0], images / 255)
    assert own.public[1:] == ("The 2 classes of 'y', taken from all records, are declared public.",)
    assert data.load(tmp_path / "a.npz", scale="none").x.max() > 200
    np.savez(tmp_path / "b.npz", x=images[..., None] / 255.0, y=np.arange(20) % 2)
    assert np.allclose(data.load(tmp_path / "b.npz", test_share=0).x, own.x)


def test_a_saved_recipe_prepares_further_records_the_same(tmp_path):
    path = write_csv(tmp_path / "people.csv")
    own = data.load(path, target="income", test_share=0)
    recipe = data.recipe_from_dict(json.loads(json.dumps(own.recipe.to_dict())))
    assert recipe == own.recipe
    assert np.array_equal(data.read_features(path, recipe), own.x)
    # Other order, no label, a column more.
    (tmp_path / "new.csv").write_text("other,flat,colour,age\n1,7,red,25\n", encoding="utf-8")
    assert np.array_equal(data.read_features(tmp_path / "new.csv", recipe), own.x[5:6])
    images = data.ImageRecipe((2, 2, 1), 255.0)
    assert data.recipe_from_dict(json.loads(json.dumps(images.to_dict()))) == images
    np.savez(tmp_path / "x.npz", x=np.full((3, 2, 2), 255, np.uint8))
    assert np.array_equal(data.read_features(tmp_path / "x.npz", images), np.ones((3, 2, 2, 1)))
    numeric = data.TableRecipe((own.recipe.columns[0],))
    np.savez(tmp_path / "n.npz", x=np.array([[25.0]]))
    assert np.array_equal(data.read_features(tmp_path / "n.npz", numeric), own.x[5:6, :1])


def test_records_that_do_not_fit_the_recipe_are_refused(tmp_path):
    recipe = data.load(write_csv(tmp_path / "people.csv"), target="income").recipe
    images = data.ImageRecipe((2, 2, 1), 255.0)
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 2, 3)))
    np.savez(tmp_path / "nan.npz", x=np.array([0, np.nan]).reshape(2, 1, 1) * np.ones((2, 2, 2)))
    (tmp_path / "new.csv").write_text("age,colour\n25,red\n", encoding="utf-8")
    (tmp_path / "old.csv").write_text("age,colour,flat\n25,red,7\nold,red,7\n", encoding="utf-8")
    for path, how, message in (
        ("new.csv", recipe, "got none called 'flat'"),
        ("old.csv", recipe, "numbers in column 'age', got a text in line 3"),
        ("x.npz", images, r"shape \(2, 2, 1\), got \(2, 3, 1\)"),
        ("nan.npz", images, "finite numbers, got another in image 1"),
        ("x.npz", recipe, r"shape \(records, 3\) in x"),
        ("new.csv", images, "to end in .npz"),
        ("new.txt", recipe, "to end in .csv"),
    ):
        with pytest.raises(InputError, match=message):
            data.read_features(tmp_path / path, how)
    for state in ({}, {"kind": "table"}, {"kind": "table", "columns": [{"kind": "numeric"}]}, {"kind": "x"}, 3):
        with pytest.raises(InputError, match="Expected a saved recipe"):
            data.recipe_from_dict(state)


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ({}, {}, "target to name the column .* got none. Its columns are 'age', 'colour', 'flat', 'income'"),
        ({}, {"target": "incme"}, "got target='incme'. Did you mean 'income'[?] Its columns are 'age'"),
        ({}, {"target": "income", "drop": ["size"]}, "drop to name a column"),
        ({}, {"target": "income", "drop": "age"}, "drop to be a list of column names"),
        ({}, {"target": "income", "categories": ["income"]}, "other columns than the target"),
        ({}, {"target": "income", "drop": ["age", "colour", "flat"]}, "column to learn from besides 'income'"),
        ({}, {"target": "income", "task": "ranking"}, "task to be one of 'classification', 'regression'"),
        ({}, {"target": "income", "task": "regression"}, "numbers in column 'income', got a text in line 2"),
        ({}, {"target": "income", "scale": "minmax"}, "scale to be one of"),
        ({}, {"target": "income", "test_share": 1}, "test_share to be a finite number >= 0 and < 1"),
        ({}, {"target": "income", "test_share": 0.999, "seed": 0}, "to leave some of the 40 records"),
        ({}, {"target": "income", "seed": -1}, "seed to be a whole number >= 0"),
        ({(4, 0): ""}, {"target": "income"}, "got none in line 6, column 'age'. Say what is done .* missing="),
        ({(4, 0): "NaN"}, {"target": "income"}, "got none in line 6, column 'age'"),
        ({(4, 0): "n/a"}, {"target": "income"}, "got none in line 6, column 'age'"),
        ({(4, 0): "inf"}, {"target": "income"}, r"finite numbers up to 1e\+18 in column 'age', got inf in line 6"),
        (
            {(4, 0): "1e30"},
            {"target": "income"},
            r"finite numbers up to 1e\+18 in column 'age', got a larger one in line 6",
        ),
        ({(4, 0): "old"}, {"target": "income"}, "in column 'age', got a text in line 6 beside numbers.*read="),
        ({(4, 1): " "}, {"target": "income"}, "got none in line 6, column 'colour'"),
        ({(row, 3): "low" for row in range(40)}, {"target": "income"}, "two different values .* got one only"),
        ({(row, 3): 3 for row in range(40)}, {"target": "income"}, "two different values .* got one only"),
        ({(4, 1): "r\x07d"}, {"target": "income"}, "without control characters in column 'colour', got one in line 6"),
        ({(4, 3): "l\x1bw"}, {"target": "income"}, "without control characters in column 'income', got one in line 6"),
        ({(4, 3): "a,b"}, {"target": "income"}, "4 cells in every row, as in its header, got 5 in line 6"),
    ],
)
def test_a_bad_table_gets_a_clear_message(tmp_path, cells, options, message):
    path = write_csv(tmp_path / "people.csv", cells=cells)
    with pytest.raises(InputError, match=message) as refused:
        data.load(path, **options)
    if cells:
        assert "people.csv" in str(refused.value)


def test_too_many_categories_and_classes(tmp_path):
    names = {(row, 1): f"person {row // 2 * 2 if row < 4 else row}" for row in range(200)}  # two have a namesake
    path = write_csv(tmp_path / "a.csv", rows=200, cells=names)
    with pytest.raises(InputError, match=r"at most 100 different texts in column 'colour', got 198 in 200 rows.*drop="):
        data.load(path, target="income")
    assert data.load(path, target="income", drop=["colour"]).x.shape[1:] == (2,)
    with pytest.raises(InputError, match=r"target='colour' to have at most 100 classes, got 198. Give another"):
        data.load(path, target="colour")
    with pytest.raises(InputError, match=r"target='age' .* got 200. Give task='regression'"):
        data.load(path, target="age", task="classification")


def test_one_class_left_to_train_on(tmp_path):
    split = data.load(write_csv(tmp_path / "a.csv"), target="income", scale="none", seed=0)
    held_out = int(split.x_test[0, 0]) - 20
    cells = {(row, 3): "high" if row == held_out else "low" for row in range(40)}
    path = write_csv(tmp_path / "a.csv", cells=cells)
    with pytest.raises(InputError, match=r"training records to have .* 'high', 'low' of .*, got 'low' only"):
        data.load(path, target="income", seed=0)
    assert data.load(path, target="income", test_share=0).classes == ("high", "low")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a line that names its columns, got an empty"),
        (b"a,income\n", "at least one row, got none"),
        (b"a,income\n" + b"1,low\n2,high\n" * 4, "at least 10 records to train and test with, got 8"),
        (b"1,2\n3,4\n", "names its columns, got numbers"),
        (b",income\n0,1\n", "got no name for column 1. Leave the column of row numbers out"),
        (b"a,b\x07,income\n1,2,3\n", "without control characters, got one in the name of column 2"),
        (b"a,a,income\n1,2,3\n", "got 2 columns called 'a'"),
        (b"\xff\xfe\x00a", "CSV file in UTF-8"),
        (b'a,income\n"1,2\n', "a CSV file, got unexpected end of data in line 2"),
    ],
)
def test_a_malformed_csv(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        data.load(tmp_path / "a.csv", target="income")


def test_lines_are_counted_as_an_editor_shows_them(tmp_path):
    path = write_csv(tmp_path / "a.csv", cells={(1, 1): '"re\nd"', (5, 0): "", (2, 3): "low\n"})
    with pytest.raises(InputError, match="none in line 9, column 'age'"):
        data.load(path, target="income")


def test_missing_files_and_folders(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for path, message in (
        (tmp_path / "none.csv", "readable file, got: No such file"),
        (tmp_path / "none.npz", "readable file, got: No such file"),
        (tmp_path / "none.parquet", "readable file, got: No such file"),
        (tmp_path / "folder.csv", "readable file, got: Is a directory"),
        (tmp_path / "table.xlsx", "to end in .csv, .tsv, .parquet, .pq, .npz"),
    ):
        with pytest.raises(InputError, match=message):
            data.load(path, target=None if path.suffix == ".npz" else "income")


def test_a_bad_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="to be a Parquet file, got a damaged one"):
        data.load(path, target="y")
    for column, message in (
        (
            {"when": pa.array([0] * 12, pa.duration("s"))},
            "got duration.* in column 'when'. Turn the column into numbers",
        ),
        ({"age": pa.array([1.0, None] * 6)}, "none in row 2, column 'age'"),
        ({"name": pa.array(["a", None] * 6)}, "none in row 2, column 'name'"),
        ({"__index_level_0__": pa.array(range(12))}, "got the index '__index_level_0__'"),
    ):
        pq.write_table(pa.table(column | {"y": pa.array([True, False] * 6)}), path)
        with pytest.raises(InputError, match=message):
            data.load(path, target="y")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r'pip install "bayesdp\[parquet\]"'):
        data.load(tmp_path / "a.parquet", target="y")


X, Y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"a": X}, {}, "the arrays x and y, got 'a'. Write it with numpy.savez"),
        ({"x": X, "y": Y[:19]}, {}, r"one label in y for each of the 20 records of x, got shape \(19,\)"),
        ({"x": X, "y": np.eye(20)}, {}, r"one label in y .* got shape \(20, 20\)"),
        ({"x": X[:, 0], "y": Y}, {}, r"x of shape \(records, features\)"),
        ({"x": X, "y": Y, "x_test": X}, {}, "both x_test and y_test or none, got x_test only"),
        ({"x": X, "y": Y, "x_test": X[:, :1], "y_test": Y}, {}, r"records of shape \(2,\) in x_test too"),
        ({"x": X, "y": Y, "x_test": X.astype("u1"), "y_test": Y}, {}, "x_test of the type of x, float64, got uint8"),
        ({"x": X, "y": Y, "x_test": X, "y_test": Y}, {"seed": 1}, "test_share and seed to be left out"),
        ({"x": X, "y": Y, "x_test": X, "y_test": Y.astype(str)}, {}, "got texts beside numbers"),
        ({"x": X.astype(str), "y": Y}, {}, "to hold numbers of shape"),
        ({"x": X, "y": Y * 1j}, {}, "numbers or texts in y, got complex128"),
        ({"x": np.where(X == 7, np.nan, X), "y": Y}, {}, "none in record 3, column 'x1'"),
        ({"x": X, "y": np.where(Y == 1, np.nan, 0)}, {}, "none in record 1, column 'y'"),
        ({"x": X, "y": Y, "x_test": X * np.nan, "y_test": Y}, {}, "none in test record 0, column 'x0'"),
        ({"x": X, "y": Y * 0}, {}, "target='y' to have at least two different values"),
        ({"x": X[:9], "y": Y[:9]}, {}, "at least 10 records to train and test with, got 9"),
        ({"x": X, "y": Y}, {"target": "label"}, "target to be left out for an NPZ"),
        ({"x": X, "y": Y}, {"drop": ["x0"]}, "categories, drop, keep, read and missing to be left out for an NPZ"),
        ({"x": X * 1e30, "y": Y}, {}, r"up to 1e\+18 in column 'x0'"),
        ({"x": np.full((20, 2, 2), 1e300), "y": Y}, {}, "finite numbers, got another in image 0"),
        ({"x": np.array([object()] * 20), "y": Y}, {}, "damaged, pickled or of another kind"),
    ],
)
def test_a_bad_npz(tmp_path, arrays, options, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=message):
        data.load(tmp_path / "a.npz", **options)


def test_a_damaged_npz(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=X, y=Y)
    content = (tmp_path / "a.npz").read_bytes()
    np.save(tmp_path / "single.npy", X)
    for bad in (b"", b"hello", content[:100], content[:-30], (tmp_path / "single.npy").read_bytes()):
        (tmp_path / "a.npz").write_bytes(bad)
        with pytest.raises(InputError, match="to be an NPZ file of arrays"):
            data.load(tmp_path / "a.npz")


@given(st.lists(st.floats(-1e18, 1e18), min_size=10, max_size=30), st.floats(-1e18, 1e18))
def test_features_are_finite_and_standardised_for_any_numbers(tmp_path_factory, values, further):
    """Whatever the training values, a further value up to the largest still fits single precision."""
    path = tmp_path_factory.mktemp("any") / "a.npz"
    np.savez(
        path,
        x=np.array(values)[:, None],
        y=np.arange(len(values)) % 2,
        x_test=np.array([[further]]),
        y_test=np.array([0]),
    )
    own = data.load(path)
    assert np.isfinite(own.x).all()
    assert np.isfinite(own.x_test).all()
    assert own.x.std() < 1 + 1e-5
    assert np.abs(own.x).max() <= np.sqrt(len(values)) + 1e-3


def test_a_data_set_can_be_given_other_features(tmp_path):
    own = data.load(write_csv(tmp_path / "people.csv"), target="income")
    other = dataclasses.replace(own, x=own.x[:, :2], x_test=own.x_test[:, :2], recipe=None)
    assert other.x.shape == (len(own.x), 2)
    assert other.public == own.public


def test_a_target_can_keep_its_own_unit(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("age,visits\n" + "".join(f"{20 + i},{i % 30}\n" for i in range(60)))
    found = data.load(path, target="visits", task="regression", target_scale="none")
    assert (found.y_mean, found.y_scale) == (0.0, 1.0)
    assert max(found.y.max(), found.y_test.max()) == 29
    assert abs(found.x.mean()) < 1e-6  # the features are standardised all the same
    assert not any("target" in sentence for sentence in found.public)


def test_a_density_needs_no_target(tmp_path):
    path = tmp_path / "blobs.csv"
    path.write_text("p,q,label\n" + "".join(f"{i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(60)))
    found = data.load(path, unlabelled=True, drop=["label"])
    assert (found.task, found.feature_names, found.classes) == ("density", ("p", "q"), ())
    assert not found.y.any()
    assert data.load(path, unlabelled=True, target="label").feature_names == ("p", "q")
