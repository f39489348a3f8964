"""`PrivateClassifier` and `PrivateRegressor`: linear models under DP that scikit-learn's tools can use.

    GridSearchCV(PrivateClassifier(epsilon=0.2, bounds=(0, 10), ledger=book), {"goal": [...]}, error_score="raise")

Each `fit` is charged to the ledger first; a fit that the budget does not pay for is refused and trains nothing.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.ledger import Ledger
from bayesdp.report import Report, write
from bayesdp.sklearn.bounds import Bounds, Declared, declared
from bayesdp.sklearn.learners import Learned, Wanted, means, planned, probabilities
from bayesdp.sklearn.payment import pay

_SEEDED = "random_state was given: the noise is reproducible, and nothing is private."
_IN_BOUNDS = "Features were clipped to public bounds and scaled to [-1, 1]."
_AS_THEY_ARE = "No bounds were given: features were taken as they are, and nothing was learned about them beforehand."
_CLASSES = {
    True: "The classes were declared.",
    False: "Which classes there are was taken from the data, and is public.",
}


class _PrivateLinear(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What both share; see `PrivateClassifier`."""

    # Fitted.
    n_features_in_: int
    n_iter_: int
    guarantees_: list[Guarantee]
    weights_: Array
    _report: Report
    _bounds: Bounds | None

    def _learn(self, x: Array, y: npt.NDArray[Any], classes: int, told: list[str]) -> None:
        """Plan, pay, train; `told` are sentences on what is public."""
        names = list(self.feature_names_in_) if "feature_names_in_" in vars(self) else None
        self._bounds = None if self.bounds is None else declared("bounds", self.bounds, x.shape[1], names)
        told = [_AS_THEY_ARE if self._bounds is None else _IN_BOUNDS, *told]
        seed = None if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        wanted = Wanted(
            method=self.method,
            classes=classes,
            epsilon=self.epsilon,
            delta=self.delta,
            goal=self.goal,
            max_iter=self.max_iter,
            clip_norm=self.clip_norm,
            members=self.members,
            num_records=self.num_records,
            seed=seed,
        )
        plan = planned(wanted, self._inputs(x).astype(np.float32), y)
        told += pay(self.ledger, type(self).__name__, plan.cost)
        self._keep(plan.fit(), told if seed is None else [_SEEDED, *told])

    def _keep(self, learned: Learned, told: list[str]) -> None:
        self.weights_ = learned.weights
        self.n_iter_ = learned.steps
        self.guarantees_ = [
            dataclasses.replace(one, assumptions=(*one.assumptions, *told)) for one in learned.guarantees
        ]
        self._report = dataclasses.replace(
            learned.report, guarantees=tuple(self.guarantees_), preprocessing=(*learned.report.preprocessing, *told)
        )

    def _inputs(self, x: Array) -> Array:
        return x if self._bounds is None else self._bounds.scaled(x)

    def _checked(self, x: Any) -> Array:
        check_is_fitted(self)
        return self._inputs(validate_data(self, x, dtype=np.float64, reset=False))

    def report(self, path: str | Path) -> Path:
        """Write what the fit promises to whom: one HTML page that opens offline, or JSON for a name that ends so.

        Args:
            path: where to.

        Returns:
            the path.
        """
        check_is_fitted(self)
        return write(self._report, path)


