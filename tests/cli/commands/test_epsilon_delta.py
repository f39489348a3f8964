"""`epsilon`, `delta` and `calibrate`: the numbers are the library's, and say what they are."""

from __future__ import annotations

import json
import math

import pytest

import bayesdp
from bayesdp import Guarantee, WorstCaseAccountant
from bayesdp.cli import options, terminal
from bayesdp.cli.app import app

_PLAN = ("noise_multiplier", "sampling_rate", "steps")
PLAN = ("--noise-multiplier", 1, "--sampling-rate", 0.01, "--steps", 1000)


def plan(engine="pld", adjacency="add-remove"):
    accountant = WorstCaseAccountant(engine=engine, adjacency=adjacency)
    accountant.step(noise_multiplier=1, sampling_rate=0.01, steps=1000)
    return accountant


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "rdp", "pld"),
    [
        (1, 0.01, 1000, 2.1014, 1.8282),
        (4, 0.01, 10000, 1.0355, 0.9470),
        (1.5, 0.04, 2250, 7.3293, 6.7688),
        (1.1, 256 / 60000, 14063, 2.5967, 2.3818),
        (10, 1, 100, 4.7285, 4.3772),
    ],
)
def test_epsilon_is_what_the_field_prints(cli, noise, rate, steps, rdp, pld):
    arguments = ("--noise-multiplier", noise, "--sampling-rate", rate, "--steps", steps, "--delta", 1e-5, "--json")
    for engine, printed in (("rdp", rdp), ("pld", pld)):
        (found,) = cli("epsilon", *arguments, "--engine", engine).json
        assert found["notion"] == "dp"
        # Theirs are rounded; our search over orders may be a little tighter than a fixed grid, never looser.
        assert printed - 2e-3 * printed < found["epsilon"] < printed + 1e-4


@pytest.mark.parametrize("engine", ["pld", "rdp", "moments", "advanced"])
def test_json_is_the_librarys_guarantee(cli, engine):
    result = cli("epsilon", *PLAN, "--delta", "1e-5", "--engine", engine, "--json")
    (found,) = result.json
    assert Guarantee.from_dict(found) == plan(engine).guarantee(1e-5)


def test_table_says_which_epsilon_and_rounds_up(cli):
    result = cli("epsilon", *PLAN, "--delta", "1e-5")
    epsilon = plan().epsilon(1e-5)
    assert result.code == 0
    assert result.err == ""
    assert f"DP ε = {terminal.up(epsilon)}" in result.out
    assert float(terminal.up(epsilon)) >= epsilon
    assert "everybody" in result.out
    assert "fixed without looking at the data" in result.out
    assert "Sensitive" not in result.out


def test_adjacency_reaches_the_accountant(cli):
    (found,) = cli("epsilon", *PLAN, "--delta", "1e-5", "--adjacency", "replace-one", "--engine", "rdp", "--json").json
    assert found["adjacency"] == "replace-one"
    assert found["epsilon"] == plan("rdp", "replace-one").epsilon(1e-5)


def test_orders_reach_the_accountant(cli):
    (found,) = cli("epsilon", *PLAN, "--delta", "1e-5", "--engine", "rdp", "--orders", "4,8", "--json").json
    accountant = WorstCaseAccountant(engine="rdp", orders=[4, 8])
    accountant.step(noise_multiplier=1, sampling_rate=0.01, steps=1000)
    assert found["epsilon"] == accountant.epsilon(1e-5)


def test_phases_add_up(cli):
    mixed = WorstCaseAccountant(engine="rdp")
    for noise, rate, steps in ((1, 0.01, 1000), (2, 0.02, 50), (3, 1, 1)):
        mixed.step(noise_multiplier=noise, sampling_rate=rate, steps=steps)
    rest = ("--delta", "1e-5", "--engine", "rdp", "--json")
    phases = ("--phase", "2,0.02,50", "--phase", "3,1,1")
    (beside,) = cli("epsilon", *PLAN, *phases, *rest).json
    (alone,) = cli("epsilon", "--phase", "1,0.01,1e3", *phases, *rest).json
    assert beside["epsilon"] == alone["epsilon"] == mixed.epsilon(1e-5)


def test_without_a_rate_everybody_takes_part(cli):
    (found,) = cli("epsilon", "--noise-multiplier", 10, "--steps", "1e2", "--delta", "1e-5", "--json").json
    assert found["sampling"] == "none"
    assert found["epsilon"] == pytest.approx(4.3772, abs=1e-4)


@pytest.mark.parametrize("engine", ["pld", "rdp", "moments", "advanced"])
def test_delta_is_the_librarys(cli, engine):
    (found,) = cli("delta", *PLAN, "--epsilon", 2, "--engine", engine, "--json").json
    kept = Guarantee.from_dict(found)
    assert (kept.notion, kept.epsilon) == ("dp", 2)
    assert kept.delta == plan(engine).delta(2)
    assert kept.assumptions == plan(engine).guarantee(1e-5).assumptions
    assert kept.strength == plan(engine).guarantee(1e-5).strength


