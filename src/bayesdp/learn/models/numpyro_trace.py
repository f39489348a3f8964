"""Running a NumPyro model with its latent sites given on the real line, and what a run leaves: sites and Jacobians.

v = transform(u),    log p(u) = log p(v) + log |dv/du|
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import handlers
from numpyro.distributions.transforms import biject_to
from numpyro.primitives import Messenger

from bayesdp.errors import unmet
from bayesdp.learn.models.density import NumPyroModel, Values
from bayesdp.learn.models.laws import improper
from bayesdp.learn.records import Data

Site = Mapping[str, Any]
"""What NumPyro notes of a site: name, type, value, fn (its law), …"""

Free = Mapping[str, jax.Array]
"""Values on the real line by the name of their site."""

Transform = Any
"""A NumPyro transform from the real line to the support of a site."""


class _WholePlates(Messenger):  # type: ignore[misc]
    """Turns the model's own subsampling off: who enters a step is the mechanism's business."""

    def process_message(self, msg: Values) -> None:
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

    model: NumPyroModel

    def trace(
        self, data: Data, free: Free, *, others_at_zero: bool = False, met: Callable[[str], None] | None = None
    ) -> Trace:
        """One run on `data`; latent sites that are not in `free` are drawn, or set to the image of 0.

        `met` is told the name of every site as it is reached.
        """
        jacobians: dict[str, jax.Array] = {}

        def given(site: Site) -> jax.Array | None:
            if met is not None:
                met(site["name"])
            if site["type"] != "sample" or site["is_observed"]:
                return None
            u = free.get(site["name"])
            if u is None and not others_at_zero:
                return None
            transform = transform_of(site)
            if u is None:
                u = jnp.zeros(transform.inverse_shape(site["fn"].shape()))
            value: jax.Array = transform(u)
            jacobians[site["name"]] = jnp.sum(transform.log_abs_det_jacobian(u, value))
            return value

        return Trace(self._run(handlers.substitute(_WholePlates(self.model), substitute_fn=given), data), jacobians)

    def unconstrained(self, data: Data, values: Mapping[str, Values], names: Iterable[str]) -> dict[str, jax.Array]:
        """The points on the real line whose images are `values`, 0 for the other `names`."""
        start = {name: site["value"] for name, site in self.trace(data, {}, others_at_zero=True).sites.items()}
        given = {name: jnp.asarray(values.get(name, start[name]), float) for name in names}
        sites = self._run(handlers.substitute(_WholePlates(self.model), data=given), data)
        return {name: biject_to(sites[name]["fn"].support).inv(given[name]) for name in names}

    def _run(self, model: NumPyroModel, data: Data) -> dict[str, Site]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPyro's advice on plates; what matters here is checked below
            run = handlers.trace(handlers.seed(model, jax.random.key(0)))
            if isinstance(data, dict):
                return dict(run.get_trace(**data))
            return dict(run.get_trace(*(data if isinstance(data, tuple | list) else (data,))))


def density(site: Site) -> jax.Array:
    """Σ log p of a site's value, times the scale that the model gave it."""
    log_prob = site["fn"].log_prob(site["value"])
    return jnp.sum(log_prob if site["scale"] is None else site["scale"] * log_prob)


def frames_of(site: Site) -> dict[str, int]:
    """The sizes of the plates around a site, by name."""
    return {frame.name: frame.size for frame in site["cond_indep_stack"]}


def transform_of(site: Site) -> Transform:
    """From the real line to the values of a latent site. Bad input: an improper or a discrete one."""
    law, name = site["fn"], site["name"]
    if improper(law):
        raise unmet("model", name, "a proper prior", f"the improper one of site {name!r}", "Give it a wide Normal.")
    if law.support.is_discrete:
        raise unmet(
            "model",
            name,
            "continuous latent variables",
            f"the discrete latent site {name!r}",
            "Sum it out: numpyro.distributions.MixtureSameFamily, or numpyro.factor with a logsumexp inside of the "
            "data plate. If it is data, give it.",
        )
    return biject_to(law.support)
