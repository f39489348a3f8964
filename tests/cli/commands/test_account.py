"""`account`: three guarantees from a file, the same whatever the format, and the library's to the last digit."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyarrow
import pytest
from norm_files import distances, write_csv
from pyarrow import parquet

from bayesdp import BayesianAccountant, Guarantee, InstanceAccountant, WorstCaseAccountant
from bayesdp.cli import terminal
from bayesdp.data.distances_file import Source, read
from bayesdp.estimate.quantile import rank_for

RUN = ("--noise-std", 1, "--sampling-rate", 0.01, "--delta", "1e-5")


@pytest.fixture
def norms(tmp_path):
    return write_csv(tmp_path / "norms.csv", distances())


def stepped(accountant, values, **where):
    for row in values:
        accountant.step(row, noise_std=1, sampling_rate=0.01, **where)
    return accountant


def test_json_is_what_the_three_accountants_say(cli, norms):
    found = [Guarantee.from_dict(one) for one in cli("account", norms, *RUN, "--clip-norm", 1, "--json").json]
    everybody = WorstCaseAccountant()
    everybody.step(noise_multiplier=1, sampling_rate=0.01, steps=6)
    alike = stepped(BayesianAccountant(cap=1), distances())
    each = stepped(InstanceAccountant(records=300, cap=1), distances())
    assert found == [everybody.guarantee(1e-5), alike.guarantee(1e-5, 0.9), each.guarantee(1e-5)]
    assert [one.sensitive for one in found] == [False, True, True]


def test_noise_as_a_multiple_of_the_clip_norm(cli, tmp_path):
    path = write_csv(tmp_path / "norms.csv", 0.5 * distances())
    rest = ("--clip-norm", 0.5, "--sampling-rate", 0.01, "--delta", "1e-5", "--json")
    assert cli("account", path, "--noise-multiplier", 2, *rest).out == cli("account", path, "--noise-std", 1, *rest).out


def test_members_make_it_speak_for_both(cli, norms, tmp_path):
    inside = write_csv(tmp_path / "inside.csv", 2 * distances(records=200, seed=1).clip(max=0.5))
    arguments = ("account", norms, *RUN, "--clip-norm", 1)
    found = [Guarantee.from_dict(one) for one in cli(*arguments, "--members", inside, "--json").json]
    alike = stepped(BayesianAccountant(cap=1), distances())
    stepped(alike, 2 * distances(records=200, seed=1).clip(max=0.5), orientation="present")
    assert found[1] == alike.guarantee(1e-5, 0.9)
    assert found[1].orientation == "both"
    worst = stepped(InstanceAccountant(records=200, cap=1), 2 * distances(records=200, seed=1).clip(max=0.5)).guarantee(
        1e-5
    )
    assert found[2].epsilon == max(
        worst.epsilon, stepped(InstanceAccountant(records=300, cap=1), distances()).guarantee(1e-5).epsilon
    )
    assert Guarantee.from_dict(cli(*arguments, "--json").json[1]).orientation == "absent"
    shown = cli(*arguments, "--members", inside, "--top", 500).out
    assert "300 records outside of the training data and 200 members" in shown
    assert "(member)" in shown


def test_table_names_every_epsilon_and_what_is_sensitive(cli, norms):
    out = cli("account", norms, *RUN, "--clip-norm", 1, "--curve", "--top", 2).out
    found = cli("account", norms, *RUN, "--clip-norm", 1, "--json").json
    assert f"DP ε = {terminal.up(found[0]['epsilon'], 5)}" in out
    # Six steps: nobody's own number is below the DP number, so none is shown.
    assert [one["won"] for one in found] == ["dp"] * 3
    assert " ".join(out.split()).count(f"everybody: DP ε {terminal.up(found[0]['epsilon'], 5)}") >= 3
    for one in found[1:]:
        assert one["epsilon"] > found[0]["epsilon"]
        assert terminal.up(one["epsilon"], 5) not in out
    small = cli("account", norms, *RUN, "--json").json
    shown = cli("account", norms, *RUN).out
    for label, one in zip(("Bayesian ε", "per-instance ε"), small[1:], strict=True):
        assert f"{label} = {terminal.up(one['epsilon'], 5)}" in shown
    # No ε stands without its label: every "ε" is part of one of the three, or of words about e^ε.
    for line in out.splitlines():
        for place in [i for i, letter in enumerate(line) if letter == "ε"]:
            assert line[:place].endswith(("DP ", "Bayesian ", "per-instance ", "e^")), line
    assert "Do not publish them" in out
    assert "all lines hold together" in out
    assert "Most exposed records" in out


def test_without_a_clip_norm_nothing_is_promised_to_everybody(cli, norms):
    found = cli("account", norms, *RUN, "--json").json
    assert found[0]["notion"] == "dp"
    assert found[0]["epsilon"] == "inf"
    assert math.isinf(Guarantee.from_dict(found[0]).epsilon)
    assert found[1]["epsilon"] == stepped(BayesianAccountant(), distances()).guarantee(1e-5, 0.9).epsilon
    out = cli("account", norms, *RUN).out
    assert "DP ε = ∞" in out
    assert "No clip norm was given" in out


def test_few_records_speak_for_fewer_people_unless_asked(cli, tmp_path):
    path = write_csv(tmp_path / "few.csv", distances(records=20))
    _, alike, _ = cli("account", path, *RUN, "--json").json
    assert alike["coverage"] == pytest.approx(1e-6 ** (1 / 20))
    assert alike["epsilon"] == stepped(InstanceAccountant(records=20), distances(records=20)).guarantee(1e-5).epsilon
    refused = cli("account", path, *RUN, "--coverage", 0.9).refused()
    assert "--coverage to be at most 0.501" in refused
    assert "give --clip-norm" in refused


def test_coverage_failure_orders_and_adjacency_reach_the_accountant(cli, tmp_path):
    values = distances(steps=2, records=40)
    norms = write_csv(tmp_path / "norms.csv", values)
    options = ("--coverage", 0.7, "--failure", 1e-3, "--orders", "8,2", "--adjacency", "replace-one")
    found = cli("account", norms, *RUN, "--clip-norm", 1, *options, "--json").json
    alike = stepped(BayesianAccountant(cap=1, orders=[2, 8], failure=1e-3, adjacency="replace-one"), values).guarantee(
        1e-5, 0.7
    )
    assert Guarantee.from_dict(found[1]) == alike
    assert {one["adjacency"] for one in found} == {"replace-one"}


def test_compositions_of_the_papers_say_what_they_are(cli, norms):
    options = ("--clip-norm", 1, "--failure", 1e-9, "--json", "--orders", "8,16")
    product = cli("account", norms, *RUN, *options, "--composition", "product", "--estimator", "student-t").json[1]
    assert any("UNSOUND" in words for words in product["assumptions"])
    holder = cli("account", norms, *RUN, *options, "--composition", "holder", "--total-steps", 6).json[1]
    alike = BayesianAccountant(composition="holder", cap=1, failure=1e-9, orders=[8, 16], total_steps=6)
    found = Guarantee.from_dict(holder)
    assert dataclasses.replace(found, dp_epsilon=None) == stepped(alike, distances()).guarantee(1e-5)
    everybody = WorstCaseAccountant()
    everybody.step(noise_multiplier=1, sampling_rate=0.01, steps=6)
    assert found.dp_epsilon == everybody.epsilon(1e-5)
    shown = cli("account", norms, *RUN, *options[:-3], "--orders", "8,16", "--composition", "product").out
    assert "UNSOUND" in shown
    refused = cli("account", norms, *RUN, *options, "--composition", "holder").refused()
    assert "--total-steps to be given" in refused


def test_curve_holds_for_all_shares_together(cli, norms):
    found = cli("account", norms, *RUN, "--curve", "--json").json
    alike = stepped(BayesianAccountant(), distances())
    points = [Guarantee.from_dict(one) for one in found[3:]]
    assert [one.coverage for one in points] == [0.5, 0.75, 0.9]
    assert [one.epsilon for one in points] == [alike.curve(1e-5).at(one.coverage) for one in points]
    assert all(one.sensitive and one.notion == "bdp" and one.strength == "weak" for one in points)
    # Fixed beforehand is never worse than picked afterwards.
    assert found[1]["epsilon"] <= points[2].epsilon
    lines = cli("account", norms, *RUN, "--curve").out.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("90 %")] == [terminal.up(points[2].epsilon, 5)]


def test_top_names_the_most_exposed(cli, tmp_path):
    values = np.array([[0.1, 0.9, 0.5], [0.1, 0.9, 0.5]])
    path = write_csv(tmp_path / "named.csv", values, ["ann", "bob [red]x[/red]", "eve\x1b[2J"])
    out = cli("account", path, *RUN, "--top", 2).out
    assert "one record: each of 3" in out
    assert "The largest is shown, that of record bob [red]x[/red]." in " ".join(out.split())
    assert "picked out afterwards" in " ".join(out.split())
    assert "\x1b" not in out
    assert out.index("bob", out.index("Most exposed")) < out.index("eve?[2J")
    found = cli("account", path, *RUN, "--top", 2, "--json").json[3:]
    assert [one.pop("record") for one in found] == ["bob [red]x[/red]", "eve\x1b[2J"]
    assert Guarantee.from_dict(found[0]) == stepped(InstanceAccountant(records=3), values).guarantee(1e-5, record=1)
    assert cli("account", path, *RUN, "--top", 99).code == 0


def test_ties_at_the_dp_value_are_ordered_by_their_own_cost(cli, tmp_path):
    values = np.array([[0.9, 1.0, 0.95, 0.01]] * 40)
    path = write_csv(tmp_path / "tied.csv", values, ["ann", "bob", "eve", "few"])
    run = ("--noise-std", 2, "--clip-norm", 1, "--sampling-rate", 0.5, "--delta", "1e-5", "--top", 4)
    found = cli("account", path, *run, "--json").json
    top = found[3:]
    assert [one["record"] for one in top] == ["bob", "eve", "ann", "few"]
    assert [one["won"] for one in top] == ["dp", "dp", "dp", "ex-post"]
    out = cli("account", path, *run).out
    assert "3 records tie at the DP value" in out
    assert "per-instance ε" in out


def test_groups_hold_together_and_say_which_are_too_small(cli, tmp_path):
    values = distances(steps=6, records=800) * np.where(np.arange(800) < 400, 0.05, 1.0)
    path = write_csv(tmp_path / "norms.csv", values)
    groups = tmp_path / "groups.txt"
    groups.write_text("\n".join(["quiet"] * 400 + ["loud"] * 390 + ["few"] * 10) + "\n")
    found = cli("account", path, *RUN, "--groups", groups, "--json").json[3:]
    assert [(one["group"], one["too_few"]) for one in found] == [("few", True), ("loud", False), ("quiet", False)]
    losses = stepped(InstanceAccountant(records=800), values).epsilon(1e-5)
    for one, own in zip(found[1:], (losses[400:790], losses[:400]), strict=True):
        rank = rank_for(0.9, len(own), 1e-6 / 3)
        assert one["epsilon"] == np.sort(own)[rank - 1]
        assert one["witnesses"] == {"absent": len(own)}
    assert found[2]["epsilon"] < found[1]["epsilon"]
    out = " ".join(cli("account", path, *RUN, "--groups", groups).out.split())
    assert "Bayesian ε of 90 % of each group" in out
    assert "few 10 too few" in out
    few = " ".join(
        cli(
            "account",
            write_csv(tmp_path / "b.csv", values[:, :9]),
            *RUN,
            "--clip-norm",
            1,
            "--groups",
            _lines(tmp_path / "nine.txt", 9),
        ).out.split()
    )
    assert "each has too few witnesses to speak for: 132 of a kind are needed" in few
    assert (
        "with a line for each of the 800 records, got 9 lines"
        in cli("account", path, *RUN, "--groups", tmp_path / "nine.txt").refused()
    )
    assert "readable text file" in cli("account", path, *RUN, "--groups", tmp_path / "none.txt").refused()


def _lines(path, count):
    path.write_text("all\n" * count)
    return path


# --- files ------------------------------------------------------------------------------------------------------


def formats(folder, values):
    table = pyarrow.table({f"r{i}": column for i, column in enumerate(values.T)})
    parquet.write_table(table, folder / "a.parquet", row_group_size=2)
    np.savez(folder / "a.npz", values)
    np.savez_compressed(folder / "two.npz", norms=values, other=np.zeros(3))
    np.save(folder / "a.npy", values)
    write_csv(folder / "a.CSV", values)
    write_csv(folder / "named.csv", values, [f"r{i}" for i in range(values.shape[1])])
    text = (folder / "a.CSV").read_text()
    (folder / "windows.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    (folder / "numpy.csv").write_text("# made by numpy\n" + text)
    (folder / "quoted.csv").write_text('"a, b",' + text.split("\n")[0].count(",") * "c," + "\n")
    (folder / "quoted.csv").write_text(
        "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in text.splitlines())
    )
    names = ["a.parquet", "a.npz", "a.npy", "named.csv", "windows.csv", "numpy.csv", "quoted.csv"]
    return [(name, ()) for name in names] + [("two.npz", ("--array", "norms"))]


def test_every_format_gives_the_same_answer(cli, tmp_path):
    values = distances(steps=5, records=12)
    others = formats(tmp_path, values)
    expected = cli("account", tmp_path / "a.CSV", *RUN, "--json").json
    for name, options in others:
        assert cli("account", tmp_path / name, *RUN, *options, "--json").json == expected, name


def test_single_precision_is_kept_so_that_the_accountant_can_allow_for_it(cli, tmp_path):
    values = distances(steps=3, records=12).astype(np.float32)
    np.savez(tmp_path / "a.npz", values)
    columns = {f"r{i}": column for i, column in enumerate(values.T)} | {"r3": values[:, 3].astype(float)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    expected = stepped(InstanceAccountant(records=12), values).guarantee(1e-5).epsilon
    assert expected > stepped(InstanceAccountant(records=12), values.astype(float)).guarantee(1e-5).epsilon
    for name in ("a.npz", "a.parquet"):
        assert cli("account", tmp_path / name, *RUN, "--json").json[2]["epsilon"] == expected


def test_whole_numbers_are_numbers(cli, tmp_path):
    np.savez(tmp_path / "a.npz", np.array([[0, 1], [1, 0]]))
    assert cli("account", tmp_path / "a.npz", *RUN, "--json").json[2]["epsilon"] > 0


def test_header_can_be_settled(tmp_path):
    path = write_csv(tmp_path / "a.csv", np.array([[1.0, 2.0]]), ["7", "8"])
    steps = list(read(Source("FILE", path)))
    assert [step.distances.tolist() for step in steps] == [[7, 8], [1, 2]]
    (step,) = read(Source("FILE", path, header=True))
    assert step.names == ("7", "8")
    assert step.read == 1


def test_files_are_streamed(tmp_path):
    path = write_csv(tmp_path / "a.csv", distances(steps=400, records=50))
    shares = [step.read for step in read(Source("FILE", path))]
    assert len(shares) == 400
    assert 0 < shares[0] < 0.1
    assert shares[-1] == 1
    assert shares == sorted(shares)
    # A reader that is dropped half way leaves no file open (warnings are errors here).
    next(iter(read(Source("FILE", path))))
