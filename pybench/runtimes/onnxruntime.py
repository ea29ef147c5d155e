# SPDX-License-Identifier: Apache-2.0
"""onnxruntime: an ONNX file on its CPU provider, or on CUDA's or TensorRT's where the installed build has them.

The precision is in the file, but for TF32, which is an option (`providers.py` states all of them). Iterations run
through IO binding: inputs and outputs stay at fixed addresses, and nothing is allocated or copied in addition to the
work. The CUDA provider captures a run as a CUDA graph and replays it inside its own call, on a stream of its own. So
iterations are timed by the host in either case. A graph that it cannot capture is enqueued, and the labels say so. Does
not judge the precision: `pybench.precision` does.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as errors

from pybench import measure
from pybench.case import Case
from pybench.case.quantising import opened_in
from pybench.catalogue.causes import Cause
from pybench.catalogue.refusals import refuse_precision, refuse_transfers
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import InputError, UnsupportedError
from pybench.kernels.launches import KernelLaunches, profile_of_launches
from pybench.kernels.profile import Profile
from pybench.onnx_file.facts import stored_bytes
from pybench.runtimes import bfloat16, providers
from pybench.runtimes.device import narrow
from pybench.runtimes.launched import Kernels, launched_by
from pybench.runtimes.memory import memory_errors, memory_evidence
from pybench.runtimes.onnxruntime_errors import not_started, refusal_of, short
from pybench.runtimes.onnxruntime_profile import profile_session
from pybench.runtimes.session import Arrays, Iterate, Launch, TensorSpec, Wait, ended
from pybench.runtimes.tensorrt import library

NAME = "onnxruntime"
Run = Callable[[list[str], dict[str, npt.NDArray[Any]], Any], list[npt.NDArray[Any]]]
NOT_CAPTURED = -1  # of the CUDA provider's `gpu_graph_id`, which tells captured runs apart: this one is none

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint64)": np.uint64,
    "tensor(uint32)": np.uint32,
    "tensor(uint16)": np.uint16,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
# Errors of a status, by its name in the C API: those that opening a file may meet.
_STATUSES = {
    errors.NotImplemented: "NOT_IMPLEMENTED",
    errors.InvalidProtobuf: "INVALID_PROTOBUF",
    errors.InvalidGraph: "INVALID_GRAPH",
    errors.InvalidArgument: "INVALID_ARGUMENT",
    errors.NoSuchFile: "NO_SUCHFILE",
    errors.NoModel: "NO_MODEL",
    errors.Fail: "FAIL",
    errors.RuntimeException: "RUNTIME_EXCEPTION",
}
_LOG_ERRORS = 3  # of onnxruntime's severities: below are notes about graph passes


@dataclass(frozen=True, slots=True)
class StartedSession:
    """A session and what starting it took.

    seconds: from the call until the session was there
    graph: whether its runs can be captured as a CUDA graph
    why_not: the error, where they cannot
    """

    session: onnxruntime.InferenceSession
    seconds: float
    graph: bool
    why_not: str | None = None


class OnnxRuntimeSession:
    """An opened ONNX file. `kind`: `cpu` or `cuda`, where its tensors are."""

    def __init__(self, started: StartedSession, path: Path, kind: str, labels: dict[str, Any]) -> None:
        session = started.session
        self.path = path
        self.kind = kind
        self.labels = labels
        self.model_bytes = stored_bytes(path)
        self.compile_s: float | None = started.seconds
        self.device_uuid = labels.get("device_uuid")
        self.metadata: dict[str, str] = dict(session.get_modelmeta().custom_metadata_map)
        self.inputs = tuple(_spec(value, path) for value in session.get_inputs())
        self.output_names: tuple[str, ...] = tuple(value.name for value in session.get_outputs())
        self._session = session
        self._graph = started.graph
        self._graphs = itertools.count(1)
        self._plain = _run_options(NOT_CAPTURED) if started.graph else None
        self._outputs = list(self.output_names)
        self._run = _runner(session, kind, path)
        self._last: Callable[[], object] = ended  # what ran last, to be run again when the kernels are asked for
        self._fed: Arrays = {}  # what it ran on

    @property
    def device(self) -> str:
        return "cpu" if self.kind == "cpu" else (self.device_uuid or "cuda")

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        with _run_errors(self.path, self.kind):
            outputs = self._run(self._outputs, dict(inputs), self._plain)
        self._remember(inputs)
        return outputs

    @property
    def inference(self) -> onnxruntime.InferenceSession:
        """What runs bindings of someone else's making."""
        return self._session

    def kernels(self) -> Kernels:
        """Those of a GPU that what was bound or run last launches, once more; nothing is measured after it."""
        return self.launched().kernels

    def launched(self) -> KernelLaunches:
        """The same, with the time in which any of them ran."""
        return launched_by(self._last)

    def profile(self, threads: int, precision: str) -> Profile:
        """The kernels of a run on what was fed last: nodes with their times on a CPU, recorded kernels on a GPU."""
        if self.kind == "cuda":
            return profile_of_launches(self.launched())
        chain = providers.options_of("cpu", precision, graph=False)
        return profile_session(self.path, _options(threads), chain, self._fed)

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        if transfers:
            refuse_transfers(RUNTIMES[NAME], has_gpu=self.kind == "cuda")
        begin_ns = measure.monotonic_ns()
        binding = self._session.io_binding()
        held = {name: bfloat16.ort_value(array, self.kind) for name, array in inputs.items()}
        for name, value in held.items():
            binding.bind_ortvalue_input(name, value)
        outputs = self._output_values(inputs)
        for name, value in outputs.items():
            binding.bind_ortvalue_output(name, value)
        iterate = self._iterate(binding)

        def iterate_with_copies() -> None:
            for name, value in held.items():
                value.update_inplace(inputs[name])
            iterate()
            for value in outputs.values():
                value.numpy()

        if transfers:
            self.labels["transfers"] = "copies to and from the device in each iteration, in pageable memory of the host"
        if self.kind == "cuda" and self.compile_s is not None:
            iterate()  # the first runs build what depends on shapes, and capture
            self.compile_s += measure.seconds_since(begin_ns)
        self._last = iterate
        return iterate_with_copies if transfers else iterate

    def _iterate(self, binding: Any) -> Iterate:
        run = self._session.run_with_iobinding
        if self.kind == "cpu":
            return lambda: run(binding)
        options = _run_options(next(self._graphs)) if self._graph else None

        def iterate() -> None:
            run(binding, options)
            binding.synchronize_outputs()  # a replayed graph need not have ended when the call returns

        return iterate

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        return measure.CallReplayer(self.bind(inputs, transfers=transfers))

    def bind_feed(self) -> Launch:
        """On the CPU the arrays are read where they lie; outputs are allocated anew, for shapes may change."""
        run, names, plain = self._run, self._outputs, self._plain

        def launch(inputs: Arrays) -> Wait:
            run(names, dict(inputs), plain)
            if self._last is ended:  # a copy, for what is fed is lent
                self._remember({name: array.copy() for name, array in inputs.items()})
            return ended

        return launch

    def _remember(self, inputs: Arrays) -> None:
        run, names, plain = self._run, self._outputs, self._plain  # not self: a cycle would hold a GPU's memory

        def again() -> object:
            return run(names, dict(inputs), plain)

        self._last = again
        self._fed = inputs

    def _output_values(self, inputs: Arrays) -> dict[str, onnxruntime.OrtValue]:
        """Outputs allocated once on the device: one run tells their shapes."""
        values = {}
        stated = {value.name: value.shape for value in self._session.get_outputs()}
        for name, array in zip(self._outputs, self.run(inputs), strict=True):
            _refuse_other_sizes(self.path, name, stated[name], array.shape)
            kind = bfloat16.ONNX_TYPE if bfloat16.is_bfloat16(array.dtype) else array.dtype
            values[name] = onnxruntime.OrtValue.ortvalue_from_shape_and_type(array.shape, kind, self.kind, 0)
        return values


