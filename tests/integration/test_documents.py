"""Every block of the README, the guide and the contributor's page runs as it is written, in order, in one folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/guide.md", "CONTRIBUTING.md"]
MAKE_TARGETS = {"make demo", "make test"}  # they install or run this suite: checked by CI and by fresh clones


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names: dict[str, object] = {}
    languages = [language for language, _ in blocks(page)]
    assert languages.count("python") >= 4
    assert languages.count("sh") >= 1
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page, "exec"), names)
        elif text.strip() not in MAKE_TARGETS:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=tmp_path,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    assert "ε = " in capsys.readouterr().out


def test_make_targets_that_the_readme_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make (\w+)`?", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.M), target
