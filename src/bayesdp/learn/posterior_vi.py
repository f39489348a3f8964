"""Variational inference without noise, of which only samples are released (paper S1, section V-C, made sound by H6).

    train θ on D without noise  →  keep θ secret  →  release w_1 … w_n ~ q(·; θ)

    plan = bd.PosteriorVI(sampling_rate=0.05, steps=1000, samples=10, widen=0.1)
    posterior = plan.fit(model, (x, y), audit=(x_others, y_others))     # others: never trained on
    posterior.sample(10)                                                # charged; an eleventh is refused
    posterior.predict((x_new,)), posterior.guarantees, posterior.curve(), posterior.report("report.html")

Take it where people like those in the data are to be protected and nothing need be promised to an unlikely one; where
everybody is, take `bd.VI`. The more is added by `temper` and `widen`, the less samples tell; more records help most.

Let ω be the randomness of training (batches, Monte Carlo draws), independent of the data, and θ' what the same ω makes
of the data with one record x more or fewer, or another in its place: a *shadow* (`shadow`). Given ω both are fixed and
samples are independent, so the loss L = Σ_j log q(w_j;θ)/q(w_j;θ') has E exp(λL − nλD_{λ+1}(q‖q')) = 1. It follows
(proofs: docs/theory.md):

- *one record*: given any ω, with probability 1 − δ the loss stays below ε_x(ω), either way round, whenever sampling
  stops;
- *people like those in the data*: an order statistic over witnesses, outsiders and members, bounds ε_x(ω) for a share
  of people (H5, H12), a person's own batch coins being part of the draw;
- *everybody*: nothing. One wild record moves θ anywhere: the "dp" entry is infinite, unless the mean is kept in a
  public ball and the scales in a public range (`radius`, `scales`), which bounds any two posteriors.

S1's own recipe (`accounting="one-step"`) compares single steps from a common θ. It forgets what earlier steps have
carried over: its number is labelled and no bound (ERR 8).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bayesdp import convert, errors
from bayesdp.accountant.calibrate import calibrate_noise
from bayesdp.accountant.coverage import check_support
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.errors import Array, InputError
from bayesdp.guarantee import ADJACENCIES, Adjacency, Sampling
from bayesdp.learn.crowd import Crowd, gather
from bayesdp.learn.guide import KINDS, Guide, Kind
from bayesdp.learn.one_step import OneStep
from bayesdp.learn.probabilistic import Data, Probabilistic, probabilistic, records_of
from bayesdp.learn.release import Softening, two_sided_cost
from bayesdp.learn.release_account import ORDERS, ReleaseAccount, affordable, worst_epsilon
from bayesdp.learn.secret_posterior import SecretPosterior, sampler
from bayesdp.learn.shadow import Shadows
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.report import Settings

Accounting = Literal["shadow", "one-step"]
Read = tuple[Array, Array, dict[str, Any]]
"""What comes of a training: mean and spread of the posterior, and who answers for whom."""


@dataclass(frozen=True, kw_only=True)
class PosteriorVI:
    """What will be done, all of it public.

    Args:
        sampling_rate: chance q that a record enters a step (Poisson); 1 for all records in every step.
        steps: how many steps; fixed beforehand.
        optimizer: any optax optimiser, with any learning-rate schedule; it gets the gradient of −ELBO/N.
        samples: how many samples may be released; the account refuses more.
        guide: "mean-field" or "full-rank".
        draws: Monte Carlo draws a step. average: share of the last iterates whose mean is the result (0: the last one).
        initial_scale: the guide's first standard deviation.
        temper, widen: samples come from N(mean, temper·covariance + widen²): above 1 and 0 they tell less and less.
        radius, scales: public bounds for the mean's length and the (least, largest) standard deviation on the real
            line; with both there is a finite DP ε.
        delta, coverage, failure: of the guarantees.
        conversion: "tail" bounds the loss itself, whenever sampling stops; "hockey-stick" is the smaller ε of ordinary
            (ε, δ).
        adjacency: "replace-one" for promises about exchanging a record for another. A record's share is then one of
            pairs (member, outsider); nobody can be watched.
        epsilon_budget: refuse the sample that would pass this DP ε at δ (needs radius and scales).
        accounting: "shadow", or "one-step" for the paper's own recipe, which is unsound (ERR 8).

    Bad input gets `InputError` naming the field.
    """

    sampling_rate: float
    steps: int
    optimizer: optax.GradientTransformation = field(default_factory=lambda: optax.adam(0.02))
    samples: int = 10
    guide: Kind = "mean-field"
    draws: int = 1
    average: float = 0.25
    initial_scale: float = 0.1
    temper: float = 1.0
    widen: float = 0.0
    radius: float | None = None
    scales: tuple[float, float] | None = None
    delta: float = 1e-5
    coverage: float = 0.9
    failure: float = 1e-6
    conversion: convert.Conversion = "tail"
    adjacency: Adjacency = "add-remove"
    epsilon_budget: float | None = None
    accounting: Accounting = "shadow"

    def __post_init__(self) -> None:
        errors.number("sampling_rate", self.sampling_rate, above=0, most=1)
        errors.whole("steps", self.steps, least=1)
        errors.whole("samples", self.samples, least=1)
        errors.one_of("guide", self.guide, KINDS)
        errors.whole("draws", self.draws, least=1)
        errors.number("average", self.average, least=0, most=1)
        errors.number("initial_scale", self.initial_scale, above=0)
        for name in ("delta", "coverage", "failure"):
            errors.probability(name, getattr(self, name))
        errors.one_of("conversion", self.conversion, convert.CONVERSIONS)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        if errors.one_of("accounting", self.accounting, ("shadow", "one-step")) == "one-step":
            for name, only in (("guide", "mean-field"), ("adjacency", "add-remove")):
                if getattr(self, name) != only:
                    expected = f'to be "{only}" for accounting="one-step", as in the paper'
                    raise errors.refuse(name, getattr(self, name), expected)
        affordable(self.softening.worst_cost(1, ORDERS), self.samples, self.delta, self.epsilon_budget)

    @property
    def softening(self) -> Softening:
        """What is done to a posterior before it is sampled."""
        return Softening(self.temper, self.widen, self.radius, self.scales)

    def calibrate(self, epsilon: float, *, dim: int) -> Self:
        """The plan with the least `widen` whose DP ε at δ, for all samples of `dim` parameters, is at most `epsilon`.

        Bad input: no radius and scales, or an ε out of reach.
        """
        if not self.softening.bounded:
            raise InputError(
                "Expected radius and scales to calibrate to a DP ε, got none: it is infinite without them."
            )
        plan, count = self, errors.whole("dim", dim, least=1)

        @dataclass(frozen=True)
        class Widened:
            widen: float

            def epsilon(self, delta: float) -> float:
                worst = dataclasses.replace(plan.softening, widen=self.widen).worst_cost(count, ORDERS)
                return worst_epsilon(worst, plan.samples, delta)

        return dataclasses.replace(self, widen=calibrate_noise(Widened, epsilon, self.delta))

    def fit(
        self,
        model: Any,
        data: Data,
        *,
        audit: Data = None,
        members: int | None = None,
        watch: Data = None,
        params: Any = None,
        seed: int | None = None,
    ) -> SecretPosterior:
        """Train on `data`, with a shadow for every witness, and keep the result secret.

        Args:
            model: a NumPyro model with a data plate, or a pair (log_prior, log_likelihood): see `probabilistic`.
            data: arrays with the records along the first axis.
            audit: records of the same distribution that are never trained on: outsiders, each with a shadow that has
                it.
            members: how many training records are drawn before the run as witnesses, each with a shadow without it;
                None: 1000. For "replace-one" there are as many as outsiders, each of whom takes the place of one.
            watch: records whose own guarantee is wanted: with one copy more and, where the data hold it, one fewer.
            params: starting values; see `probabilistic`.
            seed: makes the run reproducible and **not private**.

        Preprocessing, start, rates and N are taken to be public. A witness costs about as much as a training run of its
        own, all of them in one program.
        """
        size = records_of("data", data)
        outsiders = 0 if audit is None else records_of("audit", audit)
        chosen = self._members(size, outsiders, members, watch, seed)
        if self.accounting == "shadow":  # refuse now what could not be answered after training
            sides = {"exchanged": outsiders} if self._exchange else {"absent": outsiders, "present": len(chosen)}
            sides = {name: count for name, count in sides.items() if count}
            check_support(sides, self.coverage, self.failure / max(len(sides), 1))
        train, draw = jax.random.split(seeded_key(seed) if seed is not None else fresh_key())
        with jax.enable_x64(True):
            known = probabilistic(model, data, params)
            worst = self.softening.worst_cost(known.dim, ORDERS)
            samples = affordable(worst, self.samples, self.delta, self.epsilon_budget)
            guide, arrays = Guide(self.guide, known.dim), _doubles(data)
            crowd = gather(arrays, audit, chosen, watch, exchange=self._exchange)
            theta = np.asarray(self._program(known, guide)(train, arrays, crowd.witnesses))
        mean, spread, books = (
            self._shadowed(guide, theta, crowd, samples)
            if self.accounting == "shadow"
            else self._stepped(guide, theta, samples)
        )
        account = ReleaseAccount(samples=samples, delta=self.delta, worst=worst, adjacency=self.adjacency, **books)
        return SecretPosterior(self, known, sampler(mean, spread, draw), account, records=size, seeded=seed is not None)

    def describe(self) -> dict[str, Any]:
        """The plan as plain values, the optimiser left out (it is a function)."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "optimizer"}

    def settings(self, records: int, drawn: int, allowed: int) -> Settings:
        """What a report says was done."""
        return Settings(
            kind="variational inference without noise, samples released",
            sampling_rate=self.sampling_rate,
            steps=self.steps,
            records=records,
            conversion=f"{self.conversion}, at each record's own best Rényi order"
            if self.accounting == "shadow"
            else "the paper's, at whole orders up to 33",
            other={
                "samples released": drawn,
                "samples allowed": allowed,
                "guide": self.guide,
                "accounting": self.accounting,
                "temper": self.temper,
                "widen": self.widen,
            },
        )

    # --- how ------------------------------------------------------------------------------------------------

    @property
    def _exchange(self) -> bool:
        return self.adjacency == "replace-one"

    def _members(self, size: int, outsiders: int, members: int | None, watch: Data, seed: int | None) -> Any:
        """The rows of the data that are witnesses, or that outsiders are to take the places of."""
        rng = np.random.default_rng(seed)
        if self.accounting == "one-step":
            if not outsiders or watch is not None:
                raise InputError('Expected audit records, and none to watch, for accounting="one-step".')
            return np.zeros(0, np.int64)
        if self._exchange:
            if members is not None or watch is not None:
                raise InputError(
                    'Expected neither members nor watch for adjacency="replace-one", got some. Each audit record takes '
                    "the place of a training record; who would take that of a watched one is not known."
                )
            return rng.integers(size, size=outsiders)
        count = 1000 if members is None else errors.whole("members", members, least=0)
        return np.sort(rng.permutation(size)[:count])

    def _program(self, model: Probabilistic, guide: Guide) -> Shadows:
        return Shadows(
            model,
            guide,
            self.optimizer,
            self.sampling_rate,
            self.steps,
            initial_scale=self.initial_scale,
            draws=self.draws,
            averaged=max(1, math.ceil(self.average * self.steps)),
            forgetful=self.accounting == "one-step",
        )

    def _shadowed(self, guide: Guide, theta: Array, crowd: Crowd, samples: int) -> Read:
        mean, spread = self.softening(*guide.moments(theta))
        _check_finite(mean[0], spread[0])
        each = two_sided_cost(mean[0], spread[0], mean[1:], spread[1:], ORDERS)
        common: dict[str, Any] = {
            "planned": samples,
            "conversion": self.conversion,
            "sampling": self._sampling,
            "adjacency": self.adjacency,
        }
        books = {name: RepeatedRelease(cost, ORDERS, **common) for name, cost in crowd.costs(each).items()}
        watched = books.pop("watched", None)
        alike = RepeatedWitnesses(books, coverage=self.coverage, failure=self.failure) if books else None
        return mean[0], spread[0], {"alike": alike, "watched": watched}

    def _stepped(self, guide: Guide, theta: Array, samples: int) -> Read:
        mean, spread = self.softening(*guide.moments(theta))
        _check_finite(mean, spread)
        alike = OneStep(mean, spread, self.sampling_rate, samples)
        return mean[-1, 0], spread[-1, 0], {"alike": alike, "watched": None}

    @property
    def _sampling(self) -> Sampling:
        return "poisson" if self.sampling_rate < 1 else "none"


def _check_finite(mean: Array, spread: Array) -> None:
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        raise InputError("Expected training to end at finite numbers, got others. Use a smaller learning rate.")


def _doubles(data: Data) -> Data:
    def leaf(values: Any) -> jax.Array:
        floating = np.issubdtype(np.asarray(values).dtype, np.floating)
        return jnp.asarray(values, float) if floating else jnp.asarray(values)

    return jax.tree.map(leaf, data)
