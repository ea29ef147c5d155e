# SPDX-License-Identifier: Apache-2.0
"""Automatic mixed precision of a training: where torch casts, and the loss scale that FP16 needs.

As in torch's own examples, weights stay in FP32 and operators cast under autocast. With FP16 the loss is scaled so that
small gradients do not vanish; a step whose gradients overflow is skipped, and the scale is halved.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.refusals import refuse_precision
from pybench.catalogue.runtimes import RUNTIMES

_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class MixedPrecision:
    """One training's way to compute. Raises UnsupportedError for a precision that this device does not train in.

    `precision`: `fp32`, `amp-bf16` or `amp-fp16`; None: the usual one, `amp-bf16` on a GPU and `fp32` on a CPU.
    """

    def __init__(self, precision: str | None, device: torch.device) -> None:
        precision = precision or ("amp-bf16" if device.type == "cuda" else "fp32")
        trainer = next(row for row in RUNTIMES.values() if row.trains)
        refuse_precision(trainer, None, precision, has_gpu=device.type == "cuda", training=True)
        contract = PRECISIONS[precision]
        self._device = device.type
        self._type = _TYPES[contract.floating] if contract.autocast else None
        self._scaler = torch.amp.GradScaler(device.type, enabled=self._type is torch.float16)

    def casts(self) -> torch.autocast:
        """Around the forward pass and the loss; without effect in FP32."""
        return torch.autocast(self._device, self._type, enabled=self._type is not None)

    def backward(self, loss: Tensor) -> None:
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def step(
        self, optimiser: torch.optim.Optimizer, clipped: Iterable[nn.Parameter] = (), norm: float | None = None
    ) -> None:
        """One step of the optimiser. `norm`: above it the gradients of `clipped` are shortened, unscaled."""
        if norm is not None:
            self._scaler.unscale_(optimiser)
            nn.utils.clip_grad_norm_(clipped, norm)
        self._scaler.step(optimiser)
        self._scaler.update()
