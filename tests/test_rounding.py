"""Printed numbers lean towards the promise that is kept."""

from hypothesis import given
from hypothesis import strategies as st

from bayesdp.rounding import down, up


@given(st.floats(1e-300, 1e300), st.integers(2, 12))
def test_up_is_never_below_and_down_never_above(value, digits):
    assert float(down(value, digits)) <= value <= float(up(value, digits))
    assert float(up(value, digits)) <= value * (1 + 10 ** (1 - digits)) * (1 + 1e-12)


def test_what_is_short_stays_as_it_is():
    assert (up(0.1), up(2.0), up(1e-5), up(0.0), down(0.9)) == ("0.1", "2", "1e-05", "0", "0.9")
    assert up(float("inf")) == "∞"
    assert (up(0.12341), down(0.12349)) == ("0.1235", "0.1234")
