"""scikit-learn: private estimators that work in pipelines and searches, each fit charged to a ledger.

from bayesdp.sklearn import PrivateClassifier

model = PrivateClassifier(epsilon=1.0, bounds=(0, 10), ledger="people.ledger").fit(x, y)
model.predict(x_new), model.guarantees_, model.report("page.html")
"""

from typing import TYPE_CHECKING

from bayesdp.lazy import lazy

if TYPE_CHECKING:
    from bayesdp.sklearn.estimators import PrivateClassifier, PrivateRegressor
    from bayesdp.sklearn.payment import PrivacyWarning
    from bayesdp.sklearn.preprocessing import PrivateImputer, PrivateScaler

__all__ = ["PrivacyWarning", "PrivateClassifier", "PrivateImputer", "PrivateRegressor", "PrivateScaler"]

_HOMES = {
    "PrivacyWarning": "bayesdp.sklearn.payment",
    "PrivateClassifier": "bayesdp.sklearn.estimators",
    "PrivateImputer": "bayesdp.sklearn.preprocessing",
    "PrivateRegressor": "bayesdp.sklearn.estimators",
    "PrivateScaler": "bayesdp.sklearn.preprocessing",
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