def open_case(
    given: Path, spec: TensorSpec | None, case: Case, threads: int, *, deterministic: bool = False
) -> OnnxRuntimeSession:
    """`given`: the ONNX file. It states its own inputs, and has no algorithms to choose from."""
    return open_session(
        given,
        precision=opened_in(case),
        threads=threads,
        device=case.device,
        provider=case.provider,
        launch="enqueue" if case.workload_row.generates else case.launch,  # a graph has one shape, a cache grows
    )


def open_session(
    path: Path, *, precision: str, threads: int, device: str, provider: str | None = None, launch: str = "graph"
) -> OnnxRuntimeSession:
    """Opens an ONNX file. `provider`: None chooses CUDA where the device allows it, else the CPU; `launch`: `graph` or
    `enqueue`, of the CUDA provider.

    Raises UnsupportedError for a precision, provider or device that this build does not run, InputError for a file that
    is no runnable ONNX model.
    """
    narrow(device)
    kind, provider = providers.chosen_for(
        RUNTIMES[NAME], device, provider, tuple(onnxruntime.get_available_providers())
    )
    refuse_precision(RUNTIMES[NAME], providers.backend(provider), precision, has_gpu=kind == "cuda")
    if kind == "cuda":
        providers.set_tf32(precision)
        _load_libraries(provider)
    with _open_errors(path, provider):
        started = _start(
            path, provider, precision, threads, graph=providers.backend(provider).captures and launch == "graph"
        )
    used = started.session.get_providers()
    if providers.backend(provider).called not in used:
        raise not_started(provider)
    labels = {
        "runtime_version": onnxruntime.__version__,
        "provider": provider,
        "providers": used,
        "provider_options": {name: started.session.get_provider_options()[name] for name in used},
        "partitions": _partitions(started.session),
        "iteration": "one run with bound inputs and outputs, until it returns",
        "device_uuid": measure.visible_gpus()[0] if kind == "cuda" else None,  # providers are given device_id 0
    }
    if kind == "cuda":
        labels["launch"] = "graph, replayed inside the run" if started.graph else "enqueue"
        if started.why_not is not None:
            labels["launch"] = f"enqueue, as no graph could be captured ({started.why_not})"
        labels["tf32_override"] = os.environ.get(providers.TF32_OVERRIDE)
    return OnnxRuntimeSession(started, path, kind, labels)


