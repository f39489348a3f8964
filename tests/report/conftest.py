"""One browser for all tests of pages."""

import os

import pytest
from report_browser import LEFT_OUT, Browser, missing


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if missing():
        (pytest.fail if os.environ.get("BAYESDP_BROWSER") == "required" else pytest.skip)(LEFT_OUT)
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
