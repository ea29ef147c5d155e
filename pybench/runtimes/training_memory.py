# SPDX-License-Identifier: Apache-2.0
"""Memory of one training step, told apart by what it is for. Bytes of tensors are counted; nothing is sampled.

Activations are the storages that a forward pass saves for the backward pass, each once, and the batch as the first
layer reads it (`torch.autograd.graph.saved_tensors_hooks`). Under autocast the batch in FP32 is workspace. Autocast
saves copies of weights as well, which are told apart by their storages, made by a cast of a parameter. Weights are
parameters and buffers. A forward pass runs while the last gradients are still there, so the peak is at least the sum of
these; the rest of it is workspace.

Does not see what a compiled pass saves. torch tells no peak of a CPU's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.workloads import STEP_PARTS, STEP_PEAK
from pybench.measure.quantity import Quantity


@dataclass(frozen=True, slots=True)
class SavedBytes:
    """What a forward pass saves for the backward pass, in bytes."""

    activations: int
    weight_copies: int


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """What is held between two steps, in bytes."""

    weights: int
    gradients: int
    optimiser: int


def held_bytes(model: nn.Module, optimiser: torch.optim.Optimizer) -> HeldBytes:
    """Call it after a step, when there are gradients and a state."""
    gradients = (parameter.grad for parameter in model.parameters() if parameter.grad is not None)
    state = (value for held in optimiser.state.values() for value in held.values() if isinstance(value, Tensor))
    return HeldBytes(_bytes((*model.parameters(), *model.buffers())), _bytes(gradients), _bytes(state))


def saved_bytes(model: nn.Module, forward: Callable[[], Tensor]) -> SavedBytes:
    """Runs `forward`, which gives a loss with gradients, and counts what it saves."""
    own = {_address(tensor) for tensor in (*model.parameters(), *model.buffers())}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.device.type != "meta" and _address(tensor) not in own:
            saved[_address(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    casts = _Casts(own)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), casts:
        loss = forward()
    copies = {_address(tensor) for tensor in casts.found}
    weight_copies = sum(size for address, size in saved.items() if address in copies)
    del loss  # until here, what is saved has its storage to itself
    return SavedBytes(sum(saved.values()) - weight_copies, weight_copies)


def step_memory(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    step: Callable[[], object],
    forward: Callable[[], Tensor] | None,
    why_no_peak: str | None,
) -> dict[str, Quantity]:
    """The metrics of one step. `step`: does one, awaited; `forward`: its first forward pass, None: what it saves cannot
    be seen; `why_no_peak`: why torch's allocator tells none, None: it does."""
    peak = None
    if why_no_peak is None:
        peak = peak_bytes(step)
    else:
        step()
    held = held_bytes(model, optimiser)
    saved = None if forward is None else saved_bytes(model, forward)
    unseen = Reason(ReasonCode.SAVED_UNSEEN, "the forward pass is compiled, or repeated for the gradients")
    silent = Reason(ReasonCode.ALLOCATOR_SILENT, why_no_peak or "")
    counted = {
        "step_weights_bytes": held.weights,
        "step_gradients_bytes": held.gradients,
        "step_optimiser_bytes": held.optimiser,
        "step_activations_bytes": None if saved is None else saved.activations,
        "step_weight_copies_bytes": None if saved is None else saved.weight_copies,
        "step_peak_bytes": peak,
    }
    parts = [value for name, value in counted.items() if name != "step_peak_bytes"]
    known = [value for value in parts if value is not None]
    rest = None if peak is None or len(known) < len(parts) else peak - sum(known)
    why = {name: silent if name == "step_peak_bytes" else unseen for name in counted}
    why["step_workspace_bytes"] = silent if peak is None else unseen
    return {name: _quantity(value, why[name]) for name, value in {**counted, "step_workspace_bytes": rest}.items()}


def no_memory_told(why: str) -> dict[str, Quantity]:
    """The metrics of a step for which there was no room."""
    return {name: Quantity(reasons=(Reason(ReasonCode.NO_ROOM_FOR_STEP, why),)) for name in (*STEP_PARTS, STEP_PEAK)}


def _quantity(value: int | None, reason: Reason) -> Quantity:
    if value is None:
        return Quantity(reasons=(reason,))
    return Quantity(value=float(value), method="of one step after the last window")


def peak_bytes(step: Callable[[], object]) -> int:
    """The most bytes that torch's allocator for GPUs has handed out at once in a step."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated())


class _Casts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps what is cast from some storages, so that no other tensor takes its place. `own`: their addresses."""

    def __init__(self, own: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Tensor] = []
        self._own = own

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and _address(args[0]) in self._own:
            self.found.append(made)
        return made


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
