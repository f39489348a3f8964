"""Install what was built into clean environments and use it: one line for each file and Python.

Usage: python benchmarks/clean_installs.py dist [PYTHON …]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHONS = ("python3.11", "python3.12", "python3.13")
PLAN = ("epsilon", "--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "1000", "--delta", "1e-5")
TRIED = (
    ("-m", "bayesdp", "--version"),
    ("-m", "bayesdp", "doctor"),
    ("-m", "bayesdp", *PLAN),
    ("-c", "import sys, bayesdp.accountant; assert 'jax' not in sys.modules"),
    ("-c", "import bayesdp.sklearn as s; s.PrivateClassifier, s.PrivateScaler"),
)


def tried(python: str, built: Path) -> str:
    """What happened, in words."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        own = Path(folder, "bin", "python")
        steps = [("-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(built.resolve())), *TRIED]
        for step in steps:
            done = subprocess.run([own, *step], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                return f"FAILED at {' '.join(step[:4])}: {(done.stderr or done.stdout).strip().splitlines()[-1]}"
    return "ok"


def main(folder: str, *wanted: str) -> int:
    """Exit code 1 where something failed."""
    pythons = [one for one in wanted or PYTHONS if shutil.which(one)]
    files = sorted([*Path(folder).glob("*.whl"), *Path(folder).glob("*.tar.gz")])
    failed = not files or not pythons
    for python in pythons:
        for built in files:
            words = tried(python, built)
            failed |= words != "ok"
            print(f"{python} {built.name}: {words}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
