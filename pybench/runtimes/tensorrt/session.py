# SPDX-License-Identifier: Apache-2.0
"""An engine that runs: buffers at fixed addresses, a stream of its own, and where it can be a captured CUDA graph.

Iterations of a captured engine are replayed from C++ (`measure.GraphReplayer`), as trtexec does with --useCudaGraph:
computation only. With `transfers` an iteration copies inputs from page-locked memory, executes, copies outputs back and
waits, and the host times it. What cannot be captured is enqueued instead, and the labels say why. One shape a session:
the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench import measure
from pybench.case import Case
from pybench.case.factors.running import COLD
from pybench.catalogue.causes import Cause
from pybench.catalogue.refusals import refuse_precision
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import DeviceMemoryError, InputError, PybenchError, UnsupportedError
from pybench.runtimes import cuda
from pybench.runtimes.bfloat16 import bfloat16_type
from pybench.runtimes.device import chosen, narrow
from pybench.runtimes.session import L2_SIZES, Arrays, Iterate, Launch, TensorSpec, Wait, flushing_label
from pybench.runtimes.tensorrt import inspection, library

NAME = "tensorrt"
_DTYPES = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT32": np.int32,
    "INT64": np.int64,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
}


class TensorRtSession:
    """An opened engine. `stream`: where it is executed; `buffers`: of its tensors, by their names; `graph`: its
    capture, once it was bound with `launch` graph; None: not, or not to be had."""

    def __init__(
        self,
        path: Path,
        launch: str,
        index: int = 0,
        shared: Mapping[str, cuda.Buffer] | None = None,
        *,
        cold: bool = False,
    ) -> None:
        """`index`: of the GPU, in the driver's order. `shared`: tensor -> memory that something else fills or reads.
        `cold`: replays begin with an empty L2 cache."""
        self._library, self._messages = library.load(), library.listen()[1]
        self._launch, self._cold = launch, cold
        self._context = cuda.Context(index)
        self.stream = cuda.Stream()
        self._runtime, self._engine = _deserialise(self._library, path)
        self._execution = self._engine.create_execution_context()
        if self._execution is None:
            raise _execution_error(path, self._messages)
        self._execution.nvtx_verbosity = self._library.ProfilingVerbosity.NONE  # DETAILED costs host time in a launch
        self.inputs, self.outputs = _tensors(self._library, self._engine, self._execution, path)
        self.output_names = tuple(spec.name for spec in self.outputs)
        specs, given = (*self.inputs, *self.outputs), dict(shared or {})
        self.buffers = {spec.name: given.get(spec.name) or cuda.Buffer(_size(spec)) for spec in specs}
        for name, buffer in self.buffers.items():
            self._execution.set_tensor_address(name, buffer.address)
        self.graph: cuda.CudaGraph | None = None
        self._layer_times_ms: dict[str, float] = {}
        self.device_uuid: str | None = cuda.devices()[index]["uuid"]
        self.model_bytes = path.stat().st_size
        self.metadata: dict[str, str] = {}  # of the graph, which stands beside it
        self.compile_s: float | None = None  # of the engine's making, which is a run of its own
        self.labels: dict[str, Any] = {
            "runtime_version": self._library.__version__,
            "launch": "enqueue",
            "aux_streams": self._engine.num_aux_streams,
            "scratch_bytes": library.scratch_bytes(self._engine),
            "iteration": "one execution of the engine",
        }

    @property
    def device(self) -> str:
        return str(self.device_uuid)

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        self.write(inputs)
        self.enqueue()
        return self.read()

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        self.write(inputs)
        execute = self._executor()
        if not transfers:

            def iterate() -> None:
                execute()
                self.stream.synchronize()

            return iterate
        return self._with_copies(inputs, execute)

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        """The captured graph where iterations are computation alone; else a call, which the host times."""
        iterate = self.bind(inputs, transfers=transfers)
        if self._cold:
            return self._bind_cold()
        if transfers or self.graph is None:
            return measure.CallReplayer(iterate)
        return measure.GraphReplayer(self.graph.handle, self.stream.handle, keep=(self.graph, self))

    def _bind_cold(self) -> measure.Replayer:
        if self.graph is None:
            raise UnsupportedError(
                f"with `cache: cold` an engine is replayed as a CUDA graph: {self.labels['launch']}",
                code=Cause.NOT_CAPTURED,
                hint="leave out `cache`",
            )
        flush = cuda.CacheFlush(self.stream, L2_SIZES)
        self.labels["cache"] = flushing_label(flush.l2_bytes)
        kept = (self.graph, flush, self)
        return measure.GraphReplayer(self.graph.handle, self.stream.handle, before=flush.graph.handle, keep=kept)

    def bind_feed(self) -> Launch:
        def launch(inputs: Arrays) -> Wait:
            self.write(inputs)
            self.enqueue()
            return self.stream.synchronize

        return launch

    def layer_information(self) -> str:
        """The inspector's JSON."""
        return inspection.layer_information(self._library, self._engine, self._execution)

    def layer_times_ms(self) -> dict[str, float]:
        """Layer -> mean ms, each waited for. After this the session is not for timing: its profiler stays."""

        def execute() -> None:
            self.enqueue()
            self.stream.synchronize()

        if not self._layer_times_ms:
            self._layer_times_ms = inspection.layer_times_ms(self._library, self._execution, execute)
        return self._layer_times_ms

    def write(self, inputs: Arrays) -> None:
        """Copies the inputs to the device, and waits for that."""
        for spec in self.inputs:
            array = np.ascontiguousarray(inputs[spec.name], spec.dtype)
            if array.shape != _fixed(spec):
                raise InputError(f"the engine takes {spec.name} as {_fixed(spec)}, not {array.shape}")
            self.buffers[spec.name].write(array, self.stream)
        self.stream.synchronize()  # what was converted above may go

    def read(self) -> list[npt.NDArray[Any]]:
        """The outputs, behind what is on the stream."""
        outputs = [np.empty(_fixed(spec), spec.dtype) for spec in self.outputs]
        for spec, array in zip(self.outputs, outputs, strict=True):
            self.buffers[spec.name].read(array, self.stream)
        self.stream.synchronize()
        return outputs

    def enqueue(self) -> None:
        """Puts one execution on the stream."""
        if not self._execution.execute_async_v3(self.stream.handle):
            raise PybenchError(f"TensorRT could not execute the engine: {self._messages.last()}")

    def _executor(self) -> Callable[[], None]:
        """Launches one execution: the graph where there is one, after a first plain execution, as capturing asks."""
        self.enqueue()
        self.stream.synchronize()
        if self._launch != "graph":
            return self.enqueue
        if self.graph is None:
            try:
                self.graph = cuda.capture(lambda: self._execution.execute_async_v3(self.stream.handle), self.stream)
                self.labels |= {"launch": "graph", "iteration": "one replay of the captured engine"}
            except DeviceMemoryError:
                raise  # another kind of latency is no answer to that
            except PybenchError as error:
                said = "; ".join([error.message, *self._messages.errors[-1:]])
                self.labels["launch"] = f"enqueue, as no graph could be captured ({said})"
        return self.enqueue if self.graph is None else self.graph.launch

    def _with_copies(self, inputs: Arrays, execute: Callable[[], None]) -> Iterate:
        sources = {spec.name: cuda.PinnedArray(_fixed(spec), spec.dtype) for spec in self.inputs}
        landed = {spec.name: cuda.PinnedArray(_fixed(spec), spec.dtype) for spec in self.outputs}
        for name, pinned in sources.items():
            pinned.array[...] = inputs[name]

        def iterate() -> None:
            for name, pinned in sources.items():
                self.buffers[name].write(pinned.array, self.stream)
            execute()
            for name, pinned in landed.items():
                self.buffers[name].read(pinned.array, self.stream)
            self.stream.synchronize()

        return iterate


