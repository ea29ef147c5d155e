# SPDX-License-Identifier: Apache-2.0
"""The fused integrator against its slow twin, cases worked by hand, and boards whose energy is known exactly."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pybench import _native
from pybench.catalogue.sensors import ENERGY_METHODS
from pybench.errors import UsageError
from pybench.measure.energy.integration import WindowEnergies, integrate
from pybench.measure.energy.profile import ASSUMED
from pybench.measure.energy.trace import CounterChannel, SampleChannel, Trace
from tests.measure.recordings import H200
from tests.oracles.simulated_board import SimulatedBoard, bursts, to_ns
from tests.oracles.window_energy import Model, Step, window_energy

Table = dict[str, NDArray[Any]]
MODEL = Model(0.0036, 0.0128, 0.0015, 3.0, 0.03, 0.003, 0.08)
EXACT = replace(H200, u_sample_delay_s=0.0, u_response_s=0.0, u_counter_delay_s=0.0, state_ratio=0.0)


def native(times_s: Any, sensed_w: Any, steps: list[Step], begin_s: Any, end_s: Any, model: Model = MODEL) -> Table:
    columns = [
        np.array([getattr(step, name) for step in steps], kind)
        for name, kind in (("time_s", float), ("u_time_s", float), ("energy_j", float), ("segment", np.int64))
    ]
    edges = (np.atleast_1d(np.asarray(each, float)) for each in (begin_s, end_s))
    table: Table = _native.integrate_energy(
        np.asarray(times_s, float), np.asarray(sensed_w, float), *columns, _native.SensorModel(**asdict(model)), *edges
    )
    return table


def random_channels(seed: int, resets: int = 0) -> tuple[list[float], list[float], list[Step]]:
    """Samples of anything, and a counter that agrees with it in no way: the twin has to follow all the same."""
    generator = np.random.default_rng(seed)
    times_s = np.cumsum(generator.uniform(0.007, 0.047, 160))
    sensed_w = np.repeat(generator.uniform(100, 700, 16), 10) + generator.normal(0, 3, 160)
    ticks_s = np.arange(times_s[12], times_s[-9], 0.1) + generator.normal(
        0, 0.0005, len(np.arange(times_s[12], times_s[-9], 0.1))
    )
    energy_j = np.cumsum(generator.uniform(10, 70, len(ticks_s)))
    segment = np.searchsorted(np.sort(generator.uniform(1, 3, resets)), ticks_s)
    steps = [
        Step(float(time_s), float(u_s), float(value_j), int(part))
        for time_s, u_s, value_j, part in zip(
            ticks_s, generator.uniform(0.0003, 0.02, len(ticks_s)), energy_j, segment, strict=True
        )
    ]
    return times_s.tolist(), sensed_w.tolist(), steps


@pytest.mark.parametrize("seed", range(8))
def test_energy_and_variance_of_random_windows_are_those_of_dense_gaussian_algebra(seed: int) -> None:
    times_s, sensed_w, steps = random_channels(seed)
    generator = np.random.default_rng(100 + seed)
    begin_s = generator.uniform(times_s[3], times_s[-12], 40)
    end_s = np.minimum(begin_s + 0.15 + generator.exponential(0.6, 40), times_s[-2])
    fast = native(times_s, sensed_w, steps, begin_s, end_s)
    slow = [window_energy(times_s, sensed_w, steps, MODEL, *edges) for edges in zip(begin_s, end_s, strict=True)]
    assert fast["energy_j"] == pytest.approx([energy_j for energy_j, _ in slow], rel=1e-9)
    assert fast["fused_variance_j2"] == pytest.approx([variance_j2 for _, variance_j2 in slow], rel=1e-9)


@pytest.mark.parametrize(
    "place",
    ["before the first step", "across the first step", "after the last step", "one bridge", "neighbouring bridges"],
)
def test_windows_at_any_place_among_the_steps_are_those_of_dense_gaussian_algebra(place: str) -> None:
    times_s, sensed_w, _ = random_channels(21)
    rare = [Step(1.0, 0.001, 300.0, 0), Step(2.0, 0.001, 800.0, 0), Step(2.9, 0.002, 1300.0, 0)]
    begin_s, end_s = {
        "before the first step": (0.35, 0.8),
        "across the first step": (0.35, 1.4),
        "after the last step": (3.1, 3.6),
        "one bridge": (1.2, 1.7),
        "neighbouring bridges": (1.2, 2.5),
    }[place]
    fast = native(times_s, sensed_w, rare, begin_s, end_s)
    energy_j, variance_j2 = window_energy(times_s, sensed_w, rare, MODEL, begin_s, end_s)
    assert fast["energy_j"][0] == pytest.approx(energy_j, rel=1e-9)
    assert fast["fused_variance_j2"][0] == pytest.approx(variance_j2, rel=1e-9)
    assert bool(fast["doubts"][0] & _native.DOUBT_NO_COUNTER) is (
        place in ("before the first step", "after the last step")
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_reset_parts_the_steps_and_only_windows_over_it_lose_the_counter(seed: int) -> None:
    times_s, sensed_w, steps = random_channels(40 + seed, resets=1)
    parts = [step.segment for step in steps]
    assert {0, 1} == set(parts)
    reset = parts.index(1)
    before_s, after_s = steps[reset - 1].time_s, steps[reset].time_s
    windows = [(before_s - 0.5, before_s - 0.1), (after_s + 0.06, after_s + 0.7), (before_s - 0.3, after_s + 0.3)]
    fast = native(times_s, sensed_w, steps, *zip(*windows, strict=True))
    for index, (begin_s, end_s) in enumerate(windows[:2]):
        energy_j, variance_j2 = window_energy(times_s, sensed_w, steps, MODEL, begin_s, end_s)
        assert fast["energy_j"][index] == pytest.approx(energy_j, rel=1e-9)
        assert fast["fused_variance_j2"][index] == pytest.approx(variance_j2, rel=1e-9)
    assert (fast["doubts"] & _native.DOUBT_COUNTER_RESET).tolist() == [0, 0, _native.DOUBT_COUNTER_RESET]
    without, _ = window_energy(times_s, sensed_w, [], MODEL, *windows[2])
    assert fast["energy_j"][2] == fast["samples_j"][2] == pytest.approx(without, rel=1e-9)


def test_edges_on_knots_and_on_steps_are_those_of_dense_gaussian_algebra() -> None:
    times_s, sensed_w, steps = random_channels(7)
    knots_s = np.array(times_s) - MODEL.delay_s
    on_knot = steps[10], float(knots_s[90])
    steps[10] = replace(on_knot[0], time_s=float(knots_s[np.searchsorted(knots_s, steps[10].time_s)]))
    for begin_s, end_s in ((knots_s[40], knots_s[90]), (steps[10].time_s, steps[20].time_s)):
        fast = native(times_s, sensed_w, steps, begin_s, end_s)
        energy_j, variance_j2 = window_energy(times_s, sensed_w, steps, MODEL, float(begin_s), float(end_s))
        assert fast["energy_j"][0] == pytest.approx(energy_j, rel=1e-9)
        assert fast["fused_variance_j2"][0] == pytest.approx(variance_j2, rel=1e-9)


def test_constant_power_by_hand() -> None:
    # 500 W sampled every 20 ms for 2 s, the counter steps by 50 J every 0.1 s: 0.7 s are 350 J whatever the lag.
    # With sample noise of 5 W one interval walks (5 W * 20 ms)^2 = 0.01 J^2.
    times_s = np.arange(100) * 0.02
    steps = [Step(0.1 * k, 0.0, 50.0 * k, 0) for k in range(1, 19)]
    table = native(times_s, np.full(100, 500.0), steps, 0.61, 1.31, replace(MODEL, delay_s=0.0, sample_noise_w=5.0))
    assert table["energy_j"][0] == pytest.approx(350.0, rel=1e-12)
    assert table["interior_variance_j2"][0] == pytest.approx(35 * 0.01, rel=1e-9)  # knots 0.60 to 1.30
    assert table["edge_variance_j2"][0] == pytest.approx(2 * (5.0 * 0.01) ** 2, rel=1e-6)  # 10 ms past either knot
    assert table["doubts"][0] == 0


def test_two_steps_by_hand() -> None:
    # Samples say 100 W throughout, the counter 21 J from 0.1 s to 0.3 s. One interval walks v = (2 W * 0.02 s)^2 =
    # 0.0016 J^2, the ten between the steps V = 0.016; a step's noise is n = 0.02^2 = 0.0004. The difference of the two
    # steps, 1 J more than the samples', is seen with 2n + V = 0.0168. Of that the walk between them gets V / (2n + V) =
    # 20/21. So the window 0.14..0.24 s, five of its ten intervals, gets half: 10 + 10/21 in joules.
    # Its variance: 5v - (5v)^2 / (2n + V) = 0.008 - 0.000064 / 0.0168 = 0.0041905 J^2.
    model = Model(0.0, 0.0128, 0.0, 2.0, 0.02, 0.0, 0.08)
    steps = [Step(0.1, 0.0, 5.0, 0), Step(0.3, 0.0, 26.0, 0)]
    table = native(np.arange(30) * 0.02, np.full(30, 100.0), steps, 0.14, 0.24, model)
    assert table["energy_j"][0] == pytest.approx(10 + 10 / 21, rel=1e-9)
    assert table["fused_variance_j2"][0] == pytest.approx(0.008 - 0.000064 / 0.0168, rel=1e-9)


def test_a_jump_at_an_edge_between_two_samples_by_hand() -> None:
    # No lag to speak of after 20 ms at a response of 2 ms. Power jumps from 100 W to 500 W at 0.11 s, half way between
    # the samples at 0.10 and 0.12 s. These read 100 W, and 500 - 400 exp(-10/2) = 497.3048 in watts. A trapezoid sees
    # 2.99 J up to 0.12 s; the board spent 500 W * 10 ms = 5 J, and 500 W on to 0.20 s: 45 J.
    reached_w = 500 - 400 * np.exp(-5)
    sensed_w = [100.0] * 6 + [reached_w] + [500 + (reached_w - 500) * np.exp(-10 * k) for k in range(1, 8)]
    model = replace(MODEL, delay_s=0.0, response_s=0.002)
    table = native(np.arange(14) * 0.02, sensed_w, [], 0.11, 0.20, model)
    assert table["energy_j"][0] == pytest.approx(45.0, rel=1e-9)


# Boards whose energy is known.


def simulated(
    length_s: float, count: int, seed: int, rest_s: float = 0.7
) -> tuple[SimulatedBoard, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Windows of one length at random phases, each at a power of its own, with rest between; their true energy."""
    generator = np.random.default_rng(seed)
    begin_s = 1 + np.arange(count) * (length_s + rest_s) + generator.uniform(0, 0.1, count)
    begin_ns, end_ns = to_ns(begin_s), to_ns(begin_s + length_s)
    board = bursts(begin_ns * 1e-9, end_ns * 1e-9, generator.uniform(200, 700, count))
    return board, begin_ns, end_ns, board.energy_j(begin_ns * 1e-9, end_ns * 1e-9)


