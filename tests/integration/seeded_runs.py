"""Small seeded runs of every learner and command, as flat tables of named arrays; recorded, and compared bit for bit.

    python tests/integration/seeded_runs.py record FILE.json [NAME …]     all runs, or these; others in FILE stay
    python tests/integration/seeded_runs.py compare FILE.json [NAME …]    prints what differs, exit code 1 if anything

A record holds the sha256 of every array, which is the same on one machine only, and a summary that others can compare
with. `test_seeded_runs.py` compares summaries; before and after moving code around on one machine, use `compare`.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import bayesdp as bd
from bayesdp import storage
from bayesdp.cli import main as command_line
from bayesdp.learn.models.networks import classifier
from bayesdp.learn.models.regressions import linear, logistic
from bayesdp.mechanism import Automatic, Mean
from bayesdp.storage import manifest

Arrays = dict[str, np.ndarray]

DEVICES = 2
"""What a seed gives depends on how many devices draw batches."""

LISTED, ENTRIES = 24, 12
"""Arrays of at most so many numbers are recorded whole; of larger ones so many entries."""

RUNS: dict[str, Callable[[Path], Arrays]] = {}


def _register(run: Callable[[Path], Arrays]) -> Callable[[Path], Arrays]:
    RUNS[run.__name__] = run
    return run


# --- names of the library that occur in many runs, each in one place --------------------------------------------------


def _looks(steps: int) -> dict[str, Any]:
    return {"report_every": steps}


def _witnesses(holdout: Any = None, members: int = 0, watch: Any = None) -> dict[str, Any]:
    return {"holdout": holdout, "members": members, "watch": watch}


def _chains(count: int) -> dict[str, Any]:
    return {"num_chains": count}


def _measured(every: int) -> dict[str, Any]:
    return {"measure_every": every}


WITNESSES = ("--holdout", 30, "--members", 20)
NOBODY = ("--holdout", 0, "--members", 0)


# --- what is learned from, and how ------------------------------------------------------------------------------------


@cache
def _people(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three features, the last of them 1, and yes or no."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3)) * [1, 0.7, 0] + [0, 0, 1]
    y = rng.random(count) < 1 / (1 + np.exp(-x @ [1.5, -1, 0.3]))
    return x.astype(np.float32), y.astype(np.int32)


@cache
def _pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """8 x 8 pixels of noise, brighter on one of three diagonals."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, count)
    x = 0.3 * rng.normal(size=(count, 8, 8, 1))
    x[..., 0] += np.stack([np.eye(8, k=k) for k in (-3, 0, 3)])[y]
    return x.astype(np.float32), y.astype(np.int32)


DATA, OTHERS, FEW = _people(300, 0), _people(60, 1), _people(4, 2)
START = {"bias": np.zeros((), np.float32), "weights": np.array([0.1, -0.2, 0.0], np.float32)}
SOME = _witnesses(OTHERS, 50, FEW)
LEARN = {"sampling_rate": 0.2, "steps": 20, "engine": "rdp", "coverage": 0.5, **_looks(5)}


def _loss(params: Any, record: Any) -> jax.Array:
    x, y = record
    return jnp.logaddexp(0, x @ params["weights"] + params["bias"]) - y * (x @ params["weights"] + params["bias"])


def _sgd(**fields: Any) -> bd.SGD:
    return bd.SGD(**{"optimizer": optax.sgd(0.5), "clip_norm": 2.0, "noise_multiplier": 1.5, **LEARN, **fields})


# --- results as arrays ------------------------------------------------------------------------------------------------


def _leaves(name: str, tree: Any) -> Arrays:
    return {
        name + jax.tree_util.keystr(place): np.asarray(leaf)
        for place, leaf in jax.tree_util.tree_leaves_with_path(jax.device_get(tree))
    }


def _under(name: str, arrays: Arrays) -> Arrays:
    return {f"{name}: {key}": value for key, value in arrays.items()}


def _numbers(values: Any) -> np.ndarray:
    """Floats, NaN where there is none; infinite ones may be words, as in JSON."""
    return np.array([math.nan if value is None else float(value) for value in values], np.float64)


