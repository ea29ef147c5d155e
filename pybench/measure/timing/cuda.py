# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver as measuring uses it: opened at run time, devices by UUID, its errors in pybench's tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybench import _native
from pybench.catalogue.causes import Cause
from pybench.errors import DeviceMemoryError, PybenchError, UnsupportedError

_OUT_OF_MEMORY = 2  # CUresult


def open_driver(library: str | None = None) -> _native.CudaDriver:
    """The driver, initialised. `library`: a path in place of the driver's own (or set PYBENCH_CUDA_LIBRARY).

    Raises UnsupportedError: `no_cuda_driver` where there is no library that can be used, `no_gpu` where it finds no
    GPU.
    """
    driver = _native.open_cuda(library or "")
    if driver.available:
        return driver
    if not driver.opened:
        raise UnsupportedError(
            f"there is no CUDA driver here: {driver.reason}",
            code=Cause.NO_CUDA_DRIVER,
            hint="install NVIDIA's driver; in a container, start it with the GPUs passed in",
        )
    raise UnsupportedError(
        f"the CUDA driver cannot be used: {driver.reason}",
        code=Cause.NO_GPU,
        hint="`nvidia-smi -L` lists the GPUs; CUDA_VISIBLE_DEVICES may hide them",
    )


def find_device(driver: _native.CudaDriver, uuid: str) -> _native.CudaDevice:
    """The device with this UUID (`GPU-...`, or `MIG-...` of a slice). Raises UnsupportedError (`no_such_gpu`)."""
    with driver_errors():
        devices = driver.devices()
    for device in devices:
        if _bare(device.uuid) == _bare(uuid):
            return device
    present = ", ".join(device.uuid for device in devices) or "none"
    raise UnsupportedError(
        f"the CUDA driver shows no GPU {uuid} to this process (it shows {present})",
        code=Cause.NO_SUCH_GPU,
        hint="CUDA_VISIBLE_DEVICES may hide it",
    )


def visible_gpus() -> tuple[str, ...]:
    """UUIDs of the GPUs that CUDA shows to this process, in its order; none without a driver that works."""
    try:
        driver = open_driver()
    except UnsupportedError:
        return ()
    with driver_errors():
        return tuple(device.uuid for device in driver.devices())


@contextmanager
def driver_errors() -> Iterator[None]:
    """Turns an error of the driver into DeviceMemoryError where that is what it says, else into PybenchError."""
    try:
        yield
    except _native.CudaError as error:
        if error.code == _OUT_OF_MEMORY:
            raise DeviceMemoryError(str(error), evidence=f"{error.call}: {error.name}") from error
        hint = (
            "the GPU's context cannot be used after such an error: the process has to end" if _sticky(error) else None
        )
        raise PybenchError(str(error), hint=hint) from error


def _sticky(error: _native.CudaError) -> bool:
    """Errors of code that ran on the GPU (CUresult 700 to 719), after which every call fails."""
    return 700 <= error.code < 720


def _bare(uuid: str) -> str:
    return uuid.partition("-")[2].lower()
