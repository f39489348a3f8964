"""Upper limits for the share of ones in a population, from ones and zeros (Beta and Clopper-Pearson, C9)."""

from __future__ import annotations

from scipy.special import betainccinv

from bayesdp.errors import probability, whole


def beta_upper(ones: int, zeros: int, failure: float) -> float:
    """The 1 − γ quantile of Beta(N1 + 1, N0 + 1): the Bayesian limit of paper S1, eq. 10-12 (C9).

    A Bayesian statement: under a flat prior the share of ones exceeds the answer with posterior
    probability γ. Not a confidence limit; that is `clopper_pearson_upper`, which is never smaller. Counts
    that are negative or not whole, or γ outside (0, 1), get an `InputError`.
    """
    ones = whole("ones", ones, least=0)
    zeros = whole("zeros", zeros, least=0)
    return float(betainccinv(ones + 1, zeros + 1, probability("failure", failure)))


def clopper_pearson_upper(ones: int, trials: int, failure: float) -> float:
    """The share u with Pr[Binomial(trials, u) ≤ ones] = γ: the 1 − γ quantile of Beta(N1 + 1, N0)
    (Clopper-Pearson, C9).

    A confidence limit: whatever the share is, it exceeds the answer in at most γ of all samples of
    independent draws. 1 when there are no zeros. `ones` outside 0..trials, counts that are not whole, or
    γ outside (0, 1) get an `InputError`.
    """
    trials = whole("trials", trials, least=1)
    ones = whole("ones", ones, least=0, most=trials)
    failure = probability("failure", failure)
    return 1.0 if ones == trials else float(betainccinv(ones + 1, trials - ones, failure))