@pytest.mark.parametrize("length_s", [0.1, 0.2, 0.5, 1.7])
def test_without_noise_samples_alone_give_the_exact_energy_at_every_phase(length_s: float) -> None:
    board, begin_ns, end_ns, true_j = simulated(length_s, 60, seed=3)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, EXACT, np.random.default_rng(4))
    energies = integrate(replace(trace, counter=Trace().counter), begin_ns, end_ns, EXACT)
    assert np.max(np.abs(energies.energy_j / true_j - 1)) < 1e-6


@pytest.mark.parametrize("length_s", [0.1, 0.2, 0.5, 1.7])
def test_without_noise_an_exact_counter_takes_nothing_away_at_any_phase(length_s: float) -> None:
    # The counter sees the jump at an edge that the samples' plain integral smears; what the edges put right must not be
    # "corrected" a second time. Steps are given as they are, because readings tell their time to 0.1 ms only.
    board, begin_ns, end_ns, true_j = simulated(length_s, 60, seed=5)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, EXACT, np.random.default_rng(6))
    samples = trace.samples
    ticks_s = np.arange(0.3, samples.time_ns[-1] * 1e-9 - 0.1, 0.1)
    counted_j = board.energy_j(np.zeros_like(ticks_s), ticks_s)
    steps = [Step(float(at_s), 0.0, float(value_j), 0) for at_s, value_j in zip(ticks_s, counted_j, strict=True)]
    edges_s = begin_ns * 1e-9, end_ns * 1e-9
    table = native(samples.time_ns * 1e-9, samples.power_w, steps, *edges_s, MODEL)
    assert np.max(np.abs(table["energy_j"] / true_j - 1)) < 1e-6


