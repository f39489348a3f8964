import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from bayesdp.mechanism import add_noise, step_keys
from bayesdp.mechanism.noise import circle, exponential, normal

TREE = {"a": jnp.zeros((300, 41)), "b": (jnp.zeros(()), jnp.zeros(7_000))}


def entries(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def test_noise_has_the_standard_deviation_and_not_two_thirds_or_three_halves_of_it_however_it_is_shared():
    @jax.jit
    def shared():
        zero = jax.tree.map(jnp.zeros_like, TREE)
        draws = [[add_noise(jax.random.key(3), zero, 0.7, part=i, parts=n) for i in range(n)] for n in (1, 2, 3)]
        return [jax.tree.map(lambda *leaves: sum(leaves), *own) for own in draws]

    for total in shared():
        drawn = entries(total)
        assert stats.kstest(drawn / 0.7, "norm").pvalue > 1e-3
        for wrong in (2 / 3, 3 / 2):
            assert stats.kstest(drawn / (0.7 * wrong), "norm").pvalue < 1e-12
        assert np.unique(drawn).size > drawn.size - 40  # float32 repeats a few values by chance


def test_parts_share_the_work_without_overlap():
    own = jax.jit(lambda part: add_noise(jax.random.key(1), TREE, 1.0, part=part, parts=2))
    first, second = (entries(own(part)) for part in range(2))
    assert np.all((first == 0) != (second == 0))
    assert abs((first != 0).mean() - 0.5) < 0.01


def test_no_noise_leaves_the_tree_and_a_tree_keeps_its_shape():
    tree = {"a": jnp.arange(5.0), "b": jnp.ones((2, 3))}
    same = jax.jit(lambda tree: add_noise(jax.random.key(0), tree, 0.0))(tree)
    assert jax.tree.structure(same) == jax.tree.structure(tree)
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(same), jax.tree.leaves(tree), strict=True))


def test_steps_leaves_and_purposes_have_independent_noise():
    @jax.jit
    def everything():
        keys = jnp.stack([key for step in range(3) for key in step_keys(jax.random.key(0), step)])
        leaves = add_noise(jax.random.key(9), {"a": jnp.zeros(20_000), "b": jnp.zeros(20_000)}, 1.0)
        return jax.vmap(lambda key: normal(key, (20_000,)))(keys), leaves["a"], leaves["b"]

    draws = np.vstack(everything())
    correlations = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    assert np.abs(correlations).max() * np.sqrt(20_000) < 4.5


def test_halves_of_one_draw_are_independent():
    x, y = np.asarray(jax.jit(lambda key: normal(key, (2, 40_000)))(jax.random.key(4)))
    assert abs(np.corrcoef(x, y)[0, 1]) < 4 / np.sqrt(40_000)
    assert abs(np.corrcoef(x**2, y**2)[0, 1]) < 4 / np.sqrt(40_000)


def test_exponentials_are_accurate_at_both_ends():
    bits = np.array([0, 1, 2, 1000, 2**31 - 1, 2**31, 2**32 - 1000, 2**32 - 2, 2**32 - 1], np.uint32)
    wanted = -np.log1p(-(2.0**32 - bits - 0.5) / 2**32)
    wanted[:5] = -np.log((bits[:5] + 0.5) / 2**32)
    assert np.allclose(np.asarray(jax.jit(exponential)(bits)), wanted, rtol=1e-6)
    assert float(jax.jit(exponential)(jnp.uint32(0))) > 22.8  # 6.7 standard deviations


def test_angles_cover_the_circle_evenly():
    bits = np.arange(0, 2**32, 2**32 // 4096, dtype=np.uint64).astype(np.uint32)
    x, y = (np.asarray(v, np.float64) for v in jax.jit(circle)(bits))
    assert np.abs(np.hypot(x, y) - 1).max() < 2e-7
    angles = np.sort(np.arctan2(y, x))
    assert np.allclose(np.diff(angles), 2 * np.pi / 4096, atol=1e-6)
