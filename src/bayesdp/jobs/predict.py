"""What the model in a folder says of further records, whatever kind of model it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesdp import storage
from bayesdp.data import read_features, recipe_from_dict
from bayesdp.data.dataset import Features
from bayesdp.data.further import read_further
from bayesdp.errors import refuse
from bayesdp.jobs.saved.model import SavedModel
from bayesdp.jobs.saved.network import SavedNetwork
from bayesdp.learn.loop.run_folder import RunFolder


def predict(
    folder: str | Path,
    file: str | Path,
    *,
    key: str | None = None,
    threshold: float | None = None,
    public: bool = False,
    trust_code: bool = False,
) -> list[list[str]]:
    """A line of heads and one for each record of `file`, a CSV, Parquet or NPZ with the columns of training.

    A classification has the columns `prediction` and `probability of …` for each class; a regression has `prediction`,
    in the target's own units; a density has `log density`. Of a posterior it is the mean over its draws.

    A record that lacks a value has an empty line where training left such records out. `key` names a column of the file
    that comes first in each line.
    `threshold`: the second of two classes is predicted where its probability is at least that. `public`: refuse a file
    with a record of the data that the run was made with: see `check_strangers`.
    `trust_code`: the model may be a file in the folder, which is then run as a program.

    Bad input: a folder without a finished model, or a file that lacks a column: `InputError`.
    """
    place = RunFolder(Path(folder))
    model = saved_model(place, trust_code=trust_code)
    if public:
        check_strangers(place, model, file, trust_code=trust_code)
    return _lined_up(model, file, key, model.predict(place, file, threshold))


def remarks(folder: str | Path, file: str | Path, *, trust_code: bool = False) -> list[str]:
    """What the model in a folder cannot use of the records of a file, a sentence each. Bad input: see `predict`."""
    model = saved_model(RunFolder(Path(folder)), trust_code=trust_code)
    records = read_further(file, recipe_from_dict(model.recipe))
    said = [
        f"{count:,} record{'s have' if count > 1 else ' has'} a category in column {name!r} that the model does not "
        "know, and counts as none of those that it knows."
        for name, count in records.unseen.items()
    ]
    said += [
        f"{count:,} record{'s have' if count > 1 else ' has'} a number in column {name!r} outside of the range that "
        "the model was made for, and counts as its nearest end: predictions for people unlike those trained on are "
        "guesses."
        for name, count in records.beyond.items()
    ]
    gone = len(records.kept) - int(records.kept.sum())
    if gone:
        lacking = f"{gone:,} record{'s lack' if gone > 1 else ' lacks'} a value that the model needs"
        said.append(f"{lacking}, and got no prediction: training left such records out.")
    return said


def _lined_up(model: SavedModel, file: str | Path, key: str | None, answers: list[list[str]]) -> list[list[str]]:
    """The answers, one for each record that has one, in the lines of their records."""
    heads, *told = answers
    records = read_further(file, recipe_from_dict(model.recipe), key)
    lines = [[""] * len(heads) for _ in records.kept]
    for row, answer in zip(np.flatnonzero(records.kept), told, strict=True):
        lines[row] = answer
    if key is None or records.keys is None:
        return [heads, *lines]
    return [[key, *heads], *([one, *line] for one, line in zip(records.keys, lines, strict=True))]


def check_strangers(folder: RunFolder, model: SavedModel, file: str | Path, *, trust_code: bool = False) -> None:
    """Refuse a file in which a record has the features of one that was trained on, held out or tested on.

    A prediction is a function of the record's own features: about somebody whose record is secret it is no
    post-processing of the model. Features are compared as the model sees them, so that a copy in another order or with
    other columns beside is found; one that was changed in any feature is not.

    Bad input: such a file; a folder without the run's job, which says where the records are, or other records there.
    """
    from bayesdp.jobs.resume import prepare, read_job

    if not folder.begun:
        hint = "A published bundle does not know whom it was trained on; ask those who hold the run."
        raise refuse("run", str(folder.path), "to be the run's own folder where predictions are to be public", hint)
    job = read_job(folder, trust_code=trust_code)
    prepare(job).check_same(folder)
    data = job.load()  # before anybody is held out
    known = {one for part in (data.x, data.x_test) for one in _rows(part)}
    asked = _rows(read_features(file, recipe_from_dict(model.recipe)))
    count = sum(one in known for one in asked)
    if count:
        raise refuse(
            "data",
            str(file),
            "to hold none of the records that the run was made with",
            f"{count:,} of {len(asked):,} are: a line about one of them tells of that person's features. Leave them "
            "out, or keep the predictions as you keep the records.",
        )


def _rows(x: Features) -> list[bytes]:
    # + 0: a negative zero is the same number, and must be the same bytes.
    return [row.tobytes() for row in np.ascontiguousarray(x, np.float32) + np.float32(0)]


def saved_model(folder: RunFolder, *, trust_code: bool = False) -> SavedModel:
    """The model that a folder describes. Bad input: a folder without one, or with code that is not trusted."""
    found = storage.read_json(folder.need(folder.model))
    if isinstance(found, dict) and found.get("format") == SavedNetwork.FORMAT:
        return SavedNetwork.read(folder)
    from bayesdp.jobs.saved.posterior import SavedPosterior  # of NumPyro, which a network does not need

    return SavedPosterior.read(folder, trust_code=trust_code)
