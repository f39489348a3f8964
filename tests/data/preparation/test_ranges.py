"""Ranges from noisy counts: near the true ones where there are enough records, none where noise hides everything."""

import numpy as np
import pytest

from bayesdp.data.preparation.ranges import (
    BINS,
    OCTAVES,
    Reach,
    bin_counts,
    bins_for,
    octave_counts,
    range_of,
    range_of_octaves,
    reach,
    signed_counts,
)
from bayesdp.data.preparation.secret_normals import secret_normals

RNG = np.random.default_rng(0)
COLUMNS = {
    "ages": RNG.integers(18, 90, 4000).astype(float),
    "years": RNG.integers(1990, 2021, 4000).astype(float),
    "incomes": RNG.lognormal(10, 0.7, 4000),
    "normal": RNG.normal(size=4000),
    "small": RNG.normal(5e-7, 1e-7, 4000),
    "large and negative": -RNG.uniform(1e15, 3e15, 4000),
    "shares": RNG.random(4000),
}


def found(values, std, draw=1):
    octaves, noise = octave_counts(values), secret_normals(draw, "first", len(OCTAVES))
    known = reach(octaves + std * noise, std)
    if known is None:
        return None
    bins = bins_for(known, std)
    return range_of(bin_counts(values, known.most, bins) + std * secret_normals(draw, "second", bins), known, std)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("std", [4.0, 20.0])
def test_most_values_lie_in_a_range_of_their_size(name, std):
    values = COLUMNS[name]
    low, high, mean, scale = found(values, std)
    inside = ((low <= values) & (values <= high)).mean()
    assert inside > (0.88 if std == 4 else 0.7)
    middle = np.quantile(values, 0.98) - np.quantile(values, 0.02)
    assert high - low < 2.5 * middle
    clipped = np.clip(values, low, high)
    assert abs(clipped.mean() - mean) < 0.3 * clipped.std()
    assert 0.7 < scale / clipped.std() < 2.0


def test_without_noise_the_bins_are_the_values_own():
    values = np.array([1.5, -1.5, 0.0, 3.0, 1e-30, 2.0])
    octaves = octave_counts(values)
    assert octaves.sum() == 4  # neither zero nor what is next to it
    assert {int(OCTAVES[place]): int(octaves[place]) for place in np.flatnonzero(octaves)} == {1: 2, 2: 2}
    bins = bin_counts(values, 2.0, 256)
    assert bins.sum() == 5  # 3 lies beyond
    assert bins[-1] == 1  # 2 itself in the last bin
    assert bins[128] == 2


def test_there_are_as_many_bins_as_can_stand_out_of_the_noise():
    counts = [bins_for(Reach(1.0, mass), 10.0) for mass in (-5.0, 30.0, 130.0, 1e3, 1e9)]
    assert counts == [8, 8, 16, 128, 256]
    assert bins_for(Reach(1.0, 5.0), 0.0) == BINS[1]


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "years"])  # those are 0.01 of their size
def test_few_records_find_middle_and_scale_under_noise_of_a_sixteenth_of_them(name):
    """Of 256 bins none would stand out: put together in sixteens they have four times the noise."""
    values = COLUMNS[name][:160]
    middles, scales = [], []
    for draw in range(20):
        known = found(values, 10.0, draw)
        assert known is not None
        middles.append(abs(known.mean - values.mean()) / values.std())
        scales.append(known.scale / values.std())
    assert np.median(middles) < 0.6
    assert 0.4 < np.median(scales) < 2.0


def test_noise_alone_is_hardly_ever_taken_for_values():
    assert sum(found(np.zeros(500), 10.0, draw) is not None for draw in range(300)) < 30


def test_few_values_are_not_found_and_a_constant_is():
    assert found(COLUMNS["ages"][:20], 30.0) is None
    low, high, *_ = found(np.full(4000, 3.7), 20.0)
    assert low <= 3.7 <= high
    assert high - low < 0.2


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (np.linspace(11, 15, 200), 4, 32),
        (-np.linspace(70, 160, 200), -512, -32),
        (np.tile([0.0, 1.0], 100), 0, 4),
        (np.random.default_rng(0).normal(size=200), -8, 8),
    ],
)
def test_one_histogram_finds_octaves_signs_and_zeros(values, low, high):
    counts = signed_counts(values)
    assert counts.sum() == len(values)  # each value counts once: a record moves one count by 1
    found = range_of_octaves(counts + 15 * np.random.default_rng(1).normal(size=len(counts)), 15.0)
    assert low <= found.low < found.high <= high
    assert np.mean((values >= found.low) & (values <= found.high)) > 0.9
    inside = (np.clip(values, found.low, found.high) - found.mean) / found.scale
    assert 0.1 < inside.std() < 2


def test_one_histogram_of_nothing_but_noise_finds_nothing():
    noise = 15 * np.random.default_rng(2).normal(size=2 * len(OCTAVES) + 1)
    assert range_of_octaves(noise, 15.0) is None
