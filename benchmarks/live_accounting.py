"""What keeping three tallies adds to a training run: the time on the host between two compiled intervals.

LeNet-5, expected batch 512 of 60,000 records, as many outsiders as members as witnesses. A run is stopped with a watch
at every interval: the compiled steps with the pass over the witnesses on one side, accounting, the snapshot and the run
handed to `progress` on the other. Also printed: how much longer a step takes because of the witnesses themselves.
"""

from __future__ import annotations

import time

import jax
import numpy as np
import optax

from bayesdp.learn.sgd import SGD
from bayesdp.mechanism import ModelLoss, use_host_cores
from interval_clock import IntervalClock
from networks import NETWORKS, SHAPE, cross_entropy

RECORDS, WITNESSES, STEPS, INTERVAL, MOST = 60_000, (2_000, 4_000), 80, 20, 0.05


def seconds(witnesses: int) -> tuple[float, float]:
    """Best seconds of an interval after the first, which compiles: the compiled part, and the accounting."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(RECORDS + witnesses, *SHAPE)).astype(np.float32)
    y = rng.integers(0, 10, RECORDS + witnesses, dtype=np.int32)
    plan = SGD(
        sampling_rate=512 / RECORDS,
        steps=STEPS,
        optimizer=optax.sgd(0.1),
        noise_multiplier=1.0,
        report_every=INTERVAL,
    )
    loss = ModelLoss(NETWORKS["lenet5"], cross_entropy)
    clock, moments = IntervalClock(), [time.perf_counter()]
    training = plan.begin(
        loss,
        NETWORKS["lenet5"].init(jax.random.key(0), SHAPE),
        (x[:RECORDS], y[:RECORDS]),
        holdout=(x[RECORDS:], y[RECORDS:]) if witnesses else None,
        members=witnesses,
        seed=0,
    )
    training.run(progress=lambda _: moments.append(time.perf_counter()), observers=[clock])
    compiled = np.array(clock.seconds[1:])
    return float(compiled.min()), float((np.diff(moments)[1:] - compiled).min())


def main() -> None:
    """Print the ratio and whether the promise holds."""
    use_host_cores()
    alone, _ = seconds(0)
    print(
        f"\nLive accounting, LeNet-5, batch 512, {INTERVAL} steps a snapshot; without witnesses {1000 * alone:.0f} ms"
    )
    kept = []
    for witnesses in WITNESSES:
        compiled, accounting = seconds(witnesses)
        added = accounting / compiled
        kept.append(added <= MOST)
        print(f"  {witnesses:,} + {witnesses:,} witnesses: compiled steps {1000 * compiled:.0f} ms, ", end="")
        print(f"{compiled / alone:.1f} times as long; accounting and snapshot {1000 * accounting:.0f} ms")
        print(f"  {'holds' if kept[-1] else 'FAILS'}: accounting adds {added:.1%} (at most {MOST:.0%})", flush=True)
    raise SystemExit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
