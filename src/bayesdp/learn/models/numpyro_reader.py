"""Reading a NumPyro model: which sites are parameters, which are records, and how each becomes a density.

    sites outside of the data plate: prior,    sites inside: the likelihood of the plate's records

The data plate is the one whose size follows the number of records that the model is given. To find out what the model
is made of it is run on made-up records; for a likelihood it is run on one record at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree
from numpyro.distributions import constraints

from bayesdp.errors import InputError, refuse, unmet
from bayesdp.learn.models.density import Form, Law, NumPyroModel, Probabilistic, Values, kept, labels
from bayesdp.learn.models.local_latents import marginal_bound
from bayesdp.learn.models.numpyro_trace import Free, Reader, Site, Trace, density, frames_of, transform_of
from bayesdp.learn.records import Data, Record

_CHECKED = 4
"""Made-up records on which a joint run is compared with single ones."""


@dataclass(frozen=True)
class Sites:
    """What a model is made of: data plates, the parameters' shapes on the real line, local and observed sites."""

    plates: frozenset[str]
    parameters: dict[str, tuple[int, ...]]
    local: dict[str, tuple[int, ...]]
    observed: tuple[str, ...]

    def inside(self, site: Site) -> bool:
        """Whether a site lies in the data plate."""
        return frames_of(site).keys() & self.plates != set()

    def log_density(self, trace: Trace, *, inside: bool) -> jax.Array:
        """Σ log p of the sites inside (or outside) of the data plate, with their Jacobians."""
        chosen = [site for site in trace.samples() if self.inside(site) == inside]
        return sum((density(site) + trace.jacobians.get(site["name"], 0.0) for site in chosen), jnp.zeros(()))


class Read(NamedTuple):
    """A model as learners see it, what it is made of, and a test of observed values: `supported(z, data)`."""

    model: Probabilistic
    sites: Sites
    supported: Callable[[jax.Array, Data], dict[str, jax.Array]]


def from_numpyro(model: NumPyroModel, data: Data, params: Mapping[str, Values] | None = None) -> Probabilistic:
    """The model as a `Probabilistic`; see `reader.probabilistic`."""
    reading, sites, supported = _read(model, Form.of(data))
    if params is not None:
        reading = replace(reading, start=_start(Reader(model), sites, Form.of(data).made_up(1), params))
    for name, good in supported(reading.start, data).items():
        if not good:
            raise unmet("data", name, f"the observed values of site {name!r} to lie in its support", "others")
    return reading


def reading_for(model: NumPyroModel, form: Form) -> Probabilistic:
    """The model for records of one form, none of them at hand."""
    return _read(model, form).model


@kept
def _read(model: NumPyroModel, form: Form) -> Read:
    """The model for records of one form."""
    reader, example = Reader(model), form.made_up(1)
    sites = find_sites(reader, form)
    origin, unravel = ravel_pytree({name: jnp.zeros(shape) for name, shape in sites.parameters.items()})
    check_apart(reader, sites, unravel, form)

    def log_likelihood(z: jax.Array, record: Record) -> jax.Array:
        one, free = jax.tree.map(lambda leaf: leaf[None], record), unravel(z)

        def log_joint(local: Free) -> jax.Array:
            return sites.log_density(reader.trace(one, {**free, **local}), inside=True)

        return marginal_bound(log_joint, sites.local) if sites.local else log_joint({})

    def constrain(z: jax.Array) -> dict[str, jax.Array]:
        values = reader.trace(example, unravel(z)).sites
        return {name: values[name]["value"] for name in sites.parameters}

    def outcomes(z: jax.Array, inputs: Data) -> dict[str, Law]:
        found = reader.trace(inputs, unravel(z)).sites
        return {name: found[name]["fn"] for name in sites.observed}

    @jax.jit
    def supported(z: jax.Array, data: Data) -> dict[str, jax.Array]:
        found = reader.trace(data, unravel(z), others_at_zero=True).sites
        return {name: jnp.all(found[name]["fn"].support(found[name]["value"])) for name in sites.observed}

    reading = Probabilistic(
        dim=int(origin.size),
        start=origin,
        log_prior=lambda z: sites.log_density(reader.trace(example, unravel(z)), inside=False),
        log_likelihood=log_likelihood,
        constrain=constrain,
        labels=labels(unravel(origin)),
        outcomes=None if sites.local else outcomes,
        binary=not sites.local and answers_yes_or_no(reader, sites, form),
    )
    return Read(reading, sites, supported)


def answers_yes_or_no(reader: Reader, sites: Sites, form: Form) -> bool:
    """Whether all that is observed of a record is one answer, yes or no."""
    laws: list[Law] = []

    def run(data: Data) -> None:
        found = reader.trace(data, {}, others_at_zero=True).sites
        laws.extend(found[name]["fn"] for name in sites.observed)

    jax.eval_shape(run, form.made_up(1))
    if len(laws) != 1:
        return False
    law = laws[0]
    return law.support is constraints.boolean and law.batch_shape == (1,) and not law.event_shape


