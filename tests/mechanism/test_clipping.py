import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.mechanism import Automatic, Flat, PerExample, PerLayer, Unclipped, clip_rule, random_subset

RECORDS, FEATURES = 11, 6


def loss(params, example):
    """Logistic regression, whose gradient is known: (σ(z) - y) (x, 1)."""
    x, y = example
    z = x @ params["w"] + params["b"]
    return jax.nn.softplus(z) - y * z


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(RECORDS, FEATURES)) * rng.weibull(0.7, (RECORDS, 1))
    y = rng.uniform(size=RECORDS)  # not 0 or 1, where float32 loses the residual
    params = {"b": np.float64(0.3), "w": rng.normal(size=FEATURES)}
    residual = 1 / (1 + np.exp(-(x @ params["w"] + params["b"]))) - y
    gradients = {"b": residual, "w": residual[:, None] * x}
    mask = np.arange(RECORDS) % 4 != 1
    single = jax.tree.map(lambda v: jnp.asarray(v, jnp.float32), (params, (x, y)))
    return single[0], single[1], jnp.asarray(mask), gradients


def oracle(gradients, mask, clip_norm):
    """Clipped sums in float64, written from the formulas of the module."""
    b, w = gradients["b"], gradients["w"]
    size_b, size_w = np.abs(b), np.linalg.norm(w, axis=1)
    size = np.hypot(size_b, size_w)
    if isinstance(clip_norm, Automatic):
        fb = fw = clip_norm.norm / (size + clip_norm.gamma)
    elif isinstance(clip_norm, dict):
        fb, fw = 1 / np.maximum(1, size_b / clip_norm["b"]), 1 / np.maximum(1, size_w / clip_norm["w"])
    else:
        fb = fw = np.ones(RECORDS) if clip_norm is None else 1 / np.maximum(1, size / clip_norm)
    return (
        {"b": (mask * fb * b).sum(), "w": ((mask * fw)[:, None] * w).sum(0)},
        size,
        np.hypot(fb * size_b, fw * size_w),
    )


RULES = [0.4, None, {"b": 0.2, "w": 0.3}, Automatic(0.5, 0.02)]


@pytest.mark.parametrize("method", ["scan", "vmap"])
def test_sums_and_norms_are_those_of_the_formula(problem, method):
    params, examples, mask, gradients = problem
    engine = PerExample(loss, method)
    work = jax.jit(lambda *given: [(engine.clip_sum(*given, rule), engine.norms(*given, rule)) for rule in RULES])
    for clip_norm, ((total, norms), alone) in zip(RULES, work(params, examples, mask), strict=True):
        wanted, raw, clipped = oracle(gradients, np.asarray(mask), clip_norm)
        for name in wanted:
            assert np.allclose(total[name], wanted[name], rtol=1e-5, atol=1e-5)
        assert np.allclose(norms.raw, raw * np.asarray(mask), rtol=1e-5, atol=3e-6)
        assert np.allclose(norms.clipped, clipped * np.asarray(mask), rtol=1e-5, atol=3e-6)
        assert np.allclose(alone, norms, rtol=1e-6)


@pytest.mark.parametrize("clip_norm", [0.4, {"b": 0.2, "w": 0.3}, Automatic(0.5)], ids=str)
def test_one_record_moves_the_sum_by_its_clipped_norm_and_never_more_than_the_sensitivity(problem, clip_norm):
    params, (x, y), _, _ = problem
    everyone = jnp.ones(RECORDS, bool)
    clip_sum = jax.jit(lambda x, mask: PerExample(loss).clip_sum(params, (x, y), mask, clip_norm))
    x = x.at[3].mul(1e4)
    total, norms = clip_sum(x, everyone)
    bound = clip_rule(clip_norm).sensitivity
    for i in range(RECORDS):
        others, _ = clip_sum(x, everyone.at[i].set(False))
        moved = math.sqrt(sum(float(jnp.sum((total[name] - others[name]) ** 2)) for name in total))
        assert moved == pytest.approx(float(norms.clipped[i]), rel=1e-4, abs=1e-6)
        assert float(norms.clipped[i]) <= bound * (1 + 1e-6)
    assert float(norms.clipped.max()) > 0.7 * bound


@pytest.mark.parametrize("method", ["scan", "vmap"])
def test_a_record_that_is_not_finite_adds_nothing_and_is_reported_at_the_sensitivity(problem, method):
    params, (x, y), _, _ = problem
    everyone = jnp.ones(RECORDS, bool)
    engine = PerExample(loss, method)
    sums = jax.jit(lambda x, mask: [engine.clip_sum(params, (x, y), mask, rule) for rule in RULES])
    without = sums(x, everyone.at[2].set(False))
    for bad in (np.nan, np.inf, 1e30):
        results = sums(x.at[2].set(bad), everyone)
        for rule, (wanted, _), (total, norms) in zip(RULES, without, results, strict=True):
            for name in wanted:
                assert np.allclose(total[name], wanted[name], rtol=1e-5, atol=1e-6)
            assert float(norms.clipped[2]) == pytest.approx(clip_rule(rule).sensitivity)
            assert float(norms.raw[2]) == np.inf
            assert np.isfinite(np.delete(np.asarray(norms.raw), 2)).all()