def open_case(
    given: Path, spec: TensorSpec | None, case: Case, threads: int, *, deterministic: bool = False
) -> TensorRtSession:
    """`given`: the engine. It states its own input, runs on no CPU thread, and repeats its outputs as it is."""
    check_case(case)
    return open_session(given, launch=case.launch, device=case.device, cold=case.cache == COLD)


def check_case(case: Case) -> None:
    """Raises UnsupportedError for a case that no engine of this machine is for."""
    library.load()
    refuse_precision(RUNTIMES[NAME], None, case.precision, has_gpu=case.device != "cpu" and bool(cuda.devices()))


def check_device(device: str) -> None:
    """Shows this process the device of a case alone. Raises UnsupportedError where there is no such GPU."""
    narrow(device)
    chosen("cuda" if device == "auto" else device, bool(cuda.devices()), NAME)
    if device == "cpu":
        raise UnsupportedError("TensorRT runs on GPUs only", code=Cause.NO_GPU, hint="use runtime: onnxruntime")


def open_session(path: Path, *, launch: str, device: str, cold: bool = False) -> TensorRtSession:
    """Opens an engine that was built for this GPU and version.

    Raises UnsupportedError without TensorRT or a GPU, InputError for a file that is no engine for here.
    """
    library.load()
    check_device(device)
    return TensorRtSession(path, launch, cold=cold)


