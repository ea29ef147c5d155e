# SPDX-License-Identifier: Apache-2.0
"""Short names of metrics, outcomes and verdicts for tables and figures; the closed lists are `pybench.units` and
`rundir`.

A test holds the names to `METRICS`. What a metric is exactly stands in its `meaning`, which the report prints once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybench.case import Case
from pybench.criteria import Criterion, Pair, idle_factors
from pybench.factors import FACTORS
from pybench.report.numbers import DisplayUnit, format_plain

METRIC_LABELS = {
    "latency_mean_ms": "Mean latency",
    "latency_p50_ms": "p50 latency",
    "latency_p95_ms": "p95 latency",
    "latency_p99_ms": "p99 latency",
    "latency_depth1_p50_ms": "p50 latency alone",
    "latency_depth1_p99_ms": "p99 latency alone",
    "enqueue_p50_ms": "p50 enqueue time",
    "throughput_samples_per_s": "Samples/s",
    "throughput_tokens_per_s": "Tokens/s",
    "text_mb_per_s": "Text rate",
    "bandwidth_gb_per_s": "Bandwidth",
    "wait_share_ratio": "Share waiting",
    "cpu_cores_ratio": "CPU cores in use",
    "peak_host_bytes": "Peak host memory",
    "peak_device_bytes": "Peak device memory",
    "model_bytes": "Model size",
    "build_s": "Engine build time",
    "compile_s": "Compile time",
    "gpu_energy_j": "GPU energy",
    "gpu_energy_per_sample_j": "GPU energy/sample",
    "gpu_energy_per_token_j": "GPU energy/token",
    "gpu_energy_per_gb_j": "GPU energy/GB",
    "gpu_tokens_per_s_per_w": "Tokens/s/W (GPU)",
    "gpu_net_energy_j": "GPU energy above idle",
    "gpu_net_energy_per_sample_j": "GPU energy above idle/sample",
    "gpu_net_energy_per_token_j": "GPU energy above idle/token",
    "gpu_net_energy_per_gb_j": "GPU energy above idle/GB",
    "gpu_tail_energy_j": "GPU energy after the window",
    "gpu_idle_power_before_w": "GPU idle power before",
    "gpu_idle_power_after_w": "GPU idle power after",
    "cpu_energy_j": "CPU energy",
    "cpu_energy_per_sample_j": "CPU energy/sample",
    "cpu_energy_per_token_j": "CPU energy/token",
    "cpu_tokens_per_s_per_w": "Tokens/s/W (CPU)",
    "cpu_energy_estimate_j": "CPU energy, bounds",
    "cpu_energy_per_sample_estimate_j": "CPU energy/sample, bounds",
    "cpu_energy_per_token_estimate_j": "CPU energy/token, bounds",
    "top1_percent": "Top-1",
    "top5_percent": "Top-5",
    "loss_first_nats": "First loss",
    "loss_last_nats": "Last loss",
}


def metric_title(name: str, unit: DisplayUnit) -> str:
    """`Mean latency (ms)`: a metric as the head of a column."""
    return METRIC_LABELS[name] if unit.name in ("1", "", "1/s") else f"{METRIC_LABELS[name]} ({unit.name})"


def criterion_label(criterion: Criterion) -> str:
    """The number that a criterion bounds: `Speed-up`, `p99 latency ratio`, `Top-1 difference (pp)`."""
    if criterion.inverse and criterion.metric == "latency_mean_ms":
        return "Speed-up"
    label = METRIC_LABELS[criterion.metric]
    if criterion.kind == "ratio":
        return f"{label} ratio"
    return f"{label} difference (pp)" if criterion.metric.endswith("_percent") else f"{label} difference"


def bound_text(criterion: Criterion) -> str:
    """`at least 1.15`."""
    return f"at {'least' if criterion.sense == 'min' else 'most'} {format_plain(criterion.threshold)}"


# Limits and settings of how a case is measured, beside which other factors tell cases apart for a reader.
_MINOR = frozenset({"calibration_images", "corpus_field", "corpus_limit_bytes", "fed", "image_limit", "threads"})


def varying_factors(cases: Sequence[Case]) -> tuple[str, ...]:
    """Factors that are not the same in all cases that they mean something for, in the order of `FACTORS`."""
    return tuple(name for name, values in _values(cases).items() if len({repr(value) for value in values}) > 1)


def _values(cases: Sequence[Case]) -> dict[str, list[object]]:
    """Factor -> its value in each of the cases that it means something for."""
    idle = [idle_factors(case) for case in cases]
    return {
        name: [getattr(case, name) for case, unused in zip(cases, idle, strict=True) if name not in unused]
        for name in FACTORS
    }


def naming_factors(cases: Sequence[Case]) -> tuple[str, ...]:
    """The varying factors that a figure's label needs: those of `_MINOR` are left out as far as no two cases then share
    a name. Tables show them all."""
    names = list(varying_factors(cases))
    for minor in [name for name in names if FACTORS[name].protocol or name in _MINOR]:
        fewer = [name for name in names if name != minor]
        if len({case_text(case, fewer) for case in cases}) == len({case_text(case, names) for case in cases}):
            names = fewer
    return tuple(names)


def constant_factors(cases: Sequence[Case]) -> dict[str, object]:
    """Factors that all cases share which they mean something for, and that some case set, protocol included."""
    names = [name for name in FACTORS if any(name in case.chosen() for case in cases)]
    values, varying = _values(cases), varying_factors(cases)
    return {name: values[name][0] for name in names if values[name] and name not in varying and name != "workload"}


def factor_text(name: str, value: object) -> str:
    """`fp32`, `batch 8`: values of closed lists and models speak for themselves."""
    shown = {True: "yes", False: "no", None: "default"}.get(value, value) if isinstance(value, bool | None) else value
    return str(shown) if FACTORS[name].kind == "choice" or name == "model" else f"{name.replace('_', ' ')} {shown}"


def case_text(case: Case, names: Iterable[str]) -> str:
    """The given factors of a case in one line; left out are those that mean nothing for it, and files not given."""
    idle = idle_factors(case)
    values = {name: getattr(case, name) for name in names if name not in idle}
    given = {name: value for name, value in values.items() if value is not None or FACTORS[name].kind != "file"}
    return ", ".join(factor_text(name, value) for name, value in given.items())


def pair_texts(pair: Pair, fixed: Sequence[str], context: Sequence[str]) -> tuple[str, str, str]:
    """(what the case has, what the baseline has, where): `int8`, `fp32`, `onnxruntime, batch 8`."""
    shown = [name for name in context if name not in fixed]
    return case_text(pair.case, fixed), case_text(pair.baseline, fixed), case_text(pair.case, shown)
