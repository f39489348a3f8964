"""A shelf of broken input: each gets one clear line on stderr, exit code 2, no traceback, and nothing is written."""

from __future__ import annotations

import builtins
import os
import re
import zipfile

import numpy as np
import pyarrow
import pytest
import typer
from norm_files import distances, write_csv
from pyarrow import parquet

from bayesdp.cli.app import app
from bayesdp.cli.refusal import in_options, unabbreviated
from bayesdp.data.distances_file import Source, read
from bayesdp.errors import Argument, InputError, named, refuse

PLAN = ["--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "10"]
EPSILON = ["epsilon", *PLAN, "--delta", "1e-5"]
RUN = ["--noise-std", "1", "--sampling-rate", "0.01", "--delta", "1e-5"]


def changed(arguments, option, value):
    place = arguments.index(option)
    return [*arguments[: place + 1], value, *arguments[place + 2 :]]


@pytest.mark.parametrize("value", ["0", "1", "-0.1", "1.5", "nan", "inf"])
@pytest.mark.parametrize("command", ["epsilon", "calibrate", "account"])
def test_delta_outside_its_range(cli, tmp_path, command, value):
    norms = write_csv(tmp_path / "a.csv", distances(records=3))
    arguments = {
        "epsilon": EPSILON,
        "calibrate": ["calibrate", *PLAN[2:], "--epsilon", "1", "--delta", "1e-5"],
        "account": ["account", str(norms), *RUN],
    }[command]
    refused = cli(*changed(arguments, "--delta", value)).refused()
    assert f"Expected --delta to be a finite number > 0 and < 1, got --delta={float(value)}" in refused


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        (
            "--noise-multiplier",
            "0",
            "Expected --noise-multiplier to be a finite number > 0, got --noise-multiplier=0.0",
        ),
        (
            "--noise-multiplier",
            "-1",
            "Expected --noise-multiplier to be a finite number > 0, got --noise-multiplier=-1",
        ),
        ("--noise-multiplier", "nan", "--noise-multiplier=nan"),
        (
            "--sampling-rate",
            "1.01",
            "Expected --sampling-rate to be a finite number >= 0 and <= 1, got --sampling-rate",
        ),
        ("--sampling-rate", "-0.5", "got --sampling-rate=-0.5"),
        ("--steps", "1.5", "Expected --steps to be a whole number >= 0, got --steps=1.5"),
        ("--steps", "-3", "got --steps=-3"),
        ("--steps", "inf", "got --steps=inf"),
        ("--steps", "many", "Invalid value for '--steps': 'many' is not a number"),
        ("--delta", "", "Invalid value for '--delta': '' is not a number."),
    ],
)
def test_plan_out_of_range(cli, option, value, said):
    assert said in cli(*changed(EPSILON, option, value)).refused()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*EPSILON, "--engine", "fast"], "Expected --engine to be one of 'pld', 'rdp', 'moments', 'advanced'"),
        ([*EPSILON, "--adjacency", "next"], "Expected --adjacency to be one of 'add-remove', 'replace-one', got"),
        ([*EPSILON, "--orders", "1"], "Expected --orders to hold finite numbers > 1, got --orders[0]=1.0"),
        ([*EPSILON, "--orders", "4,0.5"], "got --orders[1]=0.5"),
        ([*EPSILON, "--orders", "4;5"], "Expected --orders to be numbers separated by commas, got --orders='4;5'"),
        ([*EPSILON, "--engine", "advanced", "--orders", "4"], "Expected --orders to be left out"),
        ([*EPSILON, "--phase", "1,2"], "Expected --phase to be 3 numbers separated by commas, got --phase='1,2'"),
        ([*EPSILON, "--phase", "1,2,3"], "enters a step. In --phase='1,2,3'."),
        (["epsilon", "--delta", "1e-5"], "Expected --noise-multiplier and --steps together, or --phase"),
        (["epsilon", "--delta", "1e-5", "--steps", "9"], "got --noise-multiplier=None and --steps=9.0"),
        (["epsilon", *PLAN], "Missing option '--delta'"),
        (["delta", *PLAN, "--epsilon", "-1"], "Expected --epsilon to be a finite number >= 0, got --epsilon=-1.0"),
        (["delta", *PLAN, "--epsilon", "nan"], "got --epsilon=nan"),
        (["calibrate", *PLAN, "--epsilon", "1", "--delta", "1e-5"], "Expected two of --noise-multiplier"),
        (["calibrate", *PLAN[:2], "--epsilon", "1", "--delta", "1e-5"], "and --steps, got --noise-multiplier."),
        (["calibrate", "--epsilon", "1", "--delta", "1e-5"], "got none"),
        (["calibrate", *PLAN[2:], "--epsilon", "0", "--delta", "1e-5"], "got --epsilon=0.0"),
        (
            ["calibrate", *PLAN[:2], *PLAN[4:], "--epsilon", "1e-9", "--delta", "1e-9", "--engine", "moments"],
            "Expected an epsilon within reach, got --epsilon=1e-09 at --delta=1e-09",
        ),
        (["reproduce", "bdp-fig9"], "Expected NAME to be one of 'bdp-fig1', 'bdp-fig2'"),
        (["reproduce"], "Expected NAME to be one of bdp-fig1, bdp-fig2"),
        (["reproduce", "bdp-fig4", "--seed", "-1"], "Expected --seed to be a whole number >= 0, got --seed=-1"),
        (["demo", "--seed", "-1"], "Expected --seed to be a whole number >= 0"),
        (["demo", "--seed", "1.5"], "got --seed=1.5"),
        (["nonsense"], "No such command 'nonsense'"),
        (["epsilon", "--nonsense"], "--nonsense"),
        (["account"], "Missing argument 'FILE'"),
    ],
)
def test_options_that_cannot_be_used(cli, arguments, said):
    assert said in cli(*arguments).refused()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--noise-std", "0"], "Expected --noise-std to be a finite number > 0, got --noise-std=0.0"),
        (["--noise-std", "-2"], "got --noise-std=-2.0"),
        (["--noise-std", "nan"], "got --noise-std=nan"),
        ([], "Expected --noise-std, or --noise-multiplier with --clip-norm, got neither"),
        (["--noise-std", "1", "--noise-multiplier", "1"], "got both"),
        (["--noise-multiplier", "1"], "Expected --clip-norm beside --noise-multiplier=1, got none"),
        (["--noise-multiplier", "-1", "--clip-norm", "1"], "got --noise-multiplier=-1.0"),
        (["--noise-std", "1", "--clip-norm", "0"], "Expected --clip-norm to be a finite number > 0"),
        (["--noise-std", "1", "--sampling-rate", "7"], "got --sampling-rate=7.0"),
        (["--noise-std", "1", "--coverage", "1"], "Expected --coverage to be a finite number > 0 and < 1"),
        (["--noise-std", "1", "--failure", "0"], "Expected --failure to be a finite number > 0 and < 1"),
        (["--noise-std", "1", "--orders", "1"], "got --orders[0]=1.0"),
        (["--noise-std", "1", "--composition", "sum"], "Expected --composition to be one of 'holdout', 'holder'"),
        (["--noise-std", "1", "--estimator", "betting"], "Expected --estimator to be left out"),
        (
            ["--noise-std", "1", "--composition", "product"],
            "Expected --clip-norm to be given for --estimator='betting'",
        ),
        (["--noise-std", "1", "--adjacency", "replace-one"], "Expected --clip-norm to be given for --adjacency"),
        (["--noise-std", "1", "--top", "0"], "Expected --top to be a whole number >= 1, got --top=0"),
        (["--noise-std", "1", "--total-steps", "2"], "Expected at most --total-steps=2 steps"),
        (["--noise-std", "1", "--total-steps", "0"], "Expected --total-steps to be a whole number >= 1"),
        (["--noise-std", "1", "--clip-norm", "0.1"], "to be at most --clip-norm=0.1"),
        (
            ["--noise-std", "1", "--clip-norm", "1", "--composition", "product", "--curve"],
            "Expected --composition to be 'holdout' for --curve",
        ),
        (
            ["--noise-std", "1", "--clip-norm", "1", "--composition", "product"],
            "Expected --failure to be below",
        ),
        (["--noise-std", "1", "--array", "norms"], "Expected --array to be left out unless FILE is an NPZ"),
    ],
)
def test_account_options_that_cannot_be_used(cli, tmp_path, arguments, said):
    norms = write_csv(tmp_path / "a.csv", distances(steps=3, records=150))
    assert said in cli("account", norms, "--delta", "1e-5", *arguments).refused()


