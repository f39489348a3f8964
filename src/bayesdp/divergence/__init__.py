"""How far apart two outcomes are, per Rényi order: pure functions, float64, log space.

Each module is one mechanism with a `cost` function: (α-1) D_α for every signal and order.
"""

from bayesdp.divergence import (
    averaged,
    exponential_family,
    gaussian,
    hockey_stick,
    laplace,
    noisy_max,
    replace_one,
    sgm,
    subsampled,
)
from bayesdp.divergence.table import CostTable

__all__ = [
    "CostTable",
    "averaged",
    "exponential_family",
    "gaussian",
    "hockey_stick",
    "laplace",
    "noisy_max",
    "replace_one",
    "sgm",
    "subsampled",
]
