"""What a training run leaves: a model, three promises, and how they came about.

run.save("run/")        Run.load("run/").guarantees == run.guarantees
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from bayesdp import errors, storage
from bayesdp.accountant import Curve, Groups, InstanceAccountant, WorstCaseAccountant, by_group
from bayesdp.accountant import state as states
from bayesdp.accountant.run_tallies import Counts, Tallies
from bayesdp.convert import drawn_delta
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.report import Details, report_of, snapshots_of
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.saved_plan import RunPlan, SavedPlan
from bayesdp.learn.loop.snapshot import Snapshot
from bayesdp.learn.loop.tree_file import Form, Tree, form_of, read_formed, read_tree, write_tree
from bayesdp.learn.noise_kind import with_noise
from bayesdp.learn.prelude import with_prelude
from bayesdp.learn.record_count import with_count
from bayesdp.report import Report, read, write

FORMAT, VERSION = "bayesdp/run", 1

MOST_DRAWN = 0.5
"""Of δ for how noise was drawn; where it would be more, promises take the noise for exact and say so (H26)."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished (or interrupted) run.

    `params` may be published under the "dp" guarantee. The Bayesian and per-instance numbers, norms and curves are
    functions of private data, and so is `records`, how many were trained on, where the plan declares another number.
    `released` is the DP guarantee of what was released, where that is less than all steps.

    Examples:
        >>> import jax.numpy as jnp, numpy as np, optax
        >>> plan = bd.SGD(sampling_rate=0.5, steps=4, optimizer=optax.sgd(0.1), noise_multiplier=2.0)
        >>> run = plan.fit(lambda w, record: (record - w) ** 2, jnp.zeros(()), np.ones(50, np.float32))
        >>> run.steps, [promise.notion for promise in run.guarantees]
        (4, ['dp'])
    """

    plan: RunPlan
    params: Tree
    tallies: Tallies
    steps: int
    records: int
    seeded: bool
    snapshots: tuple[Snapshot, ...]
    members: npt.NDArray[np.int64]
    released: Guarantee | None = None
    entries: int = 0
    """How many numbers of each chain got noise in each step."""

    @cached_property
    def guarantees(self) -> list[Guarantee]:
        """One per notion: "dp"; "bdp" at the plan's coverage; "per-instance" for each watched record.

        Of all planned steps, also where fewer were taken so far: whoever looks may stop (H14).
        """
        counted = [with_count(one, self.plan.num_records, self.records) for one in self._found]
        paid = [with_prelude(one, self.plan.prelude, self.plan.prelude_delta) for one in counted]
        if not self.tallies.noiseless:
            paid = [with_noise(one, self.plan.noise_kind, self.noise_delta) for one in paid]
        return [one.speaking_of(self.plan.unit) for one in paid]

    @cached_property
    def _found(self) -> list[Guarantee]:
        """What the accountants promise."""
        dp, *others = self.tallies.guarantees(self.plan.coverage)
        return [self.released or dp, *others]

    @property
    def noise_delta(self) -> float:
        """What of δ is for how the noise was drawn (H26), at the largest ε that is stated."""
        plan = self.tallies.plan_dp()
        if self.plan.noise_kind == "float" or plan is None:
            return 0.0
        largest = max(plan.at_share, *(one.epsilon for one in self._found))
        needed = drawn_delta(self.plan.noise_share, self.draws, largest)
        return needed if needed < MOST_DRAWN else 0.0

    @property
    def draws(self) -> int:
        """How many numbers of noise were drawn on a lattice."""
        lattice = self.plan.noise_kind == "lattice" and not self.tallies.noiseless
        return self.entries * self.tallies.chains * len(self.tallies.noise) if lattice else 0

    @property
    def delta(self) -> float:
        """δ of all promises: of the steps, of the preparation, of the noise."""
        return self.plan.delta + self.plan.prelude_delta + self.noise_delta

    @property
    def instance(self) -> InstanceAccountant | None:
        """The accountant of the watched records (of the member witnesses where none are watched)."""
        return self.tallies.instance

    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε; None without witnesses."""
        people = self.tallies.population
        if people is None:
            return None
        found = people.curve(self.plan.delta, self.tallies.plan_dp())
        return dataclasses.replace(found, delta=self.delta)

    def groups(self, labels: Sequence[object], coverage: float | None = None) -> Groups | None:
        """ε by group of people (classes, a public column), all groups together; None without witnesses. Sensitive.

        `labels`: the group of each witness, of `holdout` and then of the members. `coverage`: the plan's if left out;
        fixed beforehand. See `accountant.by_group`. Bad input: another number of labels.
        """
        people, dp = self.tallies.population, self.tallies.plan_dp()
        if people is None:
            return None
        outsiders, members, _ = self.tallies.counts
        if len(labels) != outsiders + members:
            expected = f"with one entry for each of {outsiders} outsiders and {members} members"
            raise errors.refuse("labels", len(labels), expected, got=f"{len(labels)}")
        delta = self.plan.delta
        return by_group(
            {name: side.epsilon_and_dp(delta, dp=dp)[0] for name, side in people.witnesses.items()},
            {"absent": labels[:outsiders], "present": labels[outsiders:]},
            delta=delta,
            coverage=self.plan.coverage if coverage is None else coverage,
            failure=people.failure,
            dp=np.inf if dp is None else dp.epsilon,
            counted=("present",) if people.members_counted else (),
        )

    def losses(self) -> Array:
        """Per-instance ε of each witness at the plan's δ: of `holdout`, the members, `watch`. Sensitive."""
        sides = [] if self.tallies.population is None else [*self.tallies.population.witnesses.items()]
        known = [side for _, side in sorted(sides)]  # "absent" before "present"
        if self.tallies.watched is not None:
            known.append(self.tallies.watched)
        dp = self.tallies.plan_dp()
        each = [one.epsilon_and_dp(self.plan.delta, dp=dp)[0] for one in known]
        return np.concatenate(each) if each else np.zeros(0)

    def to_report(self, **details: Unpack[Details]) -> Report:
        """Everything that the report shows, as one value; for `details` see `loop.report.report_of`."""
        return report_of(self, **details)

    def report(self, path: str | Path, **details: Unpack[Details]) -> Path:
        """Write the report: one HTML page that opens offline, or JSON for a name that ends so."""
        return write(self.to_report(**details), path)

    def save(self, folder: str | Path, **details: Unpack[Details]) -> Path:
        """Write plan.json, params.npz, accountants.json (and .npz), report.json and report.html into `folder`."""
        return self.write(RunFolder.make(folder), self.to_report(**details))

    def write(self, folder: RunFolder, report: Report) -> Path:
        """Save with a report that was made of this run before."""
        note: dict[str, Any] = {
            "plan": self.plan.describe(),
            "steps": self.steps,
            "records": self.records,
            "seeded": self.seeded,
            "members": ",".join(map(str, self.members)),  # one line, not thousands
            "witnesses": list(self.tallies.counts),
            "chains": self.tallies.chains,
            "planned": len(self.tallies.noise),
            "members_counted": len(self.members) == self.records,
            "terms": SavedPlan.of(self.plan).to_dict(),
            "released": None if self.released is None else self.released.to_dict(),
            "form": form_of(self.params),
            "entries": self.entries,
        }
        storage.write_tagged(folder.plan, FORMAT, VERSION, note)
        write_tree(folder.params, self.params)
        states.write(folder.accountants, self.tallies.state())
        for file in (folder.report, folder.page):
            write(report, file)
        folder.seal(*folder.saved)
        return folder.path

    @classmethod
    def load(cls, folder: str | Path, *, params: Tree = None, shapeless: bool = False) -> Run:
        """The run that `save` wrote, which answers as the saved one did; its plan is a `SavedPlan`, not to be fitted.

        `params`: a tree of the form of the parameters, needed where that is not made of dicts, lists and tuples.
        `shapeless`: without the parameters, for questions about its promises.
        Bad input: a folder without a finished run, or with a damaged file, gets `InputError`.
        """
        place = RunFolder.open(folder)
        note = storage.read_tagged(place.need(place.plan), FORMAT, VERSION)
        with storage.reading(place.plan):
            plan, form = SavedPlan.from_dict(note["terms"]), note["form"]
            tallies = _tallies(plan, note["chains"], note["witnesses"], int(note["planned"]), note["members_counted"])
            members = np.array(note["members"].split(",") if note["members"] else [], np.int64)
            steps, records, seeded = int(note["steps"]), int(note["records"]), bool(note["seeded"])
            entries = int(note.get("entries", 0))
            released = None if note["released"] is None else Guarantee.from_dict(note["released"])
        if form is None and params is None and not shapeless:
            raise errors.unmet(
                "params",
                None,
                "params, a tree of the form of the parameters in this folder",
                "None: they are not made of dicts, lists and tuples alone",
                "Give the parameters that training began with.",
            )
        place.need(place.params)
        tallies.restore(states.read(place.need(place.accountants)))
        _check_charged(tallies, steps, place)
        return cls(
            plan=plan,
            params=None if shapeless else _read_params(place, form, params),
            tallies=tallies,
            steps=steps,
            records=records,
            seeded=seeded,
            snapshots=snapshots_of(read(place.need(place.report))),
            members=members,
            released=released,
            entries=entries,
        )


