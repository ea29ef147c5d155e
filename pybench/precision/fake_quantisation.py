# SPDX-License-Identifier: Apache-2.0
"""Quantisation-aware training of torch models: INT8 rounding in the forward pass, whose export is clean Q/DQ.

    model = prepare(model)                  # batch norms folded, convolutions and linear layers rounded
    ... train a little, at a low rate ...
    freeze(model); export                   # torch's exporter writes QuantizeLinear and DequantizeLinear

Symmetric as everywhere here. Weights have a scale an output channel, from the weights of the moment. Each layer's input
has one scale, from a moving average of largest magnitudes that `freeze` stops. Gradients pass rounding unchanged inside
the range and are 0 outside (straight-through, Bengio 2013; Jacob et al. 2018, arXiv:1712.05877):
`torch.fake_quantize_*`. While it is exported, a module writes the two ONNX operators by name instead. Torch 2.15 cannot
export its own rounding of a whole tensor, nor modelopt's modules. Inputs of residual adds are not rounded here, and FP8
has no such operator in torch: files exported so are measured as they are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.fusion import fuse_conv_bn_eval

LARGEST = 127
AVERAGING = 0.1  # of a batch in the moving average, as in `calibration`
OPSET = 20  # of the exported operators: that of `pybench.models.export`
LEAST = 1e-8  # of a magnitude: a scale must be above 0


class RoundedWeight(nn.Module):
    """A weight as INT8 codes say it: [outputs, ...] -> the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.scale: Tensor | None = None  # once frozen

    def forward(self, weight: Tensor) -> Tensor:
        scale = self.scales(weight) if self.scale is None else self.scale
        if torch.compiler.is_exporting():
            return _pair(weight, scale, axis=0)
        zeros = torch.zeros(len(weight), dtype=torch.int32, device=weight.device)
        return torch.fake_quantize_per_channel_affine(weight, scale, zeros, 0, -LARGEST - 1, LARGEST)

    def scales(self, weight: Tensor) -> Tensor:
        """One for each output."""
        return weight.detach().abs().reshape(len(weight), -1).amax(1).clamp(min=LEAST) / LARGEST


class RoundedInput(nn.Module):
    """An activation as INT8 codes say it; watches its range until it is frozen."""

    amax: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("amax", torch.zeros(()))
        self.frozen = False
        self.scale = torch.ones(())  # a constant of the export; set by `freeze`

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            return _pair(x, self.scale)
        if self.training and not self.frozen:
            top = x.detach().abs().amax()
            self.amax.copy_(torch.where(self.amax == 0, top, self.amax + AVERAGING * (top - self.amax)))
        scale = self.amax.clamp(min=LEAST) / LARGEST
        zero = torch.zeros((), dtype=torch.int32, device=x.device)
        return torch.fake_quantize_per_tensor_affine(x, scale, zero, -LARGEST - 1, LARGEST)


class Rounded(nn.Module):
    """A convolution or linear layer between its rounded input and its rounded weight."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.input = RoundedInput()
        self.layer = layer
        parametrize.register_parametrization(layer, "weight", RoundedWeight(), unsafe=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(self.input(x))
        return out


def prepare(model: nn.Module) -> nn.Module:
    """Folds batch norms into the convolutions before them and rounds every Conv and Linear, in place.

    A batch norm is folded where it is registered right behind its convolution, as in all built-in models; others stay.
    """
    model.eval()
    _fold(model)
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear):
                setattr(parent, name, Rounded(layer))
    return model


def freeze(model: nn.Module) -> nn.Module:
    """Ends the training: scales become constants and nothing has gradients, or an exporter could not write it.

    Returns the model, in evaluation mode.
    """
    for module in model.modules():
        if isinstance(module, RoundedInput):
            module.scale = module.amax.clamp(min=LEAST) / LARGEST
            module.frozen = True
        elif isinstance(module, Rounded):
            weights = module.layer.parametrizations.weight  # type: ignore[union-attr]
            weights[0].scale = weights[0].scales(weights.original)  # type: ignore[union-attr,index]
    return model.requires_grad_(False).eval()


def _pair(x: Tensor, scale: Tensor, axis: int | None = None) -> Tensor:
    """QuantizeLinear and DequantizeLinear as the exporter is to write them."""
    zero = torch.zeros_like(scale, dtype=torch.int8)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    codes = torch.onnx.ops.symbolic(
        "QuantizeLinear", (x, scale, zero), attributes, dtype=torch.int8, shape=x.shape, version=OPSET
    )
    return torch.onnx.ops.symbolic(
        "DequantizeLinear", (codes, scale, zero), attributes, dtype=x.dtype, shape=x.shape, version=OPSET
    )


def _fold(model: nn.Module) -> None:
    for parent in list(model.modules()):
        children = list(parent.named_children())
        for (name, layer), (after, norm) in pairwise(children):
            if isinstance(layer, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(parent, name, fuse_conv_bn_eval(layer, norm))
                setattr(parent, after, nn.Identity())
