"""What every job of learning from a data set has in common, as plain values that a folder can keep (job.json).

    records + plan + witnesses + seeds   →   settled: what was left open is chosen from public quantities

`SGDJob` is private SGD, `PosteriorJob` a private posterior.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

from bayesdp import errors, storage
from bayesdp.accountant.worst_case import Engine
from bayesdp.convert import DRAWN_SHARE
from bayesdp.data import Dataset, coins
from bayesdp.data.payment import Paid, Payment, paid_again, payment_of
from bayesdp.estimate.quantile import most_covered
from bayesdp.guarantee import Adjacency
from bayesdp.jobs import defaults
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.people import Whom
from bayesdp.learn.loop.plan import MOST_STEPS, TOO_MANY
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.witnesses import EVERYONE
from bayesdp.mechanism.key import NOISE_KINDS, NoiseKind
from bayesdp.rounding import down
from bayesdp.unit import Unit

SGD_FORMAT, POSTERIOR_FORMAT = "bayesdp/job", "bayesdp/fit-job"
"""What a job.json calls itself."""

SMALLEST = 1e-15
"""Clip norms and noise multipliers are no smaller: the product of two is still a number in float32."""

FAILURE = 1e-6
"""The chance that the Bayesian guarantee is wrong about the share of people."""


class Split(NamedTuple):
    """How many of the training records are to be held out, and how many are then left to train on: public numbers.

    Coins decide on each record (`data.coins`): how many there are in the end is near to that.
    """

    holdout: int
    records: int


class Chosen(NamedTuple):
    """What any settled job says of its steps; δ is what preparation and the way noise is drawn have left of it."""

    steps: int
    sampling_rate: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """The common fields. None: to be chosen from public quantities (`defaults`).

    Args:
        data: which records.
        epsilon: the DP ε that the noise is calibrated to where `noise_multiplier` is None.
        noise_multiplier, sampling_rate, steps, delta, coverage, adjacency, engine: see `Plan`.
        batch_size, epochs: another way to give `sampling_rate` and `steps`.
        holdout: how many records are held out of the training data to speak for outsiders.
        members: how many training records speak for members.
        num_records: how many records the data have, a test set of their own not counted: declared independently of
            them. None: as many as there are, which each guarantee then says is public (H18).
        expected_records: how many of the declared are to be trained on, N of the plan; a settled job has it.
        groups: the column of a table that says which group each record is in, for a report by group; public, fixed
            before the run. None: the classes.
        watch: the records whose own guarantee is wanted: numbers from 1, in the order of the file; people by their
            names, as the column that tells them apart has them; or "everyone", all that are trained on.
        seed: makes the run reproducible and **not private**.
        draw: decides with each record's place whether it is trained on, tested on or held out, and the initial
            parameters; from the operating system unless there is a seed.
        paid: what preparing the records privately has cost; a settled job has it where that was done (H22).
        noise_kind: see `Plan`.

    Bad input gets `InputError` naming the field.
    """

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 2

    data: DataSource
    epsilon: float | None = None
    noise_multiplier: float | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None
    steps: int | None = None
    epochs: float | None = None
    delta: float | None = None
    coverage: float = 0.9
    adjacency: Adjacency = "add-remove"
    engine: Engine = "pld"
    holdout: int | None = None
    members: int | None = None
    num_records: int | None = None
    expected_records: int | None = None
    groups: str | None = None
    watch: tuple[Whom, ...] | Literal["everyone"] = ()
    seed: int | None = None
    draw: int | None = None
    paid: Paid | None = None
    noise_kind: NoiseKind = "float"

    def __post_init__(self) -> None:
        for name in ("epochs", "epsilon"):
            if getattr(self, name) is not None:
                errors.number(name, getattr(self, name), above=0)
        for name, least in (("batch_size", 1), ("holdout", 0), ("members", 0), ("num_records", 1), ("seed", 0)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, errors.whole(name, getattr(self, name), least=least))
        if self.steps is not None:
            steps = errors.whole("steps", self.steps, least=1, most=MOST_STEPS, hint=TOO_MANY)
            object.__setattr__(self, "steps", steps)
        check_size("noise_multiplier", self.noise_multiplier)
        errors.one_of("noise_kind", self.noise_kind, NOISE_KINDS)
        for one, other in (("sampling_rate", "batch_size"), ("steps", "epochs")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise errors.refuse(
                    other, getattr(self, other), f"to be left out beside {errors.Argument(one, getattr(self, one))}"
                )
        if isinstance(self.watch, str):
            errors.one_of("watch", self.watch, [EVERYONE])
        for whom in () if self.watch == EVERYONE else self.watch:
            if self.unit == "record" or not isinstance(whom, str):
                errors.whole("watch", whom, least=1, hint="Records are counted from 1, in the order of the file.")
        if self.draw is None:
            object.__setattr__(self, "draw", coins.fresh() if self.seed is None else self.seed)

    @property
    def unit(self) -> Unit:
        """What a promise is about."""
        return "record" if self.data.person is None else "person"

    def load(self) -> Dataset:
        """The records. Bad input: see `data.load`."""
        return self.data.load(self.draw, self.payment)

    def payment(self, training: int, test_share: float) -> Payment:
        """What preparing the records may cost, with so many to train on or to hold out: by the declared number where
        there is one.
        """
        if self.paid is not None:
            return paid_again(self.paid)
        pool = training if self.num_records is None else max(1, round(self.num_records * (1 - test_share)))
        holdout = min(pool - 1, self.usual_holdout(pool) if self.holdout is None else self.holdout)
        return payment_of(
            epsilon=self.epsilon,
            delta=self.checked_delta(pool - holdout),
            share=self.data.scale_share,
            adjacency=self.adjacency,
            held_out=holdout / pool,
            records=pool - holdout,
        )

    def usual_holdout(self, pool: int) -> int:
        """How many of so many records are held out where nothing was said: paying and training must agree on it."""
        return defaults.holdout(pool)

    @abstractmethod
    def settled(self, data: Dataset) -> Self:
        """The job with everything chosen that was left open; `data` is public in its sizes only."""

    def pool(self, data: Dataset) -> int:
        """How many records there are to train on or to hold out, by the declared number where there is one."""
        if self.num_records is None:
            return data.size
        return max(1, round(self.num_records * (1 - data.test_share)))

    def held_out(self, data: Dataset, otherwise: int) -> Split:
        """The training records of `data` told apart; `otherwise`: how many are held out where nothing was said."""
        holdout, pool = otherwise if self.holdout is None else self.holdout, self.pool(data)
        if holdout >= pool:
            there = f"There are {pool:,} training records, and some must be left to train on."
            raise errors.refuse("holdout", holdout, f"to be below {pool}", there)
        records = pool - holdout
        for name, count in (("batch_size", self.batch_size), ("members", self.members)):
            if count is not None and count > records:
                raise errors.refuse(name, count, f"to be at most {records}, the number of records to train on")
        return Split(holdout, records)

    @property
    def chosen(self) -> Chosen:
        """Steps, sampling rate and δ of a settled job."""
        assert self.steps is not None
        assert self.sampling_rate is not None
        assert self.delta is not None
        return Chosen(self.steps, self.sampling_rate, self.delta - self.prelude[1] - (self.noise_delta or 0.0))

    @property
    def noise_delta(self) -> float | None:
        """What of the δ of a settled job is kept for how its noise is drawn; None where nothing is."""
        if self.noise_kind == "float":
            return None
        assert self.delta is not None
        return self.delta - (1 - DRAWN_SHARE) * self.delta  # so that the sum is the very δ that was asked for

    @property
    def prelude(self) -> tuple[float | None, float]:
        """Noise multiplier and δ of what a settled job released before its first step: see `Plan`."""
        return (None, 0.0) if self.paid is None else (self.paid.noise_multiplier, self.paid.delta)

    def pace(self, records: int) -> float | None:
        """The sampling rate, by whatever words it was given; None if by none."""
        return self.sampling_rate if self.batch_size is None else self.batch_size / records

    def length(self, rate: float, otherwise: int) -> int:
        """The number of steps, by whatever words it was given."""
        if self.steps is not None:
            return self.steps
        if self.epochs is None:
            return otherwise
        if self.epochs / rate > MOST_STEPS:
            most = f"to be at most {down(MOST_STEPS * rate)}, which is {MOST_STEPS:,} steps"
            raise errors.refuse("epochs", self.epochs, most, TOO_MANY)
        return max(1, round(self.epochs / rate))

    def checked_delta(self, records: int) -> float:
        """The δ that was given or chosen. Bad input: one that is not below 1/N."""
        delta = defaults.delta(records) if self.delta is None else self.delta
        if errors.probability("delta", delta) >= 1 / records:
            raise errors.refuse(
                "delta",
                delta,
                f"to be below one over the number of training records, 1/{records} = {1 / records:.2g}",
                "A larger one would allow to publish somebody's record outright.",
            )
        return delta

    def expected(self, records: int) -> int | None:
        """N of the plan: those of the declared records that are to be trained on; None where none were declared."""
        return None if self.num_records is None else records

    @property
    def without_dp(self) -> str:
        """What to do where the witnesses of a settled job are too few and no DP value speaks for the rest of people;
        empty where one does.
        """
        return ""

    def check_share(self, outsiders: int) -> None:
        """Refuse a share of people that `outsiders` and the members of a settled job cannot speak for, where nothing
        else speaks for the rest.
        """
        supported, hint = self.supported_by(outsiders), self.without_dp
        if not hint:
            return
        if supported is not None and supported < self.coverage:
            raise errors.refuse(
                "coverage",
                self.coverage,
                f"to be at most {down(supported)}, the share that so few witnesses can speak for",
                hint,
            )

    @property
    def supported(self) -> float | None:
        """The largest share of people that the witnesses of a settled job are to speak for (H5); None without any."""
        return self.supported_by(self.holdout or 0)

    def supported_by(self, outsiders: int) -> float | None:
        """The same with as many outsiders as the coins held out."""
        sides = [count for count in (outsiders, self.members) if count]
        return min((most_covered(count, FAILURE / len(sides)) for count in sides), default=None)

    @property
    def pace_in_words(self) -> str:
        """How many steps a settled job takes, and how large ones."""
        return f"Plan: {self.steps} steps, each with a record's chance of {self.sampling_rate or 0.0:.4g}"

    @property
    def aim_in_words(self) -> str:
        """What a settled job is calibrated to."""
        if self.epsilon is None:
            return f", δ = {self.delta:g}"
        return f", for DP ε ≤ {self.epsilon:g} at δ = {self.delta:g}"

    def write(self, folder: RunFolder) -> None:
        """job.json, readable by its owner only: it says which records were held out and, with a seed, all the noise."""
        storage.write_tagged(folder.job, self.FORMAT, self.VERSION, dataclasses.asdict(self), checked=True)

    @classmethod
    def read(cls, folder: RunFolder) -> Self:
        """The job of a run's folder. Bad input: a folder without one, or a damaged file: `InputError`."""
        return cls.from_dict(storage.read_tagged(folder.job_file(), cls.FORMAT, cls.VERSION, checked=True))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`, lists for tuples. Bad input gets `InputError`."""
        try:
            watch = values["watch"]
            return cls(
                **{
                    **_tuples(values),
                    "data": DataSource(**_tuples(values["data"])),
                    "watch": watch if isinstance(watch, str) else tuple(watch),
                    "paid": None if values.get("paid") is None else Paid.from_dict(values["paid"]),
                }
            )
        except (TypeError, KeyError, AttributeError) as problem:
            raise errors.unmet("run", None, "job.json to describe a job", f"something else: {problem}") from None


def check_size(name: str, value: float | None) -> None:
    """Refuse a clip norm or noise that would be lost in the float32 of training, and with it the promised noise."""
    if value is not None and 0 < value < SMALLEST:
        raise errors.refuse(name, value, f"to be at least {SMALLEST:g}", "Training is done in float32.")


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
