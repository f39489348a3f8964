"""Training in paper S3's way, and what its four experiments share (J15-J19).

    DP-SGD: clip norm 1, learning rate 0.1, sum rule, Poisson batches of 128 on average; δ = 10⁻⁵, α = 8

A training leaves checkpoints; distances |clip(g)|/C of records at a checkpoint become costs of one step (Theorem 3.2).
S3 shows such costs at α = 8, relative to those of a record at the clip norm. At its noise order 8 is far beyond any
that an ε at δ is read off, and a difference of a tenth in the distance is one of orders of magnitude in the cost
(ERR 22). So each cost comes with the ε at δ of n steps that all cost as much, the least over orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import optax

from bayesdp import convert, data
from bayesdp.accountant.worst_case import Engine
from bayesdp.compose.orders import default_orders
from bayesdp.data.dataset import Dataset
from bayesdp.divergence.table import CostTable
from bayesdp.errors import Array
from bayesdp.experiments.common.resnet import PictureLoss, ResNet20
from bayesdp.experiments.per_instance.checkpoint_distances import distances
from bayesdp.learn import SGD
from bayesdp.learn.loop.run import Run
from bayesdp.learn.models.networks import classifier
from bayesdp.mechanism import ModelLoss, use_host_cores

DELTA, ORDER, CLIP_NORM, RATE, BATCH, EPOCHS = 1e-5, 8, 1.0, 0.1, 128, 10
SIGMAS = {16: 0.410, 32: 0.430, 64: 0.449, 128: 0.469, 256: 0.508, 512: 0.566}
"""S3's noise for MNIST by batch: ε = 10 in its accounting, 9.1 exactly for 128 (ERR 22b, I-9)."""

STAGES = ("initial", "middle", "final")
SHARES = {"1 %": 0.01, "10 %": 0.1, "half": 0.5, "90 %": 0.9}
"""How many of the records have less, in tables."""

OPTIMIZER = optax.sgd(RATE)
"""One and the same for all plans: programs are then compiled once."""

_BETWEEN = (1.6, 1.9, 2.1, 2.25)
"""More orders, where the best one is at S3's noise."""

Records = tuple[Any, Any]
Params = Any


@dataclass(frozen=True)
class Problem:
    """What is learnt: a model and where it starts, the records, and others to test on."""

    loss: ModelLoss | PictureLoss
    params: Params
    data: Records
    test: Records

    @property
    def size(self) -> int:
        """N."""
        return len(self.data[0])

    def correct(self, params: Params, records: Records) -> npt.NDArray[np.bool_]:
        """Whether each record is classified as its label says."""
        outputs = np.asarray(jax.jit(self.loss.model.apply)(jax.device_get(params), records[0]))
        return np.asarray(outputs.argmax(axis=1) == records[1])

    def members(self, count: int, seed: int) -> Records:
        """Random records of the data."""
        return _some(self.data, count, seed)

    def outsiders(self, count: int, seed: int) -> Records:
        """Random test records."""
        return _some(self.test, count, seed)


def _some(records: Records, count: int, seed: int) -> Records:
    rows = np.sort(np.random.default_rng(seed).permutation(len(records[0]))[:count])
    return records[0][rows], records[1][rows]


def problem(images: Dataset, model: str, seed: int) -> Problem:
    """A model of `learn.models.networks`, or ResNet-20, on these images."""
    loss: Any
    if model == "resnet20":
        loss = PictureLoss(ResNet20(len(images.classes)))
    else:
        loss = classifier(model, len(images.classes))
    start = loss.model.init(jax.random.key(seed), images.x.shape[1:])
    return Problem(loss, start, (images.x, images.y), (images.x_test, images.y_test))


