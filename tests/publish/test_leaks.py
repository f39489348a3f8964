"""The second pass finds private numbers in every rounding, in texts, pages and arrays, and leaves public ones alone."""

import json

import numpy as np
import pytest

from bayesdp import storage
from bayesdp.errors import InputError
from bayesdp.publish import leaks

EPSILON, DIGEST, DRAW = 0.618034, "0123456789abcdef" * 4, 2**255 + 12345


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "deep").mkdir()
    storage.write_json(tmp_path / "report.json", {"losses": [EPSILON, 1.2345678], "note": {"records": 172}})
    storage.write_json(tmp_path / "data.json", {"data": DIGEST})
    storage.write_json(tmp_path / "deep" / "job.json", {"draw": DRAW, "epsilon": 2.25})
    storage.write_arrays(tmp_path / "accountants.npz", {"costs": np.array([0.031415926, 7.0])})
    storage.write_arrays(tmp_path / "params.npz", {"w": np.array([0.27182818])})
    return tmp_path


def found(folder, name, content, *public):
    private, words = leaks.private_numbers(folder, ["params.npz"])
    return leaks.leaks({name: content}, private, words, leaks.public_numbers(*public))


@pytest.mark.parametrize(
    "shown",
    [
        *(
            "0.618",
            "0.6180",
            "0.619",
            "0.61804",
            "0.618034",
            "61.8 %",
            "61.81 %",
            "6.18e-1",
            "172",
            "1.24",
            "1.2345678",
        ),
        *("0.03142", DIGEST, f"x{DRAW}x", "(0.618)", '"loss": 0.618034,', "ε=0.618."),
    ],
)
def test_private_numbers_are_found_in_every_rounding(folder, shown):
    assert found(folder, "card.md", f"It costs {shown} here.".encode())


@pytest.mark.parametrize(
    "shown", ["0.617", "0.6", "2026-03-01", "H618", "0.27182818", "1720", "1,720", "v0.618.1", "100 %", "62 people"]
)
def test_other_words_are_left_alone(folder, shown):
    assert found(folder, "card.md", f"It costs {shown} here.".encode()) == []


def test_what_is_public_may_be_told(folder):
    content = b"DP epsilon 2.25, also 0.619"
    assert found(folder, "card.md", content, {"epsilon": 2.25}) == ["card.md holds 0.619"]
    assert found(folder, "card.md", content, {"epsilon": 2.25, "other": [0.6189]}) == []
    assert found(folder, "card.md", content, ["settings 2.25 and 0.619"]) == []


def test_of_a_page_the_text_and_the_json_are_read(folder):
    page = "<html><style>a{width:0.618em}</style><svg><path d='M0.618 1'/></svg><p>{}</p></html>"
    assert found(folder, "index.html", page.replace("{}", "nothing").encode()) == []
    assert found(folder, "index.html", page.replace("{}", "at most 0.618").encode())
    assert found(folder, "index.html", page.replace("{}", f"<script>{json.dumps([EPSILON])}</script>").encode())


def test_arrays_are_searched_for_the_numbers_as_they_are(folder):
    for values, leaked in (([1.0, EPSILON], True), ([7.0, 0.5], False), ([0.031415926], True)):
        content = storage.packed({"w": np.array(values)})
        assert bool(found(folder, "params.npz", content)) is leaked


def test_a_leak_is_refused_in_one_sentence(folder):
    with pytest.raises(InputError, match=r"card\.md holds 0\.618"):
        leaks.check({"card.md": b"0.618"}, folder, ["params.npz"], {"epsilon": 2.0})
    leaks.check({"card.md": b"2.00"}, folder, ["params.npz"], {"epsilon": 2.0})


def test_intervals_of_a_released_posterior_are_public_and_those_without_noise_are_not(tmp_path):
    beside = {"mean": [0.987654321], "non_private": None}
    report = {"report": {"posterior": {"mean": [0.123456789], "non_private": beside}}}
    storage.write_json(tmp_path / "report.json", report)
    assert found(tmp_path, "posterior.npz", storage.packed({"mean": np.array([0.123456789])})) == []
    assert found(tmp_path, "posterior.npz", storage.packed({"mean": np.array([0.987654321])}))
