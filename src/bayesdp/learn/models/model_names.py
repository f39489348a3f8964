"""What a model is called in a sentence: by what it is, not by the name of an option."""

from __future__ import annotations

_NETWORKS = {
    "mlp": "network with one hidden layer",
    "cnn": "convolutional network",
    "lenet5": "LeNet-5 network",
}
_REGRESSIONS = {
    "logistic": "logistic regression",
    "linear": "linear regression",
    "poisson": "Poisson regression",
    "negative-binomial": "negative binomial regression",
}


def network_in_words(name: str, classes: int) -> str:
    """A network of `learn.models.networks`; without classes its one output is a number."""
    if name != "logistic":
        return _NETWORKS.get(name, f"{name} model")
    return {0: "linear model", 2: "logistic regression"}.get(classes, "multinomial logistic regression")


def family_in_words(name: str) -> str:
    """A Bayesian model of `learn.models.table_models`, or the file of one's own."""
    return _REGRESSIONS.get(name, f"{name} model")
