# SPDX-License-Identifier: Apache-2.0
"""The fallback, against a stand-in that is named nvidia-smi, takes the same options and prints the same lines."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pybench import measure
from pybench.catalogue.cautions import CautionCode
from pybench.measure import Session
from pybench.measure.energy.gpu_sampler import GpuSampler, open_sampler
from pybench.measure.energy.nvidia_smi import NvidiaSmiSampler, list_gpus, open_nvidia_smi, parse_number
from pybench.measure.energy.profile import ASSUMED
from pybench.measure.energy.sampler import Unavailable
from pybench.measure.timing.windows import Window
from tests.measure.replay import UUID as REPLAYED_UUID
from tests.support.waiting import wait_for

pytestmark = pytest.mark.process  # a stand-in for nvidia-smi

UUID = "GPU-11111111-2222-3333-4444-555555555555"

STAND_IN = """#!{python}
import os, sys, time
options = dict(argument.removeprefix("--").partition("=")[::2] for argument in sys.argv[1:])
assert options["format"] == "csv,noheader,nounits", options
asked = options["query-gpu"].split(",")
known = {{
    "uuid": "{uuid}", "name": "NVIDIA H200", "driver_version": "580.1", "power.draw": "301.50", "power.limit": "700.00",
    "clocks.sm": "1980", "clocks.mem": "3201", "temperature.gpu": "41", "memory.used": "2048", {more}
}}
for field in asked:
    if field not in known:
        print(f'Field "{{field}}" is not a valid field to query.\\n')
        sys.exit(2)
while True:
    power = "{power}" or ("500.25" if os.path.exists({sign!r}) else "100.25")
    print(", ".join(power if field == "power.draw.instant" else known[field] for field in asked), flush=True)
    if "loop-ms" not in options:
        break
    {between}
    time.sleep(int(options["loop-ms"]) / 1000)
