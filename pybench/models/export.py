# SPDX-License-Identifier: Apache-2.0
"""A torch module as one ONNX file: dynamic batch and sequence, opset 20, equal bytes for equal weights.

Uses torch's exporter (`dynamo=True`), which folds batch norms into the convolutions before them. What it records for
people (stack traces with this machine's paths) is removed, and nodes get names that people can write down. Opset 20:
from 23 on attention becomes one operator that onnxruntime does not run everywhere, and TensorRT 10 reads up to 20. A
decoder's file may take the keys and values of earlier tokens and give them back with those of the new ones; with an
empty past it reads a prompt. Does not quantise or change the precision: the file is FP32 and everything else is derived
from it.
"""

from __future__ import annotations

import ast
import logging
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from pybench.catalogue.causes import Cause
from pybench.catalogue.models import Model
from pybench.errors import UnsupportedError

OPSET = 20
OUTPUT_NAME = "logits"
CHOSEN_NAME = "likeliest_ids"
EXAMPLE_TOKENS = 16
EXAMPLE_PAST = 3
WEIGHT = ".weight"
SCOPES_KEY = "pkg.torch.onnx.name_scopes"  # where the exporter notes the modules that a node comes from


@runtime_checkable
class ContinuingDecoder(Protocol):
    """A torch module that is given keys and values and gives them back longer, as TinyLM does."""

    def past_shapes(self) -> list[tuple[int, int]]: ...

    def continued(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]: ...


@dataclass(frozen=True, slots=True)
class ModulePart:
    """A part of a torch module with one input and one output. `shape`: of the input, without the batch."""

    module: nn.Module
    input: str
    shape: tuple[int, ...]
    output: str


@runtime_checkable
class DivisibleModel(Protocol):
    """A torch module that hands out its parts by their names, as VitHeads does."""

    def part(self, name: str) -> ModulePart: ...


def export_onnx(model: nn.Module, row: Model, path: Path, metadata: Mapping[str, str]) -> None:
    """Writes `model` to `path`. `metadata`: stored in the file as its properties (short texts)."""
    batch = _batch()
    if row.takes_ids:
        example = torch.zeros(2, EXAMPLE_TOKENS, dtype=torch.int64)
        dynamic = {0: batch, 1: torch.export.Dim("tokens", min=2, max=row.longest_sequence)}
    else:
        example = torch.zeros(2, *row.shape)
        dynamic = {0: batch}
    given = Example((example,), (dynamic,), (row.input,), (OUTPUT_NAME,))
    export_module(model, given, path, metadata)


def export_part(model: nn.Module, name: str, path: Path, metadata: Mapping[str, str]) -> None:
    """Writes one part of a model to `path`: what `ModelParts` calls so.

    Raises UnsupportedError for a model that cannot be taken apart. Code: `no_parts`.
    """
    if not isinstance(model, DivisibleModel):
        raise UnsupportedError(
            f"{type(model).__name__} cannot be taken apart",
            code=Cause.NO_PARTS,
            hint="give the model `part`, as pybench/models/vit_heads.py has it",
        )
    part = model.part(name)
    given = Example((torch.zeros(2, *part.shape),), ({0: _batch()},), (part.input,), (part.output,))
    export_module(part.module, given, path, metadata)


def export_decoder(
    model: nn.Module, input_name: str, longest: int | None, path: Path, metadata: Mapping[str, str]
) -> None:
    """Writes a decoder with its cache: ids [N, T] and a past -> logits [N, V], the likeliest ids [N, 1], and the past
    with these tokens. Each tensor of a past is [N, heads, P, width]; P may be 0. `longest`: tokens of a sequence.

    Raises UnsupportedError for a model that has no `continued`. Code: `no_cache`.
    """
    if not isinstance(model, ContinuingDecoder):
        raise UnsupportedError(
            f"{type(model).__name__} gives back no keys and values",
            code=Cause.NO_CACHE,
            hint="give the model `past_shapes` and `continued`, as pybench/models/tinylm.py has them",
        )
    batch = _batch()
    tokens, seen = torch.export.Dim("tokens", min=1, max=longest), torch.export.Dim("past", min=0, max=longest)
    past = [torch.zeros(2, heads, EXAMPLE_PAST, width) for heads, width in model.past_shapes()]
    given = Example(
        (torch.zeros(2, EXAMPLE_TOKENS, dtype=torch.int64), past),
        ({0: batch, 1: tokens}, [{0: batch, 2: seen}] * len(past)),
        (input_name, *(f"past_{index}" for index in range(len(past)))),
        (OUTPUT_NAME, CHOSEN_NAME, *(f"present_{index}" for index in range(len(past)))),
    )
    export_module(_Continuing(model), given, path, metadata)


