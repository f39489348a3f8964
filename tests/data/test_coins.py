"""Coins that say who is trained on: a record's own, and nobody else's business."""

import numpy as np
import pytest

from bayesdp.data import coins

PLACES = np.arange(20_000)


def test_a_coin_depends_on_the_number_and_the_place_alone():
    whole = coins.tossed(7, "test", PLACES, 0.2)
    for some in (PLACES[:1], PLACES[:999], PLACES[::-3], PLACES[5:50]):
        np.testing.assert_array_equal(coins.tossed(7, "test", some, 0.2), whole[some])
    np.testing.assert_array_equal(coins.tossed(7, "test", PLACES, 0.2), whole)
    assert not np.array_equal(coins.tossed(8, "test", PLACES, 0.2), whole)


def test_a_larger_share_moves_records_one_way_only():
    few, many = (coins.tossed(7, "test", PLACES, share) for share in (0.2, 0.3))
    assert not (few & ~many).any()


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9])
def test_coins_are_fair_and_independent(share):
    """Within five standard deviations, for the share, for neighbours in the file, and for the two streams."""
    test, held = (coins.tossed(coins.fresh(), "test", PLACES, share) for _ in range(2))
    other = coins.tossed(11, "holdout", PLACES, share)
    same = coins.tossed(11, "test", PLACES, share)
    for events, chance in (
        (test, share),
        (test[1:] & test[:-1], share**2),
        (test & held, share**2),
        (same & other, share**2),
    ):
        assert abs(events.mean() - chance) < 5 * np.sqrt(2 * chance * (1 - chance) / len(events)) + 1e-12


def test_no_share_and_the_whole():
    assert not coins.tossed(3, "test", PLACES, 0.0).any()
    assert coins.tossed(3, "test", PLACES, 1.0).all()
    assert len(coins.tossed(3, "test", PLACES[:0], 0.5)) == 0


def test_fresh_numbers_are_long_and_new():
    drawn = {coins.fresh() for _ in range(50)}
    assert len(drawn) == 50
    assert max(drawn).bit_length() > 240
