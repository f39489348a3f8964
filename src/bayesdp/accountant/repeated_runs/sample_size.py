"""How many training runs an average needs before it says anything: Fact 3.5 of paper S3 put right (E9, ERR 17 and 18).

    l >= ln(2/J) (F − 1)² / (2 c² f²)      for   Pr[ |mean of l runs − E Y| >= c f ] <= J,     1 <= Y <= F

by Hoeffding's inequality. In E9 Y = exp(p·cost of a step) at p = 3n, F its worst case and f = e^{3(α−1)ε}, ε the
data-independent Rényi bound of the run. Everything is in logarithms: F is out of reach of floats in most plans.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.divergence.sgm import log_expm1
from bayesdp.errors import Array


def log_runs(log_range: Any, log_scale: Any, *, error: float, failure: float) -> Array:
    """The ln l of Hoeffding's bound (E9), from ln F and ln f; `error` is c and `failure` J; at least 0, a single run.

    Knowing E Y to within c·e^{3(α−1)ε} does not certify that a step is below its worst case (ERR 18): for the share r
    of it give log_scale = 3(α−1) r ε. F = 1 leaves nothing to estimate: 0.

    Bad input: negative logarithms, an error that is not positive or a failure outside (0, 1) get `InputError`.
    """
    spread = log_expm1(errors.array("log_range", log_range, least=0, infinite=True))
    scale = errors.array("log_scale", log_scale, least=0)
    c = errors.number("error", error, above=0)
    j = errors.probability("failure", failure)
    return np.asarray(np.maximum(math.log(math.log(2 / j) / (2 * c**2)) + 2 * (spread - scale), 0.0))
