# SPDX-License-Identifier: Apache-2.0
"""An ONNX model that is being rewritten: who produces and consumes a tensor, its type, its constant value.

`open_network` brings a file into one plain form, so that everything that rewrites it sees no synonyms. Local functions
are inlined; constants are initialisers (no Constant nodes, no Identity of an initialiser). Every tensor's type is
known, every node has a name, nodes are in running order. An exporter that finds two equal biases may store one and copy
it by Identity. TensorRT 10.6 then treats the copy as computed anew in each run, with a kernel of its own before every
convolution that reads it (docs/decisions/009-models-and-export.md). Graphs with bodies inside nodes (If, Loop, Scan)
are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto, helper, inliner, numpy_helper, shape_inference, version_converter

from pybench.catalogue.causes import Cause
from pybench.errors import InputError, UnsupportedError, in_short
from pybench.onnx_file.node_names import free_names

FIRST_IR_WITH_CONSTANTS = 4  # ONNX's IR.md: until 3, every initialiser is an input, too
FLOATING = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})
# ValueError: a cycle of nodes, or a message that protobuf does not take.
_INVALID = (OSError, DecodeError, onnx.checker.ValidationError, shape_inference.InferenceError, ValueError)
_CHECK = "check it with onnx.checker.check_model(FILE, full_check=True), and export it again"

Array = npt.NDArray[np.generic]


class Network:
    """A model with indexes of its main graph. Nodes are kept in the order in which they run."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.graph = model.graph
        self._reindex()

    @property
    def opset(self) -> int:
        """Version of ONNX's own operators."""
        return next(int(entry.version) for entry in self.model.opset_import if entry.domain in ("", "ai.onnx"))

    @property
    def nodes(self) -> list[onnx.NodeProto]:
        return list(self.graph.node)

    def producer(self, tensor: str) -> onnx.NodeProto | None:
        """The node that writes a tensor; None: an input of the graph or a constant."""
        return self._producers.get(tensor)

    def consumers(self, tensor: str) -> list[onnx.NodeProto]:
        """The nodes that read a tensor, each once, in running order."""
        return self._consumers.get(tensor, [])

    def is_output(self, tensor: str) -> bool:
        return any(output.name == tensor for output in self.graph.output)

    def is_constant(self, tensor: str) -> bool:
        return tensor in self._constants

    def constant(self, tensor: str) -> Array:
        """Value of an initialiser."""
        value: Array = numpy_helper.to_array(self._constants[tensor])
        return value

    def type_of(self, tensor: str) -> int | None:
        """TensorProto.DataType of a tensor; None for what is no tensor, or unknown."""
        if tensor in self._constants:
            return int(self._constants[tensor].data_type)
        return self._types.get(tensor)

    def shape_of(self, tensor: str) -> tuple[int | None, ...] | None:
        """Sizes of a tensor, None where one is free; None when not even the number of dimensions is known."""
        if tensor in self._constants:
            return tuple(self._constants[tensor].dims)
        return self._shapes.get(tensor)

    def add_constant(self, name: str, value: Array) -> str:
        """Stores an initialiser under `name`, or under a free name that begins so; returns the name."""
        name = self.free_name(name)
        # asarray, for ascontiguousarray makes [1] of a scalar: a scale for the channels of one, a bound Clip refuses.
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        self._constants[name] = self.graph.initializer[-1]
        self._names.add(name)
        return name

    def constant_named(self, name: str, value: Array) -> str:
        """An initialiser of this name and value: the one there is, or a new one; returns the name that it has."""
        if name in self._constants and np.array_equal(self.constant(name), value):
            return name
        return self.add_constant(name, value)

    def free_name(self, name: str) -> str:
        """`name`, or it with a number behind when a tensor or node has it already; taken from now on."""
        free, number = name, 2
        while free in self._names:
            free, number = f"{name}_{number}", number + 1
        self._names.add(free)
        return free

    def replace_nodes(self, nodes: Iterable[onnx.NodeProto]) -> None:
        """Puts these nodes, in this order, in the place of all, and drops constants that no node reads any more."""
        kept = list(nodes)
        del self.graph.node[:]
        self.graph.node.extend(kept)
        used = {name for node in kept for name in node.input} | {output.name for output in self.graph.output}
        constants = [tensor for tensor in self.graph.initializer if tensor.name in used]
        del self.graph.initializer[:]
        self.graph.initializer.extend(constants)
        self._reindex()

    def drop_unread(self) -> None:
        """Drops nodes of which nothing is read, until an output of the graph or a node that stays reads of each."""
        needed = {output.name for output in self.graph.output}
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        self.replace_nodes(reversed(kept))

    def save(self, path: Path, metadata: Mapping[str, str]) -> None:
        """Writes the model, with short texts as further properties; equal models give equal bytes."""
        kept = {entry.key: entry.value for entry in self.model.metadata_props} | dict(metadata)
        self.model.ClearField("metadata_props")
        for key in sorted(kept):
            self.model.metadata_props.add(key=key, value=kept[key])
        onnx.save(self.model, path)

    def infer(self) -> None:
        """Finds every tensor's type and shape anew. Raises InputError when the graph is not well typed."""
        del self.graph.value_info[:]
        try:
            inferred = shape_inference.infer_shapes(self.model, check_type=True, strict_mode=True, data_prop=True)
        except shape_inference.InferenceError as error:
            raise InputError(f"the graph is not well typed ({in_short(error)})") from error
        self.graph.value_info.extend(inferred.graph.value_info)
        self._reindex()

    def raise_opset(self, version: int) -> None:
        """Brings ONNX's own operators to at least this version; a newer model stays as it is."""
        if self.opset >= version:
            return
        names = [node.name for node in self.graph.node]
        properties = list(self.model.metadata_props)
        try:
            converted = version_converter.convert_version(self.model, version)
        except (RuntimeError, version_converter.ConvertError) as error:
            raise UnsupportedError(
                f"the graph cannot be brought from opset {self.opset} to {version} ({in_short(error)})",
                code=Cause.NO_OPSET,
                hint="export the model again",
            ) from error
        _initialise_constants(converted.graph)  # what was an attribute may be a Constant node now
        if len(names) == len(converted.graph.node):  # the converter forgets properties, and some names
            for node, name in zip(converted.graph.node, names, strict=True):
                node.name = name
        del converted.metadata_props[:]
        converted.metadata_props.extend(properties)
        self.model, self.graph = converted, converted.graph
        _name_nodes(self.graph)
        self.infer()

    def _reindex(self) -> None:
        self._constants = {tensor.name: tensor for tensor in self.graph.initializer}
        self._producers = {output: node for node in self.graph.node for output in node.output if output}
        self._consumers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.graph.node:
            for name in dict.fromkeys(node.input):
                self._consumers.setdefault(name, []).append(node)
        self._types: dict[str, int] = {}
        self._shapes: dict[str, tuple[int | None, ...]] = {}
        for value in (*self.graph.input, *self.graph.value_info, *self.graph.output):
            if value.type.HasField("tensor_type"):
                self._types[value.name] = value.type.tensor_type.elem_type
                if value.type.tensor_type.HasField("shape"):
                    self._shapes[value.name] = tuple(
                        size.dim_value if size.HasField("dim_value") else None
                        for size in value.type.tensor_type.shape.dim
                    )
        self._names = {*self._constants, *self._producers, *self._types, *(node.name for node in self.graph.node)}


