"""Errata 29-35: the numbers that S4 states for its experiments and examples."""

from __future__ import annotations

import math

import numpy as np

from bayesdp.accountant.langevin import printed_bounds
from bayesdp.accountant.langevin.step_size import Langevin
from bayesdp.divergence.hockey_stick import gaussian_epsilon, gaussian_shift
from bayesdp.experiments.errata.dpvi import loss_tail_of_gaussian, tail_delta
from bayesdp.experiments.errata.erratum import Erratum
from bayesdp.experiments.errata.exact import dp_epsilon, one_step_epsilon
from bayesdp.experiments.errata.sgld import MNIST, SVHN, noise_multiplier


def svhn() -> Erratum:
    records, step, clip, delta = SVHN["records"], SVHN["step"], SVHN["clip"], SVHN["delta"]
    rate, z = 128 / records, noise_multiplier(128, records, step, clip)
    epoch = math.ceil(1 / rate)
    limit = clip * math.sqrt(step * 20 / 128)
    return Erratum(
        number="29",
        severity="U",
        paper="S4",
        where="4.3, SVHN",
        problem="The noise is a tenth of the clip norm, so the stated ε cannot hold. The large-noise formula "
        "seems to "
        "have been used outside its range (batch and epochs are not stated: an inference).",
        example="N = 604,388, η = 0.1, L = 5, batch 128, δ = 1e-6: ε.",
        printed_label="stated",
        printed=2.97,
        truth_label="at least the exact ε of a single step",
        truth=one_step_epsilon(z, rate, delta),
        ours_label="one epoch, Rényi accounting",
        ours=dp_epsilon("rdp", z, rate, epoch, delta),
        verdict="under",
        sound_version="the worst-case accountant on the real noise (F3, F8).",
        more=(
            ("z", z),
            ("one epoch, orders from 1.1 up", dp_epsilon("rdp", z, rate, epoch, delta, usual_orders=True)),
            ("twenty epochs, orders from 1.1 up", dp_epsilon("rdp", z, rate, 94436, delta, usual_orders=True)),
            ("large-noise formula, twenty epochs: μ", limit),
            ("large-noise formula, twenty epochs: ε", float(gaussian_epsilon(delta, limit))),
            ("batch with z = 1", clip * math.sqrt(step * records)),
        ),
    )


def mnist() -> Erratum:
    records, step, clip, delta = MNIST["records"], MNIST["step"], MNIST["clip"], MNIST["delta"]
    rate = 128 / records
    half, full = (noise_multiplier(128, records, step, clip, c) for c in (1.0, 2.0))
    return Erratum(
        number="30",
        severity="L",
        paper="S4",
        where="4.3, MNIST",
        problem="The stated ε is larger than necessary.",
        example="N = 60,000, η = 0.3, L = 0.3, batch 128, 20 epochs, δ = 1e-5, add/remove, the noise of "
        "Algorithm 1: ε.",
        printed_label="stated",
        printed=0.99,
        truth_label="privacy loss distribution",
        truth=dp_epsilon("pld", half, rate, 9375, delta),
        ours_label="Rényi accounting",
        ours=dp_epsilon("rdp", half, rate, 9375, delta),
        verdict="loose",
        sound_version="the worst-case accountant on the real noise (F3, F8).",
        more=(
            ("moments accountant", dp_epsilon("moments", half, rate, 9375, delta)),
            ("posterior noise (c = 2), Rényi", dp_epsilon("rdp", full, rate, 9375, delta)),
            ("posterior noise (c = 2), PLD", dp_epsilon("pld", full, rate, 9375, delta)),
        ),
    )


