"""The promise: checked, immutable, readable, never a bare number by accident."""

import ast
import copy
import dataclasses
import itertools
import json
import math
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesdp
from bayesdp import convert
from bayesdp.convert import STRENGTHS
from bayesdp.errors import InputError
from bayesdp.guarantee import ADJACENCIES, NOTIONS, ORIENTATIONS, SAMPLINGS, Guarantee
from bayesdp.standing import STANDINGS, Caveat, assuming, worst_standing

KEYS = ["notion", "epsilon", "delta", "coverage", "failure", "strength", "orientation", "adjacency"]
KEYS += ["sampling", "ex_post", "assumptions", "sensitive", "delta_split", "standing", "caveats", "dp_epsilon"]
KEYS += ["attacker", "unit", "won"]

DP = Guarantee(notion="dp", epsilon=1.8282436, delta=1e-5, assumptions=("Noise is fresh.",), delta_split={"dp": 1e-5})
BDP = Guarantee(
    notion="bdp",
    epsilon=0.31234,
    delta=1e-5,
    coverage=0.9,
    failure=1e-6,
    strength="strong",
    ex_post=True,
    sensitive=True,
)
MINE = Guarantee(notion="per-instance", epsilon=0.5, delta=1e-6, ex_post=True, sensitive=True, orientation="present")
PROBABILITIES = st.floats(0, 1)


@st.composite
def guarantees(draw):
    notion = draw(st.sampled_from(NOTIONS))
    return Guarantee(
        notion=notion,
        epsilon=draw(st.floats(0, 1e6) | st.just(math.inf)),
        delta=draw(PROBABILITIES),
        coverage=1.0 if notion == "dp" else draw(PROBABILITIES),
        failure=0.0 if notion == "dp" else draw(PROBABILITIES),
        strength=draw(st.sampled_from(STRENGTHS)),
        orientation=draw(st.sampled_from(ORIENTATIONS)),
        adjacency=draw(st.sampled_from(ADJACENCIES)),
        sampling=draw(st.sampled_from(SAMPLINGS)),
        ex_post=notion != "dp" and draw(st.booleans()),
        assumptions=tuple(draw(st.lists(st.text(max_size=20), max_size=3))),
        sensitive=draw(st.booleans()),
        delta_split=draw(st.dictionaries(st.text(max_size=5), PROBABILITIES, max_size=3)),
    )


@given(guarantees())
def test_round_trip_through_strict_json(guarantee):
    text = json.dumps(guarantee.to_dict(), allow_nan=False)
    back = Guarantee.from_dict(json.loads(text))
    assert back == guarantee
    assert hash(back) == hash(guarantee)
    assert pickle.loads(pickle.dumps(guarantee)) == copy.deepcopy(guarantee) == guarantee


@given(guarantees())
def test_every_guarantee_prints_and_never_rounds_in_its_own_favour(guarantee):
    text = str(guarantee)
    assert guarantee.adjacency in text
    assert ("do not publish" in text) == guarantee.sensitive
    assert ("ex-post" in text) == guarantee.ex_post
    if guarantee.notion != "dp":
        assert not re.search(r"(?<!Bayesian )(?<!per-instance )ε = ", text)
    shown = re.search(r"ε = ([0-9.e+-]+?)(?=[ .] ?[a-zA-Zδ]| or)", text)
    if "no guarantee" in text:
        assert math.isinf(guarantee.epsilon) or guarantee.delta == 1 or guarantee.coverage == 0
    else:
        assert shown is not None
        assert float(shown[1]) >= guarantee.epsilon * (1 - 1e-11)


def test_keys_and_infinity():
    assert list(DP.to_dict()) == KEYS
    assert dataclasses.replace(DP, epsilon=math.inf).to_dict()["epsilon"] == "inf"
    assert Guarantee.from_dict({**DP.to_dict(), "epsilon": math.inf}).epsilon == math.inf


def test_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DP.epsilon = 0.0
    with pytest.raises(TypeError):
        DP.delta_split["dp"] = 0.0


def test_float_is_for_dp_only():
    assert float(DP) == 1.8282436
    for other, name in ((BDP, "Bayesian"), (MINE, "per-instance")):
        with pytest.raises(TypeError, match=f"a {name} ε is not a DP ε; use .epsilon if you mean it"):
            float(other)
        with pytest.raises(TypeError):
            math.sqrt(other)


