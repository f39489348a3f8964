"""One charge: what a release may cost at most, known before it is made.

noisy steps       (noise multiplier, sampling rate, how many), as many as are planned
another release   an (ε, δ) that holds for everybody, infinite where nothing does
a selection       either of them, done a random number of times, the best of which is published (`Selection`)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bayesdp import errors
from bayesdp.accountant.rdp import History, Run
from bayesdp.guarantee import ADJACENCIES, Adjacency
from bayesdp.ledger.selection import Selection

_ALL = ("run", "what", "steps", "epsilon", "delta", "adjacency", "selection", "source", "looks")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one run may cost.

    Args:
        run: its name, one of its own.
        what: what is released, in a word: "train", "fit", "samples", "tuning", …
        steps: (noise multiplier, sampling rate, number of steps).
        epsilon: of what is released beside these steps.
        delta: of the same.
        adjacency: of all of it.
        selection: how often the whole is repeated, where only the best is published.
        source: which data, in words or as a digest: charges of one source are about the same people.
        looks: numbers computed from records without noise that whoever made the run was shown, e.g. "test accuracy":
            no guarantee pays for them.

    Bad input gets `InputError` naming the field.
    """

    run: str
    what: str = "train"
    steps: tuple[tuple[float, float, int], ...] = ()
    epsilon: float = 0.0
    delta: float = 0.0
    adjacency: Adjacency = "add-remove"
    selection: Selection | None = None
    source: str = ""
    looks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("run", "what", "source"):
            if not isinstance(getattr(self, name), str):
                raise errors.refuse(name, getattr(self, name), "to be a text")
        if not self.run:
            raise errors.refuse("run", self.run, "to be a text that is not empty")
        steps = []
        for one in self.steps:
            if not isinstance(one, tuple | list) or len(one) != 3:
                raise errors.refuse("steps", one, "to be (noise multiplier, sampling rate, number of steps)")
            count = errors.whole("steps", one[2], least=1)
            steps.append((errors.noise("steps", one[0]), errors.rate("steps", one[1]), count))
        object.__setattr__(self, "steps", tuple(steps))
        epsilon = errors.array("epsilon", self.epsilon, least=0, infinite=True, ndim=0)
        object.__setattr__(self, "epsilon", float(epsilon))
        errors.number("delta", self.delta, least=0, most=1)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        if self.selection is not None and (self.epsilon or self.delta):
            hint = "A bound on the divergences is needed, which an (ε, δ) does not give."
            raise errors.refuse("selection", self.selection, "to be left out beside an epsilon or a delta", hint)
        if not all(isinstance(one, str) for one in self.looks):
            raise errors.refuse("looks", self.looks, "to be a tuple of texts")

    @property
    def history(self) -> History:
        """The steps as an accountant counts them."""
        return tuple(Run(*one) for one in self.steps)

    @property
    def bounded(self) -> bool:
        """Whether it promises anything to everybody."""
        return math.isfinite(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite ε is "inf"."""
        values = {name: getattr(self, name) for name in _ALL}
        values["steps"] = [list(one) for one in self.steps]
        values["epsilon"] = "inf" if math.isinf(self.epsilon) else self.epsilon
        values["selection"] = None if self.selection is None else dataclasses.asdict(self.selection)
        values["looks"] = list(self.looks)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`. Anything else gets `InputError`."""
        if set(values) != set(_ALL):
            raise errors.refuse("charge", sorted(map(str, values)), f"to have the keys {', '.join(_ALL)}")
        try:
            chosen = values["selection"]
            plain = {
                **values,
                "steps": tuple(map(tuple, values["steps"])),
                "epsilon": math.inf if values["epsilon"] == "inf" else values["epsilon"],
                "selection": None if chosen is None else Selection(**chosen),
                "looks": tuple(values["looks"]),
            }
        except (TypeError, KeyError) as problem:
            raise errors.unmet("charge", None, "a charge as `to_dict` gives it", f"another: {problem!r}") from None
        return cls(**plain)
