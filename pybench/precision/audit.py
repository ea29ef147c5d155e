# SPDX-License-Identifier: Apache-2.0
"""What precision a model really has: in its graph, in the kernels that the runtime chose, in a module's parameters.

A file's name proves nothing, and a quantiser that skips every layer raises no error; so each run states what was
found. Counts operators that carry weights and multiply (convolutions, matrix products), where the time and the energy
are. Does not look at accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.precision.onnx_graph import Graph, Node, read_graph

# Below half of the multiplying operators in INT8, the name of the precision would mislead. Leaving a first or last
# layer in FP32 is common and stays well above.
SHARE_FOR_INT8 = 0.5

QUANTISE, DEQUANTISE = "QuantizeLinear", "DequantizeLinear"
MULTIPLYING = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedGemm", "FusedMatMul"})
# What onnxruntime's CPU provider makes of them when it computes in integers.
INTEGER_KERNELS = frozenset(
    {
        "QLinearConv",
        "QLinearMatMul",
        "QGemm",
        "ConvInteger",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "DynamicQuantizeMatMul",
    }
)
_LOW_PRECISION = frozenset({"float16", "bfloat16", "float8e4m3fn", "float8e5m2", "float4e2m1"})


@dataclass(frozen=True, slots=True)
class Audit:
    """`realised`: the precision found, in words. `valid`: whether that is the one claimed; `reasons`: codes, when not.
    `facts`: counts behind it."""

    realised: str
    valid: bool
    reasons: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def audit_onnx(path: Path, precision: str) -> Audit:
    """The graph of a file against `fp32`, or against `int8` by its Q/DQ nodes.

    INT8 counts an operator as quantised when all that it multiplies comes from DequantizeLinear.
    """
    graph = read_graph(path)
    multiplying = [node for node in graph.nodes if node.op in MULTIPLYING]
    sources = {output: node for node in graph.nodes for output in node.outputs}
    quantised = sum(_is_quantised(node, sources) for node in multiplying)
    facts = {
        "multiplying_nodes": len(multiplying),
        "quantised_nodes": quantised,
        "quantize_linear_nodes": sum(node.op == QUANTISE for node in graph.nodes),
        "low_precision_weights": sorted({kind for kind, _ in graph.weights.values()} & _LOW_PRECISION),
    }
    if precision == "int8":
        return _judge_share(quantised, len(multiplying), "int8 in the graph", "not_quantised", facts)
    return _judge_fp32(graph, facts)


def audit_kernels(path: Path) -> Audit:
    """A graph that onnxruntime wrote after its passes: how many of the multiplying operators run in integers."""
    nodes = read_graph(path).nodes
    integer = sum(node.op in INTEGER_KERNELS for node in nodes)
    floating = sum(node.op in MULTIPLYING for node in nodes)
    facts = {"integer_kernels": integer, "floating_kernels": floating}
    return _judge_share(integer, integer + floating, "int8 kernels", "no_integer_kernels", facts)


def audit_parameters(dtypes: Iterable[str], precision: str, flags: Mapping[str, Any]) -> Audit:
    """A torch module's parameter types (`float32`, ...) and the TF32 switches against the precision claimed."""
    expected = {"fp16": "float16", "bf16": "bfloat16"}.get(precision, "float32")
    found = sorted(set(dtypes))
    word = "tf32" if precision == "tf32" else "ieee"
    switches = {name: flags[name] for name in ("matmul_fp32_precision", "conv_fp32_precision")}
    reasons = [] if found == [expected] else ["parameters_differ"]
    if expected == "float32" and any(value != word for value in switches.values()):
        reasons.append("tf32_switches_differ")
    realised = f"parameters {', '.join(found)}"
    if precision.startswith("amp-"):
        realised += f", autocast to {precision.removeprefix('amp-')}"
    elif expected == "float32":
        realised += f", TF32 {'on' if word == 'tf32' else 'off'}"
    return Audit(realised, not reasons, tuple(reasons), {"parameter_types": found, **switches})


def _judge_share(done: int, total: int, words: str, code: str, facts: dict[str, Any]) -> Audit:
    share = done / total if total else 0.0
    realised = f"{words}: {done} of {total} convolutions and matrix products"
    valid = share >= SHARE_FOR_INT8
    return Audit(realised, valid, () if valid else (code,), {**facts, "int8_share_ratio": share})


def _judge_fp32(graph: Graph, facts: dict[str, Any]) -> Audit:
    reasons = []
    if facts["quantize_linear_nodes"] or any(node.op in INTEGER_KERNELS | {DEQUANTISE} for node in graph.nodes):
        reasons.append("quantised_nodes")
    if facts["low_precision_weights"]:
        reasons.append("low_precision_weights")
    realised = "fp32" if not reasons else f"not fp32: {', '.join(reasons)}"
    return Audit(realised, not reasons, tuple(reasons), facts)


def _is_quantised(node: Node, sources: Mapping[str, Node]) -> bool:
    """Whether both factors (the first two inputs; a bias is no factor) come from DequantizeLinear."""
    factors = [sources.get(name) for name in node.inputs[:2]]
    return all(source is not None and source.op == DEQUANTISE for source in factors)
