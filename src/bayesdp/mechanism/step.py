"""One private step: sample, clip, sum, add noise, divide by a public number. Nothing else leaves.

    released = (U(B) + N(0, s² I)) / L,   B ~ Poisson(q),   U the sum or mean of clip(g_x), x in B   (E2)

L is public: the expected batch size q N for the sum rule, 1 for the mean rule. An empty batch is released like any
other. The step is one compiled function of the run's key and the step's number, to be used inside `lax.scan`.

With noise "lattice" sum and noise are whole numbers, of which floats are made at the end (H26); with "float" both are
float32, whose last bits say more than the proofs, which are about real numbers, allow for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

from bayesdp.errors import number, one_of, rate, refuse, unmet, whole
from bayesdp.mechanism import lattice, lengths
from bayesdp.mechanism.blocks import fold_blocks
from bayesdp.mechanism.clipping import ClipRule, Norms, clip_rule
from bayesdp.mechanism.clipping import whole as norm
from bayesdp.mechanism.devices import AXIS, DEALT, SAME, Records, add_up, record_mesh
from bayesdp.mechanism.key import NOISE_KINDS, NoiseKind, is_chacha
from bayesdp.mechanism.noise import StepKeys, add_noise, add_whole_noise, normals, step_keys
from bayesdp.mechanism.per_example import Gradients
from bayesdp.mechanism.rounded_gaussian import rounded_gaussians
from bayesdp.mechanism.sampling import First, pick, poisson_first, poisson_fold
from bayesdp.mechanism.subset import random_subset, restrict
from bayesdp.mechanism.update_rule import Sum, UpdateRule

Params = Any


class Witnessed(NamedTuple):
    """Of each witness: |g|, and how far it would move (or has moved) the noisy vector, in units of the noise."""

    raw: jax.Array
    distance: jax.Array


class Ahead(NamedTuple):
    """A step's keys, first microbatch and normals, drawn and fetched beforehand: none depends on other steps.

    `normals`, whole numbers on a lattice, is None where they are so many that each step draws its own.
    """

    keys: StepKeys
    first: First
    examples: Any
    normals: jax.Array | None


class Limits(NamedTuple):
    """Of each record: how far it may move the sum, and the first step in which it takes no part any more."""

    norm: jax.Array
    until: jax.Array


AHEAD = 2**22
"""Bytes of records that may be fetched ahead."""

MOST_AT_ONCE = 256
"""Records in a microbatch unless more are asked for."""

IN_TURN = 2**12
"""Bytes of records in a step from which on several runs take turns on a CPU (measured on a logistic regression)."""


@dataclass(frozen=True)
class PrivateStep:
    """A description of the step; calling it performs one.

    `sampling_rate` q and `normaliser` L, or tuples of them, an entry for each phase of a schedule; `update` the rule U;
    `subset_fraction` the share of weights that a step moves (paper S1; None: all); `microbatch` the records taken at a
    time on each device (None: a little more than a device's share of the expected batch). `mesh` must be the one that
    the records were spread over. With `limited` the records come as a pair, the records and their `Limits` (filters,
    H4). `noise` "lattice" takes a key of that kind (`fresh_key("lattice")`), the sum rule and a clip norm; a microbatch
    may then hold at most `lattice.microbatch_for` records, lest contributions are cut off further.

    Bad input: a rate outside [0, 1], a normaliser that is not positive or a fraction outside (0, 1] get `InputError`.
    """

    gradients: Gradients
    sampling_rate: float | tuple[float, ...]
    normaliser: float | tuple[float, ...]
    update: UpdateRule = field(default_factory=Sum)
    subset_fraction: float | None = None
    microbatch: int | None = None
    limited: bool = False
    noise: NoiseKind = "float"
    mesh: Mesh = field(default_factory=record_mesh)

    def __post_init__(self) -> None:
        for q in np.atleast_1d(self.sampling_rate):
            rate("sampling_rate", q)
        for divisor in np.atleast_1d(self.normaliser):
            number("normaliser", divisor, above=0)
        if self.subset_fraction is not None:
            number("subset_fraction", self.subset_fraction, above=0, most=1)
        if self.microbatch is not None:
            whole("microbatch", self.microbatch, least=1)
        one_of("noise", self.noise, NOISE_KINDS)
        if self.noise == "lattice" and not isinstance(self.update, Sum):
            raise refuse("noise", self.noise, 'to be "float" with the mean rule', "Its divisions leave the lattice.")

    def __call__(
        self,
        key: jax.Array,
        step: jax.Array | int,
        params: Params,
        records: Records,
        *,
        clip_norm: Any,
        noise_std: jax.Array | float,
        witnesses: Records | None = None,
        phase: jax.Array | int = 0,
        ahead: Ahead | None = None,
    ) -> tuple[Params, Witnessed | None]:
        """(U(B) + N(0, noise_std² I)) / L, and what the witnesses saw at `params`.

        `key` is the run's, `step` the number of the step; both may be traced, and so may `noise_std`, the numbers in
        `clip_norm` and the `phase` (schedules). `noise_std` is absolute: the noise multiplier times
        `update.sensitivity(C)`. `ahead` is this step's own of `draw_ahead`, which saves time.

        Guarantee: one record more or less moves U(B) by at most `update.sensitivity(clip_rule.sensitivity)`; the noise
        is independent of everything else. The gradient alone may be published; `Witnessed` is for the accountants and
        depends on the records. Its distances are exact for the sum rule and upper bounds for the mean rule (averaged
        sensitivity, H1).
        """
        rule = clip_rule(clip_norm)
        keys = step_keys(key, step) if ahead is None else ahead.keys
        subset = None
        if self.subset_fraction is not None:
            subset = random_subset(keys.subset, params, self.subset_fraction)

        def one_device(
            params: Params,
            rule: ClipRule,
            subset: Params,
            std: jax.Array,
            phase: jax.Array,
            step: jax.Array,
            keys: Any,
            ahead: Ahead | None,
            records: Records,
        ) -> tuple[Params, jax.Array, jax.Array]:
            device = lax.axis_index(AXIS) if self.mesh.size > 1 else 0
            own_key = self._own_key(keys[0], device)
            per_unit = lattice.per_length(std) if self.noise == "lattice" else None
            total, size = self._batch(own_key, params, rule, subset, records, phase, step, ahead, per_unit)
            size = self._add_up(size)
            normaliser = pick([np.float32(divisor) for divisor in np.atleast_1d(self.normaliser)], phase)
            drawn = None if ahead is None else ahead.normals
            if per_unit is not None:
                whole_noisy = add_whole_noise(keys[1], total, part=device, parts=self.mesh.size, drawn=drawn)
                released = lattice.lengths(self._add_up(whole_noisy), 1 / (per_unit * normaliser))
                return restrict(released, subset), size, jnp.zeros(())
            length = jnp.zeros(())
            if not isinstance(self.update, Sum) and witnesses is not None:
                whole_sum = self._add_up(total)
                length = norm(jax.tree.map(lambda leaf: lengths.length(leaf[None])[0], whole_sum))
            own = jax.tree.map(lambda leaf: leaf / self.update.denominator(size), total)
            noisy = add_noise(keys[1], own, std, part=device, parts=self.mesh.size, drawn=drawn)
            released = jax.tree.map(lambda leaf: leaf / normaliser, self._add_up(noisy))
            return restrict(released, subset), size, length

        # With `check_vma` JAX would add up the gradients of replicated parameters over the devices before clipping.
        gradient, size, length = jax.shard_map(
            one_device, mesh=self.mesh, in_specs=(*8 * [SAME], DEALT), out_specs=SAME, check_vma=False
        )(
            params,
            rule,
            subset,
            jnp.asarray(noise_std, jnp.float32),
            jnp.asarray(phase, jnp.int32),
            jnp.asarray(step, jnp.int32),
            (keys.sampling, keys.noise),
            ahead,
            records,
        )
        if witnesses is None:
            return gradient, None
        norms = self.witness_norms(params, witnesses, rule, subset)
        # The mean rule's bound is by the triangle inequality, which may overshoot what any record can do.
        most = self.update.sensitivity(rule.sensitivity)
        return gradient, Witnessed(norms.raw, jnp.minimum(self.update.distance(norms.clipped, size, length), most))

    def steps_ahead(self, records: Records, runs: int = 1) -> int:
        """How many steps to look ahead when `runs` do so together: as many as fit into `AHEAD` bytes, at most 64.

        1, for none, on several devices, and where records are so large that looking ahead gains nothing.
        """
        if self.mesh.size > 1:
            return 1
        fit = int(AHEAD / (self._fetched(records) * runs))
        return min(fit, 64) if fit >= 8 else 1

    def in_turn(self, records: Records) -> bool:
        """Whether several runs are faster one after the other than side by side.

        A CPU gains by the latter only where a step has so little to do that starting it is what takes time.
        """
        return self.mesh.size == 1 and jax.default_backend() == "cpu" and self._fetched(records) >= IN_TURN

    def draw_ahead(
        self,
        key: jax.Array,
        steps: jax.Array,
        phases: jax.Array,
        records: Records,
        runs: int = 1,
        params: Params | None = None,
    ) -> Ahead:
        """The first microbatches of several steps in one go, stacked: many times faster than one after the other.

        Runs side by side wait for the one with the largest batch: theirs are a little larger, so that few need more.
        With `params` also the normals for sums of gradients at them, if there is room.
        """
        entries = 0 if params is None else self._entries(params)
        entries = entries if 4 * entries * len(steps) <= AHEAD else 0
        more = self._first(records)
        if runs > 1 and self.microbatch is None:
            more += 16 * math.ceil(math.sqrt(float(np.max(self.sampling_rate)) * records.capacity) / 16)

        def one(step: jax.Array, phase: jax.Array) -> tuple[StepKeys, First, jax.Array | None]:
            keys = step_keys(key, step)
            first = poisson_first(
                self._own_key(keys.sampling, 0),
                sampling_rate=self.sampling_rate,
                count=records.counts[0],
                capacity=records.capacity,
                microbatch=more,
                phase=phase,
            )
            draw = rounded_gaussians if self.noise == "lattice" else normals
            return keys, first, draw(keys.noise, entries) if entries else None

        keys, first, drawn = jax.vmap(one)(steps, phases)
        return Ahead(keys, first, _fetch(jax.tree.map(lambda leaf: leaf[0], records.data), first.indices), drawn)

    def _own_key(self, key: jax.Array, device: jax.Array | int) -> jax.Array:
        """The key of a device's batches; ChaCha20, whose keys take a while to compile, has one alone take it all."""
        return key if self.mesh.size == 1 and is_chacha(key) else jax.random.fold_in(key, device)

    def _add_up(self, tree: Any) -> Any:
        """The sum over the devices. One alone has it: XLA would still run a collective, in every step."""
        return add_up(tree) if self.mesh.size > 1 else tree

    def _entries(self, params: Params) -> int:
        """How many numbers a sum of gradients has."""
        return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(self.gradients.zero, params)))

    def _fetched(self, records: Records) -> float:
        """Bytes of the records of a first microbatch."""
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(records.data)) / records.capacity
        return float(size * self._first(records))

    def _first(self, records: Records) -> int:
        return self._microbatch(records.capacity, float(np.max(self.sampling_rate)))

    def witness_norms(self, params: Params, witnesses: Records, clip_norm: Any, subset: Params | None = None) -> Norms:
        """|g| and |clip(g)| of every witness, in order: a pass over all of them, whoever was sampled."""
        rule = clip_rule(clip_norm)

        def one_device(params: Params, rule: ClipRule, subset: Params, records: Records) -> Norms:
            data, count = _own(records)
            mask = jnp.arange(records.capacity) < count

            def part(carry: None, examples: Any, here: jax.Array) -> tuple[None, Norms]:
                return carry, self.gradients.norms(params, examples, here, rule, subset)

            norms = fold_blocks(part, None, data, mask, self._microbatch(records.capacity, 1.0))[1]
            return Norms(norms.raw[None], norms.clipped[None])

        norms = jax.shard_map(
            one_device, mesh=self.mesh, in_specs=(*3 * [SAME], DEALT), out_specs=DEALT, check_vma=False
        )(params, rule, subset, witnesses)
        ordered: Norms = witnesses.in_order(norms)
        return ordered

    def _batch(
        self,
        key: jax.Array,
        params: Params,
        rule: ClipRule,
        subset: Params | None,
        records: Records,
        phase: jax.Array,
        step: jax.Array,
        ahead: Ahead | None,
        per_unit: jax.Array | None,
    ) -> tuple[Params, jax.Array]:
        """This device's Σ clip(g_x) and the size of its batch."""
        data, count = _own(records)
        zero = self.gradients.zero(params) if per_unit is None else lattice.zero(self.gradients.zero(params))

        def add(state: tuple[Params, jax.Array], examples: Any, mask: jax.Array) -> tuple[Params, jax.Array]:
            total, size = state
            if self.limited:
                examples, limits = examples
                mask = jnp.where(mask & (step < limits.until), limits.norm, 0)
            if per_unit is not None:
                more, _ = self.gradients.clip_sum(params, examples, mask, rule, subset, per_unit)
                return lattice.plus(total, more), size + jnp.sum(mask > 0)
            more, _ = self.gradients.clip_sum(params, examples, mask, rule, subset)
            return jax.tree.map(jnp.add, total, more), size + jnp.sum(mask > 0)

        state, last = (zero, jnp.int32(0)), jnp.int32(-1)
        if ahead is not None:
            state, key, last = add(state, ahead.examples, ahead.first.mask), ahead.first.key, ahead.first.last
        return poisson_fold(
            key,
            lambda state, indices, mask: add(state, _fetch(data, indices), mask),
            state,
            sampling_rate=self.sampling_rate,
            count=count,
            capacity=records.capacity,
            microbatch=self._first(records),
            phase=phase,
            last=last,
        )

    def _microbatch(self, capacity: int, share: float) -> int:
        if self.microbatch is not None:
            return self.microbatch
        expected = share * capacity
        return min(
            MOST_AT_ONCE if jax.default_backend() == "cpu" else 64,
            16 * math.ceil((expected + 2 * math.sqrt(expected) + 1) / 16),
        )


def _fetch(data: Any, indices: jax.Array) -> Any:
    """Fetched once: fused into what follows, far-off rows would be fetched again and again."""
    return lax.optimization_barrier(jax.tree.map(lambda leaf: leaf.at[indices].get(mode="promise_in_bounds"), data))


def _own(records: Records) -> tuple[Any, jax.Array]:
    """Inside a device: its records and how many they are."""
    if records.counts.shape != (1,):
        raise unmet("records", None, "records that were spread over the step's own mesh")
    return jax.tree.map(lambda leaf: leaf[0], records.data), records.counts[0]
