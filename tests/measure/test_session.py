# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench import measure
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.metrics import METRICS
from pybench.dataset.software import read_software
from pybench.errors import UsageError
from pybench.measure import MeasuringSession
from pybench.measure.energy.gpu_sampler import Columns, GpuSampler
from tests.measure.fake_rapl import Machine
from tests.measure.replay import TRACE, UUID
from tests.support.waiting import wait_for


def test_a_replayed_gpu_gives_the_energy_of_a_window(replayed_gpu: str) -> None:
    with MeasuringSession(UUID, nvml_library=replayed_gpu) as session:
        measure.sleep_until_ns(session.begin_ns + 900_000_000)  # where the recorded load is at work for 1.9 s more
        with session.window("energy") as window:
            window.iterations = len(measure.time_calls(lambda: time.sleep(0.05), iterations=1, minimum_s=1.2))
        session.idle(measure.IDLE_AFTER, 0.3)
    quantities = session.energy("energy")
    cautions = [caution.code for caution in session.cautions("energy")]
    closed = session.windows[0]
    energy = quantities["gpu_energy_j"]
    assert energy.value == pytest.approx(641 * closed.duration_s, rel=0.02)
    assert energy.valid is True
    assert energy.u_standard is not None
    assert energy.u_absolute is not None
    assert 0.005 < energy.u_standard / energy.value < 0.02
    assert 0.028 < energy.u_absolute / energy.value < 0.04
    assert cautions == [CautionCode.SENSOR_ASSUMED]
    assert closed.duration_s >= 1.2
    assert closed.iterations == window.iterations
    facts = read_software({"measuring": session.facts()}).facts  # what decides whether two runs may be compared
    assert (facts["board"], facts["driver"]) == (UUID, "replay")


def test_only_the_last_window_before_rest_has_a_tail(replayed_gpu: str) -> None:
    with MeasuringSession(UUID, nvml_library=replayed_gpu) as session:
        session.idle(measure.IDLE_BEFORE, 0.3)
        for name in ("timing", "timing_depth1"):
            with session.window(name):
                time.sleep(0.4)
        session.idle(measure.IDLE_AFTER, 0.3)
    first, last = (session.energy(name)["gpu_tail_energy_j"] for name in ("timing", "timing_depth1"))
    assert [reason.code for reason in first.reasons] == ["no_tail"]
    assert (first.value is None, last.value is None) == (True, False)


def test_channels_are_written_with_equally_long_columns_in_si_units(replayed_gpu: str) -> None:
    written: dict[str, dict[str, NDArray[Any]]] = {}
    with MeasuringSession(UUID, nvml_library=replayed_gpu) as session:
        time.sleep(0.4)
    session.write_channels(written.__setitem__)
    assert set(written) == {
        "power_samples",
        "power_polled",
        "power_drains",
        "energy_counter",
        "clocks",
        "gpu_processes",
    }
    for columns in written.values():
        assert len({len(column) for column in columns.values()}) == 1
    assert np.nanmax(written["power_samples"]["power_w"]) < 1000
    assert abs(written["energy_counter"]["gap_ns"][0]) < 1e9
    assert np.all(written["power_samples"]["gap_ns"][1:] > 0)


def test_a_gpu_without_nvml_is_null_with_a_reason_and_no_error() -> None:
    with MeasuringSession("GPU-1", nvml_library="libabsent-nvml.so") as session, session.window("energy"):
        time.sleep(0.01)
    energy = session.energy("energy")["gpu_energy_j"]
    assert (energy.value, energy.valid) == (None, None)
    assert str(energy.reasons[0]).startswith("nvml_unavailable: libabsent-nvml.so")
    memory = session.memory()["peak_device_bytes"]
    assert memory.value is None
    assert memory.reasons == energy.reasons
    assert session.facts()["gpu"] == {"unavailable": "; ".join(map(str, energy.reasons))}
    session.write_channels(lambda name, columns: pytest.fail("nothing was sampled"))


def test_no_gpu_asked_for_means_no_gpu_quantity() -> None:
    with MeasuringSession() as session, session.window("timing"):
        pass
    names = set(session.energy("timing") | session.memory())
    assert "cpu_energy_j" in names
    assert "peak_host_bytes" in names
    assert not any(name.startswith(("gpu", "peak_device")) for name in names)
    assert names <= set(METRICS)


