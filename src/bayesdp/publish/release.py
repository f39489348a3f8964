"""What is said in public of a run: release.json, from which the page and the model card are written and checked.

    DP ε of all that is in the bundle:   max(ε₁, ε₂)   a record comes or goes: it was trained on or tested on (H25)
                                         ε₁ + ε₂       a record is exchanged, and may change sides
    ε₁ of the noisy steps, recomputed from the plan; ε₂ of the counts over test records, where these were paid for

Nothing in it depends on the data but what was paid for or declared: see `from_run`. It does not need JAX.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.accountant.rdp import phases
from bayesdp.accountant.worst_case import ENGINES, Engine, WorstCaseAccountant
from bayesdp.attacker import AttackerBounds
from bayesdp.errors import Array
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee
from bayesdp.report import Report, Settings, part
from bayesdp.report.paid import PaidMetrics
from bayesdp.report.part import Part

Levels = tuple[tuple[float, int], ...]
"""A schedule: (level, how many steps), one after the other."""

FORMAT, VERSION = "bayesdp/release", 1
_METRICS = (
    "The counts over test records are ε-DP for the people tested on, with DP ε = {epsilon:g} and δ = 0. {how} (H25)"
)
_HOW = {
    "add-remove": "Nobody was both trained on and tested on: the larger of the two promises holds for everybody.",
    "replace-one": "Somebody who takes another's place may change sides: the two are added.",
}


@dataclass(frozen=True, kw_only=True)
class Release(Part):
    """The public facts.

    - `title`, `created`, `learner`, `optimizer`, `released`, `update_rule`, `facts`: as in the report.
    - `model`: in words; `inputs`: the columns, or the shape of a record; `answers`: classes; none for a number.
    - `dp`: the promise of the noisy steps; `engine`, `chains`, `noise`, `rates`, `clip_norms`: its plan.
    - `num_records`: N as it was declared; None where it was taken from the data.
    - `prelude`, `prelude_delta`: noise multiplier and δ of a preparation that was paid for (H22); None for none.
    - `filtered`: records had budgets of their own, so that `dp` may be less than the plan alone would cost.
    - `declared`: what preparing the data took from them and is declared public, a sentence each.
    - `paid`: counts over test records; `intended_use`, `contact`: in the publisher's words.

    Bad input gets `InputError` naming the field.
    """

    title: str
    created: str
    generator: str
    learner: str
    model: str
    inputs: tuple[str, ...]
    answers: tuple[str, ...]
    released: str
    optimizer: str
    update_rule: str
    facts: dict[str, Any]
    dp: Guarantee
    engine: Engine
    chains: int
    noise: Levels
    rates: Levels
    clip_norms: Levels
    num_records: int | None
    filtered: bool
    declared: tuple[str, ...]
    paid: PaidMetrics | None = None
    prelude: float | None = None
    prelude_delta: float = 0.0
    own_code: bool = False
    intended_use: str = ""
    contact: str = ""

    def __post_init__(self) -> None:
        dp = self.dp if isinstance(self.dp, Guarantee) else Guarantee.from_dict(self.dp)
        errors.one_of("notion", dp.notion, ("dp",))
        errors.one_of("engine", self.engine, ENGINES)
        errors.one_of("adjacency", dp.adjacency, ADJACENCIES)
        for name in ("title", "generator", "learner", "model", "released", "optimizer", "update_rule", "created"):
            part.text(name, getattr(self, name))
        for name in ("intended_use", "contact"):
            part.text(name, getattr(self, name))
        for name in ("inputs", "answers", "declared"):
            self._put(**{name: part.sentences(name, getattr(self, name))})
        for name in ("noise", "rates", "clip_norms"):
            self._put(**{name: _levels(name, getattr(self, name))})
        self._put(
            dp=dp,
            chains=errors.whole("chains", self.chains, least=1),
            prelude=None if self.prelude is None else errors.noise("prelude", self.prelude),
            prelude_delta=errors.number("prelude_delta", self.prelude_delta, least=0, below=dp.delta),
            num_records=None if self.num_records is None else errors.whole("num_records", self.num_records, least=1),
            paid=part.optional(PaidMetrics, "paid", self.paid),
            facts=dict(part.mapping("facts", self.facts, lambda _, one: one)),
        )
        if len({sum(count for _, count in getattr(self, name)) for name in ("noise", "rates", "clip_norms")}) > 1:
            raise errors.refuse("noise", self.noise, "to have as many steps as the rates and clip norms", got="others")

    @property
    def adjacency(self) -> Adjacency:
        """Which two data sets are compared."""
        return self.dp.adjacency

    @property
    def steps(self) -> int:
        """Noisy steps of each chain."""
        return sum(count for _, count in self.noise)

    def recomputed(self) -> float:
        """The DP ε of the noisy steps, and of a preparation that was paid for, from the plan alone."""
        accountant = WorstCaseAccountant(engine=self.engine, adjacency=self.adjacency)
        if self.prelude is not None:
            accountant.step(noise_multiplier=self.prelude)
        for level, rate, count in phases(spread(self.noise), spread(self.rates)):
            accountant.step(noise_multiplier=level, sampling_rate=rate, steps=self.chains * count)
        return accountant.epsilon(self.dp.delta - self.prelude_delta - self.dp.delta_split.get("noise", 0.0))

    @property
    def guarantee(self) -> Guarantee:
        """The promise of all that is in the bundle together (H25)."""
        if self.paid is None:
            return self.dp
        own, words = self.paid.epsilon, _METRICS.format(epsilon=self.paid.epsilon, how=_HOW[self.adjacency])
        together = max(self.dp.epsilon, own) if self.adjacency == "add-remove" else self.dp.epsilon + own
        attacker = None
        if self.adjacency == "add-remove" and self.dp.attacker is not None:
            attacker = _worse(self.dp.attacker, own)
        return dataclasses.replace(
            self.dp, epsilon=together, assumptions=(*self.dp.assumptions, words), attacker=attacker
        )

    def report(self) -> Report:
        """The public page's: the promise to everybody, the settings, and what was paid for."""
        clip = np.array([level for level, _ in self.clip_norms])
        noise, rates = ([level for level, _ in levels] for levels in (self.noise, self.rates))
        std = spread(self.noise) * spread(self.clip_norms)
        return Report(
            title=self.title,
            created=self.created,
            settings=Settings(
                kind=self.learner,
                noise_std=(float(std.min()), float(std.max())),
                noise_multiplier=(min(noise), max(noise)),
                clip_norm=(float(clip.min()), float(clip.max())),
                sampling_rate=(min(rates), max(rates)),
                steps=self.steps,
                records=self.num_records,
                optimizer=self.optimizer,
                other={"update rule": self.update_rule, **self.facts},
            ),
            delta=self.dp.delta,
            guarantees=(self.guarantee,),
            released=self.released,
            paid=self.paid,
            preprocessing=self.declared,
        )


