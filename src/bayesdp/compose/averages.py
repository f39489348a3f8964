"""How an average over runs is taken inside a bound: the exact or plug-in one, or one that you bring.

Expected (E7) and one-Hölder (H2) composition need log E[exp(v)] over training runs. What stands in for that
expectation decides what the result is: exact state probabilities give a theorem, the mean of a few runs an
estimate (biased low, ERR 19), an upper confidence bound a theorem that fails with a stated probability.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bayesdp.errors import Array


class LogMean(Protocol):
    """log E[exp(v)] over the first axis of an array (the runs), or an upper bound of it.

    `cap` is an upper limit of the values themselves (the worst case, C11), broadcastable to the result, or
    None when no worst case was given: an upper confidence bound needs it, an exact mean may ignore it. With
    the bounds of `bayesdp.estimate`: `lambda v, cap: upper_mean(v, method=…, failure=…, log_high=cap)`.
    """

    def __call__(self, values: Array, cap: Array | None, /) -> Array: ...


def log_mean_exp(values: Array, cap: Array | None = None) -> Array:  # noqa: ARG001 - one signature for all means
    """log( mean_i exp(v_i) ) over the first axis, in log space.

    Exact when the entries are the whole population, each equally likely; from sampled runs it is a plug-in
    **estimate**, biased low. `cap` is not needed: a mean never passes the largest entry. Infinite where an
    entry is infinite. It trusts its caller to have checked the values: it is called in inner loops.
    """
    top = np.max(values, axis=0)
    # The largest entry is taken out of the exponential; where it is infinite the answer is infinite.
    anchor = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        mean = np.mean(np.exp(values - anchor), axis=0)
        result: Array = np.log(mean) + anchor
    return result