def _promised(guarantees: Any) -> Arrays:
    found = {name: _numbers(getattr(one, name) for one in guarantees) for name in ("epsilon", "delta", "failure")}
    return {
        "guarantees' notions": np.array([one.notion for one in guarantees]),
        **{f"guarantees' {name}": values for name, values in found.items()},
    }


def _curve(curve: Any) -> Arrays:
    return {} if curve is None else {"curve's shares": np.asarray(curve.coverage), "curve": np.asarray(curve.epsilon)}


def _run(run: bd.Run) -> Arrays:
    """A run of any learner with noisy steps."""
    found = {
        **_leaves("params", run.params),
        **_promised(run.guarantees),
        **_curve(run.curve()),
        "steps": np.array(run.steps),
        "noise": np.asarray(run.plan.noise),
        "members": run.members,
        "losses": run.losses(),
    }
    if run.instance is not None:
        found["instance"] = np.asarray(run.instance.epsilon(run.plan.delta))
    if run.snapshots:
        ways = ("step", "dp", "bdp", "per_instance")
        found |= {f"looks' {way}": _numbers(getattr(look, way) for look in run.snapshots) for way in ways}
        found["looks' norms"] = np.array([look.norms for look in run.snapshots])
        found |= {
            f"looks' {name}": _numbers(look.metrics[name] for look in run.snapshots)
            for name in run.snapshots[-1].metrics
        }
    return found


def _published(posterior: Any, inputs: Any = None) -> Arrays:
    """A posterior that may be published, with answers computed from it."""
    return {
        **_run(posterior.run),
        **_leaves("posterior's ", posterior.arrays()),
        "drawn": np.asarray(posterior.draw(5, seed=1)),
        "interval": posterior.interval(),
        **_leaves("sample", posterior.sample(3, seed=2)),
        **_leaves("prediction", posterior.predict((OTHERS[0][:20],) if inputs is None else inputs, draws=50, seed=3)),
    }


class _PowerCut(Exception):
    pass


def _cut_at(look: int) -> Callable[[Any], None]:
    """A `progress` that ends the run at that look."""
    seen: list[Any] = []

    def progress(so_far: Any) -> None:
        seen.append(so_far)
        if len(seen) == look:
            raise _PowerCut

    return progress


def _same(one: Arrays, other: Arrays) -> Arrays:
    """Which arrays of two runs are the same: all, it is promised."""
    assert one.keys() == other.keys()
    return {"same": np.array([one[name].tobytes() == other[name].tobytes() for name in sorted(one)])}


# --- private SGD ------------------------------------------------------------------------------------------------------


@_register
def sgd_sum(_: Path) -> Arrays:
    """The sum rule, noise calibrated by loss distributions, numbers reported at every look."""
    plan = _sgd(optimizer=optax.adam(0.1), engine="pld").calibrate(epsilon=2.0)
    x, y = OTHERS

    def evaluate(params: Any) -> dict[str, float]:
        return {"accuracy": float((((x @ params["weights"] + params["bias"]) > 0) == y).mean())}

    return _run(plan.fit(_loss, START, DATA, **SOME, seed=1, evaluate=evaluate))


@_register
def sgd_mean(_: Path) -> Arrays:
    return _run(_sgd(update=Mean(20)).fit(_loss, START, DATA, **SOME, seed=2))


@_register
def sgd_per_layer(_: Path) -> Arrays:
    return _run(_sgd(clip_norm={"bias": 0.3, "weights": 0.6}).fit(_loss, START, DATA, **SOME, seed=3))


@_register
def sgd_unclipped(_: Path) -> Arrays:
    return _run(_sgd(clip_norm=None, noise_multiplier=None, noise_std=4.0).fit(_loss, START, DATA, **SOME, seed=4))


@_register
def sgd_network(_: Path) -> Arrays:
    """Convolutions by the fast path, and a dense layer clipped automatically."""
    data, given, found = _pictures(120, 0), _witnesses(_pictures(30, 1), 20), {}
    for name, rule in (("cnn", 4.0), ("logistic", Automatic(0.8))):
        loss, plan = classifier(name, 3), _sgd(clip_norm=rule, steps=10, optimizer=optax.sgd(0.3, 0.9), coverage=0.4)
        start = loss.model.init(jax.random.key(0), (8, 8, 1))
        found |= _under(name, _run(plan.fit(loss, start, data, **given, seed=5)))
    return found


