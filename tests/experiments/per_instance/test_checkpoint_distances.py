"""A number from checkpoints and a record alone: the norms of a study's own checkpoints, and what is made of them."""

import numpy as np
import pytest
import study_toy as toy

from bayesdp.errors import InputError
from bayesdp.experiments.per_instance.checkpoint_distances import distances
from bayesdp.experiments.per_instance.side_by_side import of_run


def test_distances_are_clipped_norms():
    checkpoints = [[{"theta": np.array([v], np.float32)} for v in run] for run in ([0.4, 0.1], [0.4, 5.0])]
    records = np.array([[0.9], [-0.5]], np.float32)
    found = distances(toy.loss, checkpoints, records, toy.CLIP)
    exact = [[[0.25, 0.45], [0.4, 0.3]], [[0.25, 0.45], [1, 1]]]
    np.testing.assert_allclose(found, exact, rtol=1e-5)  # lengths are rounded up (H20)
    assert np.all(found >= np.array(exact) * (1 - 1e-7))
    lines = of_run(found, [0, 3], noise_multiplier=4.0, sampling_rate=1.0, steps=6, order=2, delta=1e-2)
    assert all(line.values.shape == (2,) for line in lines)


@pytest.mark.parametrize(
    ("runs", "clip", "words"), [([], 1.0, "checkpoints"), ([[1], [1, 2]], 1.0, "equally"), ([[1]], None, "clip_norm")]
)
def test_bad_input(runs, clip, words):
    with pytest.raises(InputError, match=words):
        distances(toy.loss, runs, toy.OUTSIDER, clip)
