import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from bayesdp import InputError
from bayesdp.mechanism import Activation, AvgPool, Conv2D, Dense, Flatten, MaxPool, Sequential
from bayesdp.mechanism.patches import Window, convolve, few, first, last, patches, pool, pull_back, window_maxima

KEY = jax.random.key(0)


def direct_convolution(layer, kernel, x):
    """y[p] = Σ_d x[p stride + d] W[d], position by position in NumPy."""
    before = [layer.margins(size) for size in x.shape[1:3]]
    x = np.pad(x, ((0, 0), *before, (0, 0)))
    rows, columns = ((x.shape[i] - layer.kernel) // layer.stride + 1 for i in (1, 2))
    y = np.zeros((len(x), rows, columns, kernel.shape[-1]))
    for i in range(rows):
        for j in range(columns):
            a, b = i * layer.stride, j * layer.stride
            y[:, i, j] = np.tensordot(x[:, a : a + layer.kernel, b : b + layer.kernel], kernel, axes=3)
    return y


@pytest.mark.parametrize("channels", [3, 32])
def test_convolutions_are_the_sum_of_the_definition_in_both_ways(channels):
    kinds = [("SAME", 3, 1), ("VALID", 4, 1), ("SAME", 4, 3), ("VALID", 3, 2), ("SAME", 2, 3)]
    layers = [Conv2D(channels, kernel, stride, padding) for padding, kernel, stride in kinds]
    x = jax.random.normal(jax.random.key(1), (3, 9, 8, 2))
    given = []
    for layer in layers:
        weights, shape = layer.init(KEY, (9, 8, 2))
        given.append((weights | {"bias": jnp.arange(float(channels))}, jax.random.normal(KEY, (3, *shape))))

    @jax.jit
    def everything(x, given):
        results = []
        for layer, (weights, g) in zip(layers, given, strict=True):
            there, back = (first, last) if few(channels) else (lambda v: v, lambda v: v)
            window, kernel = Window.of(layer, x.shape[1:3]), weights["kernel"]
            theirs, pull = jax.vjp(lambda v, layer=layer, weights=weights: layer.apply(weights, v), x)
            pulled = back(pull_back(window, kernel, there(g), there(x)))
            results.append((theirs, back(convolve(window, kernel, there(x))) + weights["bias"], pull(g)[0], pulled))
        return results

    for layer, (weights, g), (theirs, ours, back, pulled) in zip(layers, given, everything(x, given), strict=True):
        y = direct_convolution(layer, np.asarray(weights["kernel"]), np.asarray(x)) + np.arange(channels)
        assert y.shape == g.shape
        assert np.allclose(theirs, y, atol=1e-4)
        assert np.allclose(ours, y, atol=1e-4)
        assert np.allclose(pulled, back, atol=1e-4)
        seen = patches(Window.of(layer, x.shape[1:3]), first(x))
        assert seen.shape == (3, layer.kernel**2 * 2, g.shape[1] * g.shape[2])


@pytest.mark.parametrize(("layer", "start", "reduce"), [(MaxPool(3), -jnp.inf, lax.max), (AvgPool(3), 0.0, lax.add)])
def test_pooling_takes_windows_side_by_side_wherever_the_channels_are(layer, start, reduce):
    x, g = jax.random.normal(KEY, (2, 10, 7, 4)), jax.random.normal(jax.random.key(1), (2, 3, 2, 4))
    wanted = lax.reduce_window(x, start, reduce, (1, 3, 3, 1), (1, 3, 3, 1), "VALID")
    wanted = wanted / 9 if reduce is lax.add else wanted
    assert layer.init(KEY, (10, 7, 4))[1] == (3, 2, 4)

    @jax.jit
    def both(x):
        ways = [lambda v: layer.apply(None, v), lambda v: last(pool(layer, first(v)))]
        return [(y, back(g)[0]) for y, back in (jax.vjp(way, x) for way in ways)]

    (there, back), (in_front, back_in_front) = both(x)
    assert np.allclose(there, wanted, atol=1e-6)
    assert np.allclose(in_front, wanted, atol=1e-6)
    assert np.allclose(back, back_in_front, atol=1e-6)


def test_the_gradient_of_a_largest_entry_goes_to_the_first_of_several_as_xla_sends_it():
    x = jnp.asarray(np.random.default_rng(0).integers(0, 2, (2, 5, 6)), jnp.float32)
    ways = [
        lambda v: window_maxima((1, 2, 3), v),
        lambda v: lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 3), (1, 2, 3), "VALID"),
    ]
    (ours, back), (theirs, wanted) = (jax.vjp(way, x) for way in ways)
    assert np.array_equal(ours, theirs)
    assert np.array_equal(back(jnp.ones_like(ours))[0], wanted(jnp.ones_like(ours))[0])
    holes = x.at[0, 0, :2].set(jnp.asarray([1.0, jnp.nan]))
    assert np.array_equal(*(way(holes) for way in ways), equal_nan=True)


def test_a_model_has_weights_for_the_layers_that_learn_and_its_outputs_have_the_last_shape():
    model = Sequential((Conv2D(4, 3), Activation("tanh"), MaxPool(), Flatten(), Dense(5), Activation("relu"), Dense(2)))
    params = model.init(KEY, (8, 8, 1))
    assert [p["kernel"].shape for p in params] == [(3, 3, 1, 4), (64, 5), (5, 2)]
    assert model.apply(params, jnp.ones((7, 8, 8, 1))).shape == (7, 2)
    assert float(jnp.std(params[1]["kernel"])) == pytest.approx((2 / 69) ** 0.5, rel=0.1)


def test_records_do_not_see_each_other():
    model = Sequential((Conv2D(4, 3), Activation("selu"), AvgPool(), Flatten(), Dense(2)))
    params = model.init(KEY, (8, 8, 1))
    x = jax.random.normal(KEY, (5, 8, 8, 1))
    changed = model.apply(params, x.at[2].set(jnp.nan))
    assert np.allclose(np.delete(changed, 2, 0), np.delete(model.apply(params, x), 2, 0), atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "shape", "word"),
    [
        (Dense(3), (4, 4, 1), "Flatten"),
        (Dense(0), (4,), "units"),
        (Conv2D(3, 3), (16,), "images"),
        (Conv2D(3, 9, padding="VALID"), (4, 4, 1), "pixels"),
        (Conv2D(3, 3, stride=0), (4, 4, 1), "stride"),
        (MaxPool(5), (4, 4, 1), "pixels"),
        (AvgPool(0), (4, 4, 1), "window"),
    ],
)
def test_layers_that_do_not_fit_are_refused(layer, shape, word):
    with pytest.raises(InputError, match=word):
        Sequential((layer,)).init(KEY, shape)


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="activation"):
        Activation("swoosh")
    with pytest.raises(InputError, match="padding"):
        Conv2D(3, 3, padding="same")
