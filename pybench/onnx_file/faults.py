# SPDX-License-Identifier: Apache-2.0
"""What in an ONNX file keeps every runtime from running it: broken rules of the format, and weights that are not there.

Sources of the rules: ONNX's IR specification (onnx/docs/IR.md), and what onnxruntime 1.31 refuses. Names only what is
certain: types and sizes inside the graph, versions and operators are for the runtime to judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pybench.errors import InputError
from pybench.onnx_file.graph import BITS, ExternalData, OnnxGraph, OnnxModel, OnnxNode, node_name, read_model
from pybench.words import is_utf_8

LARGEST_BYTES = 2**31 - 1  # of a message of protobuf: onnxruntime and TensorRT read no larger file
EXPORT_AGAIN = "export the model again, and check it with onnx.checker.check_model"

_OTHER_FORMATS = {  # first bytes of what is found under the name of an ONNX file -> what it is, what to do
    b"version https://git-lfs": ("a pointer of Git LFS, not the model", "run `git lfs pull` where it was cloned"),
    b"PK\x03\x04": ("a zip archive (a checkpoint of torch is one)", "export the model to ONNX"),
    b"\x89HDF": ("an HDF5 file", "export the model to ONNX"),
    b"\x1f\x8b": ("compressed by gzip", "unpack it with gunzip"),
    b"<": ("a text of HTML or XML", "download the model again: the server answered with a page"),
}
ORT_FORMAT = b"ORTM"  # the identifier of onnxruntime's flatbuffer, from its fifth byte on


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and what to do about it."""

    what: str
    hint: str


def read_sound(path: Path) -> OnnxModel:
    """The model in a file. Raises InputError, with the path, for a file that is not there or that nothing can run."""
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="give the ONNX file in it")
    try:
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{path}: it is empty", hint="copy or download it again, or export it again")
        found = opened(path)
    except OSError as error:
        hint = (
            "let this user read it (chmod)" if isinstance(error, PermissionError) else "give the path of an ONNX file"
        )
        raise InputError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    if isinstance(found, Fault):
        raise InputError(f"{path}: {found.what}", hint=found.hint)
    return found


def opened(path: Path) -> OnnxModel | Fault:
    """The model in a file, or what keeps every runtime from running it."""
    if not is_utf_8(path):
        return Fault("its path is not UTF-8, and runtimes open no such path", "rename the file, or the folder with it")
    with open(path, "rb") as file:
        beginning = file.read(32)
    for magic, (what, hint) in _OTHER_FORMATS.items():
        if beginning.startswith(magic):
            return Fault(f"it is {what}", hint)
    if beginning[4:8] == ORT_FORMAT:
        return Fault("it is in onnxruntime's own format (.ort), not ONNX", "give the ONNX file that it was made of")
    size = path.stat().st_size
    if size > LARGEST_BYTES:
        return Fault(f"it has {size} bytes, and protobuf reads {LARGEST_BYTES}", "save its weights as external data")
    try:
        model = read_model(path)
    except InputError as error:
        return Fault(_reason(error), "it may be truncated: copy or download it again, or export it again")
    return next(_faults(model, path.parent), model)


def _reason(error: InputError) -> str:
    return f"it is not an ONNX file ({error.__cause__})"


def _faults(model: OnnxModel, folder: Path) -> Iterator[Fault]:
    graph = model.graph
    if not model.opsets:
        yield Fault("it names no operator set (opset_import)", EXPORT_AGAIN)
    yield from _domains(model)
    yield from _names(graph)
    yield from _reads(graph, set())
    yield from _cycles(graph)
    yield from _lengths(graph)
    for name, where in (graph.beside or {}).items():
        yield from _beside(name, where, folder)


def _domains(model: OnnxModel) -> Iterator[Fault]:
    """Operators of a domain that the file does not import. A local function needs no import."""
    for node in model.graph.nodes:
        if node.domain not in model.opsets and (node.domain, node.op) not in model.functions:
            what = f"{called(node)} is of the domain {node.domain or 'ai.onnx'}, which opset_import does not name"
            yield Fault(what, EXPORT_AGAIN)