def run_once(path: Path, provider: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The first output of a file of one input, on a provider. Nothing is captured or timed."""
    chain = providers.options_of(provider, "fp32", graph=False)
    session = onnxruntime.InferenceSession(path, _options(1), providers=chain, enable_fallback=0)
    outputs: list[npt.NDArray[Any]] = session.run(None, {session.get_inputs()[0].name: values})
    return outputs[0]


def write_optimised(
    path: Path, destination: Path, *, threads: int, provider: str = "cpu", precision: str = "fp32"
) -> None:
    """Writes the graph that a provider, `cpu` or `cuda`, would execute: after all passes, fused, with integer kernels.

    It has the Casts that onnxruntime puts around an operator that has no kernel in its type."""
    options = _options(threads)
    options.optimized_model_filepath = str(destination)
    # Beside it, for a file of protobuf holds no more than 2 GB.
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
    chain = providers.options_of(provider, precision, graph=False)
    with _open_errors(path, provider):
        onnxruntime.InferenceSession(path, options, providers=chain, enable_fallback=0)


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _LOG_ERRORS
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return options


def _start(path: Path, provider: str, precision: str, threads: int, *, graph: bool) -> StartedSession:
    """A session; without captured graphs where the provider refuses to capture this model.

    Without a fallback: onnxruntime's Python layer would else open the file on the CPU where a provider fails, and go on
    there, too, where one fails in a run.
    """
    begin_ns = measure.monotonic_ns()
    options = _options(threads)
    if provider == "tensorrt":  # the engine is built from the file as it is
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    chain = providers.options_of(provider, precision, graph=graph)
    try:
        session = onnxruntime.InferenceSession(path, options, providers=chain, enable_fallback=0)
    except errors.Fail as error:
        if not graph or "graph capture" not in str(error):
            raise
        plain = _start(path, provider, precision, threads, graph=False)
        return StartedSession(plain.session, plain.seconds, graph=False, why_not=short(error))
    return StartedSession(session, measure.seconds_since(begin_ns), graph)


def _partitions(session: onnxruntime.InferenceSession) -> dict[str, int] | None:
    """How many parts of the graph each provider took; None: this onnxruntime does not tell."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    return providers.partitions_of(session.get_provider_graph_assignment_info())


def _load_libraries(provider: str) -> None:
    """CUDA's and cuDNN's, which pip puts where the loader does not look; those that are nowhere it prints. TensorRT's
    are found by the loader once its own module has loaded them, if it is installed."""
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    if provider == "tensorrt":
        with suppress(UnsupportedError):
            library.load()


def _run_options(graph: int) -> onnxruntime.RunOptions:
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(graph))
    return options


