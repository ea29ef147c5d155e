# SPDX-License-Identifier: Apache-2.0
"""onnxruntime: an ONNX file on its CPU provider, or on its CUDA provider where the installed build has one.

The precision is in the file: `fp32` runs a plain graph (TF32 off on a GPU), `int8` one with Q/DQ nodes, which only
the CPU provider executes in integers. Everything else is refused. Iterations run through IO binding: inputs and
outputs stay at fixed addresses, nothing is allocated or copied beside the work. Does not judge the precision:
`pybench.precision` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as errors

from pybench import measure
from pybench.errors import InputError, UnsupportedError
from pybench.runtimes.device import VISIBLE, chosen, narrow
from pybench.runtimes.memory import memory_errors, memory_evidence
from pybench.runtimes.session import Arrays, Iterate, TensorSpec

NAME = "onnxruntime"
CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
PRECISIONS = ("fp32", "int8")

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
_MALFORMED = (
    errors.InvalidProtobuf,
    errors.InvalidGraph,
    errors.InvalidArgument,
    errors.NoSuchFile,
    errors.NoModel,
    errors.Fail,
)
_LOG_ERRORS = 3  # of onnxruntime's severities: below are notes about graph passes


class OnnxRuntimeSession:
    """An opened ONNX file."""

    def __init__(self, session: onnxruntime.InferenceSession, path: Path, kind: str, labels: dict[str, Any]) -> None:
        self.path = path
        self.kind = kind
        self.labels = labels
        self.model_bytes = path.stat().st_size
        self.device_uuid = labels.get("device_uuid")
        self.metadata: dict[str, str] = dict(session.get_modelmeta().custom_metadata_map)
        self.inputs = tuple(_spec(value, path) for value in session.get_inputs())
        self._session = session
        self._outputs = [value.name for value in session.get_outputs()]

    @property
    def device(self) -> str:
        return "cpu" if self.kind == "cpu" else (self.device_uuid or "cuda")

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        with _run_errors(self.path):
            outputs: list[npt.NDArray[Any]] = self._session.run(self._outputs, dict(inputs))
        return outputs

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        if transfers and self.kind == "cpu":
            raise UnsupportedError("there are no transfers on a CPU", code="no_gpu", hint="set transfers: false")
        binding = self._session.io_binding()
        held = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array, self.kind, 0) for name, array in inputs.items()}
        for name, value in held.items():
            binding.bind_ortvalue_input(name, value)
        outputs = self._output_values(inputs)
        for name, value in outputs.items():
            binding.bind_ortvalue_output(name, value)
        run = self._session.run_with_iobinding

        def iterate() -> None:
            run(binding)

        def iterate_with_copies() -> None:
            for name, value in held.items():
                value.update_inplace(inputs[name])
            run(binding)
            for value in outputs.values():
                value.numpy()

        return iterate_with_copies if transfers else iterate

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        return measure.CallReplayer(self.bind(inputs, transfers=transfers))

    def bind_feed(self) -> Callable[[Arrays], None]:
        """On the CPU the arrays are read where they lie; outputs are allocated anew, for shapes may change."""
        session, names = self._session, self._outputs

        def feed(inputs: Arrays) -> None:
            session.run(names, dict(inputs))

        return feed

    def _output_values(self, inputs: Arrays) -> dict[str, onnxruntime.OrtValue]:
        """Outputs allocated once on the device: one run tells their shapes."""
        values = {}
        for name, array in zip(self._outputs, self.run(inputs), strict=True):
            values[name] = onnxruntime.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype, self.kind, 0)
        return values


def open_session(path: Path, *, precision: str, threads: int, device: str) -> OnnxRuntimeSession:
    """Opens an ONNX file.

    Raises UnsupportedError for a precision or device that this build does not run, InputError for a file that is no
    runnable ONNX model.
    """
    if precision not in PRECISIONS:
        raise UnsupportedError(
            f"onnxruntime runs files in {', '.join(PRECISIONS)} here, not in {precision}",
            code=f"no_{precision}_in_{NAME}",
        )
    narrow(device)
    kind = chosen(device, _gpu_present(device), NAME)
    if kind == "cuda" and precision == "int8":
        raise UnsupportedError(
            "onnxruntime's CUDA provider has no integer convolutions: it would run Q/DQ nodes in floating point",
            code="no_int8_on_cuda", hint="use device: cpu",
        )  # fmt: skip
    with _open_errors(path):
        session = onnxruntime.InferenceSession(path, _options(threads), providers=_providers(kind))
    used = session.get_providers()
    if kind == "cuda" and CUDA not in used:
        raise UnsupportedError("onnxruntime could not start its CUDA provider", code="no_gpu",
                               hint="its log says which CUDA library is missing")  # fmt: skip
    labels = {
        "runtime_version": onnxruntime.__version__,
        "providers": used,
        "provider_options": {name: session.get_provider_options()[name] for name in used},
        "iteration": "one run with bound inputs and outputs, until it returns",
        "device_uuid": _gpu_uuid() if kind == "cuda" else None,
    }
    return OnnxRuntimeSession(session, path, kind, labels)


def write_optimised(path: Path, destination: Path, *, threads: int) -> None:
    """Writes the graph that the CPU provider would execute: after all of its passes, fused and with integer kernels."""
    options = _options(threads)
    options.optimized_model_filepath = str(destination)
    with _open_errors(path):
        onnxruntime.InferenceSession(path, options, providers=[CPU])


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _LOG_ERRORS
    return options


def _providers(kind: str) -> list[Any]:
    # use_tf32=0: FP32 means FP32. The search for convolution algorithms is exhaustive by default; stated, so that it
    # stays.
    cuda = (CUDA, {"device_id": "0", "use_tf32": "0", "cudnn_conv_algo_search": "EXHAUSTIVE"})
    return [CPU] if kind == "cpu" else [cuda, CPU]


def _gpu_present(device: str) -> bool:
    """Whether the build has the CUDA provider and the driver shows a GPU; opening then proves it."""
    if device == "cpu" or CUDA not in onnxruntime.get_available_providers():
        return False
    from pybench import measure

    uuids = [gpu.uuid for gpu in measure.gpus().gpus]
    if uuids and VISIBLE not in os.environ:
        os.environ[VISIBLE] = uuids[0]  # the provider does not tell which GPU it took, so it is shown one only
    return bool(uuids)


def _gpu_uuid() -> str | None:
    """The UUID of the GPU in use, where the environment names GPUs by UUID."""
    first = os.environ.get(VISIBLE, "").split(",")[0]
    return first if first.startswith("GPU-") else None


def _spec(value: Any, path: Path) -> TensorSpec:
    if value.type not in _DTYPES:
        raise InputError(f"{path}: the input {value.name} is a {value.type}, which pybench cannot feed")
    shape = tuple(size if isinstance(size, int) and size > 0 else None for size in value.shape)
    return TensorSpec(value.name, np.dtype(_DTYPES[value.type]), shape)


@contextmanager
def _open_errors(path: Path) -> Iterator[None]:
    try:
        with memory_errors():
            yield
    except errors.NotImplemented as error:
        raise UnsupportedError(
            f"{path}: onnxruntime has no kernel for an operator ({_short(error)})", code="no_kernel"
        ) from error
    except _MALFORMED as error:
        hint = "check it with onnx.checker.check_model; a file of external weights must lie beside it"
        raise InputError(f"{path} is not a runnable ONNX model ({_short(error)})", hint=hint) from error


@contextmanager
def _run_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (errors.InvalidArgument, errors.Fail, errors.RuntimeException) as error:
        if memory_evidence(error) is not None:
            raise
        raise InputError(f"{path} does not run on these inputs ({_short(error)})") from error


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:199] + "…"
