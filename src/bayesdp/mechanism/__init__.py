"""Sampling, clipping and noise in JAX: the only place that draws private randomness.

    key → sampling → clipping (book-keeping of layers, or of any loss by taps) → sum over devices → noise → step

`PrivateStep` puts them together; every part can be used alone. Accounting is elsewhere and does not import this.
"""

from bayesdp.mechanism.bookkeeping import BookKeeping, ModelLoss
from bayesdp.mechanism.clipping import Automatic, ClipRule, Flat, Norms, PerLayer, Unclipped, clip_rule
from bayesdp.mechanism.devices import Records, record_mesh, spread, use_host_cores
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.mechanism.layers import Activation, AvgPool, Conv2D, Dense, Flatten, MaxPool, Sequential
from bayesdp.mechanism.noise import add_noise, step_keys
from bayesdp.mechanism.people import People, PeopleLoss
from bayesdp.mechanism.people_books import PeopleBooks, gradients_of
from bayesdp.mechanism.per_example import Gradients, PerExample
from bayesdp.mechanism.sampling import poisson_fold
from bayesdp.mechanism.step import PrivateStep, Witnessed
from bayesdp.mechanism.subset import random_subset
from bayesdp.mechanism.tapping import Explained, Tapped
from bayesdp.mechanism.update_rule import Mean, Sum, UpdateRule

__all__ = [
    "Activation",
    "Automatic",
    "AvgPool",
    "BookKeeping",
    "ClipRule",
    "Conv2D",
    "Dense",
    "Explained",
    "Flat",
    "Flatten",
    "Gradients",
    "MaxPool",
    "Mean",
    "ModelLoss",
    "Norms",
    "People",
    "PeopleBooks",
    "PeopleLoss",
    "PerExample",
    "PerLayer",
    "PrivateStep",
    "Records",
    "Sequential",
    "Sum",
    "Tapped",
    "Unclipped",
    "UpdateRule",
    "Witnessed",
    "add_noise",
    "clip_rule",
    "fresh_key",
    "gradients_of",
    "poisson_fold",
    "random_subset",
    "record_mesh",
    "seeded_key",
    "spread",
    "step_keys",
    "use_host_cores",
]
