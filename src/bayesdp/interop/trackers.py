"""Trackers: a run's DP ε and reported numbers, as it goes on, to MLflow, TensorBoard or Weights & Biases.

    plan.fit(loss, params, data, progress=MLflow(), evaluate=public_loss)

DP ε is a function of the plan alone and may be seen by anybody. What `evaluate` returns is sent as it is: keep it to
public data. Bayesian and per-instance numbers and gradient norms are functions of private data: they are sent only
where they are asked for by name, `sensitive=("bdp", "per_instance", "norms")`.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from bayesdp import errors
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.snapshot import LEVELS, Snapshot
from bayesdp.learn.posterior.base import Published

SENSITIVE = ("bdp", "per_instance", "norms")
_NAMES = {"bdp": "bayesian_epsilon_SENSITIVE", "per_instance": "per_instance_epsilon_SENSITIVE"}


def values_of(snapshot: Snapshot, sensitive: Sequence[str] = ()) -> dict[str, float]:
    """What is sent of a snapshot, name → number.

    Args:
        snapshot: of a run.
        sensitive: which of `SENSITIVE` are sent too.

    Returns:
        "dp_epsilon", the reported numbers, and what was asked for, under names that end in SENSITIVE.
    """
    found = {"dp_epsilon": snapshot.dp, **snapshot.metrics}
    for name, called in _NAMES.items():
        value = {"bdp": snapshot.bdp, "per_instance": snapshot.per_instance}[name]
        if name in sensitive and value is not None:
            found[called] = value
    if "norms" in sensitive:
        levels = zip(LEVELS, snapshot.norms, strict=False)  # no witnesses, no norms
        found |= {f"norm_quantile_{level:g}_SENSITIVE": value for level, value in levels}
    return found


class Tracker(ABC):
    """A `progress` for `fit`: sends each new snapshot once.

    Args:
        sensitive: which of "bdp", "per_instance" and "norms" are sent too; none unless named.

    Bad input: another name gets `InputError`.
    """

    def __init__(self, *, sensitive: Sequence[str] = ()) -> None:
        if isinstance(sensitive, str):
            raise errors.refuse("sensitive", sensitive, "to be a tuple of names")
        self.sensitive = tuple(errors.one_of("sensitive", one, SENSITIVE) for one in sensitive)
        self._sent = 0

    def __call__(self, result: Run | Published) -> None:
        """Send the snapshots that are new."""
        run = result.run if isinstance(result, Published) else result
        for snapshot in run.snapshots:
            if snapshot.step > self._sent:
                self.send(values_of(snapshot, self.sensitive), snapshot.step)
                self._sent = snapshot.step

    @abstractmethod
    def send(self, values: Mapping[str, float], step: int) -> None:
        """Send numbers of one step."""


class MLflow(Tracker):
    """MLflow's active run.

    Args:
        client: something with MLflow's `log_metrics(values, step=…)`; None: the library itself.
        sensitive: see `Tracker`.
    """

    def __init__(self, client: Any = None, *, sensitive: Sequence[str] = ()) -> None:
        super().__init__(sensitive=sensitive)
        self.client = _library("mlflow") if client is None else client

    def send(self, values: Mapping[str, float], step: int) -> None:
        """By `log_metrics`."""
        self.client.log_metrics(dict(values), step=step)


class TensorBoard(Tracker):
    """A TensorBoard writer.

    Args:
        writer: a `SummaryWriter` of PyTorch, tensorboardX or Flax: `add_scalar(name, value, step)` or
            `scalar(name, value, step)`.
        sensitive: see `Tracker`.
    """

    def __init__(self, writer: Any, *, sensitive: Sequence[str] = ()) -> None:
        super().__init__(sensitive=sensitive)
        known = [one for one in ("add_scalar", "scalar") if callable(getattr(writer, one, None))]
        if not known:
            raise errors.refuse("writer", writer, "to have add_scalar(name, value, step) or scalar(name, value, step)")
        self._write = getattr(writer, known[0])

    def send(self, values: Mapping[str, float], step: int) -> None:
        """One scalar after the other."""
        for name, value in values.items():
            self._write(name, value, step)


class WandB(Tracker):
    """Weights & Biases, offline: nothing leaves this machine unless somebody syncs it.

    Args:
        run: a run begun with `wandb.init(mode="offline")`; None begins one.
        sensitive: see `Tracker`.

    Bad input: a run that is online.
    """

    def __init__(self, run: Any = None, *, sensitive: Sequence[str] = ()) -> None:
        super().__init__(sensitive=sensitive)
        self.run = _library("wandb").init(mode="offline") if run is None else run
        if not self.run.offline:
            raise errors.refuse("run", run, 'to be offline: wandb.init(mode="offline")', got="one that is online")

    def send(self, values: Mapping[str, float], step: int) -> None:
        """By `run.log`."""
        self.run.log(dict(values), step=step)


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise errors.InputError(f"Expected {name} to be installed. Run pip install {name}.") from None
