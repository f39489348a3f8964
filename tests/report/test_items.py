"""Codes lead to the titles that the reference has for them."""

from item_titles import found

from bayesdp.report.items import anchor, named, pieces, titles


def test_titles_are_those_of_the_documents():
    assert dict(titles()) == found(), "write them anew: python tests/helpers/item_titles.py"


def test_codes_are_found_in_parentheses_only():
    sentence = "Order statistics (H5, H12) and vitamin B12 in ward S3 (E7, S3 Theorem 3.3; ERR 1); (X9)."
    assert [part for part, code in pieces(sentence) if code] == ["H5", "H12", "E7", "S3", "ERR 1"]
    assert "".join(part for part, _ in pieces(sentence)) == sentence


def test_those_of_a_document_are_listed_once_and_in_order():
    listed = named({"a": ["(H12)", "(H5)"], "b": {"c": "(H5, B11)", "d": 3}})
    assert [one["code"] for one in listed] == ["B11", "H5", "H12"]
    assert listed[1]["title"] == titles()["H5"]
    assert anchor("ERR 1") == "item-err-1"
