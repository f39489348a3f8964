"""Pure `init` and `step` for people with a loop of their own, and the same in the shapes of BlackJAX and NumPyro.

    init, step, guarantee = pure(plan, loss, params, data)
    state = init()
    for _ in range(plan.steps):
        state = jax.jit(step)(state)            # Poisson batch, clipping, noise, update
    state.params, guarantee

`step` is a function of its state alone and can be compiled and scanned. The guarantee is that of all planned steps,
whatever is looked at in between: states are what is released. Steps past the plan change nothing.

**A state is stepped from once.** Its key and number decide its noise: two different continuations of one state share
it, and who sees both subtracts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bayesdp import errors
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.setup import Setup
from bayesdp.learn.noise_kind import with_noise
from bayesdp.learn.posterior.gaussian import Posterior
from bayesdp.learn.posterior.inference import Inference
from bayesdp.learn.prelude import with_prelude
from bayesdp.learn.record_count import with_count
from bayesdp.learn.records import Data
from bayesdp.learn.sgd import SGD
from bayesdp.learn.sgmcmc.sampler import Sampler
from bayesdp.learn.sgmcmc.sgld import SGLD
from bayesdp.learn.vi.vi import VI
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.mechanism.noise import step_keys


class State(NamedTuple):
    """Where a run is: what may be published (`params`), the state of the optimiser, the secret key, steps taken."""

    params: Params
    inner: Any
    key: jax.Array
    number: jax.Array


class Pure(NamedTuple):
    """`init(seed=None)` → State, `step(State)` → State, and the DP guarantee of all planned steps."""

    init: Callable[..., State]
    step: Callable[[State], State]
    guarantee: Guarantee


def pure(plan: SGD | Inference[Any], model: Any, params: Params, data: Data) -> Pure:
    """The steps of a plan as pure functions.

    Args:
        plan: `SGD`, `VI` or a sampler with one chain, its noise set; no filter, no measured records.
        model: what `plan.fit` takes: a loss of one record, or a model.
        params: where it starts, as for `plan.fit`; None where the model says it.
        data: a tree of arrays with the records along the first axis; the steps hold on to it.

    Returns:
        a `Pure`: `init`, `step`, `guarantee`.

    Bad input: see `plan.fit`; several chains, a filter, a plan without noise.

    Example:
        >>> import bayesdp as bd, jax.numpy as jnp, numpy as np, optax
        >>> from bayesdp.interop.pure import pure
        >>> plan = bd.SGD(sampling_rate=0.5, steps=3, noise_multiplier=1.0, optimizer=optax.sgd(0.1), engine="rdp")
        >>> loss = lambda w, record: jnp.square(record - w)
        >>> init, step, guarantee = pure(plan, loss, jnp.zeros(()), np.ones(20, np.float32))
        >>> int(step(step(init())).number)
        2
    """
    course = plan.about(data).course(model, params) if isinstance(plan, SGD) else plan.course(model, data, params)
    if course.filter is not None or course.measure_every is not None:
        raise errors.refuse("plan", plan.kind, "to have neither a filter nor measure_every", got="one that has")
    if (course.chains or 1) != 1:
        raise errors.refuse("num_chains", course.chains, "to be 1", "Take several states, and charge each.")
    if plan.noise_kind != "float" or not plan.bounded or not (plan.noise > 0).all():
        raise errors.refuse("plan", plan.kind, "to clip, and to add float noise in every step", got="another")
    if isinstance(plan, SGLD) and plan.last_only is not None:
        raise errors.refuse("last_only", plan.last_only, "to be left out: every state can be looked at")
    setup = Setup.of(course, data)
    counted = with_count(setup.tallies().guarantees(plan.coverage)[0], plan.num_records, setup.witnesses.size)
    return Pure(
        _init(course), _step(setup), with_noise(with_prelude(counted, plan.prelude, plan.prelude_delta), "float", 0.0)
    )


def _init(course: Course) -> Callable[..., State]:
    def init(seed: int | None = None) -> State:
        """The state before the first step; a seed makes it reproducible and **not private**."""
        start = course.params if course.chains is None else jax.tree.map(lambda leaf: leaf[0], course.params)
        kind = course.plan.noise_kind
        key = fresh_key(kind) if seed is None else seeded_key(seed, kind)
        begun = jax.tree.map(jnp.asarray, start)
        return State(begun, course.objective.start(begun), key, jnp.zeros((), jnp.int32))

    return init


def _step(setup: Setup) -> Callable[[State], State]:
    objective, last = setup.course.objective, setup.stop_at - 1

    def step(state: State) -> State:
        """One private step; nothing changes past the planned ones."""
        now = jax.tree.map(lambda column: jnp.asarray(column)[jnp.minimum(state.number, last)], setup.columns)
        point = objective.locate(objective.draw(step_keys(state.key, state.number).public, state.params), state.params)
        released, _ = setup.step(
            state.key,
            state.number,
            point,
            setup.fixed.records,
            clip_norm=jax.tree.map(lambda norm: norm * now.clip_factor, setup.fixed.rule),
            noise_std=now.noise_std,
            phase=now.phase,
        )
        moved = objective.advance(now, point, state.inner, released)
        goes_on = state.number <= last

        def chosen(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(goes_on, a, b), new, old)

        return State(
            chosen(moved.params, state.params),
            chosen(moved.state, state.inner),
            state.key,
            jnp.where(goes_on, state.number + 1, state.number),
        )

    return step


class SamplingAlgorithm(NamedTuple):
    """BlackJAX's shape: `init()` → state, `step(rng_key, state)` → (state, info); and the guarantee of all steps."""

    init: Callable[..., State]
    step: Callable[[Any, State], tuple[State, None]]
    guarantee: Guarantee


