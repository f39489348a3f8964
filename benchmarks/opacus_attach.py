"""What witnesses cost an Opacus loop: seconds a step with 500 of them and without, side by side, batch 512.

Run in the environment of `make test-torch`: python benchmarks/opacus_attach.py
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from bayesdp.interop.opacus import attach

RECORDS, BATCH, WITNESSES, STEPS, ROUNDS = 4096, 512, 500, 6, 5


def network() -> Any:
    """LeNet-like, for 28 x 28 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def loop(mode: str, attached: bool) -> float:
    """Seconds of the fastest of some steps."""
    x, y, net, engine = torch.randn(RECORDS, 1, 28, 28), torch.randint(0, 10, (RECORDS,)), network(), PrivacyEngine()
    if attached:
        each = nn.CrossEntropyLoss(reduction="none")
        attach(engine, module=net, loss=each, holdout=(x[:WITNESSES], y[:WITNESSES]))
    made = engine.make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=BATCH),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
        poisson_sampling=False,  # batches of one size, for the clock's sake
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if mode == "ghost" else nn.CrossEntropyLoss()
    taken = []
    for images, labels in list(loader)[:STEPS]:
        began = time.process_time()
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        taken.append(time.process_time() - began)
    return min(taken)


def main() -> None:
    """Print a line for each mode."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for mode in ("hooks", "functorch", "ghost"):
        without = min(loop(mode, attached=False) for _ in range(ROUNDS))
        with_them = min(loop(mode, attached=True) for _ in range(ROUNDS))
        print(f"{mode}: {1e3 * without:.0f} ms a step without, {1e3 * with_them:.0f} with: {with_them / without:.2f}")


if __name__ == "__main__":
    main()
