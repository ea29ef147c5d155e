# SPDX-License-Identifier: Apache-2.0
"""Defects seen in other energy tools, each with the test that keeps it out of this one."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench.catalogue.metrics import METRICS
from pybench.measure import MeasuringSession, Window, monotonic_ns
from pybench.measure.energy.cpu import CpuEnergy
from pybench.measure.energy.gpu import board_energy
from pybench.measure.energy.gpu_sampler import Unavailable, open_gpu
from pybench.measure.energy.integration import WindowEnergies, integrate
from pybench.measure.energy.plain_methods import measure_tick_s
from pybench.measure.energy.rapl import Accumulator
from pybench.measure.energy.trace import PolledChannel, SampleChannel, Trace, read_trace
from pybench.measure.quantity import Quantity
from tests.measure.fake_rapl import RANGE_UJ, Machine
from tests.measure.recordings import H200, recording
from tests.measure.replay import TRACE, UUID
from tests.oracles.simulated_board import SimulatedBoard, bursts, to_ns

SECOND = 1_000_000_000
TEN_SECONDS = Window("energy", 0, 10 * SECOND, 100)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def simulated(changes: dict[float, float], length_s: float, seed: int = 1) -> tuple[SimulatedBoard, Trace]:
    """A board whose power is `changes[t]` from `t` on, and its record."""
    board = SimulatedBoard(np.array(list(changes)), np.array(list(changes.values())))
    return board, board.trace(length_s, H200, np.random.default_rng(seed))


def fused(trace: Trace, begin_s: float, end_s: float, method: str = "fused") -> WindowEnergies:
    return integrate(trace, to_ns(np.array([begin_s])), to_ns(np.array([end_s])), H200, method)


class ListedCounter:
    """A counter that reads what it is told to, in J; None fails."""

    def __init__(self, *values_j: float | None) -> None:
        self.values_j = list(values_j)

    def read(self) -> float:
        value_j = self.values_j.pop(0)
        if value_j is None:
            raise OSError("no reading")
        return value_j


# CPU counters.


def test_a_failed_rapl_read_is_missing_and_not_a_wrap__codecarbon() -> None:
    # CodeCarbon returns 0 for a failed read and takes it for a wrap: +261,133.5 J, then +1,020 J for the next 10 J.
    accumulator = Accumulator(ListedCounter(1000.0, 1010.0, None, 1020.0), range_j=262_143.0)
    totals = [accumulator.update(second * SECOND) for second in range(4)]
    assert totals == [0.0, 10.0, None, 20.0]
    assert accumulator.trouble is None


def test_a_machine_without_counters_is_null_with_a_reason__codecarbon_and_pyjoules(machine: Machine) -> None:
    # CodeCarbon #1316 reports 0 kWh for a GPU without a counter; pyJoules #54 succeeds without a single domain.
    energy = machine.energy()
    reading = energy.read()
    cpu = energy.difference(TEN_SECONDS, reading, reading)
    assert (cpu.value, cpu.valid, cpu.method) == (None, None, "unavailable")
    assert cpu.reasons
    gpu = fused(Trace(), 0.0, 10.0)
    assert np.isnan(gpu.energy_j[0])
    assert gpu.reasons[0]


def test_a_wrap_counts_in_the_very_window_that_it_falls_into__zeus_rapl(machine: Machine) -> None:
    # Zeus counts wraps in a process that polls every second: a window that ends before the poll is 262 kJ low.
    machine.add_zone("intel-rapl:0", "package-0", energy_uj=RANGE_UJ - 3_000_000)
    energy = machine.energy()
    before = energy.read()
    machine.rise(20)
    after = energy.read()  # at once: nothing has polled in between
    assert energy.difference(Window("energy", 0, SECOND, 1), before, after).value == pytest.approx(20)


def test_time_in_which_two_wraps_could_hide_is_invalid__zeusd() -> None:
    # zeusd counts a wrap when it reads; what wrapped twice since the last read is lost in silence.
    accumulator = Accumulator(ListedCounter(0.0, 5.0), range_j=65_536.0)
    accumulator.update(0)
    accumulator.update(120 * SECOND)  # 65 kJ last 66 s at 1 kW
    assert accumulator.trouble is not None
    assert accumulator.trouble.code == "counter_gap"


def test_rapl_energy_is_a_difference_whatever_was_read_in_between__perun(machine: Machine) -> None:
    # perun turns the counter into power and integrates that again: 3 samples +14 %, 5 samples -17 % of the same total.
    machine.add_zone("intel-rapl:0", "package-0")
    steps = np.random.default_rng(2).uniform(0.1, 4, 60)
    values = []
    for readings in (0, 3, 5, 30):
        energy = machine.energy()
        before = energy.read()
        for index, joules in enumerate(steps):
            machine.rise(float(joules))
            if readings and index % (60 // readings) == 0:
                energy.read()
        values.append(energy.difference(Window("energy", 0, 60 * SECOND, 1), before, energy.read()).value)
    assert values == pytest.approx([float(np.sum(steps))] * 4, abs=1e-3)


def test_a_wrap_is_not_retried_and_then_called_zero__carbontracker(machine: Machine) -> None:
    # carbontracker computes the same two readings again and again on a wrap, and then reports 0 W.
    machine.add_zone("intel-rapl:0", "package-0", energy_uj=RANGE_UJ - 1_500_000)
    energy = machine.energy()  # its probe takes 1 J
    before = energy.read()
    machine.rise(100)
    assert energy.difference(TEN_SECONDS, before, energy.read()).value == pytest.approx(100)


def test_memory_outside_the_package_is_counted_and_named__carbontracker(machine: Machine) -> None:
    # carbontracker left DRAM out until #93: on servers the package does not hold it.
    machine.add_zone("intel-rapl:0", "package-0")
    machine.add_zone("intel-rapl:0:0", "dram")
    energy = machine.energy()
    before = energy.read()
    machine.rise(30)
    quantity = energy.difference(TEN_SECONDS, before, energy.read())
    assert quantity.value == pytest.approx(60)
    assert quantity.scope == "package+dram"


@pytest.mark.parametrize("before_wrap_j", [0.5, 5.0, 250.0])
def test_a_wrap_is_neither_a_crash_nor_negative__energibridge(machine: Machine, before_wrap_j: float) -> None:
    # EnergiBridge #17 panics or yields -250,769 J; PowerJoular #45, scaphandre #280 and GEOPM #3914 are its kin.
    machine.add_zone("intel-rapl:0", "package-0", energy_uj=RANGE_UJ - round((1 + before_wrap_j) * 1e6))
    energy = machine.energy()
    before = energy.read()
    machine.rise(300)
    quantity = energy.difference(TEN_SECONDS, before, energy.read())
    assert quantity.value == pytest.approx(300)
    assert quantity.valid is True


def test_every_energy_names_its_scope__srt_slurm(machine: Machine) -> None:
    # srt-slurm #481: a field called CPU is the CPU rail, 51 W, while the socket draws 98 W.
    machine.add_zone("intel-rapl:0", "package-0")
    energy = machine.energy()
    before = energy.read()
    machine.rise(10)
    assert energy.difference(TEN_SECONDS, before, energy.read()).scope == "package"
    quantities = board_energy(*board_with_rest(), H200, 0).quantities
    assert {quantity.scope for quantity in quantities.values()} == {"board"}
    assert all("board" in METRICS[name].meaning for name in quantities)


# GPU power and its integral.


def test_constant_power_has_energy__zeus_power_monitor() -> None:
    # Zeus keeps only values that changed and wants two of them in the window: 70 W for 10 s are 0 J.
    times_ns = np.arange(0, 14 * SECOND, 20_000_000)
    constant = Trace(
        samples=SampleChannel(times_ns, np.full(len(times_ns), 70.0)),
        polled=PolledChannel(times_ns, np.full(len(times_ns), 70.0), np.full(len(times_ns), 70.0)),
    )
    for method in ("fused", "samples-trapezoid", "instant-trapezoid", "average-trapezoid"):
        assert fused(constant, 2.0, 12.0, method).energy_j[0] == pytest.approx(700.0)


def test_one_step_of_power_has_energy_on_both_sides__zeus_power_monitor() -> None:
    # Zeus: a step from 70 to 400 W is one changed value, 0 J.
    board, trace = simulated({0: 70.0, 5: 400.0}, 12)
    truth = board.energy_j(np.array([2.0]), np.array([10.0]))
    assert fused(trace, 2.0, 10.0).energy_j == pytest.approx(truth, rel=2e-3)


def test_rest_at_the_windows_edges_is_held__zeus_power_monitor() -> None:
    # Zeus: idle, busy, idle reads 16 % low, because nothing changes at the edges.
    board, trace = simulated({0: 70.0, 5: 400.0, 8: 70.0}, 14)
    truth = board.energy_j(np.array([2.0]), np.array([12.0]))
    assert fused(trace, 2.0, 12.0).energy_j == pytest.approx(truth, rel=2e-3)


def test_counter_and_power_that_disagree_make_the_energy_invalid__zeus_181() -> None:
    # Zeus #181: 5 s at rest are 187 J by the counter and 327 J by polling, and both were reported.
    _, trace = simulated({0: 65.4}, 9)
    wrong = replace(trace, counter=replace(trace.counter, energy_j=trace.counter.energy_j * 187 / 327))
    energies = fused(wrong, 2.0, 7.0)
    assert not energies.valid[0]
    assert any(str(reason).startswith("channels_disagree") for reason in energies.reasons[0])


def test_the_update_period_is_measured_and_never_zero__zeus_infer_period() -> None:
    # Zeus's infer_counter_update_period returned zero until PR #261.
    counter = recording("h200-windows").trace.counter
    assert measure_tick_s(counter) == pytest.approx(0.1, rel=0.05)
    still = replace(counter, energy_j=np.full(len(counter.energy_j), 5.0))
    assert measure_tick_s(still) is None  # unknown, not 0


def test_windows_are_on_the_raw_clock_that_nobody_sets__zeus_time() -> None:
    # Zeus measures with time.time(), which NTP and people set.
    before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    with MeasuringSession() as session, session.window("energy"):
        inside_ns = monotonic_ns()
    after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    (window,) = session.windows
    assert before_ns <= window.begin_ns <= inside_ns <= window.end_ns <= after_ns


def test_every_energy_names_the_parts_that_it_counts__zeus_total_energy() -> None:
    # Zeus's total_energy is that of the GPUs alone. Here a name begins with the part; the sum says what it is a sum of.
    energies = [row for name, row in METRICS.items() if "energy" in name]
    assert energies
    assert all(row.name.startswith(("gpu_", "cpu_", "build_", "system_", "module_", "node_")) for row in energies)
    for row in energies:
        assert not row.name.startswith("system_") or {"GPU", "CPU"} <= set(re.findall(r"[A-Z]{3}", row.meaning))


def test_flat_and_falling_power_counts__alumet() -> None:
    # Alumet's minimal mode emits energy only while power rises.
    board, trace = simulated({0: 300.0, 3: 700.0, 5: 500.0, 6: 500.1, 8: 200.0}, 12)
    edges = np.arange(1.0, 11.0, 1.0)
    energies = integrate(trace, to_ns(edges[:-1]), to_ns(edges[1:]), H200)
    assert energies.energy_j == pytest.approx(board.energy_j(edges[:-1], edges[1:]), rel=0.02)


def test_the_instantaneous_field_is_not_the_one_second_average__alumet() -> None:
    # Alumet's nvml_instant_power is nvmlDeviceGetPowerUsage: a one-second average since Ampere.
    recorded = recording("h200-windows")
    short = recorded.nominal_s == 0.5
    by_work_j = 0.07801 * recorded.iterations[short]
    instant = recorded.integrate("instant-trapezoid").energy_j[short] / by_work_j
    average = recorded.integrate("average-trapezoid").energy_j[short] / by_work_j
    assert np.all(average < 0.5)
    assert np.all(instant > 0.8)


@pytest.mark.parametrize("parts", [2, 3, 5, 31])
def test_the_parts_of_a_window_add_to_the_whole__perun(parts: int) -> None:
    # perun's total depends on how many samples it took: +14 % with 3, -17 % with 5.
    recorded = recording("h200-windows")
    for begin_ns, end_ns in zip(recorded.begin_ns, recorded.end_ns, strict=True):
        edges = np.linspace(begin_ns, end_ns, parts + 1).astype(np.int64)
        if edges[1] - edges[0] < 100_000_000:
            continue
        energies = integrate(recorded.trace, np.append(edges[:-1], begin_ns), np.append(edges[1:], end_ns), H200)
        assert np.sum(energies.energy_j[:-1]) == pytest.approx(energies.energy_j[-1], rel=0.004)


def test_a_short_window_is_not_what_came_before_it__llenergymeasure() -> None:
    # LLenergyMeasure integrates the one-second trailing average: a window below a second reports its past.
    for before_w in (100.0, 700.0):
        _, trace = simulated({0: before_w, 3: 400.0, 3.3: before_w}, 6)
        assert fused(trace, 3.0, 3.3).energy_j[0] == pytest.approx(120.0, rel=0.01)


def board_with_rest(
    rest_w: tuple[float, float] = (100.0, 100.0), load_w: float = 400.0
) -> tuple[Trace, Window, Window, Window]:
    """Load from 3 to 5 s; a trace, its window, and rest before and after."""
    _, trace = simulated({0: rest_w[0], 3: load_w, 5: rest_w[1]}, 8)
    windows = (("energy", 3.0, 5.0), ("idle_before", 1.0, 2.5), ("idle_after", 5.5, 7.0))
    return trace, *(Window(name, round(begin * SECOND), round(end * SECOND), 10) for name, begin, end in windows)  # type: ignore[return-value]


def test_net_energy_is_signed_and_never_clipped__llenergymeasure() -> None:
    # LLenergyMeasure takes max(0, E - idle), which lifts the mean of small effects.
    quantities = board_energy(*board_with_rest(load_w=98.0), H200, 0).quantities
    net = quantities["gpu_net_energy_j"]
    assert net.value == pytest.approx(-4.0, abs=0.5)
    assert net.u_standard is not None
    assert net.u_standard > 0


def test_rest_is_measured_around_every_window_and_its_drift_is_said__llenergymeasure() -> None:
    # LLenergyMeasure keeps one baseline for an hour.
    quantities = board_energy(*board_with_rest(rest_w=(100.0, 130.0)), H200, 0).quantities
    assert quantities["gpu_idle_power_before_w"].value == pytest.approx(100, rel=0.01)
    assert quantities["gpu_idle_power_after_w"].value == pytest.approx(130, rel=0.01)
    net = quantities["gpu_net_energy_j"]
    assert net.value == pytest.approx(800 - 230, rel=0.01)
    assert any(str(reason).startswith("idle_drift") for reason in net.reasons)


def test_what_was_not_recorded_is_not_extrapolated__trtllm_bench() -> None:
    # trtllm-bench multiplies by ranks that it did not read.
    _, trace = simulated({0: 400.0}, 5)
    energies = fused(trace, 3.0, 7.0)
    assert np.isnan(energies.energy_j[0])
    assert str(energies.reasons[0][0]).startswith("not_covered")


def test_energy_and_duration_are_of_one_window__trtllm_bench() -> None:
    # trtllm-bench (PR #11855): the window of the energy is not that of the duration it is divided by.
    trace, window, before, after = board_with_rest()
    result = board_energy(trace, window, before, after, H200, 0)
    assert result.budget["end_s"] - result.budget["begin_s"] == pytest.approx(window.duration_s)
    energy = result.quantities["gpu_energy_j"]
    assert energy.window == window.name
    assert energy.value == pytest.approx(400 * window.duration_s, rel=2e-3)


def test_whole_board_power_is_not_summed_over_mig_instances__dcgm_exporter(replayed_gpu: str) -> None:
    # dcgm-exporter #317, #257: each MIG instance repeats the board's 52.6 W, and a sum counts it four times. An
    # instance has no power of its own here: its UUID is no board, and that is said.
    instance = open_gpu("MIG-00000000-0000-0000-0000-000000000001", 0.1, replayed_gpu)
    assert isinstance(instance, Unavailable)
    assert str(instance.reason).startswith("device_not_found: NVML has no device MIG-")


def test_a_board_that_is_shared_is_not_one_process_s_energy__dcgm_exporter(
    replay_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same from the other side: a second process (another instance's, too) makes the board's energy not ours.
    shutil.copytree(TRACE, tmp_path / "shared")
    (tmp_path / "shared/memory.csv").write_text("t_us,used_bytes,process_count\n0,7000000,2\n3000000,7000000,2\n")
    monkeypatch.setenv("PYBENCH_REPLAY_TRACE", str(tmp_path / "shared"))
    with MeasuringSession(UUID, nvml_library=str(replay_library)) as session, session.window("energy"):
        time.sleep(0.5)
    energy = session.energy("energy")["gpu_energy_j"]
    assert energy.valid is False
    assert any(str(reason).startswith("foreign_process") for reason in energy.reasons)


def test_rest_and_load_are_seen_by_the_same_monitor__dcgm_exporter_464(
    replayed_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # dcgm-exporter #464: a version of the monitor lifted idle A100s from 50 to 100 W of power. Rest is measured by the
    # very sampler that measures the load, in the same session, so that its cost is in both and leaves the difference.
    monkeypatch.setenv("PYBENCH_REPLAY_SPEED", "0.25")  # what the driver keeps lasts for ten seconds then
    with MeasuringSession(UUID, nvml_library=replayed_gpu) as session:
        session.idle("idle_before", 0.3)
        with session.window("energy"):
            time.sleep(0.4)
        session.idle("idle_after", 0.3)
    budget = session.energy_budget("energy")
    assert budget is not None
    (window,) = budget["windows"]
    assert window["idle_before_w"] is not None
    assert window["idle_after_w"] is not None


def test_the_tail_of_the_previous_window_does_not_leak_into_the_next__atlas() -> None:
    # Avarok atlas PR #1197: each repetition recorded the tail of the one before, and found "twice the power".
    begins = np.array([2.0, 2.6, 3.2])
    ends = begins + 0.5
    load_w = np.array([700.0, 200.0, 450.0])
    board = bursts(begins, ends, load_w, idle_w=90.0)
    trace = board.trace(6, H200, np.random.default_rng(4))
    energies = integrate(trace, to_ns(begins), to_ns(ends), H200)
    assert energies.energy_j == pytest.approx(load_w * 0.5, rel=2e-3)
    average = integrate(replay_average(board), to_ns(begins), to_ns(ends), H200, "average-trapezoid").energy_j
    assert average[1] > 1.4 * load_w[1] * 0.5  # what a trailing average makes of the same windows


def replay_average(board: SimulatedBoard) -> Trace:
    """A field like 185: the mean of the last second."""
    times_s = np.arange(1.0, 6.0, 0.02)
    average_w: NDArray[np.float64] = board.energy_j(times_s - 1, times_s)
    return Trace(polled=PolledChannel(to_ns(times_s), np.full(len(times_s), np.nan), average_w))


def test_measured_and_estimated_joules_have_different_names__all(machine: Machine) -> None:
    # CodeCarbon adds RAPL, TDP times a cubic, and 5 W a DIMM into one number.
    assert "cpu_energy_j" in METRICS
    assert "cpu_energy_estimate_j" in METRICS
    assert {"value", "interval", "method", "scope"} <= {field.name for field in fields(Quantity)}
    assert CpuEnergy(machine.root).domains == []


def test_a_recording_is_read_as_it_was_written() -> None:
    # Every judgement above rests on the channels as recorded: nothing is smoothed or dropped on the way in.
    trace = read_trace(TRACE)
    rows = np.loadtxt(TRACE / "samples.csv", delimiter=",", skiprows=1)
    assert trace.samples.power_w == pytest.approx(rows[:, 1], abs=0)
    assert np.array_equal(trace.samples.time_ns, np.round(rows[:, 0] * 1000).astype(np.int64))
