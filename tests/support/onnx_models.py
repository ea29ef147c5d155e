# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models and their parts, for tests that write a file of their own."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
IR_VERSION = 10
FEATURES, CLASSES = 12, 3
ROWS = ("rows", "columns")  # the shape of an output: any matrix

Shape = Sequence[int | str | None] | None
Nodes = Sequence[onnx.NodeProto]


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node with its tensors in one text each; its name is made of its operator and its first output."""
    written = outputs.split()
    return helper.make_node(op, inputs.split(), written, name=f"{op.lower()}_{written[0]}", **attributes)


def ints(*values: int) -> npt.NDArray[np.int64]:
    """A constant of int64, such as a shape or axes."""
    return np.array(values, np.int64)


def choice(read: str, written: str) -> list[onnx.NodeProto]:
    """An If between Neg and Abs of one outer tensor. `zero` has to be a constant of the graph."""

    def branch(name: str, op: str) -> onnx.GraphProto:
        result = helper.make_tensor_value_info(name, 1, None)
        return helper.make_graph([helper.make_node(op, [read], [name])], name, [], [result])

    branches = {"then_branch": branch("negative", "Neg"), "else_branch": branch("absolute", "Abs")}
    return [
        helper.make_node("ReduceSum", [read], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], [written], **branches),
    ]


def adding(read: str) -> onnx.GraphProto:
    """The body of a Loop that adds an outer tensor in each round."""
    values = {"number": (7, []), "going": (9, []), "before": (1, None)}
    outputs = {"still": (9, []), "after": (1, None)}
    return helper.make_graph(
        [helper.make_node("Identity", ["going"], ["still"]), helper.make_node("Add", ["before", read], ["after"])],
        "body",
        [helper.make_tensor_value_info(name, *rest) for name, rest in values.items()],
        [helper.make_tensor_value_info(name, *rest) for name, rest in outputs.items()],
    )


def product(x: Shape = ("batch", FEATURES), kind: int = TensorProto.FLOAT, **options: Any) -> onnx.ModelProto:
    """One matrix product, [batch, 12] -> [batch, 3], of an input `x` in a type."""
    weight = np.linspace(-1, 1, FEATURES * CLASSES, dtype=np.float32).reshape(FEATURES, CLASSES)
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["y"], name="product")]
    return model(nodes, [("x", kind, x)], [("y", kind, ROWS)], {"weight": _cast(weight, kind)}, **options)


def model(
    nodes: Nodes,
    inputs: Sequence[tuple[str, int, Shape]],
    outputs: Sequence[tuple[str, int, Shape]],
    weights: dict[str, Any] | None = None,
    *,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    domains: dict[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model as it is told, unchecked. `weights`: name -> array, or a TensorProto."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(*entry) for entry in inputs],
        [helper.make_tensor_value_info(*entry) for entry in outputs],
        [_tensor(name, value) for name, value in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*entry) for entry in (domains or {}).items())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, functions=list(functions))


def _tensor(name: str, value: Any) -> onnx.TensorProto:
    if isinstance(value, onnx.TensorProto):
        value.name = name
        return value
    return numpy_helper.from_array(np.asarray(value), name)


def _cast(value: Any, kind: int) -> Any:
    if kind == TensorProto.BFLOAT16:
        return helper.make_tensor("", kind, value.shape, value.ravel().tolist())
    return value.astype(helper.tensor_dtype_to_np_dtype(kind))


def identity(kind: int, shape: Shape) -> onnx.ModelProto:
    return model([helper.make_node("Identity", ["x"], ["y"])], [("x", kind, shape)], [("y", kind, shape)])


def save_with_weights_beside(path: Path, location: str) -> None:
    """One product whose weights are in `weights.bin`. `location`: where the file says that they are."""
    onnx.save_model(
        product(), path, save_as_external_data=True, location="weights.bin", size_threshold=0, convert_attribute=False
    )
    content = onnx.load(path, load_external_data=False)
    for entry in content.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    path.write_bytes(content.SerializeToString())


def export_with_torch(path: Path, *, dynamo: bool) -> None:
    """A convolution and a product, [batch, 3, 8, 8] -> [batch, 5], by one of torch's two exporters."""
    import torch

    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5))
    example = torch.zeros(2, 3, 8, 8)
    how: dict[str, Any] = {"dynamic_axes": {"x": {0: "batch"}}}
    if dynamo:
        how = {"dynamic_shapes": ({0: torch.export.Dim("batch")},), "external_data": False, "verbose": False}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net.eval(), (example,), path, input_names=["x"], dynamo=dynamo, **how)


def save_positions(path: Path) -> Path:
    """Positions [batch, steps, 1] plus ids [batch, steps]: both are called by the same names."""
    nodes = [
        node("Cast", "ids", "numbers", to=TensorProto.FLOAT),
        node("Squeeze", "positions last", "flat"),
        node("Add", "flat numbers", "y"),
    ]
    names = ("batch", "steps")
    inputs = [("positions", TensorProto.FLOAT, (*names, 1)), ("ids", TensorProto.INT64, names)]
    onnx.save(model(nodes, inputs, [("y", TensorProto.FLOAT, names)], {"last": ints(2)}), path)
    return path


def save_lengths(path: Path, first: int | str, second: int | str) -> Path:
    """Two inputs of integers, of these lengths, and the sum of each sample."""
    nodes = [node("Concat", "first second", "both", axis=1), node("ReduceSum", "both axes", "y", keepdims=1)]
    inputs = [("first", TensorProto.INT64, ("batch", first)), ("second", TensorProto.INT64, ("batch", second))]
    onnx.save(model(nodes, inputs, [("y", TensorProto.INT64, ("batch", 1))], {"axes": ints(1)}), path)
    return path


def saved_source(path: Path) -> Path:
    """One product, in the folder of the file that is made of it."""
    source = path.with_name("source.onnx")
    onnx.save(product(), source)
    return source


def quantise_to_qdq(source: Path, path: Path, x: npt.NDArray[np.float32]) -> None:
    """A file as onnxruntime's quantiser writes it. `x`: the samples of its calibration, for an input `x`."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Samples(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.feeds = iter([{"x": x}])

        def get_next(self) -> Any:
            return next(self.feeds, None)

    quantize_static(source, path, Samples(), quant_format=QuantFormat.QDQ)