def test_without_noise_the_grid_of_the_counter_costs_less_than_a_thousandth() -> None:
    board, begin_ns, end_ns, true_j = simulated(0.2, 60, seed=7)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, EXACT, np.random.default_rng(8))
    energies = integrate(trace, begin_ns, end_ns, EXACT)
    assert np.max(np.abs(energies.energy_j / true_j - 1)) < 1e-3
    assert np.abs(np.mean(energies.energy_j / true_j - 1)) < 3e-4


def sensor_u(energies: WindowEnergies) -> NDArray[np.float64]:
    """What the sensor's parts alone make, without what the board itself does."""
    parts = [part for name, part in energies.parts.items() if name not in ("board_state", "drift")]
    u_j: NDArray[np.float64] = np.sqrt(np.sum(np.square(parts), axis=0))
    return u_j


@pytest.mark.parametrize("length_s", [0.2, 0.5, 1.0])
def test_with_noise_and_stale_stamps_the_interval_covers_neither_too_seldom_nor_always(length_s: float) -> None:
    # Forty boards of ten windows; each board's true delays and response are off by what the profile allows.
    covered: list[NDArray[np.bool_]] = []
    errors: list[NDArray[np.float64]] = []
    stale_share = 0.045
    believed = replace(H200, stamp_jitter_s=float(np.sqrt(stale_share * 0.02**2 / 3)), counter_tick_jitter_s=0.001)
    for seed in range(40):
        generator = np.random.default_rng(1000 + seed)
        true = replace(
            believed,
            sample_delay_s=generator.normal(believed.sample_delay_s, believed.u_sample_delay_s),
            response_s=generator.normal(believed.response_s, believed.u_response_s),
            counter_delay_s=generator.normal(believed.counter_delay_s, believed.u_counter_delay_s),
        )
        board, begin_ns, end_ns, true_j = simulated(length_s, 10, seed=seed)
        trace = board.trace(
            end_ns[-1] * 1e-9 + 1, true, generator, noise_w=3.0, stale_share=stale_share, tick_jitter_s=0.001,
            tick_phase_s=generator.uniform(0, 0.1),
        )  # fmt: skip
        energies = integrate(trace, begin_ns, end_ns, believed)
        assert np.all(energies.valid)
        errors.append(energies.energy_j / true_j - 1)
        covered.append(np.abs(energies.energy_j - true_j) < 1.96 * sensor_u(energies))
    assert 0.90 <= np.mean(covered) <= 0.99
    assert abs(np.mean(errors)) < 0.001


