# SPDX-License-Identifier: Apache-2.0
"""Why a number is missing, or must not be used, or what else is to be known of it: a closed list of typed reasons.

A reason is stored as `code: detail`. Which validity it ends is a property of its code, so nobody looks at its words.
What leaves a number valid and has an advice is a caution (`cautions`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ReasonCode(StrEnum):
    """`CODE = (code, meaning, whether it ends the validity of what it is said of)`; the code is what is stored."""

    meaning: str
    invalidates: bool

    def __new__(cls, code: str, meaning: str, invalidates: bool = False) -> ReasonCode:
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        member.invalidates = invalidates
        return member

    # What leaves a window without an energy that can be used.
    NOT_COVERED = ("not_covered", "power was not recorded over the whole window", True)
    GAP = ("gap", "samples are missing inside the window", True)
    COUNTER_RESET = ("counter_reset", "an energy counter went back", True)
    COUNTER_GAP = ("counter_gap", "an energy counter was not read for too long", True)
    COUNTER_STUCK = ("counter_stuck", "an energy counter did not move", True)
    WINDOW_TOO_SHORT = ("window_too_short", "the window is too short for a standard uncertainty of 5 %", True)
    CHANNELS_DISAGREE = ("channels_disagree", "samples and counter differ by more than they can", True)
    INSTANT_DISAGREES = ("instant_disagrees", "the instantaneous power field says another energy", True)
    FOREIGN_PROCESS = ("foreign_process", "another process was on the board", True)
    # Of stored results only: nvidia-smi is not read any more.
    LINES_IN_BURSTS = ("lines_in_bursts", "nvidia-smi's lines came out of a buffer, so their times are not known", True)
    IMPLAUSIBLE = ("implausible", "an energy counter rose by more than a CPU can draw", True)
    VIRTUALISED = ("virtualised", "a hypervisor makes up the values of the energy counters", True)

    # What is to be known of an energy that can be used.
    DRIFTING = ("drifting", "power drifts through the window")
    THROTTLED = ("throttled", "the GPU lowered its clocks for heat or power")
    IDLE_DRIFT = ("idle_drift", "the board's idle power before and after the window differs")
    SENSOR_ASSUMED = ("sensor_assumed", "the board's sensor was not characterised")
    SAMPLES_UNREADABLE = ("samples_unreadable", "the driver gave no usable power samples")
    COUNTER_UNREADABLE = ("counter_unreadable", "the energy counter gave no usable values")
    TICK_ASSUMED = ("tick_assumed", "the tick of the energy counter could not be measured")
    PLAIN_METHOD = ("plain_method", "the error of the method is not known")
    ESTIMATED = ("estimated", "an interval from busy time; nothing was measured")

    # Why nothing was measured.
    POWER_UNREADABLE = ("power_unreadable", "neither power samples nor enough counter readings were recorded")
    MEMORY_UNSUPPORTED = ("memory_unsupported", "NVML tells no memory of the board")
    DEVICE_NOT_FOUND = ("device_not_found", "no board has this UUID")
    NVML_UNAVAILABLE = ("nvml_unavailable", "NVML cannot be opened")
    NO_TAIL = ("no_tail", "there is no time between the window and the idle window after it")
    TAIL_BELOW_RESOLUTION = (
        "tail_below_resolution",
        "no slow iterations in a row last longer than the recovered power resolves",
    )
    READ_FAILED = ("read_failed", "a counter could not be read at an edge of the window")
    BUSY_TIME_UNREADABLE = ("busy_time_unreadable", "/proc/stat cannot be read")
    COUNTER_DEAD = ("counter_dead", "an energy counter of the CPU does not move under load")
    PERF_ABSENT = ("perf_absent", "the kernel has no perf device `power`")
    PERF_UNREADABLE = ("perf_unreadable", "an energy event of perf cannot be read")
    POWERCAP_ABSENT = ("powercap_absent", "there is no RAPL zone")
    POWERCAP_MASKED = ("powercap_masked", "a container hides the RAPL zones")
    POWERCAP_UNREADABLE = ("powercap_unreadable", "a RAPL zone cannot be read")
    NOTHING_COUNTED = ("nothing_counted", "no energy was counted in the window")
    NO_DOCUMENT_ENDED = ("no_document_ended", "no document ended in the window")
    NOT_FINITE = ("not_finite", "the number is not finite")

    # What the profile of a sensor lacks.
    NOT_FIRST_ORDER = ("not_first_order", "a delay and a first-order lag do not explain the steps of power")
    COUNTER_TICK_UNSEEN = ("counter_tick_unseen", "readings do not show when the energy counter moves")
    COUNTER_DELAY_UNSEEN = ("counter_delay_unseen", "too few steps of power are between two ticks of the counter")
    INSTANT_UNREADABLE = ("instant_unreadable", "polls do not show when the instant power field is refreshed")
    AVERAGE_UNREADABLE = ("average_unreadable", "polls do not show when the average power field is refreshed")

    OTHER = ("other", "what a plug-in, or another version of pybench, says in its own words")


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `detail`: the facts behind it."""

    code: ReasonCode
    detail: str

    def __str__(self) -> str:
        """The stored form."""
        return self.detail if self.code is ReasonCode.OTHER else f"{self.code.value}: {self.detail}"


def reason_from_text(text: str) -> Reason:
    """The inverse of `str`. A text with a code that this version does not know is an `OTHER`, as it is."""
    code, _, detail = text.partition(": ")
    known = _BY_CODE.get(code)
    return Reason(ReasonCode.OTHER, text) if known is None else Reason(known, detail)


def invalidate(reasons: Iterable[Reason]) -> bool:
    """Whether one of them ends the validity of what they are said of."""
    return any(reason.code.invalidates for reason in reasons)


_BY_CODE = {member.value: member for member in ReasonCode if member is not ReasonCode.OTHER}
