"""Groups in a report: plain values that come back, a table on the page, never above the DP ε."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from report_samples import HOSTILE, Tree, disagreement, full, lookup, unbounded

from bayesdp.accountant import by_group
from bayesdp.errors import InputError
from bayesdp.report import GroupLosses, Report, document
from bayesdp.report.html.page import page

GROUPS = GroupLosses(
    names=("young", HOSTILE, "old", ""),
    witnesses={"absent": (300, 400, 12, 300), "present": (310, 390, 9, 300)},
    epsilon=(0.31234, 2.0957, None, 0.5),
    coverage=0.9,
    failure=1e-6,
    needed=160,
    dp=1.9995,
)


def test_groups_come_back_from_json():
    report = replace(full(), groups=GROUPS)
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report
    assert document(report)["derived"]["sensitive"] is True


def test_the_page_shows_every_group_and_none_above_dp():
    tree = Tree(page(replace(full(), groups=GROUPS)))
    (section,) = tree.root.find("section", id="groups")
    rows = [[cell.text() for cell in row.children] for row in section.find("tbody")[0].find("tr")]
    assert [row[0] for row in rows] == ["young", HOSTILE, "old", "–"]
    assert [row[1:3] for row in rows] == [["300", "310"], ["400", "390"], ["12", "9"], ["300", "300"]]
    assert [row[3] for row in rows] == [
        "0.3124",
        "no better than for everybody: DP ε 2",
        "too few witnesses to speak for: DP ε 2",
        "0.5",
    ]
    assert rows[1][4] == rows[2][4] == "88.1 %"
    text = re.sub(r"\s+", " ", section.text())
    assert "at least 90 % of the people of each group" in text
    assert "fewer than 160 witnesses of a kind is too small to speak for" in text
    contents = document(replace(full(), groups=GROUPS))
    for node in section.find():
        if "data-key" in node.attributes:
            value = lookup(contents, node.attributes["data-key"])
            assert not disagreement(node.text(), node.attributes["data-round"], value)


def test_without_dp_a_small_group_has_no_guarantee():
    lonely = replace(GROUPS, dp=math.inf, names=("x",), witnesses={"absent": (3,)}, epsilon=(None,))
    tree = Tree(page(replace(unbounded(), groups=lonely)))
    assert "too few witnesses to speak for: no guarantee" in tree.root.find("section", id="groups")[0].text()


def test_an_accountant_s_groups_become_a_part():
    found = by_group(
        {"absent": np.arange(400.0)}, {"absent": ["x"] * 390 + ["y"] * 10}, delta=1e-5, coverage=0.9, failure=1e-6
    )
    part = GroupLosses.of(found)
    assert (part.names, part.witnesses["absent"]) == (("x", "y"), (390, 10))
    assert part.epsilon == (found.groups[0].epsilon, None)
    assert GroupLosses.of(None) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ()}, "names"),
        ({"epsilon": (1.0,)}, "epsilon"),
        ({"witnesses": {"absent": (1,)}}, "witnesses"),
        ({"witnesses": {"outside": (1, 2, 3, 4)}}, "witnesses"),
        ({"coverage": 2}, "coverage"),
        ({"needed": 0}, "needed"),
    ],
)
def test_bad_input_is_refused_by_name(change, words):
    with pytest.raises(InputError, match=words):
        replace(GROUPS, **change)
