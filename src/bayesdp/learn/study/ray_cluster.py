"""A study spread over a Ray cluster: a unit of work is a task, and only finished units come back.

The process that started the study keeps the folder and writes every unit as it arrives. A worker that dies takes
nothing with it but the unit it was at, which Ray gives to another one. A unit has seeds of its own and is compiled for
as many devices as here, so that the numbers are those of one machine of the same kind.

Loaded only when asked for: pip install "bayesdp[ray]", the same on all nodes.
"""

from __future__ import annotations

import os
import pickle
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import numpy as np

from bayesdp.errors import InputError, refuse
from bayesdp.learn.study.units import Distances, Material, Unit

LOCAL = "local"

PATIENCE = 15
"""Seconds in which a cluster has to answer; Ray itself would go on trying for minutes."""

RETRIES = 5
"""How often a unit is started again after its worker died."""

Perform = Callable[[Material, list[Unit], Callable[[float], None] | None], Iterator[tuple[Unit, Distances]]]


@contextmanager
def cluster(address: str) -> Iterator[Perform]:
    """How units are performed on the cluster at `address`, or on one that is started on this machine for "local".

    A cluster that is there is connected to at once, so that whoever is refused has begun nothing; one of our own is
    started when there is something to do.

    Bad input: Ray is not installed, or no cluster answers at the address within `PATIENCE`: `InputError`.
    """
    try:
        import ray
    except ImportError:
        raise InputError('Expected Ray for a study on a cluster, got none. Run: pip install "bayesdp[ray]".') from None
    if address == LOCAL:
        yield partial(_perform, ray, address)
        return
    with _connected(ray, address):
        yield partial(_perform, ray, address)


def _perform(
    ray: Any, address: str, material: Material, units: list[Unit], progress: Callable[[float], None] | None
) -> Iterator[tuple[Unit, Distances]]:
    if not units:
        return
    with _connected(ray, address):
        # Pickled here and unpickled there by hand: a worker must say how many devices it has before JAX starts.
        dumps: Any = ray.cloudpickle.dumps
        packed = ray.put(dumps(material))
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_unit)
        waiting = {task.remote(packed, pickle.dumps(unit), jax.local_device_count()): unit for unit in units}
        while waiting:
            try:
                (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
                distances = np.asarray(ray.get(ready))
            except ray.exceptions.RayTaskError:
                raise  # what a unit itself came to grief on
            except ray.exceptions.RayError as problem:
                raise _lost(address, len(units) - len(waiting), len(units), problem) from None
            unit = waiting.pop(ready)
            yield unit, distances
            if progress is not None:
                progress(1 - len(waiting) / len(units))


def _lost(address: str, done: int, units: int, problem: Exception) -> InputError:
    return refuse(
        "ray",
        address,
        "to be a cluster that stays",
        "Start the study again in the same folder: it goes on with what is missing.",
        got=f"one that was lost after {done} of {units} units ({_first_line(problem)})",
    )


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)


def _unit(material: bytes, unit: bytes, devices: int) -> Distances:
    """In a worker: one unit."""
    from bayesdp.mechanism.devices import use_host_cores

    use_host_cores(devices)
    if jax.local_device_count() != devices:
        raise RuntimeError(
            f"Expected {devices} devices, as where the study was started, got {jax.local_device_count()}."
        )
    unpacked: Material = pickle.loads(material)
    return unpacked.perform(pickle.loads(unit))


@contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """Connected to the cluster; a connection that was there before is used and left as it is."""
    if ray.is_initialized():
        yield
        return
    # Nothing about private training is to be reported to anybody; and zero GPUs are no news.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    options: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    _answers(address)
    try:
        with warnings.catch_warnings():
            # JAX warns of forks; these replace themselves by another program at once.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as problem:
        hint = "A head that asks for a token wants RAY_AUTH_MODE=token and RAY_AUTH_TOKEN in the environment here too."
        raise _nobody(address, _first_line(problem), hint) from None
    try:
        yield
    finally:
        ray.shutdown()


def _answers(address: str) -> None:
    """Refuse an address of which it is soon known that nobody is there."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except OSError as problem:
        raise _nobody(address, f"no answer ({problem})", "On the head: ray start --head --port 6379.") from None


def _nobody(address: str, got: str, hint: str) -> InputError:
    return refuse("ray", address, "to be the address of a Ray cluster, or local", hint, got=got)
