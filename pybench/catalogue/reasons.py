# SPDX-License-Identifier: Apache-2.0
"""Why a number is missing or must not be used, why a part of a run is not valid, or why a run has no result.

A reason is a code of a closed list with the facts behind it. Whether it ends a validity follows from its code, never
from its words. `ReasonCode` has the codes that are said of one value, `causes` those of a run or a part of it.
Doubts about a whole run are cautions (`cautions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pybench.catalogue.causes import Cause
from pybench.catalogue.packages import PACKAGES
from pybench.catalogue.precisions import NUMBER_TYPES
from pybench.catalogue.reason_rows import WORD, Reason, ReasonRow

__all__ = ["Reason", "ReasonCode", "invalidate", "read_reason", "reason_from_text"]


class ReasonCode(ReasonRow):
    """What is said of one value."""

    NOT_COVERED = (
        "not_covered",
        "invalid",
        "power was not recorded over the whole window",
        "run again on an idle machine; if it stays, raise `energy_window_s`",
    )
    GAP = (
        "gap",
        "invalid",
        "samples are missing inside the window",
        "leave a CPU free for the sampler (fewer `threads`), and run again",
    )
    COUNTER_RESET = (
        "counter_reset",
        "invalid",
        "an energy counter went back",
        "run again, and look for a reset of the GPU in the kernel's log",
    )
    COUNTER_GAP = (
        "counter_gap",
        "invalid",
        "an energy counter was not read for too long",
        "leave a CPU free for the sampler (fewer `threads`), and run again",
    )
    COUNTER_STUCK = (
        "counter_stuck",
        "invalid",
        "an energy counter did not move",
        "run again; if it stays, install another version of the driver",
    )
    WINDOW_TOO_SHORT = (
        "window_too_short",
        "invalid",
        "the window is too short for a standard uncertainty of 5 %",
        "raise `energy_window_s`, or measure the sensor with `pybench sensor measure`",
    )
    CHANNELS_DISAGREE = (
        "channels_disagree",
        "invalid",
        "samples and counter differ by more than their uncertainties allow",
        "measure the sensor again with `pybench sensor measure`",
    )
    INSTANT_DISAGREES = (
        "instant_disagrees",
        "invalid",
        "the instantaneous power field gives another energy",
        "measure the sensor again with `pybench sensor measure`",
    )
    FOREIGN_PROCESS = (
        "foreign_process",
        "invalid",
        "another process was on the board",
        "reserve the GPU and run again",
    )
    # Of stored results only: nvidia-smi is not read any more.
    LINES_IN_BURSTS = (
        "lines_in_bursts",
        "invalid",
        "an older pybench read lines of nvidia-smi, and their times are not known",
        "run again with this version, which reads NVML",
    )
    RAIL_FROZEN = (
        "rail_frozen",
        "invalid",
        "the readings of a power rail did not change in the whole window",
        "run again; if it stays, load the driver of the power monitor again",
    )
    IMPLAUSIBLE = (
        "implausible",
        "invalid",
        "an energy counter rose by more than a CPU can draw",
        "run again; if it stays, do not use this machine for the CPU's energy",
    )
    NODE_BELOW_PARTS = (
        "node_below_parts",
        "missing",
        "the counter of the node told less energy than those of its GPU and CPU together",
        "run again; if it stays, use the energies of GPU and CPU, and tell the operators of the machine",
    )
    VIRTUALISED = (
        "virtualised",
        "invalid",
        "a hypervisor makes up the values of the energy counters",
        "measure the CPU's energy on a machine without a hypervisor",
    )

    DRIFTING = (
        "drifting",
        "remark",
        "power drifts through the window",
        "raise `warmup_iterations`, or lock the clocks with `sm_clock_mhz`",
    )
    THROTTLED = (
        "throttled",
        "remark",
        "the GPU lowered its clocks for heat or power",
        "improve cooling, or compare at a common `power_limit_w`",
    )
    IDLE_DRIFT = (
        "idle_drift",
        "remark",
        "the board's idle power before and after the window differs",
        "compare gross energies; the uncertainty of the net energy includes the difference",
    )
    SENSOR_ASSUMED = (
        "sensor_assumed",
        "remark",
        "the board's sensor was not characterised",
        "run `pybench sensor measure` once on this machine",
    )
    SAMPLES_UNREADABLE = (
        "samples_unreadable",
        "remark",
        "the driver gave no usable power samples",
        "prefer long windows (`energy_window_s`): only the counter was used",
    )
    COUNTER_UNREADABLE = (
        "counter_unreadable",
        "remark",
        "the energy counter gave no usable values",
        "prefer long windows (`energy_window_s`): only power samples were used",
    )
    TICK_ASSUMED = (
        "tick_assumed",
        "remark",
        "the tick of the energy counter could not be measured",
        "raise `energy_window_s`",
    )
    PLAIN_METHOD = (
        "plain_method",
        "remark",
        "the error of the method is not known",
        "take the fused energy (`gpu_energy_j`) where you need an uncertainty",
    )
    ESTIMATED = (
        "estimated",
        "remark",
        "an interval from busy time; nothing was measured",
        "take it as a bound, and run where RAPL can be read for a measured energy",
    )

    POWER_UNREADABLE = (
        "power_unreadable",
        "missing",
        "neither power samples nor enough counter readings were recorded",
        "run `pybench doctor`; raise `energy_window_s`",
    )
    MEMORY_UNSUPPORTED = (
        "memory_unsupported",
        "missing",
        "NVML does not report the memory of the board",
        "use a board whose memory `nvidia-smi` shows",
    )
    ALLOCATOR_SILENT = (
        "allocator_silent",
        "missing",
        "the allocator of the device reports no peak",
        "run on a GPU, or compare `peak_host_bytes`",
    )
    SAVED_UNSEEN = (
        "saved_unseen",
        "missing",
        "what a forward pass saves for the gradients cannot be counted",
        "use `runtime: torch` without `gradient_checkpointing`",
    )
    NO_PROFILE = (
        "no_profile",
        "missing",
        "the profile of the kernels could not be made",
        "read the label `profile` in summary.json, and the log of the run",
    )
    NOT_TOLD = (
        "not_told",
        "missing",
        "the profile of this runtime does not contain the value",
        "compare with a runtime whose profile does",
    )
    NO_ROOM_FOR_STEP = (
        "no_room_for_step",
        "missing",
        "memory ran out in the step after the windows that finds what memory is used for",
        "use a smaller batch, or read `peak_device_bytes`",
    )
    DEVICE_NOT_FOUND = (
        "device_not_found",
        "missing",
        "no board has this UUID",
        "compare the UUID with those that `pybench doctor` lists",
    )
    UTILISATION_UNREAD = (
        "utilisation_unread",
        "missing",
        "NVML gave no reading whose sample period (up to 1 s) is inside the window",
        "set `energy_window_s` to 2 or more: NVML averages over up to a second",
    )
    NVML_UNAVAILABLE = (
        "nvml_unavailable",
        "missing",
        "NVML cannot be opened",
        "install NVIDIA's driver, or set PYBENCH_NVML_LIBRARY to the path of libnvidia-ml.so.1",
    )
    NO_TAIL = (
        "no_tail",
        "missing",
        "the idle window does not follow the window, or there is no time between them",
        "set `energy_window_s`, or run again; other energies of the run are not concerned",
    )
    TAIL_BELOW_RESOLUTION = (
        "tail_below_resolution",
        "missing",
        "no stretch of slow iterations lasts longer than the recovered power resolves",
        "enlarge the batch, so that one iteration takes longer",
    )
    READ_FAILED = (
        "read_failed",
        "missing",
        "a counter could not be read at an edge of the window",
        "run again; `pybench doctor` shows whether the counter can be read",
    )
    BUSY_TIME_UNREADABLE = (
        "busy_time_unreadable",
        "missing",
        "/proc/stat cannot be read",
        "mount /proc in the container",
    )
    COUNTER_DEAD = (
        "counter_dead",
        "missing",
        "an energy counter of the CPU does not move under load",
        "measure the CPU's energy on another machine; virtual machines often have such counters",
    )
    PERF_ABSENT = (
        "perf_absent",
        "missing",
        "the kernel has no perf device `power`",
        "load the kernel module `rapl`; virtual machines have none",
    )
    PERF_UNREADABLE = (
        "perf_unreadable",
        "missing",
        "an energy event of perf cannot be read",
        "set `kernel.perf_event_paranoid` to 0, or give CAP_PERFMON",
    )
    POWERCAP_ABSENT = (
        "powercap_absent",
        "missing",
        "there is no RAPL zone",
        "load the kernel module `intel_rapl_msr`; virtual machines have none",
    )
    POWERCAP_MASKED = (
        "powercap_masked",
        "missing",
        "a container hides the RAPL zones",
        "mount /sys/devices/virtual/powercap read-only into the container",
    )
    POWERCAP_UNREADABLE = (
        "powercap_unreadable",
        "missing",
        "a RAPL zone cannot be read",
        "run as root, or let your user read `energy_uj`",
    )
    RAIL_ABSENT = (
        "rail_absent",
        "missing",
        "hwmon does not show a power rail of this module",
        "load the driver of the power monitor (`ina3221`), and mount /sys in the container",
    )
    RAIL_UNREADABLE = (
        "rail_unreadable",
        "missing",
        "a power rail gave no number",
        "read its files in /sys/class/hwmon; switch the rail on (`in1_enable`)",
    )
    NOTHING_COUNTED = (
        "nothing_counted",
        "missing",
        "nothing was counted in the window, so there is nothing to divide by",
        "raise `iterations` or `energy_window_s`",
    )
    NO_DOCUMENT_ENDED = (
        "no_document_ended",
        "missing",
        "no document ended in the window",
        "raise `iterations`, or take a `path` that reads text",
    )
    NOT_FINITE = (
        "not_finite",
        "missing",
        "a number or an output is NaN or infinite",
        "use another precision, or keep overflowing operators in FP32 (`keep_fp32`)",
    )
    NOT_REACHED = (
        "not_reached",
        "missing",
        "training ended before it reached the accuracy, so the value is larger than what was spent",
        "raise `epochs_max`, lower `target_top1_percent`, or choose another `learning_rate`",
    )
    REFERENCE_OUT_OF_MEMORY = (
        "reference_out_of_memory",
        "missing",
        "memory ran out for the FP32 reference, not for the case",
        "take a smaller batch, model or sequence where the agreement with FP32 counts",
    )

    NOT_FIRST_ORDER = (
        "not_first_order",
        "sensor",
        "a delay and a first-order lag do not explain the steps of power",
        "raise `energy_window_s`; the uncertainty includes the misfit",
    )
    COUNTER_TICK_UNSEEN = (
        "counter_tick_unseen",
        "sensor",
        "readings do not show when the energy counter moves",
        "measure the sensor again on an idle machine",
    )
    COUNTER_DELAY_UNSEEN = (
        "counter_delay_unseen",
        "sensor",
        "too few steps of power are between two ticks of the counter",
        "measure the sensor again on an idle machine",
    )
    INSTANT_UNREADABLE = (
        "instant_unreadable",
        "sensor",
        "polls do not show when the instant power field is refreshed",
        "measure the sensor again; energies do not depend on this field",
    )
    AVERAGE_UNREADABLE = (
        "average_unreadable",
        "sensor",
        "polls do not show when the average power field is refreshed",
        "measure the sensor again; energies do not depend on this field",
    )

    OTHER = (
        "<words>",
        "remark",
        "words of a plug-in, of a framework, or of another version of pybench",
        "read the words",
    )


def read_reason(code: str, detail: str = "") -> Reason:
    """The inverse of `Reason.stored_code`. A code that this version does not have is an `OTHER`, as it is.

    So is one that is nothing but a name (`<exception>`): whose name it is, the outcome says.
    """
    if code in _BY_CODE:
        return Reason(_BY_CODE[code], detail)
    for row, pattern in _PATTERNS:
        if names := pattern.fullmatch(code):
            return Reason(row, detail, names.groups())
    return Reason(ReasonCode.OTHER, detail, (code,))


def reason_from_text(text: str) -> Reason:
    """The inverse of `str`."""
    code, _, detail = text.partition(": ")
    return read_reason(code, detail) if detail else read_reason(text)


def invalidate(reasons: Iterable[Reason]) -> bool:
    """Whether one of them ends the validity of what they are said of."""
    return any(reason.code.invalidates for reason in reasons)


def _patterns() -> Iterator[tuple[ReasonRow, re.Pattern[str]]]:
    """Codes with names, those with the most fixed letters first; each with what its text looks like."""
    known = {"<package>": "|".join(PACKAGES), "<type>": "|".join(NUMBER_TYPES)}
    rows = [row for row in (*ReasonCode, *Cause) if WORD.search(row) and not WORD.fullmatch(row)]
    for row in sorted(rows, key=lambda row: -len(WORD.sub("", row))):
        yield row, re.compile(WORD.sub(lambda word: f"({known.get(word[0], '.+')})", row))


_BY_CODE: dict[str, ReasonRow] = {row.value: row for row in (*ReasonCode, *Cause) if not WORD.search(row)}
_PATTERNS = tuple(_patterns())