@pytest.mark.parametrize("every_s", [0.05, 0.6, 2.0])
def test_a_counter_read_seldom_stays_within_the_uncertainty(every_s: float) -> None:
    # 0.6 s of dense readings at the start tell the grid, and one reading just outside each edge the energy.
    board, begin_ns, end_ns, true_j = simulated(0.5, 40, seed=11, rest_s=2.0)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, H200, np.random.default_rng(12), noise_w=3.0, tick_jitter_s=0.0003)
    read_s = trace.counter.call_ns * 1e-9
    edges = np.concatenate((np.searchsorted(read_s, begin_ns * 1e-9) - 1, np.searchsorted(read_s, end_ns * 1e-9)))
    kept = np.unique(
        np.concatenate(
            (np.flatnonzero(read_s < 0.6), np.searchsorted(read_s, np.arange(0.6, read_s[-1], every_s)), edges)
        )
    )
    counter = trace.counter
    thinned = replace(
        trace, counter=CounterChannel(counter.call_ns[kept], counter.return_ns[kept], counter.energy_j[kept])
    )
    energies = integrate(thinned, begin_ns, end_ns, H200)
    assert np.all(energies.valid), energies.reasons
    assert np.mean(np.abs(energies.energy_j - true_j) < 1.96 * sensor_u(energies)) >= 0.9
    assert np.median(np.abs(energies.energy_j / true_j - 1)) < 0.01


