# SPDX-License-Identifier: Apache-2.0
"""Versions, operators, inputs, and rules that a graph breaks."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.onnx_files import named
from tests.support.onnx_models import (
    CLASSES,
    FEATURES,
    OPSET,
    ROWS,
    adding,
    choice,
    identity,
    model,
    product,
)

# --- versions and operators -----------------------------------------------------------------------------------------


for _name, _versions in {
    "opset-7": {"opset": 7, "ir_version": 3},
    "opset-newest": {"opset": onnx.defs.onnx_opset_version(), "ir_version": onnx.IR_VERSION},
    "opset-unknown": {"opset": 999},
    "ir-version-too-new": {"ir_version": 999},
}.items():
    named.FILES[_name] = lambda path, versions=_versions: onnx.save(product(**versions), path)


@named.model("no-opset")
def _() -> onnx.ModelProto:
    content = product()
    del content.opset_import[:]
    return content


@named.model("custom-operator")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Frobnicate", ["x"], ["y"], name="mine", domain="com.example")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], domains={"com.example": 1})


@named.model("domain-not-imported")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Frobnicate", ["x"], ["y"], name="mine", domain="com.example")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)])


@named.model("unknown-operator")
def _() -> onnx.ModelProto:
    return model([helper.make_node("Frobnicate", ["x"], ["y"])], [("x", 1, ["batch", 4])], [("y", 1, ROWS)])


@named.model("contributed-operator")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], domains={"com.microsoft": 1})


@named.model("local-function")
def _() -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", OPSET)]
    body = [helper.make_node("Mul", ["a", "a"], ["b"])]
    square = helper.make_function("mine", "Square", ["a"], ["b"], body, opsets)
    nodes = [helper.make_node("Square", ["x"], ["y"], domain="mine")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], domains={"mine": 1}, functions=[square])


@named.model("local-function-with-if")
def _() -> onnx.ModelProto:
    zero = helper.make_node("Constant", [], ["zero"], value=helper.make_tensor("zero", 1, [], [0.0]))
    opsets = [helper.make_opsetid("", OPSET)]
    choose = helper.make_function("mine", "Choose", ["a"], ["b"], [zero, *choice("a", "b")], opsets)
    nodes = [helper.make_node("Choose", ["x"], ["y"], name="mine", domain="mine")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], domains={"mine": 1}, functions=[choose])


@named.model("if")
def _() -> onnx.ModelProto:
    return model(choice("x", "y"), [("x", 1, ["batch", 4])], [("y", 1, ROWS)], {"zero": np.float32(0)})


@named.model("loop")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Loop", ["three", "", "x"], ["y"], body=adding("x"))]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], {"three": np.int64(3)})


@named.model("sequence-inside")
def _() -> onnx.ModelProto:
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=1),
        helper.make_node("ConcatFromSequence", ["parts"], ["y"], axis=1),
    ]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)])


@named.model("strings-inside")
def _() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Cast", ["x"], ["words"], to=TensorProto.STRING),
        helper.make_node("Cast", ["words"], ["y"], to=TensorProto.FLOAT),
    ]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)])


# --- inputs ---------------------------------------------------------------------------------------------------------


@named.model("no-inputs")
def _() -> onnx.ModelProto:
    return model([helper.make_node("Neg", ["w"], ["y"])], [], [("y", 1, [3])], {"w": np.ones(3, np.float32)})


@named.model("several-inputs")
def _() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Where", ["keep", "a", "b"], ["chosen"]),
        helper.make_node("MatMul", ["chosen", "w"], ["y"], name="product"),
    ]
    inputs = [("keep", TensorProto.BOOL, ["n", 4]), ("a", 1, ["n", 4]), ("b", 1, ["n", 4])]
    return model(nodes, inputs, [("y", 1, ROWS)], {"w": np.ones((4, 2), np.float32)})


@named.model("scalar-beside")
def _() -> onnx.ModelProto:
    return model([helper.make_node("Mul", ["x", "s"], ["y"])], [("x", 1, ["n", 4]), ("s", 1, [])], [("y", 1, ROWS)])


@named.model("scalar-only")
def _() -> onnx.ModelProto:
    return identity(1, [])


@named.model("sequence-input")
def _() -> onnx.ModelProto:
    content = model([helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0)], [], [("y", 1, ROWS)])
    content.graph.input.append(helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None))
    return content


@named.model("sequence-output")
def _() -> onnx.ModelProto:
    content = model([helper.make_node("SplitToSequence", ["x"], ["y"], axis=1)], [("x", 1, ["batch", 4])], [])
    content.graph.output.append(helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None))
    return content


@named.model("string-output")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", TensorProto.STRING, ["batch", 4])])


@named.model("optional-input")
def _() -> onnx.ModelProto:
    content = model([helper.make_node("OptionalGetElement", ["x"], ["y"])], [], [("y", 1, ROWS)])
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 4])
    content.graph.input.append(helper.make_value_info("x", helper.make_optional_type_proto(inner)))
    return content


@named.model("string-input")
def _() -> onnx.ModelProto:
    return identity(TensorProto.STRING, ["n", 4])


@named.model("zero-size-input")
def _() -> onnx.ModelProto:
    return identity(1, ["n", 0])


@named.model("unranked-input")
def _() -> onnx.ModelProto:
    return identity(1, None)


@named.model("batch-not-leading")
def _() -> onnx.ModelProto:
    return identity(1, [4, "batch"])


@named.model("fixed-batch")
def _() -> onnx.ModelProto:
    return product((1, FEATURES))


@named.model("output-of-another-batch")
def _() -> onnx.ModelProto:
    """What tracing with two samples leaves behind."""
    content = product()
    content.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [2, CLASSES]))
    return content


@named.model("free-height-and-width")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")]
    shape = ["batch", 3, "height", "width"]
    return model(nodes, [("x", 1, shape)], [("y", 1, ["batch", 2, "h", "w"])], {"w": np.ones((2, 3, 3, 3), np.float32)})


def _embedding(rows: int) -> onnx.ModelProto:
    shape, weights = ["batch", "sequence"], {"w": np.ones((rows, 4), np.float32)}
    nodes = [helper.make_node("Gather", ["w", "ids"], ["y"])]
    return model(nodes, [("ids", TensorProto.INT64, shape)], [("y", 1, [*shape, 4])], weights)


@named.model("token-ids")
def _() -> onnx.ModelProto:
    return _embedding(9)


@named.model("token-ids-out-of-range")
def _() -> onnx.ModelProto:
    return _embedding(1)


for _name, _kind in {"fp16": "FLOAT16", "fp64": "DOUBLE", "bf16": "BFLOAT16"}.items():
    named.FILES[f"{_name}-weights-and-input"] = lambda path, kind=_kind: onnx.save(
        product(kind=TensorProto.DataType.Value(kind)), path
    )
for _name in ("bool", "uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "int4", "complex64"):
    named.FILES[f"{_name}-input"] = lambda path, name=_name: onnx.save(
        identity(TensorProto.DataType.Value(name.upper()), ["batch", 4]), path
    )


# --- graphs that break a rule ---------------------------------------------------------------------------------------


@named.model("cyclic")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="one"), helper.make_node("Neg", ["a"], ["b"], name="two")]
    return model(nodes, [("x", 1, ["batch", 4])], [("b", 1, ROWS)])


@named.model("dangling")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "nowhere"], ["y"], name="sum")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)])


@named.model("output-never-written")
def _() -> onnx.ModelProto:
    return model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, ["batch", 4])], [("z", 1, ROWS)])


@named.model("no-outputs")
def _() -> onnx.ModelProto:
    return model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, ["batch", 4])], [])


@named.model("tensor-written-twice")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Neg", ["x"], ["y"], name="one"), helper.make_node("Abs", ["x"], ["y"], name="two")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)])


@named.model("input-named-twice")
def _() -> onnx.ModelProto:
    twice = [("x", 1, ["batch", 4]), ("x", 1, ["batch", 4])]
    return model([helper.make_node("Neg", ["x"], ["y"])], twice, [("y", 1, ROWS)])


@named.model("node-named-twice")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], name="same"),
             helper.make_node("MatMul", ["a", "w"], ["y"], name="same")]  # fmt: skip
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], {"w": np.eye(4, dtype=np.float32)})


@named.model("not-in-running-order")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Abs", ["x"], ["a"])]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)])


@named.model("sizes-do-not-fit")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], {"w": np.ones((5, 2), np.float32)})


@named.model("types-do-not-fit")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "n"], ["y"], name="sum")]
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], {"n": np.ones(4, np.int64)})


@named.model("one-bias-for-all")
def _() -> onnx.ModelProto:
    """And one times 0, as jax2onnx writes a product without a bias."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "bias"], ["a"], name="one", transB=1),
        helper.make_node("Gemm", ["a", "v", "bias"], ["y"], name="none", beta=0.0),
    ]
    weights = {"bias": np.float32(0.5), "w": np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4),
               "v": np.linspace(-1, 2, 10, dtype=np.float32).reshape(5, 2)}  # fmt: skip
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], weights)


@named.model("sizes-fixed-inside")
def _() -> onnx.ModelProto:
    """Says that any batch goes, and reshapes to one."""
    nodes = [helper.make_node("Reshape", ["x", "one"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["y"])]
    weights = {"one": np.array([1, 4]), "w": np.ones((4, 2), np.float32)}
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], weights)


@named.model("not-finite")
def _() -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["a", "v"], ["y"])]
    weights = {"w": np.full((4, 4), np.inf, np.float32), "v": np.ones((4, 2), np.float32)}
    return model(nodes, [("x", 1, ["batch", 4])], [("y", 1, ROWS)], weights)
