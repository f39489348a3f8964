"""Whether witnesses outside of the data and those inside look alike: the Bayesian promise speaks of people like both.

The two are compared by what the run cost each. A difference has one of two causes: those held out are others than those
in the data, and then the promise speaks of somebody else; or the model remembers its members (then DP bounds how much).
"""

from __future__ import annotations

from dataclasses import dataclass

from bayesdp import errors
from bayesdp.report.part import Part

LEVEL = 0.01
"""A warning is given where a p-value is below half of this: a false one in a hundred runs, of two tests together."""

FEWEST = 20
"""Witnesses of a kind from which on they are compared."""

WARNING = (
    "Those held out and those in the data differ in what the run cost them. Either they are not the same kind of "
    "people, and the Bayesian promise, which speaks of people like those held out, says little of others; or the model "
    "remembers its members. DP holds for everybody, whoever they are."
)
OUTLIERS = (
    "The Bayesian promise is to people like the witnesses. One who is unlike them, an outlier, may lose more than it "
    "says, up to the DP ε, which holds for everybody."
)


@dataclass(frozen=True, kw_only=True)
class Shift(Part):
    """p-values of two exact permutation tests: of equal means, and of equal laws (a kernel test). Sensitive."""

    mean: float
    kernel: float
    outsiders: int
    members: int

    def __post_init__(self) -> None:
        self._put(
            mean=errors.number("mean", self.mean, above=0, most=1),
            kernel=errors.number("kernel", self.kernel, above=0, most=1),
            outsiders=errors.whole("outsiders", self.outsiders, least=2),
            members=errors.whole("members", self.members, least=2),
        )

    @property
    def warns(self) -> bool:
        """Whether the two differ by more than chance does."""
        return min(self.mean, self.kernel) <= LEVEL / 2
