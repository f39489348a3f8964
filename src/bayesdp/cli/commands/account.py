"""`bayesdp account`: the three guarantees of a run that happened, from a file of distances."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from bayesdp import errors
from bayesdp.cli import options, terminal
from bayesdp.cli.step_noise import Plan, StepNoise, worst_case
from bayesdp.data import distances_file
from bayesdp.data.distances_file import Source
from bayesdp.errors import InputError
from bayesdp.unit import UNITS, Unit

if TYPE_CHECKING:
    from pathlib import Path

    from bayesdp.accountant import BayesianAccountant, Curve, Groups, InstanceAccountant
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
    groups: options.Groups = None,
    array: options.ArrayName = None,
    header: options.Header = None,
    coverage: options.Coverage = None,
    failure: options.Failure = 1e-6,
    composition: options.Composition = "holdout",
    estimator: options.Estimator = None,
    orders: options.Orders = None,
    adjacency: options.Adjacency = "add-remove",
    curve: options.Curve = False,
    top: options.Top = None,
    unit: options.Unit = "record",
    report: options.ReportPage = None,
    json: options.Json = False,
) -> None:
    r"""
    The privacy of a run that happened: for everybody, for people like those in the data, and for one record.

    FILE holds the distances of witnesses: how far each record moves the update of each step, which for private SGD
    is its clipped gradient norm, whether it was sampled or not. Witnesses are drawn independently from the
    population and fixed before the run; those in FILE are not trained on (see --members for those that are).

    Columns of FILE called noise_std, noise_multiplier or sampling_rate (arrays of an NPZ) say these for each step.

    For example:
      bayesdp account norms.csv --noise-std 1 --clip-norm 1 \
              --sampling-rate 0.01 --delta 1e-5
      bayesdp account outside.npz --members inside.npz \
              --noise-multiplier 1.1 --clip-norm 1 --sampling-rate 0.01 \
              --delta 1e-5 --curve --top 5
      bayesdp account norms-and-noise.csv --clip-norm 1 --delta 1e-5 --report page.html
    """
    from bayesdp import everybody
    from bayesdp.accountant import BayesianAccountant
    from bayesdp.report.of_accountants import usual_coverage

    population = BayesianAccountant(
        composition=composition,
        estimator=estimator,
        orders=options.order_list(orders),
        total_steps=total_steps,  # type: ignore[arg-type]  # checked there, so that 1e3 can be typed
        failure=failure,
        cap=clip_norm,
        adjacency=adjacency,  # type: ignore[arg-type]  # checked there
    )
    # Refused before a long file is read, not after.
    whose: Unit = errors.one_of("unit", unit, UNITS)  # type: ignore[arg-type]  # checked here
    errors.probability("delta", delta)
    if coverage is not None:
        errors.probability("coverage", coverage)
    named = None if top is None else errors.whole("top", top, least=1)
    if curve and composition != "holdout":
        raise errors.refuse("composition", composition, f"to be 'holdout' for {errors.named('curve')}")
    if groups is not None and composition != "holdout":
        raise errors.refuse("composition", composition, f"to be 'holdout' for {errors.named('groups')}")
    labels = None if groups is None else _lines(groups)
    if report is not None and report.suffix.lower() not in (".html", ".htm", ".json"):
        raise errors.refuse("report", str(report), "to end in .html or .json")
    given = StepNoise(noise_std, noise_multiplier, errors.rate("sampling_rate", sampling_rate), clip_norm)

    sources = {"absent": Source("file", file, array, header)}
    if members is not None:
        sources["present"] = Source("members", members, array, header)
    sides = {side: _Side.read(side, source, population, given) for side, source in sources.items()}
    if len({side.accountant.steps for side in sides.values()}) > 1:
        counts = " and ".join(str(side.accountant.steps) for side in sides.values())
        raise errors.unmet(
            "members",
            members,
            f"{errors.named('file')} and {errors.named('members')} to have the same number of steps",
            counts,
        )
    plans = [side.plan for side in sides.values()]
    if any(plan != plans[0] for plan in plans):
        both = f"{errors.named('file')} and {errors.named('members')}"
        raise errors.unmet("members", members, f"{both} to have the same noise and rate in every step", "others")

    promised = [
        worst_case(population, plans[0], delta),
        population.guarantee(delta, usual_coverage(population, coverage)),
        max((side.accountant.guarantee(delta) for side in sides.values()), key=lambda one: one.epsilon),
    ]
    found = everybody.beside([one.speaking_of(whose) for one in promised])
    drawn = population.curve(delta) if curve else None
    grouped = None if labels is None else _by_group(population, sides, found[1], labels)
    exposed = _most_exposed(sides, delta, found[0].epsilon)
    if report is not None:
        _write(report, population, sides, found, grouped, plans[0], whose)
    if json:
        listed = [one.to_dict() for one in [*found, *_curve_points(found[1], drawn)]]
        listed += [] if grouped is None else _of_groups(found[1], grouped)
        terminal.json_list(listed + [one.to_dict(delta, whose) for one in exposed[: named or 0]])
        return
    with terminal.speaking_of(whose):
        _tell(population, sides, found, exposed, drawn, grouped, named)
    if report is not None:
        terminal.line(f"\nThe page: {report}")


def _write(
    path: Path,
    population: BayesianAccountant,
    sides: dict[str, _Side],
    found: list[Guarantee],
    grouped: Groups | None,
    plan: Plan,
    unit: Unit,
) -> None:
    """The page of what was found."""
    from bayesdp.report import Settings
    from bayesdp.report.of_accountants import write_report

    known = [population] if population.composition == "holdout" else [side.accountant for side in sides.values()]
    noise, rates = [one[0] for one in plan], [one[1] for one in plan]
    settings = Settings(
        kind="accounting of a run made elsewhere",
        steps=population.steps,
        noise_std=(min(noise), max(noise)),
        sampling_rate=(min(rates), max(rates)),
        clip_norm=population.cap,
    )
    about = {"title": "A run that was accounted for", "settings": settings, "groups": grouped, "unit": unit}
    write_report(path, *known, delta=found[0].delta, guarantees=found, **about)


def _tell(
    population: BayesianAccountant,
    sides: dict[str, _Side],
    found: list[Guarantee],
    exposed: list[_Exposed],
    drawn: Curve | None,
    grouped: Groups | None,
    named: int | None,
) -> None:
    from bayesdp import everybody
    from bayesdp.report import GroupLosses

    delta, shown = found[0].delta, GroupLosses.of(grouped)
    people = " and ".join(f"{side.accountant.records} {_KIND[name]}" for name, side in sides.items())
    terminal.line(f"{population.steps} steps, {people}.")
    count = sum(side.accountant.records for side in sides.values())
    terminal.guarantees(found, record=exposed[0].name if count == 1 else f"each of {count:,}")
    if count > 1:
        terminal.line(f"\nThe largest is shown, that of record {terminal.plain(exposed[0].name)}. {terminal.NAMED}")
    if drawn is not None:
        terminal.curve(drawn)
    if shown is not None:
        terminal.groups(shown, delta)
    if named:
        terminal.most_exposed([(one.name, one.epsilon) for one in exposed[:named]], delta, found[0].epsilon)
        tied = sum(everybody.wins(one.epsilon, found[0].epsilon) for one in exposed)
        if tied > 1:
            terminal.line(f"\n{tied:,} records tie at the DP value, in the order of what they cost by themselves.")


_KIND = {"absent": "records outside of the training data", "present": "members"}


@dataclasses.dataclass(frozen=True)
class _Side:
    """The records of one file, and what each of them has paid."""

    names: tuple[str, ...]
    accountant: InstanceAccountant
    plan: Plan

    @classmethod
    def read(cls, side: str, source: Source, population: BayesianAccountant, given: StepNoise) -> _Side:
        """Charge the records of a file, and the population through them, step by step."""
        from bayesdp.accountant import InstanceAccountant

        names: tuple[str, ...] = ()
        plan: Plan = []
        apart: InstanceAccountant | None = None
        with terminal.waiting(f"Reading {terminal.plain(source.path.name)}") as bar:
            for step in distances_file.read(source):
                # The witnesses of a holdout are accounted one by one anyway.
                if not names and population.composition != "holdout":
                    apart = InstanceAccountant(
                        records=len(step.names),
                        orders=population.orders,
                        total_steps=population.total_steps,
                        cap=population.cap,
                        adjacency=population.adjacency,
                    )
                names = step.names
                noise, rate = given.of(step)
                if plan and plan[-1][:2] == (noise, rate):
                    plan[-1] = (noise, rate, plan[-1][2] + 1)
                else:
                    plan.append((noise, rate, 1))
                try:
                    population.step(step.distances, noise_std=noise, sampling_rate=rate, orientation=side)
                    if apart is not None:
                        apart.step(step.distances, noise_std=noise, sampling_rate=rate)
                except InputError as problem:
                    raise problem.adding(f"In {source.argument}, {step.place}.") from None
                bar.update(bar.task_ids[0], completed=step.read, total=1.0)
        return cls(names, apart if apart is not None else population.witnesses[side], plan)


@dataclasses.dataclass(frozen=True)
class _Exposed:
    """One record, its per-instance ε, and what orders it among those that tie at the DP value."""

    name: str
    epsilon: float
    exposure: float
    accountant: InstanceAccountant
    place: int

    def to_dict(self, delta: float, unit: Unit) -> dict[str, Any]:
        own = self.accountant.guarantee(delta, self.place).speaking_of(unit)
        return {**own.to_dict(), "record": self.name}


def _most_exposed(sides: dict[str, _Side], delta: float, dp: float) -> list[_Exposed]:
    """All records, the most exposed first; those that tie at the DP ε by what they cost by themselves."""
    exposed = []
    for kind, side in zip(("outsider", "member"), sides.values(), strict=False):
        each = zip(side.names, side.accountant.epsilon(delta), side.accountant.exposure(delta), strict=True)
        for place, (name, epsilon, exposure) in enumerate(each):
            called = name if len(sides) == 1 else f"{name} ({kind})"
            exposed.append(_Exposed(called, float(epsilon), float(exposure), side.accountant, place))
    return sorted(exposed, key=lambda one: (-min(one.epsilon, dp), -one.exposure))


def _lines(path: Path) -> list[str]:
    """The group of each record, from a text file with a line for each."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        raise errors.refuse(
            "groups", str(path), "to be a readable text file with the group of a record a line"
        ) from None


