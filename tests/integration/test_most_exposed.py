"""Who is most exposed: a record with a wrong label; who least: an easy one that is there twice (issue 6; E3, H3).

Images have one norm, so that it is not the ink that decides: with images as they are, an easy one with much ink is in
the middle of the field, having paid while the model was still learning. The clip norm of 6 is above the √2 · √(4² + 1)
that a gradient of the linear model can have: nobody is clipped, and nobody is at the worst case.
"""

import jax
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp.data import load
from bayesdp.learn.models.networks import classifier

pytestmark = pytest.mark.simulation

SEEDS = (0, 1, 2)
RECORDS = 1000
LOSS = classifier("logistic", 10)


def plan():
    return bd.SGD(
        optimizer=optax.sgd(1.0),
        sampling_rate=0.5,
        steps=200,
        clip_norm=6.0,
        noise_multiplier=2.0,
        measure_every=10,
        engine="rdp",
    )


@pytest.fixture(scope="module")
def setting():
    """A plan, where it starts, the records, and how hard each of them is for a model that saw other noise."""
    digits, chosen = load("digits"), plan()
    x = digits.x[:RECORDS]
    x = (4 * x / np.linalg.norm(x.reshape(RECORDS, -1), axis=1)[:, None, None, None]).astype(np.float32)
    y = digits.y[:RECORDS]
    start = jax.tree.map(np.zeros_like, LOSS.model.init(jax.random.key(0), x.shape[1:]))
    # As many records as later, for one compiled program.
    pilot = chosen.fit(LOSS, start, (np.concatenate([x, x[:1]]), np.append(y, y[:1])), members=0, seed=99)
    hard = np.asarray(jax.vmap(LOSS, in_axes=(None, 0))(pilot.params, (x, y)))
    return chosen, start, x, y, hard


@pytest.mark.parametrize("seed", SEEDS)
def test_an_outlier_is_among_the_first_and_an_easy_twin_among_the_last(setting, seed):
    chosen, start, x, y, hard = setting
    rng, easy = np.random.default_rng(seed), int(np.argmin(hard))
    # One whose label was learnt: a wrong one is then out of place.
    outlier = int(rng.choice(np.flatnonzero((hard < np.median(hard)) & (np.arange(RECORDS) != easy))))
    x, y = np.concatenate([x, x[easy : easy + 1]]), np.append(y, y[easy])
    y[outlier] = (y[outlier] + rng.integers(1, 10)) % 10
    run = chosen.fit(LOSS, start, (x, y), members=0, watch="everyone", seed=seed)
    epsilon = run.losses()
    rank = np.empty(len(x), int)
    rank[np.argsort(-epsilon, kind="stable")] = np.arange(len(x))
    assert rank[outlier] < 0.01 * len(x)
    assert min(rank[easy], rank[-1]) >= 0.9 * len(x)
    # Twins have the same gradients, hence the same ε.
    assert epsilon[easy] == pytest.approx(epsilon[-1], rel=1e-6)
    assert epsilon[outlier] > 4 * epsilon[easy]
    assert epsilon.max() < run.tallies.plan_dp().epsilon
