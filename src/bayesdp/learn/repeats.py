"""Several runs of one plan as one compiled program: for experiments that repeat, and for comparing seeds.

The runs differ in their noise, batches and draws alone. Each has its own tallies and its guarantee speaks for that run
by itself: whoever publishes several of them pays for each.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import InputError
from bayesdp.learn.program import compiled
from bayesdp.learn.training import Training

TOGETHER = "{count} runs were made on the same data. This promise is for one of them; publishing more costs more."


def run_together(trainings: list[Training]) -> None:
    """Run trainings that were made with `Training.again`, none of them begun, to their end."""
    first = trainings[0]
    if first.measures_everyone:
        raise InputError(
            "Expected a plan without filter or refresh for several runs at once: their records' limits differ."
        )
    program = compiled(*first.program, together=True)
    begin = tuple(_stacked([getattr(one, part) for one in trainings]) for part in ("params", "state", "key"))
    # On every device from the start, as the program leaves them: else the second interval would compile anew.
    params, state, keys = jax.device_put(begin, first._everywhere)
    while first.done < first.stop_at:
        charged = [one.charge_next() for one in trainings]
        stop, settings = charged[0]
        params, state, raw, distances = program(params, state, keys, *settings)
        raw, distances = np.asarray(raw), np.asarray(distances)
        for i, one in enumerate(trainings):
            one.params, one.state = (jax.tree.map(lambda leaf, i=i: leaf[i], tree) for tree in (params, state))
            one.account(stop, raw[i], distances[i], None)


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
