"""Every block of the pages runs as it is written, in order: those of `docs/` in one folder, as a reader would.

`docs/how-to/own-table.md` makes the table and the run that other pages use. A line that starts with `bayesdp` is run
in this process, as the console script would run it: most of the time of a new one goes into importing and compiling. A
page with `<!-- needs: NAME -->` is skipped where that package is not installed.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bayesdp.cli import main
from bayesdp.jobs import data_source

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
FIRST = "docs/how-to/own-table.md"
MAKE_TARGETS = {"make demo", "make test", "make site"}  # they install or run this suite: checked by CI, by fresh clones
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.M | re.S)


def text(page):
    return (ROOT / page).read_text(encoding="utf-8")


PAGES = sorted(
    page
    for page in (str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    if BLOCK.search(text(page)) and page != FIRST
)


def lines(block):
    """The lines of a block for the shell, continued ones joined."""
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def shell(block, folder):
    if all(line.startswith("bayesdp ") for line in lines(block)):
        for line in lines(block):
            with pytest.raises(SystemExit) as left:
                main(shlex.split(line, comments=True)[1:])
            assert not left.value.code, line
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run(page, folder):
    """Run the blocks of a page in a folder, those of Python in one namespace."""
    for package in re.findall(r"<!-- needs: (\w+) -->", text(page)):
        pytest.importorskip(package)
    names = {"__name__": page}
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setattr(sys, "path", list(sys.path))
        patched.setattr(data_source, "OWN_SCALE", "private")  # as it is for readers, see tests/conftest.py
        for language, block in BLOCK.findall(text(page)):
            if language == "python":
                exec(compile(block, page, "exec"), names)
            elif block.strip() not in MAKE_TARGETS:
                shell(block, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("reader")
    run(FIRST, made)
    return made


def test_the_first_page_makes_what_others_use(folder):
    assert (folder / "people-run" / "report.html").exists()
    assert (folder / "people.csv").exists()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, folder):
    run(page, folder)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_block_of_the_front_pages_runs(page, tmp_path):
    run(page, tmp_path)


def test_make_targets_that_the_readme_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make (\w+)`?", text("README.md")):
        assert re.search(rf"^{target}:", makefile, re.M), target
