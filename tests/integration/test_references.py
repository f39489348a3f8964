"""References resolve: every item code has one place in docs/reference (errata: docs/errata.md), every place is used.

A code is one of B1 … F99, H1 …, J1 … M99, I-1 …, S0 … S4 (a letter, a number without leading zero, perhaps a small
letter), alone or as a range B2-B3; or ERR 8, ERR 4, 9 and 12b. In Python it is looked for in strings and comments,
where neither lint codes (E501, `# noqa`) nor the path of a drawing (M14 1V13) are codes; in Markdown everywhere.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
ERRATA = ROOT / "docs" / "errata.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [path for folder in ("src", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
WAITING = {"h15"}
"""Stated for what may be built next, and not used yet."""

LETTER = r"(?:[B-FHJ-M]|I-|S)"
RANGE = re.compile(rf"(?<![\w-])({LETTER})(\d{{1,2}})[-–]\1(\d{{1,2}})(?!\w)")
CODE = re.compile(r"(?<![\w-])(?:(?:[B-FHJ-M]|I-)[1-9]\d?[a-z]?|S[0-4])(?!\w)")
ERRATUM = re.compile(r"\bERR\s+(\d+[a-z]?(?:(?:,\s+|\s+and\s+)\d+[a-z]?)*)(?!\w)")
DRAWING = re.compile(r"\bM\d+ \d+(?:[A-Z]\d+)+")


def codes(text):
    """The anchors that a text refers to."""
    text = DRAWING.sub("", text)
    found = {f"err-{number}" for group in ERRATUM.findall(text) for number in re.findall(r"\d+[a-z]?", group)}
    for letter, first, last in RANGE.findall(text):
        found |= {f"{letter}{number}".lower() for number in range(int(first), int(last) + 1)}
    return found | {code.lower() for code in CODE.findall(RANGE.sub("", text))}


def words(path):
    """What a file says: a page as it is; of a module its strings and its comments, without those for the linter."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    strings = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    comments = [
        token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT
    ]
    return "\n".join([*(s for s in strings if isinstance(s, str)), *(c.split("# noqa")[0] for c in comments)])


def anchors(path):
    return re.findall(r'<a id="([^"]+)"></a>', path.read_text(encoding="utf-8"))


def places():
    """Anchor → how often it stands in docs/reference, or in docs/errata.md if it is an erratum."""
    return Counter(anchor for page in [*sorted(REFERENCE.glob("*.md")), ERRATA] for anchor in anchors(page))


def short(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("order statistics (H5, H12)", {"h5", "h12"}),
        ("B2-B3 and H14–H16", {"b2", "b3", "h14", "h15", "h16"}),
        ("ERR 4, 9 and 12b; the product also ERR 1.", {"err-4", "err-9", "err-12b", "err-1"}),
        ("twice (ERR\n    8), 12 runs", {"err-8"}),
        ("I-7b of S3's mean; K1j", {"i-7b", "s3", "k1j"}),
        ("noqa E501, B018, E731; IV-E3; 0xB4; CIFAR-10; S5; Theorem A.2; B0; A4", set()),
        ("M14 1V13, M1 12V3H27V12", set()),
    ],
)
def test_what_counts_as_a_code(text, found):
    assert codes(text) == found


def test_of_a_module_only_words_count(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '"""Clipping (B13)."""\nC1 = B14 = 1  # noqa: B018\nname = f"H5 {C1}"  # see E7\n', encoding="utf-8"
    )
    assert codes(words(module)) == {"b13", "h5", "e7"}


@pytest.mark.parametrize("path", [p for p in [*PAGES, *SOURCES] if p != Path(__file__)], ids=short)
def test_every_code_has_one_place(path):
    known = places()
    assert {code: known[code] for code in codes(words(path)) if known[code] != 1} == {}


def test_every_place_is_used():
    readers = [p for p in [*PAGES, *SOURCES] if p != Path(__file__) and p.parent != REFERENCE]
    used = set().union(*(codes(words(path)) for path in readers))
    unused = {anchor for anchor in places() if not anchor.startswith("err-")} - used
    assert unused <= WAITING, sorted(unused - WAITING)


def test_every_place_shows_its_code_and_is_in_the_index():
    index = (REFERENCE / "README.md").read_text(encoding="utf-8")
    for page in sorted(REFERENCE.glob("*.md")):
        for anchor, code in re.findall(r'<a id="([^"]+)"></a>([\w-]+)', page.read_text(encoding="utf-8")):
            assert code.lower() == anchor
            assert f"[{code}]({page.name}#{anchor})" in index, anchor


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_every_link_leads_to_a_place(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, fragment = target.partition("#")
        there = page if not name else (page.parent / name)
        assert there.exists(), target
        if fragment:
            assert fragment in anchors(there) + headings(there), target


def headings(page):
    """GitHub's anchors for the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CHANGELOG.md"], ids=short)
def test_every_file_that_a_page_names_exists(page):
    for name in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page.read_text(encoding="utf-8")):
        homes = (ROOT, ROOT / "src" / "bayesdp")
        assert any((home / name).exists() for home in homes), name


ROOMS = "|".join(sorted(p.stem for p in (ROOT / "src" / "bayesdp").iterdir() if p.stem.isalpha()))


@pytest.mark.parametrize("path", [p for p in [*PAGES, *SOURCES] if p.name != "CHANGELOG.md"], ids=short)
def test_every_module_that_is_named_exists(path):
    for name in re.findall(rf"`((?:{ROOMS})(?:\.(?!py\b)\w+)+)`", words(path)):
        *parts, last = name.split(".")
        home = ROOT.joinpath("src", "bayesdp", *parts)
        if not ((home / last).is_dir() or (home / f"{last}.py").exists()):
            files = [file for file in (home.with_suffix(".py"), home / "__init__.py") if file.exists()]
            texts = [file.read_text(encoding="utf-8") for file in files]
            assert any(re.search(rf"\b{last}\b", text) for text in texts), name


def test_nobody_is_sent_to_a_specification_that_is_not_shipped():
    for path in [*PAGES, *SOURCES]:
        if path != Path(__file__):
            assert not re.search(r"\bSPEC\b", path.read_text(encoding="utf-8")), short(path)
