# SPDX-License-Identifier: Apache-2.0
"""Doubts and verdicts that a workload raises by evidence: a busy machine, too many threads, weights, calibration.

What the times themselves say (outliers, unsteadiness, too few iterations) is `pybench.measure`'s; what GPU samplers see
as well.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.case import Case
from pybench.case.quantising import opened_in, scheme_of
from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.data_sets import DataSet
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.reasons import Reason
from pybench.measure.energy.cpu_estimate import BUSY_COLUMNS
from pybench.measure.quantity import Quantity
from pybench.measure.timing.cpu_time import own_cpu_s
from pybench.measurement.result import Validity

# Share of the allowed CPUs' time that other processes may take before it shows in the numbers.
BUSY_SHARE = 0.1
# Below this, reading the clock (about 50 ns a call) is a visible part of what is timed.
SHORTEST_ITERATION_S = 1e-6
# Fewer calibration samples than this leave the ranges to chance.
ENOUGH_CALIBRATION_SAMPLES = 100
# Where an int8 file says how it was calibrated (a property of the ONNX file, JSON).
CALIBRATION_KEY = "pybench.calibration"
# Where it says how its outputs compare with FP32's (a property of the ONNX file, JSON: metric -> value).
AGREEMENT_KEY = "pybench.agreement"
# Where a file of lower precision says that its outputs mean nothing (a property of the ONNX file, a sentence).
LOST_KEY = "pybench.outputs_lost"
# Where it says that its inputs hardly change the outputs that were compared (a property of the ONNX file, a sentence).
HARDLY_VARY_KEY = "pybench.outputs_hardly_vary"
# Share of the outputs' norm that inputs change. A step of INT8 is 1/127 of the range: rounding hides what is smaller.
# A trained network has 0.4 to 0.9, and random weights 5e-5 to 0.065 (docs/method/precision.md).
LEAST_VARIED = 0.01
# Where several files are opened as parts of one model: which of them the notes on outputs are of.
PART_KEY = "pybench.part"

_AGREEMENT = {
    "relative_error_ratio": "relative_error",
    "cosine_ratio": "cosine",
    "top1_agreement_ratio": "top1_agreement_ratio",
    "signal_error_ratio": "signal_error",
}
# Key -> caution, and the metric that it is about, None: all of a run.
_DOUBTS_OF_OUTPUTS: Mapping[str, tuple[CautionCode, str | None]] = {
    LOST_KEY: (CautionCode.OUTPUTS_LOST, None),
    HARDLY_VARY_KEY: (CautionCode.OUTPUTS_HARDLY_VARY, "relative_error_ratio"),
}
# Instructions that add products of INT8 in 32 bits, as the kernel lists them; an ARM CPU has no line `flags`.
_VNNI = {"avx_vnni", "avx512_vnni", "amx_int8"}
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def allowed_threads(case: Case) -> int:
    """Threads inside an operator: what the case says, or one for each CPU that this process may use."""
    return case.threads or len(os.sched_getaffinity(0))


def thread_cautions(case: Case) -> list[Caution]:
    """A caution when the case uses more threads than CPUs."""
    cpus = len(os.sched_getaffinity(0))
    if allowed_threads(case) <= cpus:
        return []
    return [Caution(CautionCode.THREADS_EXCEED_CPUS, f"{case.threads} threads on {cpus} CPUs")]


def saturation_cautions(case: Case, root: Path = Path("/")) -> list[Caution]:
    """A caution for INT8 on an x86 CPU without VNNI, in a runtime whose kernels saturate there."""
    row = case.runtime_row
    if row is None or opened_in(case) != "int8" or scheme_of(case) not in row.needs_vnni:
        return []
    try:
        facts = (root / "proc/cpuinfo").read_text()
    except OSError:
        return []
    flags = next((set(line.split()) for line in facts.splitlines() if line.startswith("flags")), None)
    if flags is None or flags & _VNNI:
        return []
    return [Caution(CautionCode.INT8_SATURATES, f"the CPU has none of {', '.join(sorted(_VNNI))}")]


def calibration_cautions(
    metadata: Mapping[str, str], wanted: int | None, *, judged_on: str | None = None
) -> list[Caution]:
    """Doubts about how an int8 file was calibrated.

    `wanted`: how many samples were asked for, if that was a setting. `judged_on`: identity of the images that judge
    accuracy.
    """
    calibration = _calibration(metadata)
    if calibration is None:
        return []
    cautions = []
    samples, source = calibration["samples"], calibration["source"]
    of_wanted = f" of {wanted} asked for" if wanted is not None and samples < wanted else ""
    if source == "random" or samples < ENOUGH_CALIBRATION_SAMPLES or of_wanted:
        cautions.append(Caution(CautionCode.SMALL_CALIBRATION, f"{samples} samples{of_wanted} ({source})"))
    if judged_on is not None and judged_on == calibration["identity"] and not calibration["held_out"]:
        detail = f"{samples} images of {source}"
        cautions.append(Caution(CautionCode.CALIBRATED_ON_EVALUATION, detail, "top1_percent"))
    return cautions


def floor_cautions(data: DataSet | None, metrics: Mapping[str, Quantity]) -> list[Caution]:
    """A doubt about a score that is no better than what is reached on the same data without a network."""
    floor = None if data is None else data.floor
    if data is None or floor is None or floor.metric not in metrics:
        return []
    row, value = METRICS[floor.metric], metrics[floor.metric].value
    is_better = value is not None and (value > floor.value if row.better == "higher" else value < floor.value)
    if value is None or is_better:
        return []
    unit = "" if row.unit == "1" else f" {row.unit}"
    detail = f"{value:.4g}{unit}, and {floor.value:.4g}{unit} by {floor.method} on {data.name}"
    return [Caution(CautionCode.NO_BETTER_THAN_WITHOUT_A_NETWORK, detail, floor.metric)]


def lost_outputs(labels: Mapping[str, Any]) -> str | None:
    """Why a file's outputs mean nothing, by its labels `against_fp32_*`; None: they do, or were not to be computed."""
    error: float | None = labels["against_fp32_relative_error"]
    if labels["against_fp32_top1_agreement_ratio"] is None or (error is not None and error < 1):
        return None
    return labels["against_fp32_reason"] or f"relative error to FP32 {error:.2g}"