@dataclass(frozen=True, slots=True)
class Example:
    """What an export follows: arguments, which of their sizes are free, and the names of inputs and outputs."""

    arguments: tuple[Any, ...]
    free: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class _Continuing(nn.Module):
    """A decoder that chooses the likeliest ids itself, so that they need not leave the device."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        logits, present = cast(ContinuingDecoder, self.decoder).continued(ids, past)
        return logits, logits.argmax(-1, keepdim=True), *present


def _batch() -> torch.export.Dim:
    return torch.export.Dim("batch", min=1, max=65_536)


def export_module(model: nn.Module, given: Example, path: Path, metadata: Mapping[str, str]) -> None:
    """Writes any module to `path` in the same way."""
    try:
        import onnx
        import onnxscript  # noqa: F401  (torch's exporter needs it and would only say so deep inside)
    except ImportError as error:
        raise UnsupportedError(
            f"exporting to ONNX needs {error.name}",
            code=Cause.NO_PACKAGE,
            names=("onnx",),
            hint="install pybench-campaign[onnx]",
        ) from error
    with warnings.catch_warnings(), _quiet("torch.onnx", "onnxscript"):
        warnings.simplefilter("ignore")  # deprecations inside torch's own exporter
        program = torch.onnx.export(
            model.eval(),
            given.arguments,
            dynamo=True,
            dynamic_shapes=given.free,
            opset_version=OPSET,
            verbose=False,
            input_names=given.inputs,
            output_names=given.outputs,
            external_data=False,
        )
    if program is None:  # for the type checker: only dynamo=False returns nothing
        raise UnsupportedError("torch exported nothing", code=Cause.EXPORT_FAILED)
    proto = program.model_proto
    _name_nodes(proto)
    _remove_traces(proto)
    for key in sorted(metadata):
        proto.metadata_props.add(key=key, value=metadata[key])
    onnx.save(proto, path)


def _name_nodes(proto: Any) -> None:
    """Names each node after the module it comes from and its operator, as in `layer1.0.conv2/Conv`; the second one of
    a module gets `_2`. The exporter's own names are numbers of its passes, which another version counts differently.

    A convolution with a batch norm folded into it is named by its weight, for the exporter calls it after the norm.
    A weight that several nodes read names none of them: the exporter merges equal weights, such as those of new norms.
    """
    initializers = {initializer.name for initializer in proto.graph.initializer}
    readers = Counter(name for node in proto.graph.node for name in set(node.input))
    taken: dict[str, int] = {}
    for node in proto.graph.node:
        own = [name for name in node.input if name in initializers and readers[name] == 1]
        weights = [name for name in own if name.endswith(WEIGHT)]
        name = f"{weights[0].removesuffix(WEIGHT) if weights else _scope(node)}/{node.op_type}".lstrip("/")
        taken[name] = taken.get(name, 0) + 1
        node.name = name if taken[name] == 1 else f"{name}_{taken[name]}"


def _scope(node: Any) -> str:
    """The innermost module of a node, dotted; empty for the model itself."""
    noted = {entry.key: entry.value for entry in node.metadata_props}.get(SCOPES_KEY, "[]")
    scopes = [scope for scope in ast.literal_eval(noted)[:-1] if not scope.startswith("_")]  # the last: the operator
    return str(scopes[-1]) if scopes else ""


def _remove_traces(proto: object) -> None:
    """Clears what the exporter noted for people: it holds paths of this machine and differs between machines."""
    import onnx

    if not isinstance(proto, onnx.ModelProto):
        raise TypeError(type(proto))
    proto.ClearField("metadata_props")
    proto.graph.ClearField("metadata_props")
    graph = proto.graph
    for item in (*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer, *proto.functions):
        item.ClearField("metadata_props")
        item.ClearField("doc_string")


class _quiet:  # noqa: N801  (used as a verb)
    """Raises some loggers to ERROR for a while: exporters log each pass."""

    def __init__(self, *names: str) -> None:
        self._loggers = [logging.getLogger(name) for name in names]
        self._levels = [logger.level for logger in self._loggers]

    def __enter__(self) -> None:
        for logger in self._loggers:
            logger.setLevel(logging.ERROR)

    def __exit__(self, *_: object) -> None:
        for logger, level in zip(self._loggers, self._levels, strict=True):
            logger.setLevel(level)
