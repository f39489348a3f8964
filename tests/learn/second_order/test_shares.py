import pytest

from bayesdp.learn.second_order.shares import FEWEST, READ, shares


@pytest.mark.parametrize("steps", [FEWEST, 8, 12])
def test_shares_are_all_of_the_budget(steps):
    found = shares(steps)
    assert len(found) == steps
    assert sum(share.whole for share in found) == pytest.approx(1)
    assert len(set(found[-READ:])) == 1
