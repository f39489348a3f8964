"""Everything that is there to be copied runs: scripts and notebooks of `examples/`, and each public name's example."""

import doctest
import inspect
import json
import runpy
from pathlib import Path

import pytest

import bayesdp as bd

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted(path.name for path in (ROOT / "examples").glob("*.ipynb"))
NAMES = sorted(set(bd.__all__) - {"__version__"})
ON_A_PAGE = {"BayesianAccountant", "Guarantee"}
"""Their modules have no room: the example is on docs/reference/api/accountants.md, which `test_documents` runs."""


@pytest.fixture(autouse=True)
def _drawn_nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)


def test_there_are_as_many_as_the_list_says():
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) >= 8
    assert len(NOTEBOOKS) >= 3
    assert all(f"`{name}`" in listed for name in [*SCRIPTS, *NOTEBOOKS])


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs(name, capsys):
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert "ε" in capsys.readouterr().out or name == "forget_a_record.py"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_cells_of_a_notebook_run(name, capsys):
    cells = json.loads((ROOT / "examples" / name).read_text(encoding="utf-8"))["cells"]
    names = {"__name__": "__main__"}
    for cell in cells:
        assert not cell.get("outputs"), "notebooks are kept without what they print"
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), name, "exec"), names)
    assert "ε" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_says_what_comes_out(name):
    words = inspect.getdoc(getattr(bd, name)) or ""
    if name in ON_A_PAGE:
        page = (ROOT / "docs" / "reference" / "api" / "accountants.md").read_text(encoding="utf-8")
        assert f"bd.{name}(" in page
        return
    example = doctest.DocTestParser().get_doctest(words, {"bd": bd}, name, None, 0)
    assert example.examples, "give it an example"
    assert not doctest.DocTestRunner(verbose=False).run(example).failed
