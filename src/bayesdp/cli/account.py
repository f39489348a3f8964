"""`bayesdp account`: the three guarantees of a run that happened, from a file of distances."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from bayesdp import errors
from bayesdp.cli import distances_file, options, show
from bayesdp.cli.distances_file import Source
from bayesdp.errors import InputError

if TYPE_CHECKING:
    from bayesdp.accountant import BayesianAccountant, Curve, InstanceAccountant
    from bayesdp.guarantee import Guarantee

COVERAGE = 0.9


def account(
    file: options.File,
    delta: options.Delta,
    noise_std: options.NoiseStd = None,
    noise_multiplier: options.NoiseMultiplier = None,
    clip_norm: options.ClipNorm = None,
    sampling_rate: options.SamplingRate = 1.0,
    total_steps: options.TotalSteps = None,
    members: options.Members = None,
    array: options.ArrayName = None,
    header: options.Header = None,
    coverage: options.Coverage = None,
    failure: options.Failure = 1e-6,
    composition: options.Composition = "audit-set",
    estimator: options.Estimator = None,
    orders: options.Orders = None,
    adjacency: options.Adjacency = "add-remove",
    curve: options.Curve = False,
    top: options.Top = None,
    json: options.Json = False,
) -> None:
    r"""
    The privacy of a run that happened: for everybody, for people like those in the data, and for one record.

    FILE holds the distances of witnesses: how far each record moves the update of each step, which for private SGD
    is its clipped gradient norm, whether it was sampled or not. Witnesses are drawn independently from the
    population and fixed before the run; those in FILE are not trained on (see --members for those that are).

    For example:
      bayesdp account norms.csv --noise-std 1 --clip-norm 1 \
              --sampling-rate 0.01 --delta 1e-5
      bayesdp account outside.npz --members inside.npz \
              --noise-multiplier 1.1 --clip-norm 1 --sampling-rate 0.01 \
              --delta 1e-5 --curve --top 5
    """
    from bayesdp.accountant import BayesianAccountant

    population = BayesianAccountant(
        composition,
        estimator,
        options.order_list(orders),
        total_steps,  # type: ignore[arg-type]  # checked there, so that 1e3 can be typed
        failure,
        clip_norm,
        adjacency=adjacency,  # type: ignore[arg-type]  # checked there
    )
    # Refused before a long file is read, not after.
    errors.probability("--delta", delta)
    if coverage is not None:
        errors.probability("--coverage", coverage)
    named = None if top is None else errors.whole("--top", top, least=1)
    if curve and composition != "audit-set":
        raise InputError(f"Expected --composition to be 'audit-set' for --curve, got --composition={composition!r}.")
    noise = _noise_std(noise_std, noise_multiplier, clip_norm)
    rate = errors.rate("--sampling-rate", sampling_rate)

    sources = {"absent": Source("FILE", file, array, header)}
    if members is not None:
        sources["present"] = Source("--members", members, array, header)
    sides = {side: _Side.read(side, source, population, noise, rate) for side, source in sources.items()}
    if len({side.accountant.steps for side in sides.values()}) > 1:
        counts = " and ".join(str(side.accountant.steps) for side in sides.values())
        raise InputError(f"Expected FILE and --members to have the same number of steps, got {counts}.")

    found = [
        _everybody(population, noise, rate, delta),
        population.guarantee(delta, _coverage(population, sides, coverage)),
        max((side.accountant.guarantee(delta) for side in sides.values()), key=lambda one: one.epsilon),
    ]
    drawn = population.curve(delta) if curve else None
    exposed = _most_exposed(sides, delta, named or 1)
    if json:
        listed = [one.to_dict() for one in [*found, *_curve_points(found[1], drawn)]]
        show.json_list(listed + ([one.to_dict(delta) for one in exposed] if named else []))
        return
    people = " and ".join(f"{side.accountant.records} {_KIND[name]}" for name, side in sides.items())
    show.line(f"{population.steps} steps, {people}.")
    show.guarantees(found, record=exposed[0].name)
    if drawn is not None:
        show.curve(drawn)
    if named:
        show.most_exposed([(one.name, one.epsilon) for one in exposed], delta)


_KIND = {"absent": "records outside of the training data", "present": "members"}


@dataclasses.dataclass(frozen=True)
class _Side:
    """The records of one file, and what each of them has paid."""

    names: tuple[str, ...]
    accountant: InstanceAccountant

    @classmethod
    def read(cls, side: str, source: Source, population: BayesianAccountant, noise: float, rate: float) -> _Side:
        """Charge the records of a file, and the population through them, step by step."""
        from bayesdp.accountant import InstanceAccountant

        names: tuple[str, ...] = ()
        apart: InstanceAccountant | None = None
        with show.waiting(f"Reading {show.plain(source.path.name)}") as bar:
            for step in distances_file.read(source):
                # The witnesses of an audit set are accounted one by one anyway.
                if not names and population.composition != "audit-set":
                    apart = InstanceAccountant(
                        len(step.names),
                        orders=population.orders,
                        total_steps=population.total_steps,
                        cap=population.cap,
                        adjacency=population.adjacency,
                    )
                names = step.names
                try:
                    population.step(step.distances, noise_std=noise, sampling_rate=rate, orientation=side)
                    if apart is not None:
                        apart.step(step.distances, noise_std=noise, sampling_rate=rate)
                except InputError as problem:
                    raise InputError(f"{problem} In {source.option}={str(source.path)!r}, {step.place}.") from None
                bar.update(bar.task_ids[0], completed=step.read, total=1.0)
        return cls(names, apart if apart is not None else population.witnesses[side])


@dataclasses.dataclass(frozen=True)
class _Exposed:
    """One record and its per-instance ε."""

    name: str
    epsilon: float
    accountant: InstanceAccountant
    place: int

    def to_dict(self, delta: float) -> dict[str, Any]:
        return {**self.accountant.guarantee(delta, self.place).to_dict(), "record": self.name}


def _noise_std(noise_std: float | None, noise_multiplier: float | None, clip_norm: float | None) -> float:
    if (noise_std is None) == (noise_multiplier is None):
        got = "neither" if noise_std is None else "both"
        raise InputError(f"Expected --noise-std, or --noise-multiplier with --clip-norm, got {got}.")
    if noise_std is not None:
        return errors.noise("--noise-std", noise_std)
    if clip_norm is None:
        raise InputError(f"Expected --clip-norm beside --noise-multiplier={noise_multiplier:g}, got none.")
    return errors.noise("--noise-multiplier", noise_multiplier) * clip_norm


def _everybody(population: BayesianAccountant, noise: float, rate: float, delta: float) -> Guarantee:
    """The DP guarantee of as many steps; without a clip norm there is none."""
    from bayesdp.accountant import WorstCaseAccountant
    from bayesdp.guarantee import Guarantee

    if population.cap is None:
        return Guarantee(
            notion="dp",
            epsilon=math.inf,
            delta=delta,
            adjacency=population.adjacency,
            sampling="poisson" if rate < 1 else "none",
            assumptions=("No clip norm was given: one record may move the update by any distance.",),
        )
    accountant = WorstCaseAccountant(adjacency=population.adjacency)
    accountant.step(noise_multiplier=noise / population.cap, sampling_rate=rate, steps=population.steps)
    return accountant.guarantee(delta)


def _coverage(population: BayesianAccountant, sides: dict[str, _Side], asked: float | None) -> float | None:
    """The share asked for; else `COVERAGE`, or the most that so few records support, which no distance decides."""
    if asked is not None or population.composition != "audit-set":
        return asked
    if population.cap is not None:
        return COVERAGE
    from bayesdp.estimate.quantile import most_covered

    each = [most_covered(side.accountant.records, population.failure / len(sides)) for side in sides.values()]
    return min(COVERAGE, *each)


def _most_exposed(sides: dict[str, _Side], delta: float, count: int) -> list[_Exposed]:
    everyone = [
        _Exposed(name if len(sides) == 1 else f"{name} ({kind})", float(epsilon), side.accountant, place)
        for kind, side in zip(("outsider", "member"), sides.values(), strict=False)
        for place, (name, epsilon) in enumerate(zip(side.names, side.accountant.epsilon(delta), strict=True))
    ]
    return sorted(everyone, key=lambda one: -one.epsilon)[:count]


def _curve_points(guarantee: Guarantee, curve: Curve | None) -> list[Guarantee]:
    """Points of the curve as guarantees; weak and ex-post, the lesser claim, whichever bound won at a point."""
    if curve is None:
        return []
    words = (
        "One point of a curve that holds for all shares together: it may be picked after looking (H12).",
        "Assumes what the Bayesian guarantee at one share does.",
    )
    return [
        dataclasses.replace(
            guarantee.postprocessed(),
            coverage=share,
            epsilon=curve.at(share),
            failure=curve.failure,
            ex_post=True,
            assumptions=words,
        )
        for share in show.shares(curve)
    ]
