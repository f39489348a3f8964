"""The data sets known by name, on the real files where they are given, else on small ones of the same layout."""

import gzip
import io
import lzma
import os
import pickle
import struct
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

import bayesdp.data as data
from bayesdp.errors import InputError

RNG = np.random.default_rng(7)


# --- built in ---------------------------------------------------------------------------------------------------


def test_digits():
    digits = data.load("digits")
    assert digits.x.shape == (1437, 8, 8, 1)
    assert digits.x_test.shape == (360, 8, 8, 1)
    assert (digits.x.dtype, digits.y.dtype) == (np.float32, np.int32)
    assert set(np.unique(digits.x * 16)) == set(range(17))
    assert digits.image_shape == (8, 8, 1)
    assert set(digits.y) == set(range(10)) == set(digits.y_test)
    assert digits.public == ("The number of training records, N = 1,437, is public.",)
    assert np.array_equal(digits.x, data.load("digits").x)
    assert not np.array_equal(digits.x, data.load("digits", seed=1).x)
    assert np.array_equal(digits.x, data.load("digits", seed=0).x)


def test_breast_cancer_is_standardised_on_its_training_records():
    cancer = data.load("Breast_Cancer")
    assert cancer.x.shape == (455, 30)
    assert cancer.x_test.shape == (114, 30)
    assert np.allclose(cancer.x.mean(0), 0, atol=1e-5)
    assert np.allclose(cancer.x.std(0), 1, atol=1e-5)
    assert np.abs(cancer.x_test.mean(0)).max() > 0.01
    assert cancer.classes == ("malignant", "benign")
    assert np.bincount(np.concatenate([cancer.y, cancer.y_test])).tolist() == [212, 357]
    assert len(cancer.feature_names) == 30
    assert cancer.public[1].endswith("and 22 more, taken from the training records, are declared public.")
    assert "455" not in cancer.public[1], "`publish` refuses a bundle that tells how many records there are"


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError, match=r"scikit-learn to be installed for data='digits'.*pip install scikit-learn"):
        data.load("digits")


def test_importing_the_package_loads_neither_jax_nor_scikit_learn():
    heavy = {"jax", "sklearn", "pyarrow", "rich.progress"}
    code = f"import sys, bayesdp.data; print(sorted({heavy!r} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert answer.stdout.strip() == "[]"


# --- the real files ---------------------------------------------------------------------------------------------


def test_adult(real_data):
    adult = data.load("adult", data_dir=real_data)
    assert adult.x.shape == (32561, 108)
    assert adult.x_test.shape == (16281, 108)
    assert np.bincount(adult.y).tolist() == [24720, 7841]
    assert np.bincount(adult.y_test).tolist() == [12435, 3846]
    assert adult.classes == ("<=50K", ">50K")
    names = adult.feature_names
    assert names[:3] == ("age", "workclass=?", "workclass=Federal-gov")
    missing = adult.x[:, names.index("workclass=?")]
    assert (missing.sum(), adult.x_test[:, names.index("workclass=?")].sum()) == (1836, 963)
    # Each of the eight text columns has exactly one category in each record; six columns are standardised.
    texts = [place for place, name in enumerate(names) if "=" in name]
    assert np.all(adult.x[:, texts].sum(axis=1) == 8)
    numbers = np.delete(adult.x, texts, axis=1)
    assert numbers.shape[1] == 6
    assert np.allclose(numbers.mean(0, dtype=np.float64), 0, atol=1e-6)
    assert np.allclose(numbers.std(0, dtype=np.float64), 1, atol=1e-6)
    # The first record: 39, State-gov, ..., 2174 capital gain.
    age = adult.recipe.columns[0]
    assert adult.x[0, 0] * age.scale + age.mean == pytest.approx(39, abs=1e-4)
    assert adult.x[0, names.index("workclass=State-gov")] == 1
    assert adult.source == "adult.data, adult.test (the original, by sha256)"
    assert adult.public[2].startswith("The vocabularies of 'workclass'")
    assert "(102 categories)" in adult.public[2]


def test_adult_as_in_the_dpvi_paper(real_data):
    adult = data.load("adult-dpvi", data_dir=real_data)
    assert adult.x.shape == (39073, 14)  # J11
    assert adult.x_test.shape == (9769, 14)
    whole = np.concatenate([adult.x, adult.x_test])
    assert np.allclose(whole.mean(0, dtype=np.float64), 0, atol=1e-6)
    assert np.allclose(whole.std(0, dtype=np.float64), 1, atol=1e-6)
    assert np.bincount(np.concatenate([adult.y, adult.y_test])).tolist() == [37155, 11687]
    assert [len(np.unique(column)) for column in whole.T] == [74, 9, 28523, 16, 16, 7, 15, 6, 5, 2, 123, 99, 96, 42]
    workclass = adult.recipe.columns[1]
    assert workclass.categories[0] == "?"
    assert (np.round(whole[:, 1] * workclass.scale + workclass.mean) == 0).sum() == 1836 + 963
    assert "all records, those to train and to test on" in adult.public[1]
    other = data.load("adult-dpvi", data_dir=real_data, seed=3)
    assert other.x.shape == adult.x.shape
    assert not np.array_equal(other.y, adult.y)


