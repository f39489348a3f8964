"""The folder of a finished run, asked to forget: its worst case, its filter, a study beside it, and its ledger.

unlearning.json   the ledger and every decision, readable by its owner only
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant import InstanceAccountant, WorstCaseAccountant
from bayesdp.accountant import state as states
from bayesdp.errors import InputError
from bayesdp.learn import files, ready, witnesses
from bayesdp.learn.checkpoint import digest
from bayesdp.learn.fitting import Fitting
from bayesdp.learn.prepared import Prepared
from bayesdp.learn.unfinished import job_of, prepare_any
from bayesdp.report import read
from bayesdp.unlearn.decision import Decision
from bayesdp.unlearn.forgeability import statement
from bayesdp.unlearn.ledger import FORMAT, VERSION, Ledger
from bayesdp.unlearn.source import FilterBudget, GaussianBudget, Measured, Source, WorstCase, source_of

NAME = "unlearning.json"
_FILES = ("plan.json", "accountants.json", "params.npz", "posterior.npz")


@dataclass(frozen=True, eq=False)
class Opened:
    """A finished run of noisy steps with its records at hand."""

    folder: Path
    prepared: Prepared | Fitting
    everybody: WorstCaseAccountant
    budgets: InstanceAccountant | None

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of each training record in the file, from 1, as `--watch` counts."""
        return self.prepared.numbers

    @cached_property
    def training(self) -> str:
        """What the ledger belongs to: plan, accounts and model."""
        total = hashlib.sha256()
        for path in (self.folder / name for name in _FILES):
            total.update(path.read_bytes() if path.exists() else b"")
        return total.hexdigest()

    def held_out(self, records: Sequence[int]) -> tuple[int, ...]:
        """Those of the records that the model was not trained on. Bad input: a record that is not there."""
        data = self.prepared.data
        count = len(data.x) + len(data.x_test) + (0 if self.prepared.audit is None else len(self.prepared.audit[1]))
        for one in records:
            errors.whole("record", one, least=1, most=count, hint=f"There are {count:,} records, counted from 1.")
        return tuple(one for one in records if one not in self.numbers)

    @property
    def worst_case(self) -> WorstCase:
        """The plan's own curve. Bad input: a run without clipping or noise, which promises nothing."""
        if not self.everybody.steps:
            hint = "Without clipping and noise in every step nothing bounds what a record does: retrain."
            raise errors.refuse("run", str(self.folder), "to promise something to everybody", hint)
        found = source_of(self.everybody)
        assert isinstance(found, WorstCase)
        return found

    @property
    def filter(self) -> FilterBudget | GaussianBudget:
        """The budget that every record was held to. Bad input: a run without a filter."""
        if self.budgets is None:
            raise errors.refuse("source", "filter", "to be worst-case or a study for a run without a filter")
        found = source_of(self.budgets)
        assert isinstance(found, FilterBudget | GaussianBudget)
        return found

    def study(self, folder: Path, record: int, ledger: Ledger) -> Measured:
        """What a study in `folder` certifies for a record, in the direction of forgetting.

        Bad input: a study of another plan, start or data than the run's without those forgotten before, or one that did
        not ask about this record: `InputError`.
        """
        from bayesdp.learn import study_folder
        from bayesdp.learn.study_result import StudyResult

        if not isinstance(self.prepared, Prepared) or not (folder / study_folder.NAME).is_file():
            raise errors.refuse("source", str(folder), "to be worst-case, filter or the folder of a study of this run")
        told = files.read_tagged(folder / study_folder.NAME, study_folder.FORMAT, study_folder.VERSION)
        own = {
            "plan": self.prepared.plan.describe(),
            "start": digest(self.prepared.params),
            "data": digest(self.without(ledger.forgotten)),
        }
        for part, value in own.items():
            if told.get(part) != value:
                raise InputError(
                    f"Expected source={str(folder)!r} to be a study of this run's {part}"
                    f"{' without the records forgotten so far' if part == 'data' else ''}, got another."
                )
        left = self.numbers[~np.isin(self.numbers, ledger.forgotten)]
        row = int(np.flatnonzero(left == record)[0])
        if row not in told["rows"]:
            raise errors.refuse("record", record, f"to be one that the study in {str(folder)!r} asked about")
        return Measured.of(StudyResult.load(folder).bound(told["rows"].index(row), "remove"), ledger.order)

    def without(self, records: Sequence[int]) -> tuple[Any, Any]:
        """The training records less these."""
        left = ~np.isin(self.numbers, records)
        return self.prepared.data.x[left], self.prepared.data.y[left]

    def ledger(self) -> Ledger | None:
        """The ledger in the folder. Bad input: one of another training, or a damaged file."""
        path = self.folder / NAME
        if not path.exists():
            return None
        found = files.read_tagged(path, FORMAT, VERSION)
        found.pop("decisions", None)
        ledger = Ledger.from_dict(found)
        if ledger.training != self.training:
            raise InputError(
                f"Expected {str(path)!r} to belong to the model in its folder, got that of another training."
            )
        return ledger

    def write(self, decision: Decision) -> Path:
        """The ledger after a decision, and the decision beside the earlier ones."""
        path = self.folder / NAME
        earlier = files.read_tagged(path, FORMAT, VERSION).get("decisions", []) if path.exists() else []
        note = {"format": FORMAT, "version": VERSION, **decision.ledger.to_dict()}
        files.write_json(path, {**note, "decisions": [*earlier, decision.to_dict()]}, private=True)
        return path

    def statement(self, records: Sequence[int]) -> dict[str, Any]:
        """The forgeability statement of the model for these records together, by the DP guarantee of all steps."""
        everybody = WorstCaseAccountant(self.everybody.engine)  # records leave, whatever the run's own adjacency
        for z, q, n in self.worst_case.steps:
            everybody.step(noise_multiplier=z, sampling_rate=q, steps=n)
        bound = everybody.guarantee(self.prepared.plan.delta).group(len(records))
        name = next(one for one in _FILES[2:] if (self.folder / one).exists())
        return statement(
            records=records,
            bound=bound,
            data=self.without(records),
            checkpoints=[files.read_arrays(self.folder / name)],
            plan=self.prepared.plan.describe(),
            seeded=self.prepared.job.seed is not None,
        )


