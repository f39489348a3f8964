"""Errata of wording: nothing to compute, only a sound reading."""

from __future__ import annotations

from bayesdp.experiments.errata.erratum import Listed

LISTED = (
    Listed(
        "23",
        "T",
        "S4",
        "2.3",
        "The stochastic gradient lacks a minus sign and the gradient on the likelihood.",
        "∇Ũ = −∇ log p(θ) − (N/τ) Σ ∇ log p(dᵢ|θ), the sum over the batch (F1).",
    ),
    Listed(
        "34",
        "T",
        "S4",
        "proof of Theorem 3, eq. 3; proof of Theorem 4",
        "An inequality chain points the wrong way; log(1/(q z)) is written with z²; T is missing in η₀.",
        "log(1/(q z)) with z; η₀ = c₄ q sqrt(T log(1/δ))/ε. The results are replaced by exact calibration (F8).",
    ),
)
