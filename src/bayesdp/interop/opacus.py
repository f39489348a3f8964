"""Opacus: Bayesian and per-instance promises for an existing loop, beside its own DP accountant's.

    engine = PrivacyEngine()
    log = attach(engine, module=net, loss=CrossEntropyLoss(reduction="none"), holdout=(x, y), watch=(x_me, y_me))
    net, optimizer, loader = engine.make_private(module=net, optimizer=optimizer, ...)    # hooks, ghost or functorch
    ... train as before ...
    log.guarantees, log.report("page.html"), engine.get_epsilon(1e-5)

`attach` puts an accountant, registered with Opacus as "bayesdp", in the place of the engine's. Before each update it
takes the gradient norms of all witnesses at the weights that the step started from, in one batched pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from opacus.accountants import IAccountant
from opacus.accountants.registry import register_accountant
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping, DPPerLayerOptimizer

from bayesdp import errors
from bayesdp.accountant import Curve, WorstCaseAccountant
from bayesdp.guarantee import Guarantee
from bayesdp.interop.torch_norms import Loss, WitnessNorms
from bayesdp.interop.training_log import TrainingLog

ASSUMPTIONS = (
    "Opacus sampled the batches and drew the noise: by Poisson sampling (poisson_sampling=True), and from a generator "
    "that is not cryptographic unless secure_mode=True.",
    "Witnesses were drawn before the run; outsiders are of the same distribution and never trained on.",
)
_KNOWN = (DPOptimizer, DPOptimizerFastGradientClipping, DPPerLayerOptimizer)

Pair = tuple[Any, Any]
"""Inputs and targets, the records along the first axis."""


class BayesdpAccountant(IAccountant):  # type: ignore[misc]  # Opacus ships no types
    """Opacus' interface to `WorstCaseAccountant` (PLD), and to a log with witnesses once `attach` has given it one."""

    def __init__(self) -> None:
        super().__init__()
        self.witnesses: _Witnesses | None = None

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """One step more of Poisson rate `sample_rate`."""
        z, q = errors.noise("noise_multiplier", noise_multiplier), errors.rate("sample_rate", sample_rate)
        if self.history and self.history[-1][:2] == (z, q):
            self.history[-1] = (z, q, self.history[-1][2] + 1)
        else:
            self.history.append((z, q, 1))

    def get_epsilon(self, delta: float, **_: Any) -> float:
        """The DP ε at δ, rounded up (B11)."""
        account = WorstCaseAccountant()
        for z, q, count in self.history:
            account.step(noise_multiplier=z, sampling_rate=q, steps=count)
        return account.epsilon(delta) if self.history else 0.0

    def __len__(self) -> int:
        return sum(count for *_, count in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Its name in Opacus' registry."""
        return "bayesdp"

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[DPOptimizer], None]:
        """Called by Opacus after clipping and noise, before the weights move."""

        def hook(optimizer: DPOptimizer) -> None:
            if type(optimizer) not in _KNOWN:
                expected = "to clip flat or per layer, on one machine"
                raise errors.refuse(
                    "clipping", type(optimizer).__name__, expected, "Its noise is counted in another way."
                )
            if optimizer.accumulated_iterations != 1:
                got = f"{optimizer.accumulated_iterations} batches"
                hint = "A record may be in several of them. Use Opacus' BatchMemoryManager."
                raise errors.unmet("optimizer", None, "one batch a step", got, hint)
            if self.witnesses is not None:
                self.witnesses.measure(optimizer, sample_rate)
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)

        return hook


register_accountant("bayesdp", BayesdpAccountant, force=True)


