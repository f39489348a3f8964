"""A run while it trains: a panel that is drawn anew in a terminal, a line for each look elsewhere; both on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from bayesdp.cli import show
from bayesdp.rounding import up

if TYPE_CHECKING:
    from bayesdp.learn import Run


@contextmanager
def watching(steps: int, *, silent: bool = False) -> Iterator[Callable[[Run], None]]:
    """A function to be called with the run so far at every look; with `silent` it says nothing to a file or pipe."""
    clock = _Clock(steps)
    if not sys.stderr.isatty():

        def say(run: Run) -> None:
            if not silent:
                show.remark(_line(run, clock))

        yield say
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}")
    bar = Progress(*columns)
    task = bar.add_task("Compiling", total=steps, left="")
    with Live(bar, console=Console(stderr=True, highlight=False), transient=True) as live:

        def draw(run: Run) -> None:
            words = f"Step {run.steps} of {steps}"
            bar.update(task, completed=run.steps, description=words, left=clock.left(run.steps))
            live.update(Group(bar, _panel(run)))

        yield draw


def _line(run: Run, clock: _Clock) -> str:
    measured = [show.metric(name, value) for name, value in run.looks[-1].metrics.items()]
    losses = [f"{label} ≤ {loss}" for label, loss, _ in _losses(run)]
    words = [f"step {run.steps} of {clock.steps}", *measured, *losses, clock.left(run.steps)]
    return "; ".join(word for word in words if word)


def _panel(run: Run) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in run.looks[-1].metrics.items():
        grid.add_row(f"  {name}", show.metric(name, value).removeprefix(f"{name}: "), "")
    for label, loss, whom in _losses(run):
        grid.add_row(f"  {label} so far", f"≤ {loss}", whom)
    return grid


def _losses(run: Run) -> list[tuple[str, str, str]]:
    """Name, number and audience of each ε so far: upper bounds by quick accounting, a little above the final ones."""
    last = run.looks[-1]
    watched = "most exposed of the watched records" if run.tallies.watched is not None else "most exposed witness"
    found = [
        ("DP ε", last.dp, "everybody"),
        ("Bayesian ε", last.bdp, f"{100 * run.plan.coverage:g} % of people"),
        ("per-instance ε", last.per_instance, watched),
    ]
    return [(label, up(loss, 3), whom) for label, loss, whom in found if loss is not None]


class _Clock:
    """How long the rest will take, going by the steps since the first look: the time before it went into compiling."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.first: tuple[int, float] | None = None

    def left(self, done: int) -> str:
        now = time.monotonic()
        if self.first is None:
            self.first = done, now
        since, start = self.first
        if done in (since, self.steps):
            return ""
        seconds = round((now - start) / (done - since) * (self.steps - done))
        return f"{seconds} s left" if seconds < 100 else f"{seconds // 60} min {seconds % 60} s left"