def hardly_varying(labels: Mapping[str, Any]) -> str | None:
    """Why errors and agreement of a file say little, by its labels `against_fp32_*`; None: nothing is known that
    speaks against them."""
    varied: float | None = labels["against_fp32_varied_ratio"]
    if varied is not None and varied < LEAST_VARIED:
        return f"the inputs change {100 * varied:.2g} % of the FP32 outputs"
    if labels["against_fp32_origin_classes"] == 1:
        return f"all {labels['against_fp32_samples']} samples have one class in FP32"
    return None


def agreement_note(labels: Mapping[str, Any]) -> dict[str, str]:
    """What a file says of its outputs, by its labels `against_fp32_*`; empty where they were not to be computed."""
    named = {metric: labels[f"against_fp32_{label}"] for metric, label in _AGREEMENT.items()}
    known = {metric: value for metric, value in named.items() if value is not None}
    return {AGREEMENT_KEY: json.dumps(known, sort_keys=True)} if known else {}


def agreement(metadata: Mapping[str, str]) -> dict[str, Quantity]:
    """How the outputs of a file compare with FP32's, as metrics; empty where the file does not say it."""
    try:
        stored = json.loads(metadata.get(AGREEMENT_KEY, "null"))
    except ValueError:
        return {}  # another program's property of that name
    values = stored if isinstance(stored, dict) else {}
    part = metadata.get(PART_KEY)
    whose = "" if part is None else f" of the part `{part}`, which is the furthest away,"
    method = f"the ONNX file{whose} against that in FP32, on a CPU"
    return {
        metric: Quantity(value=float(values[metric]), method=method)
        for metric in _AGREEMENT
        if isinstance(values.get(metric), float | int)
    }


