# SPDX-License-Identifier: Apache-2.0
"""What precision a model really has: in its graph, in the kernels that the runtime chose, in a module's parameters.

A file's name proves nothing, and a quantiser that skips every layer raises no error; so each run states what was
found. Counts operators that carry weights and multiply (convolutions, matrix products), where the time and the energy
are. Does not look at accuracy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import PRECISIONS, allows_tf32, floating_type, quantised_type
from pybench.catalogue.reasons import Reason
from pybench.errors import InputError
from pybench.onnx_file.graph import OnnxGraph, node_name, read_graph
from pybench.onnx_file.products import (
    DEQUANTISE,
    MULTIPLYING,
    NOT_FP32,
    QUANTISE,
    STORED_PRODUCT,
    floating_types,
    multiplied,
    stored_products,
    weights_of_products,
)
from pybench.precision.notes import kept_nodes

# Below half of the multiplying operators in INT8, the name of the precision would mislead. Leaving a first or last
# layer in FP32 is common and stays well above.
SHARE_FOR_INT8 = 0.5

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
# What onnxruntime's passes, or its tools for transformers, make of several, or of one in another layout.
FUSED = frozenset(
    {
        "NhwcConv",
        "NhwcFusedConv",
        "FusedMatMulActivation",
        "Attention",
        "MultiHeadAttention",
        "GroupQueryAttention",
    }
)
# OpenVINO's operators that multiply, and its names of types.
_COMPILED_PRODUCTS = frozenset(
    {"Convolution", "Deconvolution", "FullyConnected", "MatMul", "RNNCell", "RNNSeq", "ScaledDotProductAttention"}
)
_FUSED_SUBGRAPH = "Subgraph"
_COMPILED_TYPES = {"f32": "fp32", "f16": "fp16", "i8": "int8", "u8": "int8"}  # and `bf16`
_TORCH_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_LOW_PRECISION = frozenset({"float16", "bfloat16", "float8e4m3fn", "float8e5m2", "float4e2m1"})


@dataclass(frozen=True, slots=True)
class Audit:
    """Which precision ran.

    realised: the precision found, in words
    valid: whether that is the one claimed; None: it was not asked
    reasons: why, where it is not true
    facts: counts behind it
    """

    realised: str
    valid: bool | None
    reasons: tuple[Reason, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def audit_onnx(path: Path, precision: str) -> Audit:
    """The graph of a file against a precision: the type of every multiplying operator, by the tensors that it reads.

    `int8` and `fp8` count an operator when all that it multiplies comes from DequantizeLinear of such codes; the rest
    of the name is the type that it dequantises to. In a file with products of stored weights, these are what counts. A
    file that declares what it keeps (`notes`) has to keep to that; one that does not has to have half of its operators
    quantised.
    """
    graph = read_graph(path)
    found = multiplied(graph)
    counts = Counter(kind for kind, _ in found.values())
    facts: dict[str, Any] = {
        "multiplying_nodes": len(found),
        "multiplying_types": dict(sorted(counts.items())),
        "quantised_nodes": counts["int8"] + counts["fp8"],
        "quantize_linear_nodes": sum(node.op == QUANTISE for node in graph.nodes),
        "low_precision_weights": sorted({kind for kind, _ in graph.weights.values()} & _LOW_PRECISION),
    }
    kept = kept_nodes(graph.properties)
    if kept is not None:
        facts["kept_nodes"] = kept
    stored = Counter(f"int{product.bits}" for product in stored_products(graph))
    if stored:
        facts |= {"stored_weights": dict(sorted(stored.items())), "stored_share_ratio": stored_share(graph)}
    if quantised_type(precision) is not None and (stored or PRECISIONS[precision].weights_alone):
        return _judge_stored(str(quantised_type(precision)), graph, found, kept, facts)
    if quantised_type(precision) is not None:
        return _judge_quantised(precision, found, kept, facts)
    if floating_type(precision) == "fp32":
        return _judge_fp32(graph, counts, facts)
    return _judge_floating(floating_type(precision), found, kept or {}, facts)


def require_fp32(path: Path, beside: str = "fp32") -> None:
    """Raises InputError for a file that multiplies in another floating type than FP32 and `beside`.

    It cannot be what a precision is made of: its weights are rounded already, and outputs would be compared with its
    own."""
    found = floating_types(read_graph(path)) - {"fp32", beside}
    if found:
        raise InputError(f"{path} {NOT_FP32.format(' and '.join(sorted(found)))}", hint="export the model in FP32")


def quantised_nodes(graph: OnnxGraph) -> set[str]:
    """Names of the nodes that multiply 8-bit codes."""
    return {name for name, (kind, _) in multiplied(graph).items() if kind in ("int8", "fp8")}


def audit_kernels(path: Path) -> Audit:
    """A graph that onnxruntime wrote after its passes: how many of the multiplying operators run in integers."""
    nodes = read_graph(path).nodes
    integer = sum(node.op in INTEGER_KERNELS for node in nodes)
    floating = sum(node.op in MULTIPLYING for node in nodes)
    facts = {"integer_kernels": integer, "floating_kernels": floating}
    return _judge_share(integer, integer + floating, "int8 kernels", Cause.NO_INTEGER_KERNELS, facts)


def audit_executed(path: Path, optimised: Path, precision: str) -> Audit:
    """A file that is what it claims (`audit_onnx`), in the graph that onnxruntime executes of it.

    Around an operator without a kernel in its type, onnxruntime puts Casts, and computes in FP32. As many may be in
    another type as the file keeps there; fused operators have names of their own, so they are counted. Codes:
    `kernels_in_another_type`, `no_multiplying_nodes`."""
    declared = audit_onnx(path, precision)
    claimed = floating_type(precision)
    executed = Counter(kind for kind, _ in multiplied(read_graph(optimised), MULTIPLYING | FUSED).values())
    facts = {**declared.facts, "executed_types": dict(sorted(executed.items()))}
    if declared.valid and declared.facts["multiplying_nodes"] and not executed:
        return Audit(
            "not known: nothing multiplies in the executed graph", False, (Reason(Cause.NO_MULTIPLYING_NODES),), facts
        )
    others = executed.total() - executed[claimed]
    if not declared.valid or others <= left_higher(declared, precision):
        return replace(declared, facts=facts)
    realised = f"{claimed} in the graph, in kernels {', '.join(f'{kind}: {n}' for kind, n in executed.most_common())}"
    return Audit(realised, False, (Reason(Cause.KERNELS_IN_ANOTHER_TYPE),), facts)


def audit_compiled(path: Path, precision: str, kernels: Iterable[tuple[str, str, tuple[str, ...]]]) -> Audit:
    """A file that is what it claims (`audit_onnx`), in the kernels that OpenVINO compiled of it.

    `kernels`: of each its operator, the type that it ran in, and names of nodes of the file. Fused products keep no
    name of their own, so kernels are counted; a fused subgraph counts where it computes a product of the file.
    OpenVINO calls a node by its output where the file gives no name.
    Codes: `no_integer_kernels`, `kernels_in_another_type`, `no_multiplying_nodes`.
    """
    declared = audit_onnx(path, precision)
    if not declared.valid:
        return declared
    graph = read_graph(path)
    products = multiplied(graph)
    outputs = {node_name(node.name, node.outputs[0]): node.outputs for node in graph.nodes if node.outputs}
    named = {name for product in products for name in (product, *outputs[product])}
    executed = Counter(
        _COMPILED_TYPES.get(kind, kind)
        for operator, kind, nodes in kernels
        if operator in _COMPILED_PRODUCTS or (operator == _FUSED_SUBGRAPH and not named.isdisjoint(nodes))
    )
    facts = {**declared.facts, "executed_types": dict(sorted(executed.items()))}
    total, claimed, around = executed.total(), quantised_type(precision), floating_type(precision)
    if products and not total:
        return Audit(
            "not known: nothing multiplies in the compiled graph", False, (Reason(Cause.NO_MULTIPLYING_NODES),), facts
        )
    foreign = total - executed[around] - (executed[claimed] if claimed else 0)
    if claimed is not None:
        found = _judge_share(executed[claimed], total, f"{claimed} kernels", Cause.NO_INTEGER_KERNELS, facts)
    else:
        found = replace(declared, facts=facts)
    if not foreign or (claimed is None and foreign <= left_higher(declared, precision)):
        return found
    realised = f"{precision} in the graph, in kernels {', '.join(f'{kind}: {n}' for kind, n in executed.most_common())}"
    return Audit(realised, False, (*found.reasons, Reason(Cause.KERNELS_IN_ANOTHER_TYPE)), facts)


def left_higher(declared: Audit, precision: str) -> int:
    """How many multiplying operators a file leaves in another type than its precision's, as `audit_onnx` found."""
    claimed = quantised_type(precision) or floating_type(precision)
    return int(declared.facts["multiplying_nodes"] - declared.facts["multiplying_types"].get(claimed, 0))