def test_sentences():
    assert str(DP).startswith("Differential privacy, for everybody and whatever the data: adding or removing any one")
    assert "DP ε = 1.829 and δ = 1e-05" in str(DP)
    assert "a priori" in str(DP)
    text = str(BDP)
    for words in (
        "people like those in the data",
        "with confidence 99.9999 %, for at least 90 % of the people",
        "Bayesian ε = 0.3124",
        "probability at most δ = 1e-05",
        "ex-post",
        "do not publish",
    ):
        assert words in text
    assert "one record in this one data set" in str(MINE)
    assert "records in the training data only" in str(MINE)
    assert "per-instance ε = 0.5 " in str(MINE)
    nothing = dataclasses.replace(DP, epsilon=math.inf)
    assert "no guarantee (DP ε is infinite)" in str(nothing)


@pytest.mark.parametrize(("share", "words"), [(0.993, "99.3 %"), (2 / 3, "66.6 %"), (1 - 1e-9, "99.9999999 %")])
def test_coverage_is_rounded_down(share, words):
    assert f"at least {words} of" in str(dataclasses.replace(BDP, coverage=share))


@pytest.mark.parametrize(
    ("orientation", "whom"),
    [
        ("absent", "90 % of the people that the data were drawn from, adding"),
        ("present", "90 % of the people in this data set, adding"),
        ("both", "90 % of the people that the data were drawn from, and of those in this data set, adding"),
    ],
)
def test_members_speak_for_this_data_set(orientation, whom):
    assert whom in str(dataclasses.replace(BDP, orientation=orientation))


def test_formats():
    assert f"{BDP:.2f}" == "Bayesian ε = 0.31"
    assert f"{MINE:.1f}" == "per-instance ε = 0.5"
    assert f"{DP:.3f}" == "DP ε = 1.828"
    assert f"{DP}" == str(DP)


def test_attacker_group_and_postprocessing():
    assert DP.attacker_success() == convert.attacker_success(DP.epsilon, DP.delta)
    assert BDP.attacker_success(0.1) == convert.attacker_success(BDP.epsilon, BDP.delta, 0.1)
    pair = DP.group(2)
    assert (pair.epsilon, pair.delta) == convert.group(DP.epsilon, DP.delta, 2)
    assert pair.strength == BDP.group(2).strength == BDP.postprocessed().strength == "weak"
    assert BDP.group(2).coverage == pytest.approx(0.8)
    assert BDP.group(2).failure == BDP.failure
    assert any("C21" in sentence for sentence in BDP.group(2).assumptions)
    assert BDP.postprocessed().epsilon == BDP.epsilon
    with pytest.raises(InputError, match="per-instance"):
        MINE.group(2)
    with pytest.raises(InputError, match="k"):
        DP.group(0)


BAD = [
    ("notion", "DP"),
    ("epsilon", -1.0),
    ("epsilon", math.nan),
    ("epsilon", "big"),
    ("epsilon", [1.0, 2.0]),
    ("delta", 1.5),
    ("delta", math.nan),
    ("coverage", -0.1),
    ("coverage", 0.9),  # dp holds for everybody
    ("failure", 2),
    ("strength", "medium"),
    ("orientation", "left"),
    ("adjacency", "hamming"),
    ("sampling", "cunning"),
    ("ex_post", 1),
    ("ex_post", True),  # dp is a priori
    ("assumptions", "one sentence"),
    ("assumptions", (1, 2)),
    ("sensitive", "yes"),
    ("delta_split", {"dp": -1}),
    ("delta_split", {1: 0.5}),
    ("delta_split", [0.5]),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=itertools.count())
def test_bad_fields(name, value):
    with pytest.raises(InputError, match=name):
        dataclasses.replace(DP, **{name: value})
    with pytest.raises(InputError, match=name):
        Guarantee.from_dict({**DP.to_dict(), name: value})


def test_bad_dicts():
    values = DP.to_dict()
    for bad in ({}, {**values, "extra": 1}, {k: v for k, v in values.items() if k != "delta"}, [1], None):
        with pytest.raises(InputError, match="guarantee"):
            Guarantee.from_dict(bad)


