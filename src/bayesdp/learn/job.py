"""A training job: everything that private SGD needs to know, as plain values that a folder can keep (job.json).

    data + model + plan + optimiser + witnesses + seeds   →   prepare   →   fit, or resume what was interrupted

What is left out is chosen in `defaults` from public quantities: how many records there are, and of which shape.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optax

from bayesdp import errors
from bayesdp.accountant.worst_case import Engine
from bayesdp.data import CATALOGUE, Dataset, load
from bayesdp.data.dataset import Task
from bayesdp.data.recipe import ImageFeatures, Scale
from bayesdp.errors import InputError
from bayesdp.estimate.quantile import most_covered
from bayesdp.guarantee import Adjacency
from bayesdp.learn import defaults, files
from bayesdp.learn.models import MODELS
from bayesdp.learn.sgd import SGD
from bayesdp.rounding import down

NAME = "job.json"
FORMAT, VERSION = "bayesdp/job", 1

FAILURE = 1e-6
"""The chance that the Bayesian guarantee is wrong about the share of people."""

OPTIMIZERS = ("adam", "sgd")
SCHEDULES = ("constant", "typical")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Which records: the arguments of `data.load`, which says what they mean."""

    name: str
    target: str | None = None
    task: Task | None = None
    scale: Scale | None = None
    categories: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    test_share: float | None = None
    data_dir: str | None = None
    download: bool = True
    features: ImageFeatures | None = None

    @classmethod
    def given(cls, name: str, *, data_dir: str | Path | None = None, **options: Any) -> Source:
        """As a user says it: a path is made one that holds wherever the job is read again."""
        path = Path(name).expanduser()
        own = name not in CATALOGUE and path.exists()
        folder = None if data_dir is None else str(Path(data_dir).expanduser().absolute())
        return cls(name=str(path.absolute()) if own else name, data_dir=folder, **options)

    def load(self) -> Dataset:
        """The data set. Bad input: see `data.load`."""
        options = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name != "name"}
        return load(self.name, **options)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What shall be done. None: to be chosen from public quantities (`defaults`).

    Args:
        data: which records.
        model: a name of `models.MODELS`.
        epsilon: the DP ε that the noise is calibrated to where `noise_multiplier` is None.
        noise_multiplier, noise_std, sampling_rate, steps: see `SGD`.
        delta, coverage, adjacency, engine, epsilon_budget: see `SGD`.
        clip_norm: a number, or "none" as in S1, with `noise_std`.
        batch_size, epochs: another way to give `sampling_rate` and `steps`.
        noise_schedule: "constant" or "typical" (H13).
        optimizer, learning_rate, momentum: "adam" or "sgd", as in optax.
        audit: how many records are held out of the training data to speak for outsiders.
        members: how many training records speak for members.
        watch: the records whose own guarantee is wanted: numbers from 1, in the order of the file.
        seed: makes the run reproducible and **not private**.
        draw: which records are held out, and the initial parameters; from the operating system unless there is a seed.

    Bad input gets `InputError` naming the field.
    """

    data: Source
    model: str | None = None
    epsilon: float | None = None
    noise_multiplier: float | None = None
    noise_std: float | None = None
    clip_norm: float | Literal["none"] | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None
    steps: int | None = None
    epochs: float | None = None
    noise_schedule: str = "constant"
    optimizer: str = "adam"
    learning_rate: float | None = None
    momentum: float | None = None
    delta: float | None = None
    coverage: float = 0.9
    adjacency: Adjacency = "add-remove"
    engine: Engine = "pld"
    epsilon_budget: float | None = None
    audit: int | None = None
    members: int | None = None
    watch: tuple[int, ...] = ()
    seed: int | None = None
    draw: int | None = None

    def __post_init__(self) -> None:
        if self.model is not None:
            errors.one_of("model", self.model, MODELS)
        errors.one_of("optimizer", self.optimizer, OPTIMIZERS)
        errors.one_of("noise_schedule", self.noise_schedule, SCHEDULES)
        if self.momentum is not None:
            errors.number("momentum", self.momentum, least=0, below=1)
            if self.optimizer != "sgd":
                raise errors.refuse("momentum", self.momentum, "to be left out for optimizer='adam'")
        for name in ("learning_rate", "epochs", "epsilon"):
            if getattr(self, name) is not None:
                errors.number(name, getattr(self, name), above=0)
        for name, least in (("batch_size", 1), ("steps", 1), ("audit", 0), ("members", 0), ("seed", 0)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, errors.whole(name, getattr(self, name), least=least))
        for one, other in (("sampling_rate", "batch_size"), ("steps", "epochs")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise errors.refuse(other, getattr(self, other), f"to be left out beside {one}={getattr(self, one)}")
        self._check_noise()
        for number in self.watch:
            errors.whole("watch", number, least=1, hint="Records are counted from 1, in the order of the file.")
        if self.draw is None:
            object.__setattr__(self, "draw", secrets.randbits(63) if self.seed is None else self.seed)

    def _check_noise(self) -> None:
        if self.clip_norm == "none":
            if self.noise_std is None:
                raise InputError("Expected noise_std to be given with clip_norm='none', got None.")
            for name in ("epsilon", "noise_multiplier"):
                if getattr(self, name) is not None:
                    raise errors.refuse(
                        name,
                        getattr(self, name),
                        "to be left out with clip_norm='none'",
                        "Where nothing is clipped no noise gives a DP ε.",
                    )
            return
        if self.noise_std is not None:
            raise errors.refuse("noise_std", self.noise_std, "to be left out with a clip norm", "Use noise_multiplier.")
        if self.epsilon is None and self.noise_multiplier is None:
            raise InputError("Expected epsilon (to calibrate the noise) or noise_multiplier, got neither.")

    def settled(self, data: Dataset) -> Job:
        """The job with everything chosen that was left open; `data` is public in its sizes only.

        Bad input: more records asked for than there are, a δ that is not below 1/N, an ε that no noise reaches.
        """
        audit = defaults.audit(len(data.x)) if self.audit is None else self.audit
        if audit >= len(data.x):
            there = f"There are {len(data.x):,} training records, and some must be left to train on."
            raise errors.refuse("audit", audit, f"to be below {len(data.x)}", there)
        records = len(data.x) - audit
        if self.batch_size is not None and self.batch_size > records:
            raise errors.refuse(
                "batch_size", self.batch_size, f"to be at most {records}, the number of records to train on"
            )
        if self.members is not None and self.members > records:
            raise errors.refuse("members", self.members, f"to be at most {records}, the number of records to train on")
        rate = self.sampling_rate if self.batch_size is None else self.batch_size / records
        rate = defaults.sampling_rate(records) if rate is None else rate
        model = self.model or defaults.model(data.x.shape[1:], self.data.features)
        steps = self.steps
        if steps is None:
            steps = defaults.steps(records, model) if self.epochs is None else max(1, round(self.epochs / rate))
        chosen = dataclasses.replace(
            self,
            model=model,
            audit=audit,
            members=defaults.members(records) if self.members is None else self.members,
            sampling_rate=rate,
            batch_size=None,
            steps=steps,
            epochs=None,
            clip_norm=defaults.clip_norm(records, self.data.features) if self.clip_norm is None else self.clip_norm,
            learning_rate=self.learning_rate or defaults.learning_rate(model, self.optimizer, data.x[0].size),
            momentum=defaults.MOMENTUM if self.momentum is None and self.optimizer == "sgd" else self.momentum,
            delta=defaults.delta(records) if self.delta is None else self.delta,
        )
        if errors.probability("delta", chosen.delta) >= 1 / records:
            raise errors.refuse(
                "delta",
                chosen.delta,
                f"to be below one over the number of training records, 1/{records} = {1 / records:.2g}",
                "A larger one would allow to publish somebody's record outright.",
            )
        supported = chosen.supported
        if chosen.clip_norm == "none" and supported is not None and supported < chosen.coverage:
            raise errors.refuse(
                "coverage",
                chosen.coverage,
                f"to be at most {down(supported)}, the share that so few witnesses can speak for",
                "Use more of them, or a clip norm: then the DP value speaks for the rest.",
            )
        if chosen.noise_multiplier is None and chosen.epsilon is not None:
            return dataclasses.replace(
                chosen, noise_multiplier=chosen.plan().calibrate(chosen.epsilon).noise_multiplier
            )
        return chosen

    def plan(self) -> SGD:
        """The plan of a settled job."""
        settled: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "sampling_rate",
                "steps",
                "noise_multiplier",
                "noise_std",
                "delta",
                "coverage",
                "adjacency",
                "engine",
                "epsilon_budget",
            )
        }
        return SGD(
            clip_norm=None if self.clip_norm == "none" else self.clip_norm,
            failure=FAILURE,
            noise_schedule=1.0 if self.noise_schedule == "constant" else self.noise_schedule,
            optimizer=optax.adam(self.learning_rate)
            if self.optimizer == "adam"
            else optax.sgd(self.learning_rate, self.momentum),
            **settled,
        )

    @property
    def supported(self) -> float | None:
        """The largest share of people that the witnesses of a settled job can speak for (H5); None without any."""
        sides = [count for count in (self.audit, self.members) if count]
        return min((most_covered(count, FAILURE / len(sides)) for count in sides), default=None)

    @property
    def optimizer_in_words(self) -> str:
        """For the report."""
        rate = f"learning rate {self.learning_rate:g}"
        return f"Adam, {rate}" if self.optimizer == "adam" else f"SGD, momentum {self.momentum:g}, {rate}"

    def write(self, folder: Path) -> None:
        """job.json, readable by its owner only: it says which records were held out and, with a seed, all the noise."""
        files.write_json(
            folder / NAME, {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}, private=True
        )

    @classmethod
    def read(cls, folder: str | Path) -> Job:
        """The job of a run's folder. Bad input: a folder without one, or a damaged file: `InputError`."""
        path = Path(folder) / NAME
        if not path.is_file():
            raise errors.refuse("run", str(folder), f"to be a folder made by training, which has a {NAME}")
        return cls.from_dict(files.read_tagged(path, FORMAT, VERSION))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """The inverse of `dataclasses.asdict`, lists for tuples. Bad input gets `InputError`."""
        try:
            source: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values["data"].items()}
            return cls(**{**values, "data": Source(**source), "watch": tuple(values["watch"])})
        except (TypeError, KeyError, AttributeError) as problem:
            raise InputError(f"Expected {NAME} to describe a job, got something else: {problem}.") from None
