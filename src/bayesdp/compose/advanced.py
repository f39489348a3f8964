"""Advanced composition (D5-D8): from (ε, δ) of single steps to (ε, δ) of a run, as paper S2 does without moments.

Kept for comparison: Rényi and PLD accounting are tighter. Everything here is ordinary worst-case DP.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from bayesdp.divergence.hockey_stick import gaussian_epsilon
from bayesdp.errors import Array, array, number, one_of, probability, refuse, unmet

Calibration = Literal["exact", "classical"]


@overload
def amplify(epsilon: float, delta: float, sampling_rate: float) -> tuple[float, float]: ...
@overload
def amplify(epsilon: Array, delta: Array, sampling_rate: Array) -> tuple[Array, Array]: ...
def amplify(epsilon: Any, delta: Any, sampling_rate: Any) -> tuple[Any, Any]:
    """(log(1 + q(e^ε − 1)), q δ): what Poisson sampling at rate q makes of an (ε, δ) step (amplification, D7).

    Guarantee: (ε, δ)-DP under add/remove adjacency for a record that enters with probability q independently
    of the others. Not for shuffled or fixed-size batches. Arrays broadcast; numbers give floats.

    Bad input: negative or NaN ε, δ or q outside [0, 1] get `InputError`. ε may be infinite.
    """
    eps = array("epsilon", epsilon, least=0, infinite=True)
    dlt = array("delta", delta, least=0, most=1)
    rate = array("sampling_rate", sampling_rate, least=0, most=1)
    eps, dlt, rate = _same_shape(epsilon=eps, delta=dlt, sampling_rate=rate)
    direct = np.log1p(rate * np.expm1(np.minimum(eps, 700.0)))
    # Beyond 700 e^ε leaves float64, so the same sum is made of logs; q = 0 gives 0, even at ε = inf.
    with np.errstate(divide="ignore"):
        far = np.logaddexp(np.log1p(-rate), np.log(rate) + np.where(rate > 0, eps, 0.0))
    amplified = np.where(eps > 700.0, far, direct)
    if amplified.ndim == 0:
        return float(amplified), float(rate * dlt)
    return amplified, rate * dlt


def advanced(epsilons: Any, deltas: Any, counts: Any, slack: float) -> tuple[float, float]:
    """ε = sqrt(2 ln(1/slack) Σ n_i ε_i²) + Σ n_i ε_i(e^{ε_i} − 1), δ = Σ n_i δ_i + slack (advanced composition, D6).

    Guarantee: (ε, δ)-DP of n_i steps of (ε_i, δ_i)-DP each, i = 1, 2, …, chosen adaptively as long as the
    numbers themselves were fixed. Where the plain sum Σ n_i ε_i is smaller (`basic`; tiny runs or large ε_i)
    that is returned: it holds with the same δ.

    Bad input: negative or NaN ε, δ outside [0, 1], counts that are negative or not whole, slack outside (0,
    1), or shapes that do not broadcast get `InputError`. δ is returned at most 1; infinite ε gives infinite
    ε.
    """
    eps = np.atleast_1d(array("epsilons", epsilons, least=0, ndim=(0, 1), infinite=True))
    dlt = np.atleast_1d(array("deltas", deltas, least=0, most=1, ndim=(0, 1)))
    eps, dlt, times = _same_shape(epsilons=eps, deltas=dlt, counts=_counts(counts))
    spare = probability("slack", slack)
    delta = min(1.0, float(times @ dlt) + spare)
    eps, times = eps[times > 0], times[times > 0]
    with np.errstate(over="ignore"):
        deviation = math.sqrt(2 * math.log(1 / spare) * float(times @ np.square(eps)))
        drift = float(times @ (eps * np.expm1(eps)))
    return min(deviation + drift, float(times @ eps)), delta


def gaussian_run(
    noise_multipliers: Any,
    sampling_rates: Any,
    counts: Any,
    delta: float,
    *,
    shift: float = 1.0,
    slack: float | None = None,
    calibration: Calibration = "exact",
) -> float:
    """The ε of n_i subsampled Gaussian steps with noise z_i and rate q_i, as S2 accounts them (D8):
    the Gaussian mechanism (B8, or the classical D5), amplification (D7), advanced composition (D6).

    Each step is given the same δ_it = (δ − slack)/Σ n_i q_i, so that after amplification the steps use δ −
    slack together and D6 uses `slack`; by default slack = δ/2. ε_0 of a step is, at δ_it and shift
    `shift`/z_i,

    - `calibration="exact"`: the smallest ε of the Gaussian hockey stick (B8). Sound.
    - `calibration="classical"`: sqrt(2 ln(1.25/δ_it)) shift/z_i (D5), printed in S2. **Unsound** (ERR 13b):
      proved for ε_0 < 1 only, and really too small for ε_0 above some 8. For comparison only.

    Guarantee (exact): (ε, δ)-DP, add/remove, Poisson sampling, where one record moves the sum by at most
    `shift` clip norms (1: add/remove; S2's 2·act(2σ) computes ε = 2·gaussian_run(2σ, …), see ERR 13 for its
    δ).

    Bad input: noise that is not positive, rates outside [0, 1], counts that are negative or not whole, δ
    outside (0, 1), slack outside (0, δ), shift negative, or another calibration get `InputError`.
    """
    z = np.atleast_1d(array("noise_multipliers", noise_multipliers, above=0, ndim=(0, 1)))
    rate = np.atleast_1d(array("sampling_rates", sampling_rates, least=0, most=1, ndim=(0, 1)))
    z, rate, times = _same_shape(noise_multipliers=z, sampling_rates=rate, counts=_counts(counts))
    delta = probability("delta", delta)
    spare = delta / 2 if slack is None else number("slack", slack, above=0, below=delta)
    reach = number("shift", shift, least=0)
    one_of("calibration", calibration, ("exact", "classical"))

    visits = float(times @ rate)
    if visits == 0 or reach == 0:
        return 0.0
    # A run that hardly ever samples a record could afford δ_it above 1; a probability stays below it.
    step_delta = min((delta - spare) / visits, 1 - 1e-9)
    if calibration == "exact":
        step_epsilon = gaussian_epsilon(step_delta, reach / z)
    else:
        step_epsilon = math.sqrt(2 * math.log(1.25 / step_delta)) * reach / z
    step_epsilon, step_deltas = amplify(step_epsilon, np.full_like(z, step_delta), rate)
    return advanced(step_epsilon, step_deltas, times, spare)[0]


def _counts(value: Any) -> Array:
    counts = np.atleast_1d(array("counts", value, least=0, ndim=(0, 1)))
    if np.any(counts != np.floor(counts)):
        raise refuse("counts", value, "to hold whole numbers of steps")
    return counts


def _same_shape(**named: Array) -> tuple[Array, ...]:
    try:
        return tuple(np.broadcast_arrays(*named.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in named.items())
        raise unmet(next(iter(named)), shapes, f"{', '.join(named)} of matching shapes", f"{shapes}") from None