def _deserialise(trt: Any, path: Path) -> tuple[Any, Any]:
    """The runtime, which has to live as long as the engine, and the engine."""
    log, messages = library.listen()
    messages.forget()
    trt.init_libnvinfer_plugins(log, "")
    runtime = trt.Runtime(log)
    engine = runtime.deserialize_cuda_engine(path.read_bytes())
    if engine is None:
        raise InputError(
            f"{path} is no engine for TensorRT {trt.__version__} on this GPU ({messages.last()})",
            hint="engines are bound to the GPU and version that built them: build it here",
        )
    return runtime, engine


def _tensors(
    trt: Any, engine: Any, execution: Any, path: Path
) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Inputs and outputs with the shapes of the engine's one profile; sets the inputs' shapes in the context."""
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    inputs = [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
    for name in inputs:
        shape = engine.get_tensor_shape(name)
        if any(size < 0 for size in shape):
            shape = engine.get_tensor_profile_shape(name, 0)[1]  # least, best, largest: one and the same
        execution.set_input_shape(name, tuple(shape))
    missing = execution.infer_shapes()
    if missing:
        raise InputError(f"{path}: the shapes of {', '.join(missing)} are not known before execution")
    shapes = {name: tuple(execution.get_tensor_shape(name)) for name in names}
    unknown = [name for name, shape in shapes.items() if any(size < 0 for size in shape)]
    if unknown:
        raise UnsupportedError(
            f"{path}: the shape of {', '.join(unknown)} depends on the data",
            code=Cause.DATA_DEPENDENT_SHAPE,
            hint="pybench runs engines whose outputs have fixed shapes: cut the graph before such nodes",
        )
    specs = {name: TensorSpec(name, _dtype(engine, name, path), shapes[name]) for name in names}
    return tuple(specs[name] for name in inputs), tuple(specs[name] for name in names if name not in inputs)


def _dtype(engine: Any, name: str, path: Path) -> np.dtype[Any]:
    kind = engine.get_tensor_dtype(name).name
    if kind == "BF16":
        return bfloat16_type(f"{path.name}: the tensor {name}")
    if kind not in _DTYPES:
        raise InputError(f"{path}: the tensor {name} is {kind}, which pybench cannot feed", hint="keep it in FP32")
    return np.dtype(_DTYPES[kind])


def _execution_error(path: Path, messages: library.Messages) -> PybenchError:
    if any("memory" in text.lower() for text in messages.errors):
        return DeviceMemoryError(f"no memory to execute {path.name}: {messages.last()}", evidence="tensorrt")
    return PybenchError(f"TensorRT cannot execute {path.name}: {messages.last()}")


def _fixed(spec: TensorSpec) -> tuple[int, ...]:
    return tuple(size for size in spec.shape if size is not None)


def _size(spec: TensorSpec) -> int:
    return int(np.prod(_fixed(spec))) * spec.dtype.itemsize
