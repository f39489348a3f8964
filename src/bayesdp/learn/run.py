"""What a training run leaves: a model, three promises, and how they came about."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayesdp.accountant import Curve, InstanceAccountant
from bayesdp.accountant import state as states
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.learn import files
from bayesdp.learn.look import Look
from bayesdp.learn.witnesses import Tallies

if TYPE_CHECKING:
    from bayesdp.learn.plan import Plan
    from bayesdp.report import Report

SEEDED = "The noise came from a given seed: the run is reproducible, not private."


@dataclass(frozen=True, eq=False)
class Run:
    """A finished (or interrupted) run.

    `params` may be published under the "dp" guarantee. The Bayesian and per-instance numbers, norms and curves are
    functions of private data.
    """

    plan: Plan
    params: Any
    tallies: Tallies
    steps: int
    records: int
    seeded: bool
    looks: tuple[Look, ...]
    members: npt.NDArray[np.int64]

    @cached_property
    def guarantees(self) -> list[Guarantee]:
        """One per notion: "dp"; "bdp" at the plan's coverage; "per-instance" for the worst watched record."""
        dp, *others = self.tallies.guarantees(self.plan.coverage)
        return [self.plan.promised(dp), *others]

    @property
    def instance(self) -> InstanceAccountant | None:
        """The accountant of the watched records (of the member witnesses where none are watched)."""
        return self.tallies.instance

    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε; None without witnesses."""
        return None if self.tallies.alike is None else self.tallies.alike.curve(self.plan.delta, self.tallies.limit())

    def losses(self) -> Array:
        """Per-instance ε of each witness at the plan's δ: of `audit`, the members, `watch`. Sensitive."""
        sides = [] if self.tallies.alike is None else [*self.tallies.alike.witnesses.items()]
        known = [side for _, side in sorted(sides)]  # "absent" before "present"
        if self.tallies.watched is not None:
            known.append(self.tallies.watched)
        limit = self.tallies.limit()
        each = [one.epsilon_and_limit(self.plan.delta, limit=limit)[0] for one in known]
        return np.concatenate(each) if each else np.zeros(0)

    def to_report(self, **details: Any) -> Report:
        """Everything that the report shows, as one value; for `details` see `reporting.report_of`."""
        from bayesdp.learn.reporting import report_of

        return report_of(self, **details)

    def report(self, path: str | Path, **details: Any) -> Path:
        """Write the report: one HTML page that opens offline, or JSON for a name that ends so."""
        from bayesdp.report import write

        target = Path(path)
        write(self.to_report(**details), target)
        return target

    def save(self, folder: str | Path, **details: Any) -> Path:
        """Write plan.json, params.npz, accountants.json (and .npz), report.json and report.html into `folder`."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        files.write_json(target / "plan.json", {"plan": self.plan.describe(), "steps": self.steps})
        files.write_tree(target / "params.npz", self.params)
        states.write(target / "accountants.json", self.tallies.state())
        for name in ("report.json", "report.html"):
            self.report(target / name, **details)
        return target


def today() -> str:
    """The date of a report."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()
