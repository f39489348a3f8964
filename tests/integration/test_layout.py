"""The tests mirror the source: `tests/a/test_b.py` is about `bayesdp/a/b.py` or the package `bayesdp/a/b`.

What tests several modules together, from end to end, lives in `tests/integration`.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "bayesdp"
MOST_LINES, MOST_MODULES = 350, 20


def about(test: Path) -> list[Path]:
    """The places where the module may be that a file of tests is about."""
    place = SOURCE / test.relative_to(TESTS).with_name(test.stem.removeprefix("test_"))
    return [place.with_suffix(".py"), place / "__init__.py"]


@pytest.mark.parametrize(
    "test",
    [str(test.relative_to(TESTS)) for test in sorted(TESTS.rglob("test_*.py")) if test.parent.name != "integration"],
)
def test_every_file_of_tests_is_about_a_module_of_its_name(test):
    assert any(place.is_file() for place in about(TESTS / test)), f"no module of this name: {about(TESTS / test)[0]}"


def test_no_folder_holds_more_modules_than_one_can_read():
    for folder in (SOURCE, *(place for place in SOURCE.rglob("*") if place.is_dir())):
        assert len([m for m in folder.glob("*.py") if m.stem != "__init__"]) <= MOST_MODULES, folder


def test_no_module_is_longer_than_one_idea():
    lines = {str(m.relative_to(SOURCE)): len(m.read_text("utf-8").splitlines()) for m in SOURCE.rglob("*.py")}
    assert not {name for name, count in lines.items() if count > MOST_LINES}
