"""Settings for the whole suite: deterministic property tests, no deadline on a shared machine, compiling once."""

import os
import tempfile

from hypothesis import HealthCheck, settings

settings.register_profile(
    "bayesdp", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("bayesdp")

# Most of the time of many tests goes into compiling the same JAX programs: they are kept for the session, for all
# workers and the programs that tests start. JAX reads this when it is imported.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _kept = tempfile.TemporaryDirectory(prefix="bayesdp-compiled-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _kept.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
