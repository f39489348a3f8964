"""What bad input gets: a sentence and its fields, which survive copies and other processes."""

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from bayesdp import errors
from bayesdp.errors import Argument, InputError, named, refuse, unfit, unmet


def loud(name, value):
    return f"--{name.upper()}" + ("" if value is None else f":{value}")


def fields(error):
    return error.argument, error.value, error.expected, error.hint


def test_a_refusal_is_a_sentence_and_its_fields():
    error = refuse("steps", 0, "to be a whole number >= 1", "Take one.")
    assert str(error) == "Expected steps to be a whole number >= 1, got steps=0. Take one."
    assert fields(error) == ("steps", 0, "to be a whole number >= 1", "Take one.")
    assert (
        str(refuse("x", (3,), "with 2 dimensions", got="shape (3,)")) == "Expected x with 2 dimensions, got shape (3,)."
    )
    assert str(refuse("x", None, "to be given", got="")) == "Expected x to be given."


def test_a_sentence_that_begins_in_another_way():
    error = unmet("steps", 3, f"at most {Argument('total_steps', 2)} steps", "3", "Plan more.")
    assert str(error) == "Expected at most total_steps=2 steps, got 3. Plan more."
    assert fields(error) == ("steps", 3, "at most total_steps=2 steps", "Plan more.")
    assert str(unmet("x", None, "anything")) == "Expected anything."


def test_what_an_argument_leads_to():
    error = unfit(Argument("data", "a.csv"), "to hold rows", "none")
    assert str(error) == "Expected data='a.csv' to hold rows, got none."
    assert fields(error) == ("data", "a.csv", "to hold rows", "")
    error = unfit("the file 'a.csv'", "to hold rows", "none", "Fill it.")
    assert str(error) == "Expected the file 'a.csv' to hold rows, got none. Fill it."
    assert fields(error) == ("", None, "to hold rows", "Fill it.")


def test_whoever_has_other_names_for_arguments_gets_all_of_them():
    error = refuse(
        "epochs", 2.0, f"to be left out beside {Argument('steps', 5)}", f"Give {named('epochs')} or {named('steps')}."
    )
    assert str(error) == "Expected epochs to be left out beside steps=5, got epochs=2.0. Give epochs or steps."
    assert error.spelled(loud) == (
        "Expected --EPOCHS to be left out beside --STEPS:5, got --EPOCHS:2.0. Give --EPOCHS or --STEPS."
    )
    assert error.expected == "to be left out beside steps=5"
    plain = InputError("Expected something else, got epochs=3.")
    assert plain.spelled(loud) == str(plain)
    assert fields(plain) == ("", None, "", "")


def test_values_cannot_pass_for_arguments():
    """The marks around an argument are spelled out by repr, so that no value can carry them."""
    hostile = f"{named('steps')} and {named('data', 'x')}"
    error = refuse("name", hostile, "to be a word")
    assert error.value == hostile
    assert error.spelled(loud) == f"Expected --NAME to be a word, got --NAME:{hostile!r}."
    assert str(InputError("half a mark \ue000 is no harm")) == "half a mark  is no harm"


def test_one_more_sentence():
    error = refuse("rate", 2, "to be at most 1", "A chance.").adding(f"In {Argument('phase', '1,2')}.")
    assert str(error) == "Expected rate to be at most 1, got rate=2. A chance. In phase='1,2'."
    assert fields(error) == ("rate", 2, "to be at most 1", "A chance. In phase='1,2'.")
    assert error.spelled(loud).endswith("In --PHASE:'1,2'.")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_and_pickles_keep_everything(again):
    error = refuse("steps", 0, f"to be more than {Argument('least', 1)}", "Take one.")
    same = again(error)
    assert isinstance(same, InputError)
    assert str(same) == str(error)
    assert fields(same) == fields(error)
    assert same.spelled(loud) == error.spelled(loud)


def test_a_value_that_cannot_be_sent_goes_as_its_text():
    error = refuse("loss", lambda params, record: 0.0, "to be something else")
    same = pickle.loads(pickle.dumps(error))
    assert same.argument == "loss"
    assert same.value.startswith("<function")
    assert str(same) == str(error)


def test_the_checks_fill_the_fields():
    cases = {
        "number": (lambda: errors.number("x", -1, above=0, hint="Up."), -1, "to be a finite number > 0", "Up."),
        "not a number": (lambda: errors.number("x", "1"), "1", "to be a finite number", ""),
        "whole": (lambda: errors.whole("x", 1.5, least=1), 1.5, "to be a whole number >= 1", ""),
        "one of": (lambda: errors.one_of("x", "c", ["a", "b"]), "c", "to be one of 'a', 'b'", ""),
        "array": (lambda: errors.array("x", [1.0, np.nan]), None, "to hold finite numbers", ""),
        "axes": (lambda: errors.array("x", [1.0], ndim=2), (1,), "with 2 dimension(s)", ""),
        "empty": (lambda: errors.array("x", []), (0,), "with at least one entry", ""),
    }
    for name, (call, value, expected, hint) in cases.items():
        with pytest.raises(InputError) as caught:
            call()
        error = caught.value
        assert (error.argument, error.expected, error.hint) == ("x", expected, hint), name
        assert name == "array" or error.value == value
    with pytest.raises(InputError, match=r"got x\[1\]=nan") as caught:
        errors.array("x", [1.0, np.nan])
    assert np.isnan(caught.value.value)
    assert caught.value.spelled(loud) == "Expected --X to hold finite numbers, got --X[1]=nan."


def test_every_refusal_in_the_source_names_its_argument():
    """But for what is not installed: that is no argument's fault."""
    bare = []
    for path in sorted(Path(errors.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or "argument" in [word.arg for word in node.keywords]:
                continue
            if getattr(node.func, "id", getattr(node.func, "attr", "")) == "InputError":
                text = " ".join(one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
                if "install" not in text.lower():
                    bare.append(f"{path.name}: {text}")
    assert bare == []
