"""What is said of all columns, or of one."""

import pytest

from bayesdp.data.table import Table
from bayesdp.data.tables.missing import Rule, columns, kinds, rules
from bayesdp.errors import InputError

TABLE = Table("the table", {name: ["1"] for name in ("age", "a,b", "x=y", "pay")}, str)


def test_rules_for_all_columns_and_for_one():
    assert rules(TABLE, ()) == (None, {})
    assert rules(TABLE, ("indicator",)) == (Rule("indicator"), {})
    assert rules(TABLE, ("value", "age=drop", "pay=value:0,5")) == (
        Rule("value"),
        {"age": Rule("drop"), "pay": Rule("value", "0,5")},
    )
    # With commas between them, and in columns of difficult names.
    assert rules(TABLE, ("age=drop,pay=indicator:40",))[1] == {"age": Rule("drop"), "pay": Rule("indicator", "40")}
    assert rules(TABLE, ("a,b=drop", "x=y=value")) == (None, {"a,b": Rule("drop"), "x=y": Rule("value")})
    assert rules(TABLE, ("indicator,age=drop",)) == (Rule("indicator"), {"age": Rule("drop")})


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (("mean",), "missing to be drop, indicator or value.*got missing='mean'"),
        (("age=mean",), "got missing='age=mean'"),
        (("drop:4",), "got missing='drop:4'"),
        (("value:",), "got missing='value:'"),
        (("agee=drop",), "missing to name a column.*Did you mean 'age'"),
        (("drop", "value"), "said once, got two for all columns"),
        (("age=drop", "age=value"), "said once, got two for column 'age'"),
    ],
)
def test_rules_that_cannot_be_kept(entries, message):
    with pytest.raises(InputError, match=message):
        rules(TABLE, entries)


def test_kinds_of_columns():
    assert kinds(TABLE, ("age=number", "pay=decimal-comma")) == {"age": "number", "pay": "decimal-comma"}
    assert kinds(TABLE, ("age=date,x=y=text",)) == {"age": "date", "x=y": "text"}
    for entries, message in (
        (("age",), "read to be of the form COLUMN=WORD"),
        (("age=int",), "one of the kinds number, decimal-comma, date"),
        (("age=date", "age=time"), "two for column 'age'"),
    ):
        with pytest.raises(InputError, match=message):
            kinds(TABLE, entries)


def test_columns_with_commas_or_one_by_one():
    assert columns(TABLE, "drop", ("age,pay",)) == columns(TABLE, "drop", ("age", "pay")) == ("age", "pay")
    assert columns(TABLE, "drop", ("a,b", "age, x=y")) == ("a,b", "age", "x=y")
    with pytest.raises(InputError, match="drop to name a column of the table, got drop='size'"):
        columns(TABLE, "drop", ("age,size",))
