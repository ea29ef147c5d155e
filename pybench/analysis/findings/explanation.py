# SPDX-License-Identifier: Apache-2.0
"""Why one case is slower than another, or needs more energy: their difference, assigned to ONNX nodes.

Profiled times explain, unprofiled times count: profiling changes both, so they stand next to each other and are never
mixed. No sensor tells the energy of one kernel. So a difference in energy is split into time and mean power, whose
product it is, and the kernels explain the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from pybench.analysis.comparability import SoftwareDifference, differences_of_cases
from pybench.analysis.findings.kernel_rows import KernelRow, KernelRows, rows_of
from pybench.analysis.measurements import Measurements, collect
from pybench.case import Case
from pybench.case.factors import FACTORS, factor_names
from pybench.dataset import Dataset
from pybench.dataset.profiles import read_profile, why_no_profile
from pybench.errors import UsageError
from pybench.kernels.profile import Kernel, Profile, Work, total_ms, work_of

LATENCY = "latency_mean_ms"
MEDIAN = "latency_p50_ms"
THROUGHPUT = "throughput_samples_per_s"
ENERGIES = ("gpu_energy_per_sample_j", "cpu_energy_per_sample_j")
ENOUGH_RATIO = 0.95  # of the profiled time that rows have to cover


@dataclass(frozen=True, slots=True)
class ExplainedCase:
    """One side.

    name: what tells it from the other
    latency_ms, median_ms: mean and median iteration, unprofiled, over the runs that count
    why_none: why there is no mean
    energies_j: metric -> mean for one sample
    samples_per_s: throughput; None where there is none
    """

    case: Case
    name: str
    profile: Profile
    latency_ms: float | None
    why_none: str | None
    energies_j: Mapping[str, float]
    samples_per_s: float | None
    median_ms: float | None = None


@dataclass(frozen=True, slots=True)
class WorkShare:
    """What kernels of one kind of work cost on both sides. `constants`: only those whose data was known before."""

    work: Work
    constants: bool
    counts: tuple[int, int]
    times_ms: tuple[float, float]

    @property
    def excess_ms(self) -> float:
        return self.times_ms[0] - self.times_ms[1]


@dataclass(frozen=True, slots=True)
class Explanation:
    """`sides`: the slower case first, by latency, else by profile; without times in the order that was asked for.
    `software`: what the runs of the two have different values of; the second side is the baseline."""

    sides: tuple[ExplainedCase, ExplainedCase]
    rows: KernelRows
    shares: tuple[WorkShare, ...]
    software: tuple[SoftwareDifference, ...] = ()

    @property
    def has_times(self) -> bool:
        return all(side.profile.has_times for side in self.sides)

    @property
    def loss_ms(self) -> float:
        """How much longer the first side's kernels take."""
        return self.sides[0].profile.total_ms - self.sides[1].profile.total_ms

    def unassigned_ms(self, side: int) -> float:
        return total_ms(self.rows.unassigned[side])

    def assigned_ratio(self, side: int) -> float | None:
        """Share of a side's profiled time that is in rows; None without times."""
        total = self.sides[side].profile.total_ms
        return 1 - self.unassigned_ms(side) / total if total > 0 else None

    @property
    def paired(self) -> int:
        """Rows with kernels on both sides."""
        return sum(all(side.own or side.around for side in row.sides) for row in self.rows.rows)

    def as_json(self) -> dict[str, Any]:
        return {
            "slower": self.sides[0].case.id if self.has_times else None,
            "has_times": self.has_times,
            "cases": [_case_json(side) for side in self.sides],
            "software": [one.as_json() for one in self.software],
            "profiled_loss_ms": self.loss_ms if self.has_times else None,
            "rows": [_row_json(row, self.has_times) for row in self.rows.rows],
            "not_assigned": [
                {
                    "time_ms": self.unassigned_ms(number) if self.has_times else None,
                    "assigned_ratio": self.assigned_ratio(number),
                    "kernels": [_kernel_json(kernel) for kernel in kernels],
                }
                for number, kernels in enumerate(self.rows.unassigned)
            ],
            "work": [
                {
                    "work": share.work,
                    "constants": share.constants,
                    "kernels_count": list(share.counts),
                    "time_ms": list(share.times_ms) if self.has_times else None,
                    "excess_ms": share.excess_ms if self.has_times else None,
                }
                for share in self.shares
            ],
        }


def explain(dataset: Dataset, cases: tuple[Case, Case]) -> Explanation:
    """Explains the difference of two cases of a campaign. Raises UsageError for a case without a profile, and for two
    cases that are one or run different models."""
    if cases[0] == cases[1]:
        raise UsageError(f"{cases[0].title()} was given twice", hint="give two different cases")
    if cases[0].model != cases[1].model or dict(cases[0].sources).get("model") != dict(cases[1].sources).get("model"):
        raise UsageError(
            f"{cases[0].title()} and {cases[1].title()} run different models: no node of one is a node of the other",
            hint="give two cases of one model",
        )
    measurements = collect(dataset)
    names = names_of(cases)
    first, second = (_side(dataset, case, name, measurements) for case, name in zip(cases, names, strict=True))
    found = explained(first, second)
    slow, fast = (side.case for side in found.sides)
    return replace(found, software=differences_of_cases(dataset, slow, fast))