class _Witnesses:
    """Who is measured at every step, and where that is written down."""

    def __init__(self, log: TrainingLog, norms: WitnessNorms, **given: Pair | None) -> None:
        self.log, self.norms = log, norms
        self.sizes = {name: len(pair[0]) for name, pair in given.items() if pair is not None}
        pairs = [pair for pair in given.values() if pair is not None]
        self.inputs, self.targets = (_joined([pair[i] for pair in pairs]) for i in range(2))

    def measure(self, optimizer: DPOptimizer, rate: float) -> None:
        """All norms in one pass, charged."""
        most = optimizer.max_grad_norm
        if isinstance(optimizer, DPPerLayerOptimizer):
            limits = np.asarray(optimizer.max_grad_norms, np.float32)
            each = self.norms.per_parameter(self.inputs, self.targets)
            found, most = np.linalg.norm(np.minimum(each, limits), axis=1), math.hypot(*limits.tolist())
        else:
            found = self.norms(self.inputs, self.targets)
        found = np.where(np.isnan(found), np.float32(np.inf), found)
        ends = np.cumsum(list(self.sizes.values()))[:-1]
        parts = dict(zip(self.sizes, np.split(found, ends), strict=True))
        self.log.step(noise_multiplier=optimizer.noise_multiplier, sampling_rate=rate, clip_norm=float(most), **parts)


def _joined(parts: Sequence[Any]) -> Any:
    import torch

    return torch.cat([torch.as_tensor(one) for one in parts])


class Attached:
    """What `attach` returns: the promises of the loop so far."""

    def __init__(self, log: TrainingLog) -> None:
        self.log = log

    @property
    def guarantees(self) -> list[Guarantee]:
        """One per notion: "dp"; "bdp" with a holdout or members; "per-instance" for each watched record."""
        return self.log.guarantees

    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε; None without a holdout and members."""
        return self.log.curve()

    def report(self, path: str | Path, *, title: str = "An Opacus training loop") -> Path:
        """Write the page, or JSON for a name that ends so. Returns the path."""
        return self.log.report(path, title=title)


def attach(
    privacy_engine: Any,
    *,
    module: Any,
    loss: Loss,
    holdout: Pair | None = None,
    members: Pair | None = None,
    watch: Pair | None = None,
    delta: float = 1e-5,
    coverage: float | None = None,
    total_steps: int | None = None,
    batch: int = 512,
) -> Attached:
    """Give an Opacus loop the Bayesian and per-instance promises; call it before `make_private`.

    Args:
        privacy_engine: an Opacus `PrivacyEngine` that has made nothing private yet.
        module: the module that will be trained.
        loss: of outputs and targets with one value for each record, such as CrossEntropyLoss(reduction="none"); what
            the loop's own loss is the mean or the sum of.
        holdout: (inputs, targets) of people of the same distribution who are never trained on.
        members: (inputs, targets) of training records, drawn at random before the run.
        watch: (inputs, targets) of named records whose own promise is wanted.
        delta: of all promises.
        coverage: the share of people that the Bayesian promise is for; None: 0.9.
        total_steps: how many steps there will be; None: fixed without looking.
        batch: witnesses taken at a time.

    Returns:
        an `Attached`: `guarantees`, `curve()`, `report(path)`.

    Bad input: no witnesses, an engine that was used, a module that mixes records (see `torch_norms`).
    """
    if privacy_engine.dataset is not None or len(privacy_engine.accountant):
        raise errors.refuse("privacy_engine", privacy_engine, "to be attached to before make_private", got="a used one")
    given = {"outsiders": holdout, "members": members, "watched": watch}
    if all(pair is None for pair in given.values()):
        raise errors.unmet("holdout", None, "records to measure: holdout, members or watch", "none")
    for name, pair in given.items():
        if pair is not None and (len(pair) != 2 or len(pair[0]) != len(pair[1]) or not len(pair[0])):
            raise errors.refuse(name, pair, "to be (inputs, targets) of at least one record", got="others")
    log = TrainingLog(delta=delta, coverage=coverage, total_steps=total_steps, assumptions=ASSUMPTIONS)
    accountant = BayesdpAccountant()
    accountant.witnesses = _Witnesses(log, WitnessNorms(module, loss, batch=batch), **given)
    privacy_engine.accountant = accountant
    return Attached(log)
