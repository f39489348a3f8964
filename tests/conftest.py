"""Settings for the whole suite: deterministic property tests, no deadline on a shared machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "bayesdp", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("bayesdp")
