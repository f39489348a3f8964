"""Columns of an own file: declared, paid for, or taken; each is said, and nothing else depends on the records."""

import dataclasses
import json

import numpy as np
import pytest

from bayesdp import InputError, data
from bayesdp.data.payment import Payment
from bayesdp.data.preparation.prepare import CLASSES, EXACT
from bayesdp.data.recipe import Bounded, Numeric, OneHot

ROWS = 3000
GENEROUS = Payment(0.8, 1e-6)
"""Noise of 3 or so: what is found does not depend on luck."""


def columns(rows=ROWS):
    rng = np.random.default_rng(0)
    age, wage = rng.integers(18, 90, rows), rng.lognormal(8, 0.5, rows).round()
    job = rng.choice(["clerk", "cook", "nurse"], rows)
    rich = np.where(age + rng.normal(0, 20, rows) > 50, "yes", "no")
    return {
        "age": age.astype(object),
        "job": job.astype(object),
        "wage": wage.astype(object),
        "rich": rich.astype(object),
    }


def written(path, table):
    lines = [",".join(map(str, cells)) for cells in zip(*table.values(), strict=True)]
    path.write_text("\n".join([",".join(table), *lines]))
    return path


def loaded(path, target="rich", **options):
    chosen = {"scale": "private", "payment": GENEROUS, "seed": 1} | options
    return data.load(path, target=target, **chosen)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return written(tmp_path_factory.mktemp("own") / "people.csv", columns())


def test_all_that_was_not_declared_is_paid_for(table):
    found = loaded(table)
    assert [type(one) for one in found.recipe.columns] == [Bounded, OneHot, Bounded]
    assert found.recipe.columns[1].categories == ("clerk", "cook", "nurse")
    assert found.classes == ("no", "yes")
    assert found.paid.histograms == 2 + 1 + 2 + CLASSES
    assert found.paid.noise_std == pytest.approx(0.8 * found.paid.histograms**0.5)
    said = " ".join(found.public)
    assert "Ranges of 'age', 'wage', levels of 'job', classes of 'rich' were found" in said
    assert "which the guarantees pay for" in said
    assert "declared public" not in said
    assert EXACT not in said
    np.testing.assert_allclose(found.x[:, [0, 4]].std(axis=0), 1, atol=0.2)


def test_what_is_declared_costs_nothing(table):
    known = {
        "bounds": [("age", 0, 110), ("wage", 0, 10_000)],
        "levels": [("job", ("nurse", "cook")), ("rich", ("no", "yes"))],
    }
    found = loaded(table, **known, payment=None)
    assert found.paid is None
    assert found.recipe.columns == (
        Bounded("age", 0, 110, 55, 110 / 12**0.5),
        OneHot("job", ("nurse", "cook")),
        Bounded("wage", 0, 10_000, 5000, 10_000 / 12**0.5),
    )
    said = " ".join(found.public)
    assert "The ranges of 'age', 'wage' were declared" in said
    assert "The levels of 'job', 'rich' were declared" in said
    assert "taken from" not in said
    clerks = (found.x[:, 1:3] == 0).all(axis=1)
    assert 0.2 < clerks.mean() < 0.5  # a level outside gets zeros


def test_statistics_are_said_to_leak(table):
    found = loaded(table, scale=None, payment=None)
    assert found.paid is None
    assert [type(one) for one in found.recipe.columns] == [Numeric, OneHot, Numeric]
    assert EXACT in found.public
    partly = loaded(table, scale="public-statistics", payment=None, bounds=[("age", 0, 110)])
    assert "Means and scales of 'wage', taken from" in " ".join(partly.public)


def test_private_needs_something_to_pay_with(table):
    with pytest.raises(InputError, match="something to pay with"):
        loaded(table, payment=None)


def test_a_level_that_one_person_has_does_not_appear(tmp_path):
    alone = columns()
    alone["job"][7], alone["rich"][8] = "astronaut", "secret"
    found = loaded(written(tmp_path / "a.csv", alone))
    assert found.recipe.columns[1].categories == ("clerk", "cook", "nurse")
    assert found.classes == ("no", "yes")
    # The record of a class that was not found is in no part.
    assert 8 not in found.places
    assert "left out" in " ".join(found.public)


def test_records_of_classes_that_were_not_declared_are_left_out(table):
    jobs = loaded(table, target="job", levels=[("job", ("nurse", "cook"))])
    assert jobs.classes == ("nurse", "cook")
    assert 0.5 * ROWS < len(jobs.places) < 0.8 * ROWS
    assert "Records whose 'job' is none of the declared classes are left out." in jobs.public
    with pytest.raises(InputError, match="at least two classes"):
        loaded(table, target="job", levels=[("job", ("nurse",))])
    with pytest.raises(InputError, match="some record"):
        loaded(table, target="job", levels=[("job", ("pope", "king"))])


