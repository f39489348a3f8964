"""An observer that takes the time of the compiled part of every interval of a training."""

from __future__ import annotations

import time
from typing import Any

from bayesdp.learn.loop.trajectories import Observer


class IntervalClock(Observer):
    """`seconds` of every interval; the first compiles. Told last of steps to come and first of what they did."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._start = 0.0

    def before_steps(self, start: int, stop: int, params: Any) -> None:
        del start, stop, params
        self._start = time.perf_counter()

    def on_steps(self, start: int, stop: int, distances: Any) -> None:
        del start, stop, distances
        self.seconds.append(time.perf_counter() - self._start)
