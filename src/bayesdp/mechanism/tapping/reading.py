"""Where parameters meet a record: the steps of a loss that have to be tapped, and what is known of each parameter.

A value is *public* when no record enters it, so that it is the same for all records of a batch. A step with a public
value made of parameters, w, and with a record's own values, x, is a *site*, y = op(x, w): of a record's gradient

    ∂/∂θ = Σ_sites (∂w/∂θ)ᵀ (∂y/∂w)ᵀ g,     g = ∂ loss / ∂y

everything but g is known from the step itself, and g is what one backward pass gives for all sites.
A loop (`scan`) is opened: its sites have as many rows as it has rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from bayesdp.mechanism.tapping.program import Program, Slot, Step, written_out


class Kind(IntEnum):
    """What enters a value: constants, parameters, the number of a loop's round, or a record."""

    CONSTANT = 0
    PARAMETER = 1
    ROUND = 2
    RECORD = 3


@dataclass(frozen=True, eq=False)
class Site:
    """A step where public values `weights` meet a record's; `loop` is the one that it is in."""

    step: Step
    weights: tuple[Slot, ...]
    taps: tuple[Slot, ...]
    loop: Loop | None = None


@dataclass(frozen=True, eq=False)
class Loop:
    """A `scan` that is opened: its body, how many constants and carried values it has, and its rounds.

    `hoisted` are the public steps of the body, done before the loop; of a slot in `stacked` every round has its own.
    """

    step: Step
    body: Program
    constants: int
    carried: int
    rounds: int
    kinds: dict[Slot, Kind]
    hoisted: tuple[Step, ...]
    stacked: frozenset[Slot]

    @property
    def carries(self) -> tuple[Slot, ...]:
        """What a round hands to the next."""
        return self.body.inputs[self.constants : self.constants + self.carried]

    @property
    def rows(self) -> tuple[Slot, ...]:
        """What every round has of its own."""
        return self.body.inputs[self.constants + self.carried :]


@dataclass
class Reading:
    """The kinds of all values, the sites in the order of the program, the opened loops, and who depends on whom."""

    program: Program
    kinds: dict[Slot, Kind]
    sites: list[Site] = field(default_factory=list)
    loops: dict[Step, Loop] = field(default_factory=dict)
    closed: dict[Step, str] = field(default_factory=dict)
    sources: dict[Slot, frozenset[int]] = field(default_factory=dict)
    """Which parameters, by number, a public value is made of."""

    @property
    def boundary(self) -> list[Slot]:
        """The public values that meet a record, each once."""
        return list(dict.fromkeys(slot for site in self.sites for slot in site.weights))


def read(program: Program, parameters: int) -> Reading:
    """The sites of a program whose first `parameters` inputs are the parameters, and whose others are a record's."""
    kinds = dict.fromkeys(program.constants, Kind.CONSTANT)
    sources: dict[Slot, frozenset[int]] = {}
    for number, slot in enumerate(program.inputs):
        kinds[slot] = Kind.PARAMETER if number < parameters else Kind.RECORD
        if number < parameters:
            sources[slot] = frozenset([number])
    reading = Reading(program, kinds, sources=sources)
    for step in program.steps:
        kind = max((kinds[slot] for slot in step.inputs), default=Kind.CONSTANT)
        kinds.update(dict.fromkeys(step.outputs, kind))
        if kind is not Kind.RECORD:
            _inherit(sources, step)
        elif step.name == "scan" and _weights(step, kinds, sources):
            opened = _opened(step, kinds, sources)
            if isinstance(opened, str):
                reading.closed[step] = opened
                _tap(reading, step, kinds)
            else:
                reading.loops[step] = opened
                _enter(reading, opened, kinds)
        else:
            _tap(reading, step, kinds)
    return reading


def _inherit(sources: dict[Slot, frozenset[int]], step: Step) -> None:
    found = frozenset[int]().union(*(sources.get(slot, frozenset()) for slot in step.inputs))
    if found:
        sources.update(dict.fromkeys(step.outputs, found))


def _weights(step: Step, kinds: dict[Slot, Kind], sources: dict[Slot, frozenset[int]]) -> tuple[Slot, ...]:
    own = (slot for slot in step.inputs if kinds[slot] is Kind.PARAMETER and slot.is_float and sources.get(slot))
    return tuple(dict.fromkeys(own))


def _tap(reading: Reading, step: Step, kinds: dict[Slot, Kind], loop: Loop | None = None) -> None:
    weights = _weights(step, kinds, reading.sources)
    if weights:
        reading.sites.append(Site(step, weights, tuple(slot for slot in step.outputs if slot.is_float), loop))


def _enter(reading: Reading, loop: Loop, kinds: dict[Slot, Kind]) -> None:
    """The sites of an opened loop: of its start, where a parameter is carried into it, and of its body."""
    start = loop.step.inputs[loop.constants : loop.constants + loop.carried]
    for outer, inner in zip(start, loop.carries, strict=True):
        if kinds[outer] is Kind.PARAMETER and outer.is_float and loop.kinds[inner] is Kind.RECORD:
            reading.sites.append(Site(loop.step, (outer,), (inner,)))
    for step in loop.body.steps:
        if loop.kinds[step.outputs[0]] is Kind.RECORD:
            _tap(reading, step, loop.kinds, loop)
        else:
            _inherit(reading.sources, step)


def _opened(step: Step, outer: dict[Slot, Kind], sources: dict[Slot, frozenset[int]]) -> Loop | str:
    """The loop opened, or why it must stay shut."""
    body = written_out(step.settings["jaxpr"])
    constants, carried = step.settings["num_consts"], step.settings["num_carry"]
    given = [outer[slot] for slot in step.inputs]
    stacked = set(body.inputs[constants + carried :])
    start = given[constants : constants + carried]
    # What is carried is a record's once a record enters it, in whichever round.
    now = [Kind.ROUND if kind is Kind.CONSTANT else Kind.RECORD for kind in start]
    while True:
        kinds = dict.fromkeys(body.constants, Kind.CONSTANT)
        kinds.update(zip(body.inputs, [*given[:constants], *now, *given[constants + carried :]], strict=True))
        for one in body.steps:
            entering = {kinds[slot] for slot in one.inputs}
            kind = max(entering, default=Kind.CONSTANT)
            if kind is Kind.ROUND and Kind.PARAMETER in entering:
                return f"a weight is chosen or changed by the number of the round ({one.name})"
            kinds.update(dict.fromkeys(one.outputs, kind))
        ends = [kinds[slot] for slot in body.outputs[:carried]]
        then = [max(a, b) if b is not Kind.PARAMETER else Kind.RECORD for a, b in zip(now, ends, strict=True)]
        if then == now:
            break
        now = then
    if any(kinds[slot] is Kind.PARAMETER for slot in body.outputs):
        return "it hands on a value made of parameters alone"
    for inner, slot in zip(body.inputs, step.inputs, strict=True):
        if slot in sources:
            sources[inner] = sources[slot]
    hoisted = tuple(one for one in body.steps if kinds[one.outputs[0]] <= Kind.PARAMETER)
    for one in hoisted:
        if stacked.intersection(one.inputs):
            stacked.update(one.outputs)
    rounds: Any = step.settings["length"]
    return Loop(step, body, constants, carried, rounds, kinds, hoisted, frozenset(stacked))
