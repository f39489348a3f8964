"""Errata 24-28: Langevin dynamics as a private mechanism (S4), the algorithm and its theory."""

from __future__ import annotations

import math

import numpy as np

from bayesdp.accountant.langevin import noise, printed_bounds, utility_bounds
from bayesdp.accountant.langevin.step_size import Langevin
from bayesdp.divergence import sgm
from bayesdp.experiments.errata.erratum import Erratum

RECORDS, PRECISION = 100, 101.0
"""A Gaussian model: 100 observations of unit variance and a unit prior; the posterior has this precision."""

SVHN = {"records": 604388, "step": 0.1, "clip": 5.0, "delta": 1e-6}
MNIST = {"records": 60000, "step": 0.3, "clip": 0.3, "delta": 1e-5}


def noise_multiplier(batch: float, records: float, step: float, clip: float, c: float = 1.0) -> float:
    """Noise multiplier (F3) z = τ sqrt(c)/(L sqrt(ηN)); c = 2 is the posterior, c = 1 S4's Algorithm 1."""
    return noise.noise_multiplier(step / records, sampling_rate=batch / records, clip_norm=clip, temperature=c / 2)


def sign_of_the_drift() -> Erratum:
    start, mean, step, steps = 0.0, 1.0, 0.1, 1000
    pull = step * PRECISION / RECORDS
    return Erratum(
        number="24",
        severity="U (utility)",
        paper="S4",
        where="Algorithm 1, step 6",
        problem="The update has a minus sign before the gradient of the log-density: it descends the likelihood.",
        example="Gaussian posterior with mean 1 (100 records), η = 0.1, from 0: mean of the chain after 1000 steps.",
        printed_label="with the minus sign",
        printed=mean + (start - mean) * (1 + pull) ** steps,
        truth_label="posterior mean",
        truth=mean,
        ours_label="with the plus sign (F2)",
        ours=mean + (start - mean) * (1 - pull) ** steps,
        verdict="wrong",
        sound_version="rule for the learner: θ' = θ + η(∇ log p(θ)/N + (1/τ) Σ clip(∇ log p(dᵢ|θ))) + noise.",
    )


def temperature() -> Erratum:
    step = 1e-6

    def variance(c: float) -> float:
        return (c * step / RECORDS) / -math.expm1(2 * math.log1p(-step * PRECISION / RECORDS))

    return Erratum(
        number="25",
        severity="I",
        paper="S4",
        where="Algorithm 1, step 5",
        problem='Noise of variance η/N samples exp(−2U), temperature 1/2, against g = √2 and "temperature 1" '
        "in the text.",
        example="Gaussian posterior with precision 101, η = 1e-6: stationary variance of the recursion θ' = "
        "(1−a)θ + noise.",
        printed_label="noise variance η/N",
        printed=variance(1.0),
        truth_label="posterior variance",
        truth=1 / PRECISION,
        ours_label="noise variance 2η/N (F2)",
        ours=variance(2.0),
        verdict="wrong",
        sound_version="rule for the learner: noise variance 2η/N (c = 2); it also improves z by √2.",
        more=(
            ("MNIST, batch 128: z with η/N", noise_multiplier(128, MNIST["records"], MNIST["step"], MNIST["clip"])),
            ("z with 2η/N", noise_multiplier(128, MNIST["records"], MNIST["step"], MNIST["clip"], 2.0)),
        ),
    )


