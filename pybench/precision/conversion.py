# SPDX-License-Identifier: Apache-2.0
"""FP16 and BF16: every floating tensor of an FP32 graph in one type, its inputs and outputs still FP32.

One contract for every model: nothing is left in FP32 because of the values that it happened to hold (as modelopt's
AutoCast does). Left in FP32 is only what ONNX has no such operator for, and what the caller names. Both compute in FP32
between two Casts and are reported. Q/DQ nodes go along: their scales take the type of what they scale, as TensorRT
asks.

Own code: what else exists was tried (docs/decisions/011-floating-conversion.md). Does not look at accuracy or at speed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

from pybench.errors import InputError
from pybench.onnx_file.inputs import Misfit
from pybench.onnx_file.node_names import KEEP_LIST, matched
from pybench.precision.network import Array, Network

TYPES: dict[str, int] = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_NUMPY: dict[int, np.dtype[np.generic]] = {
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
}
# Convolution and pooling take bfloat16 from opset 22 on; Q/DQ scales take either type from 19 on.
OPSETS = {"fp16": 19, "bf16": 22}
FP32: int = TensorProto.FLOAT


@dataclass(slots=True)
class Conversion:
    """What was done.

    kept: node -> why it computes in FP32 (`keep_fp32`, `no_operator`, or the caller's word)
    clipped: finite constants that were too large for the type and became its largest number
    vanished: constants that became 0
    """

    kept: dict[str, str] = field(default_factory=dict)
    clipped: int = 0
    vanished: int = 0


def convert(
    network: Network, floating: str, keep_fp32: str | None = None, in_fp32: Mapping[str, str] | None = None
) -> Conversion:
    """Rewrites a network to `fp16` or `bf16`. `keep_fp32`: a regular expression on whole names of nodes; `in_fp32`:
    more nodes that stay in FP32 -> why.

    Raises InputError when it matches no node, for then a plan would claim what is not so.
    """
    network.raise_opset(OPSETS[floating])
    rewriting = _GraphConversion(network, TYPES[floating])
    rewriting.done.kept = _kept(network, TYPES[floating], keep_fp32) | dict(in_fp32 or {})
    network.replace_nodes(rewriting.nodes())
    network.infer()
    return rewriting.done


def matching_nodes(network: Network, keep_fp32: str | None) -> set[str]:
    """Names of the nodes that a keep-list names. Raises InputError when there is none, or it is no expression."""
    if keep_fp32 is None:
        return set()
    try:
        return matched(keep_fp32, [node.name for node in network.nodes])
    except re.error as error:
        raise InputError(f"{KEEP_LIST} is no regular expression ({error})") from error
    except Misfit as misfit:
        raise InputError(f"{KEEP_LIST}: {misfit.what}", hint=misfit.hint) from misfit


def _kept(network: Network, target: int, keep_fp32: str | None) -> dict[str, str]:
    kept = dict.fromkeys(sorted(matching_nodes(network, keep_fp32)), "keep_fp32")
    for node in network.nodes:
        if node.name not in kept and not _takes(network, node, target):
            kept[node.name] = "no_operator"
    return kept


class _GraphConversion:
    """One pass over the nodes in running order; a tensor that is needed in both types gets one Cast."""

    def __init__(self, network: Network, target: int) -> None:
        self.network, self.target = network, target
        self.done = Conversion()
        self._inputs = {entry.name for entry in network.graph.input}
        self._outputs = {entry.name for entry in network.graph.output}
        self._held: dict[str, int] = {}  # tensor that was FP32 -> the type that it has now
        self._versions: dict[tuple[str, int], str] = {}  # a tensor in the other type -> its name
        self._names: dict[str, str] = {}  # output of the graph -> the tensor that it is cast from

    def nodes(self) -> list[onnx.NodeProto]:
        written: list[onnx.NodeProto] = []
        for node in self.network.nodes:
            written += self._rewrite(node)
        for name, inner in self._names.items():
            written.append(
                helper.make_node("Cast", [inner], [name], self.network.free_name(f"{name}_to_fp32"), to=FP32)
            )
        return written

    def _rewrite(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The node in its new type, behind the Casts that it needs."""
        own = FP32 if node.name in self.done.kept else self.target
        casts: list[onnx.NodeProto] = []
        fixed = _fixed_inputs(self.network, node)
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for position, name in enumerate(node.input):
            if name and self.network.type_of(name) == FP32:
                # A Cast reads what there is: casting its input first would round twice.
                wanted = self._type_now(name) if node.op_type == "Cast" else FP32 if position in fixed else own
                copy.input[position] = self._as(name, wanted, casts)
        _retype_attributes(copy, own)
        for position, name in enumerate(node.output):
            if name and self.network.type_of(name) == FP32:
                self._held[name] = own
                if name in self._outputs and own != FP32:
                    inner = self.network.free_name(f"{name}_{_NUMPY[own].name}")
                    copy.output[position] = self._names[name] = inner
        return [*casts, copy]

    def _type_now(self, name: str) -> int:
        if self.network.is_constant(name):
            return self.target
        return self._held.get(name, FP32)

    def _as(self, name: str, wanted: int, casts: list[onnx.NodeProto]) -> str:
        """Name of a tensor that was FP32 in the type wanted; adds a Cast, or a converted constant, the first time."""
        if self.network.is_constant(name):
            if wanted == FP32:
                return name
        elif self._held.get(name, FP32) == wanted:
            return self._names.get(name, name)
        if (name, wanted) not in self._versions:
            word = "float32" if wanted == FP32 else _NUMPY[wanted].name
            if self.network.is_constant(name):
                value = self._converted(self.network.constant(name))
                self._versions[name, wanted] = self.network.add_constant(f"{name}_{word}", value)
            else:
                new = self.network.free_name(f"{name}_{word}")
                source = self._names.get(name, name)
                casts.append(
                    helper.make_node("Cast", [source], [new], self.network.free_name(f"{name}_to_{word}"), to=wanted)
                )
                self._versions[name, wanted] = new
        return self._versions[name, wanted]

    def _converted(self, value: Array) -> Array:
        """Rounds to nearest. Finite numbers stay finite; a single number (an epsilon, a scale) does not become 0."""
        kind = _NUMPY[self.target]
        wide = value.astype(np.float32)
        limits = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        with np.errstate(over="ignore"):
            narrow = wide.astype(kind)
        over = np.isfinite(wide) & ~np.isfinite(narrow.astype(np.float32))
        narrow[over] = np.sign(wide[over]).astype(kind) * limits.max
        under = (wide != 0) & (narrow == 0)
        if wide.size == 1:
            narrow[under] = np.sign(wide[under]).astype(kind) * limits.smallest_subnormal
        self.done.clipped += int(over.sum())
        self.done.vanished += int(under.sum()) if wide.size > 1 else 0
        return narrow


def _fixed_inputs(network: Network, node: onnx.NodeProto) -> set[int]:
    """Positions whose type ONNX fixes to FP32, whatever the rest is in (the scales of Resize)."""
    schema = _schema(network, node)
    if schema is None:
        return set()
    return {i for i in range(len(node.input)) if _formal(schema.inputs, i).type_str == "tensor(float)"}


def _takes(network: Network, node: onnx.NodeProto, target: int) -> bool:
    """Whether the operator exists in the type: all of its type variables that are FP32 here allow it."""
    schema = _schema(network, node)
    if schema is None:
        return False  # an operator of someone else's: it stays as it was written
    word = "tensor(float16)" if target == TensorProto.FLOAT16 else "tensor(bfloat16)"
    allowed = {entry.type_param_str: entry.allowed_type_strs for entry in schema.type_constraints}
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for position, name in enumerate(names):
            if not name or network.type_of(name) != FP32:
                continue
            kind = _formal(formals, position).type_str
            if kind in allowed and word not in allowed[kind]:
                return False
            if kind == "tensor(float)" and names is node.output:
                return False
    return True


def _schema(network: Network, node: onnx.NodeProto) -> defs.OpSchema | None:
    if node.domain not in ("", "ai.onnx"):
        return None
    return defs.get_schema(node.op_type, network.opset, "")


def _formal(formals: Sequence[defs.OpSchema.FormalParameter], position: int) -> defs.OpSchema.FormalParameter:
    return formals[min(position, len(formals) - 1)]  # the last one may stand for many


def _retype_attributes(node: onnx.NodeProto, own: int) -> None:
    """Types that an operator states in its attributes: `to` of Cast, `dtype`, the value of ConstantOfShape."""
    if own == FP32:
        return
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype", "output_dtype") and attribute.i == FP32:
            attribute.i = own
        elif attribute.name == "value" and attribute.t.data_type == FP32:
            value = numpy_helper.to_array(attribute.t).astype(_NUMPY[own])
            attribute.t.CopyFrom(numpy_helper.from_array(value, attribute.t.name))
    if node.op_type == "ConstantOfShape" and not node.attribute:  # without a value it is FP32's zero
        zero = numpy_helper.from_array(np.zeros(1, _NUMPY[own]))
        node.attribute.append(helper.make_attribute("value", zero))
