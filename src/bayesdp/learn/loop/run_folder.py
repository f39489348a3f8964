"""The folder of a run: the only place that spells the names of its files.

    RunFolder.open("run").report        →  run/report.json

What is in a file is the business of whoever writes it: `Run.save`, a posterior's `save`, a checkpoint, a job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bayesdp import storage
from bayesdp.errors import refuse
from bayesdp.storage import lock, manifest
from bayesdp.storage.files import leftovers, sweep
from bayesdp.storage.journal import names_of


class File:
    """The path of a file (or folder) of this name in a `RunFolder`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: RunFolder, owner: type[RunFolder]) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """Where the files of one run are; a folder need not be there yet, see `open`."""

    path: Path

    # What every run leaves.
    plan = File("plan.json")
    params = File("params.npz")
    accountants = File("accountants.json")  # and accountants.npz
    report = File("report.json")
    page = File("report.html")  # the last to be written

    # A posterior: one that may be published, and the guide's own where that was widened; or samples of a secret one.
    posterior = File("posterior.npz")
    posterior_note = File("posterior.json")
    guide = File("guide.npz")
    samples = File("samples.npz")

    # Counts over test records with noise that was paid for: they may be published.
    metrics = File("metrics.json")

    # A job: what was to be done, digests of the records, the model without its numbers, a copy of the user's own.
    job = File("job.json")
    data = File("data.json")
    model = File("model.json")
    model_code = File("model.py")

    # While it trains; and iterates that were asked for.
    checkpoint = File("checkpoint.npz")
    key = File("noise.key")  # wiped at the end
    fingerprint = File("fingerprint.json")
    iterates = File("iterates.npy")
    iterates_note = File("iterates.json")

    # What it cost, written down before it was spent; what was asked of it afterwards.
    journal = File("ledger.jsonl")
    unlearning = File("unlearning.json")
    study = File("study")

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The folder of a run that was begun or saved. Bad input: anything else gets `InputError`."""
        folder = cls(Path(path))
        if not (folder.plan.is_file() or folder.job.is_file()):
            raise refuse(
                "run",
                str(path),
                f"to be the folder of a run, which has a {folder.plan.name} or a {folder.job.name}",
                "Give the folder that `save`, or `--out` of train or fit, wrote to.",
            )
        return folder

    @classmethod
    def make(cls, path: str | Path, argument: str = "folder") -> RunFolder:
        """The folder, made for its owner only where it is not there. Bad input: one that cannot be made."""
        return cls(storage.make_folder(path, argument, private=True))

    @property
    def begun(self) -> bool:
        """Whether a job has been left in it."""
        return self.job.is_file()

    @property
    def finished(self) -> bool:
        """Whether its run has come to the end and everything is written."""
        return self.page.exists() and not self.checkpoint.exists()

    def need(self, file: Path) -> Path:
        """A file that only a finished run has. Bad input: it is not there, or not the one that the manifest lists."""
        if not file.is_file():
            hint = f"Go on with it: bayesdp resume {self.path}" if self.checkpoint.exists() else ""
            raise refuse("run", str(self.path), f"to be a folder with a finished run, which has a {file.name}", hint)
        return manifest.check(file)

    def job_file(self) -> Path:
        """The job.json. Bad input: a folder that `train` or `fit` did not make."""
        if not self.begun:
            hint = "Give the folder that `--out` of train or fit named."
            raise refuse("run", str(self.path), f"to be a folder made by training, which has a {self.job.name}", hint)
        # While it trains the job has its own checksum, and the fingerprint knows it.
        return manifest.check(self.job) if self.finished else self.job

    def check_free(self) -> None:
        """Refuse a folder that holds anything, another run above all: nothing is ever overwritten."""
        path = self.path
        if path.exists() and not path.is_dir():
            raise refuse("out", str(path), "to be a folder", "There is a file of that name.")
        if not path.exists() or {one.name for one in path.iterdir()} <= self._passing:
            return
        if not self.begun:
            hint = "It holds other files. Choose another folder."
        elif self.finished:
            hint = "It holds another run. Choose another folder."
        else:
            hint = "It holds an unfinished run: go on with it by resume, or choose another folder."
        raise refuse("out", str(path), "to be new or empty", hint)

    def check_finished(self) -> None:
        """Refuse a folder whose run has not come to its end."""
        if not self.finished:
            raise refuse("run", str(self.path), "to hold a finished run", f"Go on with it: bayesdp resume {self.path}")

    def check_resumable(self) -> None:
        """Refuse a folder whose run has come to its end."""
        if self.finished:
            hint = f"This one has finished: see its {self.page.name}."
            raise refuse("run", str(self.path), "to hold an unfinished run", hint)

    def forget_checkpoint(self) -> None:
        """Take the checkpoint away, as the last thing: whoever is interrupted before can still come back."""
        for file in (self.checkpoint, self.fingerprint):
            file.unlink(missing_ok=True)

    @contextmanager
    def locked(self, *, wait: bool = False) -> Iterator[None]:
        """Nobody else works on the run meanwhile; what interrupted writes have left is taken away.

        `wait` for whoever does. Bad input: a folder that another process works on, or that cannot be written to.
        """
        with lock.locked(self.path, wait=wait):
            sweep(self.path)
            yield

    def check_all(self) -> int:
        """How many files the manifest lists, all of which are as they were written. Bad input: one is not."""
        names = manifest.listed(self.path)
        for name in names:
            manifest.check(self.path / name)
        return len(names)

    def seal(self, *files: Path) -> None:
        """Write the checksums of those of these files that are there into the manifest, others' stay."""
        manifest.seal(self.path, [file.name for file in files if file.is_file()])

    @property
    def saved(self) -> tuple[Path, ...]:
        """What `save` may have written, of whatever learner."""
        accountants = (self.accountants, self.accountants.with_suffix(".npz"))
        posterior = (self.posterior, self.posterior_note, self.guide, self.samples)
        return (self.plan, self.params, *accountants, self.report, self.page, *posterior)

    @property
    def unlisted(self) -> tuple[Path, ...]:
        """Files of a finished run that the manifest does not list yet, whoever wrote them."""
        changing = {self.checkpoint, self.fingerprint, self.key, self.journal, self.unlearning, self.study}
        known = [self.path / one.name for one in vars(RunFolder).values() if isinstance(one, File)]
        listed = set(manifest.listed(self.path))
        return tuple(path for path in known if path not in changing and path.name not in listed)

    @property
    def _passing(self) -> set[str]:
        """Names that a free folder may have: what a run left that was interrupted before its job stood."""
        early: tuple[str, ...] = ()
        if not self.begun:
            early = (manifest.NAME, self.model.name, self.model_code.name, *names_of(self.journal))
        return {*early, *(one.name for one in leftovers(self.path))}
