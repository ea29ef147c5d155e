# SPDX-License-Identifier: Apache-2.0
"""Which node's quantisation costs how much: a file with Q/DQ whose pairs are left out, node by node.

A pair belongs to the nodes that read it. A node is quantised when it reads its factors through their pairs, and in FP32
when it reads what is in front of them; its neighbours keep what they read. So one file gives all variants, whatever
quantiser wrote it: only one node quantised, all but one, none. What else reads pairs (sums, pools, outputs) is one
unit, `OTHERS`. Weights have to be in the file in FP32, in front of their pair. Biases stay as the file has them.

`tensor_errors` says what a pair does to the tensor in front of it, on samples. Only integer codes, in FP32 around.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from pybench.errors import InputError
from pybench.onnx_file.products import DEQUANTISE, QUANTISE
from pybench.precision.calibration import TensorValues
from pybench.precision.execution import Feed
from pybench.precision.network import Array, Network
from pybench.precision.placement import CONVOLUTIONS, PRODUCTS

OTHERS = "other operators"
_OUTPUTS = ""  # who reads an output of the graph; no node has this name


@dataclass(frozen=True, slots=True)
class QuantisedUnit:
    """What is quantised, or not, as a whole.

    name: of the node, or `OTHERS`
    operator: of ONNX; empty for `OTHERS`
    readers: names of its nodes
    """

    name: str
    operator: str
    readers: frozenset[str]


@dataclass(frozen=True, slots=True)
class TensorError:
    """What one pair of Q/DQ does to its tensor.

    scales: how many the pair has
    rms: root of the mean square of the tensor
    rounding_ratio: root of the mean square of the errors of values inside the codes' range, over `rms`
    clipping_ratio: the same of the values outside, which become the last code
    clipped_ratio: share of the values that are outside

    Both error ratios are None where the tensor is 0. The means are over all values, so that the squares of both ratios
    add up to that of the whole error.
    """

    tensor: str
    is_weight: bool
    scales: int
    rms: float
    rounding_ratio: float | None
    clipping_ratio: float | None
    clipped_ratio: float


class QuantisedGraph:
    """A graph with pairs of Q/DQ, which can be left out. `network`: stays as it is."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._origins = dict(_origins(network))
        self._require_weights()
        self.units = tuple(self._units())

    def variant(self, units: Collection[QuantisedUnit]) -> Network:
        """The graph in which these units alone read their tensors through pairs."""
        readers = frozenset[str]().union(*(unit.readers for unit in units))
        model = onnx.ModelProto()
        model.CopyFrom(self._network.model)
        network = Network(model)
        written = []
        for node in network.nodes:
            output = node.output[0]
            if network.is_output(output) and output in self._origins and _OUTPUTS not in readers:
                written.append(helper.make_node("Identity", [self._origins[output]], [output], node.name))
                continue
            if node.op_type not in (QUANTISE, DEQUANTISE) and node.name not in readers:
                for position, name in enumerate(node.input):
                    node.input[position] = self._origins.get(name, name)
            written.append(node)
        network.replace_nodes(written)
        network.drop_unread()
        return network

    def tensor_errors(self, feeds: Sequence[Feed]) -> list[TensorError]:
        """The error of each pair on the values that the FP32 graph has on these samples, in running order."""
        plain = self.variant(())
        sums = [(self._origin(pair), _Sums(self._codes_of(pair))) for pair in self._pairs()]
        by_tensor: dict[str, list[_Sums]] = {}
        for name, total in sums:
            by_tensor.setdefault(name, []).append(total)
        computed = [name for name in by_tensor if not self._network.is_constant(name)]
        for name, value in TensorValues(plain, computed, feeds).values():
            for total in by_tensor[name]:
                total.add(value)
        for name in by_tensor.keys() - set(computed):
            for total in by_tensor[name]:
                total.add(self._network.constant(name).astype(np.float32))
        return [total.error(name, self._network.is_constant(name)) for name, total in sums]

    @property
    def has_zero_points(self) -> bool:
        """Whether a pair has codes that are not symmetric around 0: such a pair may stand for a Relu, too."""
        zeros = [self._codes_of(pair).zero for pair in self._pairs()]
        return any(zero.dtype.kind == "u" or zero.any() for zero in zeros)

    def _pairs(self) -> list[onnx.NodeProto]:
        """The first half of each pair."""
        halves = (
            self._network.producer(node.input[0]) for node in self._network.nodes if node.output[0] in self._origins
        )
        return list({half.name: half for half in halves if half is not None}.values())

    def _origin(self, pair: onnx.NodeProto) -> str:
        source = str(pair.input[0])
        return self._origins.get(source, source)

    def _codes_of(self, pair: onnx.NodeProto) -> _PairScales:
        scale = self._network.constant(pair.input[1]).astype(np.float64)
        has_zero = len(pair.input) > 2 and pair.input[2]
        zero = self._network.constant(pair.input[2]) if has_zero else np.zeros((), np.uint8)
        axis = next((int(entry.i) for entry in pair.attribute if entry.name == "axis"), 1)
        return _PairScales(scale, zero, axis if scale.ndim and scale.size > 1 else None)

    def _units(self) -> Iterator[QuantisedUnit]:
        others = {_OUTPUTS for output in self._network.graph.output if output.name in self._origins}
        for node in self._network.nodes:
            if node.op_type in (QUANTISE, DEQUANTISE) or not self._origins.keys() & set(node.input):
                continue
            if node.op_type in CONVOLUTIONS | PRODUCTS and all(name in self._origins for name in node.input[:2]):
                yield QuantisedUnit(node.name, node.op_type, frozenset({node.name}))
            else:
                others.add(node.name)
        if others:
            yield QuantisedUnit(OTHERS, "", frozenset(others))

    def _require_weights(self) -> None:
        """Raises InputError for a weight of which the file has the codes alone."""
        for node in self._network.nodes:
            codes = node.input[0] if node.op_type == DEQUANTISE else ""
            if self._network.is_constant(codes) and self._network.type_of(codes) != TensorProto.INT32:  # a bias
                raise InputError(
                    f"the file has {codes} as codes alone, so nothing tells what they were in FP32",
                    hint="name the model's file in FP32, which pybench quantises",
                )


