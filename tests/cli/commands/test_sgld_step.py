"""`sgld-step`: the table is the library's, says what is sound and what fails, and never overshoots."""

import pytest

from bayesdp.accountant.langevin.printed_bounds import bounds
from bayesdp.accountant.langevin.step_size import Langevin

PLAN = ("--epsilon", 0.1, "--delta", 1e-5, "--records", 50000, "--sampling-rate", 0.002, "--steps", 1e4)


def test_json_is_the_librarys_table(cli):
    found = cli("sgld-step", *PLAN, "--engine", "moments", "--json").json
    chain = Langevin(records=50000, batch=100, steps=10**4, bound=1.0)
    rows = bounds(chain, 0.1, 1e-5, "moments")
    assert [{name: one[name] for name in rows[0].to_dict()} for one in found] == [row.to_dict() for row in rows]
    assert found[0]["corrected_limits"] == {"least": pytest.approx(0.0002048), "most": pytest.approx(0.2)}
    assert found[0]["utility"]["start"] == pytest.approx(1 / (1e4 * found[0]["step"]))


def test_the_table_names_kinds_failures_and_conditions(cli):
    result = cli("sgld-step", *PLAN, "--schedule", "both", "--engine", "moments", "--temperature", 0.5)
    assert (result.code, result.err) == (0, "")
    for words in ("exact (F8)", "Theorem 4 (§C)", "Wang et al. 2015", "as printed [1]", "ERR 26", "c₂ = "):
        assert words in result.out
    assert "[2] fails: c₂ is taken for a constant" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--records", 0, "--records"),
        ("--sampling-rate", 1.5, "--sampling-rate"),
        ("--steps", 2.5, "--steps"),
        ("--clip-norm", -1, "--clip-norm"),
        ("--temperature", 0, "temperature"),
        ("--schedule", "cosine", "--schedule"),
        ("--epsilon", -1, "epsilon"),
        ("--adjacency", "swap", "adjacency"),
        ("--engine", "magic", "engine"),
    ],
)
def test_bad_input_is_refused(cli, option, value, words):
    assert words in cli("sgld-step", *PLAN, option, value).refused()