def test_abalone_equals_the_features_published_with_the_dpvi_paper(real_data):
    """Three rows of the prepared data in the authors' repository, printed to eight digits: M, M and F."""
    abalone = data.load("abalone", data_dir=real_data)
    assert abalone.x.shape == (3341, 8)  # J10
    assert abalone.x_test.shape == (836, 8)
    published = [
        [1.15434629, -0.57455813, -0.43214879, -1.06442415, -0.64189823, -0.60768536, -0.72621157, -0.63821689],
        [1.15434629, -1.44898585, -1.43992900, -1.18397831, -1.23027711, -1.17090984, -1.20522124, -1.21298732],
        [-0.05379815, 0.05003309, 0.12213032, -0.10799087, -0.30946926, -0.46349990, -0.35668983, -0.20713907],
    ]
    assert np.allclose(abalone.x[:3], published, atol=1e-7, rtol=1e-7)
    assert abalone.y[:10].tolist() == [1, 0, 0, 1, 0, 0, 1, 1, 0, 1]
    assert np.concatenate([abalone.y, abalone.y_test]).mean() == pytest.approx(0.4982044529566675)
    assert abalone.classes == ("rings < 10", "rings >= 10")
    assert abalone.feature_names[0] == "sex"


def test_mnist(real_data):
    mnist = data.load("MNIST", data_dir=real_data)
    assert mnist.x.shape == (60000, 28, 28, 1)
    assert mnist.x_test.shape == (10000, 28, 28, 1)
    assert np.bincount(mnist.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(mnist.y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert (mnist.x.min(), mnist.x.max()) == (0, 1)
    assert mnist.x.mean(dtype=np.float64) == pytest.approx(0.1307, abs=5e-5)
    assert mnist.x.std(dtype=np.float64) == pytest.approx(0.3081, abs=5e-5)
    assert mnist.source.endswith("(the original, by sha256)")
    assert len(mnist.public) == 1


def test_the_part_of_cifar10(real_data):
    cifar = data.load("cifar10", data_dir=real_data)
    assert cifar.x.shape == cifar.x_test.shape == (10000, 32, 32, 3)
    assert np.bincount(cifar.y).tolist() == [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981]
    assert np.bincount(cifar.y_test).tolist() == [1000] * 10
    assert np.allclose(cifar.x.mean((0, 1, 2), dtype=np.float64), [0.49345784, 0.48337516, 0.44717916], atol=1e-6)
    assert np.allclose(cifar.x_test.mean((0, 1, 2), dtype=np.float64), [0.49421428, 0.48513139, 0.45040909], atol=1e-6)
    assert cifar.source == "cifar-10-batches-py (in part: only data_batch_1 of five training batches)"


def test_the_folder_may_come_from_the_environment_or_be_the_data_sets_own(real_data, monkeypatch):
    direct = data.load("abalone", data_dir=real_data / "abalone")
    monkeypatch.setenv("BAYESDP_DATA", str(real_data))
    assert np.array_equal(data.load("abalone").x, direct.x)


# --- small files of the same layout -----------------------------------------------------------------------------


def write_mnist(folder, packed=True):
    folder.mkdir(parents=True)
    arrays = {}
    for part, count in (("train", 12), ("t10k", 5)):
        images = RNG.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        for name, values in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            content = struct.pack(f">{1 + values.ndim}I", 0x0800 + values.ndim, *values.shape) + values.tobytes()
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)
            arrays[name] = values
    return arrays


@pytest.mark.parametrize(("folder", "packed"), [("MNIST/raw", True), ("mnist", False), ("", True)])
def test_mnist_layouts(tmp_path, folder, packed):
    arrays = write_mnist(tmp_path / "data" / folder, packed)
    mnist = data.load("mnist", data_dir=tmp_path / "data")
    assert np.allclose(mnist.x[..., 0], arrays["train-images-idx3-ubyte"] / 255)
    assert np.array_equal(mnist.y_test, arrays["t10k-labels-idx1-ubyte"])
    assert mnist.source.endswith("(not the original, by sha256)" if packed else "(unpacked, not checked)")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-20],
        lambda content: b"no gzip at all",
        lambda content: b"",
        lambda content: gzip.compress(gzip.decompress(content)[:-1]),
        lambda content: gzip.compress(gzip.decompress(content) + b"x"),
        lambda content: gzip.compress(b"\0\0\x08\x01" + gzip.decompress(content)[4:]),
        lambda content: gzip.compress(struct.pack(">4I", 0x0803, 2**31, 28, 28)),
        lambda content: gzip.compress(struct.pack(">4I", 0x0803, 1, 7, 7) + bytes(49)),
    ],
)
def test_damaged_mnist(tmp_path, damage):
    write_mnist(tmp_path / "mnist")
    path = tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"t10k-images-idx3-ubyte.gz' to be an IDX file .*, got a damaged"):
        data.load("mnist", data_dir=tmp_path)


