"""Lengths against float64 for vectors that float32 finds hard."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp.mechanism.lengths import UNIT, balanced, length, roundings, together, two_to_the

TINY = float(np.finfo(np.float32).tiny)


def hard(entries, seed=0):
    """Rows of many scales; in some there is a large entry, beside which the others vanish one by one, not together."""
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal(entries) * 10.0**power for power in (-37, -30, -21, -10, 0, 10, 18, 30, 37)]
    small = np.full(entries, 2.0**-13)
    small[0] = 1
    rows += [small, small[::-1], small * 1e30, small * 1e-30, np.zeros(entries), np.eye(1, entries)[0] * 3e38]
    rows += [np.exp(rng.uniform(-80, 80, entries))]
    return np.stack(rows).astype(np.float32)


@pytest.mark.parametrize("entries", [1, 7, 64, 65, 1000, 300_001])
def test_a_length_is_an_upper_bound_to_its_stated_error(entries):
    rows = hard(entries)
    rows = np.where(np.abs(rows) < TINY, 0, rows)  # XLA takes these for 0, wherever they are used
    exact = np.linalg.norm(rows.astype(np.float64), axis=1)
    found = np.asarray(jax.jit(length)(rows), np.float64)
    inside = exact < 3e38
    assert np.all(found[inside] >= exact[inside] * (1 - 1e-12))
    assert np.all(found[inside] <= exact[inside] * (1 + 2.0**-15) + TINY)
    assert np.all(found[~inside] > 3e38)


def test_one_sum_after_the_other_would_be_too_short():
    small = hard(300_001)[9]
    one_by_one = np.sqrt(np.cumsum(np.square(small), dtype=np.float32)[-1])
    assert one_by_one < 0.999 * np.linalg.norm(small.astype(np.float64))


def test_what_is_not_finite_has_no_finite_length():
    rows = np.ones((3, 100), np.float32)
    rows[0, 50], rows[1, 99] = np.nan, -np.inf
    assert np.isfinite(length(rows)).tolist() == [False, False, True]


def test_balancing_changes_no_digit():
    rows = hard(50)[2:7]
    even, scale = balanced(rows)
    assert np.array_equal(np.asarray(even, np.float64) * np.asarray(scale, np.float64)[:, None], rows)
    assert np.all((np.abs(even).max(1) >= 0.5) & (np.abs(even).max(1) <= 4))


def test_roundings_stay_below_what_is_stated():
    sizes = [*range(1, 5000), *(2**31 - 1 - 997 * k for k in range(2000))]
    assert max(roundings(n) for n in sizes) < 450
    assert (450 / 2 + 2) * UNIT < 2.0**-16
    assert (roundings(51_200) / 2 + 2) * UNIT < 6e-6


def test_parts_are_put_together_at_every_scale():
    rng = np.random.default_rng(1)
    for scale in (1e-37, 1e-20, 1.0, 1e20, 1e37):
        for parts in (1, 2, 3, 300):
            sizes = np.float32(scale) * rng.uniform(size=(parts, 4)).astype(np.float32)
            exact = np.linalg.norm(sizes.astype(np.float64), axis=0)
            assert np.allclose(together([jnp.asarray(one) for one in sizes]), exact, rtol=7 * UNIT, atol=TINY)


def test_powers_are_those_that_frexp_and_ldexp_give():
    """At every exponent, at the ends of every binade, and for what has no exponent."""
    ends = np.ldexp(np.float32(1), np.arange(-126, 128)).astype(np.float32)
    values = np.concatenate([ends, np.nextafter(ends, 0), ends * np.float32(1.5), [0, TINY / 4, np.inf, np.nan]])
    values = values.astype(np.float32)
    known = np.isfinite(values) & ((values >= TINY) | (values == 0))
    exponents = np.clip(np.frexp(np.where(known & (values > 0), values, 1))[1], -125, 126)
    found = np.asarray(balanced(values[:, None])[1])
    np.testing.assert_array_equal(found[known], np.ldexp(1.0, exponents)[known])
    assert np.isin(found, np.ldexp(1.0, np.arange(-125, 127))).all()
    whole = np.arange(-126, 128)
    np.testing.assert_array_equal(two_to_the(jnp.asarray(whole, jnp.int32)), np.ldexp(1.0, whole))