class PrivateClassifier(ClassifierMixin, _PrivateLinear):  # type: ignore[misc]
    """(Multinomial) logistic regression under differential privacy.

    Args:
        method: "sgd", "vi", "sgld" or "posterior-vi" (`sklearn.learners`).
        epsilon: what one fit may cost everybody.
        delta: at this δ.
        bounds: public bounds of the features: (low, high) for all, a pair of arrays, or {column: (low, high)} for data
            frames. Features are clipped to them and scaled to [−1, 1]. None: taken as they are, which is as private and
            learns well from columns of about that size only.
        goal: "accuracy", "typical" or "balanced" (`learn.goals`), for "sgd".
        classes: all classes there may be, declared. None: those of the data, which are then public.
        ledger: a `bayesdp.ledger.Ledger` or the path of one: every fit is charged there first, and refused where its
            budget does not pay. None warns: nobody adds up what several fits cost.
        max_iter: steps; None chooses from public quantities.
        clip_norm: of a record's gradient; None chooses in the same way.
        members: how many training records are drawn as witnesses, for a Bayesian guarantee beside the DP one.
        num_records: N as declared; None: that of the data, which is then public (H18).
        random_state: makes a fit reproducible and **not private**. None: noise from the operating system.

    Attributes: `guarantees_` (a `Guarantee` for each notion), `classes_`, `n_iter_` (noisy steps), `weights_` (draws,
    features + 1, classes) of the scaled features, `n_features_in_`, `feature_names_in_`.

    Bad input gets `InputError`, which is a `ValueError`.

    Examples:
        >>> import numpy as np
        >>> from bayesdp.sklearn import PrivateClassifier
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, (2000, 2))
        >>> y = np.where(x[:, 0] > 0, "yes", "no")
        >>> model = PrivateClassifier(epsilon=1.0, bounds=(-1, 1), ledger="people.ledger").fit(x, y)
        >>> model.guarantees_[0].epsilon <= 1.0
        True
    """

    classes_: npt.NDArray[Any]

    def __init__(
        self,
        method: str = "sgd",
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        bounds: Declared | None = None,
        goal: str = "balanced",
        classes: Any = None,
        ledger: Ledger | str | Path | None = None,
        max_iter: int | None = None,
        clip_norm: float | None = None,
        members: int = 0,
        num_records: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.method, self.epsilon, self.delta = method, epsilon, delta
        self.bounds, self.goal, self.classes, self.ledger = bounds, goal, classes, ledger
        self.max_iter, self.clip_norm, self.members = max_iter, clip_norm, members
        self.num_records, self.random_state = num_records, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # For an ε that protects people a hundred records are too few to learn much from, whoever learns.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Charge the ledger, then train.

        Args:
            X: features, (records, columns): an array or a data frame.
            y: classes, (records,).

        Returns:
            self.
        """
        x, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=False)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels if self.classes is None else np.asarray(self.classes))
        if len(self.classes_) < 2:
            raise errors.refuse("y", len(self.classes_), "to have at least two classes", got="1 class")
        codes = np.searchsorted(self.classes_, labels).clip(0, len(self.classes_) - 1)
        if (self.classes_[codes] != labels).any():
            raise errors.refuse("y", self.classes, "to hold declared classes only", got="another class")
        self._learn(x, codes.astype(np.int32), len(self.classes_), [_CLASSES[self.classes is not None]])
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of each of `classes_`, (records, classes): post-processing, which costs nothing more."""
        x = self._checked(X)
        return probabilities(self.weights_, x)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each record."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[chances.argmax(axis=1)])


class PrivateRegressor(RegressorMixin, _PrivateLinear):  # type: ignore[misc]
    """Linear regression under differential privacy.

    Args:
        target_bounds: public (low, high) of the target, clipped to them and scaled to [−1, 1] for training; predictions
            come in its own units. None: taken as it is.

    The other arguments are those of `PrivateClassifier`.

    Attributes: `guarantees_`, `n_iter_`, `weights_`, `n_features_in_`, `feature_names_in_`, as there.

    Examples:
        >>> import numpy as np
        >>> from bayesdp.sklearn import PrivateRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(0, 10, (2000, 1))
        >>> model = PrivateRegressor(bounds=(0, 10), target_bounds=(0, 100), ledger="people.ledger").fit(x, 7 * x[:, 0])
        >>> model.predict([[5.0]]).shape
        (1,)
    """

    def __init__(
        self,
        method: str = "sgd",
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        bounds: Declared | None = None,
        target_bounds: tuple[float, float] | None = None,
        goal: str = "balanced",
        ledger: Ledger | str | Path | None = None,
        max_iter: int | None = None,
        clip_norm: float | None = None,
        members: int = 0,
        num_records: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.method, self.epsilon, self.delta = method, epsilon, delta
        self.bounds, self.target_bounds, self.goal, self.ledger = bounds, target_bounds, goal, ledger
        self.max_iter, self.clip_norm, self.members = max_iter, clip_norm, members
        self.num_records, self.random_state = num_records, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Charge the ledger, then train.

        Args:
            X: features, (records, columns): an array or a data frame.
            y: numbers, (records,).

        Returns:
            self.
        """
        x, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        ends = self.target_bounds
        self._target = None if ends is None else declared("target_bounds", ends, 1)
        known = target if self._target is None else self._target.scaled(target[:, None])[:, 0]
        told = "The target was taken as it is." if ends is None else "The target was clipped to public bounds."
        self._learn(x, known.astype(np.float32), 0, [told])
        return self

    def predict(self, X: Any) -> Array:
        """The expected target of each record: post-processing, which costs nothing more."""
        x = self._checked(X)
        found = means(self.weights_, x)
        return found if self._target is None else self._target.unscaled(found[:, None])[:, 0]
