"""Samples in, upper bound out: the mean of a cost over a population (H9; as in the papers C9, C10), its quantiles
(order statistics, H5 and H12).

`upper_mean` and its table `METHODS` bound a mean from continuous samples, `binary` the share of ones among
zeros and ones, `quantile` the value that a share of the population stays below.
"""

from bayesdp.estimate import quantile
from bayesdp.estimate.binary import beta_upper, clopper_pearson_upper
from bayesdp.estimate.mean import METHODS, Method, upper_mean

__all__ = ["METHODS", "Method", "beta_upper", "clopper_pearson_upper", "quantile", "upper_mean"]
