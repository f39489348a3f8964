"""Variational inference without noise, of which only samples are released (paper S1, section V-C, made sound by H6).

    train θ on D without noise  →  keep θ secret  →  release w_1 … w_n ~ q(·; θ)

    plan = bd.PosteriorVI(sampling_rate=0.05, steps=1000, samples=10, extra_std=0.1)
    posterior = plan.fit(model, (x, y), holdout=(x_others, y_others))     # others: never trained on
    posterior.sample(10)                                                # charged; an eleventh is refused
    posterior.predict((x_new,)), posterior.guarantees, posterior.curve(), posterior.report("report.html")

Take it where people like those in the data are to be protected and nothing need be promised to an unlikely one; where
everybody is, take `bd.VI`. The more `temper` and `extra_std` add, the less samples tell; more records help most.

Let ω be the randomness of training (batches, Monte Carlo draws), independent of the data, and θ' what the same ω makes
of the data with one record x more or fewer, or another in its place: a *coupled neighbouring run* (`neighbour_runs`).
Given ω both are fixed and samples are independent, so the loss L = Σ_j log q(w_j;θ)/q(w_j;θ') has
E exp(λL − nλD_{λ+1}(q‖q')) = 1. It follows (proofs: docs/theory.md):

- *one record*: given any ω, with probability 1 − δ the loss stays below ε_x(ω), either way round, whenever sampling
  stops;
- *people like those in the data*: an order statistic over witnesses, outsiders and members, bounds ε_x(ω) for a share
  of people (H5), a person's own batch coins being part of the draw;
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
import numpy as np
import optax

from bayesdp import errors
from bayesdp.accountant.calibrate import calibrate_noise
from bayesdp.accountant.coverage import check_support
from bayesdp.accountant.gaussian_release import Softening
from bayesdp.accountant.release_account import ORDERS, ReleaseAccount, affordable, worst_epsilon
from bayesdp.convert import STRENGTHS, Strength
from bayesdp.errors import Array, named, unmet
from bayesdp.guarantee import ADJACENCIES, Adjacency
from bayesdp.learn.loop.plan import MOST_STEPS, TOO_MANY
from bayesdp.learn.loop.witnesses import drawn_members, members_wanted
from bayesdp.learn.models.density import Probabilistic, Values
from bayesdp.learn.models.reader import Model, probabilistic
from bayesdp.learn.posterior_sampling.neighbour_runs import NeighbourRuns, in_doubles
from bayesdp.learn.posterior_sampling.release import Release, coupled_release, one_step_release
from bayesdp.learn.posterior_sampling.secret_posterior import SecretPosterior, sampler
from bayesdp.learn.posterior_sampling.witness_groups import WitnessGroups
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data, Rows, records_of
from bayesdp.learn.vi.guide import KINDS, Guide, Kind
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.mechanism.people import People
from bayesdp.mechanism.sampling import drawable
from bayesdp.report import Settings
from bayesdp.unit import UNITS, Unit

MOST_SAMPLES = 10**6
"""All samples are kept, and computed with together."""

_CONVERSIONS = {
    "weak": "weak form, from the law of each record's loss",
    "strong": "strong form, at each record's own best Rényi order",
    "one-step": "the paper's, at whole orders up to 33",
}

Accounting = Literal["coupled", "one-step"]
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
        num_particles: Monte Carlo draws a step.
        averaged_fraction: share of the last iterates whose mean is the result (0: the last one).
        initial_scale: the guide's first standard deviation.
        temper: samples come from N(mean, temper·covariance + extra_std²): above 1 they tell less.
        extra_std: the same; above 0 they tell less.
        radius: a public bound for the mean's length on the real line; with `scales` there is a finite DP ε.
        scales: public bounds, (least, largest), for its standard deviation.
        delta: of the guarantees.
        coverage: the share of people that the Bayesian guarantee speaks for.
        failure: the chance that it does not.
        strength: "weak" is the ε of ordinary (ε, δ), how many samples are drawn not depending on their values; "strong"
            bounds the loss itself, whenever sampling stops.
        adjacency: "replace-one" for promises about exchanging a record for another. A record's share is then one of
            pairs (member, outsider); nobody can be watched.
        num_records: N, by which gradients are divided, declared independently of the data. None: that of the data,
            which each guarantee then says is public (H18).
        unit: "record", or "person" where a record of the data is a person with several rows (set for `People`).
        epsilon_budget: refuse the sample that would pass this DP ε at δ (needs radius and scales).
        accounting: "coupled", or "one-step" for the paper's own recipe, which is unsound (ERR 8).

    Bad input gets `InputError` naming the field.

    Examples:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(1.0, 1.0, 100).astype(np.float32)
        >>> model = bd.NormalPrior(np.zeros(1), 4.0), lambda mean, record: -((record - mean[0]) ** 2) / 2
        >>> secret = bd.PosteriorVI(sampling_rate=1.0, steps=20, samples=2).fit(model, x)
        >>> secret.sample(1).shape, secret.remaining, secret.guarantees[0].epsilon
        ((1, 1), 1, inf)
    """

    sampling_rate: float
    steps: int
    optimizer: optax.GradientTransformation = field(default_factory=lambda: optax.adam(0.02))
    samples: int = 10
    guide: Kind = "mean-field"
    num_particles: int = 1
    averaged_fraction: float = 0.25
    initial_scale: float = 0.1
    temper: float = 1.0
    extra_std: float = 0.0
    radius: float | None = None
    scales: tuple[float, float] | None = None
    delta: float = 1e-5
    coverage: float = 0.9
    failure: float = 1e-6
    strength: Strength = "weak"
    adjacency: Adjacency = "add-remove"
    num_records: int | None = None
    unit: Unit = "record"
    epsilon_budget: float | None = None
    accounting: Accounting = "coupled"

    def __post_init__(self) -> None:
        errors.number("sampling_rate", self.sampling_rate, above=0, most=1)
        drawable("sampling_rate", self.sampling_rate)
        errors.whole("steps", self.steps, least=1, most=MOST_STEPS, hint=TOO_MANY)
        errors.whole("samples", self.samples, least=1, most=MOST_SAMPLES)
        errors.one_of("guide", self.guide, KINDS)
        errors.whole("num_particles", self.num_particles, least=1)
        errors.number("averaged_fraction", self.averaged_fraction, least=0, most=1)
        errors.number("initial_scale", self.initial_scale, above=0)
        for name in ("delta", "coverage", "failure"):
            errors.probability(name, getattr(self, name))
        if self.num_records is not None:
            errors.whole("num_records", self.num_records, least=1)
        errors.one_of("unit", self.unit, UNITS)
        errors.one_of("strength", self.strength, STRENGTHS)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        if errors.one_of("accounting", self.accounting, ("coupled", "one-step")) == "one-step":
            for name, only in (("guide", "mean-field"), ("adjacency", "add-remove")):
                if getattr(self, name) != only:
                    expected = f'to be "{only}" for accounting="one-step", as in the paper'
                    raise errors.refuse(name, getattr(self, name), expected)
        affordable(self.softening.worst_cost(1, ORDERS), self.samples, self.delta, self.epsilon_budget)

    @property
    def softening(self) -> Softening:
        """What is done to a posterior before it is sampled."""
        return Softening(self.temper, self.extra_std, self.radius, self.scales)

    def calibrate(self, epsilon: float, *, dim: int) -> Self:
        """The plan with the least `extra_std` whose DP ε at δ, for all samples of `dim` numbers, is at most `epsilon`.

        Bad input: no radius and scales, or an ε out of reach.
        """
        if not self.softening.bounded:
            raise unmet(
                "radius",
                None,
                f"{named('radius')} and {named('scales')} to calibrate to a DP ε",
                "none: it is infinite without them",
            )
        plan, count = self, errors.whole("dim", dim, least=1)

        @dataclass(frozen=True)
        class Widened:
            extra_std: float

            def epsilon(self, delta: float) -> float:
                worst = dataclasses.replace(plan.softening, extra_std=self.extra_std).worst_cost(count, ORDERS)
                return worst_epsilon(worst, plan.samples, delta)

        return dataclasses.replace(self, extra_std=calibrate_noise(Widened, epsilon, self.delta))

    def fit(
        self,
        model: Model,
        data: Data,
        *,
        holdout: Data = None,
        members: int | None = None,
        watch: Data = None,
        params: Values = None,
        seed: int | None = None,
    ) -> SecretPosterior:
        """Train on `data`, with a coupled neighbouring run for every witness, and keep the result secret.

        Args:
            model: a NumPyro model with a data plate, or a pair (log_prior, log_likelihood): see `probabilistic`.
            data: arrays with the records along the first axis.
            holdout: records of the same distribution that are never trained on: outsiders, each with a neighbouring run
                that has it.
            members: how many training records are drawn before the run as witnesses, each with a neighbouring run
                without it; None: 2000 beside a holdout, else none. For "replace-one" there are as many as outsiders,
                each of whom takes the place of one.
            watch: records whose own guarantee is wanted: with one copy more and, where the data hold it, one fewer.
            params: starting values; see `probabilistic`.
            seed: makes the run reproducible and **not private**.

        Preprocessing, start and rates are taken to be public, and N unless `num_records` says it. A witness
        costs about as much as a training run of its own, all of them in one program.
        """
        size = records_of("data", data)
        outsiders = 0 if holdout is None else records_of("holdout", holdout)
        chosen = self._members(size, outsiders, members, watch, seed)
        counted = not self._exchange and len(chosen) == size  # all members are measured (H16)
        if self.accounting == "coupled":  # refuse now what could not be answered after training
            sides = {"exchanged": outsiders} if self._exchange else {"absent": outsiders, "present": len(chosen)}
            sides = {name: count for name, count in sides.items() if count and not (counted and name == "present")}
            check_support(sides, self.coverage, self.failure / max(len(sides), 1))
        train, draw = jax.random.split(seeded_key(seed) if seed is not None else fresh_key())
        with jax.enable_x64(True):
            known = probabilistic(model, data, params)
            worst = self.softening.worst_cost(known.dim, ORDERS)
            samples = affordable(worst, self.samples, self.delta, self.epsilon_budget)
            guide, arrays = Guide(self.guide, known.dim), in_doubles(data)
            groups = WitnessGroups.of(arrays, holdout, chosen, watch, exchange=self._exchange)
            theta = np.asarray(
                self._program(known, guide, count_of(self.num_records, data))(train, arrays, groups.witnesses)
            )
        release = self._release(*self.softening(*guide.moments(theta)), groups, samples, counted)
        account = ReleaseAccount(
            samples=samples,
            delta=self.delta,
            worst=worst,
            population=release.population,
            watched=release.watched,
            adjacency=self.adjacency,
        )
        draws = sampler(release.mean, release.spread, draw)
        plan = dataclasses.replace(self, unit="person") if isinstance(data, People) else self
        return SecretPosterior(plan, known, draws, account, records=size, seeded=seed is not None)

    def describe(self) -> dict[str, Any]:
        """The plan as plain values, the optimiser left out (it is a function)."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "optimizer"}

    def settings(self, records: int, drawn: int, allowed: int) -> Settings:
        """What a report says was done."""
        return Settings(
            kind="variational inference without noise, samples released",
            sampling_rate=self.sampling_rate,
            steps=self.steps,
            records=records if self.num_records is None else self.num_records,
            conversion=_CONVERSIONS[self.strength if self.accounting == "coupled" else self.accounting],
            other={
                "samples released": drawn,
                "samples allowed": allowed,
                "guide": self.guide,
                "accounting": self.accounting,
                "temper": self.temper,
                "extra_std": self.extra_std,
            },
        )

    # --- how ------------------------------------------------------------------------------------------------

    @property
    def _exchange(self) -> bool:
        return self.adjacency == "replace-one"

    def _members(self, size: int, outsiders: int, members: int | None, watch: Data, seed: int | None) -> Rows:
        """The rows of the data that are witnesses, or that outsiders are to take the places of."""
        if self.accounting == "one-step":
            if not outsiders or watch is not None:
                raise unmet("holdout", None, 'holdout records, and none to watch, for accounting="one-step"')
            return np.zeros(0, np.int64)
        if self._exchange:
            if members is not None or watch is not None:
                raise unmet(
                    "members",
                    None,
                    f'neither {named("members")} nor {named("watch")} for {named("adjacency")}="replace-one"',
                    "some",
                    "Each holdout record takes the place of a training record; who would take that of a watched one is "
                    "not known.",
                )
            return np.random.default_rng(seed).integers(size, size=outsiders)
        return drawn_members(size, members_wanted(members, outsiders or None), seed)

    def _program(self, model: Probabilistic, guide: Guide, records: int) -> NeighbourRuns:
        return NeighbourRuns(
            model,
            guide,
            self.optimizer,
            self.sampling_rate,
            self.steps,
            initial_scale=self.initial_scale,
            num_particles=self.num_particles,
            averaged=max(1, math.ceil(self.averaged_fraction * self.steps)),
            forgetful=self.accounting == "one-step",
            records=records,
        )

    def _release(self, mean: Array, spread: Array, groups: WitnessGroups, samples: int, counted: bool) -> Release:
        if self.accounting == "one-step":
            return one_step_release(mean, spread, sampling_rate=self.sampling_rate, samples=samples)
        return coupled_release(
            mean,
            spread,
            groups,
            planned=samples,
            strength=self.strength,
            sampling="poisson" if self.sampling_rate < 1 else "none",
            adjacency=self.adjacency,
            coverage=self.coverage,
            failure=self.failure,
            members_counted=counted,
        )
