"""Reading a NumPyro model: which sites are parameters, which are records, and how each becomes a density.

    sites outside of the data plate: prior,    sites inside: the likelihood of the plate's records

The data plate is the one whose size follows the number of records that the model is given. To find out what the model
is made of it is run on made-up records; for a likelihood it is run on one record at a time.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro import distributions as dist
from numpyro import handlers
from numpyro.distributions.transforms import biject_to
from numpyro.primitives import Messenger

from bayesdp.errors import InputError, refuse
from bayesdp.learn.local_latents import marginal_bound
from bayesdp.learn.probabilistic import Data, Form, Probabilistic, Record, kept, labels

Site = Mapping[str, Any]
Free = Mapping[str, jax.Array]
"""Values on the real line by the name of their site."""

_CHECKED = 4
"""Made-up records on which a joint run is compared with single ones."""


class _WholePlates(Messenger):  # type: ignore[misc]
    """Turns the model's own subsampling off: who enters a step is the mechanism's business."""

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == "plate":
            size = msg["args"][0]
            msg["args"], msg["value"] = (size, None), jnp.arange(size)


@dataclass(frozen=True)
class Trace:
    """One run of a model: its sites, and log |dv/du| of those whose value v came from a u on the real line."""

    sites: dict[str, Site]
    jacobians: dict[str, jax.Array]

    def samples(self) -> list[Site]:
        """The random sites, observed ones and factors included."""
        return [site for site in self.sites.values() if site["type"] == "sample"]


@dataclass(frozen=True)
class Reader:
    """A NumPyro model that is run with its latent sites given on the real line."""

    model: Callable[..., Any]

    def trace(
        self, data: Data, free: Free, *, others_at_zero: bool = False, met: Callable[[str], None] | None = None
    ) -> Trace:
        """One run on `data`; latent sites that are not in `free` are drawn, or set to the image of 0.

        `met` is told the name of every site as it is reached.
        """
        jacobians: dict[str, jax.Array] = {}

        def given(site: Site) -> Any:
            if met is not None:
                met(site["name"])
            if site["type"] != "sample" or site["is_observed"]:
                return None
            u = free.get(site["name"])
            if u is None and not others_at_zero:
                return None
            transform = _transform(site)
            if u is None:
                u = jnp.zeros(transform.inverse_shape(site["fn"].shape()))
            value = transform(u)
            jacobians[site["name"]] = jnp.sum(transform.log_abs_det_jacobian(u, value))
            return value

        return Trace(self._run(handlers.substitute(_WholePlates(self.model), substitute_fn=given), data), jacobians)

    def unconstrained(self, data: Data, values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, jax.Array]:
        """The points on the real line whose images are `values`, 0 for the other `names`."""
        start = {name: site["value"] for name, site in self.trace(data, {}, others_at_zero=True).sites.items()}
        given = {name: jnp.asarray(values.get(name, start[name]), float) for name in names}
        sites = self._run(handlers.substitute(_WholePlates(self.model), data=given), data)
        return {name: biject_to(sites[name]["fn"].support).inv(given[name]) for name in names}

    def _run(self, model: Any, data: Data) -> dict[str, Site]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPyro's advice on plates; what matters here is checked below
            run = handlers.trace(handlers.seed(model, jax.random.key(0)))
            if isinstance(data, dict):
                return dict(run.get_trace(**data))
            return dict(run.get_trace(*(data if isinstance(data, tuple | list) else (data,))))


@dataclass(frozen=True)
class Sites:
    """What a model is made of: data plates, the parameters' shapes on the real line, local and observed sites."""

    plates: frozenset[str]
    parameters: dict[str, tuple[int, ...]]
    local: dict[str, tuple[int, ...]]
    observed: tuple[str, ...]

    def inside(self, site: Site) -> bool:
        """Whether a site lies in the data plate."""
        return _frames(site).keys() & self.plates != set()

    def log_density(self, trace: Trace, *, inside: bool) -> jax.Array:
        """Σ log p of the sites inside (or outside) of the data plate, with their Jacobians."""
        chosen = [site for site in trace.samples() if self.inside(site) == inside]
        return sum((density(site) + trace.jacobians.get(site["name"], 0.0) for site in chosen), jnp.zeros(()))


def from_numpyro(model: Callable[..., Any], data: Data, params: Mapping[str, Any] | None = None) -> Probabilistic:
    """The model as a `Probabilistic`; see `probabilistic.probabilistic`."""
    reading: Probabilistic
    reading, sites, supported = _read(model, Form.of(data))
    if params is not None:
        reading = replace(reading, start=_start(Reader(model), sites, Form.of(data).made_up(1), params))
    for name, good in supported(reading.start, data).items():
        if not good:
            raise InputError(f"Expected the observed values of site {name!r} to lie in its support, got others.")
    return reading


def reading_for(model: Callable[..., Any], form: Form) -> Probabilistic:
    """The model for records of one form, none of them at hand."""
    reading: Probabilistic = _read(model, form)[0]
    return reading


@kept
def _read(model: Callable[..., Any], form: Form) -> tuple[Probabilistic, Sites, Callable[..., dict[str, Any]]]:
    """The model for records of one form, and a test of observed values."""
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

    def outcomes(z: jax.Array, inputs: Data) -> dict[str, Any]:
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
        labels=tuple(labels(unravel(origin))),
        outcomes=None if sites.local else outcomes,
    )
    return reading, sites, supported


