import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdp.audit.membership import membership
from bayesdp.errors import InputError
from bayesdp.learn import SGD

RNG = np.random.default_rng(0)
X = (0.1 * RNG.normal(size=(30, 4))).astype(np.float32)
X[3] *= 100  # one person whose gradient is always clipped
Y = (X.sum(1) > 0).astype(np.float32)
Y[3] = 1 - Y[3]
PLAN = SGD(sampling_rate=0.8, steps=4, clip_norm=0.5, noise_multiplier=0.6, optimizer=optax.sgd(0.5))


def loss(params, record):
    x, y = record
    return jnp.logaddexp(0.0, x @ params) - y * (x @ params)


@pytest.mark.simulation
def test_the_outlier_is_found_and_nobody_is_above_their_own_epsilon():
    found = membership(PLAN, loss, jnp.zeros(4), (X, Y), [3, 5, 20], runs=600, failure=0.05, seed=1)
    assert found.names == ("record 4", "record 6", "record 21")
    assert (np.array(found.lower) <= found.upper).all()
    assert found.lower[0] > 1
    assert max(found.lower[1:]) < found.lower[0] / 2
    assert max(found.upper[1:]) < found.upper[0]


def test_what_cannot_be_attacked_is_refused():
    with pytest.raises(InputError, match="rows"):
        membership(PLAN, loss, jnp.zeros(4), (X, Y), [30])
    with pytest.raises(InputError, match="different records"):
        membership(PLAN, loss, jnp.zeros(4), (X, Y), [1, 1])
