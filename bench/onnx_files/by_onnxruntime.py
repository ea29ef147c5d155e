# SPDX-License-Identifier: Apache-2.0
"""Files of onnxruntime's own tools: quantisers, the optimisers of graphs, its own format."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # where tests/ is

import numpy as np
import onnx
import onnxruntime
from made import made
from onnx import helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from tests.support.onnx_files import write
from tests.support.onnx_models import FEATURES, model, product

ORT = f"onnxruntime {onnxruntime.__version__}"
logging.getLogger().setLevel(logging.ERROR)


class Samples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        self.feeds: Iterator[Any] = iter([{"x": np.linspace(-1, 1, 4 * FEATURES, dtype=np.float32).reshape(4, -1)}])

    def get_next(self) -> Any:
        return next(self.feeds, None)


def source(path: Path) -> Path:
    onnx.save(product(), path.with_name("source.onnx"))
    return path.with_name("source.onnx")


@made("ort-static-qdq", f"{ORT}, quantize_static", "Q/DQ nodes")
def _(path: Path) -> None:
    quantize_static(source(path), path, Samples(), quant_format=QuantFormat.QDQ)


@made("ort-static-operators", f"{ORT}, quantize_static", "QLinearMatMul")
def _(path: Path) -> None:
    quantize_static(source(path), path, Samples(), quant_format=QuantFormat.QOperator)


@made("ort-static-int16", f"{ORT}, quantize_static", "16-bit activations, Q/DQ of com.microsoft")
def _(path: Path) -> None:
    quantize_static(source(path), path, Samples(), activation_type=QuantType.QUInt16, weight_type=QuantType.QInt8,
                    extra_options={"UseQDQContribOps": True})  # fmt: skip


@made("ort-dynamic", f"{ORT}, quantize_dynamic", "DynamicQuantizeLinear, MatMulInteger")
def _(path: Path) -> None:
    quantize_dynamic(source(path), path)


@made("ort-four-bits", f"{ORT}, MatMulNBitsQuantizer", "weights in 4 bits: MatMulNBits of com.microsoft")
def _(path: Path) -> None:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    content = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        [("x", 1, ["n", 64])], [("y", 1, ["n", 32])], {"w": np.ones((64, 32), np.float32)},
    )  # fmt: skip
    quantiser = MatMulNBitsQuantizer(content, block_size=32)
    quantiser.process()
    quantiser.model.save_model_to_file(str(path))


@made("ort-float16", f"{ORT}, transformers.float16", "weights, input and output in FP16")
def _(path: Path) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(product()), path)


@made("ort-fused", f"{ORT}, transformers.optimizer", "fused operators of com.microsoft")
def _(path: Path) -> None:
    from onnxruntime.transformers import optimizer

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"), helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Div", ["c", "root"], ["d"]), helper.make_node("Erf", ["d"], ["e"]),
        helper.make_node("Add", ["e", "one"], ["f"]), helper.make_node("Mul", ["c", "f"], ["g"]),
        helper.make_node("Mul", ["g", "half"], ["y"]),
    ]  # fmt: skip
    weights = {"w": np.ones((8, 8), np.float32), "b": np.ones(8, np.float32), "root": np.float32(2**0.5),
               "one": np.float32(1), "half": np.float32(0.5)}  # fmt: skip
    plain = path.with_name("plain.onnx")
    onnx.save(model(nodes, [("x", 1, ["n", 8])], [("y", 1, ["n", 8])], weights, opset=17, ir_version=8), plain)
    optimizer.optimize_model(str(plain), "bert", num_heads=0, hidden_size=0).save_model_to_file(str(path))


@made("ort-optimised", f"{ORT}, optimized_model_filepath", "blocked convolutions of com.microsoft.nchwc")
def _(path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    torch_file = write("torch-by-tracing", path.parent / "source")
    onnxruntime.InferenceSession(torch_file, options, providers=["CPUExecutionProvider"])


@made("ort-format", f"{ORT}, session.save_model_format", "onnxruntime's own format, a flatbuffer")
def _(path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(source(path), options, providers=["CPUExecutionProvider"])