def test_without_rapl_the_cpu_energy_is_null_and_an_interval_stands_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    stat = tmp_path / "proc/stat"
    stat.write_text("cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1\n")
    with MeasuringSession(root=tmp_path) as session, session.window("energy"):
        stat.write_text("cpu  1100 0 0 100 0 0 0 0 0 0\ncpu0 1\n")
    quantities = session.energy("energy")
    assert quantities["cpu_energy_j"].value is None
    estimate = quantities["cpu_energy_estimate_j"]
    assert estimate.value is None
    assert estimate.interval == (pytest.approx(0.999), pytest.approx(300.3))


def test_what_a_reading_of_the_gpus_counter_costs_the_cpu_is_outside_of_the_window(
    replayed_gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path)
    machine.add_zone("intel-rapl:0", "package-0")
    monkeypatch.setattr("pybench.measure.energy.cpu._burn", lambda: machine.rise(1.0))
    # The driver spins a core for 3 to 16 ms: some joules of a package, and 10 of this one.
    monkeypatch.setattr(GpuSampler, "read_counter", lambda sampler: machine.rise(10.0))
    with MeasuringSession(UUID, nvml_library=replayed_gpu, root=tmp_path) as session, session.window("energy"):
        machine.rise(5.0)
    assert session.energy("energy")["cpu_energy_j"].value == pytest.approx(5.0)


def test_the_peak_of_host_memory_is_of_the_windows() -> None:
    with MeasuringSession() as session:
        with session.window("timing"):
            block = bytearray(b"x" * (150 << 20))
            del block
        inside = session.memory()["peak_host_bytes"]
        block = bytearray(b"x" * (400 << 20))
        del block
        after = session.memory()["peak_host_bytes"]
    assert inside.value is not None
    assert inside.value > 150 << 20
    assert after.value == inside.value


