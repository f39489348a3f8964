"""`bayesdp instance` through the command line, on runs of `train` that are as small as can be."""

import numpy as np
import pytest

from bayesdp.cli import main
from bayesdp.jobs.record_losses import exposure
from bayesdp.report import RecordTable
from bayesdp.rounding import up

TRAIN = "train digits --model logistic --noise-multiplier 2 --delta 1e-4 --clip-norm 4 --steps 12 --sampling-rate 0.2 "
TRAIN += "--holdout 100 --members 100 --seed 0 --engine rdp"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "numbers.txt").write_text("5\n17\n900\n")
    for name, more in {
        "everyone": ["--watch", "everyone"],
        "kept": ["--keep-iterates", "1", "--watch", str(folder / "numbers.txt")],
        "some": ["--keep-iterates", "4", "--measure-every", "4"],
        "bare": [],
    }.items():
        with pytest.raises(SystemExit) as left:
            main([*TRAIN.split(), *more, "--out", str(folder / name)])
        assert left.value.code == 0
    return folder


def losses(runs, name, numbers=None):
    table = exposure(runs / name, numbers)
    return dict(zip(table.ids, table.epsilon, strict=True))


def test_everyone_is_a_table_most_exposed_first(runs, cli, tmp_path):
    out = tmp_path / "records.parquet"
    done = cli("instance", str(runs / "everyone"), "--out", str(out))
    assert done.code == 0, done.err
    assert "most exposed" in done.out
    assert "picked out afterwards" in " ".join(done.out.split())
    assert "NOT PRIVATE" in done.out
    assert "Sensitive" in done.out
    table = RecordTable.read(out)
    shown = np.minimum(table.epsilon, table.dp_epsilon)
    assert (np.diff(shown) <= 0).all()
    tied = shown == table.dp_epsilon
    assert tied.sum() == table.tied
    assert (np.diff(np.array(table.exposure)[tied]) <= 0).all()
    assert f"{table.tied:,} records tie at the DP value" in done.out or table.tied <= 1
    above = [one for one in table.epsilon[:10] if one > table.dp_epsilon * 1.0001]
    assert not any(up(one, 5) in done.out for one in above)
    assert set(table.direction) == {"remove"}
    assert table.label is not None
    assert table.correct is not None
    assert len(set(table.ids)) == len(table.ids) > 1000
    page = tmp_path / "records.html"
    assert cli("instance", str(runs / "everyone"), "--out", str(page)).code == 0
    assert "Content-Security-Policy" in page.read_text()


def test_iterates_tell_afterwards_what_watching_told_on_the_way(runs):
    """The three runs have one seed and differ in who is looked at: the model is the same."""
    live = losses(runs, "everyone")
    watched = losses(runs, "kept")
    later = losses(runs, "kept", (5, 17, 901))
    assert set(watched) == {5, 17, 900}
    for number in set(watched) & set(live):
        assert watched[number] == pytest.approx(live[number], rel=1e-3)
    assert later[5] == pytest.approx(watched[5], rel=1e-4)
    everyone = losses(runs, "kept", "everyone")
    shared = sorted(set(everyone) & set(live))
    assert len(shared) == len(live)
    assert np.allclose([everyone[i] for i in shared], [live[i] for i in shared], rtol=1e-3)


def test_few_iterates_say_less_and_none_say_what_everybody_is_promised(runs):
    kept, bare = losses(runs, "kept", "everyone"), exposure(runs / "bare", (5, 17))
    assert len(set(bare.epsilon)) == 1
    assert bare.epsilon[0] == bare.dp_epsilon > min(kept.values())
    assert any("No iterates were kept" in line for line in bare.how)
    # Here all records were held at what was measured at the kept iterates, so nothing is lost.
    some = exposure(runs / "some", "everyone")
    assert min(some.epsilon) < bare.epsilon[0]
    assert not any("clip norm counts" in line for line in some.how)


