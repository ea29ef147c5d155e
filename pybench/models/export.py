# SPDX-License-Identifier: Apache-2.0
"""A torch module as one ONNX file: dynamic batch and sequence, opset 20, equal bytes for equal weights.

Uses torch's exporter (`dynamo=True`). What it records for people (stack traces with this machine's paths) is removed.
Opset 20: from 23 on attention becomes one operator that onnxruntime does not run everywhere, and TensorRT 10 reads up
to 20. Does not quantise or change the precision: the file is FP32 and everything else is derived from it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from pybench.errors import UnsupportedError
from pybench.models.catalogue import Description

OPSET = 20
OUTPUT_NAME = "logits"
EXAMPLE_TOKENS = 16


def export_onnx(model: nn.Module, description: Description, path: Path, metadata: Mapping[str, str]) -> None:
    """Writes `model` to `path`. `metadata`: stored in the file as its properties (short texts)."""
    try:
        import onnx
        import onnxscript  # noqa: F401  (torch's exporter needs it and would only say so deep inside)
    except ImportError as error:
        raise UnsupportedError(
            f"exporting to ONNX needs {error.name}", code="no_onnx", hint="install pybench[onnx]"
        ) from error
    batch = torch.export.Dim("batch", min=1, max=65_536)
    if description.takes_ids:
        example = torch.zeros(2, EXAMPLE_TOKENS, dtype=torch.int64)
        dynamic = {0: batch, 1: torch.export.Dim("tokens", min=2, max=description.positions)}
    else:
        example = torch.zeros(2, *description.input_shape)
        dynamic = {0: batch}
    with warnings.catch_warnings(), _quiet("torch.onnx", "onnxscript"):
        warnings.simplefilter("ignore")  # deprecations inside torch's own exporter
        program = torch.onnx.export(
            model.eval(), (example,), dynamo=True, dynamic_shapes=(dynamic,), opset_version=OPSET, verbose=False,
            input_names=[description.input_name], output_names=[OUTPUT_NAME], external_data=False,
        )  # fmt: skip
    if program is None:  # for the type checker: only dynamo=False returns nothing
        raise UnsupportedError("torch exported nothing", code="export_failed")
    proto = program.model_proto
    _remove_traces(proto)
    for key in sorted(metadata):
        proto.metadata_props.add(key=key, value=metadata[key])
    onnx.save(proto, path)


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
