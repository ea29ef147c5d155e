# SPDX-License-Identifier: Apache-2.0
"""The load against a simulated driver: it ends when it should, at any speed of the kernel, and gives everything
back.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pybench import _native
from pybench.errors import DeviceMemoryError, PybenchError, UnsupportedError, UsageError
from pybench.measure import GpuLoad, monotonic_ns
from tests.measure.simulated_cuda import UUID, SimulatedDriver, interrupted_after

MILLISECOND = 1_000_000
TOLERANCE_NS = 200_000


@pytest.mark.parametrize("round_ns", ["2", "50", "40000"])
@pytest.mark.parametrize("level", [1.0, 0.3])
def test_the_load_lasts_as_long_as_wanted(
    round_ns: str, level: float, simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of many runs at least: another process may take the CPU from the host for longer than a millisecond."""
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_ROUND_NS", round_ns)
    with GpuLoad(UUID) as load:
        for seconds, most_runs, idle_counts in ((0.005, 200, True), (0.1, 20, False)):
            least_error_ns = least_idle_ns = math.inf
            for _ in range(most_runs):
                run = load.run(seconds, level=level)
                least_error_ns = min(least_error_ns, abs(run.end_ns - run.begin_ns - seconds * 1e9))
                least_idle_ns = min(least_idle_ns, run.slack_ns + run.gaps_ns)
                assert run.busy_ns + run.slack_ns == run.end_ns - run.begin_ns
                assert run.kernels_ns.sum() <= run.busy_ns + 500 * len(run.kernels_ns)
                assert run.kernels_ns.max() < MILLISECOND
                if least_error_ns < TOLERANCE_NS and (least_idle_ns < TOLERANCE_NS or not idle_counts):
                    break
            assert least_error_ns < TOLERANCE_NS
            assert least_idle_ns < TOLERANCE_NS or not idle_counts


def test_the_edges_are_on_the_raw_clock_and_unpack(simulated: SimulatedDriver) -> None:
    with GpuLoad(UUID) as load:
        before_ns = monotonic_ns()
        begin_ns, end_ns = load.run(0.02)
        assert before_ns <= begin_ns < end_ns <= monotonic_ns()
        assert load.name == "Simulated GPU"


def test_everything_is_given_back(simulated: SimulatedDriver) -> None:
    before = simulated.held()
    with GpuLoad(UUID) as load:
        load.run(0.005)
        assert simulated.held() > before
    assert simulated.held() == before


def test_a_small_memory_takes_a_smaller_buffer_and_none_is_an_error(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_MEMORY_MB", "100")
    with GpuLoad(UUID) as load:
        load.run(0.005)
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_MEMORY_MB", "8")
    before = simulated.held()
    with pytest.raises(DeviceMemoryError, match="cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"), GpuLoad(UUID):
        pass
    assert simulated.held() == before


@pytest.mark.timeout(100)
def test_ctrl_c_ends_the_load(simulated: SimulatedDriver) -> None:
    with GpuLoad(UUID) as load, pytest.raises(KeyboardInterrupt), interrupted_after(0.1):
        load.run(200.0)


def test_a_kernel_that_fails_is_an_error(simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    with GpuLoad(UUID) as load:
        monkeypatch.setenv("PYBENCH_FAKE_CUDA_FAIL", "cuLaunchKernel:700:2")
        GpuLoad(UUID)  # opening reads the environment again
        with pytest.raises(PybenchError, match="cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS"):
            load.run(0.01)


def test_a_kernel_that_the_driver_refuses_is_tried_for_a_newer_target(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_FAIL", "cuModuleLoadData:222:1")
    with GpuLoad(UUID) as load:
        load.run(0.005)


def test_no_driver_and_no_such_gpu_are_unsupported(
    simulated_library: Path, simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnsupportedError, match=UUID) as caught:
        GpuLoad("GPU-1")
    assert caught.value.reason.stored_code == "no_such_gpu"
    assert GpuLoad(UUID.upper().replace("GPU", "MIG"), library=str(simulated_library)).name == "Simulated GPU"
    monkeypatch.setenv("PYBENCH_CUDA_LIBRARY", "libabsent-cuda.so.1")
    with pytest.raises(UnsupportedError) as caught:
        GpuLoad(UUID)
    assert caught.value.reason.stored_code == "no_cuda_driver"


@pytest.mark.parametrize(("seconds", "level"), [(0, 1), (-1, 1), (1e9, 1), (1, 0), (1, 1.1), (float("nan"), 1)])
def test_impossible_loads_are_refused(seconds: float, level: float, simulated: SimulatedDriver) -> None:
    with GpuLoad(UUID) as load, pytest.raises(UsageError):
        load.run(seconds, level=level)


def test_a_load_that_is_not_open_says_how(simulated: SimulatedDriver) -> None:
    with pytest.raises(UsageError) as caught:
        GpuLoad(UUID).run(0.1)
    assert caught.value.hint is not None


@pytest.mark.parametrize(("version", "target", "built_for"), [("4.3", "sm_50", "sm_90"), ("6.3", "sm_75", "sm_90")])
def test_nvidias_assembler_takes_the_kernel(version: str, target: str, built_for: str, tmp_path: Path) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("no ptxas here")
    source = tmp_path / "load.ptx"
    source.write_text(_native.CudaLoad.ptx(version, target))
    command = [ptxas, f"-arch={built_for}", "-Werror", "-v", str(source), "-o", str(tmp_path / "load.cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "0 bytes spill stores" in done.stderr


def find_ptxas() -> str | None:
    """The toolkit's, or the one that comes with torch's compiler."""
    try:
        import triton
    except ImportError:
        return shutil.which("ptxas")
    bundled = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    return str(bundled) if os.access(bundled, os.X_OK) else shutil.which("ptxas")
