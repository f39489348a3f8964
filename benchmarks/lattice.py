"""What noise on a lattice costs: one private step of each network with either noise, in turn, best of several."""

from __future__ import annotations

import time

import jax

from bayesdp.mechanism import BookKeeping, ModelLoss, PrivateStep, record_mesh, spread
from bayesdp.mechanism.key import NOISE_KINDS, seeded_key
from networks import BATCH, NETWORKS, SHAPE, batch, cross_entropy, wait

ROUNDS = 8


def seconds(name: str) -> dict[str, float]:
    """Of one step with either noise."""
    mesh, model = record_mesh(), NETWORKS[name]
    records, params = spread(batch(name), mesh), model.init(jax.random.key(0), SHAPE)
    programs = {}
    for kind in NOISE_KINDS:
        step = PrivateStep(BookKeeping(ModelLoss(model, cross_entropy)), 1.0, float(BATCH[name]), mesh=mesh, noise=kind)
        programs[kind] = (
            jax.jit(lambda key, number, step=step: step(key, number, params, records, clip_norm=1.0, noise_std=1.0)[0]),
            seeded_key(0, kind),
        )
    best: dict[str, float] = dict.fromkeys(programs, float("inf"))
    for number in range(ROUNDS + 1):
        for kind, (program, key) in programs.items():
            start = time.perf_counter()
            wait(program(key, number))
            if number:  # the first compiles
                best[kind] = min(best[kind], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    for name in NETWORKS:
        found = seconds(name)
        both = ", ".join(f"{kind} {1e3 * value:.1f} ms" for kind, value in found.items())
        print(f"{name}, batch {BATCH[name]}: {both}, ratio {found['lattice'] / found['float']:.2f}")
