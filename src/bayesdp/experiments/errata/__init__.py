"""Errata of the papers, each computed: what is printed, what is true, what this package says.

`ERRATA` are functions without arguments that return an `Erratum`; `computed()` calls them all, once. `LISTED` are
those that nothing can be computed for. `page` renders both, and the tests check both.
"""

from collections.abc import Callable
from functools import cache

from bayesdp.experiments.errata import (
    bayesian_dp,
    bayesian_dp_practice,
    dpvi,
    per_instance,
    per_instance_use,
    sgld,
    sgld_claims,
)
from bayesdp.experiments.errata.erratum import Erratum, Listed
from bayesdp.experiments.errata.listed import LISTED

__all__ = ["ERRATA", "LISTED", "Erratum", "Listed", "computed"]

ERRATA: tuple[Callable[[], Erratum], ...] = (
    *bayesian_dp.ERRATA,
    *bayesian_dp_practice.ERRATA,
    *dpvi.ERRATA,
    *per_instance.ERRATA,
    *per_instance_use.ERRATA,
    *sgld.ERRATA,
    *sgld_claims.ERRATA,
)


@cache
def computed() -> tuple[Erratum, ...]:
    """All errata, computed once (some ten seconds)."""
    return tuple(make() for make in ERRATA)
