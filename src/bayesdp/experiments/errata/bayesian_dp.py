"""Errata 1-9: the theory of Bayesian DP (S0, S1)."""

from __future__ import annotations

import math

import numpy as np

from bayesdp import convert
from bayesdp.compose.holder import holder
from bayesdp.compose.one_holder import best
from bayesdp.compose.product import product
from bayesdp.divergence import gaussian, replace_one, sgm
from bayesdp.errors import Array
from bayesdp.estimate import upper_mean
from bayesdp.experiments.errata.erratum import Erratum
from bayesdp.experiments.errata.exact import hockey_stick, log_mean, loss_tail, renyi, three_laws


def product_composition() -> Erratum:
    steps = 100
    half = np.tile(np.array([0.0, 1.0])[:, None], (steps, 1, 1))
    rare = np.zeros((steps, 1000, 1))
    rare[:, 0] = 1.0
    return Erratum(
        number="1",
        severity="U",
        paper="S1",
        where="Theorem 1, eq. 49",
        problem="Expectations over x' are multiplied although the same x' enters every step; exchangeable is not "
        "independent.",
        example="A step costs λD = 0 or 1, equally likely over people, the same for a person at each of 100 steps. "
        "Log-moment log E exp(λL) of the run.",
        printed_label="Theorem 1, product",
        printed=float(product(half)[0]),
        truth_label="log of the mean over people of exp(100 λD)",
        truth=log_mean([0.0, steps]),
        ours_label="Hölder composition (exact here: all steps alike)",
        ours=float(holder(half)[0]),
        verdict="under",
        sound_version='`BayesianAccountant()`, i.e. composition="holdout" (H5): the same holdout records '
        "through all "
        "steps, no product and no Hölder loss. `compose.holder` (C7) under its conditions.",
        printed_name='`compose.product`, `BayesianAccountant(composition="product")`, labelled unsound',
        more=(
            ("one person in 1000 costs 1, the others 0: printed", float(product(rare)[0])),
            ("one person in 1000 costs 1, the others 0: truth", log_mean(steps * rare[0, :, 0])),
        ),
    )


def adaptive_holder() -> Erratum:
    # Ten equally likely outcomes of the first step, so that plain means over them are exact expectations under P.
    bad = np.arange(10) == 0
    p, q = np.array([0.9, 0.1]), np.array([0.999, 0.001])
    orders = np.concatenate([[2.0], 2 + np.geomspace(0.01, 10, 200)])
    first = np.array([(order - 1) * renyi(p, q, float(order)) for order in orders])
    second = bad[:, None] * gaussian.cost(math.sqrt(3), orders)
    worst = first + gaussian.cost(math.sqrt(3), orders)
    claimed = holder(np.stack([np.full((10, 1), first[0]), second[:, :1]]))[0]
    return Erratum(
        number="2",
        severity="U",
        paper="S0 (and S1)",
        where="Theorem 1, eq. 43",
        problem="Independence of the noise is used to turn E over outcomes of a product into a product of "
        "expectations, but the divergence of step t depends on earlier outcomes (training is adaptive).",
        example="λ = 1, two steps. Step 1 says 1 with probability 0.1 under P, 0.001 under Q. Step 2 is a Gaussian "
        "that costs λD = 3 if step 1 said 1 and nothing otherwise. E exp(L) of both.",
        printed_label="Hölder composition, expectations under P",
        printed=math.exp(claimed),
        truth_label="enumeration: Σ p²/q · exp(cost of step 2)",
        truth=float(p @ (p / q * np.exp([0.0, 3.0]))),
        ours_label="one-Hölder (H2), best inflated order, minimum with the worst path",
        ours=math.exp(float(best(first + second, orders, worst=worst)[0])),
        verdict="under",
        sound_version="`compose.ex_post` along the run (H3, H12), `compose.one_holder` (H2), or a supremum over "
        "earlier outcomes.",
        printed_name='`compose.holder`, `BayesianAccountant(composition="holder")`, with its condition stated',
        more=(("worst path", math.exp(worst[0])),),
    )


