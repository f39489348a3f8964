"""A study spread over a Ray cluster: a unit of work is a task, and only finished units come back.

The process that started the study keeps the folder and writes every unit as it arrives. A worker that dies takes
nothing with it but the unit it was at, which Ray gives to another one. A unit has seeds of its own and is compiled for
as many devices as here, so that the numbers are those of one machine of the same kind.

Loaded only when asked for: pip install "bayesdp[ray]", the same on all nodes.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from bayesdp.errors import InputError, refuse
from bayesdp.learn.study.units import Distances, Material, Unit

LOCAL = "local"

RETRIES = 5
"""How often a unit is started again after its worker died."""

Perform = Callable[[Material, list[Unit], Callable[[float], None] | None], Iterator[tuple[Unit, Distances]]]


def cluster(address: str) -> Perform:
    """How units are performed on the cluster at `address`, or on one that is started on this machine for "local".

    Bad input: Ray is not installed, or nothing answers at the address: `InputError`.
    """
    try:
        import ray
    except ImportError:
        raise InputError('Expected Ray for a study on a cluster, got none. Run: pip install "bayesdp[ray]".') from None

    def perform(
        material: Material, units: list[Unit], progress: Callable[[float], None] | None
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
                (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
                unit = waiting.pop(ready)
                yield unit, np.asarray(ray.get(ready))
                if progress is not None:
                    progress(1 - len(waiting) / len(units))

    return perform


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
    try:
        with warnings.catch_warnings():
            # JAX warns of forks; these replace themselves by another program at once.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, ValueError, RuntimeError) as problem:
        raise refuse("ray", address, "to be the address of a Ray cluster, or local", str(problem)) from None
    try:
        yield
    finally:
        ray.shutdown()
