"""A level that one person has appears with the chance that was paid for, and no other level has a part in it."""

import pytest
from scipy import stats

from bayesdp.data.preparation.levels import select, threshold


@pytest.mark.parametrize("std", [0.5, 12.0])
@pytest.mark.parametrize("columns", [1, 6])
@pytest.mark.parametrize("rows", [1, 4])
def test_one_persons_levels_appear_with_chance_delta_over_all_columns(std, columns, rows):
    above = threshold(std, 1e-7, columns, rows)
    # At most `rows` levels of their own in each column, each counted at most `rows` times.
    assert columns * rows * stats.norm.sf((above - rows) / std) == pytest.approx(1e-7, rel=1e-9)


def test_a_lonely_level_appears_as_rarely_as_that():
    std, delta = 3.0, 0.05
    above = threshold(std, delta, 1)
    texts = [*["a"] * 60, "b"]
    found = [select(texts, std=std, above=above, draw=draw, column="c", most=100) for draw in range(4000)]
    assert all("a" in one for one in found)
    # 200 expected; four standard deviations.
    assert sum("b" in one for one in found) == pytest.approx(4000 * delta, abs=4 * (4000 * delta * 0.95) ** 0.5)


def test_levels_come_in_the_order_of_the_alphabet_whoever_else_is_there():
    common = {"std": 2.0, "above": 10.0, "draw": 5, "column": "c"}
    texts = [*["late"] * 50, *["early"] * 40, *["middle"] * 30]
    assert select(texts, **common, most=100) == ("early", "late", "middle")
    assert select(reversed(texts), **common, most=2) == ("early", "late")  # the largest
    assert select([*texts, *["other"] * 20], **common, most=100) == ("early", "late", "middle", "other")
    assert select(["alone"], **common, most=100) == ()