def audit_parameters(dtypes: Iterable[str], precision: str, flags: Mapping[str, Any]) -> Audit:
    """A torch module's parameter types (`float32`, ...) and the TF32 switches against the precision claimed."""
    contract = PRECISIONS[precision]
    expected = "float32" if contract.autocast else _TORCH_TYPES[contract.floating]
    found = sorted(set(dtypes))
    word = "tf32" if allows_tf32(precision) else "ieee"
    switches = {name: flags[name] for name in ("matmul_fp32_precision", "conv_fp32_precision")}
    codes = [] if found == [expected] else [Cause.PARAMETERS_DIFFER]
    if expected == "float32" and any(value != word for value in switches.values()):
        codes.append(Cause.TF32_SWITCHES_DIFFER)
    realised = f"parameters {', '.join(found)}"
    if contract.autocast:
        realised += f", autocast to {contract.floating}"
    elif expected == "float32":
        realised += f", TF32 {'on' if word == 'tf32' else 'off'}"
    return Audit(realised, not codes, tuple(map(Reason, codes)), {"parameter_types": found, **switches})


def _judge_share(done: int, total: int, words: str, code: Cause, facts: dict[str, Any]) -> Audit:
    share = done / total if total else 0.0
    realised = f"{words}: {done} of {total} convolutions and matrix products"
    valid = share >= SHARE_FOR_INT8
    return Audit(realised, valid, () if valid else (Reason(code),), {**facts, "int8_share_ratio": share})