@pytest.mark.parametrize("method", ["scan", "vmap"])
def test_a_subset_of_weights_is_taken_before_clipping(problem, method):
    params, examples, mask, gradients = problem
    subset = {"b": jnp.float32(0), "w": jnp.asarray([1, 0, 0, 1, 1, 0], jnp.float32)}
    total, norms = jax.jit(PerExample(loss, method).clip_sum)(params, examples, mask, 0.4, subset)
    chosen = {"b": gradients["b"] * 0, "w": gradients["w"] * np.asarray(subset["w"])}
    wanted, raw, _ = oracle(chosen, np.asarray(mask), 0.4)
    assert np.allclose(total["w"], wanted["w"], rtol=1e-5, atol=1e-6)
    assert float(total["b"]) == 0
    assert np.allclose(norms.raw, raw * np.asarray(mask), rtol=1e-5, atol=3e-6)


def test_a_random_subset_has_the_fraction_and_changes_with_the_key():
    tree = {"a": jnp.zeros((200, 300)), "b": jnp.zeros(40_000)}
    draw = jax.jit(lambda key: random_subset(key, tree, 0.1))
    first, second = (draw(jax.random.key(seed)) for seed in (0, 1))
    for name in tree:
        assert set(np.unique(first[name])) == {0.0, 1.0}
        assert float(first[name].mean()) == pytest.approx(0.1, abs=0.006)
        assert float((first[name] * second[name]).mean()) == pytest.approx(0.01, abs=0.003)
    with pytest.raises(InputError, match="fraction"):
        random_subset(jax.random.key(0), tree, 0.0)


def test_clip_norms_may_be_traced(problem):
    params, examples, mask, _ = problem
    traced = jax.jit(lambda c: PerExample(loss).clip_sum(params, examples, mask, c)[0])
    for norm in (0.1, 0.9):
        wanted = PerExample(loss).clip_sum(params, examples, mask, norm)[0]
        assert np.allclose(traced(norm)["w"], wanted["w"], rtol=1e-6)


def test_what_is_meant_by_a_clip_norm():
    assert clip_rule(2) == Flat(2.0)
    assert clip_rule(None) == Unclipped()
    assert clip_rule((3.0, 4.0)) == PerLayer((3.0, 4.0))
    assert clip_rule((3.0, 4.0)).sensitivity == 5.0
    assert clip_rule(None).sensitivity == math.inf
    rule = Automatic(0.5)
    assert clip_rule(rule) == rule


@pytest.mark.parametrize(
    "bad", [0, -1.0, math.nan, math.inf, "1", (1.0, 0.0), (), Automatic(-1.0), Automatic(1.0, 0.0), 1e-40, 1e40]
)
def test_a_bad_clip_norm_is_refused(bad):
    with pytest.raises(InputError, match="clip"):
        clip_rule(bad)


def test_norms_that_do_not_fit_the_parameters_are_refused(problem):
    params, examples, mask, _ = problem
    with pytest.raises(InputError, match="parts of the parameters"):
        PerExample(loss).clip_sum(params, examples, mask, (1.0, 2.0, 3.0))


def test_an_unknown_method_is_refused():
    with pytest.raises(InputError, match="method"):
        PerExample(loss, "fast")


@pytest.mark.parametrize("rule", [0.5, Automatic(0.5), None], ids=["flat", "automatic", "none"])
def test_a_mask_of_numbers_is_how_far_each_record_may_move_the_sum(rule):
    rng = np.random.default_rng(3)
    data = jnp.asarray(rng.normal(size=(6, 4)), jnp.float32)
    limits = jnp.asarray([0.0, 0.1, 0.2, 0.3, 10.0, 0.0])
    engine, start = PerExample(lambda params, x: jnp.dot(params, x)), jnp.zeros(4)
    everybody = engine.norms(start, data, jnp.ones(6, bool), rule)
    total, norms = engine.clip_sum(start, data, limits, rule)
    assert np.allclose(norms.clipped, np.minimum(everybody.clipped, limits), rtol=1e-6)
    shortened = data * (norms.clipped / everybody.raw)[:, None]
    assert np.allclose(total, shortened.sum(0), atol=1e-6)
    assert np.array_equal(norms.raw, np.where(limits > 0, everybody.raw, 0))


def test_a_record_without_a_finite_gradient_moves_nothing_whatever_its_limit():
    engine = PerExample(lambda params, x: jnp.dot(params, x))
    data = jnp.asarray([[jnp.inf, 0.0], [3.0, 4.0]])
    total, norms = engine.clip_sum(jnp.zeros(2), data, jnp.asarray([0.5, 0.5]), 1.0)
    assert np.allclose(total, [0.3, 0.4])
    assert np.allclose(norms.clipped, [0.5, 0.5])


@pytest.mark.parametrize("kind", [jnp.float16, jnp.bfloat16])
def test_half_precision_is_refused(problem, kind):
    params, (x, y), mask, _ = problem
    half = jax.tree.map(lambda leaf: leaf.astype(kind), params)
    for engine in (PerExample(loss, "scan"), PerExample(loss, "vmap")):
        for work in (engine.clip_sum, engine.norms):
            with pytest.raises(InputError, match="params to hold float32"):
                work(half, (x, y), mask, 0.4)
            with pytest.raises(InputError, match="data to hold float32"):
                work(params, (x.astype(kind), y), mask, 0.4)
