# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from pybench.case import Case
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure import ASSUMED, CallReplayer, GraphReplayer, Times
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import BusyWatch, judge_energy, judge_timing, weakest
from pybench.measurement.recorder import Amounts, Recorder, record
from pybench.measurement.result import Result, Validity
from tests.measure.replay import UUID
from tests.measure.simulated_cuda import BEFORE, GRAPH, SimulatedDriver
from tests.support.making import codes
from tests.support.reasons import codes_of, reasons_of

NOOP = Case(workload="noop", warmup_iterations=0)


def rest(milliseconds: float) -> None:
    time.sleep(milliseconds / 1e3)


def test_every_metric_is_of_the_closed_list_and_names_a_window() -> None:
    result = record(NOOP.with_factors(iterations=5, energy_window_s=0.05), lambda: rest(2), Amounts(4, 64, 1000), None)
    assert set(result.metrics) <= set(METRICS)
    windows = set(result.windows)
    assert windows == {"timing", "energy"}
    for metric in result.metrics.values():
        assert metric.window in windows | {"timing+energy", "energy+timing"}
        assert metric.value is not None or metric.reasons


def test_the_numbers_follow_from_the_times() -> None:
    result = record(NOOP.with_factors(iterations=20), lambda: rest(2), Amounts(samples=3, tokens=12), None)
    window, table = result.windows["timing"], result.tables["iterations"]
    assert list(table) == ["gap_ns", "host_ns"]
    end = window["begin_ns"] + np.cumsum(table["gap_ns"] + table["host_ns"])
    begin = end - table["host_ns"]
    assert len(begin) == 20
    window_s = (end[-1] - begin[0]) * 1e-9
    assert result.metrics["throughput_samples_per_s"].value == pytest.approx(60 / window_s)
    assert result.metrics["throughput_tokens_per_s"].value == pytest.approx(240 / window_s)
    assert result.metrics["latency_mean_ms"].value == pytest.approx((end - begin).mean() * 1e-6)
    assert result.metrics["latency_p50_ms"].value >= 2
    assert window["begin_ns"] <= begin[0] < end[-1] <= window["end_ns"]


def test_the_energy_window_replays_the_work_for_as_long_as_asked() -> None:
    calls = []
    case = NOOP.with_factors(iterations=3, warmup_iterations=2, energy_window_s=0.1)
    result = record(case, lambda: (calls.append(1), rest(5))[0], Amounts(samples=2), None)
    energy = result.windows["energy"]
    assert (energy["end_ns"] - energy["begin_ns"]) * 1e-9 >= 0.1
    assert len(calls) == 2 + 3 + energy["iterations"]
    assert result.metrics["cpu_energy_j"].window == "energy"


def test_energy_that_cannot_be_measured_is_null_with_a_reason_and_estimated_under_its_own_name() -> None:
    result = record(NOOP.with_factors(iterations=3), lambda: rest(1), Amounts(samples=2, tokens=8), None)
    if result.valid["energy"].value is not None:
        pytest.skip("this machine counts its CPU energy")
    assert result.valid["energy"].reasons
    for name in ("cpu_energy_j", "cpu_energy_per_sample_j", "cpu_energy_per_token_j", "cpu_tokens_per_s_per_w"):
        assert result.metrics[name].value is None
        assert result.metrics[name].reasons
    estimate = result.metrics["cpu_energy_estimate_j"]
    assert estimate.value is None
    assert estimate.interval is not None
    each = result.metrics["cpu_energy_per_token_estimate_j"].interval
    assert each is not None
    assert each[1] == pytest.approx(estimate.interval[1] / (3 * 8))
    assert not any(name.startswith("gpu_") for name in result.metrics)


def test_a_gpu_that_nobody_can_ask_leaves_its_energy_null() -> None:
    result = record(NOOP.with_factors(iterations=3), lambda: rest(1), Amounts(tokens=8), "GPU-0000")
    assert result.valid["energy"].value is None
    assert result.metrics["gpu_energy_per_token_j"].value is None
    assert result.metrics["gpu_energy_per_token_j"].reasons


