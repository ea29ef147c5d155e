# SPDX-License-Identifier: Apache-2.0
"""A forward pass with no Python in its loop: text, batches, ONNX Runtime and clock in one process, written in Go.

The process is the orchestrator of the path `go_rust`. It tokenizes as there, keeps the batches, and runs the ONNX file
through the C API of the library in the installed wheel of onnxruntime. So Python's runtime of the same name runs the
same code on the same file. This module asks it for windows: an iteration is one run of the batch in hand and the
fetching of the next, as `pybench.measurement.feed` has it. A run makes its outputs anew, as Python's does.

`run` runs given inputs, which is for comparing outputs. Nothing else of the session protocol is offered: there is no
loop in Python to bind inputs for. CPU, CUDA and TensorRT; only the CPU was run so far. Captures no CUDA graph.
"""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pybench import measure
from pybench.case import Case
from pybench.case.quantising import opened_in
from pybench.catalogue.causes import Cause
from pybench.catalogue.refusals import refuse_path, refuse_precision
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import InputError, UnsupportedError, UsageError
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND
from pybench.measure.timing.memory import peak_bytes_of
from pybench.onnx_file.facts import stored_bytes
from pybench.onnx_file.graph import read_properties
from pybench.runtimes import providers
from pybench.runtimes.device import narrow
from pybench.runtimes.native_process import NativeProcess, environment_with
from pybench.runtimes.session import Arrays, Iterate, Launch, TensorSpec

NAME = "native"
LIBRARY = "libonnxruntime.so"

# ONNXTensorElementDataType of the C API.
_DTYPES: dict[int, Any] = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip
_KINDS = {np.dtype(dtype): kind for kind, dtype in _DTYPES.items()}
_TIMES = 3  # due, begin and end of an iteration


