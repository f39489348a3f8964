"""From the folder of a run to what may be said of it: each field is taken over by name, nothing else is.

A run is refused that was seeded, did not finish, promises nothing to everybody, or rests on a formula that is no
theorem. What was taken from the data and declared public is repeated as such; numbers of records are not, unless they
were declared beforehand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayesdp import storage
from bayesdp.data.recipe import TableRecipe, recipe_from_dict
from bayesdp.errors import refuse
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models.model_names import family_in_words, network_in_words
from bayesdp.learn.record_count import PUBLIC
from bayesdp.publish.release import Release
from bayesdp.report import Report, read
from bayesdp.unit import spoken
from bayesdp.version import __version__

_RUN_FORMAT, _RUN_VERSION = "bayesdp/run", 1
_NETWORK = "bayesdp/model"
_SIZE = "The number of training records"
"""How the sentence begins that tells how many records there are."""

_UNNAMED = (
    "The number of records was taken from the data and is taken to be public: neighbouring data sets have the same "
    "number, and the record's contribution is absent, or another's, in one of them (H18)."
)


def release_of(run: str | Path, *, intended_use: str = "", contact: str = "") -> Release:
    """The public facts of the run in a folder. Bad input: a run that may not be published."""
    folder = RunFolder.open(run)
    folder.check_finished()
    if folder.samples.exists():
        hint = "Of samples of a secret posterior publish samples.npz with the DP promise of its report, if it has one."
        raise refuse("run", str(run), "to be a run of noisy steps", hint)
    report = read(folder.need(folder.report))
    note = storage.read_tagged(folder.need(folder.plan), _RUN_FORMAT, _RUN_VERSION)
    described = storage.read_json(folder.need(folder.model))
    dp = _promise(report, str(run))
    with storage.reading(folder.plan):
        terms, planned = note["terms"], int(note["planned"])
        declared = terms["num_records"]
        return Release(
            title=report.title,
            created=report.created,
            generator=f"bayesdp {__version__}",
            learner=report.settings.kind,
            optimizer=report.settings.optimizer,
            released=report.released,
            update_rule=terms["update_in_words"],
            facts=dict(terms["facts"]),
            **_model(described),
            dp=dp,
            engine=terms["engine"],
            chains=note["chains"],
            noise=_first(terms["noise"], planned),
            rates=_first(terms["rates"], planned),
            clip_norms=_first(terms["clip_norms"], planned),
            num_records=declared,
            prelude=terms["prelude"],
            prelude_delta=terms["prelude_delta"],
            filtered="filter" in terms["facts"],
            declared=tuple(one for one in report.preprocessing if not one.startswith(spoken(_SIZE, dp.unit))),
            paid=report.paid,
            own_code=folder.model_code.exists(),
            intended_use=intended_use,
            contact=contact,
        )


def _promise(report: Report, run: str) -> Guarantee:
    """The promise to everybody, without the number of records."""
    if report.seeded:
        raise refuse("run", run, "to be private", "Its noise came from a seed: train again without one.")
    found = [one for one in report.guarantees if one.notion == "dp"]
    if not found or found[0].epsilon == float("inf"):
        raise refuse("run", run, "to promise something to everybody (DP)", "Nothing that it gives may be published.")
    dp = found[0]
    if dp.standing != "proved":
        raise refuse("run", run, "to have a proved DP guarantee", f"This one is {dp.standing}.")
    counted = spoken(PUBLIC.partition("{")[0], dp.unit)
    unnamed = spoken(_UNNAMED, dp.unit)
    words = tuple(unnamed if one.startswith(counted) else one for one in dp.assumptions)
    return Guarantee.from_dict({**dp.to_dict(), "assumptions": list(words)})


def _model(described: Any) -> dict[str, Any]:
    """Which model, of what, for what."""
    network = described.get("format") == _NETWORK
    recipe = recipe_from_dict(described["recipe"])
    columns = tuple(column.name for column in recipe.columns) if isinstance(recipe, TableRecipe) else ()
    shape = " x ".join(map(str, described["shape"]))
    name, classes = Path(str(described["model"])).name, described["classes"]
    called = network_in_words(name, len(classes)) if network else family_in_words(name)
    weights = described.get("class_weights") or ()
    if weights:
        pairs = (f"{one} {weight:g}" for one, weight in zip(classes, weights, strict=True))
        called += f", trained with the class weights {', '.join(pairs)}"
    return {
        "model": called,
        "inputs": columns or (f"an array of shape {shape}",),
        "answers": tuple(classes),
    }


def _first(levels: list[list[float]], steps: int) -> tuple[tuple[float, int], ...]:
    """The levels of the first so many steps."""
    found, left = [], steps
    for level, count in levels:
        if left > 0:
            found.append((float(level), min(int(count), left)))
            left -= int(count)
    return tuple(found)
