"""Two host devices, so that spreading over devices is tested; quick compilation, as tests wait for little else."""

import jax
import pytest

from bayesdp.mechanism import use_host_cores

use_host_cores(2)  # before JAX starts


@pytest.fixture(autouse=True, scope="module")
def _compile_quickly():
    """What the compiler does for speed is left to the tests of whole runs, in tests/learn."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
