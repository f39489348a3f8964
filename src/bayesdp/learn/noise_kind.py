"""What a promise says of how its noise was drawn, and what that takes of δ (H26).

lattice   δ + (1 + e^ε) × draws × distance of a draw from its law: exact sums and rounded Gaussians
float     a label: the proofs are about real numbers, float32 can tell more
"""

from __future__ import annotations

import dataclasses

from bayesdp.guarantee import Guarantee
from bayesdp.learn.prelude import widened
from bayesdp.mechanism.key import NoiseKind

FLOAT = "Sums and noise are float32 numbers, whose last bits can tell more than the proof allows for (H26)."
SAMPLES = "Samples are drawn with float32 normals, whose last bits can tell more than the proof allows for (H26)."
LATTICE = (
    "Sums and noise are whole numbers on a lattice, the noise a Gaussian rounded to it, by ChaCha20; {delta:.2g} of δ "
    "is kept for its distance from that law (H26)."
)


TOO_LITTLE = (
    "So little noise hides next to nothing: the noise is taken to be drawn exactly by its law, for at this ε its "
    "distance from that law would take all of δ (H26)."
)


def labelled(promise: Guarantee, words: str) -> Guarantee:
    """The promise with one more sentence of what it assumes."""
    return dataclasses.replace(promise, assumptions=(*promise.assumptions, words))


def with_noise(promise: Guarantee, kind: NoiseKind, delta: float) -> Guarantee:
    """The promise with how its noise was drawn; on a lattice `delta` is added to its δ.

    What is rounded, and drawn almost by its law, keeps the weak form.
    """
    if kind == "float":
        return labelled(promise, FLOAT)
    if delta == 0:
        return labelled(promise, TOO_LITTLE)
    return dataclasses.replace(
        promise.postprocessed(),
        delta=min(1.0, promise.delta + delta),
        delta_split={**promise.delta_split, "noise": delta},
        assumptions=(*promise.assumptions, LATTICE.format(delta=delta)),
        attacker=None if promise.attacker is None else widened(promise.attacker, delta),
    )
