"""Whatever a user calls a model, read as a `Probabilistic`: a NumPyro model, or a pair of plain functions."""

from __future__ import annotations

from bayesdp.errors import refuse
from bayesdp.learn.models.density import (
    LogLikelihood,
    LogPrior,
    NumPyroModel,
    Probabilistic,
    Values,
    from_densities,
)
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.people import of_people
from bayesdp.learn.records import Data, records_of
from bayesdp.mechanism.people import People

Model = NumPyroModel | tuple[LogPrior, LogLikelihood]
"""What learners take for a model."""


def read_model(model: Model | Network | Probabilistic, data: Data, params: Values = None) -> Probabilistic:
    """The model on flattened parameters: one that was read already, a `Network`, or what `probabilistic` takes."""
    if isinstance(model, Probabilistic):
        return model
    return model.reading() if isinstance(model, Network) else probabilistic(model, data, params)


def probabilistic(model: Model, data: Data, params: Values = None) -> Probabilistic:
    """The model as a `Probabilistic`.

    Args:
        model: a NumPyro model with a data plate, or a pair `(log_prior(params), log_likelihood(params, record))`.
        data: arrays with the records along the first axis; the model is called with `*data` for a tuple or list,
            `**data` for a dict, else with `data` itself. Only shapes are looked at, and that observed values lie in
            the support of their site.
            Of `People` the model is one of rows; a person has the likelihood of all of theirs.
        params: for a pair, a tree of float arrays that gives the parameters their form and the start (not needed with
            a `NormalPrior`); for a NumPyro model, optional starting values by site.

    Bad input gets `InputError` that names the site: no data plate, discrete latent sites, a prior that depends on the
    records or is improper, a record's likelihood that depends on the others, no parameters, wrong shapes.
    """
    if isinstance(data, People):
        return of_people(probabilistic(model, data.all_rows, params))
    if isinstance(model, tuple | list) and len(model) == 2 and all(callable(part) for part in model):
        records_of("data", data)
        return from_densities(model[0], model[1], data, params)
    if not callable(model):
        raise refuse("model", model, "to be a NumPyro model or a pair of functions (log_prior, log_likelihood)")
    records_of("data", data)
    from bayesdp.learn.models.numpyro_reader import from_numpyro  # takes long to load, and only its own models need it

    return from_numpyro(model, data, params)
