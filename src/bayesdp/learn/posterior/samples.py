"""A posterior made of samples: the kept iterates of one or more chains, all of them released and charged.

    E[f] ≈ Σ_t w_t f(z_t) / Σ_t w_t,    w_t = h_t, the time that iterate t stands for (equal for a fixed step)

A chain that left the real numbers is named, and its iterates are not samples of anything: they are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.errors import Array, unmet
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models.density import Probabilistic, Values
from bayesdp.learn.posterior.base import InferenceData, Note, Published, arviz, inference_data
from bayesdp.learn.posterior.summary import Summary, weighted_quantiles
from bayesdp.report import Intervals
from bayesdp.storage import Arrays


@dataclass(frozen=True, eq=False)
class SampledPosterior(Published):
    """Samples of the parameters on the real line, and the run that they came from.

    Args:
        model: what was sampled.
        draws: (chains, samples, d).
        weights: of a chain's samples.
        run: the training, with its guarantees.
        temperature: that of the law which was sampled, the posterior to the power 1/temperature, as far as it is known
            beforehand: clipping, batches and steps of finite length come on top.
        diverged: numbers of the chains that were left out, from 0.
        notes: what a reader should know of the result.

    Examples:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(1.0, 1.0, 400).astype(np.float32)
        >>> model = bd.NormalPrior(np.zeros(1), 4.0), lambda mean, record: -((record - mean[0]) ** 2) / 2
        >>> walk = bd.SGLD(sampling_rate=0.5, steps=40, step_size=1e-3, delta=1e-4, engine="rdp")
        >>> samples = walk.calibrate_step(epsilon=2.0).fit(model, x, params=np.zeros(1))
        >>> samples.draws.shape[-1], round(samples.temperature, 3)
        (1, 1.0)
    """

    kind: ClassVar[str] = "samples"

    model: Probabilistic
    draws: Array
    weights: Array
    run: Run
    temperature: float
    diverged: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def chains(self) -> int:
        """How many chains the samples are from."""
        return len(self.draws)

    @cached_property
    def mean(self) -> Array:
        """The weighted mean of the samples."""
        return np.asarray(self._shares @ self._flat)

    @cached_property
    def cov(self) -> Array:
        """The weighted covariance of the samples, (d, d)."""
        away = self._flat - self.mean
        return np.asarray((away * self._shares[:, None]).T @ away)

    @property
    def std(self) -> Array:
        """Standard deviations, in the order of `labels`."""
        return np.sqrt(self._shares @ (self._flat - self.mean) ** 2)

    @property
    def samples(self) -> Values:
        """All samples as the model names the parameters, with leading axes (chains, samples)."""
        shape = self.draws.shape[:2]
        return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), self.named(jnp.asarray(self._flat)))

    def draw(self, n: int, seed: int | None = None) -> jax.Array:
        """`n` of the samples, (n, d): evenly spaced along the chains by weight, from a random start.

        With equal weights and as many as there are, each comes once.
        """
        n = errors.whole("n", n, least=1)
        places = (np.arange(n) + np.random.default_rng(seed).random()) / n
        ends = np.cumsum(self._shares)
        return jnp.asarray(self._flat[np.searchsorted(ends / ends[-1], places)], jnp.float32)

    def interval(self, probability: float = 0.9) -> Array:
        """Central credible intervals on the real line, (d, 2), in the order of `labels`: quantiles of the samples."""
        level = errors.probability("probability", probability)
        return np.stack(weighted_quantiles(self._flat, self._shares, level), axis=1)

    def summary(self, probability: float = 0.9) -> Intervals:
        """Mean and central credible interval of every parameter in the model's own terms."""
        return Summary(self.model).of_chains(self._flat, self._shares, probability)

    @cached_property
    def ess(self) -> Array:
        """How many independent samples these are worth (ArviZ, bulk), in the order of `labels`; not weighted."""
        return self._diagnosed(arviz().ess)

    @cached_property
    def r_hat(self) -> Array:
        """Rank-normalised split R-hat (`split_r_hat`), in the order of `labels`: near 1 where the chains agree.

        Bad input: a single chain has nothing to agree with.
        """
        if self.chains < 2:
            raise unmet(
                "num_chains",
                self.chains,
                "at least 2 chains for R-hat",
                f"{self.chains}",
                "Use num_chains=4; each chain is charged.",
            )
        return split_r_hat(self.draws)

    def to_arviz(self) -> InferenceData:
        """All samples as ArviZ InferenceData, chains and samples in order."""
        return inference_data(self.samples)

    def arrays(self) -> Arrays:
        """Samples and weights."""
        return {"mean": self.mean, "draws": self.draws, "weights": self.weights, "diverged": np.array(self.diverged)}

    def _note(self) -> dict[str, float]:
        return {"temperature": self.temperature}

    @classmethod
    def _restored(
        cls, model: Probabilistic, run: Run, folder: RunFolder, arrays: Arrays, note: Note
    ) -> SampledPosterior:
        del folder
        return cls(
            model,
            arrays["draws"],
            arrays["weights"],
            run,
            temperature=float(note["temperature"]),
            diverged=tuple(arrays["diverged"].astype(int).tolist()),
            notes=tuple(note["notes"]),
        )

    @cached_property
    def _flat(self) -> Array:
        return self.draws.reshape(-1, self.draws.shape[-1])

    @cached_property
    def _shares(self) -> Array:
        all_weights = np.tile(self.weights, self.chains)
        return np.asarray(all_weights / all_weights.sum())

    def _diagnosed(self, measure: Callable[[InferenceData], Mapping[str, Array]]) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a coordinate that does not move gives 0/0: NaN says so
            found = measure(arviz().convert_to_dataset({"z": self.draws}))
        return np.asarray(found["z"], np.float64)


def split_r_hat(draws: Array) -> Array:
    """Rank-normalised split R-hat of chains (chains, samples, d), each coordinate (Vehtari et al. 2021).

    R-hat of the halves of chains, sqrt(1 + between/within − 1/n) (Gelman), after ranks were made normal: the larger of
    that of the values and that of their distance from the median. Not a number where a coordinate does not move.
    """
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_r_hat(_normal(halves)), _r_hat(_normal(folded)))


def _normal(values: Array) -> Array:
    """Normal scores of the ranks over all chains together."""
    from scipy.stats import norm, rankdata

    ranks = rankdata(values.reshape(-1, values.shape[-1]), axis=0).reshape(values.shape)
    return np.asarray(norm.ppf((ranks - 3 / 8) / (ranks[..., 0].size + 1 / 4)))


def _r_hat(halves: Array) -> Array:
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between, n = halves.mean(axis=1).var(axis=0, ddof=1), halves.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((n - 1) / n + between / within))