def joined_metadata(parts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """What the files of a model's parts say, by the part, as one file would: of outputs, what the part says that is
    furthest from FP32."""

    def relative_error(name: str) -> float:
        found = agreement(parts[name]).get("relative_error_ratio")
        return 0.0 if found is None or found.value is None else found.value

    furthest = max(parts, key=relative_error)
    joined = {key: text for texts in parts.values() for key, text in texts.items()}
    return joined | dict(parts[furthest]) | {PART_KEY: furthest}


def output_cautions(metadata: Mapping[str, str]) -> list[Caution]:
    """Doubts about a file that says of itself that its outputs, or comparisons of them, mean nothing."""
    found = [(metadata[key], about) for key, about in _DOUBTS_OF_OUTPUTS.items() if key in metadata]
    return [Caution(code, detail, metric) for detail, (code, metric) in found]


def _calibration(metadata: Mapping[str, str]) -> dict[str, Any] | None:
    """What an int8 file says of its calibration; None when it says nothing, or was written by another version."""
    try:
        stored = json.loads(metadata.get(CALIBRATION_KEY, "null"))
    except ValueError:
        return None
    known = isinstance(stored, dict) and {"samples", "source", "identity", "held_out"} <= set(stored)
    return stored if known else None


def images_identity(name: str | None, sha256: str | None) -> str | None:
    """What makes two cases' images the same: the content's hash, or a built-in name; None: no images."""
    return sha256 or name


def judge_timing(iteration_s: float) -> Validity:
    """Whether iterations of that length, the median's unless it says nothing, are long enough for the clock."""
    return (
        Validity(True)
        if iteration_s >= SHORTEST_ITERATION_S
        else Validity(False, (Reason(Cause.BELOW_CLOCK_RESOLUTION),))
    )


def judge_energy(quantities: Mapping[str, Quantity], on_gpu: bool) -> Validity:
    """The verdict of the energy that the case is about: the GPU's where it ran on one, else the CPU's; the whole
    module's or node's where that is not measured."""
    quantity = quantities.get("gpu_energy_j" if on_gpu else "cpu_energy_j")
    for whole in ("module_energy_j", "node_energy_j"):
        if quantity is not None and quantity.value is None:
            quantity = quantities.get(whole, quantity)
    if quantity is None:
        return Validity(None, (Reason(Cause.NOT_ASKED),))
    return Validity(quantity.valid, quantity.reasons)


def weakest(verdicts: Iterable[Validity]) -> Validity:
    """Of windows whose energies count together: false where one is, with every reason, then null, then true."""
    several = list(verdicts)
    for value in (False, None):
        found = [verdict for verdict in several if verdict.value is value]
        if found:
            return Validity(value, tuple(dict.fromkeys(reason for verdict in found for reason in verdict.reasons)))
    return Validity(True, tuple(dict.fromkeys(reason for verdict in several for reason in verdict.reasons)))


@dataclass(frozen=True, slots=True)
class _Usage:
    """Seconds: wall clock, busy time of the allowed CPUs, of which this process and its children."""

    wall_s: float
    busy_s: float
    own_s: float


class BusyWatch:
    """How much CPU time others took on the CPUs that this process may use, from its creation to `cautions`."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._cpus = os.sched_getaffinity(0)
        self._begin = self._read()

    def cautions(self) -> list[Caution]:
        """A caution when others took more than a tenth, beyond what the kernel's ticks can resolve."""
        end = self._read()
        if self._begin is None or end is None:
            return []
        capacity_s = (end.wall_s - self._begin.wall_s) * len(self._cpus)
        others_s = (end.busy_s - self._begin.busy_s) - (end.own_s - self._begin.own_s)
        resolution_s = 2 * _TICK_S * len(self._cpus)
        if others_s - resolution_s <= BUSY_SHARE * capacity_s:
            return []
        detail = f"others took {others_s:.2g} s of {capacity_s:.2g} s on {len(self._cpus)} CPUs"
        return [Caution(CautionCode.BUSY_MACHINE, detail, "latency_mean_ms")]

    def _read(self) -> _Usage | None:
        try:
            lines = (self._root / "proc/stat").read_text().splitlines()
            ticks = 0
            for words in (line.split() for line in lines if line.startswith("cpu")):
                number = words[0].removeprefix("cpu")
                if number.isdigit() and int(number) in self._cpus:
                    ticks += sum(int(words[1 + column]) for column in BUSY_COLUMNS)
        except (OSError, ValueError, IndexError):
            return None
        return _Usage(time.monotonic(), ticks * _TICK_S, own_cpu_s())
