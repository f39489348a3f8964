"""The folder of a finished run, asked to forget: its worst case, its filter, a study beside it, and its ledger.

unlearning.json   the ledger and every decision, readable by its owner only
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import convert, errors, storage
from bayesdp.accountant import WorstCaseAccountant
from bayesdp.jobs import people
from bayesdp.jobs.people import Records, Whom
from bayesdp.jobs.prepared_posterior_vi import PreparedPosteriorVI
from bayesdp.jobs.prepared_sgd import PreparedSGD
from bayesdp.jobs.prepared_vi import PreparedVI
from bayesdp.jobs.resume import prepare, read_job
from bayesdp.learn.loop.fingerprint import digest
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.records import chosen
from bayesdp.unlearn.decision import Decision, Ledger
from bayesdp.unlearn.forgeability import statement
from bayesdp.unlearn.source import FilterBudget, GaussianBudget, Measured, Source, WorstCase, source_of, study_orders

FORMAT = "bayesdp/unlearning"
VERSION = 2


@dataclass(frozen=True, eq=False)
class Opened:
    """A finished run of noisy steps with its records at hand."""

    folder: RunFolder
    prepared: PreparedSGD | PreparedVI
    run: Run

    @property
    def everybody(self) -> WorstCaseAccountant:
        """What the run cost in the worst case."""
        return self.run.tallies.worst_case

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of each training record in the file, from 1, as `--watch` counts."""
        return self.prepared.numbers

    @cached_property
    def training(self) -> str:
        """What the ledger belongs to: plan, accounts and model."""
        total = hashlib.sha256()
        for path in (self.folder.plan, self.folder.accountants, self.folder.params, self.folder.posterior):
            total.update(path.read_bytes() if path.exists() else b"")
        return total.hexdigest()

    def numbered(self, whom: Sequence[Whom]) -> tuple[int, ...]:
        """Numbers for numbers and, in a run by people, names. Bad input: a name that nobody has."""
        return people.numbered(self.prepared.data, whom, "record")

    def called(self, records: Sequence[int]) -> str:
        """Those of these numbers as their owner calls them, in words."""
        return ", ".join(map(str, people.called(self.prepared.data, records)))

    def held_out(self, records: Sequence[int]) -> tuple[int, ...]:
        """Those of the records that the model was not trained on. Bad input: a record that is not there."""
        data = self.prepared.data
        count = len(data.x) + len(data.x_test) + people.count(self.prepared.holdout)
        if data.people is not None:
            count = len(data.people.names)
        for one in records:
            errors.whole("record", one, least=1, most=count, hint=f"There are {count:,} records, counted from 1.")
        return tuple(one for one in records if one not in self.numbers)

    @property
    def worst_case(self) -> WorstCase:
        """The plan's own curve. Bad input: a run without clipping or noise, which promises nothing."""
        if not self.everybody.steps:
            hint = "Without clipping and noise in every step nothing bounds what a record does: retrain."
            raise errors.refuse("run", str(self.folder.path), "to promise something to everybody", hint)
        found = source_of(self.everybody)
        assert isinstance(found, WorstCase)
        return found

    @property
    def filter(self) -> FilterBudget | GaussianBudget:
        """The budget that every record was held to. Bad input: a run without a filter."""
        budgets = self.run.tallies.budgets
        if budgets is None:
            raise errors.refuse("source", "filter", "to be worst-case or a study for a run without a filter")
        found = source_of(budgets)
        assert isinstance(found, FilterBudget | GaussianBudget)
        return found

    def study(self, folder: Path, record: int, ledger: Ledger) -> Measured:
        """What a study in `folder` certifies for a record, in the direction of forgetting.

        Bad input: a study of another plan, start or data than the run's without those forgotten before, or one that did
        not ask about this record: `InputError`.
        """
        from bayesdp.learn.study import folder as study_folder
        from bayesdp.learn.study.result import StudyResult

        if not isinstance(self.prepared, PreparedSGD) or not (folder / study_folder.NAME).is_file():
            raise errors.refuse("source", str(folder), "to be worst-case, filter or the folder of a study of this run")
        told = storage.read_tagged(folder / study_folder.NAME, study_folder.FORMAT, study_folder.VERSION, checked=True)
        own = {
            "plan": self.prepared.plan.describe(),
            "start": digest(self.prepared.params),
            "data": digest(self.without(ledger.forgotten)),
        }
        for part, value in own.items():
            if told.get(part) != value:
                raise errors.unfit(
                    errors.Argument("source", str(folder)),
                    f"to be a study of this run's {part}"
                    f"{' without the records forgotten so far' if part == 'data' else ''}",
                    "another",
                )
        left = self.numbers[~np.isin(self.numbers, ledger.forgotten)]
        row = int(np.flatnonzero(left == record)[0])
        if row not in told["rows"]:
            raise errors.refuse("record", record, f"to be one that the study in {str(folder)!r} asked about")
        bound = StudyResult.load(folder).bound(told["rows"].index(row), "remove", study_orders(ledger.order))
        return Measured.of(bound, ledger.order)

    def without(self, records: Sequence[int]) -> Records:
        """The training records less these."""
        left: Records = chosen(people.trained_on(self.prepared.data), np.flatnonzero(~np.isin(self.numbers, records)))
        return left

    def ledger(self) -> Ledger | None:
        """The ledger in the folder. Bad input: one of another training, or a damaged file."""
        path = self.folder.unlearning
        if not path.exists():
            return None
        found = storage.read_tagged(path, FORMAT, VERSION, checked=True)
        found.pop("decisions", None)
        ledger = Ledger.from_dict(found)
        if ledger.training != self.training:
            raise errors.unfit(repr(str(path)), "to belong to the model in its folder", "that of another training")
        return ledger

    def write(self, decision: Decision) -> Path:
        """The ledger after a decision, and the decision beside the earlier ones."""
        path = self.folder.unlearning
        with self.folder.locked():
            earlier = []
            if path.exists():
                earlier = storage.read_tagged(path, FORMAT, VERSION, checked=True).get("decisions", [])
            if len(earlier) + 1 != decision.ledger.asked:
                hint = "Another request was answered meanwhile: ask again."
                raise errors.refuse("run", str(self.folder.path), "to be as it was when the question was asked", hint)
            note = {**decision.ledger.to_dict(), "decisions": [*earlier, decision.to_dict()]}
            return storage.write_tagged(path, FORMAT, VERSION, note, checked=True)

    def drawn(self, decision: Decision) -> Decision:
        """The decision with how far the noise of either model is from its law (H26)."""
        return dataclasses.replace(decision, apart=min(1.0, 2 * self.run.draws * convert.DRAWN))

    def statement(self, records: Sequence[int]) -> dict[str, Any]:
        """The forgeability statement of the model for these records together, by the DP guarantee of all steps."""
        everybody = WorstCaseAccountant(engine=self.everybody.engine)  # records leave, whatever the run's own adjacency
        for z, q, n in self.worst_case.steps:
            everybody.step(noise_multiplier=z, sampling_rate=q, steps=n)
        plan, bound = self.run.plan, everybody.guarantee(self.prepared.plan.delta)
        beside = plan.prelude_delta + convert.drawn_delta(plan.noise_share, self.run.draws, bound.epsilon)
        bound = dataclasses.replace(bound, delta=min(1.0, bound.delta + beside)) if beside else bound
        bound = bound.group(len(records)).speaking_of(self.prepared.data.unit)
        return statement(
            records=records,
            bound=bound,
            data=self.without(records),
            checkpoints=[storage.read_arrays(self.folder.need(self.folder.params))],
            plan=self.prepared.plan.describe(),
            seeded=self.prepared.job.seed is not None,
        )


