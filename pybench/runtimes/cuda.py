# SPDX-License-Identifier: Apache-2.0
"""CUDA's driver as a runtime without a framework needs it: devices, memory, streams, a captured graph.

A thin layer over cuda-python (`cuda.bindings.driver`), which returns (error, values...): here an error is raised, in
pybench's tree. Everything is in the primary context of the first GPU that this process is shown, as frameworks and
TensorRT have it. Objects free what they hold when they go; a graph keeps nothing alive but itself. Not for measuring:
`pybench.measure` opens the driver by itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from cuda.bindings import driver

from pybench.catalogue.causes import Cause
from pybench.errors import DeviceMemoryError, PybenchError, UnsupportedError

_ATTRIBUTE = driver.CUdevice_attribute
_MAJOR = _ATTRIBUTE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
_MINOR = _ATTRIBUTE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
_L2_BYTES = _ATTRIBUTE.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_NAME_BYTES = 256
_WORD_BYTES = 4

Array = npt.NDArray[Any]


def check(result: tuple[Any, ...]) -> Any:
    """The value of a call of the driver, None where it has none.

    Raises DeviceMemoryError where the driver says that memory ran out, PybenchError for every other error.
    """
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        _, name = driver.cuGetErrorName(code)
        said = name.decode() if isinstance(name, bytes) else str(code)
        if code == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise DeviceMemoryError("the GPU's memory ran out", evidence=said)
        raise PybenchError(f"the CUDA driver failed: {said}")
    return values[0] if values else None


def devices() -> list[dict[str, Any]]:
    """GPUs as the driver shows them to this process, in its order: name, uuid, capability, memory_bytes.

    Raises UnsupportedError (`no_cuda_driver`) where there is no driver; without a GPU the list is empty.
    """
    try:
        (code,) = driver.cuInit(0)
    except RuntimeError as error:  # cuda-python's loader
        raise UnsupportedError(
            "the CUDA driver (libcuda.so.1) cannot be loaded", code=Cause.NO_CUDA_DRIVER, hint="install NVIDIA's driver"
        ) from error
    if code == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        return []
    check((code,))
    found = []
    for index in range(check(driver.cuDeviceGetCount())):
        device = check(driver.cuDeviceGet(index))
        major, minor = (check(driver.cuDeviceGetAttribute(each, device)) for each in (_MAJOR, _MINOR))
        found.append(
            {
                "name": check(driver.cuDeviceGetName(_NAME_BYTES, device)).split(b"\0")[0].decode(),
                "uuid": f"GPU-{uuid.UUID(bytes=bytes(check(driver.cuDeviceGetUuid(device)).bytes))}",
                "capability": f"{major}.{minor}",
                "memory_bytes": int(check(driver.cuDeviceTotalMem(device))),
            }
        )
    return found


class Context:
    """The primary context of one GPU, current in the thread that makes it. `index`: in the driver's order."""

    def __init__(self, index: int = 0) -> None:
        check(driver.cuInit(0))
        device = check(driver.cuDeviceGet(index))
        # Never released: what lives in it may go later than this, and it ends with the process.
        check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))


class Stream:
    """A stream that does not wait for the legacy default stream."""

    def __init__(self) -> None:
        self.raw: Any = None
        self.raw = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))

    @property
    def handle(self) -> int:
        return int(self.raw)

    def synchronize(self) -> None:
        check(driver.cuStreamSynchronize(self.raw))

    def wait(self, event: StreamEvent) -> None:
        """What comes later on this stream begins after what the event was recorded behind; the host does not wait."""
        check(driver.cuStreamWaitEvent(self.raw, event.raw, 0))

    def __del__(self) -> None:
        if self.raw is not None:
            driver.cuStreamDestroy(self.raw)


