"""How fast private SGLD is, beside a Python loop over jitted `blackjax.sgld` steps that are not private, in one run.

The size of Adult: 39,073 records of 14 columns and a constant, 2,000 steps, batches of 195, every iterate kept. Records
are made up: times do not depend on them. BlackJAX lives in an environment of its own and is asked as its documentation
says: a key split and a batch drawn for every call of the jitted step. All take turns, the best of several rounds
counts, and only ratios are promised. Exits with an error when a promise does not hold.
"""

from __future__ import annotations

import sys

from clipping import ROUNDS, Worker, environment

OURS = {
    "one": "bd.SGLD",
    "four": "bd.SGLD, four chains",
    "sghmc": "bd.SGHMC",
    "sgnht": "bd.SGNHT",
    "psgld": "bd.PSGLD",
}
THEIRS = {"numpy": "blackjax.sgld, batch by NumPy", "jax": "blackjax.sgld, batch inside the jitted step"}


def main() -> int:
    """Time all, print, and say whether the promises hold."""
    ours = Worker(sys.executable, ["sgld_ours.py"])
    theirs = Worker(environment("blackjax-peer"), ["sgld_blackjax.py"])
    for _ in range(ROUNDS):
        for worker, ways in ((ours, OURS), (theirs, THEIRS)):
            for way in ways:
                worker.ask(way)
    ours.close()
    theirs.close()
    one = ours.times["one"]
    print(f"2,000 steps, best of {3 * ROUNDS}, milliseconds and multiples of bd.SGLD")
    for times, names in ((ours.times, OURS), (theirs.times, THEIRS)):
        for way, name in names.items():
            print(f"  {name:46s} {times[way]:8.1f} {times[way] / one:7.2f}")
    ratio, share = theirs.times["numpy"] / one, ours.times["four"] / (4 * one)
    promises = [
        (f"blackjax.sgld takes {ratio:.1f} times as long (at least 10)", ratio >= 10),
        (f"a chain of four costs {share:.2f} of a single one (at most 1)", share <= 1),
    ]
    for words, kept in promises:
        print(f"  {'holds' if kept else 'FAILS'}: {words}", flush=True)
    return 0 if all(kept for _, kept in promises) else 1


if __name__ == "__main__":
    sys.exit(main())
