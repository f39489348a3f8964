"""Record and replay: every step of a real run once more without its last record, with the same randomness.

    moved_t = |U(B) + noise − (U(B') + noise')| ≤ Δ_t,      noise_t ~ N(0, s_t² I),   s_t = z_t Δ_t as accounted for

B' is the batch B without the last record, at the same parameters, drawn with the same key. Where the noise, the batch
of the others, or anything else on the way to what is released depended on that record, the two would differ by more
than Δ. This is looked at in the one place where noise is added (`PrivateStep`), for whatever is learnt; what follows is
computed from the released vector alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2

from bayesdp.errors import Array, unmet
from bayesdp.learn.loop.training import Training
from bayesdp.learn.loop.trajectories import Trajectories
from bayesdp.mechanism.clipping import clip_rule
from bayesdp.mechanism.devices import Records
from bayesdp.mechanism.sampling import pick
from bayesdp.mechanism.step import Ahead, PrivateStep, Witnessed

ROUNDING = 2e-5
"""What float32 sums of gradients and noise may add to a distance, as a share of their size."""

UNLIKELY = 1e-6
"""A statistic of the noise that is rarer than this is a fault."""


@dataclass(frozen=True)
class Recorded:
    """Of every step that was taken, in the order of its number: how far its last record moved it, how far it may, the
    standard deviation that was asked for, the noise in units of that (steps, entries), and the size of what left.
    """

    number: Array
    moved: Array
    declared: Array
    std: Array
    noise: Array
    size: Array

    def faults(self, planned_std: Array, chains: int = 1) -> list[str]:
        """Everything that is not as accounted for; `planned_std` is z_t Δ_t of every step of the plan."""
        found = []
        if not np.array_equal(np.sort(self.number), np.repeat(np.arange(len(planned_std)), chains)):
            found.append(f"steps taken: {len(self.number)}, planned: {len(planned_std)} in each of {chains}")
        room = self.declared * (1 + ROUNDING) + ROUNDING * self.size
        if not (self.moved <= room).all():  # also where it is not a number
            worst = int(np.argmax(np.nan_to_num(self.moved / room, nan=np.inf)))
            found.append(
                f"step {self.number[worst]:.0f}: moved by {self.moved[worst]:.4g}, not {self.declared[worst]:.4g}"
            )
        planned = planned_std[self.number.astype(int)]
        if not np.allclose(self.std, planned, rtol=1e-5):
            found.append(f"noise asked for: {self.std[0]:.4g}, accounted for: {planned[0]:.4g}")
        squares, count = float(np.sum(self.noise**2)), self.noise.size
        if min(chi2.sf(squares, count), chi2.cdf(squares, count)) < UNLIKELY:
            found.append(f"noise of {np.sqrt(squares / count):.3g} times its standard deviation")
        if repeats(self.noise, self.noise) > len(self.noise):
            found.append("the same noise in two steps")
        return found


def repeats(one: Array, other: Array) -> int:
    """How many pairs of rows of noise are the same."""
    apart = np.abs(one[:, None] - other[None]).max(axis=2)
    return int(np.sum(apart < 1e-2))


@dataclass(frozen=True)
class RecordingStep(PrivateStep):
    """A step that tells what it did, and what it would have done without its last record."""

    tell: Callable[..., None] = print

    @classmethod
    def of(cls, step: PrivateStep, tell: Callable[..., None]) -> RecordingStep:
        """The same step, or one of a class of its own, with somebody to tell."""
        kind = type(step)
        own = {one.name: getattr(step, one.name) for one in fields(PrivateStep)}
        return cls(**own, tell=tell) if kind is PrivateStep else type("Recording", (cls, kind), {})(**own, tell=tell)

    def steps_ahead(self, records: Records, runs: int = 1) -> int:
        """1: what is drawn ahead is drawn from all records."""
        del records, runs
        return 1

    def __call__(
        self,
        key: jax.Array,
        step: jax.Array | int,
        params: Any,
        records: Records,
        *,
        clip_norm: Any,
        noise_std: jax.Array | float,
        witnesses: Records | None = None,
        phase: jax.Array | int = 0,
        ahead: Ahead | None = None,
    ) -> tuple[Any, Witnessed | None]:
        """The step as it is; told are the released vectors with and without the last record, and without noise."""
        del ahead, witnesses

        def released(counts: jax.Array, std: jax.Array) -> Any:
            own = replace(records, counts=counts)
            return super(RecordingStep, self).__call__(
                key, step, params, own, clip_norm=clip_norm, noise_std=std, phase=phase
            )[0]

        fewer, std = records.counts.at[_last(records)].add(-1), jnp.asarray(noise_std, jnp.float32)
        # Side by side, so that the step is compiled once.
        all_three = jax.vmap(released)(
            jnp.stack([records.counts, fewer, records.counts]), jnp.stack([std, std, jnp.zeros_like(std)])
        )
        done, near, bare = (jax.tree.map(lambda leaf, i=i: leaf[i], all_three) for i in range(3))
        scale = pick([np.float32(one) for one in np.atleast_1d(self.normaliser)], phase)
        whole, near, bare = (_flat(one) * scale for one in (done, near, bare))
        declared = self.update.sensitivity(clip_rule(clip_norm).sensitivity)
        jax.debug.callback(
            self.tell,
            step,
            jnp.linalg.norm(whole - near),
            declared,
            noise_std,
            (whole - bare) / noise_std,
            jnp.linalg.norm(whole),
        )
        return done, None


def replay(training: Training) -> Recorded:
    """Run a training that has not begun to its end, and record it; nothing is charged or kept.

    Bad input: a training with witnesses, or with records that have limits of their own (a filter, `measure_every`).
    """
    told: list[tuple[Any, ...]] = []
    trajectories = training.trajectories
    if trajectories.setup.measured or trajectories.setup.fixed.witnesses is not None:
        raise unmet("training", None, "a training without witnesses, filter or measure_every to replay")
    step = RecordingStep.of(trajectories.setup.step, lambda *values: told.append(values))
    again = Trajectories(replace(trajectories.setup, step=step), trajectories.carry, trajectories.keys)
    for _ in again.intervals([]):
        pass
    jax.effects_barrier()
    training.trajectories.carry = again.carry
    told.sort(key=lambda values: int(values[0]))
    columns = [np.array([values[place] for values in told], np.float64) for place in range(6)]
    return Recorded(*columns)


def _last(records: Records) -> int:
    """The device that holds the last record."""
    return (records.size - 1) % len(records.counts)


def _flat(tree: Any) -> jax.Array:
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])
