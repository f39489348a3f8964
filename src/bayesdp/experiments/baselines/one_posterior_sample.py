"""One posterior sample (OPS), a baseline of S4: one draw of a tempered posterior is private (Wang et al. 2015).

    θ ~ p(θ) Π_i e^{ρ l(x_i, θ)} / Z,     l = log p(x|θ) kept within [top − R, top],     ρ = min(1, ε/R), or ε/(2R)

This is the exponential mechanism with score Σ_i l(x_i, θ). Adding x multiplies the density by e^{ρ l(x,θ)} and divides
it by the mean of that under the posterior, which lies between the same ends: ε = ρR. Exchanging x for x' has
l(x',θ) − l(x,θ), whose range is 2R: ε = 2ρR (Wang et al.: 4B for |l| ≤ B). δ = 0.

It holds for an exact draw. Here the draw is the last state of a long run of NumPyro's NUTS, which is only near its
target; the guarantee says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS, init_to_value

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.experiments.baselines.base import Baseline
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee
from bayesdp.learn.models import predictive
from bayesdp.learn.models.density import Probabilistic, Values
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.noise_kind import SAMPLES
from bayesdp.learn.records import Data, records_of
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.report import Settings
from bayesdp.standing import Caveat, assuming

_HOW = "Exponential mechanism: one draw of a posterior whose log-likelihood has a known range (Wang et al. 2015)."


def _converged(chain: int) -> Caveat:
    return Caveat(
        "heuristic",
        f"A heuristic: the Markov chain of {chain} steps is taken to have reached its target. A distance d from it in "
        "total variation would add (1 + e^ε) d to δ.",
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class OneSample(Baseline):
    """The draw on the real line, and the model that it belongs to."""

    model: Probabilistic
    draw: Array

    @property
    def values(self) -> Values:
        """The draw as the model names its parameters."""
        return jax.tree.map(np.asarray, self.model.constrain(jnp.asarray(self.draw, jnp.float32)))

    def predict(self, inputs: Data) -> Any:
        """The expected outcome of each record of `inputs` at this one draw."""
        draws = jnp.asarray(self.draw, jnp.float32)[None]
        return jax.tree.map(np.asarray, predictive.monte_carlo(self.model, draws, jax.tree.map(jnp.asarray, inputs)))


@dataclass(frozen=True, kw_only=True)
class OnePosteriorSample:
    """What will be done, all of it public.

    `epsilon` to keep; `likelihood_range` R and `top`: log-likelihoods are clipped to [top − R, top] (0 is the most for
    yes/no and class outcomes); `chain`: steps of the Markov chain, half of them for tuning. Bad input: `InputError`.
    """

    epsilon: float
    likelihood_range: float
    top: float = 0.0
    adjacency: Adjacency = "add-remove"
    chain: int = 1000
    delta: float = 1e-5
    """Of the comparison that the report stands in; the guarantee itself has δ = 0."""

    def __post_init__(self) -> None:
        errors.number("epsilon", self.epsilon, above=0)
        errors.number("likelihood_range", self.likelihood_range, above=0, hint="Without a range OPS is not private.")
        errors.number("top", self.top)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        errors.whole("chain", self.chain, least=2)
        errors.probability("delta", self.delta)

    @property
    def power(self) -> float:
        """The ρ to which the likelihood is raised."""
        return min(1.0, self.epsilon / self._change)

    @property
    def _change(self) -> float:
        return self.likelihood_range * (1 if self.adjacency == "add-remove" else 2)

    def guarantee(self) -> Guarantee:
        """ε-DP of the draw: less than `epsilon` where the posterior itself has less."""
        return Guarantee(
            notion="dp",
            epsilon=self.power * self._change,
            delta=0.0,
            strength="strong",
            adjacency=self.adjacency,
            sampling="none",
            **assuming(_HOW, _converged(self.chain), SAMPLES),
        )

    def fit(self, model: Any, data: Data, *, params: Any = None, seed: int | None = None) -> OneSample:
        """Draw once. `model`, `params`: see `probabilistic`; a `seed` makes it reproducible, **not private**."""
        known = probabilistic(model, data, params)
        low, power = self.top - self.likelihood_range, self.power

        def density(records: Data) -> None:
            z = numpyro.sample("z", dist.ImproperUniform(dist.constraints.real_vector, (), (known.dim,)))
            with numpyro.handlers.block():  # the sites of the model itself are no sites of this one
                prior, likelihood = known.log_prior(z), known.log_likelihoods(z, records)
            # What is no number is out of range too, and must not say more than the worst number does.
            within = jnp.clip(jnp.nan_to_num(likelihood, nan=low), low, self.top)
            numpyro.factor("density", prior + power * within.sum())

        # Posteriors of many records are narrow and slanted: a full mass matrix, and short paths until it is known.
        kernel = NUTS(
            density, dense_mass=True, max_tree_depth=7, init_strategy=init_to_value(values={"z": known.start})
        )
        half = self.chain // 2
        run = MCMC(kernel, num_warmup=half, num_samples=self.chain - half, progress_bar=False, jit_model_args=True)
        run.run(fresh_key() if seed is None else seeded_key(seed), jax.tree.map(jnp.asarray, data))
        return OneSample(
            settings=self._settings(records_of("data", data)),
            guarantees=[self.guarantee()],
            delta=self.delta,
            seeded=seed is not None,
            model=known,
            draw=np.asarray(run.last_state.z["z"], np.float64),
        )

    def _settings(self, records: int) -> Settings:
        return Settings(
            kind="one posterior sample",
            records=records,
            conversion="exponential mechanism",
            other={
                "range of log-likelihoods": self.likelihood_range,
                "power of the likelihood": self.power,
                "steps of the Markov chain": self.chain,
            },
        )
