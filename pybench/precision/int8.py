# SPDX-License-Identifier: Apache-2.0
"""Static INT8 by onnxruntime's quantiser: Q/DQ nodes put into an FP32 ONNX file, ranges from calibration samples.

Weights symmetric int8, one scale a channel; activations one scale a tensor, by one of two schemes:

- `asymmetric`: uint8 with a zero point, for onnxruntime's own CPU provider.
- `symmetric`: int8 with zero point 0, which TensorRT requires. onnxruntime's CPU provider then leaves 20 of ResNet-50's
  54 multiplying operators in FP32 and keeps every ReLU. At batch 4 one core takes 253 ms, against 85 ms with uint8 and
  307 ms in FP32.

Ranges by minimum and maximum or by the 99.999th percentile. Not by entropy: `quantize_static` searches 128 bins for a
cut of 128 levels. The full range is its one candidate, and there is no option to change that. Does not choose samples
or judge the result: the workload does.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import helper, numpy_helper
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError
from onnxruntime.capi import onnxruntime_pybind11_state as errors
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from pybench.catalogue.quantisers import QUANTISERS
from pybench.errors import InputError, in_short
from pybench.onnx_file.graph import OnnxGraph, read_graph
from pybench.onnx_file.node_names import KEEP_LIST
from pybench.onnx_file.products import MULTIPLYING, QUANTISE, multiplied
from pybench.precision.audit import quantised_nodes
from pybench.precision.execution import Feed
from pybench.precision.network import Network, open_network

OPSET = 13  # the first whose DequantizeLinear has an axis, which one scale a channel needs
METHODS = QUANTISERS["onnxruntime"].calibrations
BATCHED_WEIGHT = "batched_weight"  # why a product is kept, as `KEPT_KEY` has it
_MATRIX = 2  # dimensions
_ALL_BATCHED = "onnxruntime cannot scale weights of more than two dimensions by channel"
_SCALE_WHOLE = "use granularity: tensor, or quantiser: pybench"
_KEEPS_RANGES = "calibration_cache_path" in signature(quantize_static).parameters  # not in older versions

# What the quantiser and the runs that it makes raise for a file or an input that they cannot take.
_REFUSALS = (
    AssertionError,
    ValueError,
    RuntimeError,
    LookupError,  # of its own tables and arrays
    DecodeError,
    ValidationError,
    InferenceError,
    errors.Fail,
    errors.InvalidArgument,
    errors.InvalidGraph,
    errors.NotImplemented,
)


def quantise(
    source: Path,
    destination: Path,
    method: str,
    feeds: Sequence[Feed],
    metadata: Mapping[str, str],
    *,
    scheme: str = "asymmetric",
    by_channel: bool = True,
    pairs_weights: bool = False,
    excluded: Collection[str] = (),
    ranges: Path | None = None,
) -> dict[str, str]:
    """Writes the quantised graph of `source`.

    feeds: inputs of the calibration runs, each one batch
    excluded: names of nodes of its plain form (`network`) that are left alone
    by_channel: a weight has one scale for each output channel, else one
    pairs_weights: weights stay in FP32 in front of a pair of Q/DQ, and biases in FP32
    ranges: a file for what calibration finds; where it exists, the ranges in it are taken. Older versions of
        onnxruntime do not keep them, and find them each time

    Returns: node that stays in FP32, by its name in the result, -> why. onnxruntime fuses some with what follows them.
    Raises InputError when onnxruntime cannot quantise the file, touches those nodes, or has no other node to multiply.
    """
    network = open_network(source)
    network.raise_opset(OPSET)
    _mend_biases(network)
    _separate_outputs(network)
    symmetric = scheme == "symmetric"
    with _quantising(source), tempfile.TemporaryDirectory(dir=destination.parent, prefix=".int8-") as folder:
        plain, prepared = Path(folder) / "plain.onnx", Path(folder) / "prepared.onnx"
        network.save(plain, {})
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        graph = read_graph(prepared)
        batched = _by_batched_weights(graph) if by_channel else {}
        kept = batched | dict.fromkeys(_surviving(network, graph, excluded), KEEP_LIST)
        multiplying = {node.name for node in graph.nodes if node.op in MULTIPLYING}
        if batched and multiplying <= set(kept):
            raise InputError(f"{source} has no node to quantise: {_ALL_BATCHED}", hint=_SCALE_WHOLE)
        quantize_static(
            prepared,
            destination,
            _Feeds(feeds),
            quant_format=QuantFormat.QDQ,
            per_channel=by_channel,
            activation_type=QuantType.QInt8 if symmetric else QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod[METHODS[method]],
            nodes_to_exclude=sorted(kept),
            extra_options=_options(symmetric, pairs_weights),
            **({"calibration_cache_path": ranges} if ranges is not None and _KEEPS_RANGES else {}),
        )
    require_unquantised(destination, set(kept) & multiplying)
    require_finite_scales(destination)
    if pairs_weights and not symmetric:
        _read_unrounded(destination)
    stamp(destination, metadata)
    return kept


def _by_batched_weights(graph: OnnxGraph) -> dict[str, str]:
    """Products by a weight of several matrices, with why they stay in FP32.

    onnxruntime's quantiser gives such a weight a scale for each row, and there is no kernel for that.
    """
    products = [node for node in graph.nodes if node.op == "MatMul"]
    return {node.name: BATCHED_WEIGHT for node in products if len(graph.sizes.get(node.inputs[1], ())) > _MATRIX}


@contextmanager
def _quantising(source: Path) -> Iterator[None]:
    """Without the advice that the quantiser logs to the root logger; what it cannot take is an InputError."""
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)
    try:
        yield
    except _REFUSALS as error:
        text = in_short(error)
        if text == "scale issue":  # onnxruntime's words for a range that is NaN
            text = "an activation is NaN on the calibration samples"
        raise InputError(
            f"{source} cannot be quantised to int8 ({text})", hint="simplify the model, or run it in fp32"
        ) from error
    finally:
        logging.getLogger().setLevel(level)


def _options(symmetric: bool, pairs_weights: bool) -> dict[str, bool | int]:
    """The quantiser's own. Stride 1: a batch's activations are dropped before the next one runs."""
    options: dict[str, bool | int] = {
        "ActivationSymmetric": symmetric,
        "WeightSymmetric": True,
        "CalibStridedMinMax": 1,
    }
    if symmetric or pairs_weights:  # TensorRT folds the pairs around weights itself, and wants no integer biases
        options |= {"AddQDQPairToWeight": True, "QuantizeBias": False, "QDQKeepRemovableActivations": pairs_weights}
    return options


def quantise_at_run(
    source: Path, destination: Path, *, by_channel: bool = True, excluded: Collection[str] = ()
) -> dict[str, str]:
    """Writes a graph whose matrix products with weights are in integers, and which finds the range of each other factor
    in each run. Returns: multiplying node that stays in FP32 -> why. Convolutions do: onnxruntime has no fast kernel.

    Raises InputError when onnxruntime cannot quantise the file, or nothing in it is such a product.
    """
    network = open_network(source)
    network.raise_opset(OPSET)
    products_of(network)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".int8-") as folder:
        plain = Path(folder) / "plain.onnx"
        network.save(plain, {})
        batched = _by_batched_weights(read_graph(plain)) if by_channel else {}
        kept = batched | dict.fromkeys(excluded, KEEP_LIST)
        try:
            quantize_dynamic(
                plain,
                destination,
                op_types_to_quantize=["MatMul"],
                per_channel=by_channel,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=sorted(kept),
            )
        except _REFUSALS as error:
            text = in_short(error)
            raise InputError(f"{source} cannot be quantised to int8 ({text})", hint="run it in fp32") from error
    found = multiplied(read_graph(destination))
    if not any(kind == "int8" for kind, _ in found.values()):
        if batched:
            raise InputError(f"{source} has no product to quantise: {_ALL_BATCHED}", hint=_SCALE_WHOLE)
        raise InputError(
            f"{source} has no matrix product with a weight that dynamic quantisation takes",
            hint="keep fewer nodes in FP32 (`keep_fp32`)" if excluded else "use another quantiser, or precision: fp32",
        )
    return {name: kept.get(name, "not_a_product_with_a_weight") for name, (kind, _) in found.items() if kind != "int8"}


def products_of(network: Network) -> None:
    """Gemm with a constant weight as MatMul and Add, which is what onnxruntime quantises so."""
    written = []
    for node in network.nodes:
        options = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        plain = not options.get("transA") and options.get("alpha", 1.0) == options.get("beta", 1.0) == 1.0
        if node.op_type != "Gemm" or not plain or not network.is_constant(node.input[1]):
            written.append(node)
            continue
        weight = network.constant(node.input[1])
        factor = network.add_constant(f"{node.name}_weight", weight.T if options.get("transB") else weight)
        has_bias = len(node.input) > 2
        output = network.free_name(f"{node.output[0]}_product") if has_bias else node.output[0]
        written.append(helper.make_node("MatMul", [node.input[0], factor], [output], node.name))
        if has_bias:
            title = network.free_name(f"{node.name}_bias")
            written.append(helper.make_node("Add", [output, node.input[2]], [node.output[0]], title))
    network.replace_nodes(written)


def _read_unrounded(path: Path) -> None:
    """Lets every Relu and Clip that is quantised by itself read what a node wrote for it alone, without the pair there.

    Its own pair, with a zero point, cuts off the same numbers: the quantiser drops the node and that pair, unless told
    to keep both. So the file computes what the usual one does, and still does without its pairs.
    """
    network = open_network(path)
    for node in network.nodes:
        dequantised = network.producer(node.input[0]) if node.op_type in ("Relu", "Clip") else None
        quantised = None if dequantised is None else network.producer(dequantised.input[0])
        if dequantised is None or quantised is None or quantised.op_type != QUANTISE:
            continue
        alone = [len(network.consumers(name)) for name in (quantised.input[0], dequantised.output[0])] == [1, 1]
        if alone and any(reader.op_type == QUANTISE for reader in network.consumers(node.output[0])):
            node.input[0] = quantised.input[0]
    network.replace_nodes(network.nodes)
    network.drop_unread()
    network.save(path, {})


def _mend_biases(network: Network) -> None:
    """Biases of Gemm as onnxruntime's quantiser reads them: it divides by beta, and by a scale for each output.

    A bias times 0 is dropped; jax2onnx writes such ones. A single number for all outputs is written once for each.
    """
    for node in network.nodes:
        if node.op_type != "Gemm" or len(node.input) < 3 or not all(map(network.is_constant, node.input[1:3])):
            continue
        options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        bias = network.constant(node.input[2])
        if options.get("beta", 1.0) == 0:
            del node.input[2]
        elif bias.size == 1:
            outputs = network.constant(node.input[1]).shape[0 if options.get("transB") else 1]
            node.input[2] = network.add_constant(f"{node.input[2]}_of_each", np.full(outputs, bias.reshape(())))


def _separate_outputs(network: Network) -> None:
    """Lets an Identity write each output that only a Relu or Clip reads, so that the output keeps its own range.

    onnxruntime's quantiser cuts what such a node alone reads to the range of what the node writes. It does not count
    that the graph puts the tensor out.
    """
    written = []
    for node in network.nodes:
        written.append(node)
        for position, output in enumerate(node.output):
            readers = network.consumers(output)
            is_cut = len(readers) == 1 and readers[0].op_type in ("Relu", "Clip") and readers[0].input[0] == output
            if is_cut and network.is_output(output):
                inner = network.free_name(f"{output}_read")
                node.output[position] = readers[0].input[0] = inner
                written.append(helper.make_node("Identity", [inner], [output], network.free_name(f"{output}_copy")))
    network.replace_nodes(written)


def require_unquantised(path: Path, names: Collection[str]) -> None:
    """Raises InputError when one of these convolutions and products multiplies 8-bit codes in a quantised file, or is
    not in it.

    What it reads may be rounded: an activation that a quantised node reads, too, is written in 8 bits only.
    """
    graph = read_graph(path)
    present = {node.name for node in graph.nodes}
    wrong = sorted((set(names) - present) | (set(names) & quantised_nodes(graph)))
    if wrong:
        raise InputError(
            f"the quantiser changed nodes that stay in FP32 ({', '.join(wrong[:3])})",
            hint="use quantiser: pybench",
        )


def require_finite_scales(path: Path) -> None:
    """Raises InputError where a quantiser wrote a scale that is no number: of an activation that is NaN or infinite."""
    graph = onnx.load(path).graph
    values = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type != QUANTISE or node.input[1] not in values:
            continue
        scale = numpy_helper.to_array(values[node.input[1]]).astype(np.float32)
        if not np.isfinite(scale).all():
            raise InputError(f"{node.input[0]} is not finite on the calibration samples", hint="it can have no scale")


def _surviving(network: Network, prepared: OnnxGraph, names: Collection[str]) -> list[str]:
    """Names in a prepared graph of these nodes: their own, or that of the node that they were fused into, which
    onnxruntime derives from theirs (`product/MatMulAddFusion`). Raises InputError for a convolution or product that is
    gone; any other node that is gone was folded, and there is nothing to quantise."""
    before = {node.name for node in network.nodes}
    after = {node.name for node in prepared.nodes}
    found: list[str] = []
    for node in network.nodes:
        if node.name not in names:
            continue
        own = {node.name} & after or {new for new in after - before if new.startswith(f"{node.name}/")}
        if not own and node.op_type in MULTIPLYING:
            raise InputError(
                f"onnxruntime's preparation leaves no node of the name {node.name}, which stays in FP32",
                hint="use quantiser: pybench",
            )
        found += own
    return sorted(found)


def stamp(path: Path, metadata: Mapping[str, str]) -> None:
    """Stores short texts as properties of an ONNX file."""
    model = onnx.load(path)
    kept = {entry.key: entry.value for entry in model.metadata_props} | dict(metadata)
    model.ClearField("metadata_props")
    for key in sorted(kept):
        model.metadata_props.add(key=key, value=kept[key])
    onnx.save(model, path)


class _Feeds(CalibrationDataReader):  # type: ignore[misc]
    """The samples as onnxruntime's quantiser reads them."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = feeds
        self._next, self._end = 0, len(feeds)

    def get_next(self) -> Feed | None:
        if self._next >= self._end:
            return None
        self._next += 1
        return self._feeds[self._next - 1]

    def set_range(self, start_index: int, end_index: int) -> None:
        self._next, self._end = start_index, end_index

    def __len__(self) -> int:
        return len(self._feeds)