@_register
def sgd_schedules(_: Path) -> Arrays:
    plan = _sgd(
        noise_schedule=((0.3, 2.0), (0.7, 1.0)),
        clip_schedule=((0.5, 1.0), (0.5, 0.6)),
        rate_schedule=((0.25, 1.5), (0.75, 0.8)),
        optimizer=optax.adam(optax.cosine_decay_schedule(0.2, 20)),
    )
    return _run(plan.calibrate(epsilon=3.0).fit(_loss, START, DATA, **SOME, seed=7))


@_register
def sgd_subset(_: Path) -> Arrays:
    return _run(_sgd(subset_fraction=0.5).fit(_loss, START, DATA, **SOME, seed=8))


@_register
def sgd_budget(_: Path) -> Arrays:
    """Stopped before the end; one record for another."""
    plan = _sgd(epsilon_budget=4.0, adjacency="replace-one")
    return _run(plan.fit(_loss, START, DATA, **SOME, seed=9))


@_register
def sgd_filter(_: Path) -> Arrays:
    """Records that leave once their budget is spent: sampled, and all in every step."""
    budget = bd.Filter(epsilon=2.5)
    sampled = _sgd(filter=budget, steps=30).fit(_loss, START, DATA, **_witnesses(OTHERS, 50, "everyone"), seed=10)
    plan = _sgd(filter=bd.Filter(epsilon=2.0, kind="gdp"), sampling_rate=1.0, noise_multiplier=6.0, **_measured(5))
    whole = plan.fit(_loss, START, DATA, **_witnesses(None, 50), seed=11)
    return _under("rdp", _run(sampled)) | _under("gdp", _run(whole))


@_register
def sgd_refresh(_: Path) -> Arrays:
    return _run(_sgd(**_measured(4)).fit(_loss, START, DATA, **SOME, seed=12))


@_register
def sgd_everyone(_: Path) -> Arrays:
    return _run(_sgd().fit(_loss, START, DATA, **_witnesses(OTHERS, 50, "everyone"), seed=13))


@_register
def sgd_resumed(scratch: Path) -> Arrays:
    """Cut off at the second look and taken up again, its iterates kept; and never cut off."""
    plan, given = _sgd(optimizer=optax.adam(0.1)), {**SOME, "seed": 14, "keep_iterates": 2}
    whole = plan.fit(_loss, START, DATA, **given, folder=scratch / "whole")
    with contextlib.suppress(_PowerCut):
        plan.fit(_loss, START, DATA, **given, folder=scratch / "cut", progress=_cut_at(2))
    resumed = plan.resume(scratch / "cut", _loss, START, DATA, **{k: v for k, v in SOME.items() if k != "members"})
    one, other = (
        {**_run(run), "iterates": np.load(scratch / name / "iterates.npy")}
        for run, name in ((whole, "whole"), (resumed, "cut"))
    )
    return other | _same(one, other)


# --- private variational inference ------------------------------------------------------------------------------------


def _vi(**fields: Any) -> bd.VI:
    return bd.VI(**{"noise_multiplier": 2.0, **LEARN, "steps": 30, **_looks(10), **fields})


@_register
def vi_mean_field(_: Path) -> Arrays:
    return _published(_vi(num_particles=2).fit(logistic, DATA, **SOME, seed=20))


@_register
def vi_full_rank(_: Path) -> Arrays:
    """Parameters that are not all real numbers, one record for another, and the paper's own order."""
    x = DATA[0]
    y = (x @ [0.5, 1.0, -1.0] + 0.4 * np.random.default_rng(5).normal(size=len(x))).astype(np.float32)
    plan = _vi(guide="full-rank", adjacency="replace-one", optimizer=optax.adam(0.05))
    ours = plan.fit(linear, (x, y), **_witnesses(None, 30), seed=21)
    paper = _vi(guide="full-rank", variant="paper", optimizer=optax.adam(0.05)).fit(linear, (x, y), seed=22)
    return _under("aligned", _published(ours)) | _under("paper", _leaves("", paper.arrays()))


@_register
def vi_natural(_: Path) -> Arrays:
    return _published(_vi(variant="natural").fit(logistic, DATA, **SOME, seed=23))


