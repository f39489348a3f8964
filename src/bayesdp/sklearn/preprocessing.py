"""A scaler and an imputer with public bounds: free where they look at nothing, paid where they do.

    release   (Σ_i u_i, Σ_i v_i) + N(0, z² 2d I),   |u_ij|, |v_ij| <= 1: one record moves it by at most √(2d)

u are columns on [−1, 1]; v their squares (scaler) or whether a value is there (imputer). One release with noise
multiplier z for (ε, δ), N public (H18).
"""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesdp import errors
from bayesdp.accountant.calibrate import noise_for
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.data.preparation.secret_normals import secret_normals
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.ledger import Ledger
from bayesdp.sklearn.bounds import Bounds, Declared, declared
from bayesdp.sklearn.payment import pay

_FLOAT = "Sums and noise are floating-point numbers, whose last bits can tell more than the proof allows for (H26)."
_COUNT = "The number of records was taken from the data and is public (H18)."
_SEEDED = "random_state was given: the noise is reproducible, and nothing is private."
_LEAST_SPREAD = 0.05
"""A standard deviation on [−1, 1] that noise hides is taken for this."""


class _Prepared(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """What both share; see `PrivateScaler`."""

    guarantees_: list[Guarantee]
    _bounds: Bounds

    def __init__(
        self,
        bounds: Declared | None = None,
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.bounds, self.epsilon, self.delta = bounds, epsilon, delta
        self.ledger, self.random_state = ledger, random_state

    def _begin(self, X: Any, **checks: Any) -> Array:
        """Columns on [−1, 1]."""
        x = validate_data(self, X, dtype=np.float64, **checks)
        if self.bounds is None:
            hint = "Read from the data they would give its most extreme records away."
            raise errors.refuse("bounds", None, "to be declared", hint, got="none")
        names = list(self.feature_names_in_) if "feature_names_in_" in vars(self) else None
        self._bounds = declared("bounds", self.bounds, x.shape[1], names)
        self.guarantees_ = []
        return self._bounds.scaled(x)

    def _released(self, u: Array, v: Array) -> tuple[Array, Array]:
        """Both sums with noise, charged first."""
        z = noise_for(errors.number("epsilon", self.epsilon, above=0), self.delta, sampling_rate=1.0, steps=1)
        told = pay(self.ledger, type(self).__name__, {"steps": ((z, 1.0, 1),)})
        account, seed = WorstCaseAccountant(), self.random_state
        account.step(noise_multiplier=z)
        promised = account.guarantee(self.delta)
        said = (*promised.assumptions, _COUNT, _FLOAT, *told, *(() if seed is None else (_SEEDED,)))
        self.guarantees_ = [Guarantee.from_dict({**promised.to_dict(), "assumptions": list(said)})]
        draw = secrets.randbits(256) if seed is None else int(check_random_state(seed).randint(2**31 - 1))
        sums = np.concatenate([u.sum(axis=0), v.sum(axis=0)])
        noisy = sums + z * math.sqrt(len(sums)) * secret_normals(draw, type(self).__name__, len(sums))
        first, second = np.split(noisy, 2)
        return first, second

    def _checked(self, X: Any, **checks: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False, **checks))


class PrivateScaler(_Prepared):
    """Columns on a common scale, from public bounds.

    Args:
        bounds: public: (low, high), a pair of arrays, or {column: (low, high)} for data frames; what lies outside is
            moved to the nearer end.
        epsilon: None maps [low, high] to [−1, 1], looks at nothing and costs nothing. A number pays for noisy means and
            standard deviations, by which columns are standardised.
        delta, ledger, random_state: as for `PrivateClassifier`.

    Attributes: `guarantees_` (empty where nothing was looked at), `mean_`, `scale_` in units of the columns.

    Examples:
        >>> from bayesdp.sklearn import PrivateScaler
        >>> PrivateScaler(bounds=(0, 10)).fit_transform([[0.0], [5.0], [20.0]]).ravel().tolist()
        [-1.0, 0.0, 1.0]
    """

    mean_: Array
    scale_: Array

    def fit(self, X: Any, y: Any = None) -> Self:
        """Look at the columns, where that is paid for.

        Args:
            X: features, (records, columns): an array or a data frame.
            y: ignored.

        Returns:
            self.
        """
        del y
        u = self._begin(X)
        mean, spread = np.zeros(u.shape[1]), np.ones(u.shape[1])
        if self.epsilon is not None:
            sums, squares = self._released(u, u**2)
            mean = np.clip(sums / len(u), -1, 1)
            spread = np.sqrt(np.clip(squares / len(u) - mean**2, _LEAST_SPREAD**2, 1))
        self.mean_ = self._bounds.unscaled(mean)
        self.scale_ = spread * (self._bounds.high - self._bounds.low) / 2
        return self

    def transform(self, X: Any) -> Array:
        """Columns clipped to the bounds, less `mean_`, in units of `scale_`."""
        x = self._checked(X)
        return np.asarray((np.clip(x, self._bounds.low, self._bounds.high) - self.mean_) / self.scale_)


class PrivateImputer(_Prepared):
    """Missing values (NaN) filled in, from public bounds.

    Args:
        bounds: public, as for `PrivateScaler`.
        epsilon: None fills in the middle of the bounds, looks at nothing and costs nothing. A number pays for the noisy
            mean of what is there.
        delta, ledger, random_state: as for `PrivateClassifier`.

    Attributes: `guarantees_`, `statistics_` (what is filled in, by column).

    Examples:
        >>> from bayesdp.sklearn import PrivateImputer
        >>> PrivateImputer(bounds=(0, 10)).fit_transform([[float("nan")], [2.0]]).ravel().tolist()
        [5.0, 2.0]
    """

    statistics_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Look at the columns, where that is paid for.

        Args:
            X: features, (records, columns), with NaN where a value is missing.
            y: ignored.

        Returns:
            self.
        """
        del y
        u = self._begin(X, ensure_all_finite="allow-nan")
        filled = np.zeros(u.shape[1])
        if self.epsilon is not None:
            there = ~np.isnan(u)
            sums, counts = self._released(np.where(there, u, 0.0), there.astype(np.float64))
            filled = np.clip(sums / np.maximum(counts, 1), -1, 1)
        self.statistics_ = self._bounds.unscaled(filled)
        return self

    def transform(self, X: Any) -> Array:
        """What is there as it is, and `statistics_` where nothing is."""
        x = self._checked(X, ensure_all_finite="allow-nan")
        return np.where(np.isnan(x), self.statistics_, x)
