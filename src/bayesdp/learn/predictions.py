"""What the model in a folder says of further records, whatever kind of model it is."""

from __future__ import annotations

from pathlib import Path

from bayesdp.errors import refuse
from bayesdp.learn import description, files, posterior_model, predictor


def predict(folder: str | Path, file: str | Path) -> list[list[str]]:
    """A line of heads and one for each record of `file`, a CSV, Parquet or NPZ with the columns of training.

    A classification has the columns `prediction` and `probability of …` for each class; a regression has `prediction`,
    in the target's own units; a density has `log density`. Of a posterior it is the mean over its draws.

    Bad input: a folder without a finished model, or a file that lacks a column: `InputError`.
    """
    place = Path(folder)
    path = place / description.NAME
    found = files.read_json(path) if path.is_file() else None
    kind = found.get("format") if isinstance(found, dict) else None
    module, names = (
        (posterior_model, posterior_model.NUMBERS)
        if kind == posterior_model.PosteriorModel.FORMAT
        else (predictor, (predictor.WEIGHTS,))
    )
    if found is None or not any((place / name).is_file() for name in names):
        missing = description.NAME if found is None else names[0]
        raise refuse("run", str(folder), f"to be a folder with a finished run, which has a {missing}")
    lines: list[list[str]] = module.predict(place, file)
    return lines
