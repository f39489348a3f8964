"""Whose data a promise is about: one record, or a person with all the rows that are theirs.

    spoken("adding or removing any one record", "person")  →  "adding or removing any one person"

Sentences are written about records. Where the unit of privacy is a person, a *record* of every theorem is a person with
their rows, and so it is said: the words are exchanged at one place, here, for guarantees, reports and terminals alike.
Rows that are tested on or predicted stay rows.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

Unit = Literal["record", "person"]
UNITS: tuple[Unit, ...] = get_args(Unit)

PERSON = (
    "A person is whoever has one name in the data. All rows of theirs that are used enter a step together, or none, "
    "and their gradients are added up and clipped as one."
)
"""What a promise about people rests on beside what one about records does."""

_ALONE = r"(?![-_./]\w)"
"""Not a part of a name such as record-17."""

_RULES: tuple[tuple[str, str], ...] = (
    # Whole sentences that would be wrong word by word.
    (
        r"They protect one record at a time\. Several records of one person, or of a family, are protected less\.",
        "They protect one person at a time, with all rows of theirs that were used. A family, or another group of "
        "people, is protected less.",
    ),
    (r"trained on people([’'])s records", r"trained on people\1s rows"),
    (r"how much of any one record\b", "how much about any one person"),
    (r"whether a record was used \(or that it was not\)", "whether a person’s rows were used (or that they were not)"),
    (r"What was computed for it brings nothing", "What was computed for this person brings nothing"),
    (r"a certain record was used", "a certain person’s rows were used"),
    (r"about that one record: whether it was used or not", "about that one person: whether their rows were used"),
    (r"whether this record was used or another one in its place", "whether this person’s rows were used or another’s"),
    (r"whether this record was used", "whether this person’s rows were used"),
    (r"One that looks like many others hardly moves it", "One who is like many others hardly moves it"),
    (r"each pays by how far it moves the model", "each pays by how far their rows move the model"),
    (
        r"Its number compares this training with one that (leaves|adds) it\b",
        r"Their number compares it with one that \1 them",
    ),
    (r"A model was trained on records\b", "A model was trained on people’s rows"),
    (r"[Pp]er-instance differential privacy, for one record\b", "Per-instance differential privacy, for one person"),
    (r"with and without the record\b", "with and without the person"),
    (
        r"is compared with one without it\. add: it was not, and the run is compared with one that had it",
        "is compared with one without them. add: they were not, and the run is compared with one that had them",
    ),
    (r"the number, shape and kind of records", "the number of people, and the shape and kind of their rows"),
    (r"measured on training records", "measured on the people trained on"),
    (r"\bOf one that is picked\b", "Of one who is picked"),
    (r"or with another in its place", "or with another in their place"),
    (r"A record costs by its norm", "A person costs by the norm of all their rows together"),
    (r"by an independent chance of its own", "with all their rows by an independent chance of their own"),
    # What belongs to a person are rows.
    (r"\b([Pp]erson|somebody|anybody|[Pp]eople)([’'])s records?\b", r"\1\2s rows"),
    (r"\b(their|whose|my|your) records?\b", r"\1 rows"),
    (r"\b(test|further|new|raw) records?\b", r"\1 rows"),
    (r"\brows was\b", "rows were"),
    (r"\brows (used )?or another one in its place", r"rows \1or another’s in their place"),
    # The unit itself.
    (r"\btraining records\b", "people to train on"),
    (r"\ba training record\b", "one of the people trained on"),
    (r"\brecord by record\b", "person by person"),
    (r"\bRecord by record\b", "Person by person"),
    (r"(?<!['\"\ue000-])\brecords\b" + _ALONE, "people"),
    (r"(?<!['\"\ue000-])\bRecords\b" + _ALONE, "People"),
    (r"(?<!['\"\ue000-])\brecord\b" + _ALONE, "person"),
    (r"(?<!['\"\ue000-])\bRecord\b" + _ALONE, "Person"),
    (r"\b([Pp]eople|[Pp]erson) (that|which) (was|were|is|are)\b", r"\1 who \3"),
)
_COMPILED = tuple((re.compile(pattern), words) for pattern, words in _RULES)


def spoken(text: str, unit: Unit) -> str:
    """A sentence about records as one about the unit of privacy. Saying it twice changes nothing more."""
    if unit == "record":
        return text
    for pattern, words in _COMPILED:
        text = pattern.sub(words, text)
    return text
