"""What to do with a mechanism: learners, each a frozen description with `calibrate` and `fit`."""

from bayesdp.learn.run import Run
from bayesdp.learn.sgd import SGD

__all__ = ["SGD", "Run"]
