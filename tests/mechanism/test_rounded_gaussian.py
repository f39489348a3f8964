import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayesdp import InputError
from bayesdp.mechanism import fresh_key, seeded_key
from bayesdp.mechanism import rounded_gaussian as rounded

ALL = 2**119


@pytest.fixture(scope="module")
def chances():
    return {law: rounded.chances(law) for law in ("rounded", "discrete")}


def bits_of(numbers):
    parts = zip(*map(rounded.parts_of, numbers), strict=True)
    return rounded.Bits(*(jnp.asarray(np.array(part, np.uint32)) for part in parts))


def test_the_chances_are_those_of_a_rounded_gaussian(chances):
    with mp.workdps(50):
        for m in [*range(40), *range(40, 15_598, 97), 15_598]:
            exact = ALL * mp.erf((m + mp.mpf(1) / 2) / (rounded.SMALL * mp.sqrt(2)))
            assert abs(chances["rounded"][m] - exact) <= 1


def test_the_chances_are_those_of_a_discrete_gaussian(chances):
    with mp.workdps(50):
        weights = [mp.exp(-mp.mpf(j * j) / (2 * rounded.SMALL**2)) for j in range(23_000)]
        total = 2 * mp.fsum(weights) - 1
        for m in (0, 1, 777, 5000, 15_598):
            exact = ALL * (2 * mp.fsum(weights[: m + 1]) - 1) / total
            assert abs(chances["discrete"][m] - exact) <= 1


@pytest.mark.parametrize("law", ["rounded", "discrete"])
def test_every_row_of_a_table_is_reached_exactly_at_its_chance(law, chances):
    """On both sides of every chance: what is drawn is exactly the law of the table, tails and all."""
    found = jax.jit(lambda bits: rounded.magnitude(bits, law))
    own = chances[law][:-1]  # nothing passes the last
    assert np.array_equal(found(bits_of([chance - 1 for chance in own])), np.arange(len(own)))
    assert np.array_equal(found(bits_of(own)), np.arange(1, len(own) + 1))
    assert np.array_equal(found(bits_of([0, ALL - 1])), [0, len(own)])


def test_the_distance_adds_up_all_that_differs(chances):
    with mp.workdps(60):
        rows, asking = len(chances["rounded"]), mp.mpf(2) ** -55
        # Two of the eight lookups of a block whose 55 bits are those of a row, so that both ask for the shared words.
        shared = 28 * (rows * asking) ** 2 / 4
        rounding = 2 * rows * mp.mpf(2) ** -120
        tails = 2 * mp.erfc((rows - mp.mpf(1) / 2) / (rounded.SMALL * mp.sqrt(2)))
        # X + kY against round(sN), relatively, by Poisson's summation formula.
        width = rounded.SMALL * rounded.STEP / mp.sqrt(1 + rounded.STEP**2) / rounded.STEP
        summed = 3 * mp.exp(-2 * mp.pi**2 * width**2)
        assert shared + rounding + tails + summed < rounded.DISTANCE
        assert shared + rounding + tails + summed > rounded.DISTANCE / 4  # and not by much


def test_the_sum_of_both_laws_is_one_rounded_gaussian():
    """X + kY at smaller numbers with the same s₁/k, added up exactly, is within the bound of round(sN)."""
    with mp.workdps(60):
        small, step = 25, 12
        scale = small * mp.sqrt(1 + step**2)

        def fine(m):
            return (
                mp.erf((m + mp.mpf(0.5)) / (small * mp.sqrt(2))) - mp.erf((m - mp.mpf(0.5)) / (small * mp.sqrt(2)))
            ) / 2

        reach = 16 * small
        weights = {j: mp.exp(-mp.mpf(j * j) / (2 * small**2)) for j in range(-reach, reach + 1)}
        total = mp.fsum(weights.values())
        for z in (0, 1, 5, 6, 301, 1200):
            found = (
                mp.fsum(fine(z - step * j) * weights[j] for j in range(z // step - 30, z // step + 31) if j in weights)
                / total
            )
            exact = (
                mp.erf((z + mp.mpf(0.5)) / (scale * mp.sqrt(2))) - mp.erf((z - mp.mpf(0.5)) / (scale * mp.sqrt(2)))
            ) / 2
            assert abs(found / exact - 1) < 3 * mp.exp(-2 * mp.pi**2 * (mp.mpf(small) / step) ** 2 * mp.mpf("0.99"))


def test_draws_have_the_law_of_a_rounded_gaussian_at_all_scales():
    drawn = np.asarray(jax.jit(lambda key: rounded.rounded_gaussians(key, 400_000))(seeded_key(5, "lattice")))
    assert stats.kstest(drawn / rounded.SCALE, "norm").pvalue > 1e-3
    for period in (2, 7, 64, rounded.STEP):  # the last digits are uniform: no pattern of the tables is left
        assert stats.chisquare(np.bincount(drawn % period, minlength=period)).pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 5 / np.sqrt(400_000)
    assert abs(np.corrcoef(drawn[:-5] ** 2.0, drawn[5:] ** 2.0)[0, 1]) < 5 / np.sqrt(400_000)


def test_devices_that_share_a_key_draw_others():
    key = fresh_key("lattice")
    one, two = (np.asarray(rounded.rounded_gaussians(key, 100, part)) for part in (0, 1))
    assert not np.isin(one, two).any()


def test_another_kind_of_key_is_refused():
    with pytest.raises(InputError, match="ChaCha20"):
        rounded.rounded_gaussians(fresh_key(), 3)
