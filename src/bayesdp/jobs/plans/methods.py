"""By which method a posterior is fitted: what suits a model, and which words go with which.

newton         a few noisy sums, which the posterior reads as data (`bd.Newton`)
vi             many noisy gradients of an ELBO (`bd.VI`)
posterior-vi   no noise: samples of a posterior that stays secret (`bd.PosteriorVI`)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from bayesdp import errors
from bayesdp.learn.models.density import Probabilistic

Method = Literal["newton", "vi", "posterior-vi"]
METHODS: tuple[Method, ...] = ("newton", "vi", "posterior-vi")

MOST_OF_NEWTON = 150
"""Parameters up to which "newton" is taken unless told: a record's curvature has d²/2 numbers, and as much noise."""

_OF_VI = ("guide", "variant", "noise_aware", "learning_rate", "clip_norm", "epochs", "batch_size", "sampling_rate")
PACED = (*_OF_VI, "steps")
"""What is said of the steps of "vi": who says it, wants those."""

_NOISY = (
    "variant",
    "noise_aware",
    "noise_multiplier",
    "noise_kind",
    "clip_norm",
    "learning_rate",
    "non_private_too",
    "adjacency",
    "engine",
)
_SAMPLED = ("samples", "radius", "scales")
_SECRET = "The posterior that samples come from has no noise: it is the one that stays secret."


def suited(model: str, reading: Probabilistic, *, paced: bool) -> Method:
    """The method where none was named; `paced`: something was said of the steps of "vi".

    "newton" for yes or no, which records are weighed for without bias, and for counts, up to 150 parameters. Models
    with a scale, as of a linear regression's noise, have steps that may not arrive: they are marked then, not right.
    """
    known = model == "poisson" or (model != "hierarchical" and reading.binary)
    return "newton" if known and not paced and reading.dim <= MOST_OF_NEWTON else "vi"


def check(method: Method | None, values: Mapping[str, Any], unset: Mapping[str, Any]) -> None:
    """Refuse fields of a job, `values` beside what they are where nothing is said, that are not for its method."""
    noisy = method != "posterior-vi"
    foreign = _SAMPLED if noisy else _NOISY
    if method == "newton" and values["steps"] is None:  # a settled job has its own
        foreign = (*foreign, *_OF_VI)
    for name in foreign:
        if values[name] != unset[name]:
            why = _SECRET if name == "non_private_too" else ""
            raise errors.refuse(
                name, values[name], f"to be left out with {errors.Argument('method', method or 'vi')}", why
            )
    if noisy and values["epsilon"] is None and values["noise_multiplier"] is None:
        raise errors.unmet(
            "epsilon",
            None,
            f"{errors.named('epsilon')} (to calibrate the noise) or {errors.named('noise_multiplier')}",
            "neither",
        )
    if not noisy and values["epsilon"] is not None and (values["radius"] is None or values["scales"] is None):
        raise errors.refuse(
            "epsilon",
            values["epsilon"],
            f"to come with {errors.named('radius')} and {errors.named('scales')} for "
            f"{errors.Argument('method', method)}",
            "Without them one record can move the posterior by any amount, and no DP ε can be kept.",
        )
