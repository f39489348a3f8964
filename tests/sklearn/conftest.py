"""A learner that is quick: least squares in place of noisy steps, where a test is about scikit-learn's protocol."""

from __future__ import annotations

import numpy as np
import pytest

from bayesdp.accountant import WorstCaseAccountant
from bayesdp.report import Report, Settings
from bayesdp.sklearn import estimators
from bayesdp.sklearn.learners import Learned, Planned

STEPS = ((2.0, 0.1, 10),)


@pytest.fixture
def trained(monkeypatch):
    """The wishes that were trained, in order."""
    done = []
    account = WorstCaseAccountant(engine="rdp")
    account.step(noise_multiplier=2.0, sampling_rate=0.1, steps=10)
    promised = account.guarantee(1e-5)

    def planned(wanted, x, y):
        def fit():
            done.append(wanted)
            design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
            target = np.eye(wanted.classes)[y] if wanted.classes else y[:, None]
            weights = np.linalg.lstsq(design, target.astype(np.float64), rcond=None)[0]
            report = Report(
                title="quick", created="2026-01-01", settings=Settings(kind="quick"), delta=1e-5, guarantees=(promised,)
            )
            return Learned(weights[None], (promised,), report, 10)

        return Planned({"steps": STEPS}, 10, fit)

    monkeypatch.setattr(estimators, "planned", planned)
    return done