def find_sites(reader: Reader, form: Form) -> Sites:
    """What the model is made of. Bad input: see `reader.probabilistic`."""
    one, two = (_shapes(reader, form, count) for count in (1, 2))
    plates = frozenset(name for name, size in one.plates.items() if (size, two.plates.get(name)) == (1, 2))
    if not plates:
        raise InputError(
            "Expected the model to have a data plate, numpyro.plate('data', x.shape[0]), whose size is the number of "
            f"records it is given; got {'plates of fixed size ' + str(one.plates) if one.plates else 'no plate'}.",
            argument="model",
            expected="to have a data plate, whose size is the number of records it is given",
        )
    for name in one.learned:
        raise unmet(
            "model",
            name,
            "latent variables with a prior",
            f"the parameter site {name!r}: numpyro.param has no posterior",
            "Use numpyro.sample with a prior.",
        )
    inside = {name for name, frames in one.frames.items() if frames & plates}
    parameters = {name: shape for name, shape in one.latent.items() if name not in inside}
    if not sum(math.prod(shape) for shape in parameters.values()):
        raise unmet("model", None, "the model to have a latent site outside of the data plate", "none: no guide")
    observed = tuple(name for name in one.observed if name in inside)
    if not observed:
        raise unmet("model", None, f"an observed site in the data plate {min(plates)!r}", "none")
    return Sites(plates, parameters, {name: one.latent[name] for name in one.latent if name in inside}, observed)


@dataclass
class _Shapes:
    """What a run on some number of made-up records shows, without computing anything."""

    plates: dict[str, int] = field(default_factory=dict)
    frames: dict[str, set[str]] = field(default_factory=dict)
    latent: dict[str, tuple[int, ...]] = field(default_factory=dict)
    observed: list[str] = field(default_factory=list)
    learned: list[str] = field(default_factory=list)


def _shapes(reader: Reader, form: Form, count: int) -> _Shapes:
    seen, reached = _Shapes(), ["the start"]

    def run(data: Data) -> None:
        trace = reader.trace(data, {}, others_at_zero=True, met=lambda name: reached.append(f"site {name!r}"))
        for name, site in trace.sites.items():
            if site["type"] == "param":
                seen.learned.append(name)
            if site["type"] != "sample":
                continue
            seen.plates |= frames_of(site)
            seen.frames[name] = set(frames_of(site))
            if site["is_observed"]:
                seen.observed.append(name)
            else:
                seen.latent[name] = tuple(transform_of(site).inverse_shape(jnp.shape(site["value"])))

    try:
        jax.eval_shape(run, form.made_up(count))
    except InputError:
        raise
    except Exception as problem:
        raise InputError(
            f"Expected the model to run on {count} record(s) of the shape of data, got an error after {reached[-1]}: "
            f"{problem} A data plate takes its size from the data: numpyro.plate('data', x.shape[0]).",
            argument="model",
            expected=f"to run on {count} record(s) of the shape of data",
        ) from problem
    return seen


def check_apart(reader: Reader, sites: Sites, unravel: Callable[[jax.Array], Free], form: Form) -> None:
    """Refuse a site whose density looks at more than its own record (inside) or at any record (outside)."""
    size = sum(math.prod(shape) for shape in sites.parameters.values())

    def densities(data: Data) -> dict[str, jax.Array]:
        point = jnp.asarray(np.random.default_rng(1).normal(size=size), jnp.float32)
        found = reader.trace(data, unravel(point), others_at_zero=True)
        return {site["name"]: density(site) for site in found.samples()}

    @jax.jit
    def both(data: Data) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        return densities(data), jax.vmap(densities)(jax.tree.map(lambda leaf: leaf[:, None], data))

    whole, parts = both(form.made_up(_CHECKED))
    outside = {name for name in whole if name not in sites.observed and name not in sites.local}
    for name, joint in whole.items():
        if name not in outside and not _close(joint, jnp.sum(parts[name])):
            raise unmet(
                "model",
                name,
                "the likelihood of a record to depend on that record alone",
                f"site {name!r}, whose density for several records is not the product of those for each",
                "Compute statistics of the whole data set beforehand, and pay for them or declare them public.",
            )
        if name in outside and not _close(joint, parts[name]):
            raise unmet(
                "model",
                name,
                "what lies outside of the data plate not to depend on the records",
                f"site {name!r}, which does",
                "A prior is chosen before the data; what is observed belongs into the data plate.",
            )


def _start(reader: Reader, sites: Sites, example: Data, params: Mapping[str, Values]) -> jax.Array:
    unknown = sorted(set(params) - set(sites.parameters))
    if unknown:
        raise refuse("params", unknown[0], f"to name sites of the model, {', '.join(sorted(sites.parameters))}")
    try:
        free = reader.unconstrained(example, params, sites.parameters)
    except Exception as problem:
        raise InputError(
            f"Expected params to hold values of the model's sites, got an error: {problem}",
            argument="params",
            expected="to hold values of the model's sites",
        ) from problem
    for name, shape in sites.parameters.items():
        if jnp.shape(free[name]) != shape:
            raise refuse(
                f"params[{name!r}]",
                jnp.shape(free[name]),
                f"of shape {shape} on the real line",
                got=f"{jnp.shape(free[name])}",
            )
        if not bool(jnp.all(jnp.isfinite(free[name]))):
            raise refuse(f"params[{name!r}]", free[name], "inside of the support of its prior", got="values outside")
    return ravel_pytree({name: free[name] for name in sites.parameters})[0]


def _close(one: npt.ArrayLike, other: npt.ArrayLike) -> bool:
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True))
