"""Coverage under DP noise, in small: 30 data sets."""

import numpy as np
import pytest
from pictures import drawn

from bayesdp.experiments.common.style import pick
from bayesdp.experiments.dpvi import coverage


@pytest.fixture(scope="module")
def rows():
    return coverage.compute(1, data_sets=30, records=1000, steps=600)


def test_noise_aware_intervals_of_a_full_rank_guide_cover_and_plain_ones_do_not(rows):
    (aware,), (plain,) = (pick(rows, guide="full-rank", way=way, level=0.9) for way in ("noise-aware", "plain"))
    assert 0.8 <= aware["coverage"] <= 0.98
    assert plain["coverage"] < aware["coverage"] - 2 * plain["standard_error"]


def test_wider_levels_cover_more_and_noise_aware_intervals_are_wider(rows):
    for guide in ("mean-field", "full-rank"):
        aware, plain = (pick(rows, guide=guide, way=way) for way in ("noise-aware", "plain"))
        for own in (aware, plain):
            shares = [row["coverage"] for row in own]
            assert shares == sorted(shares)
        assert all(a["width"] > p["width"] for a, p in zip(aware, plain, strict=True))


def test_a_simulated_data_set_follows_its_model():
    one = coverage.simulated(np.random.default_rng(0), 50_000)
    chance = 1 / (1 + np.exp(-one.x @ one.truth))
    assert (one.x[:, -1] == 1).all()
    # E (y - p) x = 0 at the truth, to four standard errors
    assert np.abs(((one.y - chance)[:, None] * one.x).mean(axis=0)).max() < 4 * 0.5 / np.sqrt(50_000)


def test_the_picture_has_a_panel_for_each_guide(rows):
    figure = drawn("dpvi-coverage", rows)
    assert [axes.get_title() for axes in figure.axes] == ["full-rank guide", "mean-field guide"]
