"""MNIST, CIFAR-10 and SVHN: images with values divided by 255, so that nothing but N is taken from the data."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp.data import cifar_file
from bayesdp.data.dataset import Dataset
from bayesdp.data.download import Original
from bayesdp.data.features.image_recipe import ImageRecipe
from bayesdp.data.places import Places
from bayesdp.errors import InputError, unfit

Bytes = npt.NDArray[np.uint8]


def _mnist(file: str, size: int, sha256: str) -> Original:
    # The home page often refuses downloads: two well-kept mirrors follow it. The checksum makes them equal.
    hosts = (
        "http://yann.lecun.com/exdb/mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    )
    return Original(("MNIST/raw", "mnist", "MNIST"), file, size, sha256, tuple(f"{host}/{file}" for host in hosts))


MNIST = (
    _mnist("train-images-idx3-ubyte.gz", 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    _mnist("train-labels-idx1-ubyte.gz", 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    _mnist("t10k-images-idx3-ubyte.gz", 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    _mnist("t10k-labels-idx1-ubyte.gz", 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
CIFAR10 = Original(
    ("cifar10", "cifar-10-batches-py"),
    "cifar-10-python.tar.gz",
    170_498_071,
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
)
_SVHN = "http://ufldl.stanford.edu/housenumbers"
SVHN = (
    Original(
        ("svhn", "SVHN"),
        "train_32x32.mat",
        182_040_794,
        "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        (f"{_SVHN}/train_32x32.mat",),
    ),
    Original(
        ("svhn", "SVHN"),
        "test_32x32.mat",
        64_275_384,
        "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        (f"{_SVHN}/test_32x32.mat",),
    ),
)
DIGITS = tuple(map(str, range(10)))
OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def mnist(places: Places) -> Dataset:
    """60,000 + 10,000 handwritten digits, 28×28×1."""
    paths, source = places.get("mnist", MNIST)
    images, labels, test_images, test_labels = map(_idx, paths, (3, 1, 3, 1))
    return _dataset("mnist", images[..., None], labels, test_images[..., None], test_labels, DIGITS, source)


def cifar10(places: Places) -> Dataset:
    """50,000 + 10,000 photographs, 32×32×3, from the official archive or the batch files in it.

    Batch files may be packed (.xz, .gz), and some of the five training batches may be absent: `source` says so.
    """
    batches = places.find(cifar_file.NAMES)
    if batches is not None:
        train, test, source = cifar_file.read_folder(batches.parent)
    else:
        (path,), source = places.get("cifar10", (CIFAR10,))
        train, test, part = cifar_file.read_archive(path)
        source += part
    return _dataset("cifar10", *train, *test, OBJECTS, source)


def svhn(places: Places) -> Dataset:
    """73,257 + 26,032 house-number digits, 32×32×3 (without the 531,131 easier "extra" images)."""
    paths, source = places.get("svhn", SVHN)
    (images, labels), (test_images, test_labels) = map(_mat, paths)
    return _dataset("svhn", images, labels, test_images, test_labels, DIGITS, source)


def _dataset(
    name: str,
    images: Bytes,
    labels: Bytes,
    test_images: Bytes,
    test_labels: Bytes,
    classes: tuple[str, ...],
    source: str,
) -> Dataset:
    recipe = ImageRecipe(images.shape[1:], 255.0)
    return Dataset(
        name=name,
        task="classification",
        x=recipe.apply(images),
        y=labels.astype(np.int32),
        x_test=recipe.apply(test_images),
        y_test=test_labels.astype(np.int32),
        classes=classes,
        image_shape=recipe.shape,
        recipe=recipe,
        source=source,
    )


def _idx(path: Path, dimensions: int) -> Bytes:
    """An IDX file of bytes, packed or not: two zero bytes, type 8, the dimensions, their sizes, the values."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            magic, *shape = struct.unpack(f">{1 + dimensions}I", file.read(4 + 4 * dimensions))
            size = int(np.prod(shape, dtype=object))
            if magic != 0x0800 + dimensions or size > 1 << 30 or (dimensions == 3 and shape[1:] != [28, 28]):
                raise ValueError("another header")
            values = file.read(size + 1)
            if len(values) != size:
                raise ValueError("another length")
    except (OSError, EOFError, zlib.error, struct.error, ValueError):
        raise _damaged(path, "an IDX file of MNIST") from None
    return np.frombuffer(values, np.uint8).reshape(shape)


def _mat(path: Path) -> tuple[Bytes, Bytes]:
    """X of shape (32, 32, 3, n) and y from 1 to 10, where 10 stands for the digit 0."""
    from scipy.io import loadmat

    try:
        content: dict[str, Any] = loadmat(str(path), variable_names=("X", "y"))
        images, labels = content["X"], content["y"].reshape(-1)
    except Exception:  # a damaged file makes scipy raise whatever comes
        raise _damaged(path, "a MATLAB 5 file with X and y") from None
    good = images.ndim == 4 and images.shape[:3] == (32, 32, 3) and images.dtype == np.uint8
    if not good or labels.shape != images.shape[3:] or labels.min(initial=1) < 1 or labels.max(initial=1) > 10:
        raise _damaged(path, "X of shape (32, 32, 3, n) in bytes and y from 1 to 10")
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), (labels % 10).astype(np.uint8)


def _damaged(path: Path, expected: str) -> InputError:
    return unfit(
        f"the file {str(path)!r}",
        f"to be {expected}",
        "a damaged file or another one",
        "Delete it to have it downloaded anew, or get the original.",
    )