def _judge_quantised(
    precision: str, found: Mapping[str, tuple[str, str]], kept: Mapping[str, str] | None, facts: dict[str, Any]
) -> Audit:
    claimed, around = quantised_type(precision), floating_type(precision)
    done = [name for name, (kind, _) in found.items() if kind == claimed]
    share = len(done) / len(found) if found else 0.0
    outside = [name for name in found if name not in done and name not in (kept or {})]
    codes: list[Cause] = []
    if not done or (kept is None and share < SHARE_FOR_INT8):
        codes.append(Cause.NOT_QUANTISED)
    if kept is not None and outside:
        codes.append(Cause.OUTSIDE_KEEP_LIST)
    if any(found[name][1] != around for name in done):
        codes.append(Cause.FLOATING_TYPE_DIFFERS)
    realised = f"{claimed} in the graph: {len(done)} of {len(found)} convolutions and matrix products"
    if around != "fp32":
        realised += f", {around} around"
    more = {
        f"{claimed}_share_ratio": share,
        "outside_keep_list": outside if kept is not None else None,
        "left_undeclared": outside if kept is None else [],
    }
    return Audit(realised, not codes, tuple(map(Reason, codes)), {**facts, **more})


def stored_share(graph: OnnxGraph) -> float:
    """The share of the weights of convolutions and matrix products that is stored in few bits; 0 where there are
    none."""
    stored = sum(product.weights for product in stored_products(graph))
    total = stored + weights_of_products(graph)
    return stored / total if total else 0.0


def _judge_stored(
    claimed: str,
    graph: OnnxGraph,
    found: Mapping[str, tuple[str, str]],
    kept: Mapping[str, str] | None,
    facts: dict[str, Any],
) -> Audit:
    """Whether weights are stored in the type that is claimed; what they are multiplied in is a kernel's choice."""
    products = stored_products(graph)
    done = [product.name for product in products if f"int{product.bits}" == claimed]
    share, sizes = facts.get("stored_share_ratio", 0.0), sorted({product.block_size for product in products})
    outside = [name for name in found if name not in done and name not in (kept or {})]
    codes: list[Cause] = []
    if not done or (kept is None and share < SHARE_FOR_INT8):
        codes.append(Cause.NOT_QUANTISED)
    if kept is not None and outside:
        codes.append(Cause.OUTSIDE_KEEP_LIST)
    realised = f"weights alone in {claimed}: {len(done)} of {len(found)} products, {share:.0%} of their weights"
    if done:
        realised += f", blocks of {' and '.join(map(str, sizes))}"
    more = {"block_sizes": sizes, "accuracy_levels": sorted({product.accuracy_level for product in products})}
    outside_fact = outside if kept is not None else None
    return Audit(realised, not codes, tuple(map(Reason, codes)), {**facts, **more, "outside_keep_list": outside_fact})


def _judge_floating(
    claimed: str, found: Mapping[str, tuple[str, str]], kept: Mapping[str, str], facts: dict[str, Any]
) -> Audit:
    outside = [name for name, (kind, _) in found.items() if kind != claimed and name not in kept]
    done = sum(kind == claimed for kind, _ in found.values())
    codes = [Cause.OUTSIDE_KEEP_LIST] if outside else []
    codes += [Cause.FLOATING_TYPE_DIFFERS] if found and not done else []
    realised = f"{claimed}: {done} of {len(found)} convolutions and matrix products"
    return Audit(realised, not codes, tuple(map(Reason, codes)), {**facts, "outside_keep_list": outside})


def _judge_fp32(graph: OnnxGraph, counts: Mapping[str, int], facts: dict[str, Any]) -> Audit:
    codes: list[Cause] = []
    if facts["quantize_linear_nodes"] or any(
        node.op in INTEGER_KERNELS | {DEQUANTISE, STORED_PRODUCT} for node in graph.nodes
    ):
        codes.append(Cause.QUANTISED_NODES)
    if facts["low_precision_weights"]:
        codes.append(Cause.LOW_PRECISION_WEIGHTS)
    if set(counts) & {"fp16", "bf16", "fp64"}:
        codes.append(Cause.FLOATING_TYPE_DIFFERS)
    realised = "fp32" if not codes else f"not fp32: {', '.join(codes)}"
    return Audit(realised, not codes, tuple(map(Reason, codes)), facts)
