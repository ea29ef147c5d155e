# SPDX-License-Identifier: Apache-2.0
"""What a case can yield: names of metrics, on a machine that has every sensor."""

from __future__ import annotations

from pybench.case import Case

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
_WAITS = ("wait_share_ratio",)
_GROSS, _NET = "gpu_energy_", "gpu_net_energy_"  # what is left above the power of idle windows
_CORES = ("cpu_cores_ratio",)
_TIMED = _LATENCIES + _PEAKS + _CORES + _JOULES
# What a runtime spends before a first iteration: TensorRT's is its engine's making, and eager torch has none.
_COMPILING = ("onnxruntime", "torch-compile", "torch-graph", "torch-tensorrt")
_YIELDS: dict[str, tuple[str, ...]] = {
    "infer": (*_TIMED, *_PER_SAMPLE, "model_bytes"),
    "train": (*_TIMED, *_PER_SAMPLE, *_PER_TOKEN, *_WAITS, "loss_first_nats", "loss_last_nats", "model_bytes"),
    "h2d": (*_TIMED, "bandwidth_gb_per_s", "gpu_energy_per_gb_j"),
    "tokenize": (*_TIMED, *_PER_SAMPLE, *_PER_TOKEN, "text_mb_per_s", *_WAITS),
    "accuracy": ("top1_percent", "top5_percent", "model_bytes", *_PEAKS),
    "noop": (),
}


def metrics_of(case: Case) -> frozenset[str]:
    """Names of the metrics that a case can yield on a machine that has every sensor."""
    tokens = case.workload == "infer" and case.model_row is not None and case.model_row.takes_ids
    graphs = case.runtime == "torch-graph" or (case.runtime == "tensorrt" and case.launch == "graph")
    replayed = case.workload == "infer" and graphs and case.path == "none" and not case.fed
    alone = _ALONE if case.arrivals == "closed" else ()
    compiled = case.runtime in _COMPILING and case.workload in ("infer", "accuracy")
    found = (
        _YIELDS[case.workload]
        + (_PER_TOKEN if tokens else ())
        + (_WAITS if tokens and (case.path != "none" or case.fed) else ())
        + ((*_ENQUEUE, *alone) if replayed else ())
        + (("compile_s",) if compiled else ())
    )
    gross = tuple(name for name in found if name.startswith(_GROSS)) if case.idle_window_s > 0 else ()
    return frozenset(found + tuple(name.replace(_GROSS, _NET, 1) for name in gross))
