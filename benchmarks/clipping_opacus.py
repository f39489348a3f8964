"""Worker: Opacus' clipped sums of the same network, by hooks and by ghost clipping, and PyTorch without privacy."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from opacus.grad_sample import (
    GradSampleModule,
    GradSampleModuleFastGradientClipping,
)
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import nn

from stopwatch import peak, serve

BATCH = {"lenet5": 512, "wide": 128}


def network(name: str) -> nn.Module:
    """As in `networks`."""
    if name == "lenet5":
        return nn.Sequential(
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU()),
            *(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
            nn.Linear(84, 10),
        )
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10)),
    )


def ways(name: str) -> dict[str, Callable[[], object]]:
    """Forwards, backwards, clipped and summed; no noise."""
    x, y = torch.randn(BATCH[name], 1, 28, 28), torch.randint(0, 10, (BATCH[name],))
    settings = {"noise_multiplier": 0.0, "max_grad_norm": 1.0, "expected_batch_size": BATCH[name]}

    def plain() -> Callable[[], object]:
        model = network(name)

        def run() -> None:
            model.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()

        return run

    def hooks() -> Callable[[], object]:
        model = GradSampleModule(network(name))
        optimizer = DPOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), **settings)

        def run() -> None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.clip_and_accumulate()

        return run

    def ghost() -> Callable[[], object]:
        model = GradSampleModuleFastGradientClipping(network(name), max_grad_norm=1.0, use_ghost_clipping=True)
        optimizer = DPOptimizerFastGradientClipping(torch.optim.SGD(model.parameters(), lr=0.1), **settings)
        criterion = DPLossFastGradientClipping(model, optimizer, nn.CrossEntropyLoss())

        def run() -> None:
            optimizer.zero_grad()
            criterion(model(x), y).backward()

        return run

    return {"plain": plain(), "hooks": hooks(), "ghost": ghost()}


if __name__ == "__main__":
    torch.manual_seed(0)
    serve(ways(sys.argv[1]), peak())
