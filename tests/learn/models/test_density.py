"""Models as VI sees them: densities against NumPyro's and SciPy's own, and what bad models get."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.infer.util import potential_energy
from scipy import stats

from bayesdp import InputError
from bayesdp.learn.models.density import NormalPrior
from bayesdp.learn.models.local_latents import marginal_bound
from bayesdp.learn.models.reader import probabilistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)).astype(np.float32)
Y = (RNG.random(30) < 0.5).astype(np.int32)


def hierarchical(x, y=None):
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    w = numpyro.sample("w", dist.Normal(0, spread).expand([3]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def subsampling(x, y=None):
    """The same with NumPyro's own minibatches, which are switched off."""
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    w = numpyro.sample("w", dist.Normal(0, spread).expand([3]).to_event(1))
    with numpyro.plate("data", x.shape[0], subsample_size=7) as rows:
        numpyro.sample("y", dist.Bernoulli(logits=x[rows] @ w), obs=None if y is None else y[rows])


Z = jnp.array([0.3, 0.2, -0.4, 0.7])  # log spread, w


@pytest.mark.parametrize("model", [hierarchical, subsampling])
def test_prior_and_likelihood_add_up_to_numpyros_joint_density(model):
    reading = probabilistic(model, (X, Y))
    wanted = -potential_energy(hierarchical, (X, Y), {}, {"spread": Z[0], "w": Z[1:]})
    total = reading.log_prior(Z) + reading.log_likelihoods(Z, (X, Y)).sum()
    assert float(total) == pytest.approx(float(wanted), rel=1e-5)
    assert reading.labels == ("spread", "w[0]", "w[1]", "w[2]")
    values = reading.constrain(Z)
    assert float(values["spread"]) == pytest.approx(np.exp(0.3), rel=1e-6)
    np.testing.assert_allclose(values["w"], Z[1:])
    logit = float(X[4] @ Z[1:])
    one = float(reading.log_likelihood(Z, (X[4], Y[4])))
    assert one == pytest.approx(-np.log1p(np.exp(-logit if Y[4] else logit)), rel=1e-5)


def test_data_may_be_a_tuple_a_dict_or_an_array():
    def only(x):
        m = numpyro.sample("m", dist.Normal())
        with numpyro.plate("data", len(x)):
            numpyro.sample("x", dist.Normal(m, 1), obs=x)

    array, named = probabilistic(only, X[:, 0]), probabilistic(hierarchical, {"y": Y, "x": X})
    z = jnp.array([0.4])
    assert float(array.log_likelihood(z, X[0, 0])) == pytest.approx(stats.norm(0.4).logpdf(X[0, 0]), rel=1e-5)
    both = (
        named.log_likelihood(Z, {"x": X[1], "y": Y[1]}),
        probabilistic(hierarchical, (X, Y)).log_likelihood(Z, (X[1], Y[1])),
    )
    assert float(both[0]) == float(both[1])


def test_the_same_model_and_form_of_records_is_read_once():
    one, two = probabilistic(hierarchical, (X, Y)), probabilistic(hierarchical, (X[:9] + 1, Y[:9]))
    assert one == two
    assert hash(one) == hash(two)
    assert one != probabilistic(hierarchical, (X.astype(np.float64), Y))
    started = probabilistic(hierarchical, (X, Y), params={"spread": 2.0})
    assert started == one
    np.testing.assert_allclose(started.start, [np.log(2), 0, 0, 0], rtol=1e-6)


def test_a_pair_of_functions_is_taken_as_it_is():
    prior = NormalPrior({"b": 0.5, "w": np.zeros(3)}, np.diag([1.0, 2, 3, 4]))
    reading = probabilistic(
        (prior, lambda p, record: -((record[0] @ p["w"] + p["b"] - record[1]) ** 2)), (X, Y.astype(np.float32))
    )
    assert reading.labels == ("b", "w[0]", "w[1]", "w[2]")
    np.testing.assert_allclose(reading.start, [0.5, 0, 0, 0])
    wanted = stats.multivariate_normal([0.5, 0, 0, 0], np.diag([1.0, 2, 3, 4])).logpdf(np.asarray(Z))
    assert float(reading.log_prior(Z)) == pytest.approx(wanted, rel=1e-5)
    assert float(reading.log_likelihood(Z, (X[0], 1.0))) == pytest.approx(
        float(-((X[0] @ Z[1:] + 0.3 - 1) ** 2)), rel=1e-5
    )
    np.testing.assert_allclose(reading.constrain(Z)["w"], Z[1:])


def test_local_latent_variables_are_integrated_out_where_that_is_possible():
    """With u ~ N(t, 1), x ~ N(u, 1) the local posterior is Gaussian, so the bound is the marginal N(x; t, 2)."""

    def local(x):
        t = numpyro.sample("t", dist.Normal())
        with numpyro.plate("data", len(x)):
            u = numpyro.sample("u", dist.Normal(t, 1))
            numpyro.sample("x", dist.Normal(u, 1), obs=x)

    reading = probabilistic(local, X[:, 0])
    assert (reading.dim, reading.outcomes) == (1, None)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(reading.log_likelihood), (None, 0)))(jnp.array([0.5]), X[:, 0])
    np.testing.assert_allclose(value, stats.norm(0.5, 2**0.5).logpdf(X[:, 0]), atol=1e-4)
    np.testing.assert_allclose(slope[:, 0], (X[:, 0] - 0.5) / 2, atol=1e-4)