def failure_probability() -> Erratum:
    beta = gamma = 5e-6
    steps, orders = 1160, 32
    return Erratum(
        number="3",
        severity="U",
        paper="S1",
        where="IV-C",
        problem="δ = β + γ counts the failure of one estimate; there is one at each of T steps and K orders, "
        "and the "
        "order is chosen from them.",
        example="An estimator that keeps its promise exactly: right with probability 1 − γ, zero with "
        "probability γ. "
        "T = 1160 steps, K = 32 orders, β = γ = 5e-6. Probability that the reported ε does not hold.",
        printed_label="β + γ",
        printed=beta + gamma,
        truth_label="β + probability that one of the estimates used is zero (independent samples)",
        truth=beta - math.expm1(steps * orders * math.log1p(-gamma)),
        ours_label="β + T K γ (C12)",
        ours=beta + steps * orders * gamma,
        verdict="under",
        sound_version='δ loses T·K·`failure` for compositions "holder" and "product"; the holdout makes '
        "one estimate "
        "for the whole run (H12) and states its failure probability apart from δ.",
    )


def student_t() -> Erratum:
    samples, chance, gamma = 28, 0.01, 1e-15
    dear = float(sgm.cost(1.0, 9.0, sampling_rate=0.01))
    truth = math.log1p(chance * math.expm1(dear))
    unseen = np.zeros(samples)
    return Erratum(
        number="4",
        severity="U",
        paper="S1, S0",
        where="Theorem 3, eq. 13 (the estimator)",
        problem="The Student-t limit is a statement under a Gaussian model. Y = exp(λD) is skewed, with rare large "
        "values, and a sample without one has no spread.",
        example="One person in 100 is at shift 1 (q = 0.01, λ = 8), the others cost nothing; 28 samples, γ = "
        "1e-15. In "
        "the sample without the rare value, log of the estimated mean.",
        printed_label="M + t·S/√(m−1), stated failure 1e-15",
        printed=float(upper_mean(unseen, method="student-t", failure=gamma)),
        truth_label="log E[Y]",
        truth=truth,
        ours_label="betting (H9), same sample, same γ",
        ours=float(upper_mean(unseen, method="betting", failure=gamma, log_high=dear)),
        verdict="under",
        sound_version='estimators "betting" (default), "bernstein", "kl", "hoeffding": no assumption but the '
        "range, "
        "which clipping gives; capped at the worst case (C11).",
        printed_name='estimator="student-t", labelled heuristic',
        more=(
            ("probability of that sample, hence of failure", (1 - chance) ** samples),
            ("worst case, the cap", dear),
        ),
    )


def basic_composition() -> Erratum:
    kinds, epsilon = 100, 1.0
    # Rows: who x' is; columns: what the first mechanism says. Without x' it says anything, equally likely.
    boost = np.where(np.eye(kinds) == 1, math.exp(epsilon), 1.0)
    says = boost / boost.sum(axis=1, keepdims=True)
    caught = float(np.mean(np.diag(says)))
    return Erratum(
        number="5",
        severity="U",
        paper="S0, S1",
        where="Proposition 3",
        problem="For members (outcomes drawn from the data that contain x') a second mechanism chosen by the first "
        "outcome meets an x' that no longer follows μ.",
        example="x' is one of 100 kinds, equally likely. Mechanism 1 names a kind by randomised response: (1, 0). "
        "Mechanism 2 reveals whether the named kind is in the data: for a fixed name (0, 0.01). Probability "
        "that the "
        "loss of both passes ε = 1.",
        printed_label="δ₁ + δ₂",
        printed=1 / kinds,
        truth_label="enumeration: probability that x' itself is named",
        truth=caught,
        ours_label="e^ε δ₂, the change of measure",
        ours=math.exp(epsilon) / kinds,
        verdict="under",
        sound_version='members are accounted along their own run (H3): `step(..., orientation="present")`.',
        printed_name="`compose.additive.basic`, which says for whom it holds",
        more=(("largest loss of mechanism 1", math.log(kinds * says[0, 0])),),
    )


def weak_definition() -> Erratum:
    kinds = 1000
    fresh = np.full(kinds, 1 / kinds)
    known: Array = np.zeros(kinds)
    known[0] = 1.0
    return Erratum(
        number="6",
        severity="I",
        paper="S1",
        where="Definition 6",
        problem="Weak Bayesian DP averages over x' before it compares, so by itself it protects nobody whose "
        "record "
        "the adversary knows.",
        example="A mechanism outputs x' when present and a fresh draw from μ when absent; μ uniform on 1000 "
        "records. δ at "
        "ε = 1.",
        printed_label="weak form: mixture over x' against μ",
        printed=hockey_stick(fresh, fresh, 1.0),
        truth_label="the person who is x': point mass against μ",
        truth=hockey_stick(known, fresh, 1.0),
        ours_label="strong form: Pr over x' and outcome of loss ≥ 1",
        ours=loss_tail(known, fresh, 1.0),
        verdict="under",
        sound_version='the triple (ε, δ, coverage) of C3 and H5; `Guarantee.strength` says "strong" or "weak".',
        printed_name='`Guarantee(strength="weak")`',
    )


