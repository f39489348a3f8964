"""From checkpoints and a record alone: how far the record would have moved the update of each (E3; S3 section 4).

    |clip(g(θ_k, x))| / C    for checkpoints θ_k of one or several runs   →   `side_by_side.of_run`

Nothing else of the data is needed for the sum rule. What happened between two checkpoints is not known: sound bounds
charge the clip norm there, the paper lets a checkpoint stand for the steps up to the next (ERR 22d).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from bayesdp import errors
from bayesdp.learn.study.units import Distances
from bayesdp.mechanism.clipping import clip_rule
from bayesdp.mechanism.devices import record_mesh, spread
from bayesdp.mechanism.people_books import gradients_of
from bayesdp.mechanism.step import PrivateStep


def distances(loss: Any, runs: Sequence[Sequence[Any]], records: Any, clip_norm: Any) -> Distances:
    """|clip(g)| in units of the sensitivity, (runs, checkpoints, records), for checkpoints `runs[i][k]` of parameters.

    `loss`, `records` and `clip_norm` as for `SGD`. Bad input: no checkpoint, runs of different lengths, no clip norm.
    """
    lengths = {len(run) for run in runs}
    if len(lengths) != 1 or 0 in lengths:
        raise errors.refuse(
            "runs", sorted(lengths), "with equally many checkpoints, at least one", got=f"{sorted(lengths)}"
        )
    if clip_norm is None:
        raise errors.refuse("clip_norm", clip_norm, "to be given", "Without clipping there is no worst case.")
    rule, mesh = clip_rule(clip_norm), record_mesh()
    step, held = PrivateStep(gradients_of(loss), 1.0, 1.0, mesh=mesh), spread(records, mesh)
    norms = jax.jit(lambda params: step.witness_norms(params, held, rule).clipped / rule.sensitivity)
    return np.stack([np.stack([np.asarray(norms(params)) for params in run]) for run in runs])
