"""The loop of private learning: compiled between two looks, tallied at each, resumable at each."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec

from bayesdp import errors
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import Array, InputError
from bayesdp.learn import checkpoint
from bayesdp.learn.everyone import EVERYONE, Everyone, Pace
from bayesdp.learn.iterates import Iterates
from bayesdp.learn.look import Look
from bayesdp.learn.program import compiled
from bayesdp.learn.run import Run
from bayesdp.learn.schedule import factors, phases
from bayesdp.learn.witnesses import Tallies
from bayesdp.mechanism.bookkeeping import BookKeeping, ModelLoss
from bayesdp.mechanism.clip_rule import clip_rule
from bayesdp.mechanism.clipping import PerExample
from bayesdp.mechanism.devices import record_mesh, spread
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.mechanism.step import PrivateStep
from bayesdp.mechanism.update_rule import Sum

if TYPE_CHECKING:
    from bayesdp.learn.plan import Plan

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
        plan: Plan,
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
        begin = partial(_start, self._gradients, self.program[1])
        if plan.parallel is not None:  # chains: everything that they have of their own comes stacked
            self.key, begin = jax.random.split(self.key, plan.parallel), jax.vmap(begin)
        self.state = begin(self.params)
        if hasattr(self._gradients, "keep"):
            self.state = self.state, self._gradients.store(self.params)
        self.done = 0
        self.looks: list[Look] = []

    @classmethod
    def resumed(
        cls,
        plan: Plan,
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

    def again(self, seed: int | None) -> Training:
        """A training of the same plan on the same data and witnesses, not yet begun, with noise of its own."""
        other = copy.copy(self)
        other.seeded = seed is not None
        other.key = seeded_key(seed) if seed is not None else fresh_key()
        other.tallies, other.looks, other.done = self._fresh_tallies(), [], 0
        return other

    def run(
        self,
        *,
        evaluate: Callable[[Any], dict[str, float]] | None,
        progress: Callable[[Run], None] | None,
        folder: str | Path | None,
        keep_iterates: int | None = None,
    ) -> Run:
        """Train to the end (or to the budget), looking now and then; `keep_iterates`: see `iterates`."""
        kept = None if keep_iterates is None else self._keeping(folder, keep_iterates)
        if folder is not None:
            checkpoint.claim(folder, self._fingerprint())
        # On every device from the start, as the program leaves them: else the second interval would compile anew.
        self.params, self.state, self.key = jax.device_put((self.params, self.state, self.key), self._everywhere)
        program = compiled(*self.program, together=self.plan.parallel is not None)
        while self.done < self.stop_at:
            stop, settings = self.charge_next()
            if kept is not None:
                kept.keep(self.done, self.params)
            self.params, self.state, raw, distances = program(self.params, self.state, self.key, *settings)
            self.account(stop, np.asarray(raw), np.asarray(distances), evaluate)
            if stop % self.interval and stop < self.stop_at:
                continue
            if folder is not None:
                checkpoint.write(folder, self)
            if progress is not None:
                progress(self.result())
        if folder is not None:
            checkpoint.forget_key(folder)
        return self.result()

    def witness_distances(self, params: Any, number: int) -> Any:
        """How far each witness would move step `number` at `params`, in units of the sensitivity (sum rule only)."""
        step, (rule, _, witnesses) = self.program[0], self._given
        if self._everyone is not None or not isinstance(self.plan.update, Sum) or witnesses is None:
            raise InputError(
                "Expected witnesses, the sum rule, and a plan without filter or refresh to ask for distances."
            )
        scaled = jax.tree.map(lambda norm: norm * self._clip[number], rule)
        self._measure = getattr(self, "_measure", None) or jax.jit(step.witness_norms)
        norms = np.asarray(self._measure(params, witnesses, scaled).clipped)
        return norms / np.float32(self._sensitivity[number])

    @property
    def measures_everyone(self) -> bool:
        """Whether all records are measured now and then, and have limits of their own in between."""
        return self._everyone is not None

    def charge_next(self) -> tuple[int, tuple[Any, ...]]:
        """Charge the next interval at the DP rate, before it is run: where it stops, and what its program is given."""
        stop = min(self.done + self._block, self.stop_at)
        for _ in range(self.plan.parallel or 1):
            self.tallies.charge_everybody(self.done, stop)
        steps = np.minimum(np.arange(self.done, self.done + self._block), self.plan.steps - 1)
        pace = jax.tree.map(lambda column: column[steps], self.plan.pace)
        given = self._given if self._everyone is None else self._measured(stop)
        return stop, (steps, self._clip[steps], self._std[steps], self._phase[steps], pace, stop, *given)

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
            "watch": watch if isinstance(watch, str) else checkpoint.digest(watch),
        }

    def _assemble(self, loss: Any, data: Any, audit: Any, watch: Any) -> None:
        plan, mesh = self.plan, record_mesh()
        self._watches_all = isinstance(watch, str)
        if self._watches_all:
            errors.one_of("watch", watch, [EVERYONE])
        self._gradients = _gradients_of(loss)
        refresh = getattr(plan, "refresh", None)
        budget = getattr(plan, "filter", None)
        measured = refresh is not None or budget is not None or self._watches_all
        if measured and not isinstance(plan.update, Sum):
            raise errors.refuse("update", plan.update, "to be Sum() where all records are measured")
        rates, phase = np.unique(plan.rates, return_inverse=True)
        self._phase = phase.astype(np.int32)
        step = PrivateStep(
            self._gradients,
            tuple(rates.tolist()),
            tuple((rates * self.size if isinstance(plan.update, Sum) else np.ones_like(rates)).tolist()),
            update=plan.update,
            subset_fraction=getattr(plan, "subset_fraction", None),
            microbatch=plan.microbatch,
            limited=measured,
            mesh=mesh,
        )
        self._everywhere = NamedSharding(mesh, PartitionSpec())
        records = spread(data, mesh)
        inside = jax.tree.map(lambda x: np.asarray(x)[self.members], data) if len(self.members) else None
        parts = [audit, inside, data if self._watches_all else watch]
        counts = [0 if part is None else _length(name, part) for name, part in zip(NAMES, parts, strict=True)]
        for name, part in zip(NAMES, parts, strict=True):
            _check_alike(name, part, data)
        if measured:  # members are measured among all records
            parts = [audit, None, None if self._watches_all else watch]
        given = [part for part in parts if part is not None]
        witnesses = spread(_joined(given), mesh) if given else None
        self._scale = factors("clip_schedule", plan.clip_schedule, plan.steps)
        rule = clip_rule(plan.clip_norm)
        sensitivity = float(plan.update.sensitivity(rule.sensitivity)) if plan.bounded else 1.0
        self._sensitivity = sensitivity * self._scale if plan.bounded else np.ones(plan.steps)
        self._clip = self._scale.astype(np.float32)
        self._std = (self.noise * self._sensitivity).astype(np.float32)
        self.interval = min(plan.interval or max(1, math.ceil(plan.steps / LOOKS)), plan.steps)
        self._block = self.interval
        if measured:
            self._block = min(refresh or 1, plan.steps)
            self.interval = self._block * math.ceil(self.interval / self._block)
        self._counts, self._known = counts, self.size + (0 if witnesses is None else witnesses.size)
        self.tallies = self._fresh_tallies()
        self._everyone = Everyone(step, records, witnesses) if measured else None
        self.program, self._given = (step, getattr(plan, "optimizer", None)), (rule, records, witnesses)
        self._fingerprint = partial(self.fingerprint, data, audit, watch)  # takes long, and only checkpoints ask

    def _fresh_tallies(self) -> Tallies:
        plan, counts = self.plan, self._counts
        budget = getattr(plan, "filter", None)
        return Tallies(
            budgets=None if budget is None else budget.accountant(self._known, plan),
            outsiders=counts[0],
            members=counts[1],
            watched=counts[2],
            noise=np.tile(self.noise, plan.parallel or 1),
            rates=np.tile(plan.rates, plan.parallel or 1),
            bounded=plan.bounded,
            delta=plan.delta,
            failure=plan.failure,
            engine=plan.engine,
            adjacency=plan.adjacency,
        )

    def _measured(self, stop: int) -> tuple[Any, ...]:
        """Measure everyone, and admit those who can pay for the steps up to `stop`: what the program is given."""
        assert self._everyone is not None
        start, rule = self.done, self._given[0]
        scaled = jax.tree.map(lambda norm: norm * self._clip[start], rule)
        norms = self._everyone.measure(self.params, scaled)
        steps = slice(start, stop)
        pace = Pace(self._sensitivity[steps], self.noise[steps], self.plan.rates[steps], self.plan.bounded)
        records, self._stretches = self._everyone.admit(norms, start, pace, self.tallies.budgets)
        return rule, records, None

    def _keeping(self, folder: str | Path | None, every: int) -> Iterates:
        """Where iterates are kept; the program then stops at each of them."""
        if folder is None:
            raise errors.refuse("keep_iterates", every, "to come with a folder to keep them in")
        if self._everyone is not None and every % self._block:
            raise errors.refuse("keep_iterates", every, f"to be a multiple of refresh={self._block}")
        if self._everyone is None:
            self._block = math.gcd(self._block, errors.whole("keep_iterates", every, least=1))
        return Iterates(folder, every, self.stop_at)

    def _witnessed(self, everyone: Any) -> Any:
        """Of the records and then the witnesses outside, those that the tallies ask for, in their order."""
        records, outside = everyone[: self.size], everyone[self.size :]
        audit = self._counts[0]
        watched = records if self._watches_all else outside[audit:]
        return np.concatenate([outside[:audit], records[self.members], watched])

    def account(
        self, stop: int, raw: Array, distances: Array, evaluate: Callable[[Any], dict[str, float]] | None
    ) -> None:
        """Charge the witnesses for the steps up to `stop`, and look if it is time."""
        if self._everyone is not None:
            for start, count, moved in self._stretches:
                if sum(self._counts):
                    self.tallies.charge(start, self._witnessed(moved), count)
            self.done = stop
            if stop % self.interval == 0 or stop == self.stop_at:
                self._look(self._witnessed(self._everyone.raw), evaluate)
            return
        chains = distances if self.plan.parallel is not None else distances[None]
        for i, step in enumerate(range(self.done, stop)):
            for seen in chains[:, i] if chains.shape[-1] else ():
                # float32 stays float32, so that the accountants know how far to raise it.
                self.tallies.charge(step, seen / np.float32(self._sensitivity[step]))
        self.done = stop
        raw, distances = (raw[0], distances[0]) if self.plan.parallel is not None else (raw, distances)
        if self.interval >= self.stop_at and not distances.shape[1] and evaluate is None:
            return  # one look at the end, with nobody to look at, would repeat the guarantee
        if stop % self.interval == 0 or stop == self.stop_at:
            self._look(raw[(stop - 1) % self._block] if raw.shape[1] else raw[0], evaluate)

    def _look(self, norms: Array, evaluate: Callable[[Any], dict[str, float]] | None) -> None:
        """Keep what can be said of the run so far; `norms` are the witnesses' at the last step."""
        dp, bdp, per_instance = self.tallies.look(self.plan.coverage)
        shown = np.minimum(norms.astype(np.float64), LARGEST)
        self.looks.append(
            Look(
                step=self.done,
                dp=dp,
                bdp=bdp,
                per_instance=per_instance,
                norms=tuple(np.quantile(shown, LEVELS).tolist()) if len(shown) else (),
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
            for level, q, count in phases(self.noise[:middle], plan.rates[:middle]):
                accountant.step(noise_multiplier=level, sampling_rate=q, steps=count * (plan.parallel or 1))
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


def _gradients_of(loss: Any) -> Any:
    """Gradients of a loss of one record; an objective that draws at every step (`learn.elbo`) is taken as it is."""
    if isinstance(loss, ModelLoss):
        return BookKeeping(loss)
    return loss if hasattr(loss, "clip_sum") or hasattr(loss, "drawn") else PerExample(loss)


def _start(gradients: Any, optimizer: optax.GradientTransformation, params: Any) -> Any:
    return gradients.start(optimizer, params) if hasattr(gradients, "start") else optimizer.init(params)


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
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *parts)


def _check_alike(name: str, part: Any, data: Any) -> None:
    if part is None:
        return
    if len({jax.tree.structure(part), jax.tree.structure(data)}) > 1:
        raise InputError(f"Expected {name} to be a tree of the same form as data, got another.")
    for given, held in zip(jax.tree.leaves(part), jax.tree.leaves(data), strict=True):
        if np.shape(given)[1:] != np.shape(held)[1:]:
            raise InputError(
                f"Expected {name} to hold records of the same shape as data, {np.shape(held)[1:]}, got "
                f"{np.shape(given)[1:]}."
            )
