"""Trackers: what is sent, and what is not unless it is asked for."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from bayesdp.errors import InputError
from bayesdp.interop.trackers import MLflow, TensorBoard, WandB
from bayesdp.learn.loop.snapshot import Snapshot

FIRST = Snapshot(10, 0.5, 0.2, 0.1, (0.1,) * 6, {"public loss": 2.0})
SECOND = dataclasses.replace(FIRST, step=20, dp=0.7)


class Recorded:
    """A library of each kind."""

    offline = True

    def __init__(self):
        self.sent = {}

    def log_metrics(self, values, step):
        self.sent.setdefault(step, {}).update(values)

    log = log_metrics

    def add_scalar(self, name, value, step):
        self.log({name: value}, step)


def run(*snapshots):
    return SimpleNamespace(snapshots=snapshots)


@pytest.mark.parametrize("kind", [MLflow, TensorBoard, WandB])
def test_only_what_is_public_is_sent_and_once(kind):
    told = Recorded()
    tracker = kind(told)
    tracker(run(FIRST))
    told.sent[10]["mark"] = 1
    tracker(run(FIRST, SECOND))
    assert told.sent == {
        10: {"dp_epsilon": 0.5, "public loss": 2.0, "mark": 1},
        20: {"dp_epsilon": 0.7, "public loss": 2.0},
    }


@pytest.mark.parametrize("kind", [MLflow, TensorBoard, WandB])
def test_sensitive_numbers_are_sent_by_name_and_called_so(kind):
    told = Recorded()
    kind(told, sensitive=("bdp", "norms"))(run(FIRST))
    more = set(told.sent[10]) - {"dp_epsilon", "public loss"}
    assert "bayesian_epsilon_SENSITIVE" in more
    assert "norm_quantile_0.5_SENSITIVE" in more
    assert not any(name.startswith("per_instance") for name in more)
    assert all(name.endswith("SENSITIVE") for name in more)


def test_refusals():
    with pytest.raises(InputError, match="sensitive"):
        MLflow(Recorded(), sensitive=("everything",))
    with pytest.raises(InputError, match="tuple of names"):
        MLflow(Recorded(), sensitive="bdp")
    with pytest.raises(InputError, match="add_scalar"):
        TensorBoard(object())
    with pytest.raises(InputError, match="offline"):
        WandB(SimpleNamespace(offline=False))
    with pytest.raises(InputError, match="mlflow to be installed"):
        MLflow()
