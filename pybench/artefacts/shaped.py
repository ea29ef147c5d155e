# SPDX-License-Identifier: Apache-2.0
"""Making of a user's ONNX file with free dimensions fixed: whatever opens the file, or is made of it, sees the sizes.

A named dimension becomes its size wherever the graph states the name; shapes between nodes are inferred anew by whoever
needs them. Batch and sequence stay free. Nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from pybench.artefacts.request import MakeRequest
from pybench.errors import InputError
from pybench.measurement.result import Result
from pybench.onnx_file.graph import read_model
from pybench.onnx_file.inputs import Misfit, parse_sizes, with_sizes

INLINE_BYTES = 2**31 - 2**24  # of weights that still fit into one message of protobuf, with the graph
WEIGHTS_FILE = "weights.bin"


def make(request: MakeRequest, path: Path) -> Result:
    """Writes the file. Raises InputError for a size that the file does not leave free."""
    source, sizes = request.needed("onnx", "model"), parse_sizes(request.parameters["shapes"])
    declared = read_model(source).graph.fed
    try:
        stated = {value.name: value.shape or () for value in with_sizes(declared, sizes)}
    except Misfit as misfit:
        raise InputError(f"{source}: {misfit.what}", hint=misfit.hint) from misfit
    names = {
        str(before): after
        for value in declared
        for before, after in zip(value.shape or (), stated[value.name], strict=True)
        if isinstance(before, str) and isinstance(after, int)
    }
    try:
        model = onnx.load(source)
    except (OSError, DecodeError) as error:
        raise InputError(f"{source} is not a valid ONNX model ({error})") from error
    for value in model.graph.input:
        for position, size in enumerate(stated.get(value.name, ())):
            if isinstance(size, int):
                value.type.tensor_type.shape.dim[position].dim_value = size
    for dimension in _dimensions(model.graph):
        if dimension.dim_param in names:
            dimension.dim_value = names[dimension.dim_param]
    save(model, path)
    return Result(labels={"shapes": dict(sizes), "fixed_names": _plain(names)})


def _dimensions(graph: Any) -> Iterator[Any]:
    """Every dimension that the main graph and its bodies state."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        yield from value.type.tensor_type.shape.dim
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _dimensions(body)


def save(model: Any, path: Path) -> None:
    """Writes a model, its weights beside it where one message of protobuf cannot hold them."""
    if sum(len(weight.raw_data) for weight in model.graph.initializer) <= INLINE_BYTES:
        onnx.save(model, path)
        return
    onnx.save(model, path, save_as_external_data=True, location=WEIGHTS_FILE)


def _plain(names: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(names.items()))