def opened(folder: str | Path) -> Opened:
    """A finished run of `train`, or of `fit` by "vi".

    Bad input: an unfinished run, one with a seed (its noise is no noise to who knows the seed), one whose data have
    changed since, or a posterior of which only samples were released: `InputError`.
    """
    place = Path(folder)
    job = job_of(place)
    if not ready.finished(place):
        raise errors.refuse("run", str(folder), "to hold a finished run", "Go on with it by resume first.")
    if job.seed is not None:
        hint = "To who knows the seed the model is a fixed function of the data, at no finite distance from another."
        raise errors.refuse("run", str(folder), "to have noise of its own, not from a seed", hint)
    state = states.read(place / "accountants.json")
    if (state.get("kind"), state.get("version")) != (witnesses.KIND, witnesses.VERSION):
        raise errors.refuse("run", str(folder), "to be a run of noisy steps of this release")
    prepared = prepare_any(job)
    assert isinstance(prepared, Prepared | Fitting)  # others keep accounts of another kind
    trained = read(place / "report.json").settings.records
    if trained is not None and trained != len(prepared.data.x):
        raise InputError(
            f"Expected the data to be as they were, {trained:,} training records, got {len(prepared.data.x):,}. Leave "
            "forgotten records where they are until the model is trained anew: they are called by their place."
        )
    prepared.check_same(place)
    with states.reading():
        everybody = WorstCaseAccountant.from_state(state["everybody"])
        budgets = state.get("budgets")
        return Opened(place, prepared, everybody, None if budgets is None else InstanceAccountant.from_state(budgets))


def source(run: Opened, name: str, records: Sequence[int], ledger: Ledger) -> Source:
    """The source called "worst-case" or "filter", or the study in the folder of that name."""
    if name == "worst-case":
        return run.worst_case
    if name == "filter":
        return run.filter
    if len(records) > 1:
        raise errors.refuse("record", list(records), "to be one for a study", "Ask for one after the other.")
    return run.study(Path(name), records[0], ledger)
