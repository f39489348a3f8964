"""The page for records: what the run cost each of them, most exposed first, in one HTML file that opens offline.

Summary, histogram, classes, and a table that a reader can sort. The one script that does so is allowed by its hash in
the content security policy; nothing else can run or be loaded, and without it the table is in order already. As in
the report, every number on the page stands in its JSON.
"""

from __future__ import annotations

import base64
import hashlib
import math
from pathlib import Path

from bayesdp import errors
from bayesdp.everybody import wins
from bayesdp.report.html import figures, fine_print, statement
from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join, script_json
from bayesdp.report.html.page import POLICY, frame, resource, section
from bayesdp.report.html.tables import pairs, table
from bayesdp.report.part import text
from bayesdp.report.people import page_in_words
from bayesdp.report.records.document import document
from bayesdp.report.records.table import RecordTable
from bayesdp.storage import replace
from bayesdp.unit import spoken

_HEADS = {
    "id": "record",
    "rank": "rank",
    "epsilon": "per-instance ε",
    "attacker_success": "attacker at most",
    "compared": "compared",
    "label": "class",
    "answer": "model’s answer",
}


def write_page(records: RecordTable, path: str | Path, *, file: str = "") -> Path:
    """Write the page of `records` to `path`, whole or not at all, readable by its owner only.

    `file` is the name of the file that holds all rows (see `RecordTable.write`), for the page to mention.
    Bad input: a path that does not end in .html or .htm or cannot be written to gets `InputError`.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise errors.refuse("path", str(path), "to end in .html")
    return replace(Path(path), records_page(records, file=file).encode(), private=True)


def records_page(records: RecordTable, *, file: str = "") -> str:
    """The whole HTML text; `file` as in `write_page`."""
    contents = document(records, text("file", file))
    cited = Cited(contents)
    script = resource("sort_records.js")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = frame(
        f"{spoken('Privacy of each record', records.unit)}: {records.title}",
        contents["generator"],
        el("a", "Skip to the records", href="#records", class_="skip"),
        _header(records, cited),
        el("main", _sections(records, cited)),
        el("footer", _footer(cited)),
        script_json(contents, id="bayesdp-records"),
        el("script", Html(script)),
        policy=f"{POLICY}; script-src 'sha256-{allowed}'",
    )
    return page_in_words(page, records.unit)


def _header(records: RecordTable, cited: Cited) -> Html:
    facts: list[object] = [(cited.count("derived/records/groups/all/count"), " records")]
    if records.steps is not None:
        facts.append((cited.count("table/steps"), " steps"))
    facts.append(("δ = ", cited.small("table/delta")))
    boxes = [statement.seeded()] if records.seeded else []
    if records.standing != "proved":
        boxes.append(
            statement.banner(
                "Not a proved bound.",
                "The per-instance ε on this page rests on a formula that is unsound, a heuristic or an estimate. The "
                "fine print says which.",
                "alarm",
            )
        )
    boxes.append(
        statement.banner(
            "Sensitive: computed from private data; not for publication.",
            "The number of a record, its rank and even the histogram give away something about the record. Keep this "
            "page like the data themselves.",
            "caution",
        )
    )
    return el(
        "header",
        el("p", "Privacy of each record", class_="kicker"),
        el("h1", cited.text("table/title")),
        el("ul", [el("li", fact) for fact in facts], class_="facts"),
        boxes,
    )


def _sections(records: RecordTable, cited: Cited) -> Html:
    groups = ["all"] if records.correct is None else ["correct", "wrong"]
    dp = None if records.dp_epsilon is None else "table/dp_epsilon"
    return join(
        section("meaning", "What a record’s number means", _meaning(records, cited)),
        section(
            "summary",
            "All records together",
            el("div", pairs(_summary(records, cited)), class_="metrics"),
            el("p", _against_dp(records, cited)),
            figures.histogram(groups, dp, _caption(records, groups, cited), cited, who="records"),
        ),
        section("records", "The records, most exposed first", _record_table(cited)),
        section("classes", "Class by class", _class_table(records, cited)) if records.label is not None else None,
        section("print", "Fine print", _fine_print(records, cited)),
    )


def _meaning(records: RecordTable, cited: Cited) -> Html:
    opening = (
        "A model was trained on records. The per-instance ε of a record bounds how much what was released gives away "
        "about that one record: whether it was used or not. Near zero, next to nothing; a larger one allows more."
    )
    attacker: list[object] = [
        "“Attacker at most” says the same in percent. An attacker knows all other records, sees what was released and "
        "starts undecided, ",
        cited.share("derived/coin"),
        " sure. This is how sure of the truth they can become.",
    ]
    items: list[object] = [
        attacker,
        "Records differ because each pays by how far it moves the model. One that looks like many others hardly moves "
        "it; an odd or wrongly labelled one does.",
    ]
    if "remove" in records.direction:
        items.append("A member was trained on. Its number compares this training with one that leaves it out.")
    if "add" in records.direction:
        items.append("An outsider was not trained on. Its number compares this training with one that adds it.")
    items.append("A number is for one record among these data. It says nothing about groups or about other data.")
    return join(el("p", opening, class_="opening"), el("ul", [el("li", item) for item in items]))


def _summary(records: RecordTable, cited: Cited) -> list[tuple[object, object]]:
    group = "derived/records/groups/all"
    rows: list[tuple[object, object]] = [
        ("records", cited.count(f"{group}/count")),
        ("median per-instance ε", cited.loss(f"{group}/median")),
        ("nine in ten at most", cited.loss(f"{group}/ninety")),
        ("largest", cited.loss(f"{group}/largest")),
    ]
    if records.dp_epsilon is not None:
        rows.append(("DP ε, for everybody", cited.loss("table/dp_epsilon")))
    if records.below_dp() is not None:
        rows.append(("records below the DP ε", cited.share("derived/below_dp")))
    if records.correct is not None:
        rows.append(("classified wrongly", cited.percent("derived/wrong")))
    return rows


def _against_dp(records: RecordTable, cited: Cited) -> list[object]:
    if records.dp_epsilon is None:
        return ["There is no DP value to compare with."]
    if math.isinf(records.dp_epsilon):
        return ["Ordinary DP gives no guarantee here: nothing is promised to everybody."]
    words: list[object] = ["The DP ε holds for every record at the same δ. "]
    if cited.value("derived/tied") == 0:
        return [*words, "Every record’s own number is below it."]
    return [
        *words,
        "Records that tie at the DP value, no better off than everybody: ",
        cited.count("derived/tied"),
        ". For these the DP ε is the promise to read, and no larger number is shown. They stand in the order of what "
        "they cost by themselves, which still tells who is exposed."
        if records.exposure is not None
        else ". For these the DP ε is the promise to read, and no larger number is shown.",
    ]


def _caption(records: RecordTable, groups: list[str], cited: Cited) -> list[object]:
    words: list[object] = ["How many records have which per-instance ε"]
    words += [", as a share of each group. " if len(groups) > 1 else ". "]
    if len(groups) > 1:
        for group, name in (("correct", "correctly"), ("wrong", "wrongly")):
            if cited.value(f"derived/records/groups/{group}/count"):
                words += [
                    f"Median of the {name} classified: ",
                    cited.loss(f"derived/records/groups/{group}/median"),
                    ". ",
                ]
    if cited.value("derived/records/groups/all/infinite"):
        words += ["Not drawn, without a guarantee: ", cited.count("derived/records/groups/all/infinite"), ". "]
    bins = cited.value("derived/records/bins")
    if bins and records.dp_epsilon is not None and 2 * bins[-1]["high"] < records.dp_epsilon < math.inf:
        words += ["The DP ε, ", cited.loss("table/dp_epsilon"), ", lies far to the right of the chart."]
    return words


def _class_table(records: RecordTable, cited: Cited) -> Html:
    heads = ["class", "records", "median", "nine in ten", "largest"]
    heads += [] if records.correct is None else ["classified wrongly"]
    lines = []
    for place in range(len(cited.value("derived/classes"))):
        key = f"derived/classes/{place}"
        cells = [cited.text(f"{key}/label"), cited.count(f"{key}/count")]
        cells += [cited.loss(f"{key}/{name}") for name in ("median", "ninety", "largest")]
        lines.append(cells if records.correct is None else [*cells, cited.percent(f"{key}/wrong")])
    more = None
    if len(lines) < cited.value("derived/class_count"):
        more = el("p", "These are the most exposed of ", cited.count("derived/class_count"), " classes.")
    return join(table("Per-instance ε by class, the most exposed class first", heads, lines), more)


def _record_table(cited: Cited) -> Html:
    def loss(key: str) -> object:
        return ("no better than for everybody: DP ε ", dp) if wins(cited.number(key), known) else cited.loss(key)

    given = cited.value("table/dp_epsilon")
    known = None if given is None else cited.number("table/dp_epsilon")
    dp = None if known is None else cited.loss("table/dp_epsilon")
    write = {"rank": cited.count, "epsilon": loss, "attacker_success": cited.most}
    rows = cited.value("derived/rows")
    lines = [
        [write.get(name, cited.text)(f"derived/rows/{place}/{name}") for name in row] for place, row in enumerate(rows)
    ]
    whole: list[object] = ["All "] if cited.value("derived/shown/all") else []
    if whole:
        whole += [cited.count("derived/records/groups/all/count"), " records are here."]
    else:
        whole += ["The ", cited.count("derived/shown/most"), " most and the ", cited.count("derived/shown/least")]
        whole += [
            " least exposed of ",
            cited.count("derived/records/groups/all/count"),
            " records. All of them are in ",
        ]
        whole += [cited.text("table/file") if cited.value("table/file") else "the table’s file", "."]
    whole += [
        " Each number is a promise to its record, if that was named before the run; those that stand first because "
        "their numbers are large are promised nothing more than each."
    ]
    whole += [
        el("span", " A click on a heading sorts by it; another click turns the order around.", class_="by-script")
    ]
    grid = table("Records and their per-instance ε", [_HEADS[name] for name in rows[0]], lines)
    return join(el("p", whole), el("div", grid, id="each-record"))


def _fine_print(records: RecordTable, cited: Cited) -> Html:
    general = [
        (
            "Every number is at δ = ",
            cited.small("table/delta"),
            ", for each record on its own and not for all at once.",
        ),
        "“Attacker at most” follows from ε and δ. For an ex-post number it holds in this run, outside of an event of "
        "probability δ; for an a-priori one on average over what training could have given.",
        "What an attacker can do is rounded up, shares of records are rounded down, and the table is sorted by the "
        "exact numbers.",
    ]
    return join(
        el("ul", [el("li", words) for words in general]),
        el("h3", "How these numbers came about, and what they assume") if records.how else None,
        fine_print.sentences("table/how", records.how, cited),
    )


def _footer(cited: Cited) -> Html:
    return el(
        "p",
        "Written by ",
        cited.text("generator"),
        ". The exact numbers are inside this file, as JSON in the element with the id ",
        el("code", "bayesdp-records"),
        ".",
    )
