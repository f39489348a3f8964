"""Records spread over devices: the cores of the host, or the GPUs, each sampling and clipping its own share.

Record i lives on device i mod D at place i // D. Each device draws its own Poisson batch from its own records with a
key of its own; together they are one Poisson batch of all records. Dealing records out in turn keeps the shares equal
and leaves every other record in its place when one is appended.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import register_dataclass

from bayesdp.errors import refuse, whole

AXIS = "records"
"""The mesh axis over which records are spread."""

DEALT = PartitionSpec(AXIS)
"""Spread over the devices along the first axis."""

SAME = PartitionSpec()
"""The same on every device."""

_MOST_CORES = 16


def use_host_cores(count: int | None = None) -> int:
    """Make every core of the host (or `count` of them) a JAX device; to be called before JAX's first computation.

    Harmless when it is too late or when XLA_FLAGS already says how many devices there shall be: then things stay as
    they are. Returns the number of CPU devices that was asked for (0: nothing was changed).

    Bad input: a count below 1 gets `InputError`.
    """
    if count is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = min(cores, _MOST_CORES)
    count = whole("count", count, least=1)
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return 0
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:  # JAX has started already
        return 0
    return count


def record_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A one-axis mesh of the given devices, by default all of this process."""
    chosen = list(jax.local_devices() if devices is None else devices)
    return Mesh(np.array(chosen), (AXIS,))


def add_up(tree: Any) -> Any:
    """Inside a device: the sum of the devices' trees, on every device."""
    return lax.psum(tree, AXIS)


@register_dataclass
@dataclass(frozen=True)
class Records:
    """Records dealt out: every leaf is (devices, capacity, …); device d holds `counts[d]` of them."""

    data: Any
    counts: jax.Array
    size: int = field(metadata={"static": True})

    @property
    def capacity(self) -> int:
        """Places per device."""
        return int(jax.tree.leaves(self.data)[0].shape[1])

    def in_order(self, dealt: Any) -> Any:
        """Leaves (devices, capacity, …) of something per record, back to (records, …)."""
        return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1).reshape(-1, *x.shape[2:])[: self.size], dealt)

    def beside(self, more: Any, mesh: Mesh) -> Records:
        """Pairs of these records and of `more`, a tree of arrays with a row for each of them, on the same devices."""
        return Records((self.data, _dealt(more, self.size, mesh)), self.counts, self.size)


def spread(data: Any, mesh: Mesh) -> Records:
    """Deal the records of `data`, a tree of arrays with the records along the first axis, out to the mesh's devices.

    Bad input: no array, arrays of different lengths, or no records get `InputError`.
    """
    leaves = jax.tree.leaves(data)
    if not leaves or any(np.ndim(leaf) == 0 for leaf in leaves):
        raise refuse("data", None, "of arrays with one row per record", got="")
    lengths = {len(leaf) for leaf in leaves}
    if len(lengths) > 1:
        raise refuse("data", sorted(lengths), "of arrays of one length", got=f"lengths {sorted(lengths)}")
    size, devices = lengths.pop(), mesh.size
    if size == 0:
        raise refuse("data", 0, "with at least one record", got="none")
    counts = np.array([(size - d + devices - 1) // devices for d in range(devices)], np.int32)
    return Records(_dealt(data, size, mesh), jax.device_put(counts, NamedSharding(mesh, DEALT)), size)


def _dealt(data: Any, size: int, mesh: Mesh) -> Any:
    devices = mesh.size
    capacity = -(-size // devices)
    places = np.minimum(np.arange(capacity)[None, :] * devices + np.arange(devices)[:, None], size - 1)

    def deal(leaf: Any) -> Any:
        rows = np.asarray(leaf)
        return jax.device_put(rows[None] if devices == 1 else rows[places], NamedSharding(mesh, DEALT))

    return jax.tree.map(deal, data)
