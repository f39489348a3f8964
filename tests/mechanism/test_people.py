import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import InputError, People
from bayesdp.mechanism import PeopleLoss

ROWS = (np.arange(10, dtype=np.float32).reshape(5, 2), np.array([0, 1, 0, 1, 1]))


def test_people_come_in_the_order_in_which_they_appear():
    people = People.of(ROWS, ["b", "a", "b", "c", "a"], most=2, seed=0)
    assert people.present.tolist() == [[True, True], [True, True], [True, False]]
    assert [sorted(line) for line in people.rows[0][:, :, 0].tolist()] == [[0, 4], [2, 8], [6, 6]]
    assert [sorted(line) for line in people.rows[1].tolist()] == [[0, 0], [1, 1], [1, 1]]
    assert people.all_rows[0].shape == (6, 2)


def test_of_too_many_rows_so_many_are_drawn_at_random():
    kept = [People.of(ROWS, ["a"] * 5, most=2, seed=seed) for seed in range(40)]
    assert {one.present.sum() for one in kept} == {2}
    assert {row for one in kept for row in one.rows[0][0, :, 0].tolist()} == {0, 2, 4, 6, 8}
    assert len({tuple(one.rows[0][0, :, 0].tolist()) for one in kept}) > 5


def test_the_loss_of_a_person_is_the_sum_over_their_rows_and_no_other():
    people = People.of(ROWS, ["b", "a", "b", "b", "a"], most=4, seed=0)
    loss = PeopleLoss(lambda w, row: jnp.log(row[0] @ w) * (row[1] + 1))
    w = jnp.array([1.0, 2.0])
    alone = [float(jnp.log(x @ w) * (y + 1)) for x, y in zip(*ROWS, strict=True)]
    values, gradients = jax.vmap(jax.value_and_grad(loss), (None, 0))(w, people)
    np.testing.assert_allclose(values, [alone[0] + alone[2] + alone[3], alone[1] + alone[4]], rtol=1e-6)
    by_hand = sum(x / (x @ w) * (y + 1) for x, y in zip(ROWS[0][[1, 4]], ROWS[1][[1, 4]], strict=True))
    np.testing.assert_allclose(gradients[1], by_hand, rtol=1e-5)


def test_other_rows_for_the_same_people():
    people = People.of(ROWS, ["b", "a", "b", "c", "a"], most=2, seed=0).mapped(lambda rows: {"z": -rows[0][:, 0]})
    assert [sorted(line) for line in people.rows["z"].tolist()] == [[-4, 0], [-8, -2], [-6, -6]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"person": ["a"] * 4}, "the person of each row"),
        ({"person": []}, "the person of each row"),
        ({"person": ["a"] * 5, "most": 0}, "most to be a whole number >= 1"),
    ],
)
def test_bad_people_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        People.of(ROWS, **given)
