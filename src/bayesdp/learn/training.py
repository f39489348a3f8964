"""The loop of private SGD: compiled between two looks, tallied at each, resumable at each."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from bayesdp import errors
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import Array, InputError
from bayesdp.learn import checkpoint
from bayesdp.learn.look import Look
from bayesdp.learn.run import Run
from bayesdp.learn.schedule import factors
from bayesdp.learn.witnesses import Tallies
from bayesdp.mechanism.bookkeeping import BookKeeping, ModelLoss
from bayesdp.mechanism.clip_rule import clip_rule
from bayesdp.mechanism.clipping import PerExample
from bayesdp.mechanism.devices import Records, record_mesh, spread
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.mechanism.step import PrivateStep
from bayesdp.mechanism.update_rule import Sum

if TYPE_CHECKING:
    from bayesdp.learn.sgd import SGD

LOOKS = 20
"""Looks at a run unless the plan says otherwise."""

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Quantiles of the witnesses' gradient norms that are kept."""


LARGEST = float(np.finfo(np.float32).max)
"""What the norm of a gradient that overflowed is shown as."""


class Training:
    """One run under way: parameters, optimiser state, key, tallies, and how far it got."""

    def __init__(
        self,
        plan: SGD,
        loss: Any,
        params: Any,
        data: Any,
        *,
        audit: Any,
        members: int,
        watch: Any,
        seed: int | None,
    ) -> None:
        self.plan = plan
        self.params = _checked_params(params)
        self.noise = plan.noise
        self.size = _length("data", data)
        self.seeded = seed is not None
        self.key = seeded_key(seed) if seed is not None else fresh_key()
        chosen = np.random.default_rng(seed).permutation(self.size)[: errors.whole("members", members, least=0)]
        self.members = np.sort(chosen)
        self.stop_at = self._affordable()
        self._assemble(loss, data, audit, watch)
        self.state = plan.optimizer.init(self.params)
        self.done = 0
        self.looks: list[Look] = []

    @classmethod
    def resumed(
        cls,
        plan: SGD,
        folder: str | Path,
        loss: Any,
        params: Any,
        data: Any,
        *,
        audit: Any,
        watch: Any,
        finished: bool = False,
    ) -> Training:
        """The training that left the checkpoint in `folder`; `finished`: one whose result alone is wanted."""
        saved = checkpoint.read(folder, finished=finished)
        self = cls(plan, loss, params, data, audit=audit, members=0, watch=watch, seed=None)
        checkpoint.check(saved, self.fingerprint(data, audit, watch))
        self.members, self.seeded = saved.members, saved.seeded
        self._assemble(loss, data, audit, watch)
        if saved.key is not None:
            self.key = jax.random.wrap_key_data(saved.key)
        self.params = checkpoint.like(self.params, saved.params)
        self.state = checkpoint.like(self.state, saved.optimizer)
        self.tallies.restore(saved.tallies)
        self.done, self.looks = saved.done, saved.looks
        return self

    def run(
        self,
        *,
        evaluate: Callable[[Any], dict[str, float]] | None,
        progress: Callable[[Run], None] | None,
        folder: str | Path | None,
    ) -> Run:
        """Train to the end (or to the budget), looking now and then."""
        if folder is not None:
            checkpoint.claim(folder, self._fingerprint)
        # On every device from the start, as the program leaves them: else the second interval would compile anew.
        self.params, self.state, self.key = jax.device_put((self.params, self.state, self.key), self._everywhere)
        while self.done < self.stop_at:
            stop = min(self.done + self.interval, self.stop_at)
            self.tallies.charge_everybody(self.done, stop)
            steps = np.minimum(np.arange(self.done, self.done + self.interval), self.plan.steps - 1)
            self.params, self.state, raw, distances = self._interval(
                self.params, self.state, self.key, steps, self._clip[steps], self._std[steps], stop
            )
            self._account(stop, np.asarray(raw), np.asarray(distances), evaluate)
            if folder is not None:
                checkpoint.write(folder, self)
            if progress is not None:
                progress(self.result())
        if folder is not None:
            checkpoint.forget_key(folder)
        return self.result()

    def result(self) -> Run:
        """The run so far."""
        return Run(
            plan=self.plan,
            params=self.params,
            tallies=self.tallies,
            steps=self.done,
            records=self.size,
            seeded=self.seeded,
            looks=tuple(self.looks),
            members=self.members,
        )

    def fingerprint(self, data: Any, audit: Any, watch: Any) -> dict[str, Any]:
        """What a checkpoint must share with the training that goes on from it."""
        return {
            "plan": self.plan.describe(),
            "data": checkpoint.digest(data),
            "audit": checkpoint.digest(audit),
            "watch": checkpoint.digest(watch),
        }

    def _assemble(self, loss: Any, data: Any, audit: Any, watch: Any) -> None:
        plan, mesh = self.plan, record_mesh()
        gradients = BookKeeping(loss) if isinstance(loss, ModelLoss) else loss if hasattr(loss, "clip_sum") else None
        step = PrivateStep(
            gradients if gradients is not None else PerExample(loss),
            plan.sampling_rate,
            plan.sampling_rate * self.size if isinstance(plan.update, Sum) else 1.0,
            update=plan.update,
            subset_fraction=plan.subset_fraction,
            microbatch=plan.microbatch,
            mesh=mesh,
        )
        self._everywhere = NamedSharding(mesh, PartitionSpec())
        records = spread(data, mesh)
        parts = [audit, jax.tree.map(lambda x: np.asarray(x)[self.members], data) if len(self.members) else None, watch]
        counts = [0 if part is None else _length(name, part) for name, part in zip(NAMES, parts, strict=True)]
        given = [part for part in parts if part is not None]
        witnesses = spread(_joined(given), mesh) if given else None
        self._scale = factors("clip_schedule", plan.clip_schedule, plan.steps)
        rule = clip_rule(plan.clip_norm)
        sensitivity = float(plan.update.sensitivity(rule.sensitivity)) if plan.bounded else 1.0
        self._sensitivity = sensitivity * self._scale if plan.bounded else np.ones(plan.steps)
        self._clip = self._scale.astype(np.float32)
        self._std = (self.noise * self._sensitivity).astype(np.float32)
        self.interval = min(plan.interval or max(1, math.ceil(plan.steps / LOOKS)), plan.steps)
        self.tallies = Tallies(
            outsiders=counts[0],
            members=counts[1],
            watched=counts[2],
            noise=self.noise,
            sampling_rate=plan.sampling_rate,
            bounded=plan.bounded,
            delta=plan.delta,
            failure=plan.failure,
            engine=plan.engine,
            adjacency=plan.adjacency,
        )
        self._interval = _compiled(step, plan.optimizer, rule, records, witnesses)
        self._fingerprint = self.fingerprint(data, audit, watch)

    def _account(
        self, stop: int, raw: Array, distances: Array, evaluate: Callable[[Any], dict[str, float]] | None
    ) -> None:
        for i, step in enumerate(range(self.done, stop)):
            if distances.shape[1]:
                # float32 stays float32, so that the accountants know how far to raise it.
                self.tallies.charge(step, distances[i] / np.float32(self._sensitivity[step]))
        self.done = stop
        at = raw[stop - 1 - (stop - 1) // self.interval * self.interval] if raw.shape[1] else raw[0]
        dp, bdp, per_instance = self.tallies.look(self.plan.coverage)
        self.looks.append(
            Look(
                step=stop,
                dp=dp,
                bdp=bdp,
                per_instance=per_instance,
                norms=tuple(np.quantile(np.minimum(at.astype(np.float64), LARGEST), LEVELS).tolist())
                if len(at)
                else (),
                metrics={} if evaluate is None else {k: float(v) for k, v in evaluate(self.params).items()},
            )
        )

    def _affordable(self) -> int:
        """How many steps the DP budget pays for; all of them without one."""
        plan = self.plan
        if plan.epsilon_budget is None:
            return plan.steps
        low, high = 0, plan.steps
        while low < high:
            middle = (low + high + 1) // 2
            accountant = WorstCaseAccountant(plan.engine, plan.adjacency)
            for level, count in zip(*np.unique(self.noise[:middle], return_counts=True), strict=True):
                accountant.step(noise_multiplier=float(level), sampling_rate=plan.sampling_rate, steps=int(count))
            if accountant.epsilon(plan.delta) <= plan.epsilon_budget:
                low = middle
            else:
                high = middle - 1
        if low == 0:
            raise errors.refuse(
                "epsilon_budget", plan.epsilon_budget, "to pay for at least one step", "Use more noise."
            )
        return low


NAMES = ("audit", "members", "watch")


def _compiled(
    step: PrivateStep,
    optimizer: optax.GradientTransformation,
    rule: Any,
    records: Records,
    witnesses: Records | None,
) -> Any:
    """interval(params, state, key, steps, clip factors, noise, stop) → params, state, raw norms, distances.

    One program for every interval: steps from `stop` on do nothing.
    """
    watched = 0 if witnesses is None else witnesses.size

    def interval(
        params: Any, state: Any, key: Any, steps: Any, clip: Any, std: Any, stop: Any, records: Any, witnesses: Any
    ) -> Any:
        def act(carry: Any, now: Any) -> Any:
            number, factor, noise = now

            def move(carry: Any) -> Any:
                params, state = carry
                scaled = jax.tree.map(lambda norm: norm * factor, rule)
                gradient, seen = step(
                    key, number, params, records, clip_norm=scaled, noise_std=noise, witnesses=witnesses
                )
                updates, state = optimizer.update(gradient, state, params)
                empty = jnp.zeros((0,), jnp.float32)
                return (optax.apply_updates(params, updates), state), (seen if seen is not None else (empty, empty))

            def stay(carry: Any) -> Any:
                nothing = jnp.zeros((watched,), jnp.float32)
                return carry, (nothing, nothing)

            carry, seen = lax.cond(number < stop, lambda c: _plain_pair(move(c)), stay, carry)
            return carry, seen

        # The last interval is filled up with a step number that is not below `stop`.
        numbers = jnp.where(jnp.arange(len(steps)) + steps[0] < stop, steps, stop)
        (params, state), (raw, distances) = lax.scan(act, (params, state), (numbers, clip, std))
        return params, state, raw, distances

    compiled = jax.jit(interval)
    return lambda *arguments: compiled(*arguments, records, witnesses)


def _plain_pair(result: Any) -> Any:
    carry, seen = result
    return carry, (seen[0], seen[1])


def _checked_params(params: Any) -> Any:
    if isinstance(params, dict) and "batch_stats" in params:
        raise InputError(
            "Expected params without batch statistics, got a batch_stats collection: batch normalisation lets records "
            "see each other, so no clip norm bounds a record's effect. Use group or layer normalisation."
        )
    leaves = jax.tree.leaves(params)
    if not leaves:
        raise InputError("Expected params to hold at least one array, got none.")
    for leaf in leaves:
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise errors.refuse(
                "params",
                leaf,
                "to be a tree of float arrays",
                "For Equinox use eqx.partition(model, eqx.is_inexact_array), for Flax nnx.split(model, nnx.Param, …).",
            )
    return jax.tree.map(jnp.asarray, params)


def _length(name: str, tree: Any) -> int:
    lengths = {int(np.shape(leaf)[0]) if np.ndim(leaf) else -1 for leaf in jax.tree.leaves(tree)}
    if len(lengths) != 1 or -1 in lengths or 0 in lengths:
        raise InputError(f"Expected {name} to hold arrays with the same number of records, got {sorted(lengths)}.")
    return lengths.pop()


def _joined(parts: list[Any]) -> Any:
    structures = {jax.tree.structure(part) for part in parts}
    if len(structures) > 1:
        raise InputError("Expected audit and watch to be trees of the same form as data, got others.")
    try:
        return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *parts)
    except ValueError as problem:
        raise InputError(f"Expected audit and watch to hold records of the same shape as data: {problem}") from None
