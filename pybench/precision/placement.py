# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a graph are quantised, and which tensors get a pair of Q and DQ: the rules that make TensorRT fuse.

- Nodes: every Conv, ConvTranspose, Gemm and MatMul, attention's two products included; not those that `unfit` names,
  not the keep-list.
- Activations: one pair a tensor, shared by all who read it quantised. Where a convolution is among them, all consumers
  do: the tensor is then written in 8 bits only. Elsewhere only the products do, for norms and the residual stream of a
  transformer keep their floating type.
- Residual add: in INT8 the deepest of its convolutions writes into the Add unquantised and fuses with it. The other
  summand gets a pair; a block's input has it already, the down-sampling convolution's output gets its own. In FP8,
  where TensorRT fuses no Add, both summands get one.
- Mean over all positions: its input gets a pair where a convolution is behind it, which then writes 8 bits too.
- Clip in FP8: where a pair is behind one that no quantised convolution computes, it stays in FP32 between two Casts
  (`Quantisation.keeps_bounds`).
- A convolution over three dimensions in INT8: TensorRT has no kernel that writes its output in the floating type. Where
  no pair is behind it, as in front of a U-Net's skips and at its end, its weight stays as it is.
- MaxPool in FP8, and over three dimensions: written as slices (`pooling`). Where a convolution computes its input for
  it alone, that has its output's pair as well. This changes nothing, for rounding commutes with taking the largest.

Softmax, norms, GELU and element-wise operators are computed in the floating type. Writes nothing: `qdq` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx

from pybench.precision.conversion import matching_nodes
from pybench.precision.network import FLOATING, Network
from pybench.precision.pooling import is_sliceable

CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
PRODUCTS = frozenset({"Gemm", "MatMul"})
_JOINED = frozenset({"Relu", "Clip", "Add", "Concat"})  # to the convolution before them
_VOLUME = 5  # dimensions of [n, channels, depth, height, width]
# TensorRT has no FP8 convolution for groups, nor for so few channels on either side: modelopt leaves the same out.
FEWEST_FP8_CHANNELS = 17


@dataclass(frozen=True, slots=True)
class Quantisation:
    """How a graph is quantised.

    kind: int8 or fp8
    floating: the type around it, which scales are rounded to
    keep_fp32: a regular expression on whole names of nodes that are left alone
    has_full_range: of int8, -128 is a code, too
    scales_weights_whole: a weight has one scale, not one for each output channel
    is_naive: pairs stand only in front of convolutions and products, as most papers place them, and not where TensorRT
        fuses sums and means
    """

    kind: str
    floating: str = "fp32"
    keep_fp32: str | None = None
    has_full_range: bool = False
    scales_weights_whole: bool = False
    is_naive: bool = False

    @property
    def quantises_both_summands(self) -> bool:
        """Whether the deepest convolution's output is quantised before a residual Add, too.

        TensorRT's INT8 kernels add before they quantise. Its FP8 kernels do not, and a generated one then reads what
        they wrote in FP16. ResNet-50 at batch 32 on an H200: 1.30 ms so, 1.08 ms with both in FP8.
        """
        return self.kind == "fp8"

    def slices_pool(self, dimensions: int) -> bool:
        """Whether a MaxPool over so many dimensions becomes the largest of slices (`pooling`).

        In FP8, for which TensorRT has no pooling: VGG16 at batch 32 on an H200 takes 1.49 ms so, and 1.95 ms with
        MaxPool (FP16: 1.93). In INT8 only over three dimensions, where 10.6 builds no engine of a MaxPool.
        """
        return self.kind == "fp8" or dimensions > 2

    @property
    def keeps_bounds(self) -> bool:
        """Whether Clip's upper bound holds in a kernel that clips and quantises without multiplying.

        The kernel that TensorRT 10.6 generates for Clip and FP8's Q ends where the codes end, at 7 where the bound is 6
        and the scale 2^-6. A MobileNet_v2, whose depthwise convolutions stay in FP16, came out 6 % too large. With
        Casts between the two it does not, and takes no longer (batch 8 on an H200: 0.434 ms, 0.449 without them). An
        FP8 convolution that clips what it writes is right.
        """
        return self.kind != "fp8"

    @property
    def scales_convolutions_whole(self) -> bool:
        """Whether a convolution's weight has one scale.

        TensorRT 10.6's FP8 convolution with scales by channel and an FP16 output writes its sums of codes in FP16. No
        scale has been applied to them: they overflow, and the outputs are wrong without an error.
        """
        return self.kind == "fp8"


