"""Declared class weights: what they do to a record's loss, and which words are no weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.learn.models.class_weights import WeightedCrossEntropy, class_weights
from bayesdp.learn.models.networks import cross_entropy


def test_a_records_gradient_is_times_its_weight():
    logits = jnp.array([0.3, -0.2, 1.0])
    loss = WeightedCrossEntropy((1.0, 2.5, 4.0))
    for label, weight in enumerate(loss.weights):
        plain, weighted = (jax.grad(one)(logits, jnp.int32(label)) for one in (cross_entropy, loss))
        assert np.allclose(weighted, weight * plain, rtol=1e-6)


def test_words_become_weights_in_the_order_of_the_classes():
    assert class_weights("yes=3,no=0.5", ("no", "yes")) == (0.5, 3.0)
    assert class_weights(" a=b = 2", ("a=b", "c")) == (2.0, 1.0)
    assert class_weights(None, ("no", "yes")) == ()


@pytest.mark.parametrize("words", ["yes", "maybe=2", "yes=1,yes=2", "yes=x", "yes=0", "yes=-1", "yes=inf", ""])
def test_other_words_are_refused(words):
    with pytest.raises(InputError, match="class_weights"):
        class_weights(words, ("no", "yes"))


def test_numbers_have_no_classes_to_weigh():
    with pytest.raises(InputError, match="no classes"):
        class_weights("yes=3", ())