def _by_group(
    population: BayesianAccountant, sides: dict[str, _Side], guarantee: Guarantee, labels: list[str]
) -> Groups:
    from bayesdp.accountant import by_group

    counts = [side.accountant.records for side in sides.values()]
    if len(labels) != sum(counts):
        expected = f"with a line for each of the {sum(counts)} records"
        raise errors.refuse("groups", len(labels), expected, got=f"{len(labels)} lines")
    return by_group(
        {name: side.accountant.epsilon(guarantee.delta) for name, side in sides.items()},
        {"absent": labels[: counts[0]], "present": labels[counts[0] :]},
        delta=guarantee.delta,
        coverage=guarantee.coverage or COVERAGE,
        failure=population.failure,
        dp=math.inf if guarantee.dp_epsilon is None else guarantee.dp_epsilon,
    )


def _of_groups(guarantee: Guarantee, groups: Groups) -> list[dict[str, Any]]:
    """A guarantee for each group; that of one which is too small to speak for has an infinite ε."""
    words = ("One of several groups that hold together (H5).", "Assumes what the Bayesian guarantee for all does.")
    return [
        {
            **dataclasses.replace(
                guarantee, epsilon=math.inf if one.epsilon is None else one.epsilon, assumptions=words
            ).to_dict(),
            "group": one.name,
            "witnesses": dict(one.witnesses),
            "too_few": one.epsilon is None,
        }
        for one in groups.groups
    ]


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
        for share in terminal.shares(curve)
    ]
