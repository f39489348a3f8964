"""Which intervals are not to be believed, seen in what was released (nothing more is paid for).

curvature     most of what was released of it is noise, or most of a variance comes from not knowing it
clipping      scores spread much less, or much more, than they bend: they were cut, or the model is not right
convergence   the last step was far from where it ended: linear there does not mean linear on the way
"""

from __future__ import annotations

import numpy as np

from bayesdp.learn.second_order.reading import Read

CURVATURE = "the curvature that was released is mostly noise"
CLIPPING = "clipping took much of what records say of it"
MODEL = "records spread more than the model says"
CONVERGENCE = "the steps had not arrived"

_WEIGHT, _UNSURE = 0.35, 0.4
_CUT, _WIDE = 0.3, 3.0
_FAR = 2.5


def doubts(read: Read) -> tuple[str, ...]:
    """For each parameter why its interval is not to be believed, in words; empty where nothing speaks against it."""
    reasons = (
        (CURVATURE, (read.unsure > _UNSURE) | (read.weights[0] < _WEIGHT)),
        (CLIPPING, read.information < _CUT),
        (MODEL, read.information > _WIDE),
        (CONVERGENCE, ~(read.distance <= _FAR)),
    )
    return tuple(
        "; ".join(words for words, holds in reasons if np.broadcast_to(holds, read.mean.shape)[place])
        for place in range(len(read.mean))
    )
