"""Kill −9 at random moments over train, fit, study, unlearn and a ledger, then look: `make crash`.

After each kill, whatever was under way:

    nothing is short     what was released is in a ledger that is whole, at an ε no smaller than it cost
    nothing is trusted   a file is as it was written, or it is refused in one line
    nothing is lost      taken up again, the run comes to the result that it would have had

A child is killed at a random operation on files (a sync, a rename, a write, an unlink), or after a random time.

    python benchmarks/crashes.py [--kills 200] [--seed 0]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PLAN = ["--noise-multiplier", "4", "--steps", "6", "--sampling-rate", "0.5", "--engine", "rdp", "--delta", "1e-4"]
FEW = ["--scale", "public-statistics", "--holdout", "10", "--members", "10", "--no-download"]
TRAIN = ["train", "people.csv", "--target", "rich", "--model", "logistic", *PLAN, *FEW]
FIT = ["fit", "people.csv", "--target", "rich", "--model", "logistic", *PLAN, *FEW]
STUDY = ["study", "whole", "--records", "3", "--runs", "2", "--seed", "0"]


def forked(act: Callable[[], Any], *, operations: int | None = None, seconds: float | None = None) -> tuple[bool, str]:
    """Do it in a child: whether it was killed (at an operation on files, or after a time), and what it printed."""
    log = Path("output.txt")
    child = os.fork()
    if not child:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        code = 1
        with contextlib.suppress(BaseException):
            if operations is not None:
                _die_at(operations)
            try:
                act()
                code = 0
            except SystemExit as left:
                code = int(left.code or 0)
        sys.stdout.flush()
        os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    text = log.read_text(errors="replace")
    killed = os.WIFSIGNALED(status)
    if not killed and os.WEXITSTATUS(status):
        text += f"\nexit {os.WEXITSTATUS(status)}"
    return killed, text


def _die_at(count: int) -> None:
    """Kill this process without warning at its `count`-th operation on files, half of the time just after it."""
    left = [count]
    after = bool(count % 2)

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            found = real(*arguments, **more)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return act

    for name in ("fsync", "rename", "replace", "unlink", "ftruncate", "write"):
        setattr(os, name, counted(getattr(os, name)))


def run(*words: str) -> Callable[[], None]:
    """A command of the program."""

    def act() -> None:
        from bayesdp.cli import main

        main(list(words))

    return act


def done(act: Callable[[], Any]) -> str:
    """Do it in a child that must come to its end."""
    killed, text = forked(act)
    assert not killed, text
    assert "exit" not in text, text
    return text


def params(folder: str) -> dict[str, Any]:
    """The numbers that a run has come to."""
    name = "posterior.npz" if (Path(folder) / "posterior.npz").exists() else "params.npz"
    with np.load(Path(folder) / name) as found:
        return {key: found[key] for key in found.files}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Bit for bit."""
    return set(one) == set(other) and all(np.array_equal(one[name], other[name]) for name in one)


def learning(words: list[str], reference: str, kill: dict[str, Any]) -> str:
    """Kill a training, look, take it up again."""
    for leftover in ("run", "people.ledger", "people.ledger.head"):
        shutil.rmtree(leftover) if Path(leftover).is_dir() else Path(leftover).unlink(missing_ok=True)
    command = [*words, "--seed", "5", "--out", "run", "--ledger", "people.ledger", "--ledger-budget", "9"]
    killed, _ = forked(run(*command), **kill)
    begun = Path("run/job.json").exists()
    done(lambda: look("run", begun))
    if not killed:
        return "finished before"
    if not begun:
        shutil.rmtree("run", ignore_errors=True)
        Path("people.ledger").unlink(missing_ok=True)
        Path("people.ledger.head").unlink(missing_ok=True)
        done(run(*command))
    elif not (Path("run/report.html").exists() and not Path("run/checkpoint.npz").exists()):
        done(run("resume", "run"))
    done(run("ledger", "verify", "people.ledger"))
    done(run("ledger", "verify", "run"))
    done(run("report", "run", "--json"))
    assert same(params("run"), params(reference)), "another result"
    assert not Path("run/noise.key").exists(), "the key is left"
    assert not [path for path in Path("run").iterdir() if path.name.endswith(".part")], "half a file is left"
    return "killed, then taken up" if begun else "killed before it began"


def look(folder: str, begun: bool) -> None:
    """What a killed run left is whole or refused, and what it released is charged."""
    from bayesdp import InputError
    from bayesdp.learn.loop import checkpoint
    from bayesdp.learn.loop.run_folder import RunFolder
    from bayesdp.ledger import Ledger

    place = RunFolder(Path(folder))
    released = place.params.exists() or place.posterior.exists()
    with contextlib.suppress(InputError):
        released = released or checkpoint.read(folder, finished=True).done > 0
    if place.checkpoint.exists():
        checkpoint.read(folder, finished=True)  # written whole, or not there
    if not released:
        return
    assert begun
    for book in (Ledger.existing(place.journal), Ledger.existing("people.ledger")):
        assert sum(n for one in book.charges for _, _, n in one.steps) >= 6, "released and not charged"


