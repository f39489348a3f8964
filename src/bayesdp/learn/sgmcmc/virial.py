"""Is a chain as hot as it should be? Seen in what was released, whatever the sampler.

    E[−(θ_j − m_j) F_j] = T        F = −∇U, for every law e^{−U/T} by parts (the virial theorem)

The noisy force of a step is F and noise that is independent of θ, so that the mean over the steps of −(θ − m) F_noisy
estimates the left side. On a Gaussian target it is λ_j Var(θ_j): the ratio V_j to T **is** how much too wide the
samples are, be it for steps that are too long (SGLD has V = 1/(1 − hλ/2), and more where clipping alone keeps it
finite), for a thermostat that has not settled, or for noise that nothing takes out. Its error is that of the noise,
√(Var θ) s/(T √n).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import Array

WIDER = 0.15
"""How far V may be from 1: half of what makes intervals wrong by more than a seventh."""

TOLD = 0.1
"""Its standard error at most, to say something."""

_SURE = 2.5

TOO_HOT = (
    "The forces that were released show samples whose variance is about {ratio:.3g} times what it should be: the "
    "steps are too long for this model (or, for a thermostat, too few). Do not read intervals from them; use a smaller "
    "step_size."
)
TOO_COLD = (
    "The forces that were released show samples whose variance is about {ratio:.3g} times what it should be: the "
    "chains have not spread out yet. Do not read intervals from them; use more steps."
)


class Virial(NamedTuple):
    """Sums over the steps after warm-up: how many, θ − origin, F, and (θ − origin) F, (θ − origin)²; trees like θ."""

    steps: jax.Array
    origin: jax.Array
    theta: jax.Array
    force: jax.Array
    product: jax.Array
    square: jax.Array

    @classmethod
    def none(cls, theta: jax.Array) -> Virial:
        """Before the first step."""
        zero = jax.tree.map(jnp.zeros_like, theta)
        return cls(jnp.zeros(()), theta, zero, zero, zero, zero)

    def plus(self, theta: jax.Array, force: jax.Array, early: jax.Array) -> Virial:
        """With one step more; while it is `early` only the origin moves along."""
        late = jnp.where(early, 0.0, 1.0)
        origin = jax.tree.map(lambda old, new: jnp.where(early, new, old), self.origin, theta)
        away = jax.tree.map(lambda at, o: (at - o) * late, theta, origin)
        return Virial(
            self.steps + late,
            origin,
            jax.tree.map(jnp.add, self.theta, away),
            jax.tree.map(lambda total, f: total + late * f, self.force, force),
            jax.tree.map(lambda total, a, f: total + a * f, self.product, away, force),
            jax.tree.map(lambda total, a: total + a * a, self.square, away),
        )


class Heat(NamedTuple):
    """V of all coordinates together and its standard error, (chains,); not a number where there was nothing to see."""

    ratio: Array
    error: Array

    @property
    def wrong(self) -> float | None:
        """The mean V of the chains, where it is known well enough and is not 1."""
        known = np.isfinite(self.ratio)
        if not known.any():
            return None
        mean, error = float(self.ratio[known].mean()), float(np.sqrt((self.error[known] ** 2).sum()) / known.sum())
        return mean if error <= TOLD * max(1.0, mean) and abs(mean - 1) > max(WIDER, _SURE * error) else None

    @property
    def in_words(self) -> list[str]:
        """A sentence where it is wrong."""
        ratio = self.wrong
        return [] if ratio is None else [(TOO_HOT if ratio > 1 else TOO_COLD).format(ratio=ratio)]


def heat(virial: Virial, temperature: float, noise: float) -> Heat:
    """Of sums with a leading axis of chains; `noise` is the standard deviation of the force's noise."""
    count = np.asarray(virial.steps, np.float64)

    def flat(tree: jax.Array) -> Array:
        return np.concatenate(
            [np.asarray(x, np.float64).reshape(len(count), -1) for x in jax.tree.leaves(tree)], axis=1
        )

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        theta, force, product, square = (flat(part) / count[:, None] for part in virial[2:])
        ratio = -(product - theta * force).mean(axis=1) / temperature
        variance = np.maximum(square - theta**2, 0)
        # A chain's own length in relaxation times, λ h n with λ = T/Var, is not known better than by the noise.
        error = noise * np.sqrt(variance.mean(axis=1) / (count * theta.shape[1])) / temperature
    return Heat(ratio, error)
