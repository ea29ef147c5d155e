# SPDX-License-Identifier: Apache-2.0
"""In which type each convolution and matrix product of a graph multiplies, by the types of the tensors that it reads.

A tensor's type is the one that the file states, else it follows from the nodes in their order. Does not judge it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from pybench.onnx_file.graph import OnnxGraph, OnnxNode, node_name

QUANTISE, DEQUANTISE = "QuantizeLinear", "DequantizeLinear"
MULTIPLYING = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedGemm", "FusedMatMul"})
# Of codes, behind a DynamicQuantizeLinear that takes FP32 alone.
INTEGER_PRODUCTS = frozenset({"MatMulInteger", "ConvInteger"})
# Of weights that are stored in few bits, each block of them with a scale: an operator of onnxruntime.
STORED_PRODUCT = "MatMulNBits"
# What else multiplies in the type that it writes, and in integers; no count of operations has them.
UNCOUNTED = frozenset({"Attention", "DeformConv", "Einsum", "GRU", "LSTM", "RNN"})
UNCOUNTED_INTEGERS = INTEGER_PRODUCTS | {"QLinearConv", "QLinearMatMul"}
MATRIX_PRODUCTS = frozenset({"Gemm", "MatMul", "FusedGemm", "FusedMatMul", STORED_PRODUCT})
NOT_FP32 = "multiplies in {}, and lower precisions are made of FP32"
_WORDS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}


@dataclass(frozen=True, slots=True)
class StoredProduct:
    """A matrix product with stored weights.

    name: of its node
    bits: of each weight
    block_size: how many weights share a scale
    accuracy_level: the least that activations may be rounded to: 0 and 1 FP32, 2 FP16, 3 BF16, 4 int8 (onnxruntime)
    weights: how many there are
    """

    name: str
    bits: int
    block_size: int
    accuracy_level: int
    weights: int


def multiplied(
    graph: OnnxGraph, operators: Set[str] = MULTIPLYING | INTEGER_PRODUCTS | {STORED_PRODUCT}
) -> dict[str, tuple[str, str]]:
    """Multiplying node -> what it multiplies (int8, fp8, or a floating type), and the floating type that it writes.

    Both factors (the first two inputs; a bias is no factor) have to come from DequantizeLinear to be quantised. A
    product with stored weights (`stored_products`) is of the type of its activations.
    """
    types = _tensor_types(graph)
    sources = {output: node for node in graph.nodes for output in node.outputs}
    return {
        node_name(node.name, node.outputs[0]): _computed_in(node, sources, types)
        for node in graph.nodes
        if node.op in operators and node.outputs
    }


def stored_products(graph: OnnxGraph) -> tuple[StoredProduct, ...]:
    """The matrix products of a graph whose weights are stored in few bits."""
    return tuple(
        StoredProduct(
            name=node_name(node.name, node.outputs[0]),
            bits=node.integer("bits", 4),
            block_size=node.integer("block_size", 0),
            accuracy_level=node.integer("accuracy_level", 0),
            weights=node.integer("K", 0) * node.integer("N", 0),
        )
        for node in graph.nodes
        if node.op == STORED_PRODUCT and node.outputs
    )


def weights_of_products(graph: OnnxGraph) -> int:
    """How many weights the convolutions and matrix products of a graph have that are stored as they are multiplied."""
    return sum(graph.weights.get(node.inputs[1], ("", 0))[1] for node in graph.nodes if node.op in MULTIPLYING)


def floating_types(graph: OnnxGraph, operators: Set[str] = MULTIPLYING | {STORED_PRODUCT}) -> set[str]:
    """The floating types that a graph multiplies in: `fp32`, `fp16`, `bf16`, `fp64`."""
    return {kind for kind, _ in multiplied(graph, operators).values()} & set(_WORDS.values())


def lower_type(graph: OnnxGraph) -> str | None:
    """`fp16` or `bf16` of a graph that has all its floating weights in this type and multiplies in no other; None: it
    has no such type."""
    weights = {_WORDS[kind] for kind, _ in graph.weights.values() if kind in _WORDS}
    return next((name for name in ("fp16", "bf16") if weights == {name} == floating_types(graph)), None)


def is_quantised(graph: OnnxGraph) -> bool:
    """Whether a graph has Q/DQ nodes: it is taken as it is, where int8 or fp8 is asked for."""
    return any(node.op == QUANTISE for node in graph.nodes)


def _computed_in(node: OnnxNode, sources: Mapping[str, OnnxNode], types: Mapping[str, str]) -> tuple[str, str]:
    if node.op in INTEGER_PRODUCTS:
        return "int8", "fp32"
    floating = _WORDS.get(types.get(node.outputs[0], ""), "unknown")
    factors = [sources.get(name) for name in node.inputs[:2]]
    codes = {
        types.get(source.inputs[0], "") if source is not None and source.op == DEQUANTISE and source.inputs else ""
        for source in factors
    }
    if codes <= {"int8", "uint8"}:
        return "int8", floating
    if codes <= {"float8e4m3fn"}:
        return "fp8", floating
    return floating, floating


def _tensor_types(graph: OnnxGraph) -> dict[str, str]:
    """Type of every tensor."""
    types = {name: kind for name, (kind, _) in graph.weights.items()} | graph.types
    for node in graph.nodes:
        inputs = [types.get(name, "") for name in node.inputs]
        if node.op == QUANTISE:
            kind = inputs[2] if len(inputs) > 2 and inputs[2] else node.to or "uint8"
        elif node.op == DEQUANTISE:
            kind = node.to or (inputs[1] if len(inputs) > 1 else "")
        elif node.op == "CastLike":
            kind = inputs[1] if len(inputs) > 1 else ""
        elif node.op == "Cast":
            kind = node.to
        else:
            kind = next((entry for entry in inputs if entry in _WORDS), "")
        for output in node.outputs:
            if kind:
                types.setdefault(output, kind)
    return types
