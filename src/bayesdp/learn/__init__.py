"""What to do with a mechanism: learners, each a frozen description with `calibrate` and `fit`."""

from bayesdp.learn.filter import Filter
from bayesdp.learn.network import Network
from bayesdp.learn.posterior import Posterior
from bayesdp.learn.posterior_vi import PosteriorVI
from bayesdp.learn.probabilistic import NormalPrior
from bayesdp.learn.psgld import PSGLD
from bayesdp.learn.run import Run
from bayesdp.learn.samples import SampledPosterior
from bayesdp.learn.secret_posterior import SecretPosterior
from bayesdp.learn.sgd import SGD
from bayesdp.learn.sghmc import SGHMC
from bayesdp.learn.sgld import SGLD
from bayesdp.learn.sgnht import SGNHT
from bayesdp.learn.study import Study
from bayesdp.learn.study_result import StudyResult
from bayesdp.learn.vi import VI

__all__ = [
    "PSGLD",
    "SGD",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "VI",
    "Filter",
    "Network",
    "NormalPrior",
    "Posterior",
    "PosteriorVI",
    "Run",
    "SampledPosterior",
    "SecretPosterior",
    "Study",
    "StudyResult",
]
