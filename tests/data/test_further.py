"""Further records: rows that lack a value, categories that were not seen, a key that is carried along."""

import numpy as np
import pytest

import bayesdp.data as data
from bayesdp.data.further import read_further
from bayesdp.errors import InputError


@pytest.fixture
def recipe(tmp_path):
    lines = [f"{20 + row % 31},{('cook', 'nurse')[row % 2]},{('no', 'yes')[row % 3 % 2]}" for row in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["age,job,y", *lines]) + "\n")
    return data.load(tmp_path / "people.csv", target="y", missing=["age=drop"]).recipe


def test_rows_are_told_apart(tmp_path, recipe):
    (tmp_path / "new.csv").write_text("id,job,age\n007,cook,30\n8,guard,\n9,guard,40\n10,nurse,50\n")
    found = read_further(tmp_path / "new.csv", recipe, key="id")
    assert found.keys == ["007", "8", "9", "10"]
    assert found.kept.tolist() == [True, False, True, True]
    assert found.unseen == {"job": 2}
    assert found.x[:, 1:].tolist() == [[1, 0], [0, 0], [0, 1]]
    assert np.array_equal(data.read_features(tmp_path / "new.csv", recipe), found.x)
    with pytest.raises(InputError, match="every value in each row that the model needs, got one without in line 3"):
        recipe.apply(data.catalogue.read_table(tmp_path / "new.csv"))


def test_a_key_is_a_column_of_a_table(tmp_path, recipe):
    (tmp_path / "new.csv").write_text("id,job,age\n7,cook,30\n")
    with pytest.raises(InputError, match=r"key to name a column of .*, got key='name'"):
        read_further(tmp_path / "new.csv", recipe, key="name")
    np.savez(tmp_path / "new.npz", x=np.zeros((2, 2, 1)))
    with pytest.raises(InputError, match="key to name a column of a table, which an NPZ has not"):
        read_further(tmp_path / "new.npz", data.ImageRecipe((2, 1, 1), 1.0), key="id")


def test_numbers_outside_of_a_declared_range_are_counted(tmp_path):
    lines = [f"{20 + row % 31},{('no', 'yes')[row % 2]}" for row in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["age,y", *lines]) + "\n")
    made = data.load(tmp_path / "people.csv", target="y", bounds=[("age", 20, 50)]).recipe
    (tmp_path / "new.csv").write_text("age\n19\n20\n50\n51\n99\n")
    found = read_further(tmp_path / "new.csv", made)
    assert found.beyond == {"age": 3}
    assert found.x[3, 0] == found.x[2, 0]