@_register
def vi_noise_aware(_: Path) -> Arrays:
    """A plan that is suggested, and a posterior widened by what its noise did."""
    plan = bd.VI.suggest(logistic, DATA, epsilon=3.0, steps=120, engine="rdp", noise_aware=True)
    posterior = plan.fit(logistic, DATA, seed=24)
    chosen = {"clip norm": np.array(plan.clip_norm), "rate": np.array(plan.sampling_rate)}
    return _published(posterior) | _under("guide", _leaves("", posterior.variational.arrays())) | chosen


@_register
def vi_together(_: Path) -> Arrays:
    """Three fits in one program."""
    several = _vi().fit_many(3, logistic, DATA, **_witnesses(None, 30, FEW), seed=25)
    return {name: value for i, one in enumerate(several) for name, value in _under(f"{i}", _published(one)).items()}


@_register
def vi_resumed(scratch: Path) -> Arrays:
    plan, given = _vi(), {**SOME, "seed": 26}
    whole = _published(plan.fit(logistic, DATA, **given))
    with contextlib.suppress(_PowerCut):
        plan.fit(logistic, DATA, **given, folder=scratch, progress=_cut_at(1))
    resumed = plan.resume(scratch, logistic, DATA, **{k: v for k, v in SOME.items() if k != "members"})
    return whole | _same(whole, _published(resumed))


# --- samplers ---------------------------------------------------------------------------------------------------------

WALK = {"sampling_rate": 0.5, "steps": 40, "engine": "rdp", "coverage": 0.5, "clip_norm": 1.0, **_looks(20)}


def _sampled(posterior: bd.SampledPosterior, inputs: Any = None) -> Arrays:
    return {**_published(posterior, inputs), "temperature": np.array(posterior.temperature), "spread": posterior.cov}


@_register
def sgld_chains(_: Path) -> Arrays:
    """Three chains, watched; and one with extra noise for a promised ε and steps that get shorter."""
    plan = bd.SGLD(step_size=2e-3, temperature=0.5, thin=3, **_chains(3), **WALK)
    several = plan.fit(logistic, DATA, **SOME, seed=30)
    falling = bd.SGLD(step_size=5e-3, step_schedule="decreasing", **(WALK | {"steps": 6, **_looks(6)}))
    noisier = falling.calibrate(epsilon=0.2).fit(logistic, DATA, seed=31)
    shorter = {"shorter": np.array(plan.calibrate_step(epsilon=4.0).step_size)}
    return _under("several", _sampled(several)) | _under("noisier", _run(noisier.run)) | shorter


@_register
def sgld_last_only(_: Path) -> Arrays:
    x, y = DATA
    short = (x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))).astype(np.float32)
    declared = bd.Curvature.logistic(records=len(x), feature_bound=1.0)
    plan = bd.SGLD(
        sampling_rate=1.0, steps=40, step_size=0.02, clip_norm=0.5, engine="rdp", last_only=declared, **_chains(2)
    )
    return _sampled(plan.fit(logistic, (short, y), seed=32))


@_register
def psgld(_: Path) -> Arrays:
    """A network with a prior on its weights."""
    loss, data = classifier("logistic", 3), _pictures(120, 0)
    network = bd.Network(loss, loss.model.init(jax.random.key(1), (8, 8, 1)), precision=10.0)
    plan = bd.PSGLD(step_size=1e-3, memory=0.9, **(WALK | {"steps": 20, "clip_norm": 4.0, "coverage": 0.4}))
    posterior = plan.fit(network, data, **_witnesses(_pictures(30, 1), 20), seed=33)
    return _sampled(posterior, _pictures(5, 2)[0])


@_register
def sghmc(_: Path) -> Arrays:
    """Added noise is met by friction."""
    plan = bd.SGHMC(step_size=0.03, friction=5.0, **WALK).calibrate(epsilon=1.0)
    return {**_sampled(plan.fit(logistic, DATA, **SOME, seed=34)), "friction": plan.frictions}


@_register
def sgnht(_: Path) -> Arrays:
    plan = bd.SGNHT(step_size=0.03, friction=5.0, **_chains(2), **WALK)
    return _sampled(plan.fit(logistic, DATA, **_witnesses(None, 30, FEW), seed=35))


