# SPDX-License-Identifier: Apache-2.0
"""The fused method on two recordings of an H200, against joules an iteration from the counter.

The constants of `measure.energy.integration` and the profile were set looking at the whole of both recordings. So these
figures show that the method holds what it promises, not how it does on another board; bench/energy has live ones. Each
assertion is made for every other window, too, so that none hangs on a few of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench.catalogue.sensors import ENERGY_METHODS, PLAIN_METHODS
from pybench.measure.energy.profile import ASSUMED, SensorProfile
from tests.measure.recordings import CAPPED, H200, NAMES, judged, recording

Numbers = NDArray[np.float64]
HALVES = {"all": slice(None), "first half": slice(0, None, 2), "second half": slice(1, None, 2)}


def energies_j(method: str, profile: SensorProfile = H200) -> Numbers:
    return np.concatenate([recording(name).integrate(method, profile).energy_j for name in NAMES])


def uncertainties_j(profile: SensorProfile = H200) -> Numbers:
    return np.concatenate([recording(name).integrate("fused", profile).u_within_j for name in NAMES])


def stable_windows(length_s: float, half: str = "all") -> NDArray[np.intp]:
    return np.flatnonzero((judged().kernel != CAPPED) & (judged().nominal_s == length_s))[HALVES[half]]


def median_error(energy_j: Numbers, reference_j: Numbers, chosen: NDArray[np.intp]) -> float:
    return float(np.median(np.abs(energy_j[chosen] / reference_j[chosen] - 1)))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(("length_s", "most"), [(0.2, 0.02), (0.5, 0.015), (1.0, 0.015), (2.0, 0.01), (5.0, 0.01)])
def test_energy_is_proportional_to_work(length_s: float, most: float, half: str) -> None:
    chosen = stable_windows(length_s, half)
    assert len(chosen) >= 6
    assert median_error(energies_j("fused"), judged().reference_j, chosen) <= most
    assert median_error(energies_j("fused"), judged().interpolated_j, chosen) <= most


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(
    ("length_s", "most"), [(0.1, 0.015), (0.2, 0.01), (0.5, 0.01), (1.0, 0.01), (2.0, 0.006), (5.0, 0.006)]
)
def test_with_the_loads_own_settling_taken_off_it_is_proportional_to_better_than_one_percent(
    length_s: float, most: float, half: str
) -> None:
    assert median_error(energies_j("fused"), judged().settled_j, stable_windows(length_s, half)) <= most


@pytest.mark.parametrize("length_s", [0.2, 0.5, 1.0, 2.0])
def test_short_windows_read_neither_low_nor_high_on_the_whole(length_s: float) -> None:
    # The settling itself is known to a few tenths of a percent from two or six long windows a kernel.
    chosen = stable_windows(length_s)
    assert abs(np.mean(energies_j("fused")[chosen] / judged().settled_j[chosen] - 1)) < 0.006


@pytest.mark.parametrize("length_s", [0.1, 0.2, 0.5, 1.0, 2.0, 5.0])
def test_it_beats_every_plain_method(length_s: float) -> None:
    chosen = stable_windows(length_s)
    fused = median_error(energies_j("fused"), judged().reference_j, chosen)
    for method in PLAIN_METHODS:
        assert fused < median_error(energies_j(method), judged().reference_j, chosen), method


def test_the_errors_of_the_plain_methods_are_as_large_as_the_recordings_own_tables_say() -> None:
    half_second = stable_windows(0.5)
    found = {method: median_error(energies_j(method), judged().reference_j, half_second) for method in ENERGY_METHODS}
    assert 0.55 < found["average-trapezoid"] < 0.70
    assert 0.05 < found["instant-trapezoid"] < 0.16
    assert 0.02 < found["counter-difference"] < 0.15
    assert 0.02 < found["samples-trapezoid"] < 0.05


def test_nine_of_ten_intervals_cover_and_none_is_wide() -> None:
    chosen = np.flatnonzero((judged().kernel != CAPPED) & (judged().nominal_s >= 0.2))
    energy_j, u_j = energies_j("fused"), uncertainties_j()
    for reference_j in (judged().reference_j, judged().interpolated_j):
        assert np.mean(np.abs(energy_j - reference_j)[chosen] < 1.96 * u_j[chosen]) >= 0.9
    half_second = stable_windows(0.5)
    assert np.median(1.96 * u_j[half_second] / energy_j[half_second]) <= 0.03


def test_a_kernel_at_the_power_cap_says_that_its_power_drifts_and_its_interval_covers() -> None:
    recorded, judgement = recording("h200-kernels"), judged()
    energies = recorded.integrate()
    capped = (recorded.kernel == CAPPED) & (recorded.nominal_s >= 0.2)
    reference_j = judgement.reference_j[len(judgement.kernel) - len(capped) :]
    covered = np.abs(energies.energy_j - reference_j)[capped] < 1.96 * energies.u_within_j[capped]
    assert np.mean(covered) >= 0.85
    drifting = [any(str(reason).startswith("drifting") for reason in why) for why in energies.reasons]
    throttled = [any(str(reason).startswith("throttled") for reason in why) for why in energies.reasons]
    short = capped & (recorded.nominal_s <= 1)
    assert np.mean(np.array(drifting)[short]) >= 0.6
    assert np.mean(np.array(throttled)[capped]) >= 0.7
    stable = (recorded.kernel != CAPPED) & (recorded.nominal_s >= 0.2)
    assert not np.any(np.array(throttled)[stable])


def test_a_sensor_that_is_only_assumed_covers_as_well_with_wider_intervals() -> None:
    chosen = np.flatnonzero((judged().kernel != CAPPED) & (judged().nominal_s >= 0.2))
    energy_j, u_j = energies_j("fused", ASSUMED), uncertainties_j(ASSUMED)
    assert np.mean(np.abs(energy_j - judged().reference_j)[chosen] < 1.96 * u_j[chosen]) >= 0.9
    for length_s in (0.2, 0.5):
        some = stable_windows(length_s)
        assert np.median(u_j[some]) > np.median(uncertainties_j()[some])
    assert median_error(energy_j, judged().reference_j, stable_windows(0.5)) <= 0.02


def test_nearly_every_recorded_window_is_valid() -> None:
    for name in NAMES:
        recorded = recording(name)
        assert np.all(recorded.integrate().valid[recorded.nominal_s >= 0.2])
