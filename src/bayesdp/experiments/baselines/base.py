"""What a baseline of the papers leaves beside its result: settings and guarantees, and the same report as every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.report import SEEDED, today
from bayesdp.report import Report, Settings, write


@dataclass(frozen=True, eq=False, kw_only=True)
class Baseline:
    """`delta` is that of the comparison that it takes part in; each guarantee has its own."""

    settings: Settings
    guarantees: list[Guarantee]
    delta: float
    seeded: bool

    def to_report(
        self,
        *,
        title: str = "",
        metrics: Mapping[str, float] | None = None,
        preprocessing: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> Report:
        """Everything that the report shows, as one value; the words are those of `Run.to_report`."""
        return Report(
            title=title or f"Baseline: {self.settings.kind}",
            created=today(),
            settings=self.settings,
            delta=self.delta,
            guarantees=tuple(self.guarantees),
            record="each record, named beforehand; the largest is shown",
            metrics=dict(metrics or {}),
            seeded=self.seeded,
            assumptions=(SEEDED,) if self.seeded else (),
            preprocessing=tuple(preprocessing),
            notes=tuple(notes),
        )

    def report(self, path: str | Path, **details: object) -> Path:
        """Write the report: one HTML page that opens offline, or JSON for a name that ends so."""
        write(self.to_report(**details), Path(path))  # type: ignore[arg-type]  # to_report names them
        return Path(path)
