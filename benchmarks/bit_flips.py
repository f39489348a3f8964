"""Flip single bits in all files of a run's folder, and ask it everything: no flip may change an answer unnoticed.

python benchmarks/bit_flips.py [--flips 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
import collections
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

CHANGED, NOTICED, HARMLESS = "changed", "noticed", "harmless"


def made(place: Path) -> Path:
    """The folder of a small run that was trained, and asked to forget a record."""
    from bayesdp.jobs.data_source import DataSource
    from bayesdp.jobs.prepared_sgd import prepare
    from bayesdp.jobs.sgd_job import SGDJob
    from bayesdp.unlearn import Ledger as Forgetting
    from bayesdp.unlearn.folder import opened

    x = np.random.default_rng(0).normal(size=(60, 2))
    table = np.column_stack([x, x[:, 0] > 0])
    np.savetxt(place / "people.csv", table, "%g", ",", header="a,b,rich", comments="")
    job = SGDJob(
        data=DataSource.given(str(place / "people.csv"), target="rich", scale="public-statistics"),
        model="logistic",
        noise_multiplier=4.0,
        steps=2,
        sampling_rate=0.5,
        engine="rdp",
        holdout=10,
        members=10,
        watch=(3,),
        keep_iterates=1,
    )
    prepare(job).fit(place / "run")
    run = opened(place / "run")
    forgetting = Forgetting(budget=1.0, records=len(run.numbers), training=run.training)
    run.write(forgetting.request([int(run.numbers[0])], run.worst_case))
    return place / "run"


def answers(folder: Path) -> list[Any]:
    """Everything that is told from the files of a folder. Bad input: a damaged file gets `InputError`."""
    from bayesdp import storage
    from bayesdp.jobs.derived_again import check_derived
    from bayesdp.jobs.predict import saved_model
    from bayesdp.jobs.resume import read_job
    from bayesdp.learn.loop.iterates import Iterates
    from bayesdp.learn.loop.run import Run
    from bayesdp.learn.loop.run_folder import RunFolder
    from bayesdp.ledger import Ledger
    from bayesdp.report import read
    from bayesdp.unlearn import folder as forgetting

    place = RunFolder(folder)
    run, report = Run.load(folder), read(place.need(place.report))
    check_derived(place, report)
    asked = storage.read_tagged(place.unlearning, forgetting.FORMAT, forgetting.VERSION, checked=True)
    kept = Iterates.of(folder)
    moments = [] if kept is None else [step for step, _ in kept.read(run.params)]
    return [
        [one.to_dict() for one in run.guarantees],
        report.to_dict(),
        run.losses().tolist(),
        {name: value.tolist() for name, value in storage.read_arrays(place.need(place.params)).items()},
        saved_model(place),
        read_job(place),
        storage.read_json(place.need(place.data)),
        asked,
        Ledger.existing(place.journal).total().dp(1e-4).epsilon,
        place.check_all(),
        moments,
    ]


def flipped(folder: Path, before: list[Any], *, flips: int, seed: int) -> collections.Counter[str]:
    """How many of so many flips, over all files by their length, were noticed, harmless, or changed an answer."""
    from bayesdp import InputError

    draw, counts = random.Random(seed), collections.Counter[str]()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    for i in range(flips):
        # Half of them over files, half over bytes: a small file counts too.
        path = draw.choice(files) if i % 2 else draw.choices(files, [one.stat().st_size for one in files])[0]
        whole, place = path.read_bytes(), draw.randrange(8 * path.stat().st_size)
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            counts[HARMLESS if answers(folder) == before else CHANGED] += 1
        except InputError:
            counts[NOTICED] += 1
        finally:
            path.write_bytes(whole)
    return counts


def main() -> None:
    """Flip and count."""
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    words.add_argument("--flips", type=int, default=2000)
    words.add_argument("--seed", type=int, default=0)
    asked = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="bayesdp-flips-") as place:
        folder = made(Path(place))
        counts = flipped(folder, answers(folder), flips=asked.flips, seed=asked.seed)
    print(", ".join(f"{counts[name]} {name}" for name in (NOTICED, HARMLESS, CHANGED)))
    if counts[CHANGED]:
        raise SystemExit("An answer changed, and nobody noticed.")


if __name__ == "__main__":
    main()
