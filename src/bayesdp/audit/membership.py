"""A likelihood-ratio membership attack on single records, over many small runs in one compiled program (L9, H14).

In each run every attacked record is in by a coin of its own. The attacker sees every noisy sum y_t, knows all records
and the parameters, and not who was drawn. Of record i with clipped gradient g the score is

    S_i = Σ_t log(1 − q + q e^{(⟨g, y_t − m_t⟩ − |g|²/2)/v_t}),     m_t the mean of the others' sum,
                                                                    v_t = s_t² + its variance along g
which is the likelihood ratio if the others' sum is taken for Gaussian. Whatever it is, how often a threshold on it errs
bounds the record's ε from below: the threshold comes from one half of the runs and is tried on the other. Beside it
stands the record's per-instance ε, the largest of all runs, from the norms that these runs had.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bayesdp import errors
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.audit.mechanism import AuditedPlan
from bayesdp.audit.two_errors import two_errors
from bayesdp.compose import orders
from bayesdp.errors import Array
from bayesdp.learn.loop.objective import Params, State
from bayesdp.learn.loop.setup import Setup
from bayesdp.learn.loop.trajectories import Trajectories, first_carry
from bayesdp.learn.records import Data, Record, records_of
from bayesdp.learn.sgd import SGD, Loss
from bayesdp.mechanism.clipping import Flat, clip_rule
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.report.audit import CanaryBounds

MOST_RECORDS = 5_000
"""Every step of every run computes the gradients of all."""


class Attacked(NamedTuple):
    """What a run carries: the model, who is in, the scores, and the clipped norms of every step (steps, attacked)."""

    model: Params
    coins: jax.Array
    scores: jax.Array
    norms: jax.Array


class _State(NamedTuple):
    optimizer: State
    step: jax.Array


def membership(
    plan: SGD,
    loss: Loss,
    params: Params,
    data: Data,
    rows: Sequence[int],
    *,
    runs: int = 1000,
    failure: float = 0.01,
    seed: int | None = None,
) -> CanaryBounds:
    """Bounds on the ε of the records that stand in `rows` of `data`, each by itself, from `runs` small runs.

    `plan` clips at one norm and sums; the runs have float noise, whatever the plan's is, which the attack does not look
    into. Every run computes all gradients in every step: for some hundred records.
    Sensitive: it is computed from private records, and publishing the runs would cost as much as all of them.

    Bad input: a plan that cannot be audited, clip norms by layer, or rows that are not in the data get `InputError`.
    """
    audited, size = AuditedPlan.of(plan), records_of("data", data)
    if size > MOST_RECORDS:
        raise errors.refuse("data", size, f"to have at most {MOST_RECORDS:,} records", got=f"{size:,}")
    if plan.filter is not None:
        raise errors.refuse("plan", plan.filter, "to hold nobody to a budget of their own")
    if not isinstance(clip_rule(plan.clip_norm), Flat) or plan.adjacency != "add-remove":
        raise errors.refuse("plan", plan.clip_norm, "to clip at one norm, and to add or remove records")
    places = np.array([errors.whole("rows", row, least=0, most=size - 1) for row in rows])
    count = errors.whole("runs", runs, least=16)
    if not len(places) or len(set(places.tolist())) < len(places):
        raise errors.refuse("rows", rows, "to name one or more different records")
    index = np.full(size, -1, np.int32)
    index[places] = np.arange(len(places))

    def coined(carried: Attacked, record: Record) -> jax.Array:
        own, at = record
        there = jnp.where(at >= 0, jax.lax.stop_gradient(carried.coins)[at], 1.0)
        return jnp.where(there > 0, loss(carried.model, own), 0.0)

    steps = len(audited.noise)
    start = Attacked(params, jnp.ones(len(places)), jnp.zeros(len(places)), jnp.zeros((steps, len(places))))
    scorer = _scorer(plan, audited, loss, data, places)
    small = dataclasses.replace(
        plan, optimizer=scorer, num_records=plan.num_records or size, report_every=steps, noise_kind="float"
    )
    setup = Setup.of(small.course(coined, start), (data, index))
    key = fresh_key() if seed is None else seeded_key(seed)
    coins = np.random.default_rng(seed).random((count, len(places))) < 0.5
    carry = first_carry(setup.course, count)
    carry = carry._replace(params=carry.params._replace(coins=jnp.asarray(coins, jnp.float32)))
    trajectories = Trajectories(setup, carry, jax.random.split(key, count))
    for _ in trajectories.intervals([]):
        pass
    told = np.asarray(trajectories.carry.params.scores, np.float64)
    lower = [
        two_errors(told[~coins[:, i], i], told[coins[:, i], i], delta=plan.delta, failure=failure).ratio.epsilon(
            plan.delta
        )
        for i in range(len(places))
    ]
    upper = _upper(audited, np.asarray(trajectories.carry.params.norms, np.float64))
    names = tuple(f"record {row + 1}" for row in places)
    return CanaryBounds(names=names, lower=tuple(lower), upper=tuple(upper), failure=failure, plays=count)


def _scorer(plan: SGD, audited: AuditedPlan, loss: Loss, data: Data, places: Array) -> optax.GradientTransformation:
    """The plan's own optimiser for the model; scores and norms of the attacked records beside it."""
    rates, clips, stds = (
        jnp.asarray(one, jnp.float32) for one in (audited.rates, audited.clip_norms, audited.noise * audited.clip_norms)
    )
    size = records_of("data", data)
    public, at = float(plan.num_records or size), jnp.asarray(places)
    kept, records = np.ones(size), jax.tree.map(jnp.asarray, data)
    kept[places] = 0.5  # the attacker does not know the coins
    weights = jnp.asarray(kept, jnp.float32)

    def begin(params: Attacked) -> _State:
        return _State(plan.optimizer.init(params.model), jnp.int32(0))

    def update(released: Attacked, state: _State, params: Attacked) -> tuple[Attacked, _State]:
        q, clip, std = rates[state.step], clips[state.step], stds[state.step]
        each = jax.vmap(lambda record: _flat(jax.grad(loss)(params.model, record)))(records)
        lengths = jnp.linalg.norm(each, axis=1)
        clipped = each * jnp.minimum(1.0, clip / jnp.maximum(lengths, 1e-30))[:, None]
        own = clipped[at]
        square = jnp.sum(own**2, axis=1)
        here = q * weights
        # The others' sum: all of them less the record's own part.
        rest = _flat(released.model) * (q * public) - here @ clipped
        along = own @ rest + here[at] * square
        shared = (clipped @ own.T) ** 2 * (here * (1 - here))[:, None]
        spread = jnp.sum(shared, axis=0) - shared[at, jnp.arange(len(at))]
        variance = std**2 + spread / jnp.maximum(square, 1e-30)
        lost = (along - square / 2) / variance
        ratio = jnp.logaddexp(jnp.log1p(-jnp.minimum(q, 0.999999)), jnp.log(q) + lost)
        moved, inner = plan.optimizer.update(released.model, state.optimizer, params.model)
        norms = jnp.zeros_like(params.norms).at[state.step].set(jnp.sqrt(square))
        return Attacked(moved, jnp.zeros_like(params.coins), ratio, norms), _State(inner, state.step + 1)

    return optax.GradientTransformation(begin, update)


def _upper(audited: AuditedPlan, norms: Array) -> Array:
    """The largest per-instance ε of each record over the runs, never above the plan's own; `norms` (runs, steps, m)."""
    runs, steps, count = norms.shape
    noise, rates, counts = (np.array([run[place] for run in audited.history]) for place in range(3))
    kinds = orders.planned(noise, rates, counts, audited.delta)
    book = InstanceAccountant(
        records=runs * count, orders=kinds[0], weights=kinds[1], total_steps=steps, cap=1.0, adjacency="add-remove"
    )
    for t in range(steps):
        share = np.minimum(norms[:, t].ravel() / audited.clip_norms[t] * (1 + 1e-5), 1.0)
        book.step(share, noise_std=float(audited.noise[t]), sampling_rate=float(audited.rates[t]))
    each = book.epsilon(audited.delta).reshape(runs, count)
    largest: Array = np.minimum(each.max(axis=0), audited.epsilon)
    return largest


def _flat(tree: Params) -> jax.Array:
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])
