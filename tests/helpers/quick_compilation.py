"""Quick compilation, as tests wait for little else."""

import jax
import pytest


@pytest.fixture(scope="module")
def compile_quickly():
    """What the compiler does for speed is left to the tests of whole runs, in tests/learn."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