def test_a_counter_without_a_grid_is_used_within_its_uncertainty() -> None:
    board, begin_ns, end_ns, true_j = simulated(0.5, 40, seed=13)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, H200, np.random.default_rng(14), noise_w=3.0, tick_jitter_s=0.02)
    energies = integrate(trace, begin_ns, end_ns, H200)
    assert np.mean(np.abs(energies.energy_j - true_j) < 1.96 * sensor_u(energies)) >= 0.9
    assert np.median(np.abs(energies.energy_j / true_j - 1)) < 0.01


def test_samples_in_disorder_repeated_or_missing_a_value_are_put_right() -> None:
    board, begin_ns, end_ns, true_j = simulated(0.5, 10, seed=15)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, H200, np.random.default_rng(16), noise_w=1.0)
    clean = integrate(trace, begin_ns, end_ns, H200)
    generator, samples = np.random.default_rng(17), trace.samples
    again = generator.integers(0, len(samples.time_ns), 100)
    time_ns = np.concatenate((samples.time_ns, samples.time_ns[again], samples.time_ns[again] + 5_000_000))
    power_w = np.concatenate((samples.power_w, samples.power_w[again], np.full(100, np.nan)))
    order = generator.permutation(len(time_ns))
    mixed = integrate(replace(trace, samples=SampleChannel(time_ns[order], power_w[order])), begin_ns, end_ns, H200)
    assert mixed.energy_j == pytest.approx(clean.energy_j, rel=1e-12)
    assert mixed.energy_j == pytest.approx(true_j, rel=0.02)


def test_a_sample_repeated_a_microsecond_later_does_not_blow_up() -> None:
    board, begin_ns, end_ns, true_j = simulated(0.5, 10, seed=18)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, H200, np.random.default_rng(19), noise_w=1.0)
    time_ns, power_w = trace.samples.time_ns, trace.samples.power_w
    twice = SampleChannel(np.concatenate((time_ns, time_ns + 1000)), np.concatenate((power_w, power_w + 3)))
    energies = integrate(replace(trace, samples=twice), begin_ns, end_ns, H200)
    assert energies.energy_j == pytest.approx(true_j, rel=0.02)
    assert np.all(energies.valid)


def test_no_windows_give_no_energies() -> None:
    board, _, end_ns, _ = simulated(0.2, 3, seed=20)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, H200, np.random.default_rng(21))
    nothing = np.empty(0, np.int64)
    for method in ENERGY_METHODS:
        for each in (trace, Trace(), Trace(counter=trace.counter)):
            energies = integrate(each, nothing, nothing, H200, method)
            assert (len(energies.energy_j), len(energies.valid), energies.reasons) == (0, 0, [])


@pytest.mark.parametrize("method", ENERGY_METHODS)
@pytest.mark.parametrize("samples", [0, 1, 2])
def test_next_to_nothing_recorded_is_null_and_invalid_and_no_error(method: str, samples: int) -> None:
    times = np.arange(samples, dtype=np.int64) * 20_000_000
    trace = Trace(
        samples=SampleChannel(times, np.full(samples, 100.0)), counter=CounterChannel(times, times, times * 1.0)
    )
    energies = integrate(trace, np.array([50_000_000]), np.array([250_000_000]), ASSUMED, method)
    assert not energies.valid[0]
    assert len(energies.reasons[0]) >= 1