@dataclass(slots=True)
class Placement:
    """What the rules chose.

    quantised: nodes whose factors are all quantised
    kept: multiplying node -> why it is not
    readers: activation -> names of the nodes that read it quantised; None: all of them
    sliced: MaxPools that become slices
    ranges_of: activation -> the one whose range it has, where that is not its own
    in_fp32: other node -> why it has to be computed in FP32, whatever type is around it
    """

    quantised: list[str]
    kept: dict[str, str]
    readers: dict[str, set[str] | None] = field(default_factory=dict)
    sliced: set[str] = field(default_factory=set)
    ranges_of: dict[str, str] = field(default_factory=dict)
    in_fp32: dict[str, str] = field(default_factory=dict)


def place(network: Network, quantisation: Quantisation) -> Placement:
    """Applies the rules. Raises InputError for a keep-list that matches nothing."""
    named = matching_nodes(network, quantisation.keep_fp32)
    quantised, kept = [], {}
    for node in network.nodes:
        if not is_multiplying(network, node):
            continue
        reason = "keep_fp32" if node.name in named else unfit(network, node, quantisation)
        if reason is None:
            quantised.append(node.name)
        else:
            kept[node.name] = reason
    placement = Placement(quantised, kept)
    _place_pairs(network, quantisation, placement)
    if quantisation.kind == "int8":
        for name in _volumes_without_pair(network, placement):
            placement.quantised.remove(name)
            placement.kept[name] = "no_int8_kernel_volume"
    if not quantisation.keeps_bounds:
        placement.in_fp32 = dict.fromkeys(_losing_their_bound(network, placement), "fp8_kernel_loses_bound")
    return placement


def _place_pairs(network: Network, quantisation: Quantisation, placement: Placement) -> None:
    """Fills in which tensors get a pair, for the nodes that are quantised."""
    chosen = set(placement.quantised)
    convolutions = _convolution_outputs([node for node in network.nodes if node.name in chosen])
    readers: dict[str, set[str]] = {}
    for node in network.nodes:
        for name in node.input[:2] if node.name in chosen else ():
            if is_activation(network, name):
                readers.setdefault(name, set()).add(node.name)
    if quantisation.is_naive:
        placement.readers = dict(sorted(readers.items()))
        return
    shared = {name for name in readers if any(node.op_type in CONVOLUTIONS for node in network.consumers(name))}
    shared |= set(_summands(network, convolutions, quantisation.quantises_both_summands))
    shared |= set(_averaged(network, convolutions))
    pools = [
        node
        for node in network.nodes
        if node.output[0] in shared | set(readers)
        and is_sliceable(network, node)
        and quantisation.slices_pool(len(network.shape_of(node.output[0]) or ()) - 2)
    ]
    placement.sliced = {node.name for node in pools}
    placement.ranges_of = _pooled(network, pools, convolutions)
    shared |= set(placement.ranges_of)
    placement.readers = {name: None if name in shared else readers[name] for name in sorted(shared | set(readers))}


def _volumes_without_pair(network: Network, placement: Placement) -> list[str]:
    """Convolutions over three dimensions that are quantised, and whose output reaches its readers without a pair."""
    chosen = set(placement.quantised)
    return [
        node.name
        for node in network.nodes
        if node.name in chosen
        and node.op_type in CONVOLUTIONS
        and len(network.shape_of(node.output[0]) or ()) == _VOLUME
        and not _ends_in_pair(network, node.output[0], placement)
    ]


def _ends_in_pair(network: Network, name: str, placement: Placement) -> bool:
    """Whether a tensor is read in 8 bits alone, by itself or behind operators that a kernel joins to its producer."""
    while name not in placement.readers or placement.readers[name] is not None:
        readers = network.consumers(name)
        if network.is_output(name) or len(readers) != 1 or readers[0].op_type not in _JOINED:
            return False
        name = readers[0].output[0]
    return True


def calibrated_tensors(network: Network) -> list[str]:
    """Every activation that some quantisation of this graph may need the range of, in running order."""
    multiplying = [node for node in network.nodes if is_multiplying(network, node)]
    convolutions = _convolution_outputs(multiplying)
    found = [name for node in multiplying for name in node.input[:2] if is_activation(network, name)]
    found += [name for node in _fusing_adds(network, convolutions) for name in node.input]
    found += _averaged(network, convolutions)
    return list(dict.fromkeys(found))


def unfit(network: Network, node: onnx.NodeProto, quantisation: Quantisation) -> str | None:
    """Why a multiplying node cannot be quantised, in a word; None: it can."""
    weight = weight_position(network, node)
    if weight is None:
        return None
    if network.is_constant(node.input[1 - weight]):
        return "constant_factors"
    shape = network.shape_of(node.input[weight]) or ()
    if node.op_type in CONVOLUTIONS and quantisation.kind == "fp8":
        if node.op_type == "ConvTranspose":
            return "no_fp8_kernel_transposed"
        if attribute(node, "group", 1) > 1:
            return "no_fp8_kernel_groups"
        if min(shape[0] or 0, shape[1] or 0) < FEWEST_FP8_CHANNELS:
            return "no_fp8_kernel_channels"
    if node.op_type in PRODUCTS and 1 in shape[-2:]:
        return "vector"  # a matrix times a vector has no tensor-core kernel
    return None