def test_the_local_bound_is_a_bound_where_the_posterior_is_not_gaussian():
    def log_joint(local):
        u = local["u"][0]
        return dist.Normal(0, 2).log_prob(u) + dist.Bernoulli(logits=3 * u + 1).log_prob(1)

    u = np.linspace(-12, 12, 4001)
    exact = np.log(np.trapezoid(stats.norm(0, 2).pdf(u) / (1 + np.exp(-3 * u - 1)), u))
    bound = float(jax.jit(lambda: marginal_bound(log_joint, {"u": (1,)}))())
    assert exact - 0.15 < bound < exact


def broken(name):
    """A shelf of models, each broken in one way."""

    def sample(law):
        return numpyro.sample("w", law)

    def weights(size=3):
        return sample(dist.Normal().expand([size]).to_event(1))

    def observe(x, y, logits, size=None):
        with numpyro.plate("data", size or x.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=logits), obs=y)

    def model(x, y):
        if name == "no plate":
            numpyro.sample("y", dist.Bernoulli(logits=x @ weights()), obs=y)
        elif name == "fixed plate":
            observe(x, y, x @ weights(), 30)
        elif name == "discrete":
            observe(x, y, x[:, 0] * sample(dist.Bernoulli(0.5)))
        elif name == "whole data":
            observe(x, y, (x - x.mean(0)) @ weights())
        elif name == "data prior":
            observe(x, y, x @ sample(dist.Normal(x.mean(0), 1).to_event(1)))
        elif name == "size prior":
            observe(x, y, x @ sample(dist.Normal(0, 1 / x.shape[0]).expand([3]).to_event(1)))
        elif name == "observed outside":
            observe(x, y, x @ weights())
            numpyro.sample("total", dist.Normal(0, 1), obs=x.sum())
        elif name == "improper":
            observe(x, y, x @ sample(dist.ImproperUniform(dist.constraints.real, (), (3,))))
        elif name == "empty":
            observe(x, y, x @ jnp.ones(3))
        elif name == "shapes":
            observe(x, y, x @ weights(4))
        elif name == "param":
            observe(x, y, x @ weights() + numpyro.param("shift", 0.0))
        elif name == "nothing observed":
            observe(x, None, x @ weights())

    return model


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no plate", "data plate.*no plate"),
        ("fixed plate", "2 record.*after site 'data'"),
        ("discrete", "discrete latent site 'w'.*Sum it out"),
        ("whole data", "that record alone, got site 'y'"),
        ("data prior", "not to depend on the records, got site 'w'"),
        ("size prior", "not to depend on the records, got site 'w'"),
        ("observed outside", "not to depend on the records, got site 'total'"),
        ("improper", "improper one of site 'w'"),
        ("empty", "latent site outside of the data plate, got none"),
        ("shapes", "after site 'w'"),
        ("param", "parameter site 'shift'"),
        ("nothing observed", "discrete latent site 'y'.*If it is data, give it"),
    ],
)
def test_a_broken_model_gets_a_message_that_names_the_site(name, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        probabilistic(broken(name), (X, Y))


def test_other_bad_input():
    for given, words in [
        (lambda: probabilistic(hierarchical, (X, Y + 1)), "site 'y' to lie in its support"),
        (lambda: probabilistic(hierarchical, (X, Y[:9])), "same number of records"),
        (lambda: probabilistic(hierarchical, (X, Y), params={"v": 1.0}), "to name sites of the model"),
        (lambda: probabilistic(hierarchical, (X, Y), params={"w": np.zeros(4)}), "params"),
        (lambda: probabilistic(3, (X, Y)), "model=3"),
        (lambda: probabilistic((abs, abs, abs), (X, Y)), "pair of functions"),
        (lambda: probabilistic((lambda p: 0.0, lambda p, r: 0.0), (X, Y)), "params"),
        (lambda: probabilistic((lambda p: p, lambda p, r: 0.0), (X, Y), params=np.zeros(2)), "log_prior.*one number"),
        (lambda: probabilistic((NormalPrior(np.zeros(2)), lambda p, r: r[0] @ p), (X, Y)), "log_likelihood"),
        (lambda: probabilistic((abs, abs), (X, Y), params=np.zeros(2, int)), "float arrays"),
        (lambda: probabilistic((abs, abs), (X, Y), params=np.zeros(0)), "guide would be empty"),
        (lambda: NormalPrior(np.zeros(2), np.ones((2, 2))), "positive definite"),
        (lambda: NormalPrior(np.zeros(2), np.ones(3)), "2 x 2"),
    ]:
        with pytest.raises(InputError, match=words):
            given()