def step_conditions() -> Erratum:
    records, clip, step, batch = SVHN["records"], SVHN["clip"], SVHN["step"], 128.0
    rate = batch / records
    z = noise_multiplier(batch, records, step, clip)
    low, high = 1e-9, 1e9
    for _ in range(200):  # the largest step with z ≥ 1, from the noise itself
        middle = math.sqrt(low * high)
        enough = noise_multiplier(batch, records, middle, clip) >= 1
        low, high = (middle, high) if enough else (low, middle)
    chain, mnist = (
        Langevin(records=int(run["records"]), batch=128, steps=1, bound=run["clip"]) for run in (SVHN, MNIST)
    )
    printed, right = printed_bounds.printed_limits(chain).most, printed_bounds.corrected_limits(chain).most
    return Erratum(
        number="26",
        severity="U",
        paper="S4",
        where="Theorem 3, conditions 1 and 2",
        problem="q² is lost on substitution: z² = q²N/(L²η), so z ≥ 1 needs η ≤ q²N/L² and q < 1/(16z) needs "
        "η > 256 q⁴N/L².",
        example="SVHN: N = 604,388, L = 5, batch 128: largest η that condition 1 allows (the paper uses 0.1).",
        printed_label="N/L²",
        printed=printed,
        truth_label="largest η with z ≥ 1, by bisection",
        truth=low,
        ours_label="q²N/L² (F5)",
        ours=right,
        verdict="over",
        sound_version="none of these: `accountant.langevin.step_size` on the exact costs (F8), `bayesdp sgld-step`.",
        printed_name="`accountant.langevin.printed_bounds.printed_limits`",
        more=(
            ("the paper's η over the limit", step / right),
            ("there: exact log-moment at λ = 1", float(sgm.cost(1 / z, 2.0, sampling_rate=rate))),
            ("Lemma 2 at the same place", printed_bounds.lemma_two_formula(1.0, rate, z)),
            ("MNIST: largest η", printed_bounds.corrected_limits(mnist).most),
            ("MNIST: smallest η (condition 2)", printed_bounds.corrected_limits(mnist).least),
        ),
    )


def decreasing_steps() -> Erratum:
    steps = 10**6
    times = np.arange(1, steps + 1, dtype=np.float64)
    eta = times ** (-1 / 3) * steps ** (-2 / 3)
    first, second = float(eta.sum()), float((eta**2).sum())
    # Σ t^{−1/3} ≥ ∫ from 1 to T+1, so this is not below 1/Σ η.
    bound = 1 / (1.5 * ((steps + 1) ** (2 / 3) - 1) * steps ** (-2 / 3))
    return Erratum(
        number="27",
        severity="U",
        paper="S4",
        where="Proposition 5",
        problem='Sums and rates are wrong, and N is dropped from η̃₀; "optimal η̃₀ = O(T^{2/9})" does not follow.',
        example="η_t = η̃₀ t^{−1/3} T^{−2/3} with η̃₀ = 1 and T = 10⁶: the term 1/Σ η_t.",
        printed_label="1/(3 η̃₀)",
        printed=1 / 3,
        truth_label="summed",
        truth=1 / first,
        ours_label="2/(3 η̃₀), with its remainder at this T (F9)",
        ours=bound,
        verdict="under",
        sound_version="the sums themselves (F9): `accountant.langevin.utility_bounds.terms`.",
        printed_name="`accountant.langevin.utility_bounds.printed_decreasing`",
        more=(
            ("T Σ η²/(Σ η)², summed (printed 2/3, limit 4/3)", steps * second / first**2),
            ("T² (Σ η²)²/(Σ η)², summed (limit 4; printed 2 T^{4/3})", steps**2 * second**2 / first**2),
        ),
    )


def inverted_rate() -> Erratum:
    ratio = 1e6
    right = utility_bounds.log_accuracy(ratio)
    return Erratum(
        number="28",
        severity="U",
        paper="S4",
        where="Proposition 7",
        problem="T = A log⁵(1/ω)/ω⁴ is inverted wrongly.",
        example="T/A = 10⁶: put log(1/ω) back into log⁵(1/ω)/ω⁴.",
        printed_label="log(1/ω) = W^{1/5}(4T/(5A))",
        printed=utility_bounds.rate_of(utility_bounds.printed_log_accuracy(ratio)),
        truth_label="T/A",
        truth=ratio,
        ours_label="log(1/ω) = (5/4) W((4/5)(T/A)^{1/5}) (F9)",
        ours=utility_bounds.rate_of(right),
        verdict="wrong",
        sound_version="F9; the bound O(log(1/ω) + ω + 1/N) grows with T and says nothing.",
        printed_name="`accountant.langevin.utility_bounds.printed_log_accuracy`",
        more=(
            ("log(1/ω), right", right),
            (
                "with a factor 5/4 under the fifth root, which O(·) would hide",
                utility_bounds.rate_of(utility_bounds.printed_log_accuracy(ratio, 1.25)),
            ),
        ),
    )


ERRATA = (sign_of_the_drift, temperature, step_conditions, decreasing_steps, inverted_rate)
