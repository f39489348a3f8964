import dataclasses
import re

from report_samples import full

from bayesdp.report import page
from bayesdp.report.people import in_words, page_in_words

REPORT = dataclasses.replace(
    full(),
    title="On records",
    notes=("A record is held out.",),
    guarantees=tuple(one.speaking_of("person") for one in full().guarantees),
)


def test_a_report_about_people_says_so_and_its_title_stays():
    said = in_words(REPORT)
    assert said.notes == ("A person is held out.",)
    assert said.title == "On records"
    assert in_words(said) == said
    assert in_words(full()) == full()


def test_the_page_speaks_of_people_outside_of_what_it_cites():
    text = page(in_words(REPORT))
    cited = re.findall(r'data-round="text">([^<]*)<', text)
    assert "On records" in cited
    shown = re.sub(r"<(head|script|style)\b.*?</\1>|<span [^>]*data-round=\"text\">[^<]*</span>", "", text, flags=re.S)
    words = re.sub(r"<[^>]*>", " ", shown)
    assert not re.search(r"\brecords?\b", words, re.I)
    assert "any one person’s rows were used" in words
    assert 'id="records"' in text  # names inside of the page are not words


def test_a_page_about_records_is_left_alone():
    assert page_in_words("<p>a record</p>", "record") == "<p>a record</p>"
    assert page_in_words("<p>a record</p>", "person") == "<p>a person</p>"
