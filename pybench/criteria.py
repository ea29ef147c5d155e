# SPDX-License-Identifier: Apache-2.0
"""Acceptance criteria: what a plan asks of its cases against their baseline, and which cases are compared with which.

A `Contrast` names baseline cases by factor values (`{precision: fp32}`): every other case is compared with the case
that has those values and equals it in all other factors. Each `Criterion` bounds one comparison of one metric; the list
of them, `CRITERIA`, is closed. Speed is measured by `infer`, accuracy by `accuracy`: `joined` brings them together.

This module compares cases, not runs: estimates, intervals and verdicts are `pybench.analysis`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pybench.case import (
    BOARD_SETTINGS,
    ENGINE_FACTORS,
    FACTORS,
    QUANTISING_FACTORS,
    TOKEN_MODELS,
    Case,
    floating_type,
    quantised_type,
)
from pybench.errors import UsageError
from pybench.recipe import images_of

Kind = Literal["ratio", "difference"]
Sense = Literal["min", "max"]


# --- the closed list -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CriterionKind:
    """One criterion that a plan may set. The number compared is case/baseline (`ratio`; baseline/case when `inverse`)
    or case - baseline (`difference`, in the metric's unit; percentages differ by percentage points)."""

    name: str
    metric: str
    kind: Kind
    sense: Sense
    meaning: str
    inverse: bool = False


_LIST = (
    # time
    CriterionKind(
        "speedup_min", "latency_mean_ms", "ratio", "min", "mean latency of the baseline over the case's", inverse=True
    ),
    CriterionKind("latency_mean_ratio_max", "latency_mean_ms", "ratio", "max", "mean latency over the baseline's"),
    CriterionKind("latency_p50_ratio_max", "latency_p50_ms", "ratio", "max", "median latency over the baseline's"),
    CriterionKind(
        "latency_p95_ratio_max", "latency_p95_ms", "ratio", "max", "95th percentile of latency over the baseline's"
    ),
    CriterionKind(
        "latency_p99_ratio_max", "latency_p99_ms", "ratio", "max", "99th percentile of latency over the baseline's"
    ),
    CriterionKind(
        "throughput_ratio_min", "throughput_samples_per_s", "ratio", "min", "samples a second over the baseline's"
    ),
    CriterionKind(
        "tokens_per_s_ratio_min", "throughput_tokens_per_s", "ratio", "min", "tokens a second over the baseline's"
    ),
    CriterionKind("text_rate_ratio_min", "text_mb_per_s", "ratio", "min", "bytes of text a second over the baseline's"),
    CriterionKind(
        "bandwidth_ratio_min", "bandwidth_gb_per_s", "ratio", "min", "bytes copied a second over the baseline's"
    ),
    CriterionKind(
        "wait_share_delta_max",
        "wait_share_ratio",
        "difference",
        "max",
        "share of time spent waiting, minus the baseline's",
    ),
    # memory and size
    CriterionKind(
        "peak_host_bytes_ratio_max", "peak_host_bytes", "ratio", "max", "largest resident set over the baseline's"
    ),
    CriterionKind(
        "peak_device_bytes_ratio_max", "peak_device_bytes", "ratio", "max", "largest device memory over the baseline's"
    ),
    CriterionKind(
        "model_bytes_ratio_max", "model_bytes", "ratio", "max", "size of the model's file over the baseline's"
    ),
    # energy
    CriterionKind(
        "gpu_energy_ratio_max", "gpu_energy_per_sample_j", "ratio", "max", "GPU energy for a sample over the baseline's"
    ),
    CriterionKind(
        "gpu_energy_per_token_ratio_max",
        "gpu_energy_per_token_j",
        "ratio",
        "max",
        "GPU energy for a token over the baseline's",
    ),
    CriterionKind(
        "gpu_energy_per_gb_ratio_max",
        "gpu_energy_per_gb_j",
        "ratio",
        "max",
        "GPU energy for 10^9 bytes copied over the baseline's",
    ),
    CriterionKind(
        "gpu_net_energy_ratio_max",
        "gpu_net_energy_per_sample_j",
        "ratio",
        "max",
        "GPU energy above idle for a sample over the baseline's",
    ),
    CriterionKind(
        "gpu_net_energy_per_token_ratio_max",
        "gpu_net_energy_per_token_j",
        "ratio",
        "max",
        "GPU energy above idle for a token over the baseline's",
    ),
    CriterionKind(
        "gpu_net_energy_per_gb_ratio_max",
        "gpu_net_energy_per_gb_j",
        "ratio",
        "max",
        "GPU energy above idle for 10^9 bytes copied over the baseline's",
    ),
    CriterionKind(
        "cpu_energy_ratio_max", "cpu_energy_per_sample_j", "ratio", "max", "CPU energy for a sample over the baseline's"
    ),
    CriterionKind(
        "cpu_energy_per_token_ratio_max",
        "cpu_energy_per_token_j",
        "ratio",
        "max",
        "CPU energy for a token over the baseline's",
    ),
    # accuracy and training
    CriterionKind(
        "top1_delta_pp_min", "top1_percent", "difference", "min", "Top-1 minus the baseline's, in percentage points"
    ),
    CriterionKind(
        "top5_delta_pp_min", "top5_percent", "difference", "min", "Top-5 minus the baseline's, in percentage points"
    ),
    CriterionKind(
        "loss_last_delta_nats_max", "loss_last_nats", "difference", "max", "last training loss minus the baseline's"
    ),
)

CRITERIA: dict[str, CriterionKind] = {kind.name: kind for kind in _LIST}


# --- what a plan declares -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Criterion:
    """One bound: the comparison of `metric` has to be at least (`min`) or at most (`max`) `threshold`."""

    name: str
    metric: str
    kind: Kind
    sense: Sense
    threshold: float
    inverse: bool = False

    def compare(self, case_value: float, baseline_value: float) -> float:
        """The number that the threshold bounds, from the metric of the case and of its baseline.

        Raises ZeroDivisionError for a ratio to zero: the caller decides what a metric of zero means.
        """
        if self.kind == "difference":
            return case_value - baseline_value
        return baseline_value / case_value if self.inverse else case_value / baseline_value

    def holds(self, compared: float) -> bool:
        """Whether a comparison is within the bound; equality is."""
        return compared >= self.threshold if self.sense == "min" else compared <= self.threshold


@dataclass(frozen=True, slots=True)
class Contrast:
    """Which cases are compared with which, and what is asked of them. `baseline`: factor -> value; `where`: only cases
    with these factors (a tuple: any of its values). Without `accept` the comparison is reported and not judged."""

    baseline: Mapping[str, Any]
    accept: tuple[Criterion, ...] = ()
    where: Mapping[str, Any] | None = None
    name: str | None = None

    def title(self) -> str:
        """Its name, or `against precision=fp32`."""
        values = ", ".join(f"{factor}={_written(value)}" for factor, value in self.baseline.items())
        return self.name or f"against {values}"

    def selects(self, case: Case) -> bool:
        """Whether `where` holds for a case."""
        return all(_value_fits(getattr(case, factor), wanted) for factor, wanted in (self.where or {}).items())


def parse(declared: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> tuple[Contrast, ...]:
    """The contrasts of a plan's `criteria`: one mapping or a list of them, with factor values already checked.

    Raises UsageError for an unknown key, criterion or factor and for a threshold that is no finite number.
    """
    if declared is None:
        return ()
    entries = [declared] if isinstance(declared, Mapping) else list(declared)
    return tuple(_parse_contrast(entry) for entry in entries)


def to_json(contrasts: Iterable[Contrast]) -> list[dict[str, Any]]:
    """The form stored in plan.resolved.json; a criterion carries metric, kind and sense for that file's readers."""
    return [
        {
            "name": contrast.name,
            "baseline": dict(contrast.baseline),
            "where": {factor: list(v) if isinstance(v, tuple) else v for factor, v in (contrast.where or {}).items()},
            "accept": [
                {
                    "name": criterion.name,
                    "metric": criterion.metric,
                    "kind": criterion.kind,
                    "sense": criterion.sense,
                    "inverse": criterion.inverse,
                    "threshold": criterion.threshold,
                }
                for criterion in contrast.accept
            ],
        }
        for contrast in contrasts
    ]


def from_json(stored: Iterable[Mapping[str, Any]]) -> tuple[Contrast, ...]:
    """The inverse of `to_json`; raises UsageError for a criterion that this version does not know."""
    return tuple(
        _parse_contrast({**entry, "accept": {one["name"]: one["threshold"] for one in entry.get("accept", ())}})
        for entry in stored
    )


def threshold_problem(kind: CriterionKind, threshold: Any) -> str | None:
    """What is wrong with a threshold, or None. Ratios are positive and finite, differences finite."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        return f"{kind.name} takes a number, not {threshold!r}"
    if not math.isfinite(threshold) or (kind.kind == "ratio" and threshold <= 0):
        wanted = "a finite ratio above 0" if kind.kind == "ratio" else "a finite number"
        return f"{kind.name} takes {wanted}, not {threshold}"
    return None


def _written(value: Any) -> str:
    """A value as a plan writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _parse_contrast(entry: Mapping[str, Any]) -> Contrast:
    _known(entry, ("name", "baseline", "accept", "where"), "key of criteria")
    baseline, where, accept = (dict(entry.get(key) or {}) for key in ("baseline", "where", "accept"))
    if not baseline:
        raise UsageError("criteria need a baseline", hint="such as `baseline: {precision: fp32}`")
    for factors in (baseline, where):
        _known(factors, tuple(FACTORS), "factor")
    _known(accept, tuple(CRITERIA), "criterion")
    problems = [threshold_problem(CRITERIA[name], threshold) for name, threshold in accept.items()]
    if any(problems):
        raise UsageError("; ".join(problem for problem in problems if problem))
    return Contrast(
        baseline=baseline,
        accept=tuple(_criterion(CRITERIA[name], threshold) for name, threshold in accept.items()),
        where={factor: tuple(value) if isinstance(value, list) else value for factor, value in where.items()},
        name=entry.get("name"),
    )


def _criterion(kind: CriterionKind, threshold: float) -> Criterion:
    return Criterion(kind.name, kind.metric, kind.kind, kind.sense, float(threshold), kind.inverse)


def _known(given: Mapping[str, Any], names: Sequence[str], what: str) -> None:
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            raise UsageError(f"unknown {what} {name!r}", hint=f"did you mean {near[0]!r}?" if near else None)


# --- which case is compared with which -----------------------------------------------------------------------------


def idle_factors(case: Case) -> frozenset[str]:
    """Factors that change nothing about a case because of another factor's value. A plan resets them to their default.

    A calibration without int8 or fp8, what TensorRT builds without TensorRT, a corpus with synthetic ids, a precision
    without a model, a board's settings without a board. `infer` judges no images: they are only what ranges are found
    on.
    """
    idle: set[str] = set()
    if quantised_type(case.precision) is None:
        idle.update(QUANTISING_FACTORS)
        if case.workload == "infer":
            idle.add("images")
        if floating_type(case.precision) == "fp32":
            idle.add("keep_fp32")
    idle.update(_idle_in_runtime(case))
    if case.workload == "infer":
        idle.add("image_limit")
    if case.workload == "tokenize" and case.model is None:
        idle.update(("runtime", "precision", "checkpoint", *BOARD_SETTINGS))
    if case.device == "cpu" or (case.workload == "noop" and case.device in ("auto", "cuda")):
        idle.update(BOARD_SETTINGS)
    if case.arrivals == "closed":
        idle.add("arrival_rate_per_s")
    if case.path == "none":
        idle.update(("corpus", "corpus_limit_bytes"))
        if case.workload != "tokenize":  # which draws synthetic ids from the tokenizer's vocabulary
            idle.add("tokenizer")
    return frozenset(idle)


def _idle_in_runtime(case: Case) -> set[str]:
    """Factors of other runtimes than the case's, or of other providers of it."""
    idle = set() if case.runtime == "tensorrt" else set(ENGINE_FACTORS)
    graphs = case.runtime in ("tensorrt", "torch-tensorrt")
    if not graphs and (case.runtime, case.provider) != ("onnxruntime", "cuda"):
        idle.add("launch")
    idle |= {name for name, runtime in RUNTIME_FACTORS.items() if case.runtime != runtime}
    return idle


RUNTIME_FACTORS = {"provider": "onnxruntime", "compile_mode": "torch-compile"}  # each of one runtime

# Factors that follow another one: where a baseline fixes that, they may differ if they are idle in one of the cases.
FOLLOWERS: dict[str, tuple[str, ...]] = {
    "precision": ("keep_fp32", *QUANTISING_FACTORS, "images"),
    "runtime": (*ENGINE_FACTORS, "launch", *RUNTIME_FACTORS),
    "provider": ("launch",),
    "arrivals": ("arrival_rate_per_s",),
    "path": ("tokenizer", "corpus", "corpus_limit_bytes"),
    "device": BOARD_SETTINGS,
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A case and the case that it is compared with."""

    case: Case
    baseline: Case


@dataclass(frozen=True, slots=True)
class Joined:
    """A speed with the accuracies of the same model, runtime and precision; `infer` is None where only those are."""

    infer: Pair | None
    accuracy: tuple[Pair, ...]


def pairs(cases: Sequence[Case], contrast: Contrast) -> tuple[Pair, ...]:
    """Every case that `where` selects and that is no baseline itself, with its baseline, in the order of `cases`.

    A case without a baseline is left out. A factor that follows from the baseline's (a calibration from `precision`)
    may differ when it is idle in one of the two. UsageError when several baselines fit one case.
    """
    baselines: dict[tuple[Any, ...], list[Case]] = {}
    for case in cases:
        if _is_baseline(case, contrast):
            baselines.setdefault(_match_key(case, contrast), []).append(case)
    found: list[Pair] = []
    for case in cases:
        if _is_baseline(case, contrast) or not contrast.selects(case):
            continue
        candidates = [
            other for other in baselines.get(_match_key(case, contrast), []) if _followers_fit(case, other, contrast)
        ]
        if len(candidates) > 1:
            raise _ambiguous(case, candidates)
        found.extend(Pair(case, other) for other in candidates)
    return tuple(found)


def joined(found: Sequence[Pair]) -> tuple[Joined, ...]:
    """The pairs of one contrast, `infer` joined with `accuracy` on (model, runtime, precision) of case and baseline.

    An `infer` pair without accuracies stands alone; an `accuracy` pair that no `infer` pair takes comes last, alone.
    Pairs of other workloads are not here. Two calibrations or quantisers of one precision are told apart, and what they
    were calibrated on.
    """
    accuracies: dict[tuple[Any, ...], list[Pair]] = {}
    for pair in found:
        if pair.case.workload == "accuracy":
            accuracies.setdefault(_join_key(pair), []).append(pair)
    speeds = [pair for pair in found if pair.case.workload == "infer"]
    taken = {_join_key(pair) for pair in speeds}
    alone = [Joined(None, tuple(members)) for key, members in accuracies.items() if key not in taken]
    return tuple(Joined(pair, tuple(accuracies.get(_join_key(pair), ()))) for pair in speeds) + tuple(alone)


def _is_baseline(case: Case, contrast: Contrast) -> bool:
    return all(getattr(case, factor) == value for factor, value in contrast.baseline.items())


def _followers(contrast: Contrast) -> set[str]:
    names = {"checkpoint"} if "model" in contrast.baseline else set()
    return names.union(*(FOLLOWERS.get(factor, ()) for factor in contrast.baseline)) - set(contrast.baseline)


def _match_key(case: Case, contrast: Contrast) -> tuple[Any, ...]:
    free = _followers(contrast) | set(contrast.baseline)
    sources = tuple(source for source in case.sources if source[0] not in free)
    return (*((name, value) for name, value in case.factors().items() if name not in free), sources)


def _followers_fit(case: Case, other: Case, contrast: Contrast) -> bool:
    idle = idle_factors(case) | idle_factors(other) | ({"checkpoint"} if "model" in contrast.baseline else set())
    return all(getattr(case, name) == getattr(other, name) for name in _followers(contrast) - idle)


def _ambiguous(case: Case, candidates: Sequence[Case]) -> UsageError:
    varying = [name for name in FACTORS if len({getattr(other, name) for other in candidates}) > 1]
    return UsageError(
        f"{len(candidates)} cases fit the baseline of `{case.title()}`: they differ in {', '.join(varying)}",
        hint=f"name {'its value' if len(varying) == 1 else 'their values'} in `baseline`",
    )


def _join_key(pair: Pair) -> tuple[Any, ...]:
    names = ("model", "checkpoint", "runtime", "provider", "precision", "keep_fp32", *QUANTISING_FACTORS)
    key: list[Any] = []
    for case in (pair.case, pair.baseline):
        key += [getattr(case, name) for name in names if name not in idle_factors(case)]
        if quantised_type(case.precision) is not None:  # what its ranges were found on is part of what ran
            key += [images_of(case), dict(case.sources).get("images")]
    return tuple(key)


def _value_fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, tuple) else bool(value == wanted)


# --- what a case can yield -----------------------------------------------------------------------------------------

_LATENCIES = ("latency_mean_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms")
_ALONE = ("latency_depth1_p50_ms", "latency_depth1_p99_ms")
_ENQUEUE = ("enqueue_p50_ms",)
_PEAKS = ("peak_host_bytes", "peak_device_bytes")
_JOULES = ("gpu_energy_j", "cpu_energy_j", "cpu_energy_estimate_j")
_PER_SAMPLE = (
    "throughput_samples_per_s",
    "gpu_energy_per_sample_j",
    "cpu_energy_per_sample_j",
    "cpu_energy_per_sample_estimate_j",
)
_PER_TOKEN = (
    "throughput_tokens_per_s", "gpu_energy_per_token_j", "gpu_tokens_per_s_per_w",
    "cpu_energy_per_token_j", "cpu_tokens_per_s_per_w", "cpu_energy_per_token_estimate_j",
)  # fmt: skip
_GROSS, _NET = "gpu_energy_", "gpu_net_energy_"  # what is left above the power of idle windows
_TIMED = _LATENCIES + _PEAKS + _JOULES
# What a runtime spends before a first iteration: TensorRT's is its engine's making, and eager torch has none.
_COMPILING = ("onnxruntime", "torch-compile", "torch-graph", "torch-tensorrt")
_YIELDS: dict[str, tuple[str, ...]] = {
    "infer": (*_TIMED, *_PER_SAMPLE, "model_bytes"),
    "train": (*_TIMED, *_PER_SAMPLE, *_PER_TOKEN, "loss_first_nats", "loss_last_nats", "model_bytes"),
    "h2d": (*_TIMED, "bandwidth_gb_per_s", "gpu_energy_per_gb_j"),
    "tokenize": (*_TIMED, *_PER_SAMPLE, *_PER_TOKEN, "text_mb_per_s", "wait_share_ratio"),
    "accuracy": ("top1_percent", "top5_percent", "model_bytes", *_PEAKS),
    "noop": (),
}


def metrics_of(case: Case) -> frozenset[str]:
    """Names of the metrics that a case can yield on a machine that has every sensor."""
    tokens = case.workload == "infer" and case.model in TOKEN_MODELS
    graphs = case.runtime == "torch-graph" or (case.runtime == "tensorrt" and case.launch == "graph")
    replayed = case.workload == "infer" and graphs and case.path == "none"
    alone = _ALONE if case.arrivals == "closed" else ()
    compiled = case.runtime in _COMPILING and case.workload in ("infer", "accuracy")
    found = (
        _YIELDS[case.workload]
        + (_PER_TOKEN if tokens else ())
        + ((*_ENQUEUE, *alone) if replayed else ())
        + (("compile_s",) if compiled else ())
    )
    gross = tuple(name for name in found if name.startswith(_GROSS)) if case.idle_window_s > 0 else ()
    return frozenset(found + tuple(name.replace(_GROSS, _NET, 1) for name in gross))
