"""A report survives JSON, pickle and files unchanged, and refuses what makes no report by name."""

import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from report_samples import full, hostile, learned, minimal, sampled, three, unbounded

from bayesdp import InputError
from bayesdp.report import (
    CoverageCurve,
    EpsilonHistory,
    NormQuantiles,
    Progress,
    RecordLosses,
    Report,
    Settings,
    document,
    read,
    write,
)

ALL = (full, minimal, unbounded, hostile, learned, sampled)


@pytest.mark.parametrize("make", ALL)
def test_a_report_comes_back_from_strict_json_and_from_pickle(make):
    report = make()
    text = json.dumps(report.to_dict(), allow_nan=False)
    assert Report.from_dict(json.loads(text)) == report
    assert pickle.loads(pickle.dumps(report)) == report


@pytest.mark.parametrize("make", ALL)
def test_a_written_report_is_read_back(make, tmp_path):
    path = write(make(), tmp_path / "report.json")
    assert read(path) == make()
    assert json.loads(path.read_text(encoding="utf-8")) == document(make())


def test_another_report_is_not_equal():
    assert replace(full(), seeded=True) != full()
    assert replace(full(), notes=()) != full()


def test_infinities_are_written_as_words_and_gaps_as_null():
    plain = unbounded().to_dict()
    assert plain["guarantees"][0]["epsilon"] == "inf"
    assert plain["curve"]["epsilon"] == [0.5, 7.0, "inf"]
    assert plain["curve"]["limit"] == "inf"
    assert plain["history"]["dp"] == ["inf"] * 3
    assert plain["progress"]["values"] == {"loss": [1.0, None, None]}
    assert plain["metrics"] == {"test accuracy": None}


def test_arrays_are_taken_and_kept_as_plain_numbers():
    curve = CoverageCurve(coverage=np.array([0.5, 0.9]), epsilon=np.array([1.0, np.inf]))
    assert curve.coverage == (0.5, 0.9)
    assert curve.epsilon == (1.0, math.inf)
    losses = RecordLosses(epsilon=np.array([1, 2], dtype=np.float32), correct=np.array([True, False]))
    assert losses.correct == (True, False)
    assert type(losses.correct[0]) is bool
    norms = NormQuantiles(steps=np.arange(2), levels=[0.5], values=np.ones((2, 1)), clip_norm=np.float32(2))
    assert norms.clip_norm == (2.0, 2.0)
    assert norms.steps == (0, 1)
    assert type(norms.steps[0]) is int


def test_a_schedule_is_a_pair_and_a_flat_one_a_number():
    assert Settings(kind="x", noise_std=[1, 2]).noise_std == (1.0, 2.0)
    assert Settings(kind="x", noise_std=(2, 2)).noise_std == 2.0


def test_a_report_cannot_be_changed():
    report = full()
    with pytest.raises(FrozenInstanceError):
        report.title = "other"
    with pytest.raises(TypeError):
        report.metrics["x"] = 1.0


def history(**change):
    return EpsilonHistory(**({"steps": (1, 2), "dp": (1.0, 2.0)} | change))


