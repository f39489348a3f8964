"""Pages of accountants alone."""

from __future__ import annotations

import numpy as np
import pytest

import bayesdp as bd
from bayesdp.errors import InputError
from bayesdp.report import read

NORMS = np.linspace(0.05, 1.0, 300)


def _counted():
    dp, people = bd.WorstCaseAccountant(), bd.BayesianAccountant(cap=1.0)
    watched = bd.InstanceAccountant(records=2, cap=1.0)
    for z in (1.5, 2.0):
        dp.step(noise_multiplier=z, sampling_rate=0.1)
        people.step(NORMS, noise_std=z, sampling_rate=0.1)
        watched.step(NORMS[:2], noise_std=z, sampling_rate=0.1)
    return dp, people, watched


def test_all_three_on_one_page(tmp_path):
    known = _counted()
    page = bd.write_report(tmp_path / "page.html", *known, delta=1e-5, title="Of a loop elsewhere")
    assert "Of a loop elsewhere" in page.read_text()
    bd.write_report(tmp_path / "page.json", *known, delta=1e-5)
    found = read(tmp_path / "page.json")
    assert [one.notion for one in found.guarantees] == ["dp", "bdp", "per-instance"]
    assert found.guarantees[0].epsilon == known[0].epsilon(1e-5)
    assert found.settings.noise_multiplier == (1.5, 2.0)
    assert len(found.records.epsilon) == 302
    assert found.curve.dp == pytest.approx(found.guarantees[0].epsilon)


def test_each_accountant_writes_its_own(tmp_path):
    for number, one in enumerate(_counted()):
        path = one.report(tmp_path / f"{number}.json", delta=1e-5)
        (promise,) = read(path).guarantees
        assert promise.epsilon == pytest.approx(one.guarantee(1e-5).epsilon)


def test_nothing_counted_is_refused(tmp_path):
    with pytest.raises(InputError, match="to have counted a step"):
        bd.WorstCaseAccountant().report(tmp_path / "page.html")
    with pytest.raises(InputError, match="to be accountants"):
        bd.write_report(tmp_path / "page.html", "accountant")
    assert not list(tmp_path.iterdir())