def test_a_quantity_has_the_same_three_ways(table):
    paid, told, taken = (
        loaded(table, target="wage", task="regression", **way)
        for way in ({}, {"bounds": [("wage", 0, 4000)]}, {"scale": None, "payment": None})
    )
    wages = columns()["wage"].astype(float)
    for found in (paid, told, taken):
        assert found.task == "regression"
        assert 0.5 < found.y.std() < 1.5
        tests = found.places[len(found.x) :]
        np.testing.assert_allclose(found.y_test * found.y_scale + found.y_mean, wages[tests], rtol=1e-4)
    assert (told.y_mean, told.y_scale) == (2000, 4000 / 12**0.5)
    assert (told.y * told.y_scale + told.y_mean).max() == pytest.approx(4000)  # to learn, but not to test
    assert wages.max() > 4000
    assert "range of the target 'wage'" in " ".join(paid.public)
    with pytest.raises(InputError, match="to be left out for a target of"):
        loaded(table, target="wage", task="classification", bounds=[("wage", 0, 4000)])


def test_ranges_that_no_share_can_pay_for_are_refused_before_anything_is_looked_at(table):
    few = Payment(1000.0, 1e-6, dearest=900.0, records=1000)
    with pytest.raises(InputError, match=r"pay for the ranges of 2 columns by noisy counts.*1,000, too few at this ε"):
        loaded(table, payment=few)
    declared = [("age", 0, 110), ("wage", 0, 10_000)]
    assert loaded(table, payment=few, bounds=declared, levels=[("rich", ("no", "yes"))]).paid.histograms == 1


def test_few_records_have_one_histogram_a_column(table):
    found = loaded(table, payment=Payment(200.0, 1e-6, dearest=100.0, records=2500), levels=[("rich", ("no", "yes"))])
    assert (found.paid.of_numbers, found.paid.histograms) == (1, 3)
    age = found.recipe.columns[0]
    assert 8 <= age.low <= 32
    assert 128 <= age.high <= 256


def test_noise_that_hides_the_target_is_said_with_what_to_declare(table):
    drowned = {"payment": Payment(1e4, 1e-6)}
    with pytest.raises(InputError, match=r"two classes of the target 'rich'.*levels='rich=no,yes'"):
        loaded(table, **drowned)
    with pytest.raises(InputError, match=r"a range of the target 'wage'.*bounds='wage=LOW,HIGH'"):
        loaded(table, target="wage", **drowned)
    found = loaded(table, levels=[("rich", ("no", "yes"))], **drowned)
    lost = [one.name for one in found.recipe.columns if one in (Numeric(one.name, 0.0, 0.0), OneHot(one.name, ()))]
    assert (
        f"Noise hides what {', '.join(map(repr, [n for n in ('age', 'wage', 'job') if n in lost]))} hold"
        in " ".join(found.public)
    )
    assert "job" in lost


def test_test_records_and_outsiders_have_no_part_in_it(tmp_path):
    """What was found may depend on those that are trained on alone: outsiders speak for people outside (H5)."""
    payment = dataclasses.replace(GENEROUS, held_out=0.3)
    before = loaded(written(tmp_path / "a.csv", columns()), payment=payment)
    rest, _ = before.set_apart(0.3, draw=1)
    trained = set(rest.places[: len(rest.x)].tolist())
    changed = columns()
    for row in range(ROWS):
        if row not in trained:
            changed["age"][row], changed["job"][row], changed["wage"][row] = 1e6, "pope", -3.0
    after = loaded(written(tmp_path / "b.csv", changed), payment=payment)
    assert after.recipe == before.recipe
    changed["age"][min(trained)] = 1e6
    third = dict(changed, age=np.where(np.isin(np.arange(ROWS), [*trained]), 1e6, changed["age"]))
    assert loaded(written(tmp_path / "c.csv", third), payment=payment).recipe != before.recipe


def test_the_recipe_prepares_further_records_in_the_same_way(table, tmp_path):
    found = loaded(table, bounds=[("age", 0, 110)])
    again = data.recipe_from_dict(json.loads(json.dumps(found.recipe.to_dict())))
    assert again == found.recipe
    further = {"age": [110, 500], "job": ["cook", "pope"], "wage": [3000, 3000]}
    x = data.read_features(written(tmp_path / "more.csv", further), again)
    assert x[0, 0] == x[1, 0] == np.float32(3**0.5)
    np.testing.assert_array_equal(x[1, 1:4], 0)


def test_arrays_are_prepared_alike(tmp_path):
    rng = np.random.default_rng(1)
    x, y = rng.normal(100, 5, (ROWS, 2)), rng.integers(0, 3, ROWS)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    found = loaded(tmp_path / "a.npz", target=None)
    assert found.paid.histograms == 4 + CLASSES
    assert found.classes == ("0", "1", "2")
    np.testing.assert_allclose(found.x.std(axis=0), 1, atol=0.4)
    np.savez(tmp_path / "b.npz", x=rng.integers(0, 255, (ROWS, 4, 4)).astype(np.uint8), y=y)
    images = loaded(tmp_path / "b.npz", target=None, levels=[("y", ("0", "1", "2"))], payment=None)
    assert images.paid is None
    assert images.x.shape[1:] == (4, 4, 1)