def explained(first: ExplainedCase, second: ExplainedCase) -> Explanation:
    """The explanation of two sides, whichever is slower."""
    sides = (second, first) if _is_faster(first, second) else (first, second)
    profiles = (sides[0].profile, sides[1].profile)
    return Explanation(sides, rows_of(profiles), tuple(_shares(profiles)))


def names_of(cases: tuple[Case, Case]) -> tuple[str, str]:
    """What tells two cases apart: the factors in which they differ, as far as they mean something for each."""
    values = [case.factors() for case in cases]
    differing = tuple(name for name in factor_names(cases) if values[0].get(name) != values[1].get(name))
    of_plan = tuple(name for name in differing if not (name in FACTORS and FACTORS[name].protocol)) or differing
    own = [tuple(name for name in of_plan if name in found) for found in values]
    meant = [tuple(name for name in own[i] if name not in case.idle) for i, case in enumerate(cases)]
    return cases[0].title(meant[0] or own[0]), cases[1].title(meant[1] or own[1])


def _side(dataset: Dataset, case: Case, name: str, measurements: Measurements) -> ExplainedCase:
    profile = read_profile(dataset, case.id)
    if profile is None:
        raise _no_profile(dataset, case)
    latency_ms = _mean(measurements, case, LATENCY)
    energies = {metric: _mean(measurements, case, metric) for metric in ENERGIES}
    return ExplainedCase(
        case=case,
        name=name,
        profile=profile,
        latency_ms=latency_ms,
        why_none=None if latency_ms is not None else measurements.why_empty(case.id, LATENCY),
        energies_j={metric: value for metric, value in energies.items() if value is not None},
        samples_per_s=_mean(measurements, case, THROUGHPUT),
        median_ms=_mean(measurements, case, MEDIAN),
    )


def _no_profile(dataset: Dataset, case: Case) -> UsageError:
    runtime = case.runtime_row
    if runtime is None or runtime.profile is None:
        able = [name for name, row in case.catalogue.runtimes.items() if row.profile is not None]
        engine = f"{case.runtime} does" if case.runtime else f"the workload {case.workload} does"
        return UsageError(
            f"{case.title()} cannot be explained: {engine} not tell the kernels that it runs",
            hint=f"give cases of {', '.join(able[:-1])} or {able[-1]}",
        )
    said = why_no_profile(dataset, case.id)
    told = f" ({said})" if said else ""
    hint = f"runs of this pybench store one: `pybench run {dataset.campaign.path} --rerun {case.id[:12]}`"
    return UsageError(f"{dataset.campaign.path}: no run of {case.title()} stored a profile{told}", hint=hint)


def _mean(measurements: Measurements, case: Case, metric: str) -> float | None:
    values = measurements.cell(case.id, metric).values
    return fmean(values.values()) if values else None


def _is_faster(first: ExplainedCase, second: ExplainedCase) -> bool:
    if first.latency_ms is not None and second.latency_ms is not None:
        return first.latency_ms < second.latency_ms
    return first.profile.total_ms < second.profile.total_ms


def _shares(profiles: tuple[Profile, Profile]) -> list[WorkShare]:
    """By kinds of work, those of constants apart; the costliest for the first side first."""
    kinds: list[tuple[Work, bool]] = [
        ("multiplying", False),
        ("moving", True),
        ("moving", False),
        ("quantising", True),
        ("quantising", False),
        ("other", False),
    ]
    found = []
    for work, constants in kinds:
        kernels = [[one for one in work_of(side, work) if one.of_constants == constants] for side in profiles]
        counts = (len(kernels[0]), len(kernels[1]))
        if any(counts):
            found.append(WorkShare(work, constants, counts, (total_ms(kernels[0]), total_ms(kernels[1]))))
    return sorted(found, key=lambda share: -share.excess_ms)


def _case_json(side: ExplainedCase) -> dict[str, Any]:
    profile = side.profile
    return {
        "case_id": side.case.id,
        "name": side.name,
        "title": side.case.title(),
        "latency_mean_ms": side.latency_ms,
        "latency_p50_ms": side.median_ms,
        "why_none": side.why_none,
        "profiled_ms": profile.total_ms if profile.has_times else None,
        "profiled_iteration_ms": profile.iteration_ms,
        "profile": {"source": profile.source, "method": profile.method, "iterations": profile.iterations},
        "kernels_count": len(profile.running),
        "qdq_nodes_count": profile.qdq_nodes,
        "energies_j": dict(side.energies_j),
        "throughput_samples_per_s": side.samples_per_s,
    }


def _row_json(row: KernelRow, has_times: bool) -> dict[str, Any]:
    return {
        "nodes": list(row.nodes),
        "excess_ms": row.excess_ms if has_times else None,
        "sides": [
            {
                "time_ms": side.time_ms if has_times else None,
                "kernels": _kernels_json(side.own),
                "around": _kernels_json(side.around),
            }
            for side in row.sides
        ],
    }


def _kernels_json(kernels: Sequence[Kernel]) -> list[dict[str, Any]]:
    return [_kernel_json(kernel) for kernel in kernels]


def _kernel_json(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "kernel": kernel.kernel,
        "work": kernel.work,
        "computes_in": kernel.computes_in,
        "inputs": list(kernel.inputs),
        "outputs": list(kernel.outputs),
        "of_constants": kernel.of_constants,
        "time_ms": kernel.time_ms,
    }