def step_size_example() -> Erratum:
    records, steps, epsilon, delta, step = 50000, 10**4, 0.1, 1e-5, 0.103
    rungs = float((np.arange(1, steps + 1) ** (-1 / 3)).sum())
    budget = float(gaussian_shift(epsilon, delta)) ** 2 * records
    z = noise_multiplier(500, records, step, 1.0)
    return Erratum(
        number="31",
        severity="U",
        paper="S4",
        where="3.1, example",
        problem="A step of 0.103 is said to be (0.1, 1e-5)-DP at T = 10⁴, N = 50,000, L = 1, and the usual "
        "fixed step of "
        "0.1 with it.",
        example="Fixed step 0.103, batch 500, the noise of Algorithm 1: ε at δ = 1e-5.",
        printed_label="stated",
        printed=epsilon,
        truth_label="privacy loss distribution",
        truth=dp_epsilon("pld", z, 0.01, steps, delta),
        ours_label="Rényi accounting",
        ours=dp_epsilon("rdp", z, 0.01, steps, delta),
        verdict="under",
        sound_version="`accountant.langevin.step_size` (F8), `bayesdp sgld-step`.",
        more=(
            (
                "decreasing from 0.103 (large-noise limit): ε",
                float(gaussian_epsilon(delta, math.sqrt(step * rungs / records))),
            ),
            ("largest first step, decreasing (large-noise limit)", budget / rungs),
            ("largest fixed step (large-noise limit)", budget / steps),
            ("fixed 0.103, batch 100: ε (Rényi)", dp_epsilon("rdp", z / 5, 0.002, steps, delta)),
        ),
    )


def adjacency() -> Erratum:
    records, step, clip, delta = MNIST["records"], MNIST["step"], MNIST["clip"], MNIST["delta"]
    z = noise_multiplier(128, records, step, clip)
    run = (z, 128 / records, 9375, delta)
    return Erratum(
        number="32",
        severity="I",
        paper="S4",
        where="definition of adjacency",
        problem="Replace-one is defined, an add/remove lemma is used; batches of fixed size are described, Poisson "
        "sampling is assumed.",
        example="MNIST as in erratum 30: ε under the adjacency that the paper defines.",
        printed_label="add/remove formula",
        printed=dp_epsilon("rdp", *run),
        truth_label="replace-one, exact pair, PLD",
        truth=dp_epsilon("pld", *run, "replace-one"),
        ours_label="replace-one, exact pair, Rényi",
        ours=dp_epsilon("rdp", *run, "replace-one"),
        verdict="under",
        sound_version="`adjacency` and `sampling` are part of every accountant and guarantee (A2, A3).",
        more=(("add/remove with half the noise multiplier, Rényi (heuristic)", dp_epsilon("rdp", z / 2, *run[1:])),),
    )


def tail_equivalence() -> Erratum:
    mu = 0.5
    epsilon = float(gaussian_epsilon(1e-5, mu))
    return Erratum(
        number="33",
        severity="T",
        paper="S4",
        where="2.1",
        problem='"(ε, δ)-DP is equivalent to the tail bound": it is implied by it. See also erratum 13c.',
        example="A Gaussian step with shift 0.5 at its exact (ε, 1e-5): Pr[loss ≥ ε].",
        printed_label="δ",
        printed=1e-5,
        truth_label="Φ(1/4 − 2ε)",
        truth=loss_tail_of_gaussian(mu, epsilon),
        ours_label="tail conversion at ε",
        ours=tail_delta(mu, epsilon),
        verdict="under",
        sound_version="two conversions with two names (B10): `convert.epsilon(strength=...)`.",
    )


def wang_bound() -> Erratum:
    records, steps, epsilon, delta = 50000, 10**4, 0.1, 1e-5
    logs = math.log(2.5 * steps / delta) * math.log(2 / delta)
    chain = Langevin(records=records, batch=100, steps=steps, bound=1.0)
    terms = [math.log(v) for v in (epsilon, epsilon, records)], [math.log(v) for v in (128, steps, logs)]
    return Erratum(
        number="35",
        severity="T",
        paper="S4",
        where="3.1, bound of Wang et al.",
        problem="The value printed is not that of the formula printed.",
        example="ε²N/(128 L² T log(2.5T/δ) log(2/δ)) at (0.1, 1e-5), N = 50,000, T = 10⁴, L = 1.",
        printed_label="stated",
        printed=1.54e-6,
        truth_label="summed in logs",
        truth=math.exp(sum(terms[0]) - sum(terms[1])),
        ours_label="the formula (F7)",
        ours=printed_bounds.wang_step(chain, epsilon, delta),
        verdict="wrong",
        sound_version="kept as a formula for comparison (F7): `accountant.langevin.printed_bounds.wang_step`.",
    )


ERRATA = (svhn, mnist, step_size_example, adjacency, tail_equivalence, wang_bound)
