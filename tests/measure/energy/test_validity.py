# SPDX-License-Identifier: Apache-2.0
"""Every reason for doubt about a window's energy, each provoked, and none without its cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.energy.integration import WindowEnergies, integrate
from pybench.measure.energy.profile import ASSUMED, SensorProfile
from pybench.measure.energy.trace import CounterChannel, PolledChannel, SampleChannel, StateChannel, Trace
from tests.measure.recordings import H200, recording
from tests.oracles.simulated_board import bursts, to_ns

BEGIN_S, END_S = 2.013, 3.013
CLEAN = bursts(np.array([BEGIN_S]), np.array([END_S]), np.array([600.0])).trace(
    5.0, H200, np.random.default_rng(1), noise_w=1.0
)


def judge(
    trace: Trace,
    begin_s: float = BEGIN_S,
    end_s: float = END_S,
    profile: SensorProfile = H200,
    method: str = "fused",
) -> WindowEnergies:
    return integrate(trace, to_ns(np.array([begin_s])), to_ns(np.array([end_s])), profile, method)


def codes(energies: WindowEnergies) -> list[str]:
    return [reason.code for reason in energies.reasons[0]]


def without_samples(begin_s: float, end_s: float) -> Trace:
    time_s = CLEAN.samples.time_ns * 1e-9
    kept = (time_s < begin_s) | (time_s > end_s)
    return replace(CLEAN, samples=SampleChannel(CLEAN.samples.time_ns[kept], CLEAN.samples.power_w[kept]))


def with_counter(change: Callable[[CounterChannel], np.ndarray]) -> Trace:
    counter = CLEAN.counter
    return replace(CLEAN, counter=CounterChannel(counter.call_ns, counter.return_ns, change(counter)))


def reset_at(second: float) -> Trace:
    return with_counter(
        lambda counter: np.where(
            counter.call_ns < second * 1e9,
            counter.energy_j,
            counter.energy_j - counter.energy_j[np.searchsorted(counter.call_ns, second * 1e9)],
        )
    )


def with_states(throttle_reasons: float, process_count: float) -> Trace:
    times_ns = np.arange(0, 5_000_000_000, 50_000_000)
    inside = (times_ns > 2_400_000_000) & (times_ns < 2_600_000_000)
    return replace(
        CLEAN,
        states=StateChannel(times_ns, np.where(inside, throttle_reasons, 0.0), np.where(inside, process_count, 1.0)),
    )


def test_a_clean_window_is_valid_without_any_reason() -> None:
    energies = judge(CLEAN)
    assert (codes(energies), bool(energies.valid[0])) == ([], True)
    assert energies.energy_j[0] == pytest.approx(600, rel=2e-3)
    assert set(energies.parts) == {
        "sampling", "edges", "sensor_delay", "sensor_response", "counter_delay", "board_state", "drift"
    }  # fmt: skip
    squares = sum(float(part[0]) ** 2 for part in energies.parts.values())
    assert energies.u_within_j[0] == pytest.approx(squares**0.5)
    assert energies.u_absolute_j[0] == pytest.approx(np.hypot(squares**0.5, 600 * 0.05 / 3**0.5), rel=1e-3)


@pytest.mark.parametrize("length_s", [0.001, 0.002, 0.004])
def test_a_window_that_hardly_a_sample_saw_is_too_short(length_s: float) -> None:
    # Otherwise its energy would be that of the rest before it, and pass for sure.
    for begin_s in np.linspace(2.013, 2.1, 12):
        board = bursts(np.array([begin_s]), np.array([begin_s + length_s]), np.array([600.0]))
        trace = board.trace(4.0, H200, np.random.default_rng(2))
        energies = judge(trace, float(begin_s), float(begin_s) + length_s)
        assert not energies.valid[0]
        assert "window_too_short" in codes(energies)
        error_j = energies.energy_j[0] - 600 * length_s
        assert abs(error_j) < 3 * energies.u_within_j[0]


def test_the_reason_of_a_short_window_says_what_length_is_needed() -> None:
    energies = judge(CLEAN, BEGIN_S, BEGIN_S + 0.03, ASSUMED)
    assert str(energies.reasons[0][0]).startswith(
        "window_too_short: 0.03 s, and 5 % standard uncertainty need about 0."
    )


def test_missing_samples_are_a_gap_and_others_are_not() -> None:
    energies = judge(without_samples(2.4, 2.6))
    assert (codes(energies), bool(energies.valid[0])) == (["gap"], False)
    assert energies.parts["sampling"][0] > judge(CLEAN).parts["sampling"][0]
    blind = judge(replace(without_samples(2.4, 2.6), counter=Trace().counter))
    assert blind.parts["sampling"][0] > 20  # 0.2 s, 480 W between rest and load, and no counter to bridge them
    assert codes(judge(without_samples(2.4, 2.45))) == []
    assert codes(judge(without_samples(1.2, 1.6))) == []
    assert "gap" in codes(judge(without_samples(BEGIN_S - 0.1, BEGIN_S + 0.1)))


def test_samples_that_are_far_apart_throughout_are_no_gap_of_a_sensor_that_is_only_assumed() -> None:
    time_s = np.arange(0.03, 5.0, 0.1)
    board = bursts(np.array([BEGIN_S]), np.array([END_S]), np.array([600.0]))
    power_w = board.sensed_w(time_s - H200.sample_delay_s, H200.response_s)
    slow = replace(CLEAN, samples=SampleChannel(to_ns(time_s), power_w))
    energies = judge(slow, profile=ASSUMED)
    assert (codes(energies), bool(energies.valid[0])) == (["sensor_assumed"], True)
    assert abs(energies.energy_j[0] - 600) < 2 * energies.u_within_j[0]
    holed = SampleChannel(*(np.delete(each, range(22, 28)) for each in (slow.samples.time_ns, slow.samples.power_w)))
    assert "gap" in codes(judge(replace(slow, samples=holed), profile=ASSUMED))
    assert "gap" in codes(judge(slow, profile=H200))  # a board that was measured is known to sample every 20 ms


def test_a_counter_ten_percent_off_is_a_disagreement_and_one_half_a_percent_off_is_not() -> None:
    energies = judge(with_counter(lambda counter: counter.energy_j * 1.1))
    assert codes(energies) == ["channels_disagree"]
    assert not energies.valid[0]
    assert "samples say 60" in str(energies.reasons[0][0])
    assert codes(judge(with_counter(lambda counter: counter.energy_j * 1.005))) == []


def test_a_counter_that_is_stuck_is_said_and_never_passed_over() -> None:
    stuck = with_counter(lambda counter: np.full(len(counter.energy_j), 1234.0))
    energies = judge(stuck)
    assert not energies.valid[0]
    assert "counter_stuck" in codes(energies)
    assert "counter_stuck" in codes(judge(stuck, method="counter-difference"))


def test_a_counter_reset_counts_inside_the_window_only() -> None:
    inside = judge(reset_at(2.5))
    assert (codes(inside), bool(inside.valid[0])) == (["counter_reset"], False)
    assert inside.energy_j[0] == pytest.approx(600, rel=0.01)  # of the samples
    for second in (1.0, 4.0):
        outside = judge(reset_at(second))
        assert (codes(outside), bool(outside.valid[0])) == ([], True)
        assert outside.energy_j[0] == pytest.approx(600, rel=2e-3)


@pytest.mark.parametrize("method", ["counter-difference", "counter-interpolated"])
def test_a_plain_difference_over_a_reset_is_not_valid_either(method: str) -> None:
    energies = judge(reset_at(2.5), method=method)
    assert "counter_reset" in codes(energies)
    assert not energies.valid[0]


@pytest.mark.parametrize(
    ("begin_s", "end_s"), [(-3.0, -1.0), (6.0, 7.0), (4.5, 5.6), (-0.9, 1.0)], ids=["before", "after", "end", "begin"]
)
def test_a_window_beyond_the_record_is_not_covered_and_has_no_energy(begin_s: float, end_s: float) -> None:
    for method in ("fused", "samples-trapezoid", "counter-interpolated", "counter-difference"):
        energies = judge(CLEAN, begin_s, end_s, method=method)
        assert "not_covered" in codes(energies)
        assert np.isnan(energies.energy_j[0])
        assert not energies.valid[0]


def test_samples_that_end_just_before_the_window_widen_its_interval() -> None:
    time_s = CLEAN.samples.time_ns * 1e-9
    kept = time_s < END_S - 0.06
    early = replace(CLEAN, samples=SampleChannel(CLEAN.samples.time_ns[kept], CLEAN.samples.power_w[kept]))
    energies = judge(early)
    assert energies.u_within_j[0] > 10  # 0.06 s that could have been at rest, 480 W lower
    assert abs(energies.energy_j[0] - 600) < 2 * energies.u_within_j[0]


def test_without_a_counter_the_samples_are_used_and_the_price_is_in_the_uncertainty() -> None:
    energies = judge(replace(CLEAN, counter=Trace().counter))
    assert (codes(energies), bool(energies.valid[0])) == (["counter_unreadable"], True)
    assert energies.energy_j[0] == pytest.approx(600, rel=3e-3)
    assert energies.parts["sampling"][0] > 2 * judge(CLEAN).parts["sampling"][0]
    failed = with_counter(lambda counter: np.full(len(counter.energy_j), np.nan))
    assert judge(failed).energy_j[0] == energies.energy_j[0]


def test_without_samples_the_counter_is_used_and_the_price_is_in_the_uncertainty() -> None:
    energies = judge(replace(CLEAN, samples=Trace().samples))
    assert "samples_unreadable" in codes(energies)
    assert abs(energies.energy_j[0] - 600) < 2 * energies.u_within_j[0]
    assert energies.u_within_j[0] > judge(CLEAN).u_within_j[0]


@pytest.mark.parametrize("phase_s", np.linspace(0.001, 0.099, 9).tolist())
def test_without_samples_a_counter_that_is_read_at_the_edges_is_enough_for_a_long_window(phase_s: float) -> None:
    begin_s, end_s = 2.0, 4.0
    board = bursts(np.array([1.5, begin_s]), np.array([1.8, end_s]), np.array([600.0, 600.0]))
    dense = board.trace(6.0, H200, np.random.default_rng(1), tick_phase_s=phase_s, read_every_s=0.004).counter
    # As a session reads it: the ticks at its begin and end, and both edges of rest, window and rest.
    kept = (dense.call_ns < 0.45e9) | (dense.call_ns > 5.5e9)
    for first_s, last_s in ((0.7, 1.4), (begin_s, end_s), (4.3, 5.3)):
        kept[np.searchsorted(dense.return_ns, first_s * 1e9, "right") - 1] = True
        kept[np.searchsorted(dense.call_ns, last_s * 1e9)] = True
    trace = Trace(counter=CounterChannel(dense.call_ns[kept], dense.return_ns[kept], dense.energy_j[kept]))
    energies = judge(trace, begin_s, end_s)
    assert (codes(energies), bool(energies.valid[0])) == (["samples_unreadable"], True)
    assert abs(energies.energy_j[0] - 1200) < 2 * energies.u_within_j[0] < 80
    assert energies.parts["counter_edges"][0] > 0.9 * energies.u_within_j[0]
    after = judge(trace, end_s, end_s + 0.3)  # what was read last before it was at load
    assert abs(after.energy_j[0] - 36) < 2 * after.u_within_j[0]


def test_with_neither_there_is_no_energy() -> None:
    energies = judge(Trace())
    assert codes(energies) == ["power_unreadable"]
    assert np.isnan(energies.energy_j[0])
    assert not energies.valid[0]


def polled(power_w: float) -> PolledChannel:
    times_ns = np.arange(0, 5_000_000_000, 10_000_000)
    loaded = (times_ns > 2_100_000_000) & (times_ns < 3_100_000_000)
    instant_w = np.where(loaded, power_w, 120.0)
    return PolledChannel(times_ns, instant_w, np.full(len(times_ns), np.nan))


def test_an_instantaneous_field_that_says_something_else_makes_the_energy_invalid() -> None:
    assert codes(judge(replace(CLEAN, polled=polled(600.0)))) == []
    energies = judge(replace(CLEAN, polled=polled(1000.0)))
    assert (codes(energies), bool(energies.valid[0])) == (["instant_disagrees"], False)


@pytest.mark.parametrize("bit", [0x04, 0x08, 0x20, 0x40, 0x80])
def test_lowered_clocks_are_said_and_are_no_error_of_the_energy(bit: int) -> None:
    energies = judge(with_states(bit, 1))
    assert (codes(energies), bool(energies.valid[0])) == (["throttled"], True)
    assert codes(judge(with_states(bit, 1), 1.0, 1.9)) == []


@pytest.mark.parametrize("bit", [0x01, 0x02, 0x10, 0x100])
def test_idle_and_requested_clocks_are_not_throttling(bit: int) -> None:
    assert codes(judge(with_states(bit, 1))) == []


def test_another_process_on_the_board_makes_the_energy_invalid() -> None:
    energies = judge(with_states(0, 2))
    assert (codes(energies), bool(energies.valid[0])) == (["foreign_process"], False)
    assert judge(with_states(0, 2), 1.0, 1.9).valid[0]
    assert judge(with_states(0, float("nan"))).valid[0]  # a board that does not tell


def test_an_assumed_sensor_is_named_with_every_window() -> None:
    energies = judge(CLEAN, profile=ASSUMED)
    assert (codes(energies), bool(energies.valid[0])) == (["sensor_assumed"], True)


@pytest.mark.parametrize("missing", [("counter_tick_s", "counter_delay_s"), ("response_s",)])
def test_a_number_that_was_not_measured_is_named_with_every_window(missing: tuple[str, ...]) -> None:
    energies = judge(CLEAN, profile=replace(H200, missing=missing))
    assert energies.reasons[0] == (
        Reason(ReasonCode.SENSOR_ASSUMED, f"`pybench sensor` could not measure {', '.join(missing)}"),
    )


def test_power_that_drifts_through_a_window_is_said_and_widens_its_interval() -> None:
    recorded = recording("h200-windows")
    samples = recorded.trace.samples
    time_s = samples.time_ns * 1e-9
    sloped = replace(
        recorded.trace,
        samples=SampleChannel(samples.time_ns, np.interp(time_s, [0, 1e3], [300, 300 + 1e5])),
        counter=Trace().counter,
        polled=Trace().polled,
    )
    energies = judge(sloped, 5.0, 6.0)
    assert "drifting" in codes(energies)
    assert energies.valid[0]
    # 100 W from one end to the other: rectangular.
    assert energies.parts["drift"][0] == pytest.approx(100 / 12**0.5, rel=0.02)