# --- samples of a secret posterior; many runs -------------------------------------------------------------------------


def _secret(secret: bd.SecretPosterior) -> Arrays:
    secret.sample(2)
    early = _promised(secret.guarantees)
    secret.sample()
    found = {
        **_promised(secret.guarantees),
        **_under("after two", early),
        **_curve(secret.curve()),
        "draws": secret.draws,
        "mean": secret.mean,
        "prediction": np.asarray(secret.predict((OTHERS[0][:20],))),
        "log density": secret.log_predictive(tuple(part[:20] for part in OTHERS)),
    }
    if secret.instance is not None:
        found["instance"] = np.asarray(secret.instance.epsilon(secret.plan.delta))
    return found


@_register
def posterior_vi(_: Path) -> Arrays:
    """With a neighbouring run for every witness; in a public ball and range; and pairs of exchanged records."""
    common = {"sampling_rate": 0.4, "steps": 20, "samples": 5, "delta": 1e-4, "coverage": 0.5, "failure": 1e-3}
    alike = bd.PosteriorVI(**common, extra_std=0.05).fit(logistic, DATA, **_witnesses(OTHERS, 40, FEW), seed=40)
    plan = bd.PosteriorVI(**common, guide="full-rank", radius=1.0, scales=(0.3, 0.8)).calibrate(epsilon=4.0, dim=3)
    bounded = plan.fit(logistic, DATA, **_witnesses(), seed=41)
    exchange = bd.PosteriorVI(**common, adjacency="replace-one", temper=1.5)
    exchanged = exchange.fit(logistic, DATA, holdout=OTHERS, seed=42)
    secrets = {"alike": alike, "bounded": bounded, "exchanged": exchanged}
    found = {key: value for name, one in secrets.items() for key, value in _under(name, _secret(one)).items()}
    return found | {"widened": np.array(plan.extra_std)}


@_register
def study(scratch: Path) -> Arrays:
    """Four runs for a member and an outsider, two in a program, the rest of them after a power cut."""
    wanted = bd.Study(_sgd(steps=10), runs=4, block=2, failure=0.1, seed=43)
    given = {"members": (3,), "outsiders": tuple(part[:1] for part in FEW), "folder": scratch}
    with contextlib.suppress(_PowerCut):
        wanted.run(_loss, START, DATA, **given, progress=_cut_at(3))
    result = wanted.run(_loss, START, DATA, **given)
    found = {f"distances of {chain}": seen for chain, seen in result.chains.items()}
    for direction in result.directions:
        for way in ("lower", "estimate", "upper"):
            found[f"{direction}, {way}"] = result.epsilons(direction, way)
        found[f"{direction}, worst"] = np.array(result.worst[direction])
        found[f"{direction}, divergences"] = result.bound(0, direction, [1.5, 2.0, 4.0]).divergence([1.5, 2.0, 4.0])
    return found | _promised([result.guarantee(i) for i in range(2)])


# --- the command line -------------------------------------------------------------------------------------------------


class _Unplugged(io.StringIO):
    """An stderr that presses Ctrl-C at the second look."""

    looks = 0

    def write(self, text: str) -> int:
        self.looks += text.startswith("step ")
        if self.looks == 2:
            self.looks = 3
            raise KeyboardInterrupt
        return super().write(text)


def _called(*words: object, code: int = 0, errors: io.StringIO | None = None) -> str:
    """What the program prints."""
    out, err = io.StringIO(), io.StringIO() if errors is None else errors
    left: int | str | None = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line([str(word) for word in words])
        except SystemExit as leaving:
            left = leaving.code
    if (left or 0) != code:
        raise AssertionError(f"{words}: exit code {left}, expected {code}\n{out.getvalue()}{err.getvalue()}")
    return out.getvalue()


def _answered(*words: object) -> Any:
    return json.loads(_called(*words, "--json"))


