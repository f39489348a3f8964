"""Scattering features (H13) against the formulas written out: convolutions as sums over pixels, no Fourier."""

import dataclasses
import json

import numpy as np
import pytest

import bayesdp.data as data
from bayesdp.data.features.image_recipe import ImageRecipe
from bayesdp.data.scattering import CHANNELS, COLOUR_CHANNELS, NORM, scattering, shape_of
from bayesdp.errors import InputError

RNG = np.random.default_rng(11)
SIDE, BEFORE, PADDED = 12, 2, 16  # 12 pixels are continued to 16 by reflection


def kernel(form):
    """A function of (row, column) summed over the periods of the padded image, as a table of differences."""
    row, column = np.mgrid[0:PADDED, 0:PADDED]
    return sum(form(row + PADDED * m, column + PADDED * n) for m in range(-4, 4) for n in range(-4, 4))


def morlet(scale, angle):
    sigma, xi = 0.8 * 2**scale, 0.75 * np.pi / 2**scale

    def turned(row, column):
        return column * np.cos(angle) + row * np.sin(angle), row * np.cos(angle) - column * np.sin(angle)

    def bump(row, column):
        u, v = turned(row, column)
        return np.exp(-(u**2 + v**2 / 4) / (2 * sigma**2)) / (4 * np.pi * sigma**2)

    wave = kernel(lambda row, column: bump(row, column) * np.exp(1j * xi * turned(row, column)[0]))
    envelope = kernel(bump)
    return wave - envelope * wave.sum() / envelope.sum()


PHI = kernel(lambda row, column: np.exp(-(row**2 + column**2) / (2 * 1.6**2)) / (2 * np.pi * 1.6**2))


ROW, COLUMN = np.mgrid[0:PADDED, 0:PADDED].reshape(2, -1)
APART = (ROW[:, None] - ROW) % PADDED, (COLUMN[:, None] - COLUMN) % PADDED


def convolved(image, table):
    return (table[APART] @ image.ravel()).reshape(PADDED, PADDED)


