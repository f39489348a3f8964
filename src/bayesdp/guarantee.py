"""The promise: one immutable value that carries a number and its fine print (M14).

    dp            whatever the data:      Pr[S | D] ≤ e^ε Pr[S | D'] + δ
    bdp           people like those:      with confidence 1 − failure, a share `coverage` of them has (ε, δ)
    per-instance  one named record:       (ε, δ) for the data set with that record and the one without

A Bayesian or per-instance ε is never shown as a plain ε and cannot become a float by accident. The `standing` says
whether it is a theorem: "proved", a "heuristic", an "estimate", or known to be "unsound" (a paper's own formula).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from bayesdp import convert, errors
from bayesdp.attacker import AttackerBounds
from bayesdp.convert import STRENGTHS, Strength
from bayesdp.rounding import up
from bayesdp.standing import STANDINGS, Caveat, Standing, worst_standing
from bayesdp.unit import PERSON, UNITS, Unit, spoken

Notion = Literal["dp", "bdp", "per-instance"]
Orientation = Literal["absent", "present", "both"]
Adjacency = Literal["add-remove", "replace-one"]
Sampling = Literal["poisson", "none", "without-replacement", "with-replacement", "shuffled"]
Won = Literal["dp", "ex-post", "a-priori"]

NOTIONS: tuple[Notion, ...] = get_args(Notion)
ORIENTATIONS: tuple[Orientation, ...] = get_args(Orientation)
ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)

_LABEL = {"dp": "DP ε", "bdp": "Bayesian ε", "per-instance": "per-instance ε"}
_TITLE = {
    "dp": "Differential privacy, for everybody and whatever the data",
    "bdp": "Bayesian differential privacy, for people like those in the data",
    "per-instance": "Per-instance differential privacy, for one record in this one data set",
}
_CHANGE = {"add-remove": "adding or removing", "replace-one": "replacing"}
_SAMPLING = {
    "poisson": "Poisson sampling",
    "none": "no sampling",
    "without-replacement": "batches of fixed size without replacement",
    "with-replacement": "batches drawn with replacement",
    "shuffled": "shuffled batches",
}
_SIDE = {
    "absent": " Holds for records outside the training data only.",
    "present": " Holds for records in the training data only.",
    "both": "",
}
PEOPLE = {
    "absent": "the people that the data were drawn from",
    "present": "the people in this data set",
    "both": "the people that the data were drawn from, and of those in this data set",
}
"""Of whom a share speaks: witnesses among the members were drawn from this data set, and speak for it alone."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(ε, δ) and what they mean: immutable, checked, printable.

    - `notion`: "dp", "bdp" or "per-instance"; `epsilon` may be infinite, which means no guarantee.
    - `coverage`, `failure`: with confidence 1 − failure the statement holds for this fraction of the
      distribution (C3; order statistics, H5). 1 and 0 for "dp". A coverage of None ("bdp" only) is the joint statement
      (strong C1, weak C2): δ is over people and runs together, and no fraction is singled out.
    - `strength`: "strong" bounds Pr[loss ≥ ε] (C1), "weak" bounds Pr[S] − e^ε Pr'[S] (C2).
    - `orientation`: whose loss was bounded: records "absent" from the data, "present", or "both".
    - `ex_post`: the number was computed along the run that it speaks about (ex-post, H3).
    - `assumptions`: sentences; `sensitive`: the number is itself a function of private data.
    - `standing`: "proved", or "heuristic", "estimate" or "unsound": then it is no theorem, and `caveats` are those of
      the assumptions that say why.
    - `delta_split`: how δ and failure were shared out, in words → share, e.g. {"ex-post": 2.5e-6, "dp": 7.5e-6}.
    - `dp_epsilon`: what the same plan promises everybody at the same δ, where that is known ("bdp", "per-instance"):
      with an ε that is no smaller, `no_better` is true, and the sentence says the DP ε instead.
    - `attacker`: what no attacker exceeds, exactly, from the law of the plan's loss ("dp", where that is known, H17).
    - `unit`: what "record" means here: one record, or a "person" with several rows; sentences then speak of people.

    Bad input: any field outside these gets `InputError` naming it.
    """

    notion: Notion
    epsilon: float
    delta: float
    coverage: float | None = 1.0
    failure: float = 0.0
    strength: Strength = "weak"
    orientation: Orientation = "both"
    adjacency: Adjacency = "add-remove"
    sampling: Sampling = "poisson"
    ex_post: bool = False
    assumptions: tuple[str, ...] = ()
    sensitive: bool = False
    delta_split: Mapping[str, float] = field(default_factory=dict, hash=False)
    standing: Standing = "proved"
    caveats: tuple[str, ...] = ()
    dp_epsilon: float | None = None
    attacker: AttackerBounds | None = None
    unit: Unit = "record"

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        errors.one_of("notion", self.notion, NOTIONS)
        put("epsilon", float(errors.array("epsilon", self.epsilon, least=0, infinite=True, ndim=0)))
        for name in ("delta", "coverage", "failure"):
            if name != "coverage" or self.coverage is not None or self.notion != "bdp":
                put(name, errors.number(name, getattr(self, name), least=0, most=1))
        if self.dp_epsilon is not None:
            put("dp_epsilon", errors.number("dp_epsilon", self.dp_epsilon, least=0))
        errors.one_of("strength", self.strength, STRENGTHS)
        errors.one_of("orientation", self.orientation, ORIENTATIONS)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        errors.one_of("sampling", self.sampling, SAMPLINGS)
        errors.one_of("ex_post", self.ex_post, (True, False))
        errors.one_of("sensitive", self.sensitive, (True, False))
        put("assumptions", _sentences("assumptions", self.assumptions))
        put("caveats", _sentences("caveats", self.caveats))
        errors.one_of("standing", self.standing, STANDINGS)
        errors.one_of("unit", self.unit, UNITS)
        put("delta_split", _shares(self.delta_split))
        if self.notion == "dp" and (self.coverage, self.failure, self.ex_post) != (1, 0, False):
            raise errors.unmet(
                "coverage",
                self.coverage,
                'coverage=1, failure=0 and ex_post=False for notion "dp", a promise to all',
                f"coverage={self.coverage}, failure={self.failure:g} and ex_post={self.ex_post}",
            )
        if self.notion == "dp" and self.dp_epsilon is not None:
            raise errors.refuse("dp_epsilon", self.dp_epsilon, 'to be left out for notion "dp", whose ε it is')
        if not isinstance(self.attacker, AttackerBounds | None) or (self.attacker and self.notion != "dp"):
            raise errors.refuse("attacker", self.attacker, 'to be an AttackerBounds for notion "dp", else None')
        if not set(self.caveats) <= set(self.assumptions):
            raise errors.refuse("caveats", self.caveats, "to be among the assumptions")
        if self.caveats and self.standing == "proved":
            raise errors.refuse("standing", self.standing, "to be another than 'proved' with caveats")

    @property
    def label(self) -> str:
        """What this ε is called: "DP ε", "Bayesian ε" or "per-instance ε"."""
        return _LABEL[self.notion]

    @property
    def no_better(self) -> bool:
        """Whether this brings nothing beyond what everybody is promised: ε is not below the plan's DP ε."""
        return self.dp_epsilon is not None and self.epsilon >= self.dp_epsilon

    @property
    def won(self) -> Won:
        """Which bound is the one to read: "dp" where this is no better, else "ex-post" or "a-priori"."""
        if self.notion == "dp" or self.no_better:
            return "dp"
        return "ex-post" if self.ex_post else "a-priori"

    def attacker_success(self, prior: float = 0.5) -> float:
        """(π e^ε + (1−π) δ)/(π e^ε + 1−π): see `convert.attacker_success` (B12).

        For "bdp" it speaks for the covered fraction, with the stated confidence. Bad input: π outside (0, 1).
        """
        return convert.attacker_success(self.epsilon, self.delta, prior)

    @property
    def attacker_right(self) -> float | None:
        """How often an undecided attacker can be right, on average over results (H17, B12); None where nothing says it.

        By the law of the loss where that is known, and by (ε, δ) if it holds for both data sets and before the run.
        """
        exact = None if self.attacker is None else self.attacker.right
        if self.orientation != "both" or self.ex_post:
            return exact
        return self.attacker_success() if exact is None else min(exact, self.attacker_success())

    def group(self, k: int) -> Guarantee:
        """(kε, δ (e^{kε}−1)/(e^ε−1)) for k records together (groups, B15): weak, whatever the strength of this one.

        For "bdp" the k records are covered together with 1 − k(1 − coverage) of the distribution, and the
        guarantee is assumed for every data set on the way, which measuring one does not show (C21): the
        result says so. A per-instance guarantee has no group form: the second record joins another data
        set. Bad input: that, or k not a whole number ≥ 1, gets `InputError`.
        """
        if self.notion == "per-instance":
            raise errors.unmet(
                "notion",
                self.notion,
                "a dp or bdp guarantee for a group",
                "notion='per-instance', which speaks for one record in one data set",
                "Use the dp guarantee.",
            )
        epsilon, delta = convert.group(self.epsilon, self.delta, k)
        assumptions = self.assumptions
        if self.notion == "bdp" and k > 1:
            assumptions += (
                "The group bound (C21) takes the guarantee to hold for each of the data sets between the two "
                "ends, not only for the one that was measured.",
            )
        return dataclasses.replace(
            self,
            epsilon=epsilon,
            delta=delta,
            coverage=None if self.coverage is None else max(0.0, 1 - k * (1 - self.coverage)),
            strength="weak",
            assumptions=assumptions,
            delta_split={},
            attacker=self.attacker if k == 1 else None,
            dp_epsilon=None,  # of one record, which says nothing about k
        )

    def postprocessed(self) -> Guarantee:
        """The guarantee of whatever is computed from the output: the same numbers, but weak (C1, C2)."""
        return dataclasses.replace(self, strength="weak")

    def speaking_of(self, unit: Unit) -> Guarantee:
        """The same about people, where what was accounted for as a record is a person."""
        if unit == self.unit:
            return self
        assumed, doubted = (tuple(spoken(one, unit) for one in said) for said in (self.assumptions, self.caveats))
        return dataclasses.replace(self, unit=unit, assumptions=(*assumed, PERSON), caveats=doubted)

    def doubted(self, caveat: Caveat) -> Guarantee:
        """The same number with one more caveat, in front of its assumptions; of the standings the worst counts."""
        return dataclasses.replace(
            self,
            assumptions=(caveat.sentence, *self.assumptions),
            caveats=(caveat.sentence, *self.caveats),
            standing=worst_standing(caveat.standing, self.standing),
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields and `won` as plain JSON values; an infinite ε is the string "inf", which strict JSON can carry."""
        values = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        values["epsilon"] = "inf" if math.isinf(self.epsilon) else self.epsilon
        values["assumptions"], values["caveats"] = list(self.assumptions), list(self.caveats)
        values["delta_split"] = dict(self.delta_split)
        values["attacker"] = None if self.attacker is None else self.attacker.to_dict()
        values["won"] = self.won
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """The inverse of `to_dict`; `won` follows from the rest. Missing or unknown keys, bad values: `InputError`."""
        if isinstance(values, Mapping):  # older ones, all of them about records, do not say so
            values = {"unit": "record", **{name: value for name, value in values.items() if name != "won"}}
        expected = {one.name for one in dataclasses.fields(cls)}
        if not isinstance(values, Mapping) or set(values) != expected:
            got = sorted(values) if isinstance(values, Mapping) else values
            raise errors.refuse("guarantee", got, f"to be a mapping with the keys {', '.join(sorted(expected))}")
        epsilon = values["epsilon"]
        attacker = None if values["attacker"] is None else AttackerBounds.from_dict(values["attacker"])
        return cls(**{**values, "epsilon": math.inf if epsilon == "inf" else epsilon, "attacker": attacker})

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Guarantee], tuple[dict[str, Any]]]:
        return Guarantee.from_dict, (self.to_dict(),)

    def __float__(self) -> float:
        if self.notion != "dp":
            name = "Bayesian" if self.notion == "bdp" else "per-instance"
            raise TypeError(f"a {name} ε is not a DP ε; use .epsilon if you mean it")
        return self.epsilon

    def __format__(self, spec: str) -> str:
        """Plain: the sentence. With a number's format such as ".2f": with its label, "Bayesian ε = 0.31"."""
        if not spec:
            return str(self)
        if self.no_better:
            return f"{self.label}: no better than for everybody, DP ε = {format(self.dp_epsilon, spec)}"
        return f"{self.label} = {format(self.epsilon, spec)}"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why this number is no theorem, in words: its caveats, or its standing where there are none."""
        return self.caveats or (() if self.standing == "proved" else (f"Standing: {self.standing}.",))

    def __str__(self) -> str:
        doubt = "".join(f"Not proved ({one.rstrip('.')}). " for one in self.doubts)
        side = "" if self.no_better else _SIDE[self.orientation]  # the DP promise is to everybody
        return spoken(f"{doubt}{_TITLE[self.notion]}: {self._claim()}{side}{self._print()}", self.unit)

    def _claim(self) -> str:
        if (math.isinf(self.epsilon) and not self.no_better) or self.delta == 1 or self.coverage == 0:
            why = "is infinite" if math.isinf(self.epsilon) else "says nothing"
            return f"no guarantee ({self.label} {why})."
        if self.no_better:
            return f"no better than for everybody: DP ε = {up(self.dp_epsilon or 0.0)} and δ = {up(self.delta)}."
        for_whom = ""
        if self.notion == "bdp" and self.coverage is None:
            for_whom = "with people and runs drawn together, "
        elif self.notion == "bdp" and self.coverage is not None:
            for_whom = f"for at least {_percent(self.coverage)} of {PEOPLE[self.orientation]}, "
        if self.failure > 0:
            for_whom = f"with confidence {_percent(min(1 - self.failure, math.nextafter(1, 0)))}, {for_whom}"
        record = "that record" if self.notion == "per-instance" else "any one record"
        if self.notion == "bdp":
            record = "the person's record"
        if self.strength == "strong":
            effect = f"gives away a privacy loss of {self.label} = {up(self.epsilon)} or more with probability "
            effect += f"at most δ = {up(self.delta)}"
        else:
            effect = f"changes the chance of any outcome at most by the factor e^ε and by δ, where {self.label} = "
            effect += f"{up(self.epsilon)} and δ = {up(self.delta)}"
        sure = f"{_rounded_up(self.attacker_success())} sure"
        # How often a guess is right depends on both data sets: a bound for one of them, or for one run, has no say.
        if self.attacker_right is None:
            attacker = f"can then become, on average, at most {sure} of the truth about that record."
        else:
            attacker = f"can then be right about that record at most {_rounded_up(self.attacker_right)} of the time"
            attacker += "." if self.attacker is None else f"; DP ε and δ alone would allow to become {sure} of it."
        return f"{for_whom}{_CHANGE[self.adjacency]} {record} {effect}. Who starts undecided {attacker}"

    def _print(self) -> str:
        when = "ex-post: computed along this run, for this run" if self.ex_post else "a priori: fixed before the run"
        words = f" ({when}; {self.adjacency} adjacency; {_SAMPLING[self.sampling]}; {self.strength} form.)"
        if self.sensitive:
            words += " Sensitive: this number depends on private data; do not publish it."
        return words


def _sentences(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, tuple | list) or not all(isinstance(v, str) for v in value):
        raise errors.refuse(name, value, "to be a tuple of sentences")
    return tuple(value)


def _shares(value: object) -> Mapping[str, float]:
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value):
        raise errors.refuse("delta_split", value, "to be a mapping of words to shares of δ")
    shares = {w: errors.number(f"delta_split[{w!r}]", share, least=0, most=1) for w, share in value.items()}
    return MappingProxyType(shares)


def _rounded_up(share: float) -> str:
    return f"{math.ceil(share * 1000) / 10:g} %"


def _percent(share: float) -> str:
    """A share as a percentage, rounded down and never to 100 % unless it is."""
    digits = 3
    while share < 1 and digits < 14 and math.floor(share * 10**digits) * 10.0**-digits < share - (1 - share) / 10:
        digits += 1
    return f"{math.floor(share * 10**digits + 1e-9) / 10 ** (digits - 2):.14g} %"
