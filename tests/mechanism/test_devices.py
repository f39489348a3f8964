import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.mechanism import record_mesh, spread, use_host_cores


def run(code, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept | environment, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.split()


COUNT = (
    "from bayesdp.mechanism import use_host_cores; asked = use_host_cores(3);"
    "import jax; print(asked, jax.device_count())"
)


def test_every_core_becomes_a_device():
    assert run(COUNT) == ["3", "3"]


def test_the_users_own_flags_are_respected():
    assert run(COUNT, XLA_FLAGS="--xla_force_host_platform_device_count=5") == ["0", "5"]


def test_too_late_is_harmless():
    before = jax.device_count()
    assert use_host_cores(7) == 0
    assert jax.device_count() == before


def test_a_bad_count_is_refused():
    with pytest.raises(InputError, match="count"):
        use_host_cores(0)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_records_are_dealt_out_in_turn_and_come_back_in_order(size):
    mesh = record_mesh()
    data = {"x": np.arange(size * 3.0, dtype=np.float32).reshape(size, 3), "y": np.arange(size, dtype=np.int32)}
    records = spread(data, mesh)
    assert records.data["x"].shape == (mesh.size, records.capacity, 3)
    assert int(records.counts.sum()) == size
    for device in range(mesh.size):
        own = np.asarray(records.data["y"])[device, : int(records.counts[device])]
        assert np.array_equal(own, np.arange(device, size, mesh.size))
    back = records.in_order(records.data)
    assert np.array_equal(back["x"], data["x"])
    assert jax.tree.leaves(records.data)[0].sharding.num_devices == mesh.size


def test_records_pass_through_compiled_functions():
    records = spread(np.arange(5.0), record_mesh())
    again = jax.jit(lambda r: r)(records)
    assert again.size == 5
    assert again.capacity == records.capacity


@pytest.mark.parametrize("data", [(), (np.zeros(3), np.zeros(4)), np.zeros((0, 2)), (jnp.zeros(()),)])
def test_bad_data_is_refused(data):
    with pytest.raises(InputError, match="data"):
        spread(data, record_mesh())