@dataclass(frozen=True, slots=True)
class _PairScales:
    """Scale and zero point of a pair.

    scale: float64, a scalar or one number for each index of `axis`
    zero: of the shape of `scale`, in the type of the codes
    axis: the dimension of the tensor whose indices have a scale each; None: the tensor has one
    """

    scale: npt.NDArray[np.float64]
    zero: Array
    axis: int | None

    def along(self, values: Array, dimensions: int) -> npt.NDArray[np.float64]:
        """Scales or zero points in a shape that broadcasts with a tensor of so many dimensions."""
        if self.axis is None:
            return values.astype(np.float64).reshape(())
        shape = [1] * dimensions
        shape[self.axis] = -1
        return values.astype(np.float64).reshape(shape)


class _Sums:
    """Squares of a tensor's values and errors, added up over batches."""

    def __init__(self, codes: _PairScales) -> None:
        self._codes = codes
        self._count = self._clipped = 0
        self._squares = self._rounding = self._clipping = 0.0

    def add(self, value: npt.NDArray[np.float32]) -> None:
        exact = value.astype(np.float64)
        scale = self._codes.along(self._codes.scale, value.ndim)
        zero = self._codes.along(self._codes.zero, value.ndim)
        limits = np.iinfo(self._codes.zero.dtype.name)
        codes = np.rint(exact / scale) + zero
        kept = np.clip(codes, limits.min, limits.max)
        squares = ((kept - zero) * scale - exact) ** 2
        outside = kept != codes
        self._count += exact.size
        self._clipped += int(outside.sum())
        self._squares += float((exact**2).sum())
        self._clipping += float(squares[outside].sum())
        self._rounding += float(squares[~outside].sum())

    def error(self, tensor: str, is_weight: bool) -> TensorError:
        count = max(self._count, 1)
        return TensorError(
            tensor,
            is_weight,
            scales=self._codes.scale.size,
            rms=(self._squares / count) ** 0.5,
            rounding_ratio=_root(self._rounding, self._squares),
            clipping_ratio=_root(self._clipping, self._squares),
            clipped_ratio=self._clipped / count,
        )


def _root(part: float, whole: float) -> float | None:
    return (part / whole) ** 0.5 if whole > 0 else None


def _origins(network: Network) -> Mapping[str, str]:
    """What a pair writes -> the tensor in front of it, or in front of the first of several pairs."""
    origins: dict[str, str] = {}
    for node in network.nodes:
        source = network.producer(node.input[0]) if node.op_type == DEQUANTISE else None
        if source is not None and source.op_type == QUANTISE:
            origins[node.output[0]] = origins.get(source.input[0], source.input[0])
    return origins
