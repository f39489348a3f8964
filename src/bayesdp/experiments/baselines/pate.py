"""PATE with Confident-GNMax (Papernot et al. 2018), a baseline of S4: teachers vote, noise answers, a student learns.

    1. records are dealt to teachers, each by a coin of its own; every teacher learns alone and votes on public inputs
    2. check:  queries with  max_j n_j + N(0, σ₁²) ≥ threshold  pass
    3. label:  the first `answers` of them get  argmax_j (n_j + N(0, σ₂²))
    4. a student learns from the public inputs and these labels: post-processing

One record changes one teacher's votes. For everybody ("dp"): `queries` Gaussian steps of shift 1/σ₁ and `answers` of
shift √2/σ₂, in this fixed order, whether so many were needed or not. For the data at hand ("per-instance"): the smaller
costs that `divergence.noisy_max` finds where teachers agree, along the answers given (ex-post, H3). That number is a
function of the votes, so it is private itself: Papernot et al. publish it with noise of its smooth sensitivity, which
is not done here. Quote the "dp" number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant import InstanceAccountant, WorstCaseAccountant
from bayesdp.accountant.calibrate import calibrate_noise
from bayesdp.accountant.worst_case import Engine
from bayesdp.compose.orders import planned
from bayesdp.divergence import noisy_max
from bayesdp.errors import Array
from bayesdp.experiments.baselines.base import Baseline
from bayesdp.guarantee import Guarantee
from bayesdp.learn.noise_kind import FLOAT
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.mechanism.noise import normal
from bayesdp.report import Settings

Labels = npt.NDArray[np.int64]
Predict = Callable[[Any], Any]
Learn = Callable[[Any, Any], Predict]
"""`learn(inputs, labels)` returns a function from inputs to whole-number labels."""

_DEALT = "Each record was dealt to a teacher by a coin of its own, so that it changes the votes of one teacher only."
_SECRET = (
    "Computed from the teachers' votes, so the number is private itself: publishing it would need noise of its smooth "
    "sensitivity (Papernot et al. 2018), which was not added."
)
_VOTES = "Costs of these votes against those of every neighbouring data set (Papernot et al. 2018, Theorem 6)."


def linear(inputs: Any, labels: Any) -> Predict:
    """A logistic regression; the only label where there is one, and 0 where there is none."""
    from sklearn.linear_model import LogisticRegression

    known = np.unique(labels)
    if len(known) < 2:
        only = int(known[0]) if len(known) else 0
        return lambda asked: np.full(len(asked), only)
    fitted = LogisticRegression(max_iter=500).fit(inputs, labels)
    return lambda asked: fitted.predict(asked)


@dataclass(frozen=True, eq=False, kw_only=True)
class Taught(Baseline):
    """The released labels (`labels[i]` of query `answered[i]`) and the student who learnt from them."""

    answered: Labels
    labels: Labels
    student: Predict


@dataclass(frozen=True, kw_only=True)
class PATE:
    """What will be done, all of it public.

    `teachers`, `classes`; `queries` public inputs are checked and at most `answers` labelled; a query passes at
    `threshold` votes; `check_noise` σ₁ and `label_noise` σ₂ in votes. Bad input gets `InputError` naming the field.
    """

    teachers: int
    classes: int
    queries: int
    answers: int
    threshold: float
    check_noise: float
    label_noise: float
    delta: float = 1e-5
    engine: Engine = "pld"

    def __post_init__(self) -> None:
        errors.whole("teachers", self.teachers, least=2)
        errors.whole("classes", self.classes, least=2)
        errors.whole("queries", self.queries, least=1)
        errors.whole("answers", self.answers, least=1, most=self.queries)
        errors.number("threshold", self.threshold, least=0)
        errors.noise("check_noise", self.check_noise)
        errors.noise("label_noise", self.label_noise)
        errors.probability("delta", self.delta)

    def accountant(self) -> WorstCaseAccountant:
        """All checks, then as many labels as there may be."""
        result = WorstCaseAccountant(engine=self.engine)
        result.step(noise_multiplier=self.check_noise, steps=self.queries)
        result.step(noise_multiplier=self.label_noise / noisy_max.LABEL_SHIFT, steps=self.answers)
        return result

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of all answers, whatever the data."""
        plain = self.accountant().guarantee(self.delta)
        return dataclasses.replace(plain, assumptions=(*plain.assumptions[:1], _DEALT, *plain.assumptions[2:], FLOAT))

    def calibrate(self, epsilon: float) -> PATE:
        """The plan with both noises scaled to the least with which the DP ε is at most `epsilon`."""

        def scaled(factor: float) -> PATE:
            check, label = factor * self.check_noise, factor * self.label_noise
            return dataclasses.replace(self, check_noise=check, label_noise=label)

        return scaled(calibrate_noise(lambda factor: scaled(factor).accountant(), epsilon, self.delta))

    def fit(
        self,
        data: tuple[Any, Any],
        public: Any,
        *,
        learn: Learn = linear,
        student: Learn = linear,
        seed: int | None = None,
    ) -> Taught:
        """Teach on `data` = (inputs, labels), answer about `public` inputs, and let the student learn.

        `learn` and `student`: see `Learn`. A `seed` makes it reproducible, **not private**. Bad input: fewer public
        inputs than queries, labels outside of 0 … classes − 1, or predictions that are not such labels.
        """
        inputs, labels = np.asarray(data[0]), self._labels("labels", data[1], len(data[0]))
        asked = np.asarray(public)[: self.queries]
        if len(asked) < self.queries:
            raise errors.refuse(
                "public", len(asked), f"with at least queries={self.queries} inputs", got=f"{len(asked)}"
            )
        deal, check, label = jax.random.split(fresh_key() if seed is None else seeded_key(seed), 3)
        votes = self._votes(inputs, labels, asked, learn, deal)
        noisy_most = votes.max(axis=1) + self.check_noise * _noise(check, (self.queries,))
        answered = np.flatnonzero(noisy_most >= self.threshold)[: self.answers]
        noisy = votes[answered] + self.label_noise * _noise(label, (self.answers, self.classes))[: len(answered)]
        given = np.argmax(noisy, axis=1)
        return Taught(
            settings=self._settings(len(inputs), len(answered)),
            guarantees=[self.guarantee(), self._for_these_votes(votes, answered)],
            delta=self.delta,
            seeded=seed is not None,
            answered=answered,
            labels=given,
            student=student(asked[answered], given),
        )

    def _votes(self, inputs: Any, labels: Labels, asked: Any, learn: Learn, key: jax.Array) -> Array:
        teacher = np.asarray(jax.random.randint(key, (len(inputs),), 0, self.teachers))
        votes = np.zeros((self.queries, self.classes))
        for one in range(self.teachers):
            mine = teacher == one
            said = self._labels("a teacher's predictions", learn(inputs[mine], labels[mine])(asked), self.queries)
            votes[np.arange(self.queries), said] += 1
        return votes

    def _labels(self, name: str, values: Any, count: int) -> Labels:
        found = errors.array(name, values, least=0, most=self.classes - 1, ndim=1)
        if len(found) != count or (found != np.floor(found)).any():
            raise errors.refuse(name, None, f"to be {count} whole numbers below classes={self.classes}", got="")
        return found.astype(np.int64)

    def _for_these_votes(self, votes: Array, answered: Labels) -> Guarantee:
        noises = [self.check_noise, self.label_noise / noisy_max.LABEL_SHIFT]
        orders, weights = planned(noises, 1.0, [self.queries, self.answers], self.delta)
        tally = InstanceAccountant(records=1, orders=orders, weights=weights, direction="remove")
        tally.step(cost=noisy_max.check_cost_at(votes, self.threshold, self.check_noise, orders).sum(0)[None])
        if len(answered):
            tally.step(cost=noisy_max.label_cost_at(votes[answered], self.label_noise, orders).sum(0)[None])
        plain = tally.guarantee(self.delta)
        return dataclasses.replace(plain, assumptions=(plain.assumptions[0], _DEALT, _VOTES, _SECRET, FLOAT))

    def _settings(self, records: int, answered: int) -> Settings:
        return Settings(
            kind="PATE, Confident-GNMax",
            records=records,
            conversion=self.engine,
            other={
                "teachers": self.teachers,
                "queries": self.queries,
                "answers at most": self.answers,
                "answers given": answered,
                "threshold": self.threshold,
                "noise of checks": self.check_noise,
                "noise of labels": self.label_noise,
            },
        )


def _noise(key: jax.Array, shape: tuple[int, ...]) -> Array:
    return np.asarray(normal(key, shape), np.float64)
