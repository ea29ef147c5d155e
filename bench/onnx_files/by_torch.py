# SPDX-License-Identifier: Apache-2.0
"""Files of torch's two exporters: by TorchScript's tracing, and by torch.export (`dynamo`)."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from made import made
from torch import Tensor, nn

TRACING = f"torch {torch.__version__}, TorchScript"
DYNAMO = f"torch {torch.__version__}, dynamo"
logging.getLogger("torch.onnx").setLevel(logging.ERROR)
torch.manual_seed(1)

BATCH = torch.export.Dim("batch", min=1, max=64)


class Convolutions(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))


class Words(nn.Module):
    """Token ids and their mask through one layer of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.head(self.layer(self.embedding(input_ids) * attention_mask.unsqueeze(-1)).mean(1))


class Recurrent(nn.Module):
    """Steps lead, as in torch's default: [steps, batch, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class Branches(nn.Module):
    """A branch that captures a tensor of the outer graph."""

    def forward(self, x: Tensor) -> Tensor:
        doubled = x * 2
        return torch.cond(x.sum() > 0, lambda a: a + doubled, lambda a: a - doubled, (x,))


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(torch.nn.functional.gelu(self.first(x))))


def export(net: nn.Module, examples: tuple[Tensor, ...], path: Path, *, dynamo: bool, **how: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            how = {"verbose": False, "external_data": False, **how}
        torch.onnx.export(net.eval(), examples, path, dynamo=dynamo, **how)


def trace(net: nn.Module, examples: tuple[Tensor, ...], path: Path, **how: Any) -> None:
    export(net, examples, path, dynamo=False, input_names=["x"], **how)


@made("torch-tracing-opset-9", TRACING, "opset 9, batch free")
def _(path: Path) -> None:
    trace(Convolutions(), (torch.zeros(2, 3, 8, 8),), path, opset_version=9, dynamic_axes={"x": {0: "batch"}})


@made("torch-tracing-fixed", TRACING, "every size fixed, batch 2")
def _(path: Path) -> None:
    trace(Convolutions(), (torch.zeros(2, 3, 8, 8),), path)


@made("torch-tracing-lstm", TRACING, "batch is dimension 1, steps lead")
def _(path: Path) -> None:
    trace(Recurrent(), (torch.zeros(5, 2, 8),), path, dynamic_axes={"x": {0: "steps", 1: "batch"}})


@made("torch-tracing-ids", TRACING, "two int64 inputs, batch and sequence free")
def _(path: Path) -> None:
    ids, mask = torch.zeros(2, 7, dtype=torch.int64), torch.ones(2, 7, dtype=torch.int64)
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "batch", 1: "sequence"} for name in names}
    export(Words(), (ids, mask), path, dynamo=False, input_names=names, dynamic_axes=axes)


@made("torch-tracing-anonymous", TRACING, "no names: inputs are onnx::Conv_0 or input.1")
def _(path: Path) -> None:
    export(Convolutions(), (torch.zeros(2, 3, 8, 8),), path, dynamo=False, dynamic_axes={"input.1": [0]})


@made("torch-dynamo", DYNAMO, "batch free")
def _(path: Path) -> None:
    export(Convolutions(), (torch.zeros(2, 3, 8, 8),), path, dynamo=True, dynamic_shapes=({0: BATCH},))


@made("torch-dynamo-external", DYNAMO, "weights in model.onnx.data")
def _(path: Path) -> None:
    net = Convolutions()
    export(net, (torch.zeros(2, 3, 8, 8),), path, dynamo=True, dynamic_shapes=({0: BATCH},), external_data=True)


@made("torch-dynamo-cond", DYNAMO, "If, whose branches capture outer tensors")
def _(path: Path) -> None:
    export(Branches(), (torch.ones(2, 4),), path, dynamo=True)


@made("torch-dynamo-gelu-norm", DYNAMO, "newest opset: Gelu and LayerNormalization")
def _(path: Path) -> None:
    export(Normalised(), (torch.ones(2, 8),), path, dynamo=True, dynamic_shapes=({0: BATCH},), opset_version=23)


@made("torch-dynamo-functions", DYNAMO, "each module is a local function")
def _(path: Path) -> None:
    how = {"dynamic_shapes": ({0: BATCH},), "export_modules_as_functions": True}
    try:
        export(Normalised(), (torch.ones(2, 8),), path, dynamo=True, **how)
    except TypeError:  # an option of some versions of torch
        export(Normalised(), (torch.ones(2, 8),), path, dynamo=True, dynamic_shapes=({0: BATCH},), optimize=False)


for word in ("float16", "bfloat16", "float64"):

    @made(f"torch-dynamo-{word}", DYNAMO, f"weights and input in {word}")
    def _(path: Path, word: str = word) -> None:
        kind = getattr(torch, word)
        net, example = Normalised().to(kind), torch.ones(2, 8, dtype=kind)
        export(net, (example,), path, dynamo=True, dynamic_shapes=({0: BATCH},))