def test_refusals_from_a_row_name_the_row(cli, tmp_path):
    path = write_csv(tmp_path / "a.csv", np.array([[0.1], [0.2], [3.0]]), ["x"])
    refused = cli("account", path, *RUN, "--clip-norm", "1").refused()
    assert f"got distances=3.0. Clip before accounting. In FILE='{path}', line 4." in refused


def test_members_must_have_gone_as_many_steps(cli, tmp_path):
    path = write_csv(tmp_path / "a.csv", distances(steps=3, records=4))
    other = write_csv(tmp_path / "b.csv", distances(steps=2, records=5))
    refused = cli("account", path, *RUN, "--members", other).refused()
    assert "Expected FILE and --members to have the same number of steps, got 3 and 2." in refused
    assert f"Expected --members='{tmp_path / 'c.csv'}' to be a readable file" in (
        cli("account", path, *RUN, "--members", tmp_path / "c.csv").refused()
    )


# --- files ------------------------------------------------------------------------------------------------------


def npz(**arrays):
    def write(path):
        with path.open("wb") as file:
            np.savez(file, **arrays)

    return write


def table(**columns):
    return lambda path: parquet.write_table(pyarrow.table(columns), path)


def cut(write, share):
    def broken(path):
        write(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return broken


def zipped(**members):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return write


GARBAGE = np.random.default_rng(0).bytes(4096)
NUMBERS = np.array([[0.5, 0.25], [0.125, 1.0]])

SHELF = {
    "empty.csv": ("", "to hold at least one step (row), got none"),
    "blank.csv": ("\n\n\n", "to hold at least one step (row), got none"),
    "only-names.csv": ("ann,bob\n", "to hold at least one step (row), got none"),
    "short.csv": ("1,2,3\n1,2\n", "for each of its 3 records in every row, got 2 in line 2"),
    "long.csv": ("a,b\n1,2\n1,2,3\n", "for each of its 2 records in every row, got 3 in line 3"),
    "hole.csv": ("1,2\n\n1,2\n", "got a blank line 2"),
    "text.csv": ("ann,bob\n1,2\n1,two\n", "got a text in line 3, column 2 ('bob')"),
    "missing-cell.csv": ("1,2\n1,\n", "got nothing in line 2, column 2."),
    "semicolons.csv": ("1;2\n3;4\n", "got a text in line 2, column 1 ('1;2')"),
    "negative.csv": ("1,2\n1,-0.5\n", "to hold finite numbers >= 0, got a negative number in line 2, column 2."),
    "nan.csv": ("ann,bob\n1,2\nnan,2\n", "got nan in line 3, column 1 ('ann')"),
    "infinite.csv": ("# comment\n1,2\n1,1e999\n", "got inf in line 3, column 2."),
    "mixed.csv": ("ann,2\n1,2\n", "to begin with a line of numbers or of names, got both in line 1 (a text beside"),
    "index.csv": (",ann,bob\n0,1,2\n", "to name every record in its header, got an empty name in line 1"),
    "garbage.csv": (GARBAGE, "to be text in UTF-8, numbers separated by commas"),
    "utf-16.csv": ("1,2\n".encode("utf-16"), "to be text in UTF-8"),
    "zeros.csv": (b"\0" * 100, "to hold at least one step (row), got none"),
    "huge-cell.csv": ("1," + "9" * 200_000 + "\n", "numbers separated by commas, got something else"),
    "numbers.txt": ("1,2\n", "to end in .csv, .npz, .npy or .parquet, got '.txt'"),
    "numbers": ("1,2\n", "to end in .csv, .npz, .npy or .parquet, got 'no ending'"),
    "empty.npz": (b"", "to be an NPZ file of numbers"),
    "garbage.npz": (GARBAGE, "to be an NPZ file of numbers"),
    "truncated.npz": (cut(npz(a=NUMBERS), 0.6), "to be an NPZ file of numbers"),
    "truncated.npy": (cut(lambda path: np.save(path, NUMBERS), 0.9), "to be an NPZ file of numbers"),
    "nothing.npz": (npz(), "to hold one array, or --array to name one, got no array"),
    "two.npz": (npz(a=NUMBERS, b=NUMBERS), "to hold one array, or --array to name one, got 'a', 'b'"),
    "objects.npz": (npz(a=np.array([[1, "x"], [None, 2]], dtype=object)), "damaged, pickled or something else"),
    "words.npz": (npz(a=np.array([["a", "b"]])), "numbers of shape (steps, records), got shape (1, 2) of <U1"),
    "complex.npz": (npz(a=NUMBERS * 1j), "got shape (2, 2) of complex128"),
    "flat.npz": (npz(a=np.ones(3)), "to hold an array of numbers of shape (steps, records), got shape (3,)"),
    "cube.npz": (npz(a=np.ones((2, 2, 2))), "got shape (2, 2, 2)"),
    "no-steps.npz": (npz(a=np.ones((0, 3))), "to hold at least one step (row), got none"),
    "no-records.npz": (npz(a=np.ones((3, 0))), "to hold at least one record (column), got shape (3, 0)"),
    "nan.npz": (npz(a=np.array([[1.0, 2.0], [1.0, np.nan]])), "got nan in row 2, column 2."),
    "negative.npz": (npz(a=np.array([[1, -2]])), "got a negative number in row 1, column 2."),
    "not-arrays.npz": (zipped(**{"word/document.xml": "<xml/>"}), "of shape (steps, records), got no array"),
    "bomb.npz": (
        zipped(
            **{"a.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%d, 9), }" % 10**15}
        ),
        "to be an NPZ file of numbers",
    ),
    "empty.parquet": (b"", "to be a Parquet file that can be read"),
    "garbage.parquet": (GARBAGE, "to be a Parquet file that can be read"),
    "truncated.parquet": (cut(table(a=[1.0] * 99), 0.5), "to be a Parquet file that can be read"),
    "csv.parquet": ("1,2\n", "to be a Parquet file that can be read"),
    "words.parquet": (table(a=[1.0], b=["x"]), "to hold numbers, got column 'b' of string"),
    "null.parquet": (table(a=[1.0, 1.0], b=[1.0, None]), "got nan in row 2, column 2 ('b')"),
    "null-whole.parquet": (table(a=[1, None]), "got nan in row 2, column 1 ('a')"),
    "negative.parquet": (table(a=[1.0, -1.0]), "got a negative number in row 2, column 1 ('a')"),
    "no-steps.parquet": (table(a=pyarrow.array([], pyarrow.float64())), "to hold at least one step (row), got none"),
    "no-records.parquet": (table(), "to hold at least one record (column), got none"),
    "index.parquet": (table(a=[1.0], __index_level_0__=[7]), "got the index column '__index_level_0__'"),
}


def put(path, content):
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", SHELF)
def test_shelf_of_broken_files(cli, tmp_path, name):
    content, said = SHELF[name]
    path = put(tmp_path / name, content)
    refused = cli("account", path, *RUN).refused()
    assert said in refused
    assert f"FILE='{path}'" in refused
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_file_that_is_not_there_or_is_a_folder(cli, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for ending in ("csv", "npz", "parquet"):
        missing = tmp_path / f"missing.{ending}"
        expected = f"Expected FILE='{missing}' to be a readable file, got No such file or directory."
        assert expected in cli("account", missing, *RUN).refused()
    for ending in ("csv", "npz", "parquet"):
        folder = tmp_path / f"folder.{ending}"
        folder.mkdir(exist_ok=True)
        assert "to be a readable file, got Is a directory." in cli("account", folder, *RUN).refused()


def test_wrong_array_name(cli, tmp_path):
    path = put(tmp_path / "a.npz", npz(norms=NUMBERS))
    refused = cli("account", path, *RUN, "--array", "nroms").refused()
    assert "Expected --array to name an array of a.npz: 'norms'; got --array='nroms'." in refused


def test_header_is_for_csv(cli, tmp_path):
    path = put(tmp_path / "a.npz", npz(norms=NUMBERS))
    assert "Expected --header to be left out unless FILE is a CSV" in cli("account", path, *RUN, "--header").refused()
    text = put(tmp_path / "a.csv", "ann,bob\n1,2\n")
    assert "got a text in line 1, column 1." in cli("account", text, *RUN, "--no-header").refused()


def test_parquet_without_pyarrow_says_what_to_install(cli, tmp_path, monkeypatch):
    path = put(tmp_path / "a.parquet", table(a=[1.0]))
    load = builtins.__import__

    def without(name, *rest, **others):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return load(name, *rest, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    assert 'pip install "bayesdp[parquet]"' in cli("account", path, *RUN).refused()


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
def test_damaged_arrays_are_read_or_refused_never_worse(tmp_path, name):
    path = tmp_path / name
    (np.savez if name.endswith("npz") else np.save)(path, NUMBERS)
    content = path.read_bytes()
    rng = np.random.default_rng(3)
    outcomes = set()
    for _ in range(300):
        broken = bytearray(content)
        for place in rng.integers(0, len(broken), 3):
            broken[place] = rng.integers(256)
        path.write_bytes(broken)
        try:
            outcomes.add(len(list(read(Source("FILE", path)))))
        except InputError as refusal:
            outcomes.add(f"refused {name in str(refusal)}")
    assert "refused True" in outcomes
    assert "refused False" not in outcomes


def test_out_that_cannot_be_a_folder(cli, tmp_path):
    (tmp_path / "file").write_text("kept")
    refused = cli("reproduce", "bdp-fig4", "--out", tmp_path / "file").refused()
    assert re.search(r"Expected --out to be a folder that can be \w+, got --out='", refused)
    assert (tmp_path / "file").read_text() == "kept"
    assert os.listdir(tmp_path) == ["file"]
    refused = cli("reproduce", "bdp-fig4", "--out", tmp_path / "file" / "below").refused()
    assert "--out" in refused


def test_an_operating_system_error_is_one_line_too(cli, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device", "somewhere.csv")

    monkeypatch.setattr("bayesdp.experiments.run.reproduce", full)
    assert cli("reproduce", "bdp-fig4").refused() == "bayesdp: No space left on device: somewhere.csv\n"


# --- from arguments to options ----------------------------------------------------------------------------------

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_of_every_command_is_named_as_it_is_typed(command):
    for option in COMMANDS[command].params:
        typed = option.metavar if option.param_type_name == "argument" else option.opts[0]
        error = refuse(option.name, 7, "to be another", f"Not beside {named(option.name)}.")
        said = f"Expected {typed} to be another, got {typed}=7. Not beside {typed}."
        assert in_options(error, [COMMANDS["train"], COMMANDS[command]]) == said
        assert typed == typed.upper() or typed.startswith("--")


def test_names_of_the_library_that_a_command_has_under_another():
    train, account, resume = (COMMANDS[name] for name in ("train", "account", "resume"))
    assert (
        in_options(refuse("cap", None, "to be given"), [account])
        == "Expected --clip-norm to be given, got --clip-norm=None."
    )
    assert in_options(refuse("noise_schedule", "x", "to be y"), [train]).startswith("Expected --schedule to be y")
    assert (
        in_options(refuse("sensitivities", 1, "to be y"), [account]) == "Expected distances to be y, got distances=1."
    )
    assert (
        in_options(refuse("orders[0]", 1, "to be y"), [account]) == "Expected --orders[0] to be y, got --orders[0]=1."
    )
    assert in_options(refuse("steps", 1, "to be y"), [train, resume]).startswith("Expected --steps to be y")
    assert in_options(refuse("nothing", 1, "to be y"), [train]) == "Expected nothing to be y, got nothing=1."


def test_a_list_of_one_is_shown_as_it_is_typed():
    hint = f"Leave it out ({Argument('drop', ('a b',))})."
    assert in_options(refuse("data", "x", "to be y", hint), [COMMANDS["train"]]).endswith(
        "Leave it out (--drop 'a b')."
    )


def test_words_that_are_also_arguments_stay_words():
    error = InputError("Expected data with more steps, got a model of members=3.")
    assert in_options(error, COMMANDS.values()) == str(error)


def test_options_may_be_cut_short_where_that_is_clear(cli):
    short = cli("epsilon", "--noise-m", "1", "--sampling-rate=0.01", "--ste", "10", "--del", "1e-5", "--json")
    assert short.json == cli(*EPSILON, "--json").json
    assert unabbreviated("--eps", ["--epsilon", "--delta"]) == "--epsilon"
    assert unabbreviated("--eps=2", ["--epsilon-budget", "--epsilon", "--out"]) == "--epsilon=2"
    assert unabbreviated("--noise", ["--noise-std", "--noise-multiplier"]) == "--noise"
    assert unabbreviated("-e", ["--epsilon"]) == "-e"