def group_privacy() -> Erratum:
    epsilon, delta, k = 1.0, 0.01, 2
    first, middle, last = three_laws(epsilon, delta)
    pairs = ((first, middle), (middle, first), (middle, last), (last, middle))
    return Erratum(
        number="7",
        severity="U",
        paper="S1; S0's strong-form proof",
        where="Proposition 4",
        problem="The loss of the pair (Dⁱ⁻¹, Dⁱ) is bounded for outcomes of Dⁱ⁻¹ but used for outcomes of D⁰.",
        example="Three laws on three points. Every neighbouring pair has Pr[loss ≥ 1] ≤ 0.01, both ways round. "
        "Pr[loss ≥ 2] between the outer two.",
        printed_label="k δ (S1)",
        printed=k * delta,
        truth_label="enumeration",
        truth=loss_tail(first, last, k * epsilon),
        ours_label="δ (e^{kε} − 1)/(e^ε − 1) (B15)",
        ours=convert.group(epsilon, delta, k)[1],
        verdict="under",
        sound_version="`convert.group`.",
        more=(
            ("largest Pr[loss ≥ 1] of the four neighbouring pairs", max(loss_tail(*pair, epsilon) for pair in pairs)),
            ("k e^{(k−1)ε} δ, also valid", k * math.exp((k - 1) * epsilon) * delta),
            ("k e^{kε} δ, S0, valid and loose", k * math.exp(k * epsilon) * delta),
        ),
    )


def hidden_state() -> Erratum:
    rate, steps, reach, order = 0.1, 50, 0.2, 8.0
    with_record, without, shifts = 0.0, 0.0, []
    for _ in range(steps):  # the neighbouring run (H6) hears the same released samples
        with_record += rate * (reach - with_record)
        without += rate * (0.0 - without)
        shifts.append(abs(with_record - without))
    pull = reach * (1 - (1 - rate) ** np.arange(1, steps + 1))
    return Erratum(
        number="8",
        severity="U",
        paper="S1",
        where="V-C (variational inference)",
        problem="θ is hidden and carries x' from all earlier steps; comparing one update from a common θ ignores that.",
        example="θ moves a tenth of the way to its target at each of 50 steps, x' moves the target by 0.2 "
        "noise units, "
        "and a sample from N(θ, 1) is released each time. Cost at order 8.",
        printed_label="one-step differences",
        printed=float(steps * gaussian.cost(rate * reach, order)),
        truth_label="closed form: α(α−1)/2 · Σ (0.2 (1 − 0.9^t))²",
        truth=float(order * (order - 1) / 2 * np.sum(pull**2)),
        ours_label="coupled neighbouring runs (H6)",
        ours=float(gaussian.cost(np.array(shifts), order).sum()),
        verdict="under",
        sound_version="a coupled neighbouring run for every witness (H6): `PosteriorVI`.",
        printed_name='`PosteriorVI(accounting="one-step")`, labelled unsound',
    )


def pairwise_distance() -> Erratum:
    old, new, rate, order = 3.0, 2.0, 0.01, 8.0
    lam = order - 1
    near = replace_one.convexity_cost(old - new, order, sampling_rate=rate)
    return Erratum(
        number="9",
        severity="U",
        paper="S0, S1",
        where="experiments",
        problem="The distance between two records' gradients (replace-one) is put into the subsampled formula for "
        "adding or removing one.",
        example="q = 0.01, the old record shifts by 3 noise units, the new one by 2: distance 1. D at order 8.",
        printed_label="add/remove formula at distance 1",
        printed=float(sgm.cost(old - new, order, sampling_rate=rate)) / lam,
        truth_label="quadrature of the pair",
        truth=float(replace_one.vector_cost(old, new, old * new, order, sampling_rate=rate)) / lam,
        ours_label="joint convexity, from the distance alone",
        ours=float(near) / lam,
        verdict="under",
        sound_version="the norm of the record's own clipped gradient with `divergence.sgm.cost`, or "
        "`divergence.replace_one`: `vector_cost` (known pair), `cost` (worst pair, H10), `convexity_cost`.",
        more=(
            (
                "worst pair with those norms (3 and −2)",
                float(replace_one.cost(old, new, order, sampling_rate=rate)) / lam,
            ),
        ),
    )


ERRATA = (
    product_composition,
    adaptive_holder,
    failure_probability,
    student_t,
    basic_composition,
    weak_definition,
    group_privacy,
    hidden_state,
    pairwise_distance,
)