def test_a_measured_joule_gives_its_kin() -> None:
    quantity = Quantity(value=50.0, window="energy", u_standard=0.5, u_absolute=2.0, method="counter", valid=True)
    each = quantity.scaled(1 / 100)
    assert (each.value, each.u_standard, each.interval) == (0.5, pytest.approx(0.005), None)
    assert each.as_json("J")["u_absolute"] == pytest.approx(0.02)
    samples = quantity.inverse(100)
    assert (samples.value, samples.u_standard) == (2.0, pytest.approx(0.02))
    assert judge_energy({"gpu_energy_j": quantity}, on_gpu=True).value is True
    wrong = replace(quantity, valid=False, reasons=(Reason(ReasonCode.CHANNELS_DISAGREE, "by much"),))
    verdict = judge_energy({"gpu_energy_j": wrong}, on_gpu=True)
    assert (verdict.value, codes_of(verdict.reasons)) == (False, ("channels_disagree",))
    assert judge_energy({"gpu_energy_j": quantity}, on_gpu=False).value is None


def test_an_energy_delay_product_is_of_one_sample_and_one_iteration() -> None:
    with Recorder(NOOP.with_factors(iterations=4), None) as recorder:
        recorder.warm_up(lambda: rest(2))
        recorder.time(lambda: rest(2))
    cpu = Quantity(value=6.0, window="timing", u_standard=0.3, u_absolute=0.6, method="counter", valid=True)
    recorder._energies["timing"]["cpu_energy_j"] = cpu
    found = recorder.result(Amounts(samples=3)).metrics
    latency_s = found["latency_mean_ms"].value * 1e-3
    product = found["cpu_energy_delay_js"]
    assert product.value == pytest.approx(6.0 / (4 * 3) * latency_s)
    assert product.u_standard == pytest.approx(product.value * 0.05)
    assert product.u_absolute == pytest.approx(product.value * 0.1)
    assert "gpu_energy_delay_js" not in found


def test_a_product_has_the_uncertainties_of_both_and_the_reasons_of_both() -> None:
    energy = Quantity(value=4.0, window="energy", u_standard=0.12, u_absolute=0.2, valid=True)
    latency = Quantity(value=10.0, window="timing", u_standard=0.4, samples=50)
    product = energy.times(latency, 1e-3)
    assert (product.value, product.window, product.samples) == (pytest.approx(0.04), "energy+timing", None)
    assert product.u_standard == pytest.approx(0.04 * 0.05)  # 3 % and 4 %
    assert product.u_absolute == pytest.approx(0.04 * np.hypot(0.05, 0.04))
    reason = Reason(ReasonCode.CHANNELS_DISAGREE, "by much")
    missing = replace(energy, value=None, u_standard=None, u_absolute=None, reasons=(reason,)).times(latency, 1e-3)
    assert (missing.value, missing.u_standard, missing.reasons) == (None, None, (reason,))


def test_iterations_that_the_clock_cannot_resolve_are_no_valid_timing() -> None:
    result = record(NOOP.with_factors(iterations=100), lambda: None, Amounts(), None)
    assert codes_of(result.valid["timing"].reasons) == ("below_clock_resolution",)
    assert judge_timing(1e-3).value is True


def test_few_iterations_raise_a_caution() -> None:
    assert "few_iterations" in codes(record(NOOP.with_factors(iterations=5), lambda: rest(1), Amounts(), None))
    assert "few_iterations" not in codes(record(NOOP.with_factors(iterations=100), lambda: rest(0.1), Amounts(), None))


@pytest.mark.timing
def test_outliers_raise_a_caution() -> None:
    pauses = cycle([5.0] * 19 + [60.0])
    assert "outliers" in codes(record(NOOP.with_factors(iterations=20), lambda: rest(next(pauses)), Amounts(), None))


