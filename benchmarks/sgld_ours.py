"""Worker: bayesdp's samplers on a logistic regression of the size of Adult."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpyro
from numpyro import distributions as dist

import bayesdp as bd
from sgld_problem import BATCH, COLUMNS, RECORDS, STEP_SIZE, STEPS, records
from stopwatch import peak, serve


def logistic(x: jax.Array, y: jax.Array) -> None:
    """The model, as a statistician writes it."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([COLUMNS]).to_event(1))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def ways() -> dict[str, Callable[[], object]]:
    """Name → 2,000 steps of it; every iterate is a sample."""
    data = records()
    common: dict[str, Any] = {"sampling_rate": BATCH / RECORDS, "steps": STEPS, "clip_norm": 1.0, "num_warmup": 0}
    common |= {"thin": 1, "delta": 1e-5}
    langevin = {"step_size": STEP_SIZE, **common}
    momentum = {"step_size": STEP_SIZE**0.5, "friction": 100.0, **common}
    plans = {
        "one": bd.SGLD(**langevin),
        "four": bd.SGLD(**langevin, num_chains=4),
        "psgld": bd.PSGLD(**langevin),
        "sghmc": bd.SGHMC(**momentum),
        "sgnht": bd.SGNHT(**momentum),
    }
    return {name: lambda plan=plan: plan.fit(logistic, data, seed=0).draws for name, plan in plans.items()}  # type: ignore[misc]


if __name__ == "__main__":
    serve(ways(), peak())
