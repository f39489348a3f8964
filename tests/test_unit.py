import pytest

from bayesdp.unit import spoken

SAID = {
    "adding or removing any one record changes it": "adding or removing any one person changes it",
    "whether any one person’s record was used": "whether any one person’s rows were used",
    "The number of training records, N = 7, is public.": "The number of people to train on, N = 7, is public.",
    "Records are counted; each record's cost is its own.": "People are counted; each person's cost is its own.",
    "measured on the 59 test records": "measured on the 59 test rows",
    "people whose records were not in the data": "people whose rows were not in the data",
    "each record that was named before the run": "each person who was named before the run",
    "record by record, to a single record": "person by person, to a single person",
    "Not recorded in this run": "Not recorded in this run",
    "They protect one record at a time. Several records of one person, or of a family, are protected less.": (
        "They protect one person at a time, with all rows of theirs that were used. A family, or another group of "
        "people, is protected less."
    ),
}


@pytest.mark.parametrize("words", SAID)
def test_sentences_about_records_become_sentences_about_people(words):
    assert spoken(words, "record") == words
    assert spoken(words, "person") == SAID[words]
    assert spoken(SAID[words], "person") == SAID[words]


@pytest.mark.parametrize("name", ["num_records", "'record'", "record-17", "records.csv", "\ue000records\ue002"])
def test_names_stay_names(name):
    assert spoken(f"the column {name}", "person") == f"the column {name}"
