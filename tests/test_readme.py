"""Every block of the README runs as it is written, in order, in one folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
MAKE_TARGETS = {"make demo", "make test"}  # they install or run this suite: checked by CI and by fresh clones


def blocks():
    return re.findall(r"^```(\w+)\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def test_the_readme_has_blocks_of_both_kinds():
    languages = [language for language, _ in blocks()]
    assert languages.count("python") >= 4
    assert languages.count("sh") >= 3


def test_every_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names: dict[str, object] = {}
    for language, text in blocks():
        if language == "python":
            exec(compile(text, "README.md", "exec"), names)
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
    assert "Bayesian" in capsys.readouterr().out


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target


def test_make_targets_that_the_readme_names_exist():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make (\w+)`?", README.read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.M), target