class NativeSession:
    """An opened ONNX file in a process of its own. `text_bytes`, `wait_ns`: of what was fed so far."""

    def __init__(self, process: NativeProcess, path: Path, kind: str, opened: Mapping[str, Any]) -> None:
        """`opened`: the answer to the opening."""
        self.path = path
        self.kind = kind
        self.labels: dict[str, Any] = {}
        self.metadata = read_properties(path)
        self.model_bytes = stored_bytes(path)
        self.compile_s: float | None = None
        self.device_uuid = measure.visible_gpus()[0] if kind == "cuda" else None
        self.inputs = tuple(_spec(port, path) for port in opened["inputs"])
        self.output_names: tuple[str, ...] = ()
        self.text_bytes = 0
        self.wait_ns = 0
        self._process = process
        weakref.finalize(self, process.close)  # for whoever does not close it

    def close(self) -> None:
        """Ends the process."""
        self._process.close()

    @property
    def device(self) -> str:
        return self.device_uuid or "cpu"

    @property
    def peak_host_bytes(self) -> int | None:
        """The largest resident set of the native process since its start; None where /proc does not say."""
        return peak_bytes_of(self._process.pid)

    def run(self, inputs: Arrays) -> list[npt.NDArray[Any]]:
        """One pass on given inputs, untimed; not once text is fed."""
        given = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        ports = [_port(name, array) for name, array in given.items()]
        answer, raw = self._process.ask("run", b"".join(array.tobytes() for array in given.values()), inputs=ports)
        found, at = [], 0
        for port in answer["outputs"]:
            shape, dtype = tuple(port["dimensions"] or ()), np.dtype(_DTYPES[port["kind"]])
            size = int(np.prod(shape)) * dtype.itemsize
            found.append(np.frombuffer(raw[at : at + size], dtype).reshape(shape))
            at += size
        return found

    def feed(self, options: Mapping[str, Any], files: list[bytes]) -> NativeReplayer:
        """Begins to tokenize `files`, in this order and without an end. `options`: of `feed` in docs/formats/native.md.

        Raises InputError for a tokenizer or a file that cannot be used; what comes late, in the replay that meets it.
        """
        self._process.ask("feed", b"\0".join(files), feed=dict(options))
        return NativeReplayer(self)

    def replay(self, pace: Mapping[str, int], due_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """int64 [n, 3]: due, begin and end of each iteration, ns of the raw clock."""
        answer, raw = self._process.ask("replay", due_ns.astype("<i8").tobytes(), replay=dict(pace))
        self.text_bytes, self.wait_ns = answer.get("text_bytes", 0), answer.get("wait_ns", 0)
        return np.frombuffer(raw, "<i8").astype(np.int64).reshape(-1, _TIMES)

    def first_ids(self) -> bytes:
        """The ids of the first batches, as `<u4`. What was not taken of them is taken now, so it comes last."""
        return self._process.ask("first")[1]

    def bind(self, inputs: Arrays, *, transfers: bool) -> Iterate:
        _refuse_inputs()

    def bind_replay(self, inputs: Arrays, *, transfers: bool) -> measure.Replayer:
        _refuse_inputs()

    def bind_feed(self) -> Launch:
        _refuse_inputs()


class NativeReplayer:
    """Iterations of a session that is fed, one at a time: a `measure.Replayer`."""

    depth = 1
    before: measure.Replayer | None = None

    def __init__(self, session: NativeSession) -> None:
        self._session = session

    def replay(
        self,
        iterations: int,
        minimum_s: float = 0.0,
        *,
        arrivals: measure.Arrivals = measure.CLOSED,
        depth: int | None = None,
    ) -> measure.Times:
        """Raises what `NativeProcess.ask` raises, and NativeOutputError where the last outputs hold NaN."""
        if iterations < 0 or not 0 <= minimum_s < float("inf") or depth not in (None, 1):
            raise UsageError(f"cannot replay {iterations} iterations for {minimum_s} s, {depth} deep")
        due_ns = arrivals.schedule_ns(iterations, minimum_s)
        pace = {"iterations": iterations, "minimum_ns": round(minimum_s * NANOSECONDS_PER_SECOND)}
        times = self._session.replay(pace, due_ns)
        return measure.Times(times[:, 1], times[:, 2], times[:, 0] if len(due_ns) else None)


def open_case(
    given: Path, spec: TensorSpec | None, case: Case, threads: int, *, deterministic: bool = False
) -> NativeSession:
    """`given`: the ONNX file, which states its own inputs."""
    refuse_path(RUNTIMES[NAME], case.path, takes_text=case.model_row is not None and case.model_row.takes_text)
    return open_session(given, precision=opened_in(case), threads=threads, device=case.device, provider=case.provider)


def open_session(
    path: Path, *, precision: str, threads: int, device: str, provider: str | None = None
) -> NativeSession:
    """Opens an ONNX file in a native process. Arguments as of `onnxruntime.open_session`.

    Raises UnsupportedError without the library (`no_onnxruntime_library`) or the program (`orchestrator_missing`). It
    does so, too, for a precision, provider or device that it does not run. Raises InputError for a file that is no
    runnable ONNX model.
    """
    narrow(device)
    library = find_library()
    kind, provider = providers.chosen_for(RUNTIMES[NAME], device, provider, _built_in(library))
    refuse_precision(RUNTIMES[NAME], providers.backend(provider), precision, has_gpu=kind == "cuda")
    if kind == "cuda":
        providers.set_tf32(precision)
    chain = providers.options_of(provider, precision, graph=False)
    process = NativeProcess(path, provider, environment_with(_gpu_folders() if kind == "cuda" else []))
    begin_ns = measure.monotonic_ns()
    try:
        opened, _ = process.ask(
            "open",
            open={
                "library": str(library),
                "model": str(path),
                "threads": threads,
                "optimise": provider != "tensorrt",  # its engine is built from the file as it is
                "providers": [{"name": name, "options": list(map(list, given.items()))} for name, given in chain],
            },
        )
        session = NativeSession(process, path, kind, opened)
    except BaseException:
        process.close()
        raise
    session.compile_s = measure.seconds_since(begin_ns)
    session.labels |= _labels(session, provider, chain, opened)
    return session


def find_library() -> Path:
    """ONNX Runtime's shared library in the installed wheel; nothing is imported.

    Raises UnsupportedError (`no_onnxruntime_library`).
    """
    hint = "install onnxruntime from its wheel, whose folder `capi` contains it"
    found = importlib.util.find_spec("onnxruntime")
    if found is None or found.origin is None:
        raise UnsupportedError(
            "onnxruntime is not installed", code=Cause.NO_PACKAGE, names=("onnxruntime_library",), hint=hint
        )
    folder = Path(found.origin).parent / "capi"
    libraries = sorted(folder.glob(f"{LIBRARY}*"))
    if not libraries:
        raise UnsupportedError(
            f"there is no {LIBRARY} in {folder}", code=Cause.NO_PACKAGE, names=("onnxruntime_library",), hint=hint
        )
    return libraries[-1]


def _built_in(library: Path) -> tuple[str, ...]:
    """The providers of a build, by ONNX Runtime's names: each but the CPU's is a library beside it."""
    files = {providers.TENSORRT: "tensorrt", providers.CUDA: "cuda"}
    found = [name for name, word in files.items() if (library.parent / f"libonnxruntime_providers_{word}.so").is_file()]
    return (*found, providers.CPU)


def _gpu_folders() -> list[Path]:
    """Where pip puts the libraries of CUDA, cuDNN and TensorRT, in which the loader does not look."""
    found: list[Path] = []
    for package in ("nvidia", "tensorrt_libs"):
        spec = importlib.util.find_spec(package)
        for place in () if spec is None else spec.submodule_search_locations or ():
            found += [Path(place)] if package == "tensorrt_libs" else sorted(Path(place).glob("*/lib"))
    return found


def _labels(
    session: NativeSession, provider: str, chain: list[providers.Options], opened: Mapping[str, Any]
) -> dict[str, Any]:
    told = dict(pair.partition("=")[::2] for pair in opened.get("cuda_options", "").split(";") if pair)
    labels: dict[str, Any] = {
        "runtime_version": opened["version"],
        "provider": provider,
        "providers": [name for name, _ in chain],
        "provider_options": {name: told if name == providers.CUDA else given for name, given in chain},
        "partitions": None,  # the C API does not tell it in the form of Python's
        "device_uuid": session.device_uuid,
    }
    return labels if session.kind == "cpu" else {**labels, "launch": "enqueue"}


def _spec(port: Mapping[str, Any], path: Path) -> TensorSpec:
    if port["kind"] not in _DTYPES:
        raise InputError(
            f"{path}: the input {port['name']} is of ONNX's type {port['kind']}, which pybench cannot feed",
            hint="export the model with an input of one of numpy's types and a Cast after the input",
        )
    shape = tuple(size if size > 0 else None for size in port["dimensions"] or ())
    return TensorSpec(port["name"], np.dtype(_DTYPES[port["kind"]]), shape)


def _port(name: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    return {"name": name, "kind": _KINDS[array.dtype], "dimensions": list(array.shape)}


def _refuse_inputs() -> NoReturn:
    raise UnsupportedError(
        f"{NAME} reads text in its own process, and is given no inputs",
        code=Cause.NO_PATH,
        names=("none", NAME),
        hint="set path: go_rust, or use runtime: onnxruntime",
    )
