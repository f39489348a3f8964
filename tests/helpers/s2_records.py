"""Made-up records for S2's experiments, and a short fit without privacy."""

import numpy as np

from bayesdp.experiments.common.abalone_adult import Split
from bayesdp.learn.vi.vi import VI

REFERENCE = VI(sampling_rate=0.5, steps=150, clip_norm=None, noise_multiplier=0)


def made_up(split_seed, data_dir=None):
    """Records that a logistic model of three features fits."""
    del data_dir
    rng = np.random.default_rng(split_seed)
    x = np.column_stack([np.ones(600), rng.normal(size=(600, 3))]).astype(np.float32)
    y = (rng.random(600) < 1 / (1 + np.exp(-x @ [0.5, 2.0, -2.0, 0.0]))).astype(np.int32)
    return Split(x[:400], y[:400], x[400:], y[400:], ())