def plan(
    size: int,
    *,
    batch: int = BATCH,
    epochs: float = EPOCHS,
    looks: int = 2,
    sigma: float | None = None,
    epsilon: float | None = None,
    engine: Engine = "pld",
) -> SGD:
    """S3's plan for that many records, looked at `looks` times, with noise σ or what keeps `epsilon`."""
    steps = round(epochs * size / batch)
    chosen = SGD(
        optimizer=OPTIMIZER,
        sampling_rate=batch / size,
        steps=steps,
        clip_norm=CLIP_NORM,
        noise_multiplier=sigma,
        delta=DELTA,
        engine=engine,
        report_every=-(-steps // looks),
    )
    return chosen if epsilon is None else chosen.calibrate(epsilon=epsilon)


@dataclass(frozen=True)
class Trained:
    """A run, and its parameters after `at` steps: at the start and at every look."""

    problem: Problem
    plan: SGD
    run: Run
    at: tuple[int, ...]
    checkpoints: tuple[Params, ...]

    def stage(self, name: str) -> Params:
        """The checkpoint at the start, in the middle or at the end."""
        return self.checkpoints[(0, (len(self.at) - 1) // 2, -1)[STAGES.index(name)]]

    def distances(self, records: Records) -> Array:
        """|clip(g)|/C of these records at every checkpoint, (checkpoints, records)."""
        seen = distances(self.problem.loss, [self.checkpoints], records, CLIP_NORM)[0]
        return np.asarray(np.minimum(seen.astype(np.float64), 1.0))

    @property
    def accuracy(self) -> tuple[float, ...]:
        """On the test records, at every checkpoint."""
        return tuple(float(self.problem.correct(one, self.problem.test).mean()) for one in self.checkpoints)


def train(
    problem: Problem,
    plan: SGD,
    seed: int,
    *,
    watch: Records | None = None,
    look: Callable[[Run], None] | None = None,
) -> Trained:
    """Train and keep the checkpoints; each of `watch` is charged for every step (H3), `look` sees every look."""
    kept: list[tuple[int, Params]] = [(0, jax.device_get(problem.params))]

    def keep(run: Run) -> None:
        kept.append((run.steps, jax.device_get(run.params)))
        if look is not None:
            look(run)

    run = plan.fit(problem.loss, problem.params, problem.data, members=0, watch=watch, seed=seed, progress=keep)
    at, checkpoints = zip(*kept, strict=True)
    return Trained(problem, plan, run, at, checkpoints)


def at_s3s_noise(
    images: Dataset | None, model: str, seed: int, *, batch: int, epochs: float, data_dir: str | Path | None
) -> Trained:
    """A training on MNIST, or these images, with S3's noise for its usual batch: single steps are costed there."""
    use_host_cores()
    start = problem(images or data.load("mnist", data_dir=data_dir), model, seed)
    return train(start, plan(start.size, batch=batch, epochs=epochs, sigma=SIGMAS[BATCH]), seed)


def divergences(distances: Array, orders: Sequence[float] | Array, *, sigma: float, rate: float) -> Array:
    """Theorem 3.2: D_α of a step for records at these distances, distances.shape + (orders,)."""
    table, grid = CostTable(orders, sampling_rate=rate), np.asarray(orders, dtype=float)
    return np.asarray(table((distances.ravel() / sigma) ** 2).reshape(*distances.shape, len(grid)) / (grid - 1))


def of_steps(divergence: Array, orders: Array, steps: int) -> Array:
    """ε at δ of `steps` steps that all cost (…, orders) as much, the least over orders."""
    return np.asarray(convert.epsilon(steps * divergence * (orders - 1), orders, DELTA))


def people(values: Array) -> list[tuple[str, float]]:
    """The mean, shares of the records and the largest, as (who, value)."""
    # Interpolation would make nothing of infinities.
    method: Any = "linear" if np.isfinite(values).all() else "inverted_cdf"
    shares = [(name, float(np.quantile(values, share, method=method))) for name, share in SHARES.items()]
    return [("mean", float(np.mean(values))), *shares, ("most", float(np.max(values)))]


def epsilon_of(distances: Array, *, sigma: float, rate: float, steps: int) -> Array:
    """ε at δ of `steps` steps in which a record keeps its distance."""
    orders = np.union1d(default_orders(), _BETWEEN)
    return of_steps(divergences(distances, orders, sigma=sigma, rate=rate), orders, steps)
