# SPDX-License-Identifier: Apache-2.0
"""The C++ NVML reader and sampler against the replay library: the same code that runs on a GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from pybench import _native
from pybench.catalogue.cautions import CautionCode
from pybench.measure import gpus
from pybench.measure.energy.gpu_sampler import GpuSampler, Unavailable, open_gpu
from pybench.measure.energy.profile import ASSUMED
from pybench.measure.timing.clock import monotonic_ns
from tests.measure.replay import SECOND_UUID, TRACE, UUID, jump_s
from tests.support.energies import times_s
from tests.support.waiting import wait_for

NOT_SUPPORTED = 3


def opened(library: str, interval_s: float = 0.02) -> GpuSampler:
    gpu = open_gpu(UUID, interval_s, library, counter_interval_s=interval_s)
    assert isinstance(gpu, GpuSampler), gpu
    return gpu


def copied_trace(folder: Path, *without: str) -> Path:
    shutil.copytree(TRACE, folder, ignore=shutil.ignore_patterns(*without))
    return folder


def test_an_absent_library_is_unavailable_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_NVML_LIBRARY", "libabsent-nvml.so")
    gpu = open_gpu(UUID, 0.02, None)
    assert isinstance(gpu, Unavailable)
    assert str(gpu.reason).startswith("nvml_unavailable: ")
    assert "libabsent-nvml.so" in str(gpu.reason)
    assert gpus().gpus == ()
    assert gpus().driver is None


def test_a_library_that_is_not_nvml_is_unavailable() -> None:
    nvml = _native.open_nvml("libm.so.6")
    assert not nvml.available
    assert "is not NVML" in nvml.reason
    assert nvml.devices() == []


def test_a_library_whose_init_fails_says_which_code(replay_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", "/nonexistent")
    nvml = _native.open_nvml(str(replay_library))
    assert not nvml.available
    assert nvml.reason == "nvmlInit_v2: NVML code 999 (Unknown Error)"


def test_a_device_is_found_by_uuid_and_another_is_not(replayed_gpu: str) -> None:
    assert [gpu.uuid for gpu in gpus(replayed_gpu).gpus] == [UUID]
    assert gpus(replayed_gpu).driver == "replay"
    other = open_gpu("GPU-1", 0.02, replayed_gpu)
    assert isinstance(other, Unavailable)
    assert str(other.reason).startswith("device_not_found: ")
    assert UUID in str(other.reason)


def test_single_readings_are_numbers_or_null_with_nvmls_code(
    replayed_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SPEED", "0.01")  # so that its first second lasts
    device = _native.open_nvml(replayed_gpu).devices()[0]
    assert device.power_mw(_native.FIELD_POWER_INSTANT).value == pytest.approx(121_939, rel=0.05)
    assert (device.power_mw(1).value, device.power_mw(1).code) == (None, NOT_SUPPORTED)
    assert device.processes() == (NOT_SUPPORTED, [])
    counter = device.energy_counter()
    assert counter.energy_mj.value == pytest.approx(23_393_686, rel=1e-3)
    assert counter.end_ns - counter.begin_ns >= 2_000_000  # the recorded call took 2.8 ms


@pytest.mark.timing
def test_sampling_loses_no_driver_sample_and_keeps_its_cadence(
    replayed_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SPEED", "0.25")  # what the driver keeps lasts for ten seconds then
    recorded = np.loadtxt(TRACE / "samples.csv", delimiter=",", skiprows=1) * [4, 1]
    gpu = opened(replayed_gpu)
    begin_ns = monotonic_ns()
    gpu.start()
    wait_for(lambda: len(gpu.channels(0)["power_polled"]["gap_ns"]) >= 75)
    gpu.stop()
    elapsed_s = (monotonic_ns() - begin_ns) * 1e-9
    channels = gpu.channels(begin_ns)
    samples = channels["power_samples"]
    count = min(len(samples["gap_ns"]), len(recorded))  # then the trace begins again
    assert min(elapsed_s / 0.08, len(recorded)) - 3 <= count <= elapsed_s / 0.08 + 3
    np.testing.assert_allclose(samples["power_w"][:count], recorded[:count, 1], atol=1e-6)
    assert np.array_equal(samples["power_w"], np.round(samples["power_w"], 3))  # as NVML tells: whole milliwatts
    np.testing.assert_allclose(samples["gap_ns"][1:count] * 1e-9, np.diff(recorded[:count, 0]) * 1e-6, atol=5e-6)
    polled = channels["power_polled"]
    assert len(polled["gap_ns"]) <= elapsed_s / 0.02 + 2
    assert 0.019 <= np.median(np.diff(times_s(polled)[0])) < 0.04  # a busy machine may be late for every second one
    assert gpu.facts()["sampler_failure"] is None


def test_the_stamps_of_the_driver_follow_from_the_drains(replayed_gpu: str) -> None:
    gpu = opened(replayed_gpu)
    begin_ns = monotonic_ns()
    gpu.start()
    wait_for(lambda: len(gpu.channels(0)["power_drains"]["time_s"]) >= 2)
    gpu.stop()
    channels = gpu.channels(begin_ns)
    samples, drains = channels["power_samples"], channels["power_drains"]
    brought_by = np.repeat(np.arange(len(drains["time_s"])), drains["samples"])
    stamps_us = drains["realtime_us"][brought_by] + 1e6 * (times_s(samples)[0] - drains["time_s"][brought_by])
    assert len(stamps_us) >= 20
    assert np.array_equal(np.round(stamps_us), gpu._sampler.driver_samples()["realtime_us"])


def test_the_stamp_of_a_polled_field_counts_from_its_call(replayed_gpu: str) -> None:
    gpu = opened(replayed_gpu)
    begin_ns = monotonic_ns()
    gpu.start()
    wait_for(lambda: len(gpu.channels(0)["power_polled"]["gap_ns"]) >= 5)
    gpu.stop()
    channels, read = gpu.channels(begin_ns), gpu._sampler.polled()
    drains, (call_s, _) = channels["power_drains"], times_s(channels["power_polled"])
    by = np.maximum(np.searchsorted(drains["time_s"], call_s, "right") - 1, 0)
    call_us = drains["realtime_us"][by] + 1e6 * (call_s - drains["time_s"][by])
    after_us = channels["power_polled"]["instant_stamp_us"].astype(float)
    np.testing.assert_allclose(call_us + after_us, read["instant_realtime_us"], atol=2.0, rtol=0)
    np.testing.assert_allclose(call_s * 1e9 + begin_ns, read["begin_ns"], atol=1.0, rtol=0)


@pytest.mark.timing
def test_the_slow_counter_call_does_not_delay_the_other_channels(replay_library: Path, tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    trace = copied_trace(tmp_path / "slow")
    lines = (trace / "counter.csv").read_text().splitlines()
    slow = [f"{call},{int(call) + 150_000},{energy}" for call, _, energy in (line.split(",") for line in lines[1:])]
    (trace / "counter.csv").write_text("\n".join([lines[0], *slow]) + "\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    gpu = opened(str(replay_library))
    gpu.start()
    wait_for(lambda: len(gpu.trace().counter.call_ns) >= 5)
    gpu.stop()
    channels = gpu.channels(0)
    (begin_s, end_s), (polls_s, _) = times_s(channels["energy_counter"]), times_s(channels["power_polled"])
    assert np.all(end_s - begin_s >= 0.15 - 1e-9)
    # Seven polls in each, but for what a busy machine takes; none if they waited for it.
    assert max(np.searchsorted(polls_s, end_s) - np.searchsorted(polls_s, begin_s)) >= 5


@pytest.mark.timeout(20)
def test_stopping_does_not_wait_for_the_next_tick(replayed_gpu: str) -> None:
    gpu = opened(replayed_gpu, interval_s=30.0)
    gpu.start()
    time.sleep(0.05)
    gpu.stop()


def test_the_counter_is_read_when_asked(replayed_gpu: str) -> None:
    gpu = opened(replayed_gpu, interval_s=30.0)
    gpu.start()
    wait_for(lambda: len(gpu.trace().counter.call_ns))  # the one that is due at the beginning
    for _ in range(5):
        gpu.read_counter()
    gpu.stop()
    assert len(gpu.trace().counter.call_ns) == 6


@pytest.mark.timing
def test_sampling_uses_little_of_a_core(replayed_gpu: str) -> None:
    gpu = opened(replayed_gpu)
    begin, cpu = time.monotonic(), time.process_time()
    gpu.start()
    time.sleep(1.0)
    gpu.stop()
    assert time.process_time() - cpu < 0.1 * (time.monotonic() - begin)


@pytest.mark.timing
def test_a_replay_at_four_times_the_speed_keeps_power_and_scales_energy(
    replayed_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_REPLAY_SPEED", "4")
    gpu = opened(replayed_gpu)
    gpu.start()
    time.sleep(0.85)  # the whole trace of 3.5 s
    gpu.stop()
    channels = gpu.channels(0)
    counter, samples = channels["energy_counter"], channels["power_samples"]
    read_s, sampled_s = times_s(counter)[0], times_s(samples)[0]
    steps_j = np.diff(sampled_s) * (samples["power_w"][1:] + samples["power_w"][:-1]) / 2
    sampled_j = np.interp(read_s, sampled_s, np.concatenate(([0.0], np.cumsum(steps_j))))
    # A machine that is late loses what the driver no longer keeps, at this speed all but the last 0.6 s.
    whole = np.diff(np.searchsorted(sampled_s, read_s)) >= 3
    assert whole.any()
    assert np.diff(counter["energy_j"])[whole].sum() == pytest.approx(np.diff(sampled_j)[whole].sum(), rel=0.1)
    assert samples["power_w"].max() == pytest.approx(641, rel=0.05)


def test_fields_that_are_not_supported_are_nan_with_their_code(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = copied_trace(tmp_path / "poor", "samples.csv", "polled.csv", "clocks.csv")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    gpu = opened(str(replay_library))
    gpu.start()
    time.sleep(0.3)
    gpu.stop()
    channels = gpu.channels(0)
    assert len(channels["power_samples"]["gap_ns"]) == 0
    assert gpu.facts()["power_samples_code"] == NOT_SUPPORTED
    assert np.all(np.isnan(channels["power_polled"]["power_instant_w"]))
    assert np.all(channels["power_polled"]["instant_code"] == NOT_SUPPORTED)
    assert np.all(np.isnan(channels["clocks"]["temperature_c"]))
    assert np.all(np.isfinite(channels["energy_counter"]["energy_j"]))


def test_throttling_foreign_processes_and_memory_are_seen(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = copied_trace(tmp_path / "busy", "clocks.csv")
    (trace / "clocks.csv").write_text("t_us,sm_mhz,temperature_c,event_reasons\n0,1500,80,4\n3500000,1500,80,4\n")
    (trace / "memory.csv").write_text("t_us,used_bytes,process_count\n0,1000000,2\n150000,5000000,2\n3000000,1,2\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    gpu = opened(str(replay_library))
    begin_ns = monotonic_ns()
    gpu.start()
    wait_for(lambda: gpu.peak_memory_bytes()[0] == 5_000_000)
    gpu.stop()
    seen = gpu.states().seen(np.array([begin_ns]), np.array([monotonic_ns()]))
    assert seen.throttle_words(0) == ["software power cap"]
    assert seen.most_processes.tolist() == [2]
    assert gpu.peak_memory_bytes() == (5_000_000, True)


@pytest.mark.parametrize(
    ("names", "space", "own"),
    [
        ("4242\t7", "pid:[4026532999]", [True, False]),  # a name space whose outer number is told
        ("4242", "pid:[4026531836]", [True, False]),
        ("7", "pid:[4026532999]", [None, None]),  # a container with a /proc of its own
    ],
)
def test_a_listed_process_is_own_foreign_or_not_to_be_told(
    tmp_path: Path, names: str, space: str, own: list[bool | None]
) -> None:
    (tmp_path / "self" / "ns").mkdir(parents=True)
    (tmp_path / "self" / "status").write_text(f"Name:\tpython\nNSpid:\t{names}\n")
    (tmp_path / "self" / "ns" / "pid").symlink_to(space)
    process = _native.OwnProcess(str(tmp_path))
    assert [process.of(each, [4242, 99]) for each in (4242, 99)] == own


def test_a_program_that_it_started_is_its_own_and_who_started_it_is_not() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        listed = [child.pid, os.getppid()]
        own, parent = (_native.OwnProcess().of(each, listed) for each in listed)
        assert own is True
        assert parent is not True  # in a container it cannot be told
    finally:
        child.kill()
        child.wait()


def test_an_interval_that_cannot_be_kept_is_refused(replayed_gpu: str) -> None:
    device = _native.open_nvml(replayed_gpu).devices()[0]
    with pytest.raises(ValueError, match="between 1 ms and 60 s"):
        _native.PowerSampler(device, 1000, 20_000_000, 100_000_000, 0)


def test_memory_power_has_columns_of_its_own_with_codes_and_the_drivers_stamps(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = copied_trace(tmp_path / "hbm")
    (trace / "polled_memory.csv").write_text("t_us,memory_average_w,memory_instant_w\n0,61,62\n3500000,61,62\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    gpu = opened(str(replay_library))
    gpu.start()
    time.sleep(0.2)
    gpu.stop()
    polled = gpu.channels(0)["power_polled"]
    assert set(polled["power_memory_instant_w"]) == {62.0}
    assert set(polled["power_memory_average_w"]) == {61.0}
    assert np.all(np.isnan(polled["power_module_instant_w"]))
    assert set(polled["module_instant_code"]) == {NOT_SUPPORTED}
    assert set(polled["module_instant_stamp_us"]) == {""}


def test_processes_are_a_channel_with_a_row_each_when_the_list_changes(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = copied_trace(tmp_path / "shared")
    (trace / "memory.csv").write_text("t_us,used_bytes,process_count\n0,1000,0\n100000000,7000,2\n200000000,7000,2\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    gpu = opened(str(replay_library))
    gpu.start()
    wait_for(lambda: len(gpu.channels(0)["gpu_processes"]["time_s"]))
    jump_s(replay_library, 100)
    wait_for(lambda: len(gpu.channels(0)["gpu_processes"]["time_s"]) > 1)
    gpu.stop()
    rows = gpu.channels(0)["gpu_processes"]
    assert np.isnan(rows["process_id"][0])
    assert rows["process_id"][1:].tolist() == [os.getpid(), 1]
    assert rows["own"][1:].tolist() == [1, 0]
    assert rows["used_bytes"][1] == 7000
    assert rows["time_s"][1] == rows["time_s"][2]


def test_the_phase_of_the_counters_ticks_is_found_and_kept(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = copied_trace(tmp_path / "ticks")
    rows = (f"{time_us},{time_us + 2500},{time_us // 100_000 * 12.5}\n" for time_us in range(0, 3_500_000, 500))
    (trace / "counter.csv").write_text("t_call_us,t_return_us,energy_j\n" + "".join(rows))
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(trace))
    gpu = open_gpu(UUID, 0.02, str(replay_library))
    assert isinstance(gpu, GpuSampler)
    gpu.start()
    assert gpu.facts()["counter_tick_s"] is None
    tracked = 0
    while gpu.facts()["counter_tick_s"] is None:  # once, but where a busy machine takes the time
        gpu.track_counter(0.3)
        time.sleep(0.4)
        tracked += 1
    time.sleep(1.4)
    gpu.stop()
    facts = gpu.facts()
    assert facts["counter_tick_s"] == pytest.approx(0.1, rel=1e-3)
    assert facts["counter_tick_known_within_s"] < 0.01
    assert 15 < len(gpu.channels(0)["energy_counter"]["gap_ns"]) < 60 * tracked


def test_samples_that_the_driver_dropped_are_a_caution(replayed_gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # 120 samples are 0.12 s then, less than the 0.8 s between two drains.
    monkeypatch.setenv("PYBENCH_REPLAY_SPEED", "20")
    gpu = opened(replayed_gpu)
    begin_ns = monotonic_ns()
    gpu.start()
    time.sleep(1.0)
    gpu.stop()
    assert gpu.facts()["power_samples_lost"] >= 1
    cautions = gpu.cautions(begin_ns, monotonic_ns(), ASSUMED)
    assert [caution.code for caution in cautions] == [CautionCode.SENSOR_ASSUMED, CautionCode.POWER_SAMPLES_LOST]
    assert gpu.cautions(begin_ns - 10**9, begin_ns - 10**8, ASSUMED)[1:] == []


def test_a_step_of_realtime_in_a_window_is_a_caution(replayed_gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = opened(replayed_gpu)
    # Setting the machine's clock is not for a test to do (native/tests/sample_drain_test.cpp steps a stand-in for it):
    # here is what the drains say of one.
    columns = {"time_ns": [1000, 2000, 3000], "stepped_ns": [0, -1_500_000_000, 0], "lost": [False] * 3}

    class Stepped:
        def drains(self) -> dict[str, np.ndarray]:
            return {name: np.array(column) for name, column in columns.items()}

    monkeypatch.setattr(gpu, "_sampler", Stepped())
    [_, stepped] = gpu.cautions(1500, 1800, ASSUMED)
    assert stepped.code is CautionCode.REALTIME_STEPPED
    assert "-1.5 s" in stepped.detail
    assert len(gpu.cautions(2500, 2800, ASSUMED)) == 1


def test_two_gpus_are_sampled_side_by_side(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = copied_trace(tmp_path / "other", "samples.csv")
    (other / "samples.csv").write_text(
        "t_us,power_w\n" + "".join(f"{time_us},55.5\n" for time_us in range(0, 3_400_000, 20_000))
    )
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", f"{TRACE}:{other}")
    library = str(replay_library)
    assert [gpu.uuid for gpu in gpus(library).gpus] == [UUID, SECOND_UUID]
    pair = [open_gpu(uuid, 0.02, library, counter_interval_s=0.5) for uuid in (UUID, SECOND_UUID)]
    begin_ns = monotonic_ns()
    for gpu in pair:
        assert isinstance(gpu, GpuSampler)
        gpu.start()
    for gpu in pair:
        assert isinstance(gpu, GpuSampler)
        wait_for(lambda polled=gpu.trace: len(polled().polled.time_ns) >= 25)
    for gpu in pair:
        assert isinstance(gpu, GpuSampler)
        gpu.stop()
    elapsed_s = (monotonic_ns() - begin_ns) * 1e-9
    first, second = (gpu.channels(begin_ns) for gpu in pair if isinstance(gpu, GpuSampler))
    calls_s = [times_s(channels["power_polled"])[0] for channels in (first, second)]
    assert max(each[0] for each in calls_s) < min(each[-1] for each in calls_s)
    assert set(second["power_samples"]["power_w"]) == {55.5}
    assert first["power_samples"]["power_w"].min() > 100
    for channels in (first, second):
        assert 20 <= len(channels["power_samples"]["gap_ns"]) <= elapsed_s / 0.02 + 5
        assert len(channels["power_polled"]["gap_ns"]) <= elapsed_s / 0.02 + 2