def opened(folder: str | Path, *, trust_code: bool = False) -> Opened:
    """A finished run of `train`, or of `fit` by "vi"; `trust_code`: see `jobs.resume.read_job`.

    Bad input: an unfinished run, one with a seed (its noise is no noise to who knows the seed), one whose data have
    changed since, or a posterior of which only samples were released: `InputError`.
    """
    place = RunFolder(Path(folder))
    job = read_job(place, trust_code=trust_code)
    place.check_finished()
    if place.samples.exists():
        hint = "Samples of a posterior that stays secret had none added."
        raise errors.refuse("run", str(folder), "to be a run of noisy steps", hint)
    if job.seed is not None:
        hint = "To who knows the seed the model is a fixed function of the data, at no finite distance from another."
        raise errors.refuse("run", str(folder), "to have noise of its own, not from a seed", hint)
    prepared, run = prepare(job), Run.load(folder)
    assert not isinstance(prepared, PreparedPosteriorVI)  # which leaves samples
    if run.records != prepared.data.size:
        raise errors.unmet(
            "data",
            prepared.data.size,
            f"the data to be as they were, {run.records:,} training records",
            f"{prepared.data.size:,}",
            "Leave forgotten records where they are until the model is trained anew: they are called by their place.",
        )
    prepared.check_same(place)
    return Opened(place, prepared, run)


def source(run: Opened, name: str, records: Sequence[int], ledger: Ledger) -> Source:
    """The source called "worst-case" or "filter", or the study in the folder of that name."""
    if name == "worst-case":
        return run.worst_case
    if name == "filter":
        return run.filter
    if len(records) > 1:
        raise errors.refuse("record", list(records), "to be one for a study", "Ask for one after the other.")
    return run.study(Path(name), records[0], ledger)
