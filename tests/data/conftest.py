"""Every test has a cache of its own and no `BAYESDP_DATA`; those on the real files ask for `real_data`."""

import os
from pathlib import Path

import pytest

REAL = os.environ.get("BAYESDP_DATA")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("BAYESDP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path / "cache" / "bayesdp"


@pytest.fixture
def real_data():
    if not REAL:
        pytest.skip("BAYESDP_DATA is not set: the loader is not tested on the real files")
    return Path(REAL)
