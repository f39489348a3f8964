"""A run is a value: it keeps its answers while its training goes on, and is loaded as it was saved."""

import json
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp import InputError
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.estimate.quantile import rank_for
from bayesdp.learn.models.regressions import logistic
from bayesdp.storage import manifest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).astype(np.float32)
DATA = (X, (X[:, 0] > 0).astype(np.int32))
WITNESSES = {"holdout": tuple(part[:40] for part in DATA), "members": 30, "watch": tuple(part[:2] for part in DATA)}
COMMON = {"sampling_rate": 0.3, "steps": 6, "engine": "rdp", "coverage": 0.5, "report_every": 3, "delta": 1e-4}


def loss(params, record):
    x, y = record
    return jnp.logaddexp(0, x @ params["layers"][0] + params["bias"]) - y * (x @ params["layers"][0] + params["bias"])


START = {"layers": [np.zeros(3, np.float32)], "bias": np.float32(0)}


def sgd(**fields):
    return bd.SGD(**{"clip_norm": 1.0, "noise_multiplier": 1.5, "optimizer": optax.sgd(0.5), **COMMON, **fields})


def trained(**fields):
    return sgd(**fields).fit(
        loss, START, DATA, **WITNESSES, seed=1, evaluate=lambda params: {"size": float(jnp.sum(params["bias"] ** 2))}
    )


RUNS = {
    "sgd": trained,
    "schedules": lambda: trained(noise_schedule=((0.5, 2.0), (0.5, 1.0)), clip_schedule=np.linspace(1, 0.5, 6)),
    "mean": lambda: trained(update=bd.Mean(10)),
    "per layer": lambda: trained(clip_norm={"layers": 0.5, "bias": 0.2}),
    "unclipped": lambda: trained(clip_norm=None, noise_multiplier=None, noise_std=2.0),
    "noiseless": lambda: trained(noise_multiplier=0.0),
    "filter": lambda: trained(filter=bd.Filter(epsilon=3.0)),
    "budget": lambda: trained(epsilon_budget=4.0),
    "vi": lambda: bd.VI(noise_multiplier=2.0, **COMMON).fit(logistic, DATA, **WITNESSES, seed=2).run,
    "sgld": lambda: bd.SGLD(step_size=1e-3, num_chains=2, **COMMON).fit(logistic, DATA, **WITNESSES, seed=3).run,
}


def same_trees(one, other):
    import jax

    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


def same_runs(loaded, run):
    same_trees(loaded.params, run.params)
    assert loaded.guarantees == run.guarantees
    assert (loaded.steps, loaded.records, loaded.seeded) == (run.steps, run.records, run.seeded)
    np.testing.assert_array_equal(loaded.losses(), run.losses())
    np.testing.assert_array_equal(loaded.members, run.members)
    assert loaded.snapshots == run.snapshots
    if run.curve() is None:
        assert loaded.curve() is None
    else:
        np.testing.assert_array_equal(loaded.curve().coverage, run.curve().coverage)
        np.testing.assert_array_equal(loaded.curve().epsilon, run.curve().epsilon)
    if run.instance is not None:
        np.testing.assert_array_equal(loaded.instance.epsilon(1e-6), run.instance.epsilon(1e-6))
    np.testing.assert_array_equal(loaded.plan.noise, run.plan.noise)
    assert loaded.plan.describe() == json.loads(json.dumps(run.plan.describe()))
    assert loaded.to_report() == run.to_report()


@pytest.mark.parametrize("kind", RUNS)
def test_a_loaded_run_answers_as_the_saved_one_did(kind, tmp_path):
    run = RUNS[kind]()
    loaded = bd.Run.load(run.save(tmp_path / "run"))
    same_runs(loaded, run)
    same_runs(bd.Run.load(loaded.save(tmp_path / "again")), run)


def test_the_last_iterate_keeps_its_own_promise(tmp_path):
    short = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    plan = bd.SGLD(
        sampling_rate=1.0,
        steps=40,
        step_size=0.02,
        clip_norm=0.5,
        engine="rdp",
        last_only=bd.Curvature.logistic(records=len(X), feature_bound=1.0),
    )
    run = plan.fit(logistic, (short, DATA[1]), seed=0).run
    everything = run.tallies.guarantees(0.9)[0]
    assert run.guarantees[0] != everything
    assert bd.Run.load(run.save(tmp_path)).guarantees == run.guarantees


