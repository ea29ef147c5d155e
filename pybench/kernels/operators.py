# SPDX-License-Identifier: Apache-2.0
"""The profile of a run that onnxruntime recorded, from its trace and the graph that it executed.

The trace is JSON in Chrome's form: one event for each node of each run (`NAME_kernel_time`, microseconds), one for each
whole run (`model_run`). Nodes inside a Loop or If are events of their own inside the event of that node; only the outer
one counts. Runs before the first one that is to count are left out. Seen with onnxruntime 1.31.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from pybench.kernels.executed import MOVING, QDQ, origins
from pybench.kernels.profile import Kernel, Profile, Work
from pybench.onnx_file.graph import OnnxGraph, OnnxNode
from pybench.onnx_file.products import STORED_PRODUCT
from pybench.words import counted

METHOD = "median of {} of a session of its own with onnxruntime's profiler, after every window"
MS_PER_US = 1e-3

_KERNEL = "_kernel_time"
_RUN = "model_run"
_MULTIPLYING = re.compile("conv|matmul|gemm|attention|lstm|gru|rnn|einsum", re.IGNORECASE)
_INTEGER = re.compile("^Q|Integer|^DynamicQuantize")  # QLinearConv, QGemm, ConvInteger, DynamicQuantizeMatMul
_TYPES = {
    "float": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "double": "fp64",
    "float8e4m3fn": "fp8",
}
_INTEGER_CODES = frozenset({"int8", "uint8"})


@dataclass(slots=True)
class _Events:
    """What the trace says of one node: its facts once, and its time in each run."""

    name: str
    arguments: Mapping[str, Any]
    times_us: list[float] = field(default_factory=list)


def profile_of_runs(
    trace: Sequence[Mapping[str, Any]], written: OnnxGraph, executed: OnnxGraph, *, skipped: int
) -> Profile:
    """The profile of a trace. `skipped`: how many runs at its begin do not count. Raises ValueError for a trace in
    which no run counts."""
    runs = sorted((event["ts"], event["ts"] + event["dur"]) for event in trace if event.get("name") == _RUN)[skipped:]
    if not runs:
        raise ValueError("the profiler recorded no run")
    events = _by_node(_outer(event for event in trace if _is_kernel(event) and event["ts"] >= runs[0][0]))
    nodes = _placed(events, executed.nodes)
    origin = origins(written, executed)
    return Profile(
        source="onnxruntime",
        method=METHOD.format(counted(len(runs), "run")),
        iterations=len(runs),
        kernels=tuple(_kernel(name, found, nodes.get(name), origin, executed) for name, found in events.items()),
        iteration_ms=MS_PER_US * median(end - begin for begin, end in runs),
        qdq_nodes=sum(node.op in QDQ for node in written.nodes),
    )


def _is_kernel(event: Mapping[str, Any]) -> bool:
    return event.get("cat") == "Node" and str(event.get("name", "")).endswith(_KERNEL)


def _outer(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events that lie inside no other, in the order of their begin."""
    found: list[Mapping[str, Any]] = []
    end = float("-inf")
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["ts"] + event["dur"] > end:
            found.append(event)
            end = event["ts"] + event["dur"]
    return found


def _by_node(events: Iterable[Mapping[str, Any]]) -> dict[str, _Events]:
    """Name -> the events of one node, in the order of their first event. Where nodes share a name, all but the first
    have their number behind it."""
    found: dict[tuple[str, Any], _Events] = {}
    for event in events:
        name = event["name"].removesuffix(_KERNEL)
        node = found.setdefault((name, event["args"].get("node_index")), _Events(name, event["args"]))
        node.times_us.append(event["dur"])
    named: dict[str, _Events] = {}
    for (name, number), node in found.items():
        named[f"{name} #{number}" if name in named else name] = node
    return named


def _placed(events: Mapping[str, _Events], nodes: Sequence[OnnxNode]) -> dict[str, int]:
    """Name in the trace -> place in the executed graph. A node without a name is called `Relu_12` in the trace. Of
    several with one name, or with none and one operator, the k-th in the graph is the k-th in the trace, if there are
    as many."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, node in enumerate(nodes):
        places[node.name or f"a nameless {node.op}"].append(place)
    traced: dict[str, list[str]] = defaultdict(list)
    for name, found in events.items():
        is_named = found.name in places
        traced[found.name if is_named else f"a nameless {found.arguments.get('op_name', '')}"].append(name)
    alike = [(names, places[key]) for key, names in traced.items() if len(names) == len(places[key])]
    return {name: place for names, there in alike for name, place in zip(names, there, strict=True)}


def _kernel(
    name: str, found: _Events, place: int | None, origin: Sequence[tuple[str, ...]], executed: OnnxGraph
) -> Kernel:
    arguments = found.arguments
    operator = str(arguments.get("op_name", ""))
    inputs, outputs = (_types(arguments.get(key, ())) for key in ("input_type_shape", "output_type_shape"))
    work = _work(operator)
    node = None if place is None else executed.nodes[place]
    reads = () if node is None else tuple(one for one in node.inputs if one and one not in executed.weights)
    return Kernel(
        name=name,
        kernel=operator,
        work=work,
        computes_in=_computes_in(operator, inputs, node) if work == "multiplying" else None,
        inputs=inputs,
        outputs=outputs,
        nodes=() if place is None else origin[place],
        reads=reads,
        writes=() if node is None else tuple(one for one in node.outputs if one),
        of_constants=work in ("moving", "quantising") and node is not None and not reads,
        time_ms=MS_PER_US * median(found.times_us),
    )


def _work(operator: str) -> Work:
    if operator in QDQ:
        return "quantising"
    if operator in MOVING:
        return "moving"
    return "multiplying" if _MULTIPLYING.search(operator) else "other"


def _types(stated: Iterable[Mapping[str, Any]]) -> tuple[str | None, ...]:
    """Element types of `[{"float": [8, 3]}, {"uint8": []}]`."""
    return tuple(_TYPES.get(kind, kind) for each in stated for kind in list(each)[:1])


def _computes_in(operator: str, inputs: Sequence[str | None], node: OnnxNode | None) -> str | None:
    if _INTEGER.search(operator):
        return "int8"
    if operator == STORED_PRODUCT and (node is None or node.integer("accuracy_level", 0) > 1):
        return None  # a kernel may round what it reads: the trace does not tell
    first = inputs[0] if inputs else None
    return "int8" if first in _INTEGER_CODES else first