def test_an_unknown_method_and_a_window_of_no_length_are_usage_errors() -> None:
    begin, end = np.array([0, 5]), np.array([1, 5])
    with pytest.raises(UsageError, match="no method 'guess'"):
        integrate(Trace(), begin, end, ASSUMED, "guess")
    with pytest.raises(UsageError, match="window 2 ends before it begins"):
        integrate(Trace(), begin, end, ASSUMED)


@pytest.mark.parametrize("spoilt", ["times_s", "sensed_w", "order", "steps", "response", "noise"])
def test_the_native_integrator_refuses_what_it_cannot_integrate(spoilt: str) -> None:
    times_s, sensed_w, steps = random_channels(1)
    model = MODEL
    if spoilt == "times_s":
        times_s[5] = float("nan")
    elif spoilt == "sensed_w":
        sensed_w[5] = float("inf")
    elif spoilt == "order":
        times_s[5] = times_s[4]
    elif spoilt == "steps":
        steps[3] = replace(steps[3], time_s=float("nan"))
    elif spoilt == "response":
        model = replace(MODEL, response_s=0.0)
    else:
        model = replace(MODEL, counter_noise_j=0.0)
        steps = [replace(step, u_time_s=0.0) for step in steps]
        sensed_w = [100.0] * len(sensed_w)
    with pytest.raises(ValueError, match=r"sample|step|response|noise"):
        native(times_s, sensed_w, steps, 1.0, 2.0, model)


def test_short_and_long_windows_at_the_end_of_a_day_are_as_exact_as_at_its_begin() -> None:
    board, begin_ns, end_ns, true_j = simulated(0.5, 8, seed=23)
    trace = board.trace(end_ns[-1] * 1e-9 + 1, H200, np.random.default_rng(24), noise_w=1.0)
    clean = integrate(trace, begin_ns, end_ns, H200)
    day_ns = 86_400_000_000_000
    idle_ns = np.arange(0, day_ns, 60_000_000)
    samples = SampleChannel(
        np.concatenate((idle_ns, day_ns + trace.samples.time_ns)),
        np.concatenate((np.full(len(idle_ns), 120.0), trace.samples.power_w)),
    )
    shifted = CounterChannel(trace.counter.call_ns + day_ns, trace.counter.return_ns + day_ns, trace.counter.energy_j)
    late = integrate(Trace(samples=samples, counter=shifted), begin_ns + day_ns, end_ns + day_ns, H200)
    assert late.energy_j == pytest.approx(clean.energy_j, rel=1e-7)
    for name, part in clean.parts.items():
        assert late.parts[name] == pytest.approx(part, rel=0.02, abs=1e-5 * float(np.mean(true_j))), name


@pytest.mark.timeout(100)  # for crowded machines; bench/energy has the figure
def test_a_hundred_thousand_windows_over_an_hour_take_a_moment() -> None:
    generator = np.random.default_rng(25)
    time_ns = np.cumsum(generator.integers(15_000_000, 25_000_000, 180_000))
    calls_ns = np.arange(0, time_ns[-1], 50_000_000)
    trace = Trace(
        samples=SampleChannel(time_ns, generator.normal(400, 50, len(time_ns))),
        counter=CounterChannel(calls_ns, calls_ns + 3_700_000, np.floor(calls_ns / 1e8) * 40.0),
    )
    begin_ns = generator.integers(1_000_000_000, int(time_ns[-1]) - 30_000_000_000, 100_000)
    end_ns = begin_ns + generator.integers(200_000_000, 20_000_000_000, 100_000)
    energies = integrate(trace, begin_ns, end_ns, H200)
    assert np.all(np.isfinite(energies.energy_j))
