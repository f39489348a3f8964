"""Interrupting the real program: Ctrl-C in a terminal, then a kill without warning, then the rest; nothing is lost."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

from bayesdp.report import read

pytestmark = pytest.mark.simulation

# Tests in the background of a shell inherit an ignored Ctrl-C.
HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
START = "from bayesdp.cli import main; main()"
PROGRAM = [sys.executable, "-c", f"{HEARING}; {START}"]
# Whoever presses Ctrl-C has seen something first: here every picture stands for half a second, on any machine.
SEEN = """
import time
from rich.live import Live
drawn = Live.update
def seen(*arguments, **named):
    drawn(*arguments, **named)
    time.sleep(0.5)
Live.update = seen
"""
LOOKED_AT = [sys.executable, "-c", f"{HEARING}\n{SEEN}\n{START}"]
PLAN = ["--noise-multiplier", 3, "--steps", 2000, "--engine", "rdp", "--holdout", 40, "--members", 40, "--watch", 20]
TRAIN = ["train", "breast-cancer", *PLAN, "--seed", 7]


def finished(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


def in_a_terminal(*arguments: object, until: str) -> tuple[int, str]:
    """Run in a terminal of 80 columns and press Ctrl-C when `until` is on the screen: exit code, what was shown.

    Python can lose a Ctrl-C that arrives while an object is being deleted. As a person would, press again if the
    screen has gone on being drawn for five seconds (four times a second).
    """
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    command = [*LOOKED_AT, *map(str, arguments)]
    plain = {"TERM": "xterm", "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    kept = {name: value for name, value in os.environ.items() if name.startswith(("JAX_", "XLA_", "PYTHONPATH"))}
    shown, since = "", None
    with subprocess.Popen(
        command,
        stdin=there,
        stdout=there,
        stderr=there,
        env={**plain, **kept},
        start_new_session=True,
    ) as running:
        os.close(there)
        while True:
            try:
                got = os.read(here, 65536)
            except OSError:  # the other end was closed
                break
            shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", got.decode(errors="replace"))
            if (until in shown) if since is None else shown.count(until, since) > 20:
                since = len(shown)
                running.send_signal(signal.SIGINT)
        os.close(here)
        return running.wait(60), shown


def killed(*arguments: object, after: int) -> None:
    """Kill the program without warning once it has reported `after` looks: the next interval is then under way."""
    command = [*PROGRAM, *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        looks = 0
        for line in running.stderr:
            looks += line.startswith("step ")
            if looks == after:
                break
        running.kill()
        assert running.wait(60) == -signal.SIGKILL


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    finished(*TRAIN, "--out", folder)
    return folder


def test_interrupted_killed_and_resumed_it_is_the_same_run(whole, tmp_path, cli):
    run = tmp_path / "run"
    code, shown = in_a_terminal(*TRAIN, "--out", run, until="the watched record, so far")
    assert code == 130
    for words in (
        "Step ",
        "test accuracy",
        "DP ε",
        "everybody, all planned steps",
        "Bayesian ε",
        "90 % of people, so far",
    ):
        assert words in shown, words
    assert f"bayesdp resume {run}" in "".join(shown.split("\r\n")[-3:])
    assert "Traceback" not in shown
    assert (run / "checkpoint.npz").stat().st_mode & 0o077 == 0
    assert not (run / "params.npz").exists()
    assert "It holds an unfinished run" in cli(*TRAIN, "--out", run).refused()
    assert "Expected RUN to be a folder with a finished run" in cli("predict", run, "any.csv").refused()

    killed("resume", run, after=2)
    assert (run / "checkpoint.npz").exists()

    found = json.loads(finished("resume", run, "--json").stdout)
    one, other = read(whole / "report.json"), read(run / "report.json")
    assert found == [guarantee.to_dict() for guarantee in one.guarantees]
    assert (other.history, other.records, other.metrics) == (one.history, one.records, one.metrics)
    with np.load(whole / "params.npz") as expected, np.load(run / "params.npz") as got:
        assert all(np.array_equal(expected[name], got[name]) for name in expected.files)
    assert sorted(path.name for path in run.iterdir()) == sorted(path.name for path in whole.iterdir())


def test_a_finished_run_is_not_resumed(cli, whole):
    refused = cli("resume", whole).refused()
    assert "Expected RUN to hold an unfinished run, got RUN=" in refused
    assert "This one has finished" in refused
    assert "It holds another run" in cli(*TRAIN, "--out", whole).refused()
