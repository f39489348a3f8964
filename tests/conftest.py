"""Settings for the whole suite: deterministic property tests, no deadline on a shared machine, compiling little."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "bayesdp", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("bayesdp")

# One device a worker: two workers have the cores, and devices that wait for each other at every step of a run wait
# long on a busy machine. `make test` runs the tests of spreading again on two, see `ON_TWO_DEVICES` in the Makefile.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=1")

# Most of the time of many tests goes into compiling the same JAX programs: they are kept for the session, for all
# workers and the programs that tests start. JAX reads this when it is imported.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _kept = tempfile.TemporaryDirectory(prefix="bayesdp-compiled-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _kept.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


@pytest.fixture(autouse=True, scope="session")
def _small_tables() -> Iterator[None]:
    """Own tables of tests have some hundred rows, whose columns noise would hide: unless a test is about preparing them
    privately (`tests/integration/test_private_preparation.py`), statistics are taken for public.
    """
    from bayesdp.jobs import data_source

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(data_source, "OWN_SCALE", "public-statistics")
        yield


BRIEFLY = ("learn", "mechanism", "cli", "jobs", "interop", "audit", "sklearn")
"""Folders whose programs mostly run for milliseconds: compiled without optimisations, in half of the time."""


@pytest.fixture(autouse=True, scope="module")
def _compiled_briefly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unless the module is a `simulation`, whose programs run for long."""
    folder = Path(request.path).relative_to(Path(__file__).parent).parts[0]
    if folder not in BRIEFLY or request.node.get_closest_marker("simulation"):
        yield
        return
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"  # for programs that tests start
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "false"