def cifar_batch(count, protocol=2):
    images = RNG.integers(0, 256, (count, 3072), dtype=np.uint8)
    labels = [int(label) for label in RNG.integers(0, 10, count)]
    return images, labels, pickle.dumps({b"data": images, b"labels": labels, b"batch_label": b"a batch"}, protocol)


def write_cifar_archive(path, extra=None, batches=5):
    expected = []
    with tarfile.open(path, "w:gz") as archive:
        for name in [*(f"data_batch_{number}" for number in range(1, batches + 1)), "test_batch"]:
            images, labels, content = cifar_batch(4)
            expected.append((images, labels))
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, content in (extra or {}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return expected


def test_the_official_archive_of_cifar10(tmp_path):
    *training, (test_images, test_labels) = write_cifar_archive(
        tmp_path / "cifar-10-python.tar.gz", extra={"../../escaped": b"x", "cifar-10-batches-py/readme.html": b"x"}
    )
    cifar = data.load("cifar10", data_dir=tmp_path)
    assert cifar.x.shape == (20, 32, 32, 3)
    assert cifar.y.tolist() == [label for _, labels in training for label in labels]
    assert cifar.y_test.tolist() == test_labels
    # Red of pixel (row 2, column 3) stands at 2·32 + 3, green 1024 later.
    assert np.allclose(cifar.x_test[:, 2, 3, 0], test_images[:, 67] / 255)
    assert np.allclose(cifar.x_test[:, 2, 3, 1], test_images[:, 1024 + 67] / 255)
    assert cifar.source == "cifar-10-python.tar.gz (not the original, by sha256)"
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-python.tar.gz"]


@pytest.mark.parametrize(("ending", "opener"), [("", open), (".xz", lzma.open), (".gz", gzip.open)])
def test_batch_files_of_cifar10(tmp_path, ending, opener):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in ("data_batch_2", "data_batch_5", "test_batch"):
        with opener(folder / f"{name}{ending}", "wb") as file:
            file.write(cifar_batch(3, protocol=4)[2])
    cifar = data.load("cifar10", data_dir=tmp_path)
    assert cifar.x.shape == (6, 32, 32, 3)
    assert cifar.source.endswith("(in part: only data_batch_2, data_batch_5 of five training batches)")


class Attack:
    def __reduce__(self):
        return os.mkdir, ("attacked",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Attack(), 2), "refused because it asks for .*mkdir"),
        (pickle.dumps({b"data": Attack()}, 2), "refused because it asks for .*mkdir"),
        (b"cos\nsystem\n(S'touch attacked'\ntR.", "refused because it asks for os.system"),
        (b"cbuiltins\neval\n(S'1'\ntR.", "refused because it asks for builtins.eval"),
        (cifar_batch(3)[2][:-200], "a damaged or another file"),
        (b"", "a damaged or another file"),
        (pickle.dumps([1, 2]), "a damaged or another file"),
        (pickle.dumps({b"data": np.zeros((2, 3072)), b"labels": [0, 1]}, 2), "a damaged or another file"),
        (pickle.dumps({b"data": np.zeros((2, 99), np.uint8), b"labels": [0, 1]}, 2), "a damaged or another file"),
        (pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 10]}, 2), "a damaged or another file"),
        (pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0]}, 2), "a damaged or another file"),
        (pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, -1]}, 2), "a damaged or another file"),
    ],
)
def test_a_bad_pickle_is_refused_and_never_run(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "test_batch").write_bytes(cifar_batch(3)[2])
    (folder / "data_batch_1").write_bytes(content)
    with pytest.raises(InputError, match=rf"data_batch_1' to hold CIFAR-10 .*, got .*{message}"):
        data.load("cifar10", data_dir=tmp_path)
    assert not (tmp_path / "attacked").exists()


