"""What to do with a mechanism: learners, each a frozen description with `calibrate` and `fit`.

Names are loaded when they are first used: training one kind of model loads only what it needs.
"""

from typing import TYPE_CHECKING

from bayesdp.lazy import lazy

if TYPE_CHECKING:
    from bayesdp.learn.loop.filter import Filter
    from bayesdp.learn.loop.run import Run
    from bayesdp.learn.models.density import NormalPrior
    from bayesdp.learn.models.network import Network
    from bayesdp.learn.posterior.gaussian import Posterior
    from bayesdp.learn.posterior.samples import SampledPosterior
    from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI
    from bayesdp.learn.posterior_sampling.secret_posterior import SecretPosterior
    from bayesdp.learn.second_order.newton import Newton
    from bayesdp.learn.sgd import SGD
    from bayesdp.learn.sgmcmc.psgld import PSGLD
    from bayesdp.learn.sgmcmc.sghmc import SGHMC
    from bayesdp.learn.sgmcmc.sgld import SGLD
    from bayesdp.learn.sgmcmc.sgnht import SGNHT
    from bayesdp.learn.study.result import StudyResult
    from bayesdp.learn.study.study import Study
    from bayesdp.learn.vi.vi import VI

__all__ = [
    "PSGLD",
    "SGD",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "VI",
    "Filter",
    "Network",
    "Newton",
    "NormalPrior",
    "Posterior",
    "PosteriorVI",
    "Run",
    "SampledPosterior",
    "SecretPosterior",
    "Study",
    "StudyResult",
]

_HOMES = {
    "Filter": "loop.filter",
    "Network": "models.network",
    "Newton": "second_order.newton",
    "NormalPrior": "models.density",
    "PSGLD": "sgmcmc.psgld",
    "Posterior": "posterior.gaussian",
    "PosteriorVI": "posterior_sampling.posterior_vi",
    "Run": "loop.run",
    "SGD": "sgd",
    "SGHMC": "sgmcmc.sghmc",
    "SGLD": "sgmcmc.sgld",
    "SGNHT": "sgmcmc.sgnht",
    "SampledPosterior": "posterior.samples",
    "SecretPosterior": "posterior_sampling.secret_posterior",
    "Study": "study.study",
    "StudyResult": "study.result",
    "VI": "vi.vi",
}

__getattr__, __dir__ = lazy(__name__, {name: f"{__name__}.{home}" for name, home in _HOMES.items()})
