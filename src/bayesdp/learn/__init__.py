"""What to do with a mechanism: learners, each a frozen description with `calibrate` and `fit`."""

from bayesdp.learn.posterior import Posterior
from bayesdp.learn.posterior_vi import PosteriorVI
from bayesdp.learn.probabilistic import NormalPrior
from bayesdp.learn.run import Run
from bayesdp.learn.secret_posterior import SecretPosterior
from bayesdp.learn.sgd import SGD
from bayesdp.learn.vi import VI

__all__ = ["SGD", "VI", "NormalPrior", "Posterior", "PosteriorVI", "Run", "SecretPosterior"]