def test_members_are_compared_without_and_outsiders_with_themselves(runs):
    every = set(losses(runs, "everyone"))
    outsider = next(number for number in range(1, 1700) if number not in every)
    table = exposure(runs / "kept", (min(every), outsider))
    assert dict(zip(table.ids, table.direction, strict=True)) == {min(every): "remove", outsider: "add"}


def test_json_is_the_rows(runs, cli):
    done = cli("instance", str(runs / "kept"), "--json")
    rows = done.json
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert {row["id"] for row in rows} == {5, 17, 900}


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("bare", [], "watched none"),
        ("kept", ["--records", "99999"], "99999"),
        ("kept", ["--records", "0"], "records"),
        ("kept", ["--records", "me"], "--records"),
        ("kept", ["--out", "records.txt"], "records.txt"),
        ("nothing", [], "nothing"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(runs, cli, name, more, words):
    before = sorted(path.name for path in (runs / "kept").iterdir())
    done = cli("instance", str(runs / name), *more)
    assert words in done.refused()
    assert sorted(path.name for path in (runs / "kept").iterdir()) == before


def test_a_file_of_words_is_refused(runs, cli, tmp_path):
    (tmp_path / "words.txt").write_text("anna\nbert\n")
    done = cli("instance", str(runs / "kept"), "--records", str(tmp_path / "words.txt"))
    assert "number of a record in each line" in done.refused()


def test_a_filter_is_what_everybody_is_promised(cli, tmp_path):
    plan = [*TRAIN.replace("--holdout 100 --members 100", "--holdout 0 --members 0").split(), "--filter-epsilon", "0.9"]
    done = cli(*plan, "--measure-every", "4", "--watch", "everyone", "--out", str(tmp_path / "run"), "--json")
    assert done.code == 0, done.err
    dp, one = done.json
    assert dp["epsilon"] <= 0.9
    table = exposure(tmp_path / "run")
    assert max(table.epsilon) == pytest.approx(one["epsilon"])
    assert table.dp_epsilon == pytest.approx(dp["epsilon"])


def test_iterates_go_with_the_refresh_and_everyone_with_train(cli, tmp_path):
    plan = TRAIN.split()
    done = cli(*plan, "--measure-every", "4", "--keep-iterates", "3", "--out", str(tmp_path / "run"))
    assert "multiple of --measure-every=4" in done.err
    assert done.code == 2
    fit = "fit digits --model logistic --epsilon 1 --watch everyone --out"
    done = cli(*fit.split(), str(tmp_path / "fit"))
    assert "watch" in done.refused()


def test_who_was_watched_is_told_so_whoever_is_asked_about_as_well(runs):
    alone, more = losses(runs, "kept"), exposure(runs / "kept", (900, 5, 44))
    found = dict(zip(more.ids, more.epsilon, strict=True))
    assert {number: found[number] for number in (5, 900)} == {number: alone[number] for number in (5, 900)}
    assert any("2 of these records" in line for line in more.how)
    assert any("Of the others" in line for line in more.how)
    every = losses(runs, "everyone")
    some = sorted(every)[:2]
    assert losses(runs, "everyone", tuple(some)) == {number: every[number] for number in some}


def test_records_that_changed_since_are_refused(cli, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{int(a + b > 0)}" for a, b in rng.normal(size=(60, 2))]
    table = tmp_path / "people.csv"
    table.write_text("\n".join(["a,b,y", *rows]))
    out = tmp_path / "run"
    plan = (
        "--target y --noise-multiplier 2 --delta 1e-3 --steps 3 --sampling-rate 0.5 --holdout 0 --members 0 --watch 3"
    )
    assert cli("train", table, *plan.split(), "--engine", "rdp", "--out", out).code == 0
    assert cli("instance", out).code == 0
    table.write_text("\n".join(["a,b,y", *rows[1:], rows[0]]))
    for command in (["instance", out], ["unlearn", out, "--record", "3", "--beta", "1"]):
        assert "bring back the file as it was" in cli(*command).refused()