def test_delta_of_a_huge_epsilon_is_still_a_guarantee(cli):
    (found,) = cli("delta", *PLAN, "--epsilon", 1e6, "--json").json
    assert 0 <= found["delta"] < 1e-100


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("noise_multiplier", ("--sampling-rate", "0.01", "--steps", "1e3")),
        ("sampling_rate", ("--noise-multiplier", "1", "--steps", "1e3")),
        ("steps", ("--noise-multiplier", "1", "--sampling-rate", "0.01")),
    ],
)
def test_calibrate_keeps_the_promise_and_wastes_little(cli, wanted, given):
    (found,) = cli("calibrate", "--epsilon", 2, "--delta", "1e-5", *given, "--engine", "rdp", "--json").json
    accountant = WorstCaseAccountant(engine="rdp")
    accountant.step(**{name: found[name] for name in ("noise_multiplier", "sampling_rate", "steps")})
    assert accountant.epsilon(1e-5) == found["epsilon"]
    assert 1.99 < found["epsilon"] <= 2
    # Beside the three numbers it is a guarantee like the others.
    Guarantee.from_dict({name: found[name] for name in plan("rdp").guarantee(1e-5).to_dict()})


def test_calibrate_prints_a_number_that_keeps_the_promise(cli):
    plans = {
        "noise multiplier": ("--sampling-rate", "0.01", "--steps", "1000"),
        "sampling rate": ("--noise-multiplier", "1", "--steps", "1000"),
        "steps": ("--noise-multiplier", "1", "--sampling-rate", "0.01"),
    }
    for wanted, given in plans.items():
        result = cli("calibrate", "--epsilon", "1.7", "--delta", "1e-5", *given, "--engine", "rdp")
        name, value = result.out.splitlines()[0].split(" = ")
        assert name == wanted
        option = "--" + wanted.replace(" ", "-")
        (found,) = cli("epsilon", *given, option, value, "--delta", "1e-5", "--engine", "rdp", "--json").json
        assert found["epsilon"] <= 1.7


def test_calibrate_by_the_tightest_engine(cli):
    arguments = ("--epsilon", 2, "--delta", "1e-5", "--sampling-rate", 1, "--steps", 1, "--json")
    (found,) = cli("calibrate", *arguments).json
    # One Gaussian step without sampling: the analytic value is 1.9938…, see the library's own tests.
    assert found["epsilon"] <= 2
    assert found["noise_multiplier"] == pytest.approx(1.9939, abs=2e-3)


def test_rounding_never_crosses_the_number():
    for value in (0.1, 1.8282000001, 123456.7, 1e-9, 2.0, 0.30000000000000004, 99999.5):
        assert float(terminal.up(value)) >= value * (1 - 1e-15)
        assert float(terminal.down(value)) <= value * (1 + 1e-15)
    assert (terminal.up(0.1), terminal.down(0.1), terminal.up(2.0)) == ("0.1", "0.1", "2")
    assert terminal.up(math.inf) == "∞"


def test_version(cli):
    assert cli("--version").out == f"bayesdp {bayesdp.__version__}\n"


def test_help_explains_every_option_by_an_example(cli):
    for command in app.registered_commands:
        name = command.callback.__name__.replace("_", "-")
        result = cli(name, "--help")
        assert result.code == 0
        lines = [line.rstrip() for line in result.out.splitlines()]
        assert lines[lines.index(" For example:") + 1].startswith(f"   bayesdp {name}")
        assert max(map(len, lines)) <= 80
    assert all(panel in cli("--help").out for panel in ("Start here", "calibrate", "account", "demo", "reproduce"))


def test_options_with_a_value_show_one():
    words = [word for word in vars(options).values() if getattr(word, "__metadata__", None)]
    assert len(words) > 20
    for word in words:
        option = word.__metadata__[0]
        assert option.help.endswith(".")
        takes_value = (option.metavar or " ").strip() not in ("", "NAME", "F", "FOLDER") and option.default is None
        assert not takes_value or "e.g." in option.help, option.help


def test_no_command_prints_the_help(cli):
    result = cli()
    assert result.code == 2
    assert "Usage: bayesdp" in result.out


def test_json_never_holds_a_bare_infinity(cli):
    result = cli("epsilon", "--noise-multiplier", 1e-3, "--steps", 1, "--delta", "1e-5", "--engine", "rdp", "--json")
    assert json.loads(result.out)
    assert "Infinity" not in result.out


@pytest.mark.parametrize("risk", [("--attacker", "0.55"), ("--advantage", "0.1")])
def test_noise_for_a_risk(cli, risk):
    (found,) = cli("calibrate", *risk, "--delta", "1e-5", "--sampling-rate", "1", "--steps", "9", "--json").json
    promise = Guarantee.from_dict({name: value for name, value in found.items() if name not in _PLAN})
    assert 0.54999 < promise.attacker.right <= 0.55
    exactly = bayesdp.noise_for(attacker=0.55, sampling_rate=1, steps=9)
    assert found["noise_multiplier"] == pytest.approx(exactly, rel=1e-9)


def test_one_promise_at_a_time(cli):
    for given in ((), ("--epsilon", "1", "--attacker", "0.6")):
        result = cli("calibrate", *given, "--delta", "1e-5", "--sampling-rate", "1", "--steps", "9")
        assert result.code != 0
        assert "Expected one of --epsilon, --attacker and --advantage" in result.err


def test_right_on_average_is_told_apart_from_what_epsilon_allows(cli):
    """With z = 10 a hundred steps are one Gaussian with μ = 1, against which Φ(1/2) = 69.2 % of guesses are right."""
    words = " ".join(cli("epsilon", "--noise-multiplier", 10, "--steps", 100, "--delta", 1e-5).out.split())
    assert "guesses right at most 69.2 % of the time: an advantage of 38.3 % over a coin" in words
    assert "98.8 %" in words
    assert "1.83 % at 0.1 %, 9.24 % at 1 %, 39 % at 10 %" in words
    assert "On average" not in cli("epsilon", *PLAN, "--delta", "1e-5", "--engine", "rdp").out