"""
INSTANT = (
    '"power.draw.instant": "", "power.draw.average": "[N/A]", "clocks_event_reasons.active": "0x0000000000000004",'
)


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    more: str = INSTANT,
    power: str = "",
    between: str = "",
) -> Path:
    """Puts the stand-in on PATH. Its power steps up when there is a file where the path returned points."""
    program, sign = folder / "nvidia-smi", folder / "sign"
    program.write_text(
        STAND_IN.format(python=sys.executable, uuid=UUID, more=more, power=power, sign=str(sign), between=between)
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", "libabsent-nvml.so")
    return sign


def opened(interval_s: float = 0.1) -> NvidiaSmiSampler:
    gpu = open_nvidia_smi(UUID, interval_s)
    assert isinstance(gpu, NvidiaSmiSampler), gpu
    return gpu


def sampled(
    seconds: float, halfway: Callable[[NvidiaSmiSampler], object] = lambda gpu: None
) -> tuple[NvidiaSmiSampler, Window]:
    """A sampler that has run, and a window of `seconds` inside, in the middle of which `halfway` is called."""
    gpu = opened()
    gpu.start()
    wait_for(lambda: gpu.facts()["nvidia_smi_lines"])
    begin_ns = measure.monotonic_ns()
    time.sleep(seconds / 2)
    halfway(gpu)
    time.sleep(seconds / 2)
    window = Window("energy", begin_ns, measure.monotonic_ns(), 1)
    gpu.stop()
    return gpu, window


@pytest.mark.parametrize(
    "cell", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "", "W"]
)
def test_what_is_no_number_is_missing(cell: str) -> None:
    assert math.isnan(parse_number(cell))


def test_numbers_and_bit_masks_are_read() -> None:
    assert parse_number(" 301.50") == 301.5
    assert parse_number("0x0000000000000024") == 0x24


def test_a_session_without_nvml_measures_through_nvidia_smi_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    written: dict[str, dict[str, np.ndarray]] = {}
    with Session(UUID, power_interval_s=0.5) as session:
        wait_for(lambda: session.facts()["gpu"]["nvidia_smi_lines"])
        with session.window("energy"):
            time.sleep(1.0)
    energy = session.energy("energy")["gpu_energy_j"]
    assert energy.value == pytest.approx(100.25 * session.windows[0].duration_s, rel=0.02)
    assert (energy.method, energy.valid) == ("nvidia-smi-instant", True)
    codes = [caution.code for caution in session.cautions("energy")]
    assert codes[0] is CautionCode.ENERGY_FROM_NVIDIA_SMI
    assert {CautionCode.THROTTLED, CautionCode.GPU_MEMORY_SHARED} <= set(codes)
    assert session.facts()["gpu"]["power_source"] == "nvidia-smi-instant"
    assert session.facts()["gpu"]["power_limit_w"] == 700.0
    budget = session.energy_budget("energy")
    assert budget is not None
    assert budget["windows"][0]["method"] == "nvidia-smi-instant"
    session.write_channels(written.__setitem__)
    assert set(written) == {"power_polled", "clocks"}
    assert np.all(np.isnan(written["power_polled"]["power_average_w"]))
    assert written["clocks"]["memory_used_bytes"][0] == 2048 << 20
    peak = session.memory()["peak_device_bytes"]
    assert (peak.value, peak.scope) == (2048 << 20, "device")


def test_power_that_changes_widens_the_uncertainty_until_the_window_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign, stepped_ns = install(tmp_path, monkeypatch), []

    def step(gpu: NvidiaSmiSampler) -> None:
        stepped_ns.append(measure.monotonic_ns())
        sign.touch()

    gpu, window = sampled(1.0, step)
    [energy] = gpu.energy(window, None, None, ASSUMED, 0).quantities.values()
    assert energy.value is not None
    assert energy.u_standard is not None
    true_j = 100.25 * window.duration_s + 400 * (window.end_ns - stepped_ns[0]) * 1e-9
    assert abs(energy.value - true_j) < 2 * energy.u_standard
    # 400 W, late by 0.3 s at most: sqrt(2 / 3) * 0.3 s * 400 W
    assert energy.u_standard == pytest.approx(math.sqrt(2 / 3) * 0.3 * 400, rel=0.1)
    assert energy.valid is False
    assert energy.reasons[0].startswith("window_too_short: ")


def test_fields_that_an_older_nvidia_smi_lacks_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, more='"clocks_throttle_reasons.active": "0x0000000000000020",')
    gpu, window = sampled(0.5)
    assert gpu.method == "nvidia-smi-draw"
    [energy] = gpu.energy(window, None, None, ASSUMED, 0).quantities.values()
    assert energy.value == pytest.approx(301.5 * window.duration_s, rel=1e-6)
    seen = gpu.states().seen(np.array([window.begin_ns]), np.array([window.end_ns]))
    assert (seen.throttle_words(0), seen.most_processes.tolist()) == (["software thermal slowdown"], [0])


def test_a_device_without_power_is_unavailable_with_both_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, more=f'{INSTANT} "power.draw": "[N/A]",', power="[Not Supported]")
    gpu = open_sampler(UUID, 0.1, None)
    assert isinstance(gpu, Unavailable)
    assert gpu.reason.startswith("nvml_unavailable: libabsent-nvml.so")
    assert "; power_unsupported: " in gpu.reason


def test_another_device_and_no_program_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_gpus() == Unavailable("nvidia_smi_absent: no nvidia-smi on PATH")
    install(tmp_path, monkeypatch)
    other = open_nvidia_smi("GPU-other", 0.1)
    assert isinstance(other, Unavailable)
    assert other.reason.startswith("device_not_found: ")
    assert [(gpu.uuid, gpu.name) for gpu in measure.gpus().gpus] == [(UUID, "NVIDIA H200")]
    assert measure.gpus().driver == "580.1"


def test_a_program_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'Failed to initialize NVML: Unknown Error'\nexit 255\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert list_gpus() == Unavailable("nvidia_smi_failed: Failed to initialize NVML: Unknown Error")


def test_lines_that_come_in_bursts_make_the_energy_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = '", ".join(power if field == "power.draw.instant" else known[field] for field in asked)'
    burst = f"for _ in range(4): print({row}, flush=True)"
    install(tmp_path, monkeypatch, between=burst)
    gpu, window = sampled(0.8)
    [energy] = gpu.energy(window, None, None, ASSUMED, 0).quantities.values()
    assert energy.valid is False
    assert any(reason.startswith("lines_in_bursts: ") for reason in energy.reasons)


def test_a_child_that_dies_leaves_the_window_uncovered_and_its_status_in_the_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = install(tmp_path, monkeypatch, between="if power != '100.25': sys.exit(9)")

    def die(gpu: NvidiaSmiSampler) -> None:
        sign.touch()
        wait_for(lambda: gpu._lines.ended)

    gpu, window = sampled(0.4, die)
    [energy] = gpu.energy(window, None, None, ASSUMED, 0).quantities.values()
    assert energy.value is None
    assert energy.reasons[0].startswith("not_covered: ")
    assert gpu.facts()["nvidia_smi_exit_status"] == 9


def test_malformed_lines_are_counted_and_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, between='print("Unable to determine the device handle", flush=True)')
    gpu, window = sampled(0.5, lambda gpu: wait_for(lambda: gpu.facts()["nvidia_smi_malformed_lines"] >= 3))
    [energy] = gpu.energy(window, None, None, ASSUMED, 0).quantities.values()
    assert energy.value == pytest.approx(100.25 * window.duration_s, rel=1e-6)


def test_stopping_leaves_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    gpu = opened()
    gpu.start()
    child = gpu._child
    assert child is not None
    gpu.stop()
    assert child.returncode is not None
    gpu.stop()  # a second time is nothing


def test_where_nvml_opens_but_tells_no_power_nvidia_smi_is_read(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "powerless"
    trace.mkdir()
    (trace / "memory.csv").write_text("t_us,used_bytes,process_count\n0,1000,1\n1000000,1000,1\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    # Without nvidia-smi, NVML's other readings are better than nothing.
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(open_sampler(REPLAYED_UUID, 0.1, str(replay_library)), GpuSampler)
    install(tmp_path, monkeypatch)
    program = tmp_path / "nvidia-smi"
    program.write_text(program.read_text().replace(UUID, REPLAYED_UUID))
    assert isinstance(open_sampler(REPLAYED_UUID, 0.1, str(replay_library)), NvidiaSmiSampler)