def _table(path: Path) -> Path:
    """Age, hours and trade of 200 people, who is rich, and what they earn."""
    rng = np.random.default_rng(6)
    age, hours, trade = rng.integers(18, 80, 200), rng.normal(38, 8, 200).round(1), rng.choice(["clerk", "nurse"], 200)
    score = 0.05 * (age - 48) + 0.1 * (hours - 38) + (trade == "nurse")
    rich = np.where(score + 0.3 * rng.logistic(size=200) > 0, "yes", "no")
    wage = (20_000 + 8_000 * score + rng.normal(0, 1_000, 200)).round()
    cells = np.column_stack([age, hours, trade, rich, wage])
    np.savetxt(path, cells, "%s", ",", header="age,hours,trade,rich,wage", comments="")
    return path


def _answers(found: Any) -> Arrays:
    """The guarantees that a command prints."""
    return _promised([bd.Guarantee.from_dict(one) for one in found])


def _left(folder: Path) -> Arrays:
    """What a run leaves in its folder: models, tallies, and the numbers of its report."""
    found: Arrays = {}
    for name in ("params.npz", "posterior.npz", "samples.npz"):
        if (folder / name).exists():
            with np.load(folder / name) as kept:
                found |= {f"{name} {key}": kept[key] for key in kept.files}
    # Numbers in the order of the file: what they are called may change.
    found["tallies"] = _inside(json.loads((folder / "accountants.json").read_text(encoding="utf-8")))
    if (folder / "accountants.npz").exists():
        with np.load(folder / "accountants.npz") as kept:
            found |= {f"tally {i}": kept[key] for i, key in enumerate(kept.files)}
    told = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    parts = {**told["report"], "derived": told["derived"]}
    return found | {f"report's {name}": _inside(part) for name, part in parts.items() if isinstance(part, dict)}


