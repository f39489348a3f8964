"""A worker that waits for the name of a way on its input, runs it a few times, and answers with the best milliseconds.

Workers are long-lived processes, one for each environment and network, asked in turn: everything is compiled once, and
whatever else the machine is doing meets all of them alike. Standard library only, as every environment imports it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping

STEPS = 8
"""Steps of training that are timed together, because their Poisson batches differ in size."""


def serve(ways: Mapping[str, Callable[[], object]], idle: int) -> None:
    """Answer requests until the input ends. "memory" asks for the peak in MB over an idle process."""
    warm: set[str] = set()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, *times = line.split()
        if name == "memory":
            print(json.dumps((peak() - idle) / 1024), flush=True)
            continue
        if name not in warm:
            ways[name]()
            warm.add(name)
        best = float("inf")
        for _ in range(int(times[0])):
            start = time.perf_counter()
            ways[name]()
            best = min(best, time.perf_counter() - start)
        print(json.dumps(1000 * best), flush=True)


def peak() -> int:
    """The most memory that this process has held, in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
