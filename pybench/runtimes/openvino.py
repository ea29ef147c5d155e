# SPDX-License-Identifier: Apache-2.0
"""OpenVINO: an ONNX file on its CPU plugin, which executes symmetric pairs of Q/DQ in integers.

The plugin computes in BF16 or FP16 wherever a CPU has them, unless it is told a type, so each session is told one. It
may still take another: the hint `f16` becomes BF16 on a CPU without FP16. Therefore the types of a CPU are asked before
a file is opened, and `executed` tells what each kernel ran in. Does not judge the precision: `pybench.precision` does.

OpenVINO reports its import to its makers over the network. The package that does so is kept from being imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench import measure
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import floating_type
from pybench.catalogue.refusals import refuse_precision, refuse_transfers
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import InputError, UnsupportedError, in_short
from pybench.onnx_file.facts import stored_bytes
from pybench.onnx_file.graph import read_graph
from pybench.runtimes.memory import memory_errors
from pybench.runtimes.session import Arrays, Iterate, Launch, TensorSpec, Wait, ended, with_names

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
import openvino  # noqa: E402

NAME = "openvino"
CPU = "CPU"
_HINTS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}
_TYPES = {"FP32": "fp32", "BF16": "bf16", "FP16": "fp16", "INT8": "int8"}  # of what a device says that it can do
_TOLD = (
    "INFERENCE_PRECISION_HINT",
    "INFERENCE_NUM_THREADS",
    "NUM_STREAMS",
    "PERFORMANCE_HINT",
    "ENABLE_CPU_PINNING",
    "ENABLE_HYPER_THREADING",
)


class OpenVinoSession:
    """An opened ONNX file on the CPU."""

    kind = "cpu"
    device = "cpu"
    device_uuid: str | None = None

    def __init__(self, compiled: openvino.CompiledModel, path: Path, seconds: float) -> None:
        self.path = path
        self.model_bytes = stored_bytes(path)
        self.compile_s: float | None = seconds
        graph = read_graph(path)
        self.metadata = dict(graph.properties)
        self.inputs = with_names([_spec(value, path) for value in compiled.inputs], path)
        self.output_names: tuple[str, ...] = tuple(value.name for value in graph.outputs)
        self.labels: dict[str, Any] = {
            "runtime_version": openvino.__version__,
            "provider_options": {CPU: {name: _said(compiled.get_property(name)) for name in _TOLD}},
            "iteration": "one inference on bound inputs, until it returns",
        }
        self._compiled = compiled
        self._request = compiled.create_infer_request()

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        with _run_errors(self.path):
            outputs = self._request.infer(dict(inputs), share_inputs=False, share_outputs=False)
        return [outputs[value] for value in self._compiled.outputs]

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        """Inputs are read where they lie, and outputs stay in the memory of the request."""
        if transfers:
            refuse_transfers(RUNTIMES[NAME], has_gpu=False)
        request = self._compiled.create_infer_request()
        held = {name: openvino.Tensor(array, shared_memory=True) for name, array in inputs.items()}
        for name, tensor in held.items():
            request.set_tensor(name, tensor)
        with _run_errors(self.path):
            request.infer()

        def iterate() -> None:
            request.infer(share_outputs=True)

        return iterate

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        return measure.CallReplayer(self.bind(inputs, transfers=transfers))

    def bind_feed(self) -> Launch:
        """The arrays are read where they lie."""
        request = self._request

        def launch(inputs: Arrays) -> Wait:
            request.infer(dict(inputs), share_inputs=True, share_outputs=True)
            return ended

        return launch

    def executed(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Of each kernel its operator, the type that it ran in as OpenVINO calls it, and the nodes of the file that
        it computes, where their names are left."""
        return [
            (_said(facts["layerType"]), _said(facts["runtimePrecision"]), _names(_said(facts["originalLayersNames"])))
            for facts in (node.get_rt_info() for node in self._compiled.get_runtime_model().get_ops())
        ]


def installed() -> dict[str, Any]:
    """OpenVINO's version, and the types that this CPU multiplies in by what the plugin says."""
    return {"version": openvino.__version__, "types": sorted(cpu_types())}


