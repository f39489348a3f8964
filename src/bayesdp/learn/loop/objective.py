"""What the loop of private learning asks of what is learnt.

    draws = draw(key, params)               what is drawn in public for a step; it may be drawn long before
    point = locate(draws, params)           where the step is taken: the parameters, and those draws
    sum   = Σ_x m_x clip(signal_x(point))   the only thing that sees records; noise is added to it, nothing else
    params, state = advance(…, noisy mean)  what is made of it: post-processing

`SGD` descends along the noisy mean, `VI` has the gradient of its ELBO, a sampler turns it into a force and keeps
iterates as samples. Objectives are values: equal ones share a compiled program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import jax
import numpy.typing as npt

from bayesdp.learn.records import Data
from bayesdp.mechanism.clipping import Norms
from bayesdp.mechanism.per_example import Gradients

Params = Any
"""A tree of float arrays: what is learnt."""

Draws = Any
"""A tree of arrays that anybody may know; None where nothing is drawn."""

Point = Any
"""Where a step is taken: parameters, or a tree that holds them."""

Signal = Any
"""A tree of float arrays: a sum over records, or its noisy mean."""

State = Any
"""What a run carries beside its parameters: the state of an optimiser, momentum, averages."""

Store = Any
"""Iterates that are kept, (kept, runs, …); None where none are."""

ClipNorm = Any
"""What `mechanism.clipping` takes: a number, a tree of numbers, None, or a rule."""

Numbers = jax.Array | npt.NDArray[Any]
"""Of every step, (steps,), or of one."""

Pace = Any
"""Public numbers that one kind of objective wants at every step, (steps, …); None where none are wanted."""


class StepSettings(NamedTuple):
    """What is public of every step, each of shape (steps, …); inside of the program, of one step."""

    number: jax.Array
    clip_factor: jax.Array
    noise_std: jax.Array
    phase: jax.Array
    pace: Pace


class Position(NamedTuple):
    """Where a run is: its parameters, and the state beside them."""

    params: Params
    state: State


class Objective(Gradients, ABC):
    """Signals of records, and what a step makes of their noisy mean; written for one run, without an axis of runs."""

    @abstractmethod
    def start(self, params: Params) -> State:
        """The state before the first step."""

    @abstractmethod
    def advance(self, now: StepSettings, point: Point, state: State, released: Signal) -> Position:
        """Where the run is after a step, from what it released: post-processing."""

    @abstractmethod
    def clip_sum(
        self,
        params: Point,
        examples: Data,
        mask: jax.Array,
        clip_norm: ClipNorm,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Signal, Norms]:
        """Σ_x m_x clip(signal_x) and the norms, of whole numbers with `per_unit`: see `mechanism.Gradients`."""

    @abstractmethod
    def norms(
        self, params: Point, examples: Data, mask: jax.Array, clip_norm: ClipNorm, subset: Params | None = None
    ) -> Norms:
        """The norms alone."""

    def draw(self, key: jax.Array, params: Params) -> Draws:
        """What is drawn for a step that may be known to everybody; of `params` only the form may count."""
        del key, params
        return None

    def locate(self, draws: Draws, params: Params) -> Point:
        """Where a step is taken, given its draws."""
        del draws
        return params

    def drawn_point(self, key: jax.Array, params: Params) -> Point:
        """Both in one: where the step that draws with `key` is taken."""
        return self.locate(self.draw(key, params), params)

    def store(self, params: Params) -> Store:
        """Room for the iterates that are kept, of all runs: `params` (runs, …)."""
        del params
        return None

    def keep(self, store: Store, now: StepSettings, params: Params) -> Store:
        """The store with this step's iterates of all runs: `params` (runs, …)."""
        del now, params
        return store


class GradientsAt(NamedTuple):
    """Gradients of records, and where they are taken."""

    gradients: Gradients
    params: Params


class GradientObjective(Objective):
    """The signal of a record is its gradient."""

    @abstractmethod
    def at(self, point: Point) -> GradientsAt:
        """Whose gradients a step at `point` asks for, and at which parameters."""

    def clip_sum(
        self,
        params: Point,
        examples: Data,
        mask: jax.Array,
        clip_norm: ClipNorm,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Signal, Norms]:
        """Σ_x m_x clip(M ∘ g_x) and the norms."""
        here = self.at(params)
        return here.gradients.clip_sum(here.params, examples, mask, clip_norm, subset, per_unit)

    def norms(
        self, params: Point, examples: Data, mask: jax.Array, clip_norm: ClipNorm, subset: Params | None = None
    ) -> Norms:
        """The norms alone."""
        here = self.at(params)
        return here.gradients.norms(here.params, examples, mask, clip_norm, subset)

    def zero(self, params: Point) -> Signal:
        """An empty sum."""
        here = self.at(params)
        return here.gradients.zero(here.params)
