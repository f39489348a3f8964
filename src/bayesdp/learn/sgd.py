"""Private SGD: a frozen description → calibrate → fit → Run (SPEC B13, E2, H1, H5; papers S1, S3).

    θ ← optimiser(θ, g̃),    g̃ = (Σ_{x in batch} clip(g_x; C_t) + N(0, s_t² I)) / (q N),    batch ~ Poisson(q)

While it trains, three tallies are kept: what the run costs everybody (DP), people like those in the data (from
witnesses outside and inside of the data), and each watched record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import optax

from bayesdp import errors
from bayesdp.learn.filter import Filter
from bayesdp.learn.iterates import Iterates
from bayesdp.learn.plan import Plan
from bayesdp.learn.run import Run
from bayesdp.learn.training import Training
from bayesdp.mechanism.update_rule import Sum

Progress = Callable[[Run], None]
Evaluate = Callable[[Any], dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class SGD(Plan):
    """What will be done, all of it public: a `Plan`, and

    Args:
        optimizer: any optax optimiser, with any learning-rate schedule.
        subset_fraction: share of the weights that a step may move, drawn anew each time (S1).
        refresh: steps from one measurement of all records to the next; in between each is clipped at what was measured
            (`learn.everyone`). None measures nobody, unless a filter or `watch="everyone"` asks for it: then 1.
        filter: a `Filter`, a budget that every record has of its own: the DP entry is then at most its ε (H4).

    Bad input gets `InputError` naming the field.
    """

    kind: ClassVar[str] = "private SGD"

    optimizer: optax.GradientTransformation
    subset_fraction: float | None = None
    refresh: int | None = None
    filter: Filter | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subset_fraction is not None:
            errors.number("subset_fraction", self.subset_fraction, above=0, most=1)
        if self.refresh is not None:
            errors.whole("refresh", self.refresh, least=1)
        if self.filter is not None:
            self.filter.check(self)
            if self.epsilon_budget is not None:
                raise errors.refuse("epsilon_budget", self.epsilon_budget, "to be left out with a filter")
        if (self.refresh is not None or self.filter is not None) and not isinstance(self.update, Sum):
            raise errors.refuse("update", self.update, "to be Sum() where records have limits of their own")

    @property
    def facts(self) -> dict[str, str | float | bool]:
        """What else a report should say of the plan."""
        found: dict[str, str | float | bool] = {}
        if self.filter is not None:
            found["filter"] = (
                f"a record leaves once its own steps add up to DP ε {self.filter.epsilon:g}; at the clip norm after "
                f"{self.filter.paid(self):.0f} steps"
            )
        if self.refresh is not None:
            found["records measured every"] = f"{self.refresh} steps, and clipped at what was measured in between"
        return super().facts | found

    def fit(
        self,
        loss: Any,
        params: Any,
        data: Any,
        *,
        audit: Any = None,
        members: int = 2000,
        watch: Any = None,
        seed: int | None = None,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
        folder: str | Path | None = None,
        keep_iterates: int | None = None,
    ) -> Run:
        """Train `params` on `data` and tally what that costs.

        Args:
            loss: `loss(params, example)` of **one** record; a `mechanism.bookkeeping.ModelLoss` takes the fast path.
            params: a tree of float arrays.
            data: a tree of arrays with the records along the first axis, such as `(x, y)`.
            audit: records of the same distribution that are never trained on: outsiders (H5).
            members: how many training records are drawn before the run as witnesses; 0 for none.
            watch: records, members or not, whose own guarantee is wanted; "everyone" for all of `data`.
            seed: makes the run reproducible and **not private**; the noise comes from the operating system otherwise.
            evaluate: `evaluate(params)` → numbers to report at every look. Keep it to public data.
            progress: called with the run so far at every look.
            folder: keep a checkpoint there, to `resume` from. It holds the key of the noise until training is done.
            keep_iterates: keep the parameters before every so-many-th step in `folder`, so that any record's own
                guarantee can be asked for later.

        Returns a `Run`: `params`, `guarantees`, `report`, `save`.
        """
        training = Training(self, loss, params, data, audit=audit, members=members, watch=watch, seed=seed)
        return training.run(evaluate=evaluate, progress=progress, folder=folder, keep_iterates=keep_iterates)

    def resume(
        self,
        folder: str | Path,
        loss: Any,
        params: Any,
        data: Any,
        *,
        audit: Any = None,
        watch: Any = None,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Go on from the checkpoint in `folder`, with the same plan, loss, data, audit and watch as before.

        Guarantee: the result is the one that an uninterrupted run gives, bit for bit on the same machine: parameters,
        optimiser, key and tallies come from one file. A checkpoint of another plan or other data is refused.
        """
        training = Training.resumed(self, folder, loss, params, data, audit=audit, watch=watch)
        kept = Iterates.of(folder)
        every = None if kept is None else kept.every
        return training.run(evaluate=evaluate, progress=progress, folder=folder, keep_iterates=every)
