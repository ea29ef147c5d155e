# SPDX-License-Identifier: Apache-2.0
"""Every metric that a run can carry, with its unit, its sense and the direction in which it is better: a closed list.

SI inside Python; the unit is the last part of the metric's name. A rate or ratio says so in its unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", "none"]

GIGA = 1e9  # GB and GB/s are 10^9 bytes, as in the papers and in vendors' data sheets
MEGA = 1e6


@dataclass(frozen=True, slots=True)
class Metric:
    """One kind of number. `better` drives ratios, criteria and `compare`; `none` marks context that is not judged."""

    name: str
    unit: str
    better: Better
    meaning: str
    scale: Literal["ratio", "difference"] = "ratio"  # how two values of it are compared


_LIST = (
    # time
    Metric("latency_mean_ms", "ms", "lower", "mean time of one iteration"),
    Metric("latency_p50_ms", "ms", "lower", "median time of one iteration (mean of the two middles)"),
    Metric("latency_p95_ms", "ms", "lower", "95th percentile of iteration times, by trtexec's rule"),
    Metric("latency_p99_ms", "ms", "lower", "99th percentile of iteration times, by trtexec's rule"),
    Metric(
        "latency_depth1_p50_ms",
        "ms",
        "lower",
        "median time of one replay alone, from its launch until the host sees it end",
    ),
    Metric(
        "latency_depth1_p99_ms",
        "ms",
        "lower",
        "99th percentile of replays alone, from the launch until the host sees the end",
    ),
    Metric("enqueue_p50_ms", "ms", "lower", "median time of the host's call that launches one replay"),
    Metric(
        "throughput_samples_per_s",
        "1/s",
        "higher",
        "timed samples, over the time from the first one's begin to the last one's end",
    ),
    Metric(
        "throughput_tokens_per_s",
        "1/s",
        "higher",
        "timed tokens, over the time from the first one's begin to the last one's end",
    ),
    Metric(
        "text_mb_per_s", "MB/s", "higher", "bytes of text turned into ids, over the timing window (1 MB = 10^6 bytes)"
    ),
    Metric(
        "bandwidth_gb_per_s",
        "GB/s",
        "higher",
        "bytes moved from host to device, over the copies' time (1 GB = 10^9 bytes)",
    ),
    Metric(
        "wait_share_ratio",
        "1",
        "lower",
        "share of the timing window in which the consumer waited for the next batch",
        "difference",
    ),
    Metric(
        "cpu_cores_ratio",
        "1",
        "lower",
        "CPU cores in use: processor time of the worker and what it has started, over the timing window",
    ),
    # memory and size
    Metric("peak_host_bytes", "bytes", "lower", "largest resident set of the worker in the timing window"),
    Metric("peak_device_bytes", "bytes", "lower", "largest device memory held by the worker"),
    Metric("model_bytes", "bytes", "lower", "size of the file that the runtime executes"),
    Metric("build_s", "s", "lower", "time from the ONNX file to the engine, on its GPU, once TensorRT is loaded"),
    Metric(
        "compile_s",
        "s",
        "lower",
        "time that the runtime took to make the model ready: graph passes, compilation with empty caches, capture",
    ),
    # energy of the GPU's board
    Metric("gpu_energy_j", "J", "none", "energy of the GPU board in the energy window"),
    Metric("gpu_energy_per_sample_j", "J", "lower", "energy of the GPU board for one sample"),
    Metric("gpu_energy_per_token_j", "J", "lower", "energy of the GPU board for one token"),
    Metric("gpu_energy_per_gb_j", "J/GB", "lower", "energy of the GPU board for 10^9 bytes copied"),
    Metric("gpu_tokens_per_s_per_w", "1/J", "higher", "tokens a second for one watt of the GPU board"),
    Metric("gpu_net_energy_j", "J", "none", "the same less the board's idle power over the window; signed"),
    Metric("gpu_net_energy_per_sample_j", "J", "lower", "energy above idle for one sample; signed"),
    Metric("gpu_net_energy_per_token_j", "J", "lower", "energy above idle for one token; signed"),
    Metric("gpu_net_energy_per_gb_j", "J/GB", "lower", "energy above idle for 10^9 bytes copied; signed"),
    Metric(
        "gpu_tail_energy_j",
        "J",
        "none",
        "energy above idle after the window, until the board is at rest; signed",
        scale="difference",  # it is often nothing but noise around 0
    ),
    Metric("gpu_idle_power_before_w", "W", "none", "power of the board with the model loaded, before any work"),
    Metric("gpu_idle_power_after_w", "W", "none", "power of the board at rest again, after the work"),
    # energy of the CPU's packages
    Metric(
        "cpu_energy_j", "J", "none", "energy of the CPU packages (and their memory where counted) in the energy window"
    ),
    Metric("cpu_energy_per_sample_j", "J", "lower", "energy of the CPU packages for one sample"),
    Metric("cpu_energy_per_token_j", "J", "lower", "energy of the CPU packages for one token"),
    Metric("cpu_tokens_per_s_per_w", "1/J", "higher", "tokens a second for one watt of the CPU packages"),
    # estimated, never measured: only ever an interval, never added to a joule above
    Metric("cpu_energy_estimate_j", "J", "none", "interval that holds the CPU's energy if its power bounds do"),
    Metric("cpu_energy_per_sample_estimate_j", "J", "none", "the same interval, for one sample"),
    Metric("cpu_energy_per_token_estimate_j", "J", "none", "the same interval, for one token"),
    # accuracy
    Metric("top1_percent", "%", "higher", "share of images whose most probable class is right", "difference"),
    Metric(
        "top5_percent",
        "%",
        "higher",
        "share of images whose five most probable classes hold the right one",
        "difference",
    ),
    # training
    Metric("loss_first_nats", "nat", "none", "cross-entropy at the first timed step", "difference"),
    Metric("loss_last_nats", "nat", "lower", "cross-entropy at the last timed step", "difference"),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _LIST}