def is_multiplying(network: Network, node: onnx.NodeProto) -> bool:
    """Whether a node is a floating convolution or matrix product."""
    return node.op_type in CONVOLUTIONS | PRODUCTS and network.type_of(node.output[0]) in FLOATING


def is_activation(network: Network, name: str) -> bool:
    """A floating tensor that is computed, and no scalar: TensorRT quantises none."""
    return network.type_of(name) in FLOATING and not network.is_constant(name) and network.shape_of(name) != ()


def weight_position(network: Network, node: onnx.NodeProto) -> int | None:
    """Which input of a multiplying node is a constant; None: it multiplies two activations."""
    return next((i for i in (1, 0) if network.is_constant(node.input[i])), None)


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """An integer attribute of a node."""
    return next((int(entry.i) for entry in node.attribute if entry.name == name), default)


def is_mean_over_positions(network: Network, node: onnx.NodeProto) -> bool:
    """Whether a node averages [n, channels, positions...] over all its positions, and over nothing else."""
    if node.op_type != "ReduceMean":
        return node.op_type == "GlobalAveragePool"
    axes = next((list(entry.ints) for entry in node.attribute if entry.name == "axes"), [])  # until opset 17
    if len(node.input) > 1 and network.is_constant(node.input[1]):
        axes = [int(axis) for axis in network.constant(node.input[1])]
    dimensions = len(network.shape_of(node.input[0]) or ())
    return dimensions > 2 and sorted(axis % dimensions for axis in axes) == list(range(2, dimensions))


def _convolution_outputs(nodes: list[onnx.NodeProto]) -> set[str]:
    return {node.output[0] for node in nodes if node.op_type in CONVOLUTIONS}


def _fusing_adds(network: Network, convolutions: set[str]) -> list[onnx.NodeProto]:
    """Adds of two activations, one of them computed by a convolution for this Add alone."""
    return [
        node
        for node in network.nodes
        if node.op_type == "Add"
        and len(set(node.input)) == 2
        and all(is_activation(network, name) for name in node.input)
        and any(name in convolutions and len(network.consumers(name)) == 1 for name in node.input)
    ]


def _summands(network: Network, convolutions: set[str], both: bool) -> list[str]:
    """Of every Add that fuses with a convolution: the summand that this convolution does not compute, or both."""
    depth = _depths(network)
    found = []
    for node in _fusing_adds(network, convolutions):
        own = [name for name in node.input if name in convolutions and len(network.consumers(name)) == 1]
        main = max(own, key=lambda name: depth[name])
        found += [name for name in node.input if both or name != main]
    return found


def _depths(network: Network) -> dict[str, int]:
    """Tensor -> the most multiplying nodes on a way from the graph's inputs to it."""
    depth: dict[str, int] = {}
    for node in network.nodes:
        before = max((depth.get(name, 0) for name in node.input), default=0)
        depth |= dict.fromkeys(node.output, before + is_multiplying(network, node))
    return depth


def _losing_their_bound(network: Network, placement: Placement) -> list[str]:
    """Clips whose output has a pair and whose input no quantised convolution computes."""
    computed = _convolution_outputs([node for node in network.nodes if node.name in placement.quantised])
    return [
        node.name
        for node in network.nodes
        if node.op_type == "Clip" and node.output[0] in placement.readers and node.input[0] not in computed
    ]


def _averaged(network: Network, convolutions: set[str]) -> list[str]:
    """Inputs of means that a convolution computes, behind an Add or an activation function at most."""
    return [
        node.input[0]
        for node in network.nodes
        if is_mean_over_positions(network, node) and _is_convolved(network, node.input[0], convolutions)
    ]


def _pooled(network: Network, pools: list[onnx.NodeProto], convolutions: set[str]) -> dict[str, str]:
    """Tensors that a convolution computes for a pooling alone -> what is pooled of them."""
    return {
        node.input[0]: node.output[0]
        for node in pools
        if len(network.consumers(node.input[0])) == 1
        and not network.is_output(node.input[0])
        and _is_convolved(network, node.input[0], convolutions)
    }


def _is_convolved(network: Network, name: str, convolutions: set[str]) -> bool:
    for _ in range(3):
        if name in convolutions:
            return True
        node = network.producer(name)
        if node is None or node.op_type not in ("Relu", "Clip", "Add"):
            return False
        name = next((entry for entry in node.input if entry in convolutions), node.input[0])
    return False
