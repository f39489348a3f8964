"""A model is called by what it is."""

from bayesdp.learn.models.model_names import family_in_words, network_in_words
from bayesdp.learn.models.networks import MODELS


def test_a_linear_model_of_numbers_is_not_logistic():
    assert network_in_words("logistic", 0) == "linear model"
    assert network_in_words("logistic", 2) == "logistic regression"
    assert network_in_words("logistic", 10) == "multinomial logistic regression"
    assert len({network_in_words(name, 2) for name in MODELS}) == len(MODELS)
    assert family_in_words("poisson") == "Poisson regression"
    assert family_in_words("mine.py") == "mine.py model"
