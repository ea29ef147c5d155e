# SPDX-License-Identifier: Apache-2.0
"""Why one case is slower than another, or needs more energy: their difference, assigned to ONNX nodes.

Profiled times explain, unprofiled times count: profiling changes both, so they stand next to each other and are never
mixed. What counts is the ratio of both cases, paired in blocks, with its interval; a profile has none. No sensor tells
the energy of one kernel. So a ratio of energies is split into time and mean power, whose product it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pybench.analysis.comparability import (
    PairComparability,
    SoftwareComparisons,
    SoftwareDifference,
    differences_of_cases,
)
from pybench.analysis.findings.cases import estimate_of
from pybench.analysis.findings.kernel_rows import KernelRow, KernelRows, rows_of
from pybench.analysis.measurements import Measurements, collect
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.statistics.paired import Effect, compare_paired
from pybench.case import Case
from pybench.case.factors import FACTORS, factor_names
from pybench.case.yields import is_profiled
from pybench.catalogue.metrics import METRICS
from pybench.dataset import Dataset
from pybench.dataset.profiles import read_profile, why_no_profile
from pybench.errors import UsageError
from pybench.kernels.profile import Kernel, Profile, Work, total_ms, work_of

LATENCY = "latency_mean_ms"
MEDIAN = "latency_p50_ms"
THROUGHPUT = "throughput_samples_per_s"
ENERGIES = ("gpu_energy_per_sample_j", "cpu_energy_per_sample_j")
CORE_PROBE = "core_probe_mean_ms"
_RATIOS = (LATENCY, MEDIAN, THROUGHPUT, *ENERGIES, CORE_PROBE)
ENOUGH_RATIO = 0.95  # of the profiled time that rows have to cover


@dataclass(frozen=True, slots=True)
class ExplainedCase:
    """One side.

    name: what tells it from the other
    estimates: metric -> its geometric mean over the runs that count, unprofiled; none where no run counts
    why_none: why there is no mean latency
    """

    case: Case
    name: str
    profile: Profile
    estimates: Mapping[str, Estimate]
    why_none: str | None

    @property
    def latency_ms(self) -> float | None:
        """The mean iteration."""
        return self._value(LATENCY)

    @property
    def median_ms(self) -> float | None:
        """The median iteration."""
        return self._value(MEDIAN)

    def _value(self, metric: str) -> float | None:
        return self.estimates[metric].value if metric in self.estimates else None


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
    The second side is the baseline.

    ratios: metric -> the first side over the second, paired within blocks; none where no pair counts
    throughputs: metric of energy -> the same of throughputs, in the blocks of that energy
    why_no_ratio: why there is none of the latencies
    software: what the runs of the two have different values of
    folder: of the campaign, for commands that are named; None where it is not known
    """

    sides: tuple[ExplainedCase, ExplainedCase]
    rows: KernelRows
    shares: tuple[WorkShare, ...]
    ratios: Mapping[str, Estimate]
    throughputs: Mapping[str, Estimate] = field(default_factory=dict)
    why_no_ratio: str | None = None
    software: tuple[SoftwareDifference, ...] = ()
    folder: Path | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the interval of the ratio of latencies excludes 1."""
        ratio = self.ratios.get(LATENCY)
        return ratio is not None and excludes_one(ratio)

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
            "is_shown": self.is_shown,
            "ratios": {metric: ratio.as_json() for metric, ratio in self.ratios.items()},
            "why_no_ratio": self.why_no_ratio,
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
    comparability = SoftwareComparisons(dataset.software).between(*cases)
    effects = _effects(comparability, cases, measurements)
    ratios = {metric: effect.estimate for metric, effect in effects.items()}
    found = explained(first, second, ratios, _throughputs(effects, cases, measurements))
    if LATENCY not in ratios:
        why = comparability.why() if comparability.excluded else "no block has values of both sides"
        found = replace(found, why_no_ratio=why)
    slow, fast = (side.case for side in found.sides)
    return replace(found, software=differences_of_cases(dataset, slow, fast), folder=dataset.campaign.path)


def explained(
    first: ExplainedCase,
    second: ExplainedCase,
    ratios: Mapping[str, Estimate],
    throughputs: Mapping[str, Estimate] | None = None,
) -> Explanation:
    """The explanation of two sides, whichever is slower. `ratios`, `throughputs`: of the first over the second."""
    sides, throughputs = (first, second), throughputs or {}
    if _is_faster(first, second, ratios.get(LATENCY)):
        sides = (second, first)
        ratios, throughputs = (
            {metric: ratio.inverse() for metric, ratio in one.items()} for one in (ratios, throughputs)
        )
    profiles = (sides[0].profile, sides[1].profile)
    return Explanation(sides, rows_of(profiles), tuple(_shares(profiles)), ratios, throughputs)


def excludes_one(ratio: Estimate) -> bool:
    """Whether a ratio has an interval without 1: only then is a difference shown."""
    if ratio.lower is None or ratio.upper is None or ratio.lower == ratio.upper:
        return False
    return not ratio.lower <= 1 <= ratio.upper


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
    means = {
        name: estimate_of(METRICS[name], [*measurements.cell(case.id, name).values.values()], measurements.tests)
        for name in _RATIOS
    }
    return ExplainedCase(
        case=case,
        name=name,
        profile=profile,
        estimates={metric: mean for metric, mean in means.items() if mean is not None},
        why_none=None if means[LATENCY] is not None else measurements.why_empty(case.id, LATENCY),
    )


def _effects(
    comparability: PairComparability, cases: tuple[Case, Case], measurements: Measurements
) -> dict[str, Effect]:
    """The first case over the second as in a report: in blocks with the same board and software."""
    found: dict[str, Effect] = {}
    for metric in _RATIOS:
        first, second = (comparability.kept(measurements.cell(case.id, metric).values) for case in cases)
        if all(value > 0 for value in (*first.values(), *second.values())):
            effect = compare_paired(first, second, "ratio", tests=measurements.tests)
            found |= {metric: effect} if effect is not None else {}
    return found


def _throughputs(
    effects: Mapping[str, Effect], cases: tuple[Case, Case], measurements: Measurements
) -> dict[str, Estimate]:
    """Metric of energy -> ratio of throughputs in its blocks; without one that lacks such a block."""
    found: dict[str, Estimate] = {}
    for metric in ENERGIES:
        blocks = effects[metric].pairing.blocks if metric in effects else ()
        sides = [measurements.cell(case.id, THROUGHPUT).values for case in cases]
        if blocks and all(block in side for side in sides for block in blocks):
            first, second = ({block: side[block] for block in blocks} for side in sides)
            effect = compare_paired(first, second, "ratio", tests=measurements.tests)
            found |= {metric: effect.estimate} if effect is not None else {}
    return found


def _no_profile(dataset: Dataset, case: Case) -> UsageError:
    runtime = case.runtime_row
    if runtime is None or runtime.profile is None:
        able = [name for name, row in case.catalogue.runtimes.items() if row.profile is not None]
        engine = f"{case.runtime} does" if case.runtime else f"the workload {case.workload} does"
        return UsageError(
            f"{case.title()} cannot be explained: {engine} not tell the kernels that it runs",
            hint=f"give cases of {', '.join(able[:-1])} or {able[-1]}",
        )
    if not is_profiled(case):
        # Running it again would not help: no run of such a case makes a profile.
        profiled = [one for one in dataset.plan.cases if one.model == case.model and is_profiled(one)]
        named = (
            ", such as " + " and ".join(f"{one.id[:12]} ({one.title()})" for one in profiled[:2]) if profiled else ""
        )
        return UsageError(
            f"{case.title()} cannot be explained: runs of the workload {case.workload} make no profile",
            hint=f"give cases of the workload infer{named}",
        )
    said = why_no_profile(dataset, case.id)
    told = f" ({said})" if said else ""
    hint = f"runs of this pybench store one: `pybench run {dataset.campaign.path} --rerun {case.id[:12]}`"
    return UsageError(f"{dataset.campaign.path}: no run of {case.title()} stored a profile{told}", hint=hint)


def _is_faster(first: ExplainedCase, second: ExplainedCase, ratio: Estimate | None) -> bool:
    if ratio is not None:
        return ratio.value < 1
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
        "energies_j": {metric: side.estimates[metric].value for metric in ENERGIES if metric in side.estimates},
        "throughput_samples_per_s": side.estimates[THROUGHPUT].value if THROUGHPUT in side.estimates else None,
        "estimates": {metric: mean.as_json() for metric, mean in side.estimates.items()},
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