def _inside(tree: Any) -> np.ndarray:
    """All numbers of a JSON value in their order; the version of a format is none of them."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            for name, part in value.items():
                if name != "version":
                    yield from walk(part)
        elif isinstance(value, list):
            for part in value:
                yield from walk(part)
        elif not isinstance(value, str) or value in ("inf", "-inf", "nan"):
            yield value

    return _numbers(walk(tree))


def _predicted(folder: Path, table: Path) -> Arrays:
    rows = list(csv.DictReader(io.StringIO(_called("predict", folder, table))))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        f"predicted {name}": np.array(cells) if cells[0] in ("yes", "no") else _numbers(cells)
        for name, cells in columns.items()
    }


AS_BEFORE = ("--scale", "public-statistics", "--test-share", 0.2, "--noise", "float")
"""So few records can neither pay for their ranges nor spare others to test on; these runs are about what follows. Their
noise is that of the library's plans, which compiles faster; the command line's own is in tests/cli."""

RICH = ("--target", "rich", "--drop", "wage", *AS_BEFORE)
SPLIT = ("--engine", "rdp", "--delta", 1e-4, "--coverage", 0.4)
TRAIN = (
    *(*RICH, *SPLIT, "--noise-multiplier", 2, "--steps", 8, "--sampling-rate", 0.3, "--clip-norm", 4),
    *("--optimizer", "adam", "--test-share", 0.2),
)
FIT = (*RICH, *SPLIT, "--model", "logistic", "--noise-multiplier", 8, "--sampling-rate", 1, "--steps", 60)


def _instances(rows: Any) -> Arrays:
    return {
        "instances' ids": np.array([row["id"] for row in rows]),
        "instances' directions": np.array([row["direction"] for row in rows]),
        "instances' epsilon": _numbers(row["epsilon"] for row in rows),
        "instances' rightness": np.array([row["correct"] for row in rows]),
    }


@_register
def cli_train(scratch: Path) -> Arrays:
    """`train`, `predict` and `instance`: yes or no with iterates, and a wage with noise for an ε."""
    table, run, wages = _table(scratch / "people.csv"), scratch / "run", scratch / "wages"
    watched = ("--watch", "7,150", "--keep-iterates", 2, "--seed", 0)
    found = _answers(_answered("train", table, *TRAIN, *WITNESSES, *watched, "--out", run))
    found |= _left(run) | _predicted(run, table)
    found |= _instances(_answered("instance", run)) | _under(
        "everyone", _instances(_answered("instance", run, "--records", "everyone"))
    )
    regression = (
        *AS_BEFORE,
        "--target",
        "wage",
        "--drop",
        "rich",
        "--epsilon",
        5,
        "--epochs",
        2,
        "--batch-size",
        40,
        "--engine",
        "rdp",
        "--test-share",
        0.2,
    )
    more = ("--model", "mlp", "--optimizer", "sgd", "--schedule", "typical", "--seed", 1)
    other = _answers(_answered("train", table, *regression, *more, *NOBODY, "--out", wages))
    return _under("rich", found) | _under("wages", other | _left(wages) | _predicted(wages, table))


@_register
def cli_resume(scratch: Path) -> Arrays:
    """`resume` of a `train` that measures everyone and of a `fit`, both cut off at their second look."""
    table, found = _table(scratch / "people.csv"), {}
    for command, plan in (
        ("train", (*TRAIN, *WITNESSES, "--watch", "everyone", "--measure-every", 2)),
        ("fit", (*FIT, *WITNESSES, "--watch", 7)),
    ):
        whole, cut = scratch / f"{command} whole", scratch / f"{command} cut"
        _called(command, table, *plan, "--seed", 2, "--out", whole)
        _called(command, table, *plan, "--seed", 2, "--out", cut, code=130, errors=_Unplugged())
        answers = _answers(_answered("resume", cut))
        found |= _under(command, answers | _left(cut) | _same(_left(whole), _left(cut)))
    return found


@_register
def cli_fit(scratch: Path) -> Arrays:
    """`fit` and `predict`: a posterior under DP, and samples of a secret one."""
    table, run, sampled = _table(scratch / "people.csv"), scratch / "run", scratch / "sampled"
    noisy = _answers(_answered("fit", table, *FIT, *WITNESSES, "--watch", 7, "--seed", 3, "--out", run))
    plan = ("--method", "posterior-vi", "--samples", 4, "--steps", 20, "--sampling-rate", 0.5, "--coverage", 0.5)
    model = ("--model", "logistic", "--drop", "trade", *WITNESSES[:2], "--members", 25, "--seed", 4, "--out", sampled)
    secret = _answers(_answered("fit", table, *RICH, *plan, *model))
    return _under("noisy", noisy | _left(run) | _predicted(run, table)) | _under(
        "secret", secret | _left(sampled) | _predicted(sampled, table)
    )


@_register
def cli_unlearn(scratch: Path) -> Arrays:
    """`study` and `unlearn`: by the worst case, until the budget is spent; and by the study."""
    table, run = _table(scratch / "people.csv"), scratch / "run"
    _called("train", table, *TRAIN, *NOBODY, "--seed", 5, "--out", run)
    lines = _answered("study", run, "--records", "7,12", "--runs", 3, "--seed", 6)
    found = {f"study's {name}": _numbers(line[name] for line in lines) for name in ("lower", "estimate", "upper")}
    found["study's records"] = np.array([f"{line['record']} {line['direction']}" for line in lines])
    # A seeded run is refused, for its noise is known; here it is to be known.
    job = json.loads((run / "job.json").read_text(encoding="utf-8"))
    del job["sha256"]
    told = {name: value for name, value in job.items() if name not in ("format", "version")}
    storage.write_tagged(run / "job.json", job["format"], job["version"], {**told, "seed": None}, checked=True)
    manifest.seal(run, ["job.json"])
    numbers = [row["id"] for row in _answered("instance", run, "--records", "everyone")]
    numbers.sort()
    studied = 7 if 7 in numbers else 12
    others = [number for number in numbers if number not in (7, 12)]
    asked = [
        _answered("unlearn", run, "--record", studied, "--beta", 20, "--gamma", 0.1, "--from", run / "study"),
        *(_answered("unlearn", run, "--record", number) for number in others[:3]),
    ]
    found["answers"] = np.array([one["answer"] for one in asked])
    for name in ("left", "told_apart", "failure", "surcharge"):
        found[name] = _numbers(one[name] for one in asked)
    for i, one in enumerate(asked):
        found[f"divergences {i}"] = _numbers(term["divergence"] for term in one["terms"])
    return found


# --- recorded and compared --------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """A JSON value that is read back as it was: what is not finite as a word."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def summary(array: np.ndarray) -> dict[str, Any]:
    """What is recorded of an array: how to know it again to the last bit, and enough to say how far another is."""
    array = np.ascontiguousarray(array)
    note: dict[str, Any] = {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
    }
    flat = array.ravel()
    if flat.size <= LISTED:
        return note | {"values": [_plain(value) for value in flat.tolist()]}
    places = np.linspace(0, flat.size - 1, ENTRIES).round().astype(int)
    note["entries"] = [_plain(value) for value in flat[places].tolist()]
    if array.dtype.kind == "f":
        finite = flat[np.isfinite(flat)].astype(np.float64)
        note["finite"], note["nan"], note["inf"] = finite.size, int(np.isnan(flat).sum()), int((flat == np.inf).sum())
        note["sum"], note["squares"] = math.fsum(finite), math.fsum(finite**2)
        note["least"], note["most"] = float(finite.min(initial=math.inf)), float(finite.max(initial=-math.inf))
        note = {name: _plain(value) for name, value in note.items()}
    return note


