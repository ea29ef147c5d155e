# SPDX-License-Identifier: Apache-2.0
"""Bytes that are no model, weights in other files, and what exporters and tools write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from tests.support.onnx_files import named
from tests.support.onnx_models import (
    FEATURES,
    IR_VERSION,
    export_with_torch,
    product,
    quantise_to_qdq,
    save_with_weights_beside,
    saved_source,
)


@named.model("plain")
def _() -> onnx.ModelProto:
    return product()


# --- bytes that are no model, or a part of one ----------------------------------------------------------------------


@named.file("empty")
def _(path: Path) -> None:
    path.touch()


@named.file("truncated")
def _(path: Path) -> None:
    content = product().SerializeToString()
    path.write_bytes(content[: len(content) * 2 // 3])


@named.file("corrupt")
def _(path: Path) -> None:
    content = bytearray(product().SerializeToString())
    content[len(content) // 4 :: 3] = b"\xff" * len(content[len(content) // 4 :: 3])
    path.write_bytes(bytes(content))


@named.file("text")
def _(path: Path) -> None:
    path.write_text("<!DOCTYPE html>\n<html><body>404: Not Found</body></html>\n")


@named.file("git-lfs-pointer")
def _(path: Path) -> None:
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 102170\n")


@named.file("torch-checkpoint")
def _(path: Path) -> None:
    import torch

    torch.save({"weight": torch.zeros(3)}, path)


@named.file("onnxruntime-format")
def _(path: Path) -> None:
    import onnxruntime

    source = saved_source(path)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


@named.file("directory")
def _(path: Path) -> None:
    path.mkdir()


@named.file("unreadable")
def _(path: Path) -> None:
    onnx.save(product(), path)
    path.chmod(0)


@named.file("no-graph")
def _(path: Path) -> None:
    path.write_bytes(onnx.ModelProto(ir_version=IR_VERSION, producer_name="nobody").SerializeToString())


# --- weights beside the file ----------------------------------------------------------------------------------------


@named.file("external-data")
def _(path: Path) -> None:
    save_with_weights_beside(path, "weights.bin")


@named.file("external-data-missing")
def _(path: Path) -> None:
    save_with_weights_beside(path, "weights.bin")
    path.with_name("weights.bin").unlink()


@named.file("external-data-short")
def _(path: Path) -> None:
    save_with_weights_beside(path, "weights.bin")
    path.with_name("weights.bin").write_bytes(b"\0" * 7)


@named.file("external-data-outside")
def _(path: Path) -> None:
    save_with_weights_beside(path, "../weights.bin")
    path.with_name("weights.bin").rename(path.parent.parent / "weights.bin")


@named.model("weight-truncated")
def _() -> onnx.ModelProto:
    content = product()
    content.graph.initializer[0].raw_data = content.graph.initializer[0].raw_data[:50]
    return content


@named.model("weight-too-long")
def _() -> onnx.ModelProto:
    content = product()
    content.graph.initializer[0].raw_data += b"\0" * 4
    return content


@named.model("weight-short-of-floats")
def _() -> onnx.ModelProto:
    content = product()
    weight = content.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.float_data.extend([0.5] * 35)
    return content


@named.file("external-data-length")
def _(path: Path) -> None:
    save_with_weights_beside(path, "weights.bin")
    content = onnx.load(path, load_external_data=False)
    next(each for each in content.graph.initializer[0].external_data if each.key == "length").value = "140"
    onnx.save(content, path)


@named.model("output-without-shape")
def _() -> onnx.ModelProto:
    content = product()
    content.graph.output[0].type.tensor_type.ClearField("shape")
    return content


# --- exporters and tools --------------------------------------------------------------------------------------------


@named.file("torch-by-tracing")
def _(path: Path) -> None:
    export_with_torch(path, dynamo=False)


@named.file("torch-by-dynamo")
def _(path: Path) -> None:
    export_with_torch(path, dynamo=True)


@named.file("quantised-to-qdq")
def _(path: Path) -> None:
    source = saved_source(path)
    quantise_to_qdq(source, path, np.linspace(-1, 1, 4 * FEATURES, dtype=np.float32).reshape(4, FEATURES))


@named.file("quantised-dynamically")
def _(path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    source = saved_source(path)
    quantize_dynamic(source, path)