def _read_params(place: RunFolder, form: Form | None, params: Tree) -> Tree:
    return read_tree(place.params, params) if form is None or params is not None else read_formed(place.params, form)


def _check_charged(tallies: Tallies, steps: int, place: RunFolder) -> None:
    """Derive again what the worst case was charged for, from the plan: no file is believed for itself alone."""
    derived = copy.copy(tallies)
    derived.worst_case = WorstCaseAccountant(adjacency=tallies.worst_case.adjacency)
    if tallies.prelude is not None and tallies.promises:
        derived.worst_case.step(noise_multiplier=tallies.prelude)
    derived.charge_worst_case(0, steps)
    if sorted(derived.worst_case.history) != sorted(tallies.worst_case.history):
        expected = f"to have charged the {steps:,} steps that {place.plan.name} says"
        raise errors.unfit(repr(str(place.accountants)), expected, "others", "One of the two is damaged.")


def _tallies(plan: SavedPlan, chains: int, witnesses: list[int], planned: int, counted: bool) -> Tallies:
    """The tallies of the plan before its first step."""
    return Tallies(
        counts=Counts(*witnesses),
        chains=chains,
        noise=plan.noise[:planned],
        rates=plan.rates[:planned],
        members_counted=counted,
        bounded=plan.bounded,
        delta=plan.delta,
        failure=plan.failure,
        engine=plan.engine,
        adjacency=plan.adjacency,
        prelude=plan.prelude,
    )
