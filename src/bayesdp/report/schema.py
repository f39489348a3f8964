"""What a privacy report holds: `Report`, filled by every learner, and its parts.

A report is plain values, checked when made: `Report.from_dict(report.to_dict()) == report`. Parts that a run did not
record are None and the page says so. Everything in arrays is at the report's δ.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.guarantee import Guarantee
from bayesdp.report import part
from bayesdp.report.audit import Audit
from bayesdp.report.group_losses import GroupLosses
from bayesdp.report.paid import PaidMetrics
from bayesdp.report.part import Gapped, Numbers, Part
from bayesdp.report.quality import Confusion
from bayesdp.report.shift import Shift
from bayesdp.report.watched import WatchedRecords

Level = float | tuple[float, float]
"""A setting: one number, or (smallest, largest) where a schedule changed it."""


@dataclass(frozen=True, kw_only=True)
class Settings(Part):
    """What was done: public quantities, fixed before the run.

    - `kind`: the learner in words, "private SGD".
    - `noise_std`, `noise_multiplier`, `clip_norm`, `sampling_rate`: a number or, under a schedule, the pair
      (smallest, largest). `clip_norm=None` means that nothing was clipped; other None are not stated.
    - `steps`, `records`: how many there were; `optimizer`: in words.
    - `orders`: the Rényi orders kept; `conversion`: how costs became ε, in words.
    - `other`: anything else, words → text, number or truth value.

    Bad input gets `InputError` naming the field.
    """

    kind: str
    noise_std: Level | None = None
    noise_multiplier: Level | None = None
    clip_norm: Level | None = None
    sampling_rate: Level | None = None
    steps: int | None = None
    records: int | None = None
    optimizer: str = ""
    orders: Numbers | None = None
    conversion: str = ""
    other: Mapping[str, str | float | bool] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("noise_std", "noise_multiplier", "clip_norm", "sampling_rate"):
            most = 1 if name == "sampling_rate" else None
            self._put(**{name: _level(name, getattr(self, name), most)})
        self._put(
            kind=part.text("kind", self.kind, empty=False),
            steps=None if self.steps is None else errors.whole("steps", self.steps, least=0),
            records=None if self.records is None else errors.whole("records", self.records, least=0),
            optimizer=part.text("optimizer", self.optimizer),
            orders=None if self.orders is None else part.ascending("orders", self.orders, strictly=True, above=1),
            conversion=part.text("conversion", self.conversion),
            other=part.mapping("other", self.other, _word_or_number),
        )


@dataclass(frozen=True, kw_only=True)
class CoverageCurve(Part):
    """Share of people → Bayesian ε, valid for all shares at once (H12): the fields of an accountant's `Curve`.

    `coverage` rises, `epsilon` never falls; a share between two entries has the ε of the next. `limit` is the DP
    value that takes over where the witnesses end, infinite without a clip norm; `failure` is the chance that
    the curve is wrong; `dp` is what the plan promises everybody at the same δ.
    """

    coverage: Numbers
    epsilon: Numbers
    limit: float = math.inf
    failure: float = 0.0
    dp: float = math.inf

    def __post_init__(self) -> None:
        coverage = part.ascending("coverage", self.coverage, strictly=True, least=0, most=1)
        epsilon = part.ascending("epsilon", self.epsilon, infinite=True, least=0)
        if len(coverage) != len(epsilon):
            raise errors.refuse("epsilon", len(epsilon), f"with {len(coverage)} entries", got=f"{len(epsilon)}")
        self._put(
            coverage=coverage,
            epsilon=epsilon,
            limit=part.infinite("limit", self.limit),
            failure=errors.number("failure", self.failure, least=0, most=1),
            dp=part.infinite("dp", self.dp),
        )


@dataclass(frozen=True, kw_only=True)
class EpsilonHistory(Part):
    """ε had training ended at each of `steps`, for as many of the three notions as were tallied.

    `bdp` is for the share `coverage` of people. Entries may be infinite.
    """

    steps: tuple[int, ...]
    dp: Numbers | None = None
    bdp: Numbers | None = None
    per_instance: Numbers | None = None
    coverage: float | None = None

    def __post_init__(self) -> None:
        self._put(steps=part.steps("steps", self.steps))
        for name in ("dp", "bdp", "per_instance"):
            values = getattr(self, name)
            if values is not None:
                self._put(**{name: part.numbers(name, values, infinite=True, least=0, length=len(self.steps))})
        if self.coverage is not None:
            self._put(coverage=errors.number("coverage", self.coverage, least=0, most=1))


@dataclass(frozen=True, kw_only=True)
class RecordLosses(Part):
    """Per-instance ε of each witness, and, where labels exist, whether the final model classified it correctly."""

    epsilon: Numbers
    correct: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        self._put(epsilon=part.numbers("epsilon", self.epsilon, infinite=True, least=0))
        if self.correct is not None:
            flags = np.asarray(self.correct)
            if flags.dtype != np.bool_ or flags.shape != (len(self.epsilon),):
                expected = f"to be {len(self.epsilon)} truth values, one for each epsilon"
                raise errors.refuse("correct", self.correct, expected)
            self._put(correct=tuple(map(bool, flags)))


@dataclass(frozen=True, kw_only=True)
class NormQuantiles(Part):
    """Quantiles of the witnesses' gradient norms before clipping: `values[step][level]`.

    `clip_norm` is one number, or one for each of `steps` under a schedule; None where nothing was clipped.
    """

    steps: tuple[int, ...]
    levels: Numbers
    values: tuple[Numbers, ...]
    clip_norm: Numbers | None = None

    def __post_init__(self) -> None:
        moments = part.steps("steps", self.steps)
        levels = part.ascending("levels", self.levels, strictly=True, least=0, most=1)
        if len(self.values) != len(moments):
            raise errors.refuse(
                "values", len(self.values), f"with a row for each of {len(moments)} steps", got=f"{len(self.values)}"
            )
        rows = tuple(part.ascending("values", row, least=0) for row in self.values)
        if any(len(row) != len(levels) for row in rows):
            raise errors.refuse("values", rows, f"with {len(levels)} quantiles in every row", got="")
        clip: Any = self.clip_norm
        if clip is not None:
            given = [clip] * len(moments) if np.ndim(clip) == 0 else clip
            clip = part.numbers("clip_norm", given, above=0, length=len(moments))
        self._put(steps=moments, levels=levels, values=rows, clip_norm=clip)


@dataclass(frozen=True, kw_only=True)
class Progress(Part):
    """How well the model did over time: name → one value for each of `steps`.

    A value that is missing or not finite (a loss that diverged) is a gap, None. `data` says on what it was measured.
    """

    steps: tuple[int, ...]
    values: Mapping[str, Gapped] = field(hash=False)
    data: str = ""

    def __post_init__(self) -> None:
        moments = part.steps("steps", self.steps)
        self._put(
            steps=moments,
            values=part.mapping("values", self.values, lambda name, one: part.gapped(name, one, len(moments))),
            data=part.text("data", self.data),
        )


@dataclass(frozen=True, kw_only=True)
class Intervals(Part):
    """What a posterior says of single parameters: mean and central credible interval of each, by name.

    `low` and `high` are None where there are too few samples to tell. `probability` is that of the intervals. Where it
    was asked for, `non_private` is the same of the posterior without clipping and noise: the page then says so.
    `doubts` says for each parameter why its interval is not to be believed, in words; empty for those that are, and
    where nothing was checked.
    """

    names: tuple[str, ...]
    mean: Gapped
    low: Gapped
    high: Gapped
    probability: float
    non_private: Intervals | None = None
    doubts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = part.sentences("names", self.names)
        if not names:
            raise errors.refuse("names", self.names, "to name at least one parameter")
        self._put(names=names, probability=errors.probability("probability", self.probability))
        for name in ("mean", "low", "high"):
            self._put(**{name: part.gapped(name, getattr(self, name), len(names))})
        if any((low is None) != (high is None) for low, high in zip(self.low, self.high, strict=True)):
            raise errors.unmet("low", self.low, "low and high to be missing together", "one of them")
        self._put(non_private=part.optional(Intervals, "non_private", self.non_private))
        if self.non_private is not None and self.non_private.names != names:
            raise errors.refuse("non_private", self.non_private.names, "with the same names", got="others")
        doubts = tuple(part.text("doubts", words) for words in self.doubts)
        if doubts and len(doubts) != len(names):
            raise errors.refuse("doubts", len(doubts), f"with {len(names)} entries, or none", got=f"{len(doubts)}")
        self._put(doubts=doubts)

    @property
    def doubted(self) -> list[int]:
        """The places of the parameters whose intervals are not to be believed."""
        return [place for place, words in enumerate(self.doubts) if words]


@dataclass(frozen=True, kw_only=True)
class Report(Part):
    """One training run and what it promised.

    - `created`: an ISO date or time, given by the caller; `record`: in words, whom the per-instance guarantee is for.
    - `delta`: of every array below; each guarantee has its own.
    - `groups`: Bayesian ε by group of people.
    - `watched`: what the run cost each of the records that were named before it.
    - `metrics`: final test metrics, name → number (None where it is not finite).
    - `confusion`: which classes were taken for which; `paid`: counts over test records that may be published (H25).
    - `released`: in words, what an attacker sees: "the trained model", "the posterior", "the samples".
    - `posterior`: what was learned of each parameter, by a learner that gives a posterior.
    - `audit`: lower bounds on ε by attacks, made after the run (L9).
    - `shift`: whether witnesses outside of the data and inside look alike.
    - `seeded`: the private noise came from a given seed: the page then says "reproducible, not private".
    - `assumptions` of the run as a whole, beside each guarantee's own; `preprocessing`: what was taken from the
      data and declared public, or what it cost; `notes`: anything else. Sentences.

    Bad input gets `InputError` naming the field.
    """

    title: str
    created: str
    settings: Settings
    delta: float
    guarantees: tuple[Guarantee, ...]
    record: str = ""
    curve: CoverageCurve | None = None
    history: EpsilonHistory | None = None
    records: RecordLosses | None = None
    groups: GroupLosses | None = None
    watched: WatchedRecords | None = None
    norms: NormQuantiles | None = None
    progress: Progress | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict, hash=False)
    confusion: Confusion | None = None
    paid: PaidMetrics | None = None
    released: str = "the trained model"
    posterior: Intervals | None = None
    audit: Audit | None = None
    shift: Shift | None = None
    seeded: bool = False
    assumptions: tuple[str, ...] = ()
    preprocessing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settings = part.optional(Settings, "settings", self.settings)
        if settings is None:
            raise errors.refuse("settings", None, "to be a Settings")
        self._put(
            title=part.text("title", self.title, empty=False),
            created=_iso(self.created),
            settings=settings,
            delta=errors.probability("delta", self.delta),
            guarantees=_guarantees(self.guarantees),
            record=part.text("record", self.record),
            curve=part.optional(CoverageCurve, "curve", self.curve),
            history=part.optional(EpsilonHistory, "history", self.history),
            records=part.optional(RecordLosses, "records", self.records),
            groups=part.optional(GroupLosses, "groups", self.groups),
            watched=part.optional(WatchedRecords, "watched", self.watched),
            norms=part.optional(NormQuantiles, "norms", self.norms),
            progress=part.optional(Progress, "progress", self.progress),
            metrics=part.mapping("metrics", self.metrics, lambda name, one: part.gapped(name, [one], 1)[0]),
            confusion=part.optional(Confusion, "confusion", self.confusion),
            paid=part.optional(PaidMetrics, "paid", self.paid),
            released=part.text("released", self.released, empty=False),
            posterior=part.optional(Intervals, "posterior", self.posterior),
            audit=part.optional(Audit, "audit", self.audit),
            shift=part.optional(Shift, "shift", self.shift),
            seeded=errors.one_of("seeded", self.seeded, (True, False)),
        )
        for name in ("assumptions", "preprocessing", "notes"):
            self._put(**{name: part.sentences(name, getattr(self, name))})


def _level(name: str, value: Any, most: float | None) -> Level | None:
    if value is None:
        return None
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise errors.refuse(name, value, "to be a number or a pair (smallest, largest)")
        low, high = (errors.number(name, one, least=0, most=most) for one in value)
        if low > high:
            raise errors.refuse(name, value, "to be a number or a pair (smallest, largest)")
        return low if low == high else (low, high)
    return errors.number(name, value, least=0, most=most)


def _word_or_number(name: str, value: Any) -> str | float | bool:
    if isinstance(value, bool):
        return value
    return part.text(name, value) if isinstance(value, str) else errors.number(name, value)


def _iso(value: Any) -> str:
    try:
        datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise errors.refuse("created", value, "to be an ISO date such as '2026-03-01'") from None
    return str(value)


def _guarantees(value: Any) -> tuple[Guarantee, ...]:
    if not isinstance(value, tuple | list) or not value:
        raise errors.refuse("guarantees", value, "to be one or more guarantees")
    result = []
    for one in value:
        if not isinstance(one, Guarantee | Mapping):
            raise errors.refuse("guarantees", one, "to hold guarantees")
        result.append(one if isinstance(one, Guarantee) else Guarantee.from_dict(one))
    return tuple(result)