def norms(**change):
    return NormQuantiles(**({"steps": (1, 2), "levels": (0.5,), "values": ((1.0,), (2.0,))} | change))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: replace(full(), title=" "), "title"),
        (lambda: replace(full(), title=3), "title"),
        (lambda: replace(full(), title="a\x00b"), "title"),
        (lambda: replace(full(), title="\ud800"), "title"),
        (lambda: replace(full(), created="yesterday"), "created"),
        (lambda: replace(full(), created=None), "created"),
        (lambda: replace(full(), settings=None), "settings"),
        (lambda: replace(full(), delta=0), "delta"),
        (lambda: replace(full(), delta=math.nan), "delta"),
        (lambda: replace(full(), guarantees=()), "guarantees"),
        (lambda: replace(full(), guarantees=(1.0,)), "guarantees"),
        (lambda: replace(full(), curve=[1, 2]), "curve"),
        (lambda: replace(full(), seeded=1), "seeded"),
        (lambda: replace(full(), notes="one sentence"), "notes"),
        (lambda: replace(full(), notes=("",)), "notes"),
        (lambda: replace(full(), metrics=[1]), "metrics"),
        (lambda: replace(full(), metrics={"accuracy": "high"}), "metrics"),
        (lambda: Settings(kind=""), "kind"),
        (lambda: Settings(kind="x", noise_std=-1), "noise_std"),
        (lambda: Settings(kind="x", noise_std=(2, 1)), "noise_std"),
        (lambda: Settings(kind="x", noise_std=(1, 2, 3)), "noise_std"),
        (lambda: Settings(kind="x", sampling_rate=1.5), "sampling_rate"),
        (lambda: Settings(kind="x", steps=1.5), "steps"),
        (lambda: Settings(kind="x", orders=(1, 2)), "orders"),
        (lambda: Settings(kind="x", other={"a": None}), "other"),
        (lambda: CoverageCurve(coverage=(0.5, 0.4), epsilon=(1, 2)), "coverage"),
        (lambda: CoverageCurve(coverage=(0.5, 0.5), epsilon=(1, 2)), "coverage"),
        (lambda: CoverageCurve(coverage=(0.5, 0.9), epsilon=(2, 1)), "epsilon"),
        (lambda: CoverageCurve(coverage=(0.5, 0.9), epsilon=(1,)), "epsilon"),
        (lambda: CoverageCurve(coverage=(0.5, 1.1), epsilon=(1, 2)), "coverage"),
        (lambda: CoverageCurve(coverage=(), epsilon=()), "coverage"),
        (lambda: CoverageCurve(coverage=(0.5,), epsilon=(math.nan,)), "epsilon"),
        (lambda: CoverageCurve(coverage=(0.5,), epsilon=(1,), limit=-1), "limit"),
        (lambda: history(steps=(2, 1)), "steps"),
        (lambda: history(steps=(0.5, 1)), "steps"),
        (lambda: history(dp=(1.0,)), "dp"),
        (lambda: history(bdp=(1.0, -1.0)), "bdp"),
        (lambda: history(coverage=2), "coverage"),
        (lambda: RecordLosses(epsilon=(-1.0,)), "epsilon"),
        (lambda: RecordLosses(epsilon=(1.0,), correct=(True, False)), "correct"),
        (lambda: RecordLosses(epsilon=(1.0,), correct=(1,)), "correct"),
        (lambda: norms(values=((1.0,),)), "values"),
        (lambda: norms(values=((1.0, 2.0), (1.0, 2.0))), "values"),
        (lambda: norms(levels=(0.1, 0.9), values=((2.0, 1.0), (1.0, 2.0))), "values"),
        (lambda: norms(clip_norm=(1.0,)), "clip_norm"),
        (lambda: norms(clip_norm=0), "clip_norm"),
        (lambda: Progress(steps=(1, 2), values={"loss": (1.0,)}), "loss"),
        (lambda: Progress(steps=(1,), values={"loss": ("a",)}), "loss"),
    ],
)
def test_what_makes_no_report_is_refused_by_name(make, name):
    with pytest.raises(InputError, match=name):
        make()


@pytest.mark.parametrize("change", [{"unknown": 1}, {"title": None}])
def test_a_dict_with_other_keys_or_values_is_refused(change):
    with pytest.raises(InputError, match=r"unknown|title"):
        Report.from_dict(full().to_dict() | change)
    missing = full().to_dict()
    del missing["delta"]
    with pytest.raises(InputError, match="delta"):
        Report.from_dict(missing)


def test_parts_may_be_given_as_dicts():
    given = full().to_dict()
    again = Report(**given)
    assert again == full()
    assert again.guarantees == three()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "readable"),
        ("[]", "format"),
        ('{"format": "other"}', "format"),
        ('{"format": "bayesdp/report", "version": 99}', "version"),
        ('{"format": "bayesdp/report", "version": 3}', "version"),
        ('{"format": "bayesdp/report", "version": 6}', "Report"),
    ],
)
def test_a_foreign_file_is_refused(text, message, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(path)


def test_only_pages_and_json_are_written(tmp_path):
    with pytest.raises(InputError, match=r"\.html or \.json"):
        write(full(), tmp_path / "report.pdf")
    with pytest.raises(InputError, match="writable"):
        write(full(), tmp_path / "nowhere" / "report.json")
    with pytest.raises(InputError, match="readable"):
        read(tmp_path / "none.json")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = write(minimal(), tmp_path / "report.json")

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("pathlib.Path.replace", full_disk)
    with pytest.raises(InputError, match="no space left"):
        write(full(), path)
    assert read(path) == minimal()
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]