def cpu_types() -> set[str]:
    """Names of types that the plugin's kernels have on this CPU."""
    return {_TYPES[said] for said in openvino.Core().get_property(CPU, "OPTIMIZATION_CAPABILITIES") if said in _TYPES}


def open_case(
    given: Path, spec: TensorSpec | None, case: Case, threads: int, *, deterministic: bool = False
) -> OpenVinoSession:
    """`given`: the ONNX file. It states its own inputs, and has no algorithms to choose from."""
    return open_session(given, precision=case.precision, threads=threads, device=case.device)


def open_session(path: Path, *, precision: str, threads: int, device: str) -> OpenVinoSession:
    """Opens an ONNX file.

    Raises UnsupportedError for a precision that OpenVINO or this CPU does not execute, for a GPU and for a graph that
    OpenVINO does not compile. Raises InputError for a file that is no runnable ONNX model."""
    if device not in ("auto", "cpu"):
        raise UnsupportedError(
            f"{NAME} runs on the CPU here, and device {device} is asked for", code=Cause.NO_GPU, hint="set device: cpu"
        )
    refuse_precision(RUNTIMES[NAME], None, precision, has_gpu=False, on_cpu=cpu_types())
    read_graph(path)  # a file that is no ONNX has a clear error here; OpenVINO tries all its other readers on it
    options = {
        "INFERENCE_PRECISION_HINT": _HINTS[floating_type(precision)],
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_HYPER_THREADING": True,  # else it leaves every second thread of a core out, and other runtimes do not
        "ENABLE_CPU_PINNING": False,  # the CPUs of a run are its process's affinity
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,  # else weights alone in int8 have their activations quantised, too
    }
    begin_ns = measure.monotonic_ns()
    core = openvino.Core()
    with _open_errors(path):
        compiled = core.compile_model(core.read_model(path), CPU, options)
    return OpenVinoSession(compiled, path, measure.seconds_since(begin_ns))


def _spec(value: Any, path: Path) -> TensorSpec:
    """Sizes that are free have no length."""
    shape = tuple(size.get_length() if size.is_static else None for size in value.partial_shape)
    called = value.element_type.get_type_name()
    if called == "bf16":
        raise UnsupportedError(
            f"{path.name} takes bfloat16, which OpenVINO's Python interface does not pass",
            code=Cause.NO_BF16_TENSORS,
            hint="export the model with inputs and outputs in FP32, and a Cast behind and before them",
        )
    return TensorSpec(_name(value), np.dtype(value.element_type.to_dtype()), shape)


def _name(value: Any) -> str:
    """The input's name in the file; OpenVINO knows a tensor by several."""
    return str(value.get_node().get_friendly_name())


def _names(said: str) -> tuple[str, ...]:
    return tuple(name for name in said.split(",") if name)


def _said(value: Any) -> str:
    """A property or a fact of a node, as text: some are wrapped."""
    plain = getattr(value, "value", value) if isinstance(value, openvino.OVAny) else value
    return str(plain.get_type_name() if isinstance(plain, openvino.Type) else getattr(plain, "name", plain))


@contextmanager
def _open_errors(path: Path) -> Iterator[None]:
    """What OpenVINO throws where it does not read or compile a file has one type: the words are all there is."""
    try:
        with memory_errors():
            yield
    except RuntimeError as error:
        raise UnsupportedError(
            f"{path}: OpenVINO does not compile this graph ({_last_words(error)})",
            code=Cause.NOT_COMPILED,
            hint="use another runtime that opens the file, or mend the node that the message names",
        ) from error


@contextmanager
def _run_errors(path: Path) -> Iterator[None]:
    """Inputs that a file refuses."""
    try:
        with memory_errors():
            yield
    except RuntimeError as error:
        hint = "its sizes may be fixed inside: give those that it was exported with, or export it with free ones"
        raise InputError(f"{path} does not run on these inputs ({_last_words(error)})", hint=hint) from error


def _last_words(error: Exception) -> str:
    """The reason, which stands behind the places in OpenVINO's sources, on one line of at most 200 characters."""
    lines: Iterable[str] = (line.strip() for line in str(error).splitlines())
    said = [line for line in lines if line and not line.startswith(("Exception from", "Check "))]
    return in_short(said[-1] if said else error)
