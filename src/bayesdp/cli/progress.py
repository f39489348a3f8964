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

from bayesdp.cli import terminal
from bayesdp.rounding import up
from bayesdp.unit import spoken

if TYPE_CHECKING:
    from bayesdp.learn import Run


@contextmanager
def watching(steps: int, *, silent: bool = False) -> Iterator[Callable[[Run], None]]:
    """A function to be called with the run so far at every look; with `silent` it says nothing to a file or pipe."""
    clock = _Clock(steps)
    if not sys.stderr.isatty():

        def say(run: Run) -> None:
            if not silent:
                terminal.remark(_line(run, clock))

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
    measured = [terminal.metric(name, value) for name, value in run.snapshots[-1].metrics.items()]
    losses = [f"{label} {loss}" for label, loss, _ in _losses(run)]
    words = [f"step {run.steps} of {clock.steps}", *measured, *losses, clock.left(run.steps)]
    return "; ".join(word for word in words if word)


def _panel(run: Run) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in run.snapshots[-1].metrics.items():
        grid.add_row(f"  {name}", terminal.metric(name, value).removeprefix(f"{name}: "), "")
    for label, loss, whom in _losses(run):
        grid.add_row(f"  {label}", loss, whom)
    return grid


def _losses(run: Run) -> list[tuple[str, str, str]]:
    """Name, words and audience of each ε so far, an upper bound.

    Beside the DP ε of all planned steps, which is what whoever stops by looking has (H14): none is shown above it.
    """
    from bayesdp import everybody

    last, plan = run.snapshots[-1], run.tallies.plan_dp()
    dp = None if plan is None else plan.epsilon
    watched = run.tallies.counts.watched
    whom = "the watched record" if watched == 1 else "the largest of each watched record" if watched else "each witness"
    found = [
        ("Bayesian ε", last.bdp, f"{100 * run.plan.coverage:g} % of people, so far"),
        ("per-instance ε", last.per_instance, f"{spoken(whom, run.plan.unit)}, so far"),
    ]
    shown = [
        (label, everybody.shown(loss, dp, 3) if everybody.wins(loss, dp) else f"≤ {up(loss, 3)}", whom)
        for label, loss, whom in found
        if loss is not None
    ]
    worst_case = "∞" if dp is None else up(dp, 3)
    return [("DP ε", f"≤ {worst_case}", "everybody, all planned steps"), *shown]


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