def kernel(plan: Sampler, model: Any, params: Params, data: Data) -> SamplingAlgorithm:
    """A private sampler in the shape of a BlackJAX kernel.

    Args:
        plan: a sampler with one chain, such as `bd.SGLD`.
        model: (log_prior, log_likelihood) or a NumPyro model.
        params: the position that the chain starts from.
        data: a tree of arrays with the records along the first axis.

    Returns:
        a `SamplingAlgorithm`. The key that is given to its `step` is not used: private noise comes from the state's
        own, drawn from the operating system.
    """
    steps = pure(plan, model, params, data)

    def step(rng_key: Any, state: State) -> tuple[State, None]:
        del rng_key
        return steps.step(state), None

    return SamplingAlgorithm(steps.init, step, steps.guarantee)


class SVIResult(NamedTuple):
    """NumPyro's `SVIRunResult` with the posterior for the state; losses would be unpaid looks: there are none."""

    params: dict[str, Any]
    posterior: Posterior
    losses: None = None


@dataclass(frozen=True)
class PrivateSVI:
    """NumPyro's `SVI` for a plan: `run(rng_key, num_steps, *args)`.

    Args:
        model: a NumPyro model with a data plate.
        plan: a `bd.VI`, its noise set; its guide is the plan's Gaussian.
    """

    model: Any
    plan: VI

    def run(self, rng_key: int | None, num_steps: int, *args: Any, **kwargs: Any) -> SVIResult:
        """Fit the plan to the records that the model is called with.

        Args:
            rng_key: None: noise from the operating system. A whole number makes the run reproducible and **not
                private**.
            num_steps: as many as the plan has, which the noise was calibrated for.
            *args: what the model is called with.
            **kwargs: the same by name.

        Returns:
            an `SVIResult`: `params` (auto_loc, auto_scale, on the real line) and `posterior`.

        Bad input: another number of steps, a JAX key, arguments both by place and by name.
        """
        if rng_key is not None:
            hint = "A JAX key may be known to others: private noise comes from the operating system."
            errors.whole("rng_key", rng_key if isinstance(rng_key, int) else None, least=0, hint=hint)
        if errors.whole("num_steps", num_steps, least=1) != self.plan.steps:
            raise errors.refuse("num_steps", num_steps, f"to be the plan's, {self.plan.steps}")
        if args and kwargs:
            raise errors.refuse("args", len(args), "to be given either by place or by name", got="both")
        found = self.plan.fit(self.model, kwargs or args, seed=rng_key)
        return SVIResult({"auto_loc": found.mean, "auto_scale": found.std}, found)
