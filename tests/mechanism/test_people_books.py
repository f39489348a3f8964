"""The books of people against the gradient of each person by autodiff, clipped by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import People
from bayesdp.mechanism import (
    Activation,
    AvgPool,
    BookKeeping,
    Conv2D,
    Dense,
    Flatten,
    ModelLoss,
    PeopleBooks,
    PeopleLoss,
    PerExample,
    Sequential,
    Tapped,
    gradients_of,
    random_subset,
)

OWNERS = np.array([0, 1, 0, 2, 2, 2, 3, 0, 4, 5, 5, 4, 4, 4])
MODELS = {
    "dense": (Sequential((Dense(5), Activation("tanh"), Dense(3))), (4,)),
    "convolution": (
        Sequential((Conv2D(3, 3), Activation("relu"), AvgPool(), Conv2D(4, 2), Flatten(), Dense(3))),
        (6, 6, 1),
    ),
}


def problem(name):
    model, shape = MODELS[name]
    params = model.init(jax.random.key(0), shape)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(len(OWNERS), *shape)).astype(np.float32)
    loss = ModelLoss(model, lambda logits, y: jax.nn.logsumexp(logits) - logits[y])
    return PeopleLoss(loss), params, (x, np.arange(len(OWNERS)) % 3)


@pytest.mark.parametrize("name", MODELS)
def test_the_books_give_the_gradient_of_each_person_clipped_once(name):
    loss, params, rows = problem(name)
    people = jax.tree.map(jnp.asarray, People.of(rows, OWNERS, most=4, seed=0))
    mask = jnp.array([True, True, True, False, True, True])
    subset = random_subset(jax.random.key(5), params, 0.5)
    cases = [(0.6, None), (None, None), (0.6, subset)]

    @jax.jit
    def everything(params):
        books, general = PeopleBooks(loss, 2), PerExample(loss, "vmap")
        ours = [books.clip_sum(params, people, mask, *case) for case in cases]
        return (
            ours,
            [general.clip_sum(params, people, mask, *case) for case in cases],
            books.norms(params, people, mask, 0.6),
        )

    ours, wanted, alone = everything(params)
    by_row = jax.jit(jax.vmap(jax.grad(loss.loss), (None, 0)))(params, rows)
    flat = np.concatenate(
        [np.asarray(leaf, np.float64).reshape(len(OWNERS), -1) for leaf in jax.tree.leaves(by_row)], 1
    )
    whole = np.array([flat[owner == OWNERS].sum(0) for owner in range(6)])
    sizes = np.linalg.norm(whole, axis=1)
    clipped = np.minimum(sizes, 0.6) * np.asarray(mask)
    assert (sizes > 0.6).any()
    np.testing.assert_allclose(ours[0][1].raw, sizes * np.asarray(mask), rtol=1e-5)
    np.testing.assert_allclose(ours[0][1].clipped, clipped, rtol=1e-5)
    np.testing.assert_allclose(alone.clipped, clipped, rtol=1e-5)
    total = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(ours[0][0])])
    np.testing.assert_allclose(total, (clipped / sizes) @ whole, rtol=1e-4, atol=1e-6)
    for mine, other in zip(ours, wanted, strict=True):
        for one, two in zip(jax.tree.leaves(mine), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_what_fills_up_the_lines_does_not_matter():
    loss, params, rows = problem("dense")
    few, many = (People.of(rows, OWNERS, most=most, seed=0) for most in (4, 7))
    one, two = (PeopleBooks(loss).clip_sum(params, people, jnp.ones(6, bool), 0.6) for people in (few, many))
    for mine, other in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-7)


def test_the_fast_way_is_taken_where_there_is_one():
    loss, _, _ = problem("dense")
    assert isinstance(gradients_of(loss), PeopleBooks)
    assert isinstance(gradients_of(loss.loss), BookKeeping)
    assert isinstance(gradients_of(PeopleLoss(lambda params, row: 0.0)), Tapped)
