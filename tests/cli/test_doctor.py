"""`bayesdp doctor`: what is there, and what is not."""

from __future__ import annotations

from bayesdp.cli import doctor


def test_all_is_told(cli):
    found = {one["about"]: one for one in cli("doctor", "--json").json}
    assert found["numpy"]["good"]
    assert "operating system" in found["secure randomness"]["found"]
    assert "bayesdp[torch]" in found["opacus"]["found"]


def test_what_is_wrong_is_said_and_counts(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("BAYESDP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(doctor, "NEEDED", ("numpy", "no-such-package"))
    answer = cli("doctor")
    assert answer.code == 1
    assert "!! no-such-package" in answer.out
    assert "!! data folders" in answer.out


def test_randomness_that_repeats_is_noticed(monkeypatch):
    monkeypatch.setattr(doctor.os, "urandom", bytes)
    assert not doctor._randomness().good