def find_sites(reader: Reader, form: Form) -> Sites:
    """What the model is made of. Bad input: see `probabilistic.probabilistic`."""
    one, two = (_shapes(reader, form, count) for count in (1, 2))
    plates = frozenset(name for name, size in one.plates.items() if (size, two.plates.get(name)) == (1, 2))
    if not plates:
        raise InputError(
            "Expected the model to have a data plate, numpyro.plate('data', x.shape[0]), whose size is the number of "
            f"records it is given; got {'plates of fixed size ' + str(one.plates) if one.plates else 'no plate'}."
        )
    for name in one.learned:
        raise InputError(
            f"Expected latent variables with a prior, got the parameter site {name!r}: numpyro.param has no posterior. "
            "Use numpyro.sample with a prior."
        )
    inside = {name for name, frames in one.frames.items() if frames & plates}
    parameters = {name: shape for name, shape in one.latent.items() if name not in inside}
    if not sum(math.prod(shape) for shape in parameters.values()):
        raise InputError("Expected the model to have a latent site outside of the data plate, got none: no guide.")
    observed = tuple(name for name in one.observed if name in inside)
    if not observed:
        raise InputError(f"Expected an observed site in the data plate {min(plates)!r}, got none.")
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
            seen.plates |= _frames(site)
            seen.frames[name] = set(_frames(site))
            if site["is_observed"]:
                seen.observed.append(name)
            else:
                seen.latent[name] = tuple(_transform(site).inverse_shape(jnp.shape(site["value"])))

    try:
        jax.eval_shape(run, form.made_up(count))
    except InputError:
        raise
    except Exception as problem:
        raise InputError(
            f"Expected the model to run on {count} record(s) of the shape of data, got an error after {reached[-1]}: "
            f"{problem} A data plate takes its size from the data: numpyro.plate('data', x.shape[0])."
        ) from problem
    return seen


def check_apart(reader: Reader, sites: Sites, unravel: Any, form: Form) -> None:
    """Refuse a site whose density looks at more than its own record (inside) or at any record (outside)."""
    size = sum(math.prod(shape) for shape in sites.parameters.values())

    def densities(data: Data) -> dict[str, jax.Array]:
        point = jnp.asarray(np.random.default_rng(1).normal(size=size), jnp.float32)
        found = reader.trace(data, unravel(point), others_at_zero=True)
        return {site["name"]: density(site) for site in found.samples()}

    @jax.jit
    def both(data: Data) -> Any:
        return densities(data), jax.vmap(densities)(jax.tree.map(lambda leaf: leaf[:, None], data))

    whole, parts = both(form.made_up(_CHECKED))
    outside = {name for name in whole if name not in sites.observed and name not in sites.local}
    for name, joint in whole.items():
        if name not in outside and not _close(joint, jnp.sum(parts[name])):
            raise InputError(
                f"Expected the likelihood of a record to depend on that record alone, got site {name!r}, whose density "
                "for several records is not the product of those for each. Compute statistics of the whole data set "
                "beforehand, and pay for them or declare them public."
            )
        if name in outside and not _close(joint, parts[name]):
            raise InputError(
                f"Expected what lies outside of the data plate not to depend on the records, got site {name!r}, which "
                "does. A prior is chosen before the data; what is observed belongs into the data plate."
            )


def density(site: Site) -> jax.Array:
    """Σ log p of a site's value, times the scale that the model gave it."""
    log_prob = site["fn"].log_prob(site["value"])
    return jnp.sum(log_prob if site["scale"] is None else site["scale"] * log_prob)


def _frames(site: Site) -> dict[str, int]:
    return {frame.name: frame.size for frame in site["cond_indep_stack"]}


def _transform(site: Site) -> Any:
    law, name = site["fn"], site["name"]
    base = law
    while hasattr(base, "base_dist"):
        base = base.base_dist
    if isinstance(base, dist.ImproperUniform):
        raise InputError(f"Expected a proper prior, got the improper one of site {name!r}. Give it a wide Normal.")
    if law.support.is_discrete:
        raise InputError(
            f"Expected continuous latent variables, got the discrete latent site {name!r}. Sum it out: "
            "numpyro.distributions.MixtureSameFamily, or numpyro.factor with a logsumexp inside of the data plate. "
            "If it is data, give it."
        )
    return biject_to(law.support)


def _start(reader: Reader, sites: Sites, example: Data, params: Mapping[str, Any]) -> jax.Array:
    unknown = sorted(set(params) - set(sites.parameters))
    if unknown:
        raise refuse("params", unknown[0], f"to name sites of the model, {', '.join(sorted(sites.parameters))}")
    try:
        free = reader.unconstrained(example, params, sites.parameters)
    except Exception as problem:
        raise InputError(f"Expected params to hold values of the model's sites, got an error: {problem}") from problem
    for name, shape in sites.parameters.items():
        if jnp.shape(free[name]) != shape:
            raise InputError(
                f"Expected params[{name!r}] of shape {shape} on the real line, got {jnp.shape(free[name])}."
            )
        if not bool(jnp.all(jnp.isfinite(free[name]))):
            raise InputError(f"Expected params[{name!r}] inside of the support of its prior, got values outside.")
    return ravel_pytree({name: free[name] for name in sites.parameters})[0]


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True))