class StreamEvent:
    """A mark on a stream. `timed`: whether it can say when it happened, which costs a little."""

    def __init__(self, *, timed: bool = False) -> None:
        self.raw: Any = None
        flags = driver.CUevent_flags
        self.raw = check(driver.cuEventCreate(flags.CU_EVENT_DEFAULT if timed else flags.CU_EVENT_DISABLE_TIMING))

    def record(self, stream: Stream) -> None:
        check(driver.cuEventRecord(self.raw, stream.raw))

    def record_in_replays(self, stream: Stream) -> None:
        """In a capture: each replay of the graph records it. As `record` would, it only orders what is captured."""
        flag = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        check(driver.cuEventRecordWithFlags(self.raw, stream.raw, flag))

    def elapsed_time(self, end: StreamEvent, /) -> float:
        """Milliseconds from this event to another one; both are timed and have happened."""
        return float(check(driver.cuEventElapsedTime(self.raw, end.raw)))

    def __del__(self) -> None:
        if self.raw is not None:
            driver.cuEventDestroy(self.raw)


class Buffer:
    """Memory on the device."""

    def __init__(self, size_bytes: int) -> None:
        self.address = 0
        self.size_bytes = size_bytes
        self.address = int(check(driver.cuMemAlloc(max(size_bytes, 1))))

    def write(self, source: Array, stream: Stream) -> None:
        """Copies a C-contiguous array in; returns before it is done where the array is page-locked."""
        check(driver.cuMemcpyHtoDAsync(self.address, source.ctypes.data, source.nbytes, stream.raw))

    def read(self, destination: Array, stream: Stream) -> None:
        check(driver.cuMemcpyDtoHAsync(destination.ctypes.data, self.address, destination.nbytes, stream.raw))

    def __del__(self) -> None:
        if self.address:
            driver.cuMemFree(self.address)


class CacheFlush:
    """A graph that overwrites the L2 cache of the first GPU that this process is shown, on a stream.

    As nvbench does it, by a memset of several times its size. `graph`: the capture; `l2_bytes`: the size of the cache.
    """

    def __init__(self, stream: Stream, sizes: int) -> None:
        self.l2_bytes = int(check(driver.cuDeviceGetAttribute(_L2_BYTES, check(driver.cuDeviceGet(0)))))
        self._buffer = Buffer(sizes * self.l2_bytes)
        words = self._buffer.size_bytes // _WORD_BYTES

        def overwrite() -> bool:
            check(driver.cuMemsetD32Async(self._buffer.address, 1, words, stream.raw))
            return True

        self.graph = capture(overwrite, stream)


class PinnedArray:
    """A page-locked array of the host; `array` is valid as long as this is."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        import ctypes

        self._address = 0
        size = max(int(np.prod(shape)) * dtype.itemsize, 1)
        self._address = int(check(driver.cuMemHostAlloc(size, 0)))
        memory: Any = (ctypes.c_byte * size).from_address(self._address)
        self.array: Array = np.frombuffer(memory, dtype, int(np.prod(shape))).reshape(shape)

    def __del__(self) -> None:
        if self._address:
            driver.cuMemFreeHost(self._address)


class CudaGraph:
    """What `work` put on a stream, captured and instantiated. `handle`: of the executable graph, as an integer."""

    def __init__(self, executable: Any, stream: Stream) -> None:
        self.raw = executable
        self.stream = stream

    @property
    def handle(self) -> int:
        return int(self.raw)

    def launch(self) -> None:
        check(driver.cuGraphLaunch(self.raw, self.stream.raw))

    def __del__(self) -> None:
        driver.cuGraphExecDestroy(self.raw)


def capture(work: Callable[[], bool], stream: Stream) -> CudaGraph:
    """Captures what `work` enqueues on `stream`; it returns whether it could. Thread-local mode, as trtexec does: other
    threads of this process sample power meanwhile.

    Raises PybenchError when the work cannot be captured; the stream can be used afterwards.
    """
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    check(driver.cuStreamBeginCapture(stream.raw, mode))
    try:
        enqueued = work()
    finally:
        code, captured = driver.cuStreamEndCapture(stream.raw)
    if code != driver.CUresult.CUDA_SUCCESS:
        raise PybenchError(f"the work could not be captured as a CUDA graph ({code})")
    try:
        if not enqueued:
            raise PybenchError("the work could not be enqueued while it was captured as a CUDA graph")
        graph = CudaGraph(check(driver.cuGraphInstantiate(captured, 0)), stream)
        check(driver.cuGraphUpload(graph.raw, stream.raw))
    finally:
        driver.cuGraphDestroy(captured)
    return graph