def _runner(session: onnxruntime.InferenceSession, kind: str, path: Path) -> Run:
    """What runs a session on arrays. Raises UnsupportedError for bfloat16 on a GPU."""
    if not bfloat16.has_bfloat16(session):
        return session.run  # type: ignore[no-any-return]
    if kind != "cpu":
        raise UnsupportedError(
            f"{path.name} takes or gives bfloat16, which onnxruntime's Python interface does not pass to a GPU",
            code=Cause.NO_BF16_TENSORS,
            hint="export the model with FP32 inputs and outputs: a Cast after each input, and one before each output",
        )
    return lambda names, inputs, plain: bfloat16.run_raw(session, names, inputs)


def _spec(value: Any, path: Path) -> TensorSpec:
    shape = tuple(size if isinstance(size, int) and size > 0 else None for size in value.shape)
    names = tuple(size if isinstance(size, str) else None for size in value.shape)
    if value.type == "tensor(bfloat16)":
        return TensorSpec(value.name, bfloat16.bfloat16_type(f"{path.name}: the input {value.name}"), shape, names)
    if value.type not in _DTYPES:
        raise InputError(
            f"{path}: the input {value.name} is a {value.type}, which pybench cannot feed",
            hint="export the model with an input of one of numpy's types and a Cast after the input",
        )
    return TensorSpec(value.name, np.dtype(_DTYPES[value.type]), shape, names)


def _refuse_other_sizes(path: Path, name: str, stated: Sequence[Any], found: Sequence[int]) -> None:
    """Raises InputError for an output that is not of the sizes which the file states: none of others can be bound."""
    for position, (wrong, size) in enumerate(zip(stated, found, strict=False)):
        if isinstance(wrong, int) and wrong > 0 and wrong != size:
            another = f"set batch: {wrong}, or " if position == 0 else ""
            raise InputError(
                f"{path} states {list(stated)} as the sizes of its output {name}, which is {list(found)} here",
                hint=f"{another}export the model with the sizes of its outputs free",
            )


@contextmanager
def _open_errors(path: Path, provider: str) -> Iterator[None]:
    """A file that cannot be run, or a provider that is not whole; a GPU that fails is neither, and passes."""
    try:
        with memory_errors():
            yield
    except tuple(_STATUSES) as error:
        refused = refusal_of(path, provider, _STATUSES[type(error)], str(error))
        if refused is None:
            raise
        raise refused from error
    except RuntimeError as error:  # not of a status: what TensorRT's provider throws before there is a session
        if "install" not in str(error):
            raise
        raise not_started(provider) from error


@contextmanager
def _run_errors(path: Path, kind: str) -> Iterator[None]:
    """Inputs that a file refuses. On a GPU whatever is not said of an argument may be the GPU's failing: it passes."""
    of_inputs = (
        (errors.InvalidArgument,) if kind == "cuda" else (errors.InvalidArgument, errors.Fail, errors.RuntimeException)
    )
    try:
        yield
    except of_inputs as error:
        if memory_evidence(error) is not None:
            raise
        hint = "its sizes may be fixed inside: give those that it was exported with, or export it with free ones"
        raise InputError(f"{path} does not run on these inputs ({short(error)})", hint=hint) from error