def open_network(path: Path) -> Network:
    """Reads an ONNX file into plain form. Raises InputError for a file that is none, UnsupportedError for one whose
    nodes have bodies."""
    try:
        model = onnx.load(path)
        _mend(model)
        onnx.checker.check_model(model)
    except _INVALID as error:
        raise InputError(f"{path} is not a valid ONNX model ({in_short(error)})", hint=_CHECK) from error
    return as_network(model)


def as_network(model: onnx.ModelProto) -> Network:
    """The same from a model in memory, which is left as it is."""
    copy = onnx.ModelProto()
    copy.CopyFrom(inliner.inline_local_functions(model) if model.functions else model)
    bodies = [node.op_type for node in copy.graph.node if _has_body(node)]
    if bodies:
        raise UnsupportedError(f"the graph has bodies inside nodes ({bodies[0]})", code=Cause.GRAPH_WITH_BODIES)
    _name_nodes(copy.graph)
    _initialise_constants(copy.graph)
    network = Network(copy)
    network.infer()
    return network


def _mend(model: onnx.ModelProto) -> None:
    """What onnxruntime takes and onnx.checker does not: constants that are no inputs in IR version 3, nodes in any
    order, and outputs that state no shape but have one."""
    model.ir_version = max(model.ir_version, FIRST_IR_WITH_CONSTANTS)
    _sort_nodes(model.graph)
    shapeless = [output for output in model.graph.output if _lacks_shape(output)]
    if not shapeless:
        return
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    found = {output.name: output for output in inferred.graph.output if not _lacks_shape(output)}
    for output in shapeless:
        if output.name not in found:
            raise InputError(
                f"the output {output.name} states no shape, and ONNX's shape inference finds none",
                hint="export the model so that its outputs state their number of dimensions, or run it in fp32",
            )
        output.CopyFrom(found[output.name])