def recorded(name: str) -> dict[str, Any]:
    """The summaries of one run, in a scratch folder that is then thrown away."""
    with tempfile.TemporaryDirectory(prefix="bayesdp-seeded-") as scratch:
        found = RUNS[name](Path(scratch))
    return {key: summary(np.asarray(found[key])) for key in found}


def _far(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference of two summaries' numbers; infinite where they are not of the same kind."""
    if any(one[name] != other[name] for name in ("dtype", "shape")) or one.keys() != other.keys():
        return math.inf
    pairs = []
    for name in one.keys() - {"dtype", "shape", "sha256"}:
        parts = [note[name] if isinstance(note[name], list) else [note[name]] for note in (one, other)]
        pairs += zip(*parts, strict=True)
    apart = [0.0]
    for a, b in pairs:
        if a == b:
            continue
        if isinstance(a, str) or isinstance(b, str):
            return math.inf
        apart.append(abs(a - b) / max(abs(a), abs(b)))
    return max(apart)


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """A line for each array of a run that is not the same bit for bit."""
    lines = [f"{key}: not there any more" for key in expected.keys() - found.keys()]
    lines += [f"{key}: new" for key in found.keys() - expected.keys()]
    for key in expected.keys() & found.keys():
        if any(expected[key][name] != found[key][name] for name in ("dtype", "shape", "sha256")):
            lines.append(f"{key}: differs, by {_far(expected[key], found[key]):.2g} of the value at most")
    return sorted(lines)


def write(path: Path, runs: dict[str, Any]) -> None:
    """A line for each array, so that a change can be read."""
    parts = []
    for name in sorted(runs):
        lines = [f"  {json.dumps(key)}: {json.dumps(runs[name][key], allow_nan=False)}" for key in sorted(runs[name])]
        parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    path.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


def main(words: list[str]) -> int:
    """See the module."""
    if len(words) < 2 or words[0] not in ("record", "compare") or not set(words[2:]) <= RUNS.keys():
        print(__doc__, f"Names: {', '.join(RUNS)}", sep="\n", file=sys.stderr)
        return 2
    way, path, names = words[0], Path(words[1]), words[2:] or list(RUNS)
    # Before JAX starts, and whatever the machine has: a seed's numbers depend on it.
    others = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in flag]
    os.environ["XLA_FLAGS"] = " ".join([*others, f"--xla_force_host_platform_device_count={DEVICES}"])
    jax.config.update("jax_platforms", "cpu")
    with tempfile.TemporaryDirectory(prefix="bayesdp-compiled-") as compiled:
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # as for the tests: much is compiled more than once
            jax.config.update("jax_compilation_cache_dir", compiled)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        return _carried_out(way, path, names, anew=not words[2:])


def _carried_out(way: str, path: Path, names: list[str], *, anew: bool) -> int:
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() and (way == "compare" or not anew) else {}
    failed, count = False, 0
    for name in names:
        begun = time.perf_counter()
        try:
            found = recorded(name)
        except Exception:
            failed = True
            print(f"{name}: failed\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            continue
        print(f"{name}: {len(found)} arrays, {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)
        count += len(found)
        if way == "record":
            kept[name] = found
            continue
        lines = differences(kept.get(name, {}), found)
        failed |= bool(lines)
        for line in lines:
            print(f"{name}: {line}", flush=True)
    if way == "record":
        write(path, kept)
    elif not failed:
        print(f"{len(names)} runs, {count} arrays: all the same bit for bit")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
