# SPDX-License-Identifier: Apache-2.0
"""What a session says of its board: gross, net, tail and idle, and a budget that adds up."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt

import numpy as np
import pytest

from pybench.catalogue.metrics import METRICS
from pybench.catalogue.sensors import PLAIN_METHODS
from pybench.measure.energy.gpu import BoardEnergy, board_energy
from pybench.measure.energy.profile import ASSUMED
from pybench.measure.energy.trace import StateChannel, Trace
from pybench.measure.quantity import Quantity
from pybench.measure.timing.windows import Window
from tests.measure.recordings import H200
from tests.oracles.simulated_board import SimulatedBoard

SECOND = 1_000_000_000
WINDOW = Window("energy", 3 * SECOND, 5 * SECOND, 10)
BEFORE = Window("idle_before", SECOND, round(2.5 * SECOND), 0)
AFTER = Window("idle_after", round(5.5 * SECOND), 7 * SECOND, 0)


def trace_of(changes: dict[float, float], seed: int = 1) -> Trace:
    board = SimulatedBoard(np.array(list(changes)), np.array(list(changes.values())))
    return board.trace(8.0, H200, np.random.default_rng(seed))


LOADED = trace_of({0: 100.0, 3: 600.0, 5: 160.0, 5.2: 100.0})  # memory and clocks settle for 0.2 s


def named(result: BoardEnergy, name: str) -> Quantity:
    return result.quantities[name]


def test_gross_net_tail_and_idle_of_a_load_between_two_rests() -> None:
    result = board_energy(LOADED, WINDOW, BEFORE, AFTER, H200, 0)
    assert set(result.quantities) == {
        "gpu_energy_j", "gpu_net_energy_j", "gpu_tail_energy_j", "gpu_idle_power_before_w", "gpu_idle_power_after_w"
    }  # fmt: skip
    assert named(result, "gpu_energy_j").value == pytest.approx(1200, rel=1e-3)
    assert named(result, "gpu_net_energy_j").value == pytest.approx(1000, rel=2e-3)
    assert named(result, "gpu_tail_energy_j").value == pytest.approx(12, abs=1.5)  # 60 W for 0.2 s
    assert named(result, "gpu_idle_power_before_w").value == pytest.approx(100, rel=2e-3)
    for name, quantity in result.quantities.items():
        assert METRICS[name].unit in ("J", "W")
        assert quantity.u_standard is not None
        assert quantity.u_standard > 0
        assert quantity.valid is True


def test_the_uncertainty_of_net_energy_holds_both_its_terms_and_of_the_gain_only_its_share() -> None:
    result = board_energy(LOADED, WINDOW, BEFORE, AFTER, H200, 0)
    gross, net = named(result, "gpu_energy_j"), named(result, "gpu_net_energy_j")
    before, after = named(result, "gpu_idle_power_before_w"), named(result, "gpu_idle_power_after_w")
    assert None not in (
        gross.u_standard,
        gross.u_absolute,
        before.u_standard,
        after.u_standard,
        before.value,
        after.value,
    )
    apart_w = before.value - after.value  # type: ignore[operator]
    idle_w = sqrt((before.u_standard**2 + after.u_standard**2) / 4 + apart_w**2 / 12)  # type: ignore[operator]
    assert net.u_standard == pytest.approx(hypot(gross.u_standard, 2 * idle_w), rel=1e-6)  # type: ignore[arg-type]
    gain_j = 0.05 / sqrt(3) * net.value  # type: ignore[operator]
    assert net.u_absolute == pytest.approx(hypot(net.u_standard, gain_j), rel=1e-3)  # type: ignore[arg-type]


def test_the_budget_adds_up_to_the_number_it_explains() -> None:
    result = board_energy(LOADED, WINDOW, BEFORE, AFTER, H200, origin_ns=SECOND)
    budget, gross = result.budget, named(result, "gpu_energy_j")
    assert budget["energy_j"] == gross.value
    assert sqrt(sum(part**2 for part in budget["parts_j"].values())) == pytest.approx(gross.u_standard)
    assert (budget["begin_s"], budget["end_s"]) == (pytest.approx(2.0), pytest.approx(4.0))
    assert budget["net_j"] == named(result, "gpu_net_energy_j").value
    assert budget["tail_end_s"] == pytest.approx(4.5)
    assert set(budget["plain_j"]) == set(PLAIN_METHODS)
    assert budget["plain_j"]["average-trapezoid"] is None  # was not recorded


def test_without_rest_there_is_no_net_energy_and_it_is_not_gross() -> None:
    result = board_energy(LOADED, WINDOW, None, None, H200, 0)
    assert list(result.quantities) == ["gpu_energy_j"]
    assert result.budget["idle_before_w"] is None
    assert "net_j" not in result.budget
    one = board_energy(LOADED, WINDOW, BEFORE, None, H200, 0)
    assert list(one.quantities) == ["gpu_energy_j", "gpu_idle_power_before_w"]


def test_a_window_that_another_one_follows_has_no_tail() -> None:
    result = board_energy(LOADED, WINDOW, BEFORE, AFTER, H200, 0, followed_by="timing_depth1")
    tail = named(result, "gpu_tail_energy_j")
    assert (tail.value, [str(reason) for reason in tail.reasons]) == (
        None,
        ["no_tail: the window timing_depth1 follows"],
    )
    assert (result.budget["tail_j"], result.budget["tail_end_s"]) == (None, None)
    assert named(result, "gpu_net_energy_j") == named(
        board_energy(LOADED, WINDOW, BEFORE, AFTER, H200, 0), "gpu_net_energy_j"
    )


def test_steady_rest_has_no_drift_and_a_warmer_one_has() -> None:
    steady = named(board_energy(LOADED, WINDOW, BEFORE, AFTER, H200, 0), "gpu_net_energy_j")
    assert steady.reasons == ()
    warmer = trace_of({0: 100.0, 3: 600.0, 5: 112.0})
    net = named(board_energy(warmer, WINDOW, BEFORE, AFTER, H200, 0), "gpu_net_energy_j")
    assert [reason.code for reason in net.reasons] == ["idle_drift"]
    assert net.value == pytest.approx(1200 - 212, rel=3e-3)
    assert net.u_standard is not None
    assert steady.u_standard is not None
    assert net.u_standard > steady.u_standard


@pytest.mark.parametrize(("begin_s", "end_s"), [(1.2, 1.8), (5.9, 6.5)], ids=["before", "after"])
def test_another_process_in_an_idle_window_invalidates_what_subtracts_it(begin_s: float, end_s: float) -> None:
    times_s = np.arange(0, 8, 0.1)
    company = np.where((times_s > begin_s) & (times_s < end_s), 2.0, 1.0)
    states = StateChannel((times_s * SECOND).astype(np.int64), np.zeros_like(times_s), company)
    result = board_energy(replace(LOADED, states=states), WINDOW, BEFORE, AFTER, H200, 0)
    name = "gpu_idle_power_before_w" if begin_s < 3 else "gpu_idle_power_after_w"
    doubtful = {name, "gpu_net_energy_j"} | ({"gpu_tail_energy_j"} if begin_s > 5 else set())
    for found, quantity in result.quantities.items():
        assert quantity.valid is (found not in doubtful), found
        assert [reason.code for reason in quantity.reasons] == (["foreign_process"] if found in doubtful else []), found
    (why,) = named(result, "gpu_net_energy_j").reasons
    assert why.detail == "idle window: another process held the GPU during the window"


def test_a_reason_of_window_and_rest_is_told_once() -> None:
    net = named(board_energy(LOADED, WINDOW, BEFORE, AFTER, ASSUMED, 0), "gpu_net_energy_j")
    assert [reason.code for reason in net.reasons].count("sensor_assumed") == 1
    assert "idle window" not in net.reasons[-1].detail


def test_work_that_draws_less_than_rest_has_negative_net_energy() -> None:
    result = board_energy(trace_of({0: 100.0, 3: 90.0, 5: 100.0}), WINDOW, BEFORE, AFTER, H200, 0)
    assert named(result, "gpu_net_energy_j").value == pytest.approx(-20, abs=1)


def test_a_tail_without_time_is_null_with_the_reason() -> None:
    touching = replace(AFTER, begin_ns=WINDOW.end_ns)
    tail = named(board_energy(LOADED, WINDOW, BEFORE, touching, H200, 0), "gpu_tail_energy_j")
    assert (tail.value, tail.valid) == (None, None)
    assert str(tail.reasons[0]).startswith("no_tail")


def test_a_window_that_was_not_recorded_is_null_throughout() -> None:
    late = Window("energy", 20 * SECOND, 22 * SECOND, 10)
    result = board_energy(LOADED, late, BEFORE, AFTER, H200, 0)
    for name in ("gpu_energy_j", "gpu_net_energy_j"):
        quantity = named(result, name)
        assert (quantity.value, quantity.u_standard, quantity.valid) == (None, None, None)
        assert str(quantity.reasons[0]).startswith("not_covered")
    assert result.budget["energy_j"] is None


def test_a_board_that_tells_nothing_is_null_with_a_reason() -> None:
    result = board_energy(Trace(), WINDOW, BEFORE, AFTER, H200, 0)
    energy = result.quantities["gpu_energy_j"]
    assert (energy.value, energy.valid) == (None, None)
    assert str(energy.reasons[0]).startswith("power_unreadable")