@pytest.mark.timing
def test_a_level_shift_raises_a_caution() -> None:
    pauses = iter([15.0] * 20 + [3.0] * 20)
    result = record(NOOP.with_factors(iterations=40), lambda: rest(next(pauses)), Amounts(), None)
    assert result.labels["steady"] in ("warmup", "no_steady_state")
    assert "not_steady" in codes(result)


def test_more_threads_than_cpus_raise_a_caution() -> None:
    many = len(os.sched_getaffinity(0)) + 1
    assert "threads_exceed_cpus" in codes(record(NOOP.with_factors(threads=many), lambda: None, Amounts(), None))
    assert "threads_exceed_cpus" not in codes(record(NOOP.with_factors(threads=1), lambda: None, Amounts(), None))


@contextmanager
def busy_neighbours() -> Iterator[None]:
    """As many spinning processes as there are CPUs; grandchildren, so that they do not count as this process's own."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=spin, daemon=True) for _ in os.sched_getaffinity(0)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def spin() -> None:
    while True:
        pass


@pytest.mark.timing
def test_busy_neighbours_raise_a_caution(monkeypatch: pytest.MonkeyPatch) -> None:
    # To this test they are strangers, not its helpers.
    monkeypatch.setattr("pybench.measure.timing.cpu_time._descendants", list)
    with busy_neighbours():
        time.sleep(0.5)
        watch = BusyWatch()
        time.sleep(0.5)
        cautions = watch.cautions()
    assert [caution.code.code for caution in cautions] == ["busy_machine"]


def test_a_machine_that_shows_no_cpu_times_is_not_doubted(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert BusyWatch(tmp_path_factory.mktemp("empty")).cautions() == []


def test_results_hold_equal_columns() -> None:
    result: Result = record(NOOP.with_factors(iterations=7), lambda: None, Amounts(), None)
    assert {len(np.asarray(column)) for column in result.tables["iterations"].values()} == {7}


def test_a_core_that_was_slow_for_a_while_raises_a_caution() -> None:
    begin_ns = np.arange(40, dtype=np.int64) * 10_000_000
    probe_ns = np.where(begin_ns < 300_000_000, 5_000, 8_000)
    times = Times(begin_ns + 10_000, begin_ns + 9_000_000, probes_ns=np.stack((begin_ns, begin_ns + probe_ns), axis=1))

    class Replayed(CallReplayer):
        def replay(self, *_: object, **__: object) -> Times:
            return times

    result = record(NOOP.with_factors(warmup_iterations=0), Replayed(lambda: None), Amounts(), None)
    assert result.metrics["core_probe_mean_ms"].value == pytest.approx((30 * 0.005 + 10 * 0.008) / 40)
    (caution,) = [each for each in result.cautions if each.code.code == "core_speed_varies"]
    assert caution.detail == "25 % of the probes took 1.6 times as long as the fast ones"
    table = result.tables["core_probes"]
    assert np.array_equal(table["end_ns"] - table["begin_ns"], probe_ns)


INFER = Case(workload="infer", model="resnet50", runtime="torch-graph", warmup_iterations=2, iterations=40)


def recorded_graph(simulated: SimulatedDriver, before: int = 0, **factors: object) -> Result:
    work = GraphReplayer(GRAPH, simulated.stream(), before=before)
    return record(INFER.with_factors(**factors), work, Amounts(samples=4), None)


@pytest.mark.timing
def test_a_replayed_graph_is_timed_by_the_gpu_and_once_more_alone(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_LAUNCH_US", "200")
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "1000")
    result = recorded_graph(simulated, energy_window_s=0.1)
    assert set(result.windows) == {"timing", "timing_depth1", "energy"}
    metrics = result.metrics
    assert metrics["latency_p50_ms"].value == pytest.approx(1.0, abs=0.01)
    assert 1.2 <= metrics["latency_depth1_p50_ms"].value < 2.4  # a graph and its launch; the rest is a busy machine's
    assert metrics["latency_depth1_p50_ms"].window == "timing_depth1"
    assert metrics["latency_depth1_p99_ms"].value >= metrics["latency_depth1_p50_ms"].value
    assert 0.2 <= metrics["enqueue_p50_ms"].value < 0.4
    table = result.tables["iterations"]
    assert table["gpu_gap_ns"][0] == 0
    span_s = (table["gpu_gap_ns"] + table["gpu_ns"]).sum() * 1e-9
    assert metrics["throughput_samples_per_s"].value == pytest.approx(4 * 40 / span_s)
    assert np.all(table["gap_ns"][1:] < 0)  # two deep
    assert set(metrics) <= set(METRICS)
    assert result.labels["steady_depth1"] in ("flat", "warmup", "slowdown", "no_steady_state")
    assert result.labels["latency"] == "GPU events around each graph launch, 2 in flight"
    assert 1 < result.windows["energy"]["iterations"] <= 101
    for name, window in (("iterations", "timing"), ("iterations_depth1", "timing_depth1")):
        table, edges = result.tables[name], result.windows[window]
        assert list(table) == ["gap_ns", "host_ns", "enqueue_ns", "gpu_gap_ns", "gpu_ns"]
        assert {len(column) for column in table.values()} == {40}
        assert table["gap_ns"][0] >= 0
        assert (table["gap_ns"] + table["host_ns"]).sum() <= edges["end_ns"] - edges["begin_ns"]


def test_a_replayed_graph_with_arrivals_is_timed_from_them(simulated: SimulatedDriver) -> None:
    result = recorded_graph(simulated, arrivals="fixed", arrival_rate_per_s=1000.0)
    assert set(result.windows) == {"timing"}
    assert "latency_depth1_p50_ms" not in result.metrics
    table = result.tables["iterations"]
    assert list(table) == ["gap_ns", "host_ns", "waiting_ns", "enqueue_ns", "gpu_gap_ns", "gpu_ns"]
    begin_ns = np.cumsum(table["gap_ns"] + table["host_ns"]) - table["host_ns"]
    assert np.median(np.diff(begin_ns - table["waiting_ns"])) == 1_000_000
    assert result.metrics["latency_p50_ms"].value >= 0.1


def test_what_stands_before_each_iteration_has_a_window_and_no_part_in_rates(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "1000")
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_BEFORE_US", "3000")
    result = recorded_graph(simulated, before=BEFORE, energy_window_s=0.1)
    assert set(result.windows) == {"before", "timing", "timing_depth1", "energy"}
    assert result.windows["before"]["begin_ns"] < result.windows["timing"]["begin_ns"]
    table = result.tables["iterations"]
    busy_s = table["gpu_ns"].sum() * 1e-9
    assert result.metrics["throughput_samples_per_s"].value == pytest.approx(4 * 40 / busy_s)
    assert not any(name.startswith("gpu_slow") for name in result.metrics)


@pytest.mark.usefixtures("replayed")
def test_energy_is_without_what_stands_before_each_iteration() -> None:
    work = CallReplayer(lambda: rest(10))
    work.before = CallReplayer(lambda: rest(4))
    case = NOOP.with_factors(iterations=3, energy_window_s=0.3, idle_window_s=0.2)
    result = record(case, work, Amounts(samples=2), UUID)
    assert result.energy_budget is not None
    budgets = {budget["window"]: budget for budget in result.energy_budget["windows"]}
    assert list(budgets) == ["energy", "before"]
    whole, before = budgets["energy"], budgets["before"]
    times = whole["iterations"] / before["iterations"]
    for metric, budget in (("gpu_energy_j", "energy_j"), ("gpu_net_energy_j", "net_j")):
        found = result.metrics[metric]
        assert found.value == pytest.approx(whole[budget] - times * before[budget])
        assert found.u_standard is not None
        u_name = {"energy_j": "u_within_j", "net_j": "u_net_j"}[budget]
        assert found.u_standard == pytest.approx(np.hypot(whole[u_name], times * before[u_name]))
        assert found.u_absolute is not None
        assert found.u_absolute > found.u_standard
    each = result.metrics["gpu_energy_per_sample_j"].value
    assert each == pytest.approx(result.metrics["gpu_energy_j"].value / (2 * whole["iterations"]))
    assert "less that of the window before" in str(result.metrics["gpu_energy_j"].method)
    for quantity in result.metrics.values():
        assert len(set(quantity.reasons)) == len(quantity.reasons)


def test_a_level_shift_of_a_replayed_graph_is_labelled_and_doubted(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", ",".join(["900"] * 62 + ["600"] * 60))  # 2 of them warm up
    result = recorded_graph(simulated, iterations=100)
    assert result.labels["steady"] in ("warmup", "no_steady_state")
    assert "not_steady" in codes(result)


def test_a_host_that_launches_as_slowly_as_the_gpu_works_raises_a_caution(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_LAUNCH_US", "95")
    assert "host_bound" in codes(recorded_graph(simulated))
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_LAUNCH_US", "5")
    assert "host_bound" not in codes(recorded_graph(simulated))


@pytest.mark.usefixtures("replayed")
def test_a_run_carries_the_profile_of_its_board_or_says_that_it_is_assumed() -> None:
    known = {UUID: replace(ASSUMED, uuid=UUID, origin="measured", steps=60)}
    case = NOOP.with_factors(iterations=5, idle_window_s=0.0)
    measured_run = record(case, lambda: rest(20), Amounts(samples=1), UUID, sensors=known)
    assert measured_run.measuring["gpu"]["sensor"] == known[UUID].as_json()
    assert "sensor_assumed" not in codes(measured_run)
    other_board = record(case, lambda: rest(20), Amounts(samples=1), UUID, sensors={"GPU-2": known[UUID]})
    assert other_board.measuring["gpu"]["sensor"]["origin"] == "assumed"
    assert "sensor_assumed" in codes(other_board)


@pytest.mark.usefixtures("replayed")
def test_parts_have_joules_of_their_own_windows_on_a_sampled_board() -> None:
    case = Case(workload="generate", iterations=3, energy_window_s=0.3, idle_window_s=0.2, warmup_iterations=0)
    with Recorder(case, UUID) as recorder:
        recorder.warm_up(lambda: rest(5))
        recorder.measure_part("prefill", lambda: rest(5), Amounts(input_tokens=10))
        recorder.measure_part("decode", lambda: rest(10), Amounts(output_tokens=4))
        recorder.time(lambda: rest(15))
        recorder.replay_for_energy(lambda: rest(15))
    result = recorder.result(Amounts(samples=2))
    assert result.energy_budget is not None
    budgets = {budget["window"]: budget for budget in result.energy_budget["windows"]}
    assert list(budgets) == ["energy", "prefill", "decode"]  # the run's energy first
    for kind, window, each in (("input", "prefill", 10), ("output", "decode", 4)):
        metric, budget = result.metrics[f"gpu_energy_per_{kind}_token_j"], budgets[window]
        assert metric.window == window
        assert metric.value == pytest.approx(budget["energy_j"] / (each * budget["iterations"]))
        assert result.metrics[f"gpu_net_energy_per_{kind}_token_j"].window == window
    assert result.metrics["gpu_energy_j"].value == budgets["energy"]["energy_j"]
    assert result.metrics["gpu_energy_per_sample_j"].window == "energy"


def test_the_energy_of_a_run_is_valid_only_if_that_of_each_part_is() -> None:
    right, wrong, unknown = Validity(True), Validity(False, reasons_of("gap")), Validity(None, reasons_of("not_asked"))
    assert weakest([right, right]) == right
    assert weakest([right, unknown]) == unknown
    both = Validity(False, reasons_of("gap", "counter_reset"))
    assert weakest([unknown, wrong, both]) == both
