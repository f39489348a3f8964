"""Extractors of the user's own: shortened to the declared norm, one record at a time, never another file's."""

import numpy as np
import pytest

from bayesdp.data import load, recipe_from_dict
from bayesdp.data.features.extractor import Extractor
from bayesdp.errors import InputError

GOOD = """
import numpy as np

def embed(images):
    return images.reshape(len(images), -1)[:, :5] * np.arange(1, 6)

def compared(images):
    flat = images.reshape(len(images), -1)
    return flat - flat.mean(0)

def endless(images):
    return np.full((len(images), 2), np.inf)

def few(images):
    return np.zeros((1, 3))

def broken(images):
    raise RuntimeError("no weights")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_features.py"
    path.write_text(GOOD)
    return path


@pytest.fixture
def images():
    return np.random.default_rng(0).random((300, 4, 4, 1)).astype(np.float32)


def test_features_are_the_functions_and_no_longer_than_declared(file, images):
    found = Extractor.given(f"{file}:embed", 2.0)(images)
    raw = images.reshape(300, -1)[:, :5] * np.arange(1, 6)
    lengths = np.linalg.norm(raw, axis=1)
    assert (lengths > 2).any()
    assert (lengths < 2).any()
    assert np.linalg.norm(found, axis=1).max() <= 2 * (1 + 1e-6)
    np.testing.assert_allclose(found, raw * np.minimum(1, 2 / lengths)[:, None], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("compared", "look at each record by itself"),
        ("endless", "not finite"),
        ("few", r"shape \(256, features\)"),
        ("broken", "no weights"),
        ("nothing", "none; it has"),
    ],
)
def test_what_is_no_extractor_is_refused(file, images, name, said):
    with pytest.raises(InputError, match=said):
        Extractor.given(f"{file}:{name}", 2.0)(images)


@pytest.mark.parametrize(
    ("features", "norm", "said"),
    [
        ("nowhere.py:embed", 1.0, "a file that is there"),
        ("my_features.py", 1.0, "a file and a function"),
        ("{file}:embed", None, "feature_norm to be given"),
        ("{file}:embed", -1.0, "feature_norm"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(file, features, norm, said):
    with pytest.raises(InputError, match=said):
        Extractor.given(features.format(file=file), norm)


def test_another_file_is_not_used_for_the_same_model(file, images):
    extractor = Extractor.given(f"{file}:embed", 2.0)
    file.write_text(GOOD.replace("arange(1, 6)", "arange(2, 7)"))
    with pytest.raises(InputError, match="as it was when the model was trained"):
        extractor(images)


def test_data_have_such_features_and_say_so(file, tmp_path, images):
    labels = (images.mean((1, 2, 3)) > 0.5).astype(np.int32)
    np.savez(tmp_path / "own.npz", x=images, y=labels, x_test=images[:20], y_test=labels[:20])
    data = load(tmp_path / "own.npz", features=f"{file}:embed", feature_norm=2.0)
    assert data.x.shape == (300, 5)
    assert any("my_features.py:embed" in sentence and "at most 2" in sentence for sentence in data.public)
    assert data.recipe.norm == 2
    again = recipe_from_dict(data.recipe.to_dict())
    assert again == data.recipe
    np.testing.assert_array_equal(again.apply(images[:20]), data.x_test)
    with pytest.raises(InputError, match="feature_norm to be left out"):
        load(tmp_path / "own.npz", features="scattering", feature_norm=2.0)