def spread(levels: Levels) -> Array:
    """One number for each step."""
    return np.repeat([level for level, _ in levels], [count for _, count in levels])


def _levels(name: str, value: Any) -> Levels:
    if not isinstance(value, tuple | list) or not value:
        raise errors.refuse(name, value, "to be a list of pairs (level, number of steps)")
    found = []
    for pair in value:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise errors.refuse(name, pair, "to be a pair (level, number of steps)")
        found.append((errors.number(name, pair[0], above=0), errors.whole(name, pair[1], least=1)))
    return tuple(found)


def _worse(bounds: AttackerBounds, epsilon: float) -> AttackerBounds:
    """What no attacker exceeds on either side: `bounds`, or those of pure ε-DP, rate by rate.

    Under ε-DP a test with false alarms α finds at most min(e^ε α, 1 − e^{−ε}(1 − α)), and its advantage is at most
    tanh(ε/2) (B12). A record is on one side, decided by a coin of its own: of a mixture of two pairs with the same
    weights a test does no better than the better of the two.
    """
    pairs = zip(bounds.false_positive_rates, bounds.true_positive_rates, strict=True)
    rates = tuple(
        min(1.0, max(found, min(math.exp(epsilon) * alarm, 1 - math.exp(-epsilon) * (1 - alarm))))
        for alarm, found in pairs
    )
    return AttackerBounds(
        advantage=max(bounds.advantage, math.tanh(epsilon / 2)),
        false_positive_rates=bounds.false_positive_rates,
        true_positive_rates=rates,
    )
