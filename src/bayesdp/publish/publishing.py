"""Making the bundle of a run: all of it is made and looked through for private numbers before anything is written.

release.json, model.json …          no private number of the run in them (`leaks`)
index.html, MODEL_CARD.md, …        what release.json gives, letter by letter: they hold nothing that it does not
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayesdp import storage
from bayesdp.errors import refuse, unmet
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.publish import leaks
from bayesdp.publish.bundle import MANIFEST, RELEASE, manifest, texts
from bayesdp.publish.from_run import release_of
from bayesdp.publish.release import Release
from bayesdp.storage.manifest import NAME as CHECKSUMS


def publish(run: str | Path, out: str | Path, *, intended_use: str = "", contact: str = "") -> Release:
    """Write the bundle of a run into `out`, a new or empty folder.

    Bad input: a run that may not be published (`from_run`), a folder that is not free, or a private number that would
    have been published: `InputError`, and nothing is written.
    """
    RunFolder(Path(out)).check_free()
    release = release_of(run, intended_use=intended_use, contact=contact)
    folder = RunFolder.open(run)
    model = _model_files(folder)
    written = texts(release)
    _check_pages(written)
    looked_at = {**model, RELEASE: written[RELEASE]}
    # What the noisy steps released, and what was computed from that alone.
    steps = [one.name for one in (folder.params, folder.guide, folder.iterates)]
    leaks.check(looked_at, folder.path, [*model, *steps, CHECKSUMS], *_public(folder, release, model))
    files = {**model, **written}
    place = storage.make_folder(out, "out")
    for name, content in files.items():
        storage.replace(place / name, content, private=False)
    storage.replace(place / MANIFEST, manifest(files), private=False)
    return release


def _check_pages(written: Mapping[str, bytes]) -> None:
    """Refuse pages that are not made from release.json alone."""
    values = leaks.plain(written[RELEASE])
    again = texts(Release.from_dict({name: one for name, one in values.items() if name not in ("format", "version")}))
    for name, content in again.items():
        if content != written[name]:
            expected = f"{name} of the bundle to be made from {RELEASE} alone"
            raise unmet("run", None, expected, "other words", "Nothing was written. Please report this.")


def _public(folder: RunFolder, release: Release, model: Mapping[str, bytes]) -> list[Any]:
    """What may be told: the plan and what was typed, the promise to everybody, what was paid for, the model."""
    dp = {name: one for name, one in release.dp.to_dict().items() if name != "assumptions"}
    typed = [storage.read_json(one) for one in (folder.plan, folder.job) if one.is_file()]
    paid = None if release.paid is None else release.paid.to_dict()
    return [dp, paid, *typed, *(leaks.plain(content) for name, content in model.items() if name.endswith(".json"))]


def _model_files(folder: RunFolder) -> dict[str, bytes]:
    """What is needed to use the model, and the counts that were paid for."""
    numbers = folder.posterior if folder.posterior.exists() else folder.params
    wanted = [folder.need(folder.model), folder.need(numbers)]
    wanted += [folder.need(one) for one in (folder.model_code, folder.metrics) if one.is_file()]
    try:
        return {one.name: one.read_bytes() for one in wanted}
    except OSError as problem:
        raise refuse("run", str(folder.path), "to be readable", str(problem)) from None
