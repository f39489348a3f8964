"""How fast a clipped gradient sum is, beside JAX-Privacy, Opacus and the same network without privacy, in one run.

LeNet-5 at batch 512 and a wide CNN of 3.3 M weights at batch 128, on this machine's CPU. Every contestant is a process
of its own, asked in turn, round after round; the best time of each counts and only ratios are promised. The peers
live in environments of their own, made on the first run beside ours (in .venv/peers, or where BAYESDP_BENCH says).
Exits with an error when a promise does not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from stopwatch import STEPS

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("BAYESDP_BENCH") or HERE.parent / ".venv" / "peers")
PEERS = {
    "torch-peers": ["torch==2.13.0", "opacus==1.6.0"],
    "jax-peers": ["jax==0.10.2", "jax-privacy==2.0.0"],
    "blackjax-peer": ["jax==0.10.2", "blackjax==1.7.1"],
    "table-peers": ["diffprivlib==0.6.6", "scikit-learn==1.6.1", "statsmodels==0.15.0"],
}
ROUNDS = int(os.environ.get("BAYESDP_BENCH_ROUNDS", "6"))


def environment(name: str) -> str:
    """The Python of a peer's own environment, made when it is not there yet."""
    folder = CACHE / name
    python, stamp = folder / "bin" / "python", folder / "ready"
    if not stamp.exists():
        print(f"making the environment of {', '.join(PEERS[name])} in {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name]], check=True)
        stamp.touch()
    return str(python)


@dataclass
class Worker:
    """A process that times ways of one kind for one network."""

    python: str
    arguments: list[str]
    times: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        paths = os.pathsep.join([str(HERE.parent / "src"), str(HERE)])
        self.process = subprocess.Popen(
            [self.python, str(HERE / self.arguments[0]), *self.arguments[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": paths},
        )
        self._read()

    def ask(self, way: str, repeats: int = 3) -> None:
        """Time a way and keep the best."""
        self.times[way] = min(self.times.get(way, float("inf")), self._say(f"{way} {repeats}"))

    def memory(self) -> float:
        """Peak MB over an idle process."""
        return self._say("memory")

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def _say(self, line: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return float(self._read())

    def _read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"The worker {' '.join(self.arguments)} died; run it alone to see why.")
        return str(json.loads(line))


def compare(network: str, title: str, against_opacus: float, against_jax_privacy: float) -> bool:
    """Time everybody on one network and print the ratios."""
    ours = Worker(sys.executable, ["clipping_ours.py", "ours", network])
    plain = Worker(sys.executable, ["clipping_ours.py", "plain", network])
    theirs = Worker(environment("jax-peers"), ["clipping_jax_privacy.py", network])
    opacus = Worker(environment("torch-peers"), ["clipping_opacus.py", network])
    ours.ask("books")
    plain.ask("plain")
    memory, plain_memory = ours.memory(), plain.memory()  # before the other ways add to the peak
    sizes = [f"microbatch_size={size}" for size in (1, 2, 4)]
    for turn in range(ROUNDS):
        for way in ("books", "norms", "steps"):
            ours.ask(way)
        plain.ask("plain")
        for way in ("plain", "ghost", "hooks"):
            opacus.ask(way)
        if turn == 0:  # many times slower, or not in the running: once is enough
            ours.ask("scan")
            for size in sizes:
                theirs.ask(size, 1)
        theirs.ask(min(sizes, key=lambda size: theirs.times[size]))
    for worker in (ours, plain, theirs, opacus):
        worker.close()

    books = ours.times["books"]
    best_opacus, best_jax_privacy = min(opacus.times["hooks"], opacus.times["ghost"]), min(theirs.times.values())
    # A training example costs its share of a whole step: sampling, clipped sum, noise and the optimiser.
    step = ours.times["steps"] / STEPS
    norms = ours.times["norms"] / step
    print(f"\n{title}: one clipped gradient sum, best of {3 * ROUNDS}, milliseconds and multiples of ours")
    rows = [("bayesdp, book-keeping", books), ("bayesdp, any loss (scan)", ours.times["scan"])]
    rows += [(f"bayesdp, whole step of training (of {STEPS})", step)]
    rows += [("bayesdp, norms of as many witnesses", ours.times["norms"])]
    rows += [("JAX, not private", plain.times["plain"]), ("PyTorch, not private", opacus.times["plain"])]
    rows += [("Opacus, hooks", opacus.times["hooks"]), ("Opacus, ghost", opacus.times["ghost"])]
    rows += [(f"JAX-Privacy, {size}", theirs.times[size]) for size in sizes]
    for label, time in rows:
        print(f"  {label:46s} {time:8.1f} {time / books:7.2f}")
    promises = [
        (f"best Opacus {best_opacus / books:.2f} (at least {against_opacus})", best_opacus / books >= against_opacus),
        (
            f"best JAX-Privacy {best_jax_privacy / books:.2f} (at least {against_jax_privacy})",
            best_jax_privacy / books >= against_jax_privacy,
        ),
        (f"JAX not private {plain.times['plain'] / books:.2f} (at least 1)", plain.times["plain"] >= books),
        (
            f"a witness costs {norms:.2f} of a training example (at most 0.8), "
            f"{ours.times['norms'] / books:.2f} of its part of the bare clipped sum",
            norms <= 0.8,
        ),
        (
            f"peak memory {memory:.0f} MB, {memory / plain_memory:.2f} of not private (at most 1.5)",
            memory <= 1.5 * plain_memory,
        ),
    ]
    for words, kept in promises:
        print(f"  {'holds' if kept else 'FAILS'}: {words}", flush=True)
    return all(kept for _, kept in promises)


def main() -> None:
    """Both networks."""
    kept = [
        compare("lenet5", "LeNet-5, batch 512", against_opacus=1.5, against_jax_privacy=3),
        compare("wide", "wide CNN of 3.3 M weights, batch 128", against_opacus=1, against_jax_privacy=1),
    ]
    raise SystemExit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
