"""scikit-learn's `check_estimator` of both estimators with their real learners: every check is printed that fails."""

from __future__ import annotations

import sys
import warnings

from sklearn.utils.estimator_checks import check_estimator

from bayesdp.sklearn import PrivateClassifier, PrivateRegressor


def main() -> int:
    """How many checks failed."""
    failed = 0
    for kind in (PrivateClassifier, PrivateRegressor):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = check_estimator(kind(max_iter=20), on_fail=None)
        wrong = [one for one in found if one["status"] == "failed"]
        failed += len(wrong)
        print(f"{kind.__name__}: {sum(one['status'] == 'passed' for one in found)} of {len(found)} passed", flush=True)
        for one in wrong:
            print(f"  {one['check_name']}: {one['exception']!r}"[:300])
    return failed


if __name__ == "__main__":
    sys.exit(main() > 0)
