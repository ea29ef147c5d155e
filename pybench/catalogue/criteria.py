# SPDX-License-Identifier: Apache-2.0
"""The criteria that a plan may set: which metric each bounds, how it is compared, in which sense.

The list names those that have other names than their metric, or are more than one. Any other metric that is better in
one direction has one criterion, which follows from its row: `NAME_ratio_min` where more is better, `NAME_ratio_max`
where less is, `NAME_delta_...` where differences count. NAME is without `_ratio` there, unless a package adds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.metrics import Metric

Kind = Literal["ratio", "difference", "absolute"]
Sense = Literal["min", "max"]


@dataclass(frozen=True, slots=True)
class CriterionKind:
    """One criterion that a plan may set.

    name: as plans name it; ends in `_` and its `sense`
    metric: of the case, and of the baseline where there is one
    kind: what is compared with the bound. `ratio`: case/baseline, without a unit. `difference`: case - baseline, in the
        unit of the metric; percentages differ by percentage points. `absolute`: the metric of the case itself.
    sense: whether the bound is the least or the largest number that is accepted
    meaning: what is compared, for plans' authors
    inverse: of a ratio: it is baseline/case
    is_share: of an absolute number: it lies between 0 and 1
    """

    name: str
    metric: str
    kind: Kind
    sense: Sense
    meaning: str
    inverse: bool = False
    is_share: bool = False


_LIST = (
    # time
    CriterionKind(
        "speedup_min",
        "latency_mean_ms",
        "ratio",
        "min",
        "mean latency of the baseline divided by that of the case",
        inverse=True,
    ),
    CriterionKind(
        "latency_mean_ratio_max", "latency_mean_ms", "ratio", "max", "mean latency divided by that of the baseline"
    ),
    CriterionKind(
        "latency_p50_ratio_max", "latency_p50_ms", "ratio", "max", "median latency divided by that of the baseline"
    ),
    CriterionKind(
        "latency_p95_ratio_max",
        "latency_p95_ms",
        "ratio",
        "max",
        "95th percentile of latency divided by that of the baseline",
    ),
    CriterionKind(
        "latency_p99_ratio_max",
        "latency_p99_ms",
        "ratio",
        "max",
        "99th percentile of latency divided by that of the baseline",
    ),
    CriterionKind(
        "throughput_ratio_min",
        "throughput_samples_per_s",
        "ratio",
        "min",
        "samples a second divided by those of the baseline",
    ),
    CriterionKind(
        "tokens_per_s_ratio_min",
        "throughput_tokens_per_s",
        "ratio",
        "min",
        "tokens a second divided by those of the baseline",
    ),
    CriterionKind(
        "slo_attainment_delta_min",
        "slo_attainment_ratio",
        "difference",
        "min",
        "share of iterations within each bound of `slo_ms`, minus that of the baseline",
    ),
    CriterionKind(
        "goodput_ratio_min",
        "goodput_samples_per_s",
        "ratio",
        "min",
        "samples a second within each bound of `slo_ms`, divided by those of the baseline",
    ),
    CriterionKind(
        "slo_attainment_min",
        "slo_attainment_ratio",
        "absolute",
        "min",
        "share of iterations within each bound of `slo_ms`, of the case itself",
        is_share=True,
    ),
    CriterionKind(
        "goodput_min",
        "goodput_samples_per_s",
        "absolute",
        "min",
        "samples a second within each bound of `slo_ms`, of the case itself",
    ),
    CriterionKind(
        "ttft_ratio_max", "ttft_ms", "ratio", "max", "time to the first token divided by that of the baseline"
    ),
    CriterionKind("tpot_ratio_max", "tpot_ms", "ratio", "max", "time per output token divided by that of the baseline"),
    CriterionKind(
        "output_tokens_per_s_ratio_min",
        "output_tokens_per_s",
        "ratio",
        "min",
        "generated tokens a second divided by those of the baseline",
    ),
    CriterionKind(
        "text_rate_ratio_min",
        "text_mb_per_s",
        "ratio",
        "min",
        "bytes of text a second divided by those of the baseline",
    ),
    CriterionKind(
        "bandwidth_ratio_min",
        "bandwidth_gb_per_s",
        "ratio",
        "min",
        "bytes copied a second divided by those of the baseline",
    ),
    CriterionKind(
        "wait_share_delta_max",
        "wait_share_ratio",
        "difference",
        "max",
        "share of time spent waiting, minus that of the baseline",
    ),
    # memory and size
    CriterionKind(
        "peak_host_bytes_ratio_max",
        "peak_host_bytes",
        "ratio",
        "max",
        "largest resident set divided by that of the baseline",
    ),
    CriterionKind(
        "peak_device_bytes_ratio_max",
        "peak_device_bytes",
        "ratio",
        "max",
        "largest device memory divided by that of the baseline",
    ),
    CriterionKind(
        "model_bytes_ratio_max",
        "model_bytes",
        "ratio",
        "max",
        "size of the model's file divided by that of the baseline",
    ),
    CriterionKind(
        "step_peak_bytes_ratio_max",
        "step_peak_bytes",
        "ratio",
        "max",
        "peak memory of a training step divided by that of the baseline",
    ),
    CriterionKind(
        "kv_cache_bytes_ratio_max",
        "kv_cache_bytes",
        "ratio",
        "max",
        "size of the cache of keys and values divided by that of the baseline",
    ),
    # energy
    CriterionKind(
        "gpu_energy_ratio_max",
        "gpu_energy_per_sample_j",
        "ratio",
        "max",
        "GPU energy for a sample divided by that of the baseline",
    ),
    CriterionKind(
        "gpu_energy_per_token_ratio_max",
        "gpu_energy_per_token_j",
        "ratio",
        "max",
        "GPU energy for a token divided by that of the baseline",
    ),
    CriterionKind(
        "gpu_energy_per_input_token_ratio_max",
        "gpu_energy_per_input_token_j",
        "ratio",
        "max",
        "GPU energy for a token of a prompt divided by that of the baseline",
    ),
    CriterionKind(
        "gpu_energy_per_output_token_ratio_max",
        "gpu_energy_per_output_token_j",
        "ratio",
        "max",
        "GPU energy for a generated token divided by that of the baseline",
    ),
    CriterionKind(
        "gpu_energy_per_gb_ratio_max",
        "gpu_energy_per_gb_j",
        "ratio",
        "max",
        "GPU energy for 10^9 bytes copied divided by that of the baseline",
    ),
    CriterionKind(
        "gpu_net_energy_ratio_max",
        "gpu_net_energy_per_sample_j",
        "ratio",
        "max",
        "GPU energy above idle for a sample divided by that of the baseline",
    ),
    CriterionKind(
        "gpu_net_energy_per_token_ratio_max",
        "gpu_net_energy_per_token_j",
        "ratio",
        "max",
        "GPU energy above idle for a token divided by that of the baseline",
    ),
    CriterionKind(
        "gpu_net_energy_per_gb_ratio_max",
        "gpu_net_energy_per_gb_j",
        "ratio",
        "max",
        "GPU energy above idle for 10^9 bytes copied divided by that of the baseline",
    ),
    CriterionKind(
        "cpu_energy_ratio_max",
        "cpu_energy_per_sample_j",
        "ratio",
        "max",
        "CPU energy for a sample divided by that of the baseline",
    ),
    CriterionKind(
        "cpu_energy_per_token_ratio_max",
        "cpu_energy_per_token_j",
        "ratio",
        "max",
        "CPU energy for a token divided by that of the baseline",
    ),
    CriterionKind(
        "cpu_energy_per_input_token_ratio_max",
        "cpu_energy_per_input_token_j",
        "ratio",
        "max",
        "CPU energy for a token of a prompt divided by that of the baseline",
    ),
    CriterionKind(
        "cpu_energy_per_output_token_ratio_max",
        "cpu_energy_per_output_token_j",
        "ratio",
        "max",
        "CPU energy for a generated token divided by that of the baseline",
    ),
    CriterionKind(
        "system_energy_per_token_ratio_max",
        "system_energy_per_token_j",
        "ratio",
        "max",
        "energy of GPU and CPU for a token divided by that of the baseline",
    ),
    # accuracy and training
    CriterionKind(
        "top1_delta_pp_min",
        "top1_percent",
        "difference",
        "min",
        "Top-1 minus that of the baseline, in percentage points",
    ),
    CriterionKind(
        "top5_delta_pp_min",
        "top5_percent",
        "difference",
        "min",
        "Top-5 minus that of the baseline, in percentage points",
    ),
    CriterionKind(
        "dice_delta_pp_min",
        "dice_percent",
        "difference",
        "min",
        "Dice minus that of the baseline, in percentage points",
    ),
    # a file in lower precision is compared with FP32 already, and FP32 has none of these
    CriterionKind(
        "relative_error_max",
        "relative_error_ratio",
        "absolute",
        "max",
        "relative error of the outputs, of the case itself",
    ),
    CriterionKind(
        "signal_error_max",
        "signal_error_ratio",
        "absolute",
        "max",
        "error of the outputs over what the inputs change, of the case itself",
    ),
    CriterionKind(
        "cosine_min", "cosine_ratio", "absolute", "min", "cosine of the outputs, of the case itself", is_share=True
    ),
    CriterionKind(
        "top1_agreement_min",
        "top1_agreement_ratio",
        "absolute",
        "min",
        "share of samples with the Top-1 of FP32, of the case itself",
        is_share=True,
    ),
    CriterionKind("perplexity_ratio_max", "perplexity", "ratio", "max", "perplexity divided by that of the baseline"),
    CriterionKind(
        "linf_error_ratio_max", "linf_error", "ratio", "max", "largest error divided by that of the baseline"
    ),
    CriterionKind(
        "fp32_token_agreement_delta_min",
        "fp32_token_agreement_ratio",
        "difference",
        "min",
        "share of new tokens before the first that differs from FP32, minus that of the baseline",
    ),
    CriterionKind(
        "loss_last_delta_nats_max",
        "loss_last_nats",
        "difference",
        "max",
        "last training loss minus that of the baseline",
    ),
)

_LISTED = {kind.metric for kind in _LIST}


def criteria_of(catalogue: Catalogue) -> Mapping[str, CriterionKind]:
    """`CRITERIA`, then the criterion of each metric that a package adds."""
    if catalogue is BUILT_IN:
        return CRITERIA
    added = [_criterion_of(row) for row in catalogue.metrics.values() if row.plugin is not None and _is_judged(row)]
    return CRITERIA | {kind.name: kind for kind in added if _is_unlike_metrics(kind, catalogue)}


def compared_of(catalogue: Catalogue) -> Mapping[str, CriterionKind]:
    """Name -> criterion of what is compared, whatever the bound: `speedup` of `speedup_min`."""
    return {compared_name(name): kind for name, kind in criteria_of(catalogue).items()}


def compared_name(criterion: str) -> str:
    """The name of a criterion without its sense."""
    return criterion.rpartition("_")[0]


def _is_unlike_metrics(kind: CriterionKind, catalogue: Catalogue) -> bool:
    """Whether what it compares has another name than each metric, which curves and published values are of, too."""
    return compared_name(kind.name) not in catalogue.metrics


def _is_judged(row: Metric) -> bool:
    """Whether a metric has a criterion by its row. The rows at bounds follow from their metric."""
    return row.better != "none" and row.bound_ms is None and not row.is_interval


def _criterion_of(row: Metric) -> CriterionKind:
    sense: Sense = "min" if row.better == "higher" else "max"
    name = row.name if row.plugin is not None else row.name.removesuffix("_ratio")
    if row.scale == "ratio":
        meaning = f"{row.meaning}; divided by the value of the baseline"
        return CriterionKind(f"{name}_ratio_{sense}", row.name, "ratio", sense, meaning)
    return CriterionKind(
        f"{name}_delta_{sense}", row.name, "difference", sense, f"{row.meaning}; minus the value of the baseline"
    )


_derived = [_criterion_of(row) for row in BUILT_IN.metrics.values() if row.name not in _LISTED and _is_judged(row)]
CRITERIA: dict[str, CriterionKind] = {
    kind.name: kind for kind in (*_LIST, *(kind for kind in _derived if _is_unlike_metrics(kind, BUILT_IN)))
}


MOST_RATIO = 1e9  # of a bound, and its inverse the least: no two cases of one comparison differ by more


def threshold_problem(kind: CriterionKind, threshold: Any) -> str | None:
    """What is wrong with a threshold, or None. Rates are positive and finite, differences finite."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        return f"{kind.name} takes a number, not {threshold!r}"
    if kind.is_share and not 0 < threshold <= 1:
        return f"{kind.name} takes a share above 0 and up to 1, not {threshold}"
    if kind.kind == "ratio" and not 1 / MOST_RATIO <= threshold <= MOST_RATIO:
        return f"{kind.name} takes a ratio from {1 / MOST_RATIO:g} to {MOST_RATIO:g}, not {threshold}"
    if not math.isfinite(threshold) or (kind.kind != "difference" and threshold <= 0):
        wanted = "a finite number" if kind.kind == "difference" else "a finite number above 0"
        return f"{kind.name} takes {wanted}, not {threshold}"
    return None
