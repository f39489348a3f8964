"""Whether a bundle is whole and its numbers follow from its plan: without JAX, and without trusting what it says.

1. every file has the checksum of the manifest, none is missing, none is there besides
2. the DP ε follows from the plan in release.json: noise, rates and steps are accounted for anew
3. the page, the card and the list are what release.json gives, letter by letter (if this version wrote them)

Checksums notice accidents, not forgery: whoever can change a file can write a new manifest. Compare its own digest,
which `verify` prints, with one that came another way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from bayesdp import storage
from bayesdp.errors import unfit, unmet
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.publish.bundle import MANIFEST, MANIFEST_FORMAT, MANIFEST_VERSION, RELEASE, manifest, texts
from bayesdp.publish.release import FORMAT, VERSION, Release
from bayesdp.version import __version__

_TOLERANCE = 1e-9
"""How far a recomputed ε may be above the stated one: the last digits of another machine's mathematics."""


@dataclass(frozen=True)
class Verified:
    """What was found: the promise, how many files, and what was not compared, in words."""

    epsilon: float
    delta: float
    recomputed: float
    files: int
    digest: str
    remarks: tuple[str, ...] = ()


def verify(path: str | Path) -> Verified:
    """Check a bundle. Bad input: anything in it that is not as it was, or does not follow: `InputError` says what."""
    folder = Path(path)
    if not (folder / MANIFEST).is_file() and RunFolder(folder).plan.is_file():
        return _of_run(RunFolder(folder))
    content = _read(folder / MANIFEST)
    found = storage.read_tagged(folder / MANIFEST, MANIFEST_FORMAT, MANIFEST_VERSION)
    with storage.reading(folder / MANIFEST):
        names = [str(name) for name in found["sha256"]]
        if any("/" in name or "\\" in name or name in ("", ".", "..", MANIFEST) for name in names):
            raise unfit(MANIFEST, "to name files of the bundle", "something else")
        sums = {name: str(one) for name, one in found["sha256"].items()}
    there = {one.name for one in folder.iterdir()} - {MANIFEST}
    for name in sorted(there ^ set(names)):
        raise unfit(f"{name} of the bundle", "to be in the folder and in its manifest", "it in one of them only")
    files = {name: _read(folder / name) for name in names}
    for name, one in files.items():
        if hashlib.sha256(one).hexdigest() != sums[name]:
            raise unfit(f"{name} of the bundle", "to be as it was written", "another content")
    if manifest(files) != content:
        raise unfit(MANIFEST, "to be as it was written", "another content")
    if RELEASE not in files:
        raise unfit("the bundle", f"to have a {RELEASE}", "none")
    release = Release.from_dict(storage.read_tagged(folder / RELEASE, FORMAT, VERSION))
    return _checked(release, files, hashlib.sha256(content).hexdigest())


def _checked(release: Release, files: dict[str, bytes], digest: str) -> Verified:
    recomputed, remarks = _follows(release), []
    if release.filtered:
        remarks.append(
            "Records had budgets of their own (individual filters, H4), which hold while training and cannot be "
            f"computed again from the plan; without them the plan would cost DP ε = {recomputed:.5g}."
        )
    counts = RunFolder(Path()).metrics.name
    if release.paid is not None and counts not in files:
        raise unfit("the bundle", f"to hold {counts}, which its release speaks of", "none")
    if release.generator == f"bayesdp {__version__}":
        for name, content in texts(release).items():
            if files.get(name) != content:
                raise unfit(f"{name} of the bundle", f"to follow from {RELEASE}", "another content")
    else:
        remarks.append(
            f"Written by {release.generator}: its page and card were not compared with {RELEASE} word by word."
        )
    one = release.guarantee
    return Verified(one.epsilon, one.delta, recomputed, len(files) + 1, digest, tuple(remarks))


def _follows(release: Release) -> float:
    """The ε of the noisy steps, computed anew. Bad input: a stated one that is below it."""
    recomputed = release.recomputed()
    if not release.filtered and release.dp.epsilon < recomputed * (1 - _TOLERANCE):
        expected = f"the stated DP ε to follow from the plan, which gives {recomputed:.6g} at δ = {release.dp.delta:g}"
        raise unmet("bundle", None, expected, f"{release.dp.epsilon:.6g}")
    return recomputed


def _of_run(folder: RunFolder) -> Verified:
    """The same of a run's own folder: its DP ε follows from its plan. Its files have no checksums here."""
    from bayesdp.publish.from_run import release_of

    release = release_of(folder.path)
    recomputed = _follows(release)
    remark = "This is a run's own folder: only its DP ε was checked against its plan."
    one = release.guarantee
    return Verified(one.epsilon, one.delta, recomputed, 0, "", (remark,))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise unfit(f"{path.name} of the bundle", "to be readable", str(problem)) from None
