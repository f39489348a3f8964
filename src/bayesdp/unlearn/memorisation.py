"""What a guarantee says about memorisation and membership (attackers B12; paper S3 §2 and §5.4; Feldman 2020).

    memorisation        Pr_{A(D)}[the model gives x its label] − Pr_{A(D without x)}[…]
    membership          the largest Pr_{A(D)}[S] − Pr_{A(D without x)}[S] over tests S: total variation

Both are differences of the probabilities of one event, so with P ≤ e^ε Q + δ for events, both ways,

    P − Q ≤ (e^ε − 1 + 2δ)/(e^ε + 1);       one way only:  1 − (1−δ) e^{−ε}.

*Proof.* P ≤ e^ε Q + δ, and for the complement, the other way round, 1 − Q ≤ e^ε (1 − P) + δ. So P ≤ min(e^ε Q + δ,
1 − e^{−ε}(1 − Q − δ)), and P − Q is largest where the two meet. With one of them alone it is so at P = 1 or Q = 0. ∎

They are averages over runs. An ex-post ε speaks for the run that happened and bounds neither: there the likelihood
ratio of the model that came out is at most e^ε but with probability δ: see `Guarantee.attacker_success`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayesdp import convert, errors
from bayesdp.guarantee import Guarantee
from bayesdp.rounding import up


def membership_advantage(guarantee: Guarantee) -> float:
    """The largest advantage of any test of "was the record there?": hits minus false alarms (B12).

    Bad input: an ex-post guarantee, or one for a share of people, which names no record.
    """
    _check(guarantee)
    if guarantee.orientation == "both":
        return convert.advantage(guarantee.epsilon, guarantee.delta)
    return min(1.0, 1 - (1 - guarantee.delta) * math.exp(-guarantee.epsilon))


def memorisation(guarantee: Guarantee, without: float | None = None) -> float:
    """The most that a record's presence adds to the chance that the model gives it its own label.

    `without` is that chance for models trained without the record, where it is known (from other runs, say): then the
    bound is tighter. Bad input: see `membership_advantage`; `without` outside [0, 1].
    """
    if without is None:
        return membership_advantage(guarantee)
    _check(guarantee)
    chance = errors.number("without", without, least=0, most=1)
    epsilon, delta = guarantee.epsilon, guarantee.delta
    limits = [1.0]
    if guarantee.orientation != "absent" and math.isfinite(epsilon):
        limits.append(chance * math.exp(min(epsilon, 700.0)) + delta)
    if guarantee.orientation != "present":
        limits.append(1 - math.exp(-epsilon) * max(0.0, 1 - chance - delta))
    return max(0.0, min(limits) - chance)


@dataclass(frozen=True)
class Exposure:
    """What follows from a guarantee for one record, in numbers and `words`; `sensitive` as the guarantee is."""

    advantage: float
    success: float
    memorisation: float
    sensitive: bool
    words: str


def exposure(guarantee: Guarantee) -> Exposure:
    """Membership advantage, an undecided attacker's rate of right guesses, and memorisation. Bad input: as above."""
    gain = membership_advantage(guarantee)
    success = (1 + gain) / 2
    sure = f" With confidence {1 - guarantee.failure:g}." if guarantee.failure else ""
    words = (
        "Whoever sees the model and starts undecided is right about the record's presence at most "
        f"{up(100 * success, 3)} % of the time (advantage {up(gain, 3)}); its presence raises the chance of any answer "
        f"of the model, its own label included, by at most {up(gain, 3)} (from {guarantee.label} = "
        f"{up(guarantee.epsilon)} at δ = {up(guarantee.delta)})."
    )
    return Exposure(gain, success, gain, guarantee.sensitive, words + sure)


def _check(guarantee: Guarantee) -> None:
    if guarantee.notion == "bdp":
        raise errors.unmet(
            "guarantee",
            guarantee.notion,
            "a guarantee for everybody or for one record",
            "notion='bdp', which names no record",
        )
    if guarantee.ex_post:
        raise errors.unmet(
            "guarantee",
            guarantee.ex_post,
            "an a-priori guarantee",
            "ex_post=True: memorisation and membership advantage are averages over runs, and an ex-post ε speaks for "
            "the run that happened",
            "Use the DP guarantee, or attacker_success().",
        )