def _lacks_shape(value: onnx.ValueInfoProto) -> bool:
    return value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")


def _sort_nodes(graph: onnx.GraphProto) -> None:
    """Puts the nodes of the main graph in an order in which they run; nodes that are in one stay as they are."""
    writers = {name: number for number, node in enumerate(graph.node) for name in node.output if name}
    needs = [{writers[name] for name in _reads(node) if name in writers} for node in graph.node]
    if all(max(sources, default=-1) < number for number, sources in enumerate(needs)):
        return
    try:
        order = list(TopologicalSorter(dict(enumerate(needs))).static_order())
    except CycleError as error:
        names = [node.name or node.op_type for node in map(graph.node.__getitem__, error.args[1])]
        raise ValueError(f"its nodes read each other's outputs in a cycle: {', '.join(names)}") from error
    nodes = [graph.node[number] for number in order]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, its bodies included."""
    yield from node.input
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            for inner in body.node:
                yield from _reads(inner)
            yield from (output.name for output in body.output)


def _initialise_constants(graph: onnx.GraphProto) -> None:
    """Constant nodes and copies of constants become initialisers of the same names; initialisers are no inputs."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    outputs = {output.name for output in graph.output}
    rest = []
    for node in graph.node:
        value = None
        if node.op_type == "Constant":
            value = _constant_value(node)
        elif node.op_type == "Identity" and node.input[0] in constants:
            value = constants[node.input[0]]
        if value is None or node.output[0] in outputs:
            rest.append(node)
            continue
        copy = onnx.TensorProto()
        copy.CopyFrom(value)
        copy.name = node.output[0]
        constants[copy.name] = copy
    inputs = [entry for entry in graph.input if entry.name not in constants]  # ir_version 3 listed both
    for field, values in ((graph.node, rest), (graph.initializer, list(constants.values())), (graph.input, inputs)):
        del field[:]
        field.extend(values)


def _constant_value(node: onnx.NodeProto) -> onnx.TensorProto | None:
    attribute = node.attribute[0]
    if attribute.name == "value":
        value: onnx.TensorProto = attribute.t
        return value
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if attribute.name not in kinds:
        return None  # texts and sparse tensors stay
    return numpy_helper.from_array(np.array(helper.get_attribute_value(attribute), kinds[attribute.name]))


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Gives nodes without a name, or with one that another has, a name of their own."""
    for node, name in zip(graph.node, free_names((node.name, node.op_type) for node in graph.node), strict=True):
        node.name = name


def _has_body(node: onnx.NodeProto) -> bool:
    return any(entry.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for entry in node.attribute)
