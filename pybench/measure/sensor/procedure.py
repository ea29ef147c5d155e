# SPDX-License-Identifier: Apache-2.0
"""Measures the power sensor of a live board in about a minute: loads at random times, every channel read densely.

A load is switched on and off at times that are random against every period of the sensor. It has two levels of power,
since the higher one may run into the board's power cap. One long load at the end gives noise and gain. What the
channels say of these times is `characterise`'s business. It sets nothing on the board.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

import numpy as np

from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.sensors import FEWEST_LOADS, SHORT_LOADS
from pybench.errors import InputError, UnsupportedError, UsageError
from pybench.measure.energy.gpu_sampler import GpuSampler, Unavailable, open_gpu
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.sensor.characterise import RecordedBoard, characterise
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, monotonic_ns, sleep_until_ns

ON_S, OFF_S = (0.3, 0.8), (0.4, 0.8)  # s: longer than a step needs to settle, and of random phase
LEVELS = (1.0, 0.5)  # 1: of the multiprocessors
FIRST_REST_S = 1.5  # s: the load's own preparation has faded, and the 1 s average has filled
WARM_UP_S = 1.0
LONG_S = 8.0
LAST_REST_S = 1.2  # s: until everything read shows the last load's end
HARMLESS = ("software power cap",)  # a load that runs into it has no level, and is left out for that
POLL_S = 0.005
COUNTER_S = 0.001  # s: shorter than its call, so that it is read back to back


class Load(Protocol):
    """Keeps the board busy for `seconds`; the result unpacks into begin and end in ns of the raw clock."""

    def run(self, seconds: float, *, level: float) -> Iterable[int]: ...


@dataclass(frozen=True, slots=True)
class Pulse:
    """Rest, then a load at `level` (share of the multiprocessors)."""

    rest_s: float
    load_s: float
    level: float


def plan_pulses(seed: int, loads: int = SHORT_LOADS) -> list[Pulse]:
    """A warm-up, `loads` short loads at both levels in random order, and a long one."""
    if loads < FEWEST_LOADS:
        raise UsageError(f"{loads} loads show too few steps of power", hint=f"at least {FEWEST_LOADS}")
    rng = np.random.default_rng(seed)
    levels = rng.permutation([LEVELS[index % len(LEVELS)] for index in range(loads)])
    short = [Pulse(float(rng.uniform(*OFF_S)), float(rng.uniform(*ON_S)), float(level)) for level in levels]
    return [Pulse(FIRST_REST_S, WARM_UP_S, LEVELS[1]), *short, Pulse(OFF_S[1], LONG_S, LEVELS[1])]


def duration_s(pulses: Iterable[Pulse]) -> float:
    """How long the pulses take."""
    return sum(pulse.rest_s + pulse.load_s for pulse in pulses) + LAST_REST_S


def measure_sensor(
    uuid: str,
    open_load: Callable[[str], AbstractContextManager[Load]],
    *,
    seed: int = 1,
    loads: int = SHORT_LOADS,
    force: bool = False,
    nvml_library: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> SensorProfile:
    """The profile of the board with this UUID. `tell` is given the progress in words.

    Raises UnsupportedError where the board cannot be read or loaded, where other processes hold it (`gpu_busy`, unless
    `force`), or where its power does not follow the load (`sensor_unclear`).
    """
    pulses = plan_pulses(seed, loads)
    sampler = open_gpu(uuid, POLL_S, nvml_library, COUNTER_S)
    if isinstance(sampler, Unavailable):
        why = sampler.reason
        raise UnsupportedError(
            f"this board's power cannot be read: {why.detail}", code=why.code, hint="run `pybench doctor`"
        )
    doubts = _refuse_company(sampler, force)
    tell(f"{sampler.name}: switching a load on and off, {duration_s(pulses):.0f} s")
    with open_load(uuid) as load:
        loads_ns = _record(sampler, load, pulses, tell)
    seen = sampler.states().seen(loads_ns[:1, 0], loads_ns[-1:, 1])
    doubts += [
        Reason(ReasonCode.THROTTLED, f"{words} while it was measured")
        for words in seen.throttle_words(0)
        if words not in HARMLESS
    ]
    measured_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    board = RecordedBoard(uuid, sampler.driver_version, sampler.name, measured_at)
    try:
        profile = characterise(sampler.trace(), loads_ns, board, live=True)
    except InputError as error:
        raise UnsupportedError(
            f"the power that {sampler.name} tells does not follow a load: {error.message}",
            code=Cause.SENSOR_UNCLEAR,
            hint="run it again on an idle GPU; without a profile, campaigns assume one and say so",
        ) from error
    return replace(profile, reasons=(*profile.reasons, *doubts))


def _refuse_company(sampler: GpuSampler, force: bool) -> list[Reason]:
    """Other processes on the board, as reasons; raises where they are not wanted.

    This one loads the board only later, so one of which it cannot be told whose it is belongs to another.
    """
    others = sampler.other_processes()
    if not others:
        return []
    listed = ", ".join(str(process) for process in others[:5]) + (", ..." if len(others) > 5 else "")
    count = "1 other process uses" if len(others) == 1 else f"{len(others)} other processes use"
    if not force:
        raise UnsupportedError(
            f"{count} this GPU (process ids {listed}), and would be measured with it",
            code=Cause.GPU_BUSY,
            hint="end them, or measure all the same with --force",
        )
    return [Reason(ReasonCode.FOREIGN_PROCESS, f"{len(others)} other processes held the GPU while it was measured")]


def _record(
    sampler: GpuSampler, load: Load, pulses: list[Pulse], tell: Callable[[str], None]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Runs the pulses while the sampler reads; int64 [n, 2] ns: begin and end of each load."""
    times = np.empty((len(pulses), 2), np.int64)
    sampler.start()
    try:
        for number, pulse in enumerate(pulses):
            _rest(pulse.rest_s)
            times[number] = tuple(load.run(pulse.load_s, level=pulse.level))
            if number % 10 == 9:
                tell(f"{number + 1} of {len(pulses)} loads")
        _rest(LAST_REST_S)
    finally:
        sampler.stop()
    return times


def _rest(seconds: float) -> None:
    sleep_until_ns(monotonic_ns() + round(seconds * NANOSECONDS_PER_SECOND))