def _names(graph: OnnxGraph) -> Iterator[Fault]:
    """Each tensor has one origin: an input or the output of one node; and outputs have one."""
    inputs = [value.name for value in graph.inputs]
    if twice := _first_twice(inputs):
        yield Fault(f"two inputs have the name {twice}", EXPORT_AGAIN)
    written = {value.name: "an input" for value in graph.fed}
    for node in graph.nodes:
        for name in filter(None, node.outputs):
            if name in written:
                yield Fault(f"{called(node)} writes {name}, which is written by {written[name]}, too", EXPORT_AGAIN)
            written[name] = called(node)
    if not graph.outputs:
        yield Fault("it has no output", EXPORT_AGAIN)
    for value in graph.outputs:
        if value.name not in written and value.name not in graph.weights:
            yield Fault(f"nothing writes its output {value.name}", EXPORT_AGAIN)


def _first_twice(names: list[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _reads(graph: OnnxGraph, around: Set[str]) -> Iterator[Fault]:
    """Nodes that read what nothing writes. `around`: what a body sees of the graphs that it is inside."""
    known = {*around, *graph.weights, *(value.name for value in graph.inputs)}
    known.update(name for node in graph.nodes for name in node.outputs)
    for node in graph.nodes:
        for name in filter(None, node.inputs):
            if name not in known:
                yield Fault(f"{called(node)} reads {name}, which nothing writes", EXPORT_AGAIN)
        for body in node.bodies:
            yield from _reads(body, known)


def _cycles(graph: OnnxGraph) -> Iterator[Fault]:
    """Nodes of the main graph that wait for each other; the order in the file may be any (Kahn 1962)."""
    writer = {name: index for index, node in enumerate(graph.nodes) for name in node.outputs if name}
    waiting = [{writer[name] for name in _all_reads(node) if name in writer} for node in graph.nodes]
    readers: Mapping[int, list[int]] = {index: [] for index in range(len(graph.nodes))}
    for index, sources in enumerate(waiting):
        for source in sources:
            readers[source].append(index)
    ready = [index for index, sources in enumerate(waiting) if not sources]
    for index in ready:  # grows while it is walked
        for reader in readers[index]:
            waiting[reader].discard(index)
            if not waiting[reader]:
                ready.append(reader)
    if len(ready) < len(graph.nodes):
        stuck = next(node for node, sources in zip(graph.nodes, waiting, strict=True) if sources)
        yield Fault(f"{called(stuck)} waits for its own result: the graph has a cycle", EXPORT_AGAIN)


def _all_reads(node: OnnxNode) -> Iterator[str]:
    yield from node.inputs
    for body in node.bodies:
        for inner in body.nodes:
            yield from _all_reads(inner)
        yield from (value.name for value in body.outputs)


def _lengths(graph: OnnxGraph) -> Iterator[Fault]:
    """Weights with more or fewer bytes than their shape and type have."""
    lengths = dict(graph.stored)
    lengths |= {name: where.length for name, where in (graph.beside or {}).items() if where.length is not None}
    for name, length in lengths.items():
        (kind, count), shape = graph.weights[name], list(graph.sizes[name])
        needed = None if kind not in BITS or min(shape, default=0) < 0 else -(-count * BITS[kind] // 8)
        if needed is not None and length != needed:
            what = f"the weight {name} has {length} bytes, and its shape {shape} of {kind} needs {needed}"
            yield Fault(what, EXPORT_AGAIN)
    for node in graph.nodes:
        for body in node.bodies:
            yield from _lengths(body)


def _beside(name: str, where: ExternalData, folder: Path) -> Iterator[Fault]:
    """A weight in another file, which has to lie in the model's folder, or below it, and to be long enough."""
    location = PurePosixPath(where.location)
    path = folder / location
    hint = "copy the file of weights to where the model expects it"
    if location.is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
        what = f"the weight {name} is in {where.location}, which is not in the model's folder"
        yield Fault(what, "save the model again with its weights in its own folder: runtimes open no other")
    elif not path.is_file():
        yield Fault(f"the weight {name} is in {where.location}, and there is no such file in {folder}", hint)
    elif path.stat().st_size < where.offset + (where.length or 0):
        end = where.offset + (where.length or 0)
        what = f"the weight {name} ends at byte {end} of {where.location}, which has {path.stat().st_size} bytes"
        yield Fault(what, hint)


def called(node: OnnxNode) -> str:
    """A node as errors name it."""
    name = node_name(node.name, node.outputs[0] if node.outputs else "")
    return f"the node {name} ({node.op})"
