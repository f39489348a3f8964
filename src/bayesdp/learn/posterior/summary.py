"""Posterior means and intervals of single parameters, as people read them: in the model's own terms, by name.

What is shown is f(z), z on the real line. Where an entry of f is a monotone function of one entry of z, as e^z of a
positive parameter is, its interval is the image of that of z, and its mean an integral over that entry (Gauss–Hermite).
Other entries, such as the weights of a mixture, are summarised by draws.

Of samples z_1 … z_n alone (C17), the interval is  mean ± t_{n−1} s √(1 + 1/n),  which a further draw of a Gaussian lies
in with the stated probability: it knows that n samples do not show the whole posterior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import Array, probability, unmet
from bayesdp.learn.models.density import Probabilistic, Values, site_label
from bayesdp.report import Intervals

PROBABILITY = 0.9
_NODES = 32
_DRAWS = 4000

Shown = Callable[[Mapping[str, jax.Array]], Mapping[str, jax.Array]]
Label = Callable[[str, tuple[int, ...]], str]


class Summary:
    """`model` gives f with `shown` (its parameters as they are unless told) and the names with `label`."""

    def __init__(self, model: Probabilistic, shown: Shown | None = None, label: Label = site_label) -> None:
        def values(z: jax.Array) -> dict[str, jax.Array]:
            named = by_site(model.constrain(z))
            return dict(named if shown is None else shown(named))

        sites: list[str] = []

        def flat(z: jax.Array) -> jax.Array:
            found = values(z)
            return jnp.concatenate([jnp.ravel(found[site]) for site in sites])

        def ordered(z: jax.Array) -> dict[str, jax.Array]:
            found = values(z)
            sites[:] = found  # as the model has them: what comes out of JAX is sorted
            return found

        shapes = jax.eval_shape(ordered, model.start)
        self.names = tuple(label(site, index) for site in sites for index in np.ndindex(shapes[site].shape))

        self._each = jax.jit(jax.vmap(flat))
        self._slopes = jax.jit(jax.jacobian(flat))

    def of_gaussian(
        self, mean: Array, cov: Array, level: float = PROBABILITY, doubts: tuple[str, ...] = ()
    ) -> Intervals:
        """The summary of z ~ N(mean, cov); what is made of an entry that is in doubt is in doubt too."""
        from scipy.stats import norm

        level = probability("probability", level)
        std = np.sqrt(np.diagonal(cov))
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        rng = np.random.default_rng(0)
        draws = self(mean + rng.normal(size=(_DRAWS, len(mean))) @ np.linalg.cholesky(cov).T)
        middle, (low, high) = draws.mean(axis=0), np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        alone = self._alone(mean + std * rng.normal(size=len(mean)))
        half = norm.ppf(0.5 + level / 2) * std
        ends = np.sort(self(np.stack([mean - half, mean + half])), axis=0)
        exact = weights @ self(mean + nodes[:, None] * std) / math.sqrt(2 * math.pi)
        found = self._intervals(
            np.where(alone, exact, middle), np.where(alone, ends[0], low), np.where(alone, ends[1], high), level
        )
        return replace(found, doubts=self._passed_on(doubts, mean)) if any(doubts) else found

    def of_samples(self, draws: Array, level: float = PROBABILITY) -> Intervals:
        """The summary of a posterior of which `draws` of z (n, d) are known, and nothing else."""
        from scipy.stats import t

        level, count = probability("probability", level), len(draws)
        shown = self(draws)
        if count < 2:
            if not count:
                raise unmet("n", 0, "at least one sample to be drawn first", "none")
            return self._intervals(shown[0], None, None, level)
        far = t.ppf(0.5 + level / 2, count - 1) * math.sqrt(1 + 1 / count)
        middle, half = draws.mean(axis=0), far * draws.std(axis=0, ddof=1)
        alone = self._alone(draws[0])
        ends = np.sort(self(np.stack([middle - half, middle + half])), axis=0)
        centre, reach = shown.mean(axis=0), far * shown.std(axis=0, ddof=1)
        return self._intervals(
            centre, np.where(alone, ends[0], centre - reach), np.where(alone, ends[1], centre + reach), level
        )

    def of_chains(self, draws: Array, weights: Array, level: float = PROBABILITY) -> Intervals:
        """The summary of many weighted `draws` of z (n, d): their mean and quantiles."""
        shown = self(draws)
        low, high = weighted_quantiles(shown, weights, probability("probability", level))
        return self._intervals(weights @ shown / weights.sum(), low, high, level)

    def __call__(self, z: Array) -> Array:
        """The f(z) of every row of z, (rows, entries)."""
        return np.asarray(self._each(jnp.asarray(z, jnp.float32)), np.float64)

    def _alone(self, z: Array) -> Array:
        """Which entries of f look at one entry of z only, seen at a point where nothing vanishes by chance."""
        return np.asarray((np.asarray(self._slopes(jnp.asarray(z, jnp.float32))) != 0).sum(axis=1) <= 1)

    def _passed_on(self, doubts: tuple[str, ...], z: Array) -> tuple[str, ...]:
        """The doubts of the entries of z as those of the entries of f."""
        uses = np.asarray(self._slopes(jnp.asarray(z, jnp.float32))) != 0
        each = ({words for words, used in zip(doubts, row, strict=True) if used and words} for row in uses)
        return tuple("; ".join(sorted(words)) for words in each)

    def _intervals(self, mean: Array, low: Array | None, high: Array | None, level: float) -> Intervals:
        none = (None,) * len(self.names)
        return Intervals(
            names=self.names,
            mean=tuple(mean),
            low=none if low is None else tuple(low),
            high=none if high is None else tuple(high),
            probability=level,
        )


def by_site(values: Values) -> dict[str, jax.Array]:
    """Arrays by name, in the order of the model: a site that is a tree, as of a network, has a name for each array."""
    sites = values.items() if isinstance(values, Mapping) else [("", values)]
    found = {}
    for site, tree in sites:
        for place, leaf in jax.tree_util.tree_leaves_with_path(tree):
            parts = (site, jax.tree_util.keystr(place, simple=True, separator="."))
            found[".".join(part for part in parts if part) or "parameters"] = leaf
    return found


def weighted_quantiles(values: Array, weights: Array, level: float) -> tuple[Array, Array]:
    """The ends of the central interval of `level` of each column of `values`, whose rows have `weights`."""
    order = np.argsort(values, axis=0)
    ordered, shares = np.take_along_axis(values, order, axis=0), (weights / weights.sum())[order]
    middles = np.cumsum(shares, axis=0) - shares / 2
    ends = (0.5 - level / 2, 0.5 + level / 2)
    both = np.array([np.interp(ends, m, o) for m, o in zip(middles.T, ordered.T, strict=True)])
    return both[:, 0], both[:, 1]