def written_out(image):
    """The 81 channels of one plane, as the module's docstring has them."""
    angles = np.pi * np.arange(8) / 8
    x = np.pad(image.astype(np.float64), BEFORE, mode="symmetric")

    def smooth(plane):
        return convolved(plane, PHI).real[::4, ::4][: SIDE // 4 + 1, : SIDE // 4 + 1]

    def coarse(plane, angle):
        # The coarse layer is taken at every other pixel, and then weighs four times as much there.
        kept = np.zeros_like(plane)
        kept[::2, ::2] = 4 * np.abs(convolved(plane, morlet(1, angle)))[::2, ::2]
        return kept

    fine = [np.abs(convolved(x, morlet(0, angle))) for angle in angles]
    families = [[smooth(plane) for plane in fine], [smooth(coarse(x, angle)) for angle in angles]]
    families += [[smooth(coarse(fine[t], angles[(t + rho) % 8])) for t in range(8)] for rho in range(8)]
    turn = 2 * np.pi * np.arange(8) / 8
    waves = [np.ones(8) / np.sqrt(8)]
    waves += [wave(k * turn) / 2 for k in (1, 2, 3) for wave in (np.cos, np.sin)]
    waves += [np.cos(4 * turn) / np.sqrt(8)]
    turned = np.einsum("kt,ftij->fkij", waves, families)

    def standard(values):
        return values / np.sqrt(np.mean(values**2) + 1e-7)

    means = [standard(plane - plane.mean()) for plane in (smooth(x), *turned[:, 0])]
    contrasts = [standard(family[1:]) for family in turned]
    channels = np.concatenate([means, *contrasts])
    return np.moveaxis(channels, 0, 2) * 3 / np.sqrt(channels.size)


@pytest.fixture(scope="module")
def images():
    """Smooth random images, and a blank one."""
    coarse = RNG.uniform(size=(7, 4, 4, 1)).astype(np.float32)
    return np.concatenate([np.repeat(np.repeat(coarse, 3, 1), 3, 2), np.zeros((1, SIDE, SIDE, 1), np.float32)])


def test_equals_the_formulas_written_out(images):
    features = scattering(images)
    assert features.shape == (8, 4, 4, 81) == (8, *shape_of((SIDE, SIDE, 1)))
    assert features.dtype == np.float32
    for i in range(2):
        assert np.allclose(features[i], written_out(images[i, :, :, 0]), atol=2e-5)


def test_features_of_a_record_are_its_own(images):
    """Neither the other records nor their number change them: nothing is taken from the data set."""
    assert np.array_equal(scattering(images)[:3], scattering(images[:3]))
    many = np.concatenate([images] * 40)  # more than one batch
    assert np.array_equal(scattering(many)[256 + 8 :][:8], scattering(images))


def test_length_and_brightness(images):
    features = scattering(images)
    lengths = np.linalg.norm(features.reshape(8, -1), axis=1)
    assert lengths[:7] == pytest.approx(NORM, rel=0.05)
    assert lengths[7] == 0  # blank
    assert np.allclose(scattering(2 * images), features, atol=0.03)  # how bright an image is matters little


def test_other_channels_go_by_themselves(images):
    two = np.concatenate([images[:2], images[2:4]], axis=3)
    features = scattering(two)
    assert features.shape == (2, 4, 4, 2 * CHANNELS) == (2, *shape_of((SIDE, SIDE, 2)))
    alone = [scattering(images[i : i + 2]) for i in (0, 2)]
    assert np.allclose(features, np.concatenate(alone, axis=3) / np.sqrt(2), atol=1e-6)


def test_a_grey_picture_has_no_colour_and_one_that_is_its_own_mirror_image_stays(images):
    same = (images + images[:, :, ::-1]) / 2
    features = scattering(np.repeat(same, 3, axis=3))
    assert features.shape == (8, 4, 4, COLOUR_CHANNELS) == (8, *shape_of((SIDE, SIDE, 3)))
    assert np.abs(features[..., CHANNELS:]).max() < 1e-3
    # Up to which of every two pixels the coarse layer is taken at.
    grey = scattering(same) * np.sqrt(CHANNELS / COLOUR_CHANNELS)
    apart = np.linalg.norm((features[..., :CHANNELS] - grey).reshape(8, -1), axis=1)
    assert apart.max() < 0.1 * NORM


def test_a_photograph_and_its_mirror_image_are_nearly_the_same():
    photographs = np.repeat(np.repeat(RNG.uniform(size=(6, 4, 4, 3)).astype(np.float32), 3, 1), 3, 2)

    def apart(images):
        one, other = scattering(images), scattering(images[:, :, ::-1])
        return np.linalg.norm((one - other).reshape(6, -1), axis=1)

    assert (apart(photographs) < 0.6 * apart(photographs[..., :1])).all()


def test_colours_are_told_apart_and_no_length_is_above_the_norm():
    red, blue = np.zeros((2, SIDE, SIDE, 3), np.float32)
    red[..., 0], blue[..., 2] = 0.8, 0.8
    one, other = scattering(np.stack([red, blue])).reshape(2, -1)
    assert one @ other < 0
    many = RNG.uniform(size=(40, SIDE, SIDE, 3)).astype(np.float32)
    assert np.linalg.norm(scattering(many).reshape(40, -1), axis=1).max() <= NORM * (1 + 1e-5)


@pytest.mark.parametrize(
    ("image", "expected"),
    [((28, 28, 1), (8, 8, 81)), ((32, 32, 3), (8, 8, 115)), ((8, 8, 1), (2, 2, 81)), ((28, 20, 1), (8, 6, 81))],
)
def test_shapes(image, expected):
    assert shape_of(image) == expected


def test_as_part_of_a_data_set(tmp_path):
    plain, digits = data.load("digits"), data.load("digits", features="scattering")
    assert digits.x.shape == (1437, 2, 2, 81)
    assert digits.image_shape == (2, 2, 81)
    assert np.array_equal(digits.x_test, scattering(plain.x_test))
    assert digits.public == (*plain.public, digits.public[-1])
    assert "no statistic of the data set" in digits.public[-1]
    # The recipe carries it: the same features come out of raw images in a file.
    again = data.recipe_from_dict(json.loads(json.dumps(digits.recipe.to_dict())))
    assert again == digits.recipe == dataclasses.replace(plain.recipe, features="scattering")
    np.savez(tmp_path / "more.npz", x=np.rint(16 * plain.x_test[:5]).astype(np.uint8))
    assert np.allclose(data.read_features(tmp_path / "more.npz", again), digits.x_test[:5], atol=1e-5)


def test_own_images(tmp_path):
    x = RNG.integers(0, 256, (40, 12, 12), dtype=np.uint8)
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(40) % 2)
    own = data.load(tmp_path / "own.npz", features="scattering")
    assert own.x.shape == (len(own.y), 4, 4, 81)
    assert np.allclose(own.x[0], scattering(x[own.places[:1], :, :, None].astype(np.float32) / 255)[0])


def test_bad_input():
    with pytest.raises(InputError, match="Expected images to make scattering features of, got data='breast-cancer'"):
        data.load("breast-cancer", features="scattering")
    with pytest.raises(InputError, match="features"):
        data.load("digits", features="scatering")
    with pytest.raises(InputError, match="features"):
        data.recipe_from_dict({"kind": "image", "shape": [8, 8, 1], "divisor": 16.0, "features": "other"})
    # What was saved before there were features.
    old = data.recipe_from_dict({"kind": "image", "shape": [8, 8, 1], "divisor": 16.0})
    assert old == ImageRecipe((8, 8, 1), 16.0)


def test_mnist(real_data):
    """The mean image is a small part of what is left: less than half of what the usual grouping leaves (0.58)."""
    mnist = data.load("mnist", data_dir=real_data).subset(512, 0)
    features = scattering(mnist.x).reshape(512, -1)
    share = np.square(features.mean(0)).sum() / np.square(features).sum(1).mean()
    assert share == pytest.approx(0.23, abs=0.02)