def test_incomplete_or_damaged_cifar10(tmp_path):
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(cifar_batch(3)[2])
    with pytest.raises(InputError, match=r"data_batch_1 to data_batch_5 .* got test_batch"):
        data.load("cifar10", data_dir=tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write_cifar_archive(other / "cifar-10-python.tar.gz")
    content = (other / "cifar-10-python.tar.gz").read_bytes()
    for bad in (content[:2000], b"no archive"):
        (other / "cifar-10-python.tar.gz").write_bytes(bad)
        with pytest.raises(InputError, match=r"to hold CIFAR-10 .*, got a damaged"):
            data.load("cifar10", data_dir=other)
    (other / "test_batch.xz").write_bytes(b"no xz")
    with pytest.raises(InputError, match=r"test_batch.xz' to hold CIFAR-10 .*, got a damaged"):
        data.load("cifar10", data_dir=other)


def test_svhn(tmp_path):
    (tmp_path / "svhn").mkdir()
    images, labels = RNG.integers(0, 256, (32, 32, 3, 11), dtype=np.uint8), np.arange(11) % 10 + 1
    for name in ("train", "test"):
        savemat(tmp_path / "svhn" / f"{name}_32x32.mat", {"X": images, "y": labels[:, None].astype(np.uint8)})
    svhn = data.load("svhn", data_dir=tmp_path)
    assert svhn.x.shape == (11, 32, 32, 3)
    assert svhn.y.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert np.allclose(svhn.x[4], images[..., 4] / 255)
    for content in (
        {"X": images},
        {"X": images[:16], "y": labels},
        {"X": images, "y": labels[:5]},
        {"X": images, "y": labels - 1},
        {"X": images / 255, "y": labels},
    ):
        savemat(tmp_path / "svhn" / "test_32x32.mat", content)
        with pytest.raises(InputError, match=r"test_32x32.mat' to be .*, got a damaged file or another one"):
            data.load("svhn", data_dir=tmp_path)
    for content in (b"", b"hello" * 100, (tmp_path / "svhn" / "train_32x32.mat").read_bytes()[:3000]):
        (tmp_path / "svhn" / "test_32x32.mat").write_bytes(content)
        with pytest.raises(InputError, match="to be a MATLAB 5 file"):
            data.load("svhn", data_dir=tmp_path)


ADULT_ROW = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 1, 0, 40, ?, "
)


@pytest.mark.parametrize(
    ("test_file", "message"),
    [
        (ADULT_ROW + "<=50K.\n" + ADULT_ROW + "\n", "none in line 2, column 'income'"),
        (ADULT_ROW + "rich\n", "in <=50K or >50K, got 'rich' in line 1"),
        ("|1x3 Cross validator\n" + ADULT_ROW + ">50K.\n1, 2\n", "15 cells in every line, got 2 in line 3"),
        ("|1x3 Cross validator\n\n", "to hold records, got none"),
        (ADULT_ROW.replace("39", "old") + ">50K.\n", "numbers in column 'age', got a text in line 1"),
    ],
)
def test_a_malformed_adult(tmp_path, test_file, message):
    (tmp_path / "adult.data").write_text(ADULT_ROW + "<=50K\n" + ADULT_ROW + ">50K\n\n", encoding="utf-8")
    (tmp_path / "adult.test").write_text(test_file, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        data.load("adult", data_dir=tmp_path)


def test_a_sex_that_abalone_does_not_have(tmp_path):
    (tmp_path / "abalone.data").write_text("M,1,1,1,1,1,1,1,9\nX,2,1,1,1,1,1,1,12\n", encoding="utf-8")
    with pytest.raises(InputError, match="one of 'I', 'F', 'M' in column 'sex', got 'X' in line 2"):
        data.load("abalone", data_dir=tmp_path)


# --- names and options ------------------------------------------------------------------------------------------


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="Expected data to be one of 'digits', 'breast-cancer', 'adult'") as refused:
        data.load("minst")
    assert "got data='minst'. Did you mean 'mnist'?" in str(refused.value)
    assert all(repr(name) in str(refused.value) for name in data.CATALOGUE)


@pytest.mark.parametrize("options", [{"target": "y"}, {"scale": "none"}, {"drop": ["a"]}, {"task": "regression"}])
def test_options_of_an_own_file_are_refused_for_a_named_data_set(options):
    with pytest.raises(InputError, match="to be left out for data='digits'"):
        data.load("digits", **options)
    assert len(data.load("digits", drop=[], categories=[]).x) == 1437


def test_an_official_split_cannot_be_drawn_anew():
    with pytest.raises(InputError, match="seed to be left out for data='mnist', which has an official test set"):
        data.load("mnist", seed=1)