def studying(kill: dict[str, Any]) -> str:
    """Kill a study, and start it again."""
    shutil.rmtree("study", ignore_errors=True)
    killed, _ = forked(run(*STUDY, "--out", "study"), **kill)
    done(run(*STUDY, "--out", "study"))
    assert Path("study/table.csv").read_bytes() == Path("whole-study/table.csv").read_bytes(), "another result"
    return "killed, then taken up" if killed else "finished before"


def forgetting(kill: dict[str, Any]) -> str:
    """Kill a request to forget: what was answered is in the tally."""
    shutil.rmtree("run", ignore_errors=True)
    shutil.copytree("unseeded", "run")
    record = json.loads(Path("records.json").read_text())
    ask = ["unlearn", "run", "--json", "--told-apart", "0.9", "--record"]
    done(run(*ask, str(record[0])))
    killed, text = forked(run(*ask, str(record[1])), **kill)
    answered = '"answer"' in text
    tally = json.loads(Path("run/unlearning.json").read_text())
    assert tally["asked"] == len(tally["decisions"]) in (1, 2)
    assert not answered or record[1] in tally["forgotten"], "answered and not written down"
    again = record[2] if record[1] in tally["forgotten"] else record[1]
    done(run(*ask, str(again)))
    assert json.loads(Path("run/unlearning.json").read_text())["asked"] == tally["asked"] + 1
    return "killed, then asked again" if killed else "answered before"


def spending(kill: dict[str, Any]) -> str:
    """Kill who charges a ledger: every charge that was paid for is there."""
    for name in ("spent.ledger", "spent.ledger.head"):
        Path(name).unlink(missing_ok=True)

    def spend() -> None:
        from bayesdp.ledger import Charge, Ledger

        book = Ledger.open("spent.ledger")
        for i in range(12):
            book.charge(Charge(run=str(i), steps=((4.0, 0.5, 6),)))
            os.write(1, f"paid {i}\n".encode())

    killed, text = forked(spend, **kill)

    def check() -> None:
        from bayesdp.ledger import Charge, Ledger

        book = Ledger.open("spent.ledger")
        assert text.count("paid") <= len(book.charges) <= text.count("paid") + 1
        book.charge(Charge(run="next", steps=((4.0, 0.5, 6),)))

    done(check)
    return "killed" if killed else "finished before"


def prepare(scenes: list[str]) -> None:
    """What these are compared with, by runs that nobody kills."""
    if scenes == ["ledger"]:
        return
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    table = np.column_stack([x, x[:, 0] > 0])
    np.savetxt("people.csv", table, "%g", ",", header="a,b,rich", comments="")
    done(run(*TRAIN, "--seed", "5", "--out", "whole"))
    done(run(*FIT, "--seed", "5", "--out", "whole-fit"))
    done(run(*TRAIN, "--out", "unseeded"))
    done(run(*STUDY, "--out", "whole-study"))

    def numbers() -> None:
        from bayesdp.unlearn.folder import opened

        Path("records.json").write_text(json.dumps(opened("unseeded").numbers[:3].tolist()))

    done(numbers)


SCENES: dict[str, tuple[Callable[[dict[str, Any]], str], int]] = {
    "train": (lambda kill: learning(TRAIN, "whole", kill), 160),
    "fit": (lambda kill: learning(FIT, "whole-fit", kill), 180),
    "study": (studying, 25),
    "unlearn": (forgetting, 8),
    "ledger": (spending, 90),
}
"""What is killed, and about how many operations on files it makes."""


def main() -> None:
    """Kill, look, count."""
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    words.add_argument("--kills", type=int, default=200)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--scenes", default=",".join(SCENES))
    asked = words.parse_args()
    draw, counts = random.Random(asked.seed), collections.Counter[tuple[str, str]]()
    chosen = asked.scenes.split(",")
    # Loaded once, before any child; JAX starts no thread until it computes.
    import jax

    import bayesdp.cli
    import bayesdp.jobs.prepared_sgd
    import bayesdp.jobs.prepared_vi  # noqa: F401

    with tempfile.TemporaryDirectory(prefix="bayesdp-crashes-") as place:
        os.chdir(place)
        # Every child compiles the same programs: the first ones, whom nobody kills, leave them to the others.
        for name, value in (("cache_dir", str(Path(place) / "compiled")), ("cache_min_compile_time_secs", 0.0)):
            jax.config.update(("jax_compilation_" if name == "cache_dir" else "jax_persistent_") + name, value)  # type: ignore[no-untyped-call]
        jax.config.update("jax_disable_most_optimizations", True)  # type: ignore[no-untyped-call]
        prepare(chosen)
        for i in range(asked.kills):
            name = chosen[i % len(chosen)]
            act, operations = SCENES[name]
            kill: dict[str, Any] = {"operations": draw.randint(1, operations)}
            if name != "unlearn" and i % 4 == 3:
                kill = {"seconds": draw.uniform(0.5, 4.0)}
            try:
                counts[name, act(kill)] += 1
                print(f"{i + 1}: {name}, {kill}", file=sys.stderr)
            except AssertionError as problem:
                raise SystemExit(f"{name}, {kill}: {problem}") from problem
        os.chdir("/")
    for (name, what), count in sorted(counts.items()):
        print(f"{name:8} {what:24} {count}")
    print(f"{asked.kills} kills: nothing was short, trusted or lost.")


if __name__ == "__main__":
    main()
