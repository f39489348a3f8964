"""What was found, in words, and as options to be pasted."""

import shlex

import pytest

from bayesdp.data.table import Table
from bayesdp.data.tables.findings import Finding, Findings, Option, refuse_problems, suggested
from bayesdp.errors import InputError, unfit

TABLE = Table("the table", {"age": ["1"]}, str)
GAP = unfit("the table", "to have a value in every cell", "none in line 3")


def test_options_are_typed_as_a_shell_takes_them():
    option = Option("read", "weight in kg=decimal-comma")
    assert shlex.split(str(option)) == ["--read", "weight in kg=decimal-comma"]
    assert str(Option("test_share", "0.1")) == "--test-share 0.1"
    assert str(Option("task", "classification").argument).endswith("'classification'\ue002")


def test_a_problem_and_what_is_done():
    found = Findings()
    assert not found.problems
    found.tell("born", "dates", "Read as days", Option("read", "born=text"))
    assert not found.problems
    found.problem("age", "no value in 3 rows", GAP, Option("missing", "indicator"))
    found.problem("job", "no value in 1 row", GAP, Option("missing", "indicator"))
    found.problem("", "nothing to learn", GAP)
    assert found.problems
    assert [str(one) for one in found.all] == [
        "'born': dates. Read as days. To change it: --read born=text",
        "'age': no value in 3 rows. To be decided: --missing indicator.",
        "'job': no value in 1 row. To be decided: --missing indicator.",
        "nothing to learn. To be decided in the file.",
    ]
    # Each option once, and none of those that change what is done.
    assert suggested(found.all) == (Option("missing", "indicator"),)
    assert found.all[0].to_dict() == {
        "column": "born",
        "found": "dates",
        "problem": False,
        "done": "Read as days",
        "options": ["--read born=text"],
        "sensitive": True,
    }


def test_one_problem_is_refused_in_its_own_words_and_several_in_one_sentence():
    one = Finding("age", "no value in 3 rows", options=(Option("missing", "indicator"),), refusal=GAP)
    refuse_problems(TABLE, [Finding("age", "dates", "Read as days")])
    with pytest.raises(InputError, match="a value in every cell, got none in line 3"):
        refuse_problems(TABLE, [one])
    with pytest.raises(InputError) as refused:
        refuse_problems(TABLE, [one, Finding("job", "no value in any row", refusal=GAP)])
    assert str(refused.value) == (
        "Expected the table to have nothing left to decide, got 2 problems: (1) 'age': no value in 3 rows: give "
        "missing=('indicator',); (2) 'job': no value in any row."
    )
