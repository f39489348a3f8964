"""Gradient norms of witnesses in PyTorch, all in one batched pass and without their gradients.

    |g_i|² = Σ_layers |Σ_t a_it b_itᵀ|²,    a: a layer's inputs, b: the gradients of its outputs

(ghost norms: Goodfellow 2015, Li 2022). Linear layers and convolutions take that form, with the smaller of the Gram
matrices over t and the gradient itself; any other layer has its gradients taken one record at a time by `vmap` of that
layer alone, as Opacus does. The module that trains is not touched: a twin without its hooks shares its weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.func import functional_call, vjp, vmap

from bayesdp import errors

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""`loss(outputs, targets)` with one value for each record, such as CrossEntropyLoss(reduction="none")."""

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_MIXING = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_RANDOM = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)


class WitnessNorms:
    """`norms(inputs, targets)` → the gradient norm of each record at the weights that `module` has now.

    Args:
        module: the module that is trained, wrapped by Opacus or not.
        loss: of outputs and targets, with one value for each record.
        batch: records taken at a time.

    Bad input: a module that mixes records (BatchNorm) or draws numbers (Dropout), or a loss that is one number, gets
    `InputError`: then a record has no norm of its own.

    Examples:
        >>> import torch
        >>> from bayesdp.interop.torch_norms import WitnessNorms
        >>> norms = WitnessNorms(torch.nn.Linear(3, 2), torch.nn.CrossEntropyLoss(reduction="none"))
        >>> norms(torch.zeros(5, 3), torch.zeros(5, dtype=torch.long)).shape
        (5,)
    """

    def __init__(self, module: nn.Module, loss: Loss, *, batch: int = 512) -> None:
        inner = module._module if "_module" in module._modules else module
        self.twin, self.loss = _twin(inner), loss
        self.batch = errors.whole("batch", batch, least=1)
        for one in self.twin.modules():
            if isinstance(one, _MIXING):
                hint = "A record's gradient depends on the others of its batch. Use GroupNorm."
                raise errors.refuse("module", type(one).__name__, "to treat each record by itself", hint)
            if isinstance(one, _RANDOM) and one.p > 0:
                raise errors.refuse("module", type(one).__name__, "to draw nothing at random", "Leave dropout out.")
        self._layers = [one for one in self.twin.modules() if _own(one)]
        self._plain = all(not list(one.children()) for one in self._layers)

    def __call__(self, inputs: Any, targets: Any) -> npt.NDArray[np.float32]:
        """Args: inputs and targets, the records along the first axis. Returns (records,), before clipping."""
        parts = [
            self._squares(inputs[start : start + self.batch], targets[start : start + self.batch])
            for start in range(0, len(inputs), self.batch)
        ]
        return np.asarray(torch.cat(parts).detach().sqrt().cpu().numpy(), np.float32)

    def per_parameter(self, inputs: Any, targets: Any) -> npt.NDArray[np.float32]:
        """The norm of each record's gradient in each parameter, (records, parameters): for clipping by layer."""
        found = vmap(self._gradients)(torch.as_tensor(inputs), torch.as_tensor(targets))
        return np.asarray(
            torch.stack([one.flatten(1).norm(dim=1) for one in found], dim=1).detach().cpu().numpy(), np.float32
        )

    def _squares(self, inputs: Any, targets: Any) -> torch.Tensor:
        x, y = torch.as_tensor(inputs), torch.as_tensor(targets)
        if not self._plain:
            return self._one_by_one(x, y)
        calls: dict[nn.Module, list[tuple[tuple[Any, ...], torch.Tensor]]] = {}

        def note(layer: nn.Module, given: tuple[Any, ...], output: torch.Tensor) -> None:
            calls.setdefault(layer, []).append((given, output))

        with torch.enable_grad():
            handles = [layer.register_forward_hook(note) for layer in self._layers]
            try:
                loss = self.loss(self.twin(x), y)
            finally:
                for handle in handles:
                    handle.remove()
            if loss.shape[:1] != (len(x),):
                got = f"shape {tuple(loss.shape)}"
                raise errors.refuse("loss", self.loss, 'with a value for each record: reduction="none"', got=got)
            noted = [(layer, given, output) for layer, several in calls.items() for given, output in several]
            slopes = torch.autograd.grad(loss.sum(), [output for *_, output in noted], allow_unused=True)
        total = torch.zeros(len(x), device=x.device)
        with torch.no_grad():
            for layer, several in calls.items():
                used = [
                    (given, slope.detach())
                    for (one, given, _), slope in zip(noted, slopes, strict=True)
                    if one is layer and slope is not None
                ]
                if used and len(several) == 1:
                    total += _layer_squares(layer, tuple(a.detach() for a in used[0][0]), used[0][1])
                elif used:  # used several times: the gradients add up before they have a length
                    each = [_by_vmap(layer, tuple(a.detach() for a in given), slope) for given, slope in used]
                    total += sum((_square(torch.stack(parts).sum(0)) for parts in zip(*each, strict=True)), total * 0)
        return total

    def _gradients(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Of one record, in all trained parameters."""
        weights = {name: one for name, one in self.twin.named_parameters() if one.requires_grad}

        def loss(values: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.loss(functional_call(self.twin, values, (x[None],)), y[None]).sum()

        return tuple(torch.func.grad(loss)(weights).values())

    def _one_by_one(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        found = vmap(self._gradients)(x, y)
        return sum((_square(one) for one in found), torch.zeros(len(x), device=x.device))


def _own(layer: nn.Module) -> bool:
    """Whether a module has trained parameters of its own."""
    return any(one.requires_grad for one in layer.parameters(recurse=False))


def _twin(module: nn.Module) -> nn.Module:
    """A copy without hooks whose parameters and buffers are those of `module`."""
    shared = {id(one): one for one in (*module.parameters(), *module.buffers())}
    twin = copy.deepcopy(_bare(module), dict(shared))
    for one in twin.modules():
        for name in _HOOKS:
            getattr(one, name).clear()
    return twin


def _bare(module: nn.Module) -> nn.Module:
    for one in module.modules():
        for name in ("activations", "max_batch_len"):  # what Opacus leaves on layers between two passes
            if name in vars(one):
                raise errors.refuse("module", type(one).__name__, "to be between two steps", got="one within a step")
    return module


def _square(gradients: torch.Tensor) -> torch.Tensor:
    return gradients.flatten(1).square().sum(dim=1)


def _layer_squares(layer: nn.Module, given: tuple[torch.Tensor, ...], slope: torch.Tensor) -> torch.Tensor:
    """|gradient|² of each record in the parameters of one layer."""
    if type(layer) is nn.Linear:
        a, b = (
            given[0].flatten(1, -2) if given[0].ndim > 2 else given[0][:, None],
            slope.reshape(len(slope), -1, slope.shape[-1]),
        )
        return _outer(layer, a, b)
    if (
        type(layer) is nn.Conv2d
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
    ):
        patches = nn.functional.unfold(
            given[0], layer.kernel_size, dilation=layer.dilation, padding=layer.padding, stride=layer.stride
        )
        return _outer(layer, patches.transpose(1, 2), slope.flatten(2).transpose(1, 2))
    return sum((_square(one) for one in _by_vmap(layer, given, slope)), torch.zeros(len(slope), device=slope.device))


def _outer(layer: nn.Module, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """|Σ_t a_t b_tᵀ|² + |Σ_t b_t|² of a (records, t, inputs) and b (records, t, outputs)."""
    total = torch.zeros(len(a), device=a.device)
    if layer.weight.requires_grad:
        length, size = a.shape[1], a.shape[2] * b.shape[2]
        if length == 1:
            total += a.square().sum((1, 2)) * b.square().sum((1, 2))
        elif length * length < size:
            total += (torch.bmm(a, a.transpose(1, 2)) * torch.bmm(b, b.transpose(1, 2))).sum((1, 2))
        else:
            total += torch.bmm(a.transpose(1, 2), b).square().sum((1, 2))
    if layer.bias is not None and layer.bias.requires_grad:
        total += b.sum(dim=1).square().sum(dim=1)
    return total.clamp(min=0)


def _by_vmap(layer: nn.Module, given: tuple[torch.Tensor, ...], slope: torch.Tensor) -> list[torch.Tensor]:
    """The gradients of each record in each parameter of one layer."""
    weights = {name: one.detach() for name, one in layer.named_parameters(recurse=False) if one.requires_grad}

    def one(inputs: tuple[torch.Tensor, ...], b: torch.Tensor) -> dict[str, torch.Tensor]:
        def output(values: dict[str, torch.Tensor]) -> torch.Tensor:
            return functional_call(layer, values, tuple(a[None] for a in inputs))[0]

        found: dict[str, torch.Tensor] = vjp(output, weights)[1](b)[0]
        return found

    return list(vmap(one)(given, slope).values())