def test_parameters_of_other_kinds_of_nodes_are_asked_for(tmp_path):
    from typing import NamedTuple

    class Weights(NamedTuple):
        layers: list
        bias: float

    start = Weights(**START)
    run = sgd().fit(lambda params, record: loss(params._asdict(), record), start, DATA, seed=0)
    folder = run.save(tmp_path)
    with pytest.raises(InputError, match="Expected params, a tree of the form of the parameters in this folder"):
        bd.Run.load(folder)
    same_trees(bd.Run.load(folder, params=start).params, run.params)
    with pytest.raises(InputError, match="to hold the parameters of this model"):
        bd.Run.load(folder, params={"other": np.zeros(3)})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return trained().save(tmp_path_factory.mktemp("saved"))


def copied(saved, folder):
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["plan.json", "params.npz", "accountants.json", "report.json"])
def test_a_missing_or_damaged_file_is_refused_by_its_name(saved, tmp_path, name):
    folder = copied(saved, tmp_path)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=name):
        bd.Run.load(folder)
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        bd.Run.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "bayesdp/other"}, r"format of .*plan\.json to be 'bayesdp/run'"),
        ({"version": 99}, "version of .* to be 1.*Another release"),
        ({"terms": {}}, "well-formed"),
        ({"terms": None}, "well-formed"),
        ({"witnesses": [1, 2]}, "well-formed"),
        ({"form": {"dict": {"other": "array"}}}, "params.npz"),
        ({"form": {"set": []}}, "damaged"),
    ],
)
def test_a_changed_plan_is_refused(saved, tmp_path, change, message):
    folder = copied(saved, tmp_path)
    note = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**note, **change}))
    with pytest.raises(InputError, match=r"plan\.json' to have the checksum"):
        bd.Run.load(folder)
    manifest.seal(folder, ["plan.json"])  # as who means it would
    with pytest.raises(InputError, match=message):
        bd.Run.load(folder)


def test_a_foreign_folder_is_refused_with_what_to_give(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "notes.txt"):
        with pytest.raises(InputError, match=r"the folder of a run, which has a plan\.json or a job\.json.*Give the"):
            bd.Run.load(place)


def test_a_run_handed_to_progress_keeps_its_answers(digits, plan):
    kept = []
    watch = tuple(part[:3] for part in digits.data)
    last = plan.fit(
        digits.loss, digits.params, digits.data, holdout=digits.holdout, members=300, watch=watch, seed=0,
        progress=kept.append,
    )  # fmt: skip
    assert [run.steps for run in kept] == [20, 40, 60]
    for run in kept:  # asked for the first time after training has ended
        steps = WorstCaseAccountant(engine="rdp")
        steps.step(noise_multiplier=2.0, sampling_rate=0.1, steps=run.steps)
        assert run.snapshots[-1].dp == steps.epsilon(1e-5)
        # Whoever looks may stop: what is promised is the plan's (H14).
        assert run.guarantees[0].epsilon == last.guarantees[0].epsilon
        assert run.instance.steps == run.steps
    for one, later in pairwise(kept):
        assert one.guarantees[1].epsilon < later.guarantees[1].epsilon
        assert (one.losses() < later.losses()).all()
    assert np.array_equal(kept[-1].losses(), last.losses())
    assert kept[-1].guarantees == last.guarantees


def test_groups_of_people_have_numbers_of_their_own():
    run = trained()
    labels = ["a"] * 30 + ["b"] * 10 + ["a"] * 25 + ["b"] * 5  # outsiders, then members
    found = run.groups(labels)
    spoken, small = found.groups
    assert (spoken.name, small.name, small.epsilon) == ("a", "b", None)
    assert (spoken.witnesses, found.needed) == ({"absent": 30, "present": 25}, 22)
    losses = run.losses()
    ranks = [rank_for(0.5, count, run.plan.failure / 4) for count in (30, 25)]
    assert spoken.epsilon == max(
        np.sort(part)[rank - 1] for part, rank in zip((losses[:30], losses[40:65]), ranks, strict=True)
    )
    assert found.dp == run.guarantees[0].epsilon
    report = run.to_report(groups=labels)
    assert report.groups.epsilon == (spoken.epsilon, None)
    with pytest.raises(InputError, match="one entry for each of 40 outsiders and 30 members"):
        run.groups(labels[1:])
