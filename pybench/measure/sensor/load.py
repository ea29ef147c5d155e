# SPDX-License-Identifier: Apache-2.0
"""A load on a GPU that pybench makes itself, through the driver alone: for steps of power with known edges.

    with measure.GpuLoad(uuid) as load:
        run = load.run(0.5)              # seconds; level=0.3 uses a third of the multiprocessors
        run.begin_ns, run.end_ns         # raw clock; or: begin_ns, end_ns = load.run(0.5)

The kernel is native/cuda_load.cpp's: memory and arithmetic at once. It measures nothing itself and sets nothing on the
device. It takes up to 256 MiB of its memory and calibrates itself, under load, for some tens of milliseconds on entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pybench import _native
from pybench.errors import UsageError
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND
from pybench.measure.timing.cuda import driver_errors, find_device, open_driver

LONGEST_S = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class LoadRun:
    """One run of the load, before and after which the GPU was idle. Unpacks into `begin_ns, end_ns`.

    begin_ns: raw clock, just before the first launch
    end_ns: raw clock, when the host saw that the last kernel had ended
    busy_ns: from the begin of the first kernel to the end of the last, by the GPU's events
    kernels_ns: int64 [n], ns, what each kernel took, in order
    """

    begin_ns: int
    end_ns: int
    busy_ns: int
    kernels_ns: NDArray[np.int64]

    @property
    def slack_ns(self) -> int:
        """Both together: how long after `begin_ns` the GPU may have begun, and ended before `end_ns`."""
        return max(self.end_ns - self.begin_ns - self.busy_ns, 0)

    @property
    def gaps_ns(self) -> int:
        """Idle time between the kernels, all together: some us each, more where the host was held up."""
        return max(self.busy_ns - int(self.kernels_ns.sum()), 0)

    def __iter__(self) -> Iterator[int]:
        return iter((self.begin_ns, self.end_ns))


class GpuLoad:
    """Keeps one GPU busy for wanted times. A context manager; what it holds on the device goes on exit.

    Raises UnsupportedError where there is no CUDA driver (`no_cuda_driver`) or no such GPU (`no_gpu`, `no_such_gpu`),
    and DeviceMemoryError where there is no room for its buffer.
    """

    def __init__(self, uuid: str, *, library: str | None = None) -> None:
        self._driver = open_driver(library)
        self._device = find_device(self._driver, uuid)
        self._load: _native.CudaLoad | None = None

    @property
    def name(self) -> str:
        """The device's name."""
        return self._device.name

    def __enter__(self) -> Self:
        with driver_errors():
            self._load = _native.CudaLoad(self._driver, self._device)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._load = None

    def run(self, seconds: float, *, level: float = 1.0) -> LoadRun:
        """Keeps the GPU busy for `seconds`, to within a millisecond. Blocks, without the GIL; Ctrl-C ends it.

        `level`: share of the multiprocessors, 0 < level <= 1; less draws less power, not in proportion.
        """
        if self._load is None:
            raise UsageError("the load is not open", hint="use it as in `with measure.GpuLoad(uuid) as load:`")
        if not 0 < seconds <= LONGEST_S or not 0 < level <= 1:
            raise UsageError(f"a load of {seconds} s at level {level}", hint="0 < seconds <= 3600 and 0 < level <= 1")
        with driver_errors():
            run = self._load.run(round(seconds * NANOSECONDS_PER_SECOND), level)
        return LoadRun(run.begin_ns, run.end_ns, run.busy_ns, run.kernels_ns)