def test_device_memory_is_this_processs_peak_and_strangers_raise_cautions(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "busy"
    shutil.copytree(TRACE, trace)
    (trace / "clocks.csv").write_text("t_us,sm_mhz,temperature_c,event_reasons\n0,1500,80,4\n3500000,1500,80,4\n")
    (trace / "memory.csv").write_text("t_us,used_bytes,process_count\n0,7000000,2\n3000000,7000000,2\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    with MeasuringSession(UUID, nvml_library=str(replay_library)) as session, session.window("timing"):
        time.sleep(0.3)
    peak = session.memory()["peak_device_bytes"]
    assert (peak.value, peak.scope) == (7_000_000, "process")
    codes = {caution.code for caution in session.cautions("timing")}
    assert {CautionCode.THROTTLED, CautionCode.FOREIGN_PROCESS} <= codes


def tasks() -> set[str]:
    return {entry.name for entry in Path("/proc/self/task").iterdir()}


def test_a_window_that_fails_is_not_kept_and_the_samplers_stop(replayed_gpu: str) -> None:
    before = tasks()  # C++ threads are known to the kernel only; other tests' frameworks have left some of their own
    session = MeasuringSession(UUID, nvml_library=replayed_gpu)

    def work_that_fails() -> None:
        with session, session.window("timing"):
            assert len(tasks() - before) >= 2, "no sampler runs, so this test would prove nothing"
            raise RuntimeError("the work failed")

    with pytest.raises(RuntimeError, match="the work failed"):
        work_that_fails()
    assert session.windows == ()
    wait_for(lambda: tasks() <= before)  # a thread that has been joined is shown for a moment more
    with pytest.raises(UsageError, match="no window 'timing'"):
        session.energy("timing")


def test_a_windows_name_is_used_once() -> None:
    with MeasuringSession() as session:
        with session.window("timing"):
            pass
        with pytest.raises(UsageError, match="measured already"), session.window("timing"):
            pass


def test_a_window_adds_little_time_of_its_own() -> None:
    with MeasuringSession() as session:
        for number in range(20):
            with session.window(str(number)):
                pass
    assert sorted(window.duration_s for window in session.windows)[10] < 1e-4


@pytest.mark.parametrize("interval_s", [0.0, 0.0001, 2.0, float("nan")])
def test_an_impossible_interval_is_refused(interval_s: float) -> None:
    with pytest.raises(UsageError):
        MeasuringSession(power_interval_s=interval_s)


def test_a_board_that_tells_no_power_has_no_energy_and_its_other_readings(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.csv").write_text("t_us,used_bytes,process_count\n0,1000,1\n1000000,1000,1\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(tmp_path))
    with (
        MeasuringSession(UUID, power_interval_s=0.05, nvml_library=str(replay_library)) as session,
        session.window("energy"),
    ):
        time.sleep(0.3)
    energy = session.energy("energy")["gpu_energy_j"]
    assert (energy.value, energy.valid) == (None, None)
    assert energy.reasons
    assert session.memory()["peak_device_bytes"].value == 1000


def test_a_board_without_power_samples_has_the_energy_of_its_counter(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "counter"
    trace.mkdir()
    shutil.copy(TRACE / "counter.csv", trace)
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    with MeasuringSession(UUID, nvml_library=str(replay_library)) as session:
        measure.sleep_until_ns(session.begin_ns + 900_000_000)  # where the recorded load is at work for 1.9 s more
        with session.window("energy"):
            time.sleep(1.7)
    energy, length_s = session.energy("energy")["gpu_energy_j"], session.windows[0].duration_s
    assert {reason.code for reason in energy.reasons} == {"sensor_assumed", "samples_unreadable"}
    assert energy.valid is True
    assert energy.value == pytest.approx(641 * length_s, rel=0.07)


@pytest.mark.parametrize(("driver", "origin"), [("replay", "measured"), ("570.9", "assumed")])
def test_a_profile_of_another_driver_does_not_count(driver: str, origin: str, replayed_gpu: str) -> None:
    profile = replace(measure.ASSUMED, uuid=UUID, driver=driver, origin="measured")
    session = MeasuringSession(UUID, nvml_library=replayed_gpu, profile=profile)
    assert session.facts()["gpu"]["sensor"]["origin"] == origin


def test_without_nvml_no_program_is_asked_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi opens NVML itself: where it can, this process can, too, by PYBENCH_NVML_LIBRARY."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", "libabsent-nvml.so")
    assert measure.gpus().gpus == ()
    with MeasuringSession(UUID) as session, session.window("energy"):
        pass
    energy = session.energy("energy")["gpu_energy_j"]
    assert energy.value is None
    assert str(energy.reasons[0]).startswith("nvml_unavailable: libabsent-nvml.so")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(("seconds", "expected"), [(1.5, 0.4), (0.3, None)])
def test_the_gpus_utilisation_is_of_sample_periods_inside_the_window(
    seconds: float, expected: float | None, replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "in-use"
    shutil.copytree(TRACE, trace)
    (trace / "utilisation.csv").write_text("t_us,gpu_percent\n0,40\n3500000,40\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    with MeasuringSession(UUID, nvml_library=str(replay_library)) as session, session.window("energy"):
        time.sleep(seconds)
    utilisation = session.gpu_utilisation("energy")
    assert utilisation is not None
    assert utilisation.value == (None if expected is None else pytest.approx(expected))
    said = [str(reason) for reason in utilisation.reasons]
    why = "utilisation_unread: no sample period, which is up to 1 s, fits into the window of 0."
    assert [text.startswith(why) for text in said] == ([] if expected else [True])
    stored: dict[str, Columns] = {}
    session.write_channels(stored.__setitem__)
    assert stored["clocks"]["utilisation_ratio"] == pytest.approx(0.4)


def test_a_board_that_tells_no_utilisation_has_none_with_a_reason(replayed_gpu: str) -> None:
    with MeasuringSession(UUID, nvml_library=replayed_gpu) as session, session.window("energy"):
        time.sleep(1.5)
    utilisation = session.gpu_utilisation("energy")
    assert utilisation is not None
    assert utilisation.value is None
    assert "NVML answered none of" in str(utilisation.reasons[0])


def test_without_a_gpu_there_is_no_utilisation_of_one() -> None:
    with MeasuringSession() as session, session.window("energy"):
        pass
    assert session.gpu_utilisation("energy") is None
