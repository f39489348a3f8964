"""Taps give the numbers of the general path, for models as people write them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_shelf import RECORDS, SHELF

from bayesdp.mechanism import PerExample, Tapped
from bayesdp.mechanism.lattice import per_length
from bayesdp.mechanism.subset import random_subset

CLIP = 0.4
HERE = jnp.arange(RECORDS) != 1


def close(ours, theirs, share=1e-5):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert np.allclose(a, b, rtol=share, atol=share * (1e-3 + float(np.abs(b).max())))


@pytest.mark.parametrize("name", SHELF)
def test_a_clipped_sum_and_its_norms_are_those_of_the_general_path(name):
    loss, params, examples = SHELF[name]()

    @jax.jit
    def both(params, examples):
        ways = (Tapped(loss), PerExample(loss, "vmap"))
        return [way.clip_sum(params, examples, HERE, CLIP) for way in ways]

    (ours, norms), (theirs, wanted) = both(params, examples)
    close(ours, theirs)
    close(norms, wanted)
    assert float(norms.raw[1]) == 0
    assert float(norms.raw.max()) > CLIP / 4


@pytest.mark.parametrize("name", ["plain: standardised weights", "equinox: bag of words"])
def test_subsets_layers_blocks_and_lattices_too(name):
    loss, params, examples = SHELF[name]()
    subset = random_subset(jax.random.key(1), params, 0.5)
    rule = jax.tree.map(lambda _: 0.2, params)
    rule = rule if isinstance(rule, dict | tuple | list) else CLIP
    step = per_length(0.01)

    @jax.jit
    def both(params, examples):
        def sums(way):
            whole, _ = way.clip_sum(params, examples, HERE, CLIP, per_unit=step)
            return (
                *way.clip_sum(params, examples, HERE, rule, subset),
                way.norms(params, examples, HERE, rule, subset),
                jax.tree.map(lambda leaf: leaf / step, whole),
            )

        return sums(Tapped(loss, block=2)), sums(PerExample(loss, "vmap"))

    ours, theirs = both(params, examples)
    close(ours[:3], theirs[:3])
    for a, b in zip(jax.tree.leaves(ours[3]), jax.tree.leaves(theirs[3]), strict=True):
        assert np.allclose(a, b, atol=3e-3)  # products are cut off in their factors


def test_what_is_not_finite_is_left_out_and_nobody_else_notices():
    loss, params, (x, y) = SHELF["flax: LeNet"]()
    bad = x.copy()
    bad[2] = np.inf
    bad[3] = 3e38
    clipped = jax.jit(lambda x, here: Tapped(loss, block=RECORDS).clip_sum(params, (x, y), here, CLIP))
    total, norms = clipped(bad, HERE)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(total))
    assert np.isinf(norms.raw[2:4]).all()
    assert np.array_equal(norms.clipped[2:4], [np.float32(CLIP)] * 2)
    close(total, clipped(x, HERE & (jnp.arange(RECORDS) < 2) | (jnp.arange(RECORDS) == 4))[0])


def ways(name):
    loss, params, examples = SHELF[name]()
    return {line.parameter: line.way for line in Tapped(loss).explain(params, examples)}


def test_it_says_which_parameter_takes_which_way_and_why():
    assert ways("plain: logistic regression")["['w']"].startswith("outer")
    assert ways("equinox: bag of words")["[0].weight"] == "only the rows that a record looks up"
    loops = ways("plain: loops")
    assert "stays shut, as a weight is chosen" in loops["['many']"]
    assert "each of 2 rounds" in loops["['w']"]
    assert "a loop begins with it" in loops["['start']"]
    own = ways("plain: own derivative")
    assert "custom_vjp_call" in own["['w']"]
    assert "convolution" in ways("flax: LeNet")["['params']['Conv_0']['kernel']"]


def test_a_loss_that_cannot_be_read_is_taken_record_by_record():
    def loss(params, x):
        jax.debug.print("{}", x)
        return jnp.sum(params * x)

    x = np.eye(3, dtype=np.float32)
    (line,) = Tapped(loss).explain(jnp.zeros(3), x)
    assert "record by record" in str(line)
    total, _ = jax.jit(lambda p: Tapped(loss).clip_sum(p, x, jnp.ones(3, bool), 0.5))(jnp.ones(3))
    assert np.allclose(total, 0.5, atol=1e-4)


def test_a_row_that_is_looked_up_in_two_places_counts_once_and_whole():
    """Two look-ups of one row had the length of two rows: a contribution of 1.41 C."""

    def loss(params, words):
        return jnp.sum((params[words[:1]].sum(0) + params[words[1:]].sum(0)) * jnp.arange(1.0, 5.0))

    table, words = jnp.ones((50, 4)), jnp.array([[3, 3], [3, 7]])
    there = jnp.ones(2, bool)
    assert Tapped(loss).explain(table, words)[0].way == "only the rows that a record looks up"
    for clip_norm in (0.1, 1e9):
        ours, exact = (one.clip_sum(table, words, there, clip_norm) for one in (Tapped(loss), PerExample(loss)))
        assert np.allclose(ours[0], exact[0], rtol=1e-5)
        assert np.allclose(ours[1].raw, exact[1].raw, rtol=1e-5)
    alone, _ = Tapped(loss).clip_sum(table, words[:1], there[:1], 0.1)
    assert np.linalg.norm(alone) <= 0.1