def test_nothing_is_printed_in_favour_of_the_guarantee():
    assert "δ = 1.235e-05" in str(dataclasses.replace(DP, delta=1.2345643e-5))
    for failure in (1e-12, 1e-13, 1e-15, 1e-17):
        assert "confidence 99.99999999" in str(dataclasses.replace(BDP, failure=failure))
    assert "ε = 4.941e-324" in str(dataclasses.replace(DP, epsilon=5e-324))


def test_how_often_a_guess_is_right_is_said_only_where_both_directions_are_bounded():
    both = dataclasses.replace(BDP, orientation="both", ex_post=False)
    assert "% of the time" in str(DP)
    assert "% of the time" in str(both)
    for one in ({"orientation": "absent"}, {"orientation": "present"}, {"ex_post": True}):
        assert "% sure of the truth" in str(dataclasses.replace(both, **one))


def test_a_number_that_is_no_theorem_says_so_first():
    for standing, words in (
        ("unsound", "UNSOUND: the product rule."),
        ("heuristic", "heuristic: Student-t."),
        ("estimate", "The mean of ten runs."),
    ):
        doubtful = dataclasses.replace(BDP, **assuming("Noise is fresh.", Caveat(standing, words)))
        assert str(doubtful).startswith(f"Not proved ({words.rstrip('.')}). Bayesian")
        assert doubtful.assumptions == ("Noise is fresh.", words)
        assert (doubtful.standing, doubtful.caveats) == (standing, (words,))
        assert Guarantee.from_dict(json.loads(json.dumps(doubtful.to_dict()))) == doubtful
        assert pickle.loads(pickle.dumps(doubtful)) == doubtful
        assert doubtful.postprocessed().group(2).standing == standing
    assert str(BDP).startswith("Bayesian")
    assert (DP.standing, DP.caveats) == ("proved", ())
    # A standing without words says as much as it knows.
    assert str(dataclasses.replace(DP, standing="estimate")).startswith("Not proved (Standing: estimate). Differ")


def test_of_several_standings_the_worst_counts():
    assert worst_standing() == "proved"
    for place, standing in enumerate(STANDINGS):
        assert {worst_standing(standing, better) for better in STANDINGS[: place + 1]} == {standing}
    twice = BDP.doubted(Caveat("unsound", "Forgets.")).doubted(Caveat("heuristic", "Gaussian."))
    assert twice.standing == "unsound"
    assert twice.caveats == ("Gaussian.", "Forgets.")
    assert twice.assumptions == (*twice.caveats, *BDP.assumptions)


def test_a_caveat_cannot_be_lost_on_the_way():
    doubtful = BDP.doubted(Caveat("unsound", "Forgets."))
    with pytest.raises(InputError, match="caveats to be among the assumptions"):
        dataclasses.replace(doubtful, assumptions=BDP.assumptions)
    with pytest.raises(InputError, match="standing to be another than 'proved'"):
        dataclasses.replace(doubtful, standing="proved")
    with pytest.raises(InputError, match="standing to be one of"):
        dataclasses.replace(BDP, standing="doubtful")


def test_every_sentence_that_doubts_is_declared_as_a_caveat():
    """No sentence with such a word is handed on as a plain assumption: it is a `Caveat` or an estimator's standing."""
    plain, declared = [], []
    root = Path(bayesdp.__file__).parent
    for path in sorted(root.rglob("*.py")):
        room = path.relative_to(root).parts
        if room[0] in ("cli", "report") or (room[0] == "experiments" and room[1] != "baselines"):
            continue  # what people read about guarantees, not guarantees
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = {}
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            standing = _called(call) == "Caveat" or any(word.arg == "standing" for word in call.keywords)
            refusal = _called(call) in ("refuse", "unmet", "unfit", "InputError")
            if standing or refusal:
                known |= {id(inner): standing for inner in ast.walk(call)}
        docs = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, _DOCUMENTED)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if not isinstance(text, str) or text in docs or not any(word in text.lower() for word in _DOUBTS):
                continue
            if " " in text and known.get(id(node), True):
                (declared if id(node) in known else plain).append(text)
    assert plain == []
    assert len(declared) == 5  # product, one step, Student-t, plug-in, a Markov chain that may not have converged


_DOUBTS = ("unsound", "heuristic", "an estimate")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def _called(node):
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
