# SPDX-License-Identifier: Apache-2.0
"""Every metric that a run can have: what it is, its unit, which direction is better, what it rests on.

The order of the rows is the order of tables, and of the sections of docs/metrics.md, which is made of them.
SI inside Python; the unit is the last part of the metric's name. A rate or ratio says so in its unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pybench.catalogue.heads import MOST_HEADS
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.rows import Rows
from pybench.catalogue.validities import ValidityKind

Better = Literal["lower", "higher", "none"]
Group = Literal[
    "time",
    "heads",
    "kernels",
    "memory and size",
    "energy of the GPU",
    "energy of the CPU",
    "energy of both",
    "energy of the module",
    "accuracy",
    "training",
]
Amount = Literal["sample", "token", "input_token", "output_token", "gb"]

GPU: Group = "energy of the GPU"
_AT = "@"  # between a metric's name and its bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One kind of number.

    name: as stored
    group: the section of the documents that it is in
    unit: of the stored value; 1 for a ratio
    better: the direction that ratios, criteria and `compare` judge by; `none` marks context that is not judged
    label: a few words for the heads of columns and axes
    meaning: one phrase that is exact
    rests_on: the validity of a run without which the value does not count, next to `precision`, on which every value
        rests; None: no other
    scale: how two values are compared
    of: the total that it is made of, `gpu_energy_j` for the energy of one sample; None: it is made of no other metric
    per: of what that total is told for one
    is_inverse: what the total is spent on, divided by the total, instead of the total divided by that
    is_counted: counted, not sampled: values that are equal in all runs are exact
    needs_every_run: a run has no value where it ended too early, and would have a larger one: the mean of a case needs
        a value of each of its runs
    is_share: lies between 0 and 1 (100 where the unit is %), and so does its interval
    is_interval: only ever an interval without a value: an estimate, which is never added to a measured number
    hit_column: the column of predictions that it is the share of true values of; then units of the data (images, say)
        are its unit, not runs
    score_column: the column of predictions that it is the mean of; the same then holds. On a ratio scale scores are
        natural logarithms, and it is the exponential of their mean
    is_per_bound: not stored but evaluated from stored iterations, once for each bound of `slo_ms`; the rows of
        `at_bound` then stand for it
    bound_ms: the bound that it is evaluated at
    plugin: the package that adds it; None: pybench
    """

    name: str
    group: Group
    unit: str
    better: Better
    label: str
    meaning: str
    rests_on: ValidityKind | None
    scale: Literal["ratio", "difference"] = "ratio"
    of: str | None = None
    per: Amount | None = None
    is_inverse: bool = False
    is_counted: bool = False
    needs_every_run: bool = False
    is_share: bool = False
    is_interval: bool = False
    hit_column: str | None = None
    score_column: str | None = None
    is_per_bound: bool = False
    bound_ms: float | None = None
    plugin: Plugin | None = None

    def at_bound(self, bound_ms: float) -> Metric:
        """The row of one bound: `slo_attainment_ratio@50ms`."""
        bound = f"{bound_ms:.12g}"
        return replace(
            self,
            name=f"{self.name}{_AT}{bound}ms",
            label=f"{self.label} at {bound} ms",
            meaning=f"{self.meaning}; the bound is {bound} ms",
            is_per_bound=False,
            bound_ms=bound_ms,
        )

    @property
    def is_over_units(self) -> bool:
        """Whether the units of a data set are its unit, so that two cases are paired by them."""
        return self.hit_column is not None or self.score_column is not None

    @property
    def mean(self) -> Literal["geometric", "arithmetic"]:
        """How the values of runs are averaged. A geometric mean needs values above 0; else it is arithmetic."""
        return "geometric" if self.scale == "ratio" else "arithmetic"

    @property
    def limits(self) -> tuple[float, float] | None:
        """Least and largest possible value, if it is a share."""
        return (0.0, 100.0 if self.unit == "%" else 1.0) if self.is_share else None

    @property
    def has_board_gain(self) -> bool:
        """Whether the unknown gain of one GPU board's sensor is in it: it cancels in ratios on that board."""
        return self.group == GPU


def _of_head(number: int) -> tuple[Metric, ...]:
    """The rows of one head of a shared backbone; their names are those of `heads.head_metrics`."""
    name, label = f"head{number}", f"Head {number}"
    begin = "the arrival of a frame, or the begin of its iteration,"
    of_head = partial(Metric, group="heads", rests_on="timing")
    return (
        of_head(
            name=f"{name}_rate_per_s",
            unit="1/s",
            better="higher",
            label=f"{label}: rate",
            meaning=f"runs of head {number} that ended in a second of the timing window",
        ),
        of_head(
            name=f"{name}_latency_p50_ms",
            unit="ms",
            better="lower",
            label=f"{label}: p50 latency",
            meaning=f"median time from {begin} to the end of head {number}",
        ),
        of_head(
            name=f"{name}_latency_p99_ms",
            unit="ms",
            better="lower",
            label=f"{label}: p99 latency",
            meaning=f"99th percentile of the time from {begin} to the end of head {number}",
        ),
        of_head(
            name=f"{name}_deadline_miss_ratio",
            unit="1",
            better="lower",
            label=f"{label}: misses",
            meaning=f"share of runs of head {number} that ended more than one period of its rate after the arrival",
            scale="difference",
            is_share=True,
        ),
    )


_ROWS = (
    # --- time ---
    Metric(
        name="latency_mean_ms",
        group="time",
        unit="ms",
        better="lower",
        label="Mean latency",
        meaning="mean time of one iteration",
        rests_on="timing",
    ),
    Metric(
        name="latency_p50_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p50 latency",
        meaning="median time of one iteration; the mean of the two middle ones if their number is even",
        rests_on="timing",
    ),
    Metric(
        name="latency_p95_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p95 latency",
        meaning="95th percentile of iteration times, by trtexec's rule",
        rests_on="timing",
    ),
    Metric(
        name="latency_p99_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p99 latency",
        meaning="99th percentile of iteration times, by trtexec's rule",
        rests_on="timing",
    ),
    Metric(
        name="latency_depth1_p50_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p50 latency at depth 1",
        meaning="median time of one graph replay, from launch to its end on the host, with no other replay in flight",
        rests_on="timing",
    ),
    Metric(
        name="latency_depth1_p99_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p99 latency at depth 1",
        meaning="99th percentile of times of one graph replay with no other replay in flight",
        rests_on="timing",
    ),
    Metric(
        name="enqueue_p50_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p50 enqueue time",
        meaning="median time of the host's call that launches one graph replay",
        rests_on="timing",
    ),
    Metric(
        name="throughput_samples_per_s",
        group="time",
        unit="1/s",
        better="higher",
        label="Samples/s",
        meaning="timed samples, divided by the time from the begin of the first iteration to the end of the last",
        rests_on="timing",
    ),
    Metric(
        name="throughput_tokens_per_s",
        group="time",
        unit="1/s",
        better="higher",
        label="Tokens/s",
        meaning="timed tokens, divided by the time from the begin of the first iteration to the end of the last",
        rests_on="timing",
    ),
    Metric(
        name="slo_attainment_ratio",
        group="time",
        unit="1",
        better="higher",
        label="SLO attainment",
        meaning="share of timed iterations whose latency (with arrivals: response time) is at most a bound of `slo_ms`",
        rests_on="timing",
        scale="difference",
        is_share=True,
        is_per_bound=True,
    ),
    Metric(
        name="goodput_samples_per_s",
        group="time",
        unit="1/s",
        better="higher",
        label="Goodput",
        meaning="timed samples whose latency is at most a bound of `slo_ms`, divided by the time that "
        "throughput_samples_per_s is about",
        rests_on="timing",
        is_per_bound=True,
    ),
    Metric(
        name="ttft_ms",
        group="time",
        unit="ms",
        better="lower",
        label="Time to first token",
        meaning="mean time from the begin or arrival of a request until its first tokens are on the host",
        rests_on="timing",
    ),
    Metric(
        name="ttft_p99_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p99 time to first token",
        meaning="99th percentile of times to the first token, by trtexec's rule",
        rests_on="timing",
    ),
    Metric(
        name="tpot_ms",
        group="time",
        unit="ms",
        better="lower",
        label="Time per output token",
        meaning="mean time from the first tokens of a request to its last ones, divided by the tokens of a "
        "sample after the first",
        rests_on="timing",
    ),
    Metric(
        name="tpot_p99_ms",
        group="time",
        unit="ms",
        better="lower",
        label="p99 time per output token",
        meaning="99th percentile of the requests' times per output token, by trtexec's rule",
        rests_on="timing",
    ),
    Metric(
        name="output_tokens_per_s",
        group="time",
        unit="1/s",
        better="higher",
        label="Output tokens/s",
        meaning="tokens that all samples were continued by, divided by the time from the begin of the first request to "
        "the end of the last",
        rests_on="timing",
    ),
    Metric(
        name="text_mb_per_s",
        group="time",
        unit="MB/s",
        better="higher",
        label="Text rate",
        meaning="bytes of text turned into ids, divided by the timing window (1 MB is 10^6 bytes)",
        rests_on="timing",
    ),
    Metric(
        name="bandwidth_gb_per_s",
        group="time",
        unit="GB/s",
        better="higher",
        label="Bandwidth",
        meaning="bytes copied in all directions, divided by the time of the copies (1 GB is 10^9 bytes)",
        rests_on="timing",
    ),
    Metric(
        name="wait_share_ratio",
        group="time",
        unit="1",
        better="lower",
        label="Share waiting",
        meaning="share of the timing window in which the consumer waited for the next batch",
        rests_on="timing",
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="cpu_cores_ratio",
        group="time",
        unit="1",
        better="lower",
        label="CPU cores in use",
        meaning="processor time of the worker and of the processes that it started, divided by the timing window",
        rests_on="timing",
    ),
    Metric(
        name="cpu_utilisation_ratio",
        group="time",
        unit="1",
        better="none",
        label="CPU utilisation",
        meaning="share of the CPUs that the worker may use (affinity, and quota of its control group) that are in use, "
        "on average over the timing window",
        rests_on="timing",
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="gpu_utilisation_ratio",
        group="time",
        unit="1",
        better="none",
        label="GPU utilisation",
        meaning="share of the energy window in which a kernel of any process ran, by NVML; how much of the GPU it "
        "used is not in it",
        rests_on="timing",
        scale="difference",
        is_share=True,
    ),
    *(row for number in range(1, MOST_HEADS + 1) for row in _of_head(number)),
    # --- kernels ---
    Metric(
        name="kernels_count",
        group="kernels",
        unit="count",
        better="none",
        label="Kernels",
        meaning="kernels that one iteration runs, by a profile that was made after every window",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="moving_kernels_count",
        group="kernels",
        unit="count",
        better="none",
        label="Moving kernels",
        meaning="kernels that only copy, transpose, cast or change the layout of a tensor; "
        "those that quantise are not among them",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="qdq_nodes_count",
        group="kernels",
        unit="count",
        better="none",
        label="Q/DQ nodes",
        meaning="nodes of the ONNX file that quantise or dequantise a tensor",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="multiplying_time_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="Time multiplying",
        meaning="share of the profiled kernels' time in convolutions and matrix products",
        rests_on=None,
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="moving_time_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="Time moving",
        meaning="share of the profiled kernels' time in kernels that only copy, transpose, cast or change a layout",
        rests_on=None,
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="quantising_time_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="Time quantising",
        meaning="share of the profiled kernels' time in kernels that only quantise or dequantise",
        rests_on=None,
        scale="difference",
        is_share=True,
    ),
    Metric(
        name="gpu_busy_ratio",
        group="kernels",
        unit="1",
        better="none",
        label="GPU busy",
        meaning="time in which at least one kernel of an iteration runs, recorded after every window, divided by the "
        "unprofiled time of an iteration",
        rests_on="timing",
        scale="difference",
        is_share=True,
    ),
    # --- memory and size ---
    Metric(
        name="peak_host_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Peak host memory",
        meaning="largest resident set of the worker in the timing window",
        rests_on=None,
    ),
    Metric(
        name="peak_device_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Peak device memory",
        meaning="largest device memory of the worker",
        rests_on=None,
    ),
    Metric(
        name="model_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Model size",
        meaning="size of what the runtime executes: its file, or the parameters where there is no file",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="kv_cache_bytes",
        group="memory and size",
        unit="bytes",
        better="lower",
        label="Cache of keys and values",
        meaning="size of the keys and values of a whole request",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="build_s",
        group="memory and size",
        unit="s",
        better="lower",
        label="Engine build time",
        meaning="time from the ONNX file to the TensorRT engine on its GPU, without loading TensorRT",
        rests_on=None,
    ),
    Metric(
        name="compile_s",
        group="memory and size",
        unit="s",
        better="lower",
        label="Compile time",
        meaning="time in which the runtime made the model ready: graph passes, compilation with empty caches, capture",
        rests_on=None,
    ),
    # --- energy of the GPU ---
    Metric(
        name="gpu_energy_j",
        group=GPU,
        unit="J",
        better="none",
        label="GPU energy",
        meaning="energy of the GPU board in the energy window",
        rests_on="energy",
    ),
    Metric(
        name="gpu_energy_per_sample_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy/sample",
        meaning="energy of the GPU board, divided by the samples of the energy window",
        rests_on="energy",
        of="gpu_energy_j",
        per="sample",
    ),
    Metric(
        name="gpu_energy_per_token_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy/token",
        meaning="energy of the GPU board, divided by the tokens of the energy window",
        rests_on="energy",
        of="gpu_energy_j",
        per="token",
    ),
    Metric(
        name="gpu_energy_per_input_token_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy/input token",
        meaning="energy of the GPU board in the prefill window, divided by the tokens of the prompts in the "
        "prefill window",
        rests_on="energy",
        of="gpu_energy_j",
        per="input_token",
    ),
    Metric(
        name="gpu_energy_per_output_token_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy/output token",
        meaning="energy of the GPU board in the decode window, divided by the tokens that the decode window produced",
        rests_on="energy",
        of="gpu_energy_j",
        per="output_token",
    ),
    Metric(
        name="gpu_energy_per_gb_j",
        group=GPU,
        unit="J/GB",
        better="lower",
        label="GPU energy/GB",
        meaning="energy of the GPU board for 10^9 bytes copied",
        rests_on="energy",
        of="gpu_energy_j",
        per="gb",
    ),
    Metric(
        name="gpu_tokens_per_s_per_w",
        group=GPU,
        unit="1/J",
        better="higher",
        label="Tokens/s/W (GPU)",
        meaning="tokens per second for each watt of the GPU board, which is tokens per joule",
        rests_on="energy",
        of="gpu_energy_j",
        per="token",
        is_inverse=True,
    ),
    Metric(
        name="gpu_net_energy_j",
        group=GPU,
        unit="J",
        better="none",
        label="GPU energy above idle",
        meaning="energy of the GPU board in the energy window, minus its idle power times the window's length; "
        "can be negative",
        rests_on="energy",
    ),
    Metric(
        name="gpu_net_energy_per_sample_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy above idle/sample",
        meaning="energy of the GPU board above its idle power, divided by the samples of the energy window; "
        "can be negative",
        rests_on="energy",
        of="gpu_net_energy_j",
        per="sample",
    ),
    Metric(
        name="gpu_net_energy_per_token_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy above idle/token",
        meaning="energy of the GPU board above its idle power, divided by the tokens of the energy window; "
        "can be negative",
        rests_on="energy",
        of="gpu_net_energy_j",
        per="token",
    ),
    Metric(
        name="gpu_net_energy_per_input_token_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy above idle/input token",
        meaning="energy of the GPU board above its idle power in the prefill window, divided by the tokens of "
        "the prompts in the prefill window",
        rests_on="energy",
        of="gpu_net_energy_j",
        per="input_token",
    ),
    Metric(
        name="gpu_net_energy_per_output_token_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy above idle/output token",
        meaning="energy of the GPU board above its idle power in the decode window, divided by the tokens that "
        "the decode window produced",
        rests_on="energy",
        of="gpu_net_energy_j",
        per="output_token",
    ),
    Metric(
        name="gpu_net_energy_per_gb_j",
        group=GPU,
        unit="J/GB",
        better="lower",
        label="GPU energy above idle/GB",
        meaning="energy of the GPU board above its idle power for 10^9 bytes copied; can be negative",
        rests_on="energy",
        of="gpu_net_energy_j",
        per="gb",
    ),
    Metric(
        name="gpu_tail_energy_j",
        group=GPU,
        unit="J",
        better="none",
        label="GPU energy after the window",
        meaning="energy of the GPU board above its idle power, from the end of the energy window until the board is at "
        "rest; can be negative",
        rests_on="energy",
        scale="difference",  # it is often nothing but noise around 0
    ),
    Metric(
        name="gpu_slow_p95_energy_j",
        group=GPU,
        unit="J",
        better="none",
        label="GPU energy beyond p95",
        meaning="energy of the GPU board while iterations beyond the 95th percentile ran, in stretches of them that "
        "the recovered power resolves",
        rests_on="energy",
    ),
    Metric(
        name="gpu_slow_p99_energy_j",
        group=GPU,
        unit="J",
        better="none",
        label="GPU energy beyond p99",
        meaning="energy of the GPU board while iterations beyond the 99th percentile ran, in stretches of them that "
        "the recovered power resolves",
        rests_on="energy",
    ),
    Metric(
        name="gpu_idle_power_before_w",
        group=GPU,
        unit="W",
        better="none",
        label="GPU idle power before",
        meaning="power of the GPU board with the model loaded, before any work",
        rests_on="energy",
    ),
    Metric(
        name="gpu_idle_power_after_w",
        group=GPU,
        unit="W",
        better="none",
        label="GPU idle power after",
        meaning="power of the GPU board when it is at rest again, after the work",
        rests_on="energy",
    ),
    # --- energy of the CPU ---
    Metric(
        name="cpu_energy_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="CPU energy",
        meaning="energy of the CPU packages in the energy window, and of their memory where it is counted",
        rests_on="energy",
    ),
    Metric(
        name="cpu_energy_per_sample_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/sample",
        meaning="energy of the CPU packages, divided by the samples of the energy window",
        rests_on="energy",
        of="cpu_energy_j",
        per="sample",
    ),
    Metric(
        name="cpu_energy_per_token_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/token",
        meaning="energy of the CPU packages, divided by the tokens of the energy window",
        rests_on="energy",
        of="cpu_energy_j",
        per="token",
    ),
    Metric(
        name="cpu_energy_per_input_token_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/input token",
        meaning="energy of the CPU packages in the prefill window, divided by the tokens of the prompts in the "
        "prefill window",
        rests_on="energy",
        of="cpu_energy_j",
        per="input_token",
    ),
    Metric(
        name="cpu_energy_per_output_token_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy/output token",
        meaning="energy of the CPU packages in the decode window, divided by the tokens that the decode window "
        "produced",
        rests_on="energy",
        of="cpu_energy_j",
        per="output_token",
    ),
    Metric(
        name="cpu_tokens_per_s_per_w",
        group="energy of the CPU",
        unit="1/J",
        better="higher",
        label="Tokens/s/W (CPU)",
        meaning="tokens per second for each watt of the CPU packages, which is tokens per joule",
        rests_on="energy",
        of="cpu_energy_j",
        per="token",
        is_inverse=True,
    ),
    Metric(
        name="cpu_energy_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="CPU energy, bounds",
        meaning="interval for the energy of the CPU packages in the energy window, from assumed bounds of their power; "
        "no measurement",
        rests_on="energy",
        is_interval=True,
    ),
    Metric(
        name="cpu_energy_per_sample_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="CPU energy/sample, bounds",
        meaning="interval for the energy of the CPU packages for one sample, from assumed bounds of their power; "
        "no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="sample",
    ),
    Metric(
        name="cpu_energy_per_token_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="CPU energy/token, bounds",
        meaning="interval for the energy of the CPU packages for one token, from assumed bounds of their power; "
        "no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="token",
    ),
    Metric(
        name="cpu_energy_per_input_token_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="CPU energy/input token, bounds",
        meaning="interval for the energy of the CPU packages for one input token of the prefill window, from assumed "
        "bounds of their power; no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="input_token",
    ),
    Metric(
        name="cpu_energy_per_output_token_estimate_j",
        group="energy of the CPU",
        unit="J",
        better="none",
        label="CPU energy/output token, bounds",
        meaning="interval for the energy of the CPU packages for one output token of the decode window, from assumed "
        "bounds of their power; no measurement",
        rests_on="energy",
        is_interval=True,
        of="cpu_energy_estimate_j",
        per="output_token",
    ),
    # --- energy of both ---
    Metric(
        name="system_energy_j",
        group="energy of both",
        unit="J",
        better="none",
        label="GPU and CPU energy",
        meaning="energy of the GPU board and the CPU packages in the energy window, where both are measured",
        rests_on="energy",
    ),
    Metric(
        name="system_energy_per_token_j",
        group="energy of both",
        unit="J",
        better="lower",
        label="GPU and CPU energy/token",
        meaning="energy of the GPU board and the CPU packages, divided by the tokens of the energy window",
        rests_on="energy",
        of="system_energy_j",
        per="token",
    ),
    Metric(
        name="cpu_energy_share_ratio",
        group="energy of both",
        unit="1",
        better="none",
        label="CPU share of energy",
        meaning="energy of the CPU packages, divided by that of GPU board and CPU packages in the energy window",
        rests_on="energy",
        scale="difference",
        is_share=True,
    ),
    # --- energy of the module ---
    Metric(
        name="module_energy_j",
        group="energy of the module",
        unit="J",
        better="none",
        label="Module energy",
        meaning="energy of an edge module in the energy window, from its power rails",
        rests_on="energy",
    ),
    Metric(
        name="module_energy_per_sample_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/sample",
        meaning="energy of the module, divided by the samples of the energy window",
        rests_on="energy",
        of="module_energy_j",
        per="sample",
    ),
    Metric(
        name="module_energy_per_token_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/token",
        meaning="energy of the module, divided by the tokens of the energy window",
        rests_on="energy",
        of="module_energy_j",
        per="token",
    ),
    Metric(
        name="module_energy_per_input_token_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/input token",
        meaning="energy of the module in the prefill window, divided by the tokens of the prompts",
        rests_on="energy",
        of="module_energy_j",
        per="input_token",
    ),
    Metric(
        name="module_energy_per_output_token_j",
        group="energy of the module",
        unit="J",
        better="lower",
        label="Module energy/output token",
        meaning="energy of the module in the decode window, divided by the tokens that the window produced",
        rests_on="energy",
        of="module_energy_j",
        per="output_token",
    ),
    # --- accuracy ---
    Metric(
        name="relative_error_ratio",
        group="accuracy",
        unit="1",
        better="lower",
        label="Relative error",
        meaning="norm of the difference between this file's outputs and those of the FP32 file, over the norm of the "
        "latter; both run on a CPU with equal samples",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="cosine_ratio",
        group="accuracy",
        unit="1",
        better="higher",
        label="Cosine",
        meaning="cosine of the angle between this file's outputs and those of the FP32 file; both run on a CPU with "
        "equal samples",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="top1_agreement_ratio",
        group="accuracy",
        unit="1",
        better="higher",
        label="Top-1 agreement",
        meaning="share of samples for which this file and the FP32 file have the same most probable class; both run on "
        "a CPU with equal samples",
        rests_on=None,
        scale="difference",
        is_share=True,
        is_counted=True,
    ),
    Metric(
        name="worst_node_error_ratio",
        group="accuracy",
        unit="1",
        better="lower",
        label="Error of the worst node",
        meaning="relative error of the outputs, on a CPU, with only one node quantised, of the node with the largest",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="top1_percent",
        group="accuracy",
        unit="%",
        better="higher",
        label="Top-1",
        meaning="share of samples (images, or windows of text) whose most probable class is right",
        rests_on="accuracy",
        scale="difference",
        is_share=True,
        hit_column="top1_hit",
    ),
    Metric(
        name="top5_percent",
        group="accuracy",
        unit="%",
        better="higher",
        label="Top-5",
        meaning="share of samples (images, or windows of text) whose right class is among the five most probable ones",
        rests_on="accuracy",
        scale="difference",
        is_share=True,
        hit_column="top5_hit",
    ),
    Metric(
        name="dice_percent",
        group="accuracy",
        unit="%",
        better="higher",
        label="Dice",
        meaning="twice the voxels of a class that output and truth share, over those of both; mean over the classes of "
        "a volume but the background, then over volumes",
        rests_on="accuracy",
        scale="difference",
        is_share=True,
        score_column="dice_percent",
    ),
    Metric(
        name="perplexity",
        group="accuracy",
        unit="1",
        better="lower",
        label="Perplexity",
        meaning="exponential of the mean cross-entropy of the token that follows each window of held-out text",
        rests_on="accuracy",
        score_column="nats",
    ),
    Metric(
        name="l1_error",
        group="accuracy",
        unit="1",
        better="lower",
        label="L1 error",
        meaning="mean of the absolute difference between output and truth, in the units of the data",
        rests_on="accuracy",
        scale="difference",
        score_column="absolute_error",
    ),
    Metric(
        name="linf_error",
        group="accuracy",
        unit="1",
        better="lower",
        label="L∞ error",
        meaning="largest absolute difference between output and truth, in the units of the data",
        rests_on="accuracy",
        is_counted=True,
    ),
    Metric(
        name="fp32_token_agreement_ratio",
        group="accuracy",
        unit="1",
        better="higher",
        label="Agreement with FP32",
        meaning="share of a sample's new tokens before the first that differs from greedy decoding by torch in FP32, "
        "averaged over the samples of one request",
        rests_on="accuracy",
        scale="difference",
        is_share=True,
    ),
    # --- training ---
    Metric(
        name="loss_first_nats",
        group="training",
        unit="nat",
        better="none",
        label="First loss",
        meaning="cross-entropy at the first timed step",
        rests_on=None,
        scale="difference",
    ),
    Metric(
        name="loss_last_nats",
        group="training",
        unit="nat",
        better="lower",
        label="Last loss",
        meaning="cross-entropy at the last timed step",
        rests_on=None,
        scale="difference",
    ),
    Metric(
        name="skipped_steps_count",
        group="training",
        unit="count",
        better="lower",
        label="Skipped steps",
        meaning="timed steps that changed no weight, because gradients overflowed FP16: GradScaler then scales less",
        rests_on=None,
        scale="difference",
        is_counted=True,
    ),
    Metric(
        name="epochs_to_target_count",
        group="training",
        unit="count",
        better="lower",
        label="Epochs to target",
        meaning="epochs until held-out images were classified as well as `target_top1_percent` asks",
        rests_on=None,
        needs_every_run=True,
    ),
    Metric(
        name="time_to_target_s",
        group="training",
        unit="s",
        better="lower",
        label="Time to target",
        meaning="time from the first step until the accuracy of the epoch that reached the target was known",
        rests_on="timing",
        needs_every_run=True,
    ),
    Metric(
        name="gpu_energy_to_target_j",
        group=GPU,
        unit="J",
        better="lower",
        label="GPU energy to target",
        meaning="energy of the GPU board until the target was reached, judging included",
        rests_on="energy",
        needs_every_run=True,
    ),
    Metric(
        name="cpu_energy_to_target_j",
        group="energy of the CPU",
        unit="J",
        better="lower",
        label="CPU energy to target",
        meaning="energy of the CPU packages until the target was reached, judging included",
        rests_on="energy",
        needs_every_run=True,
    ),
    Metric(
        name="final_top1_percent",
        group="training",
        unit="%",
        better="higher",
        label="Final Top-1",
        meaning="share of held-out images that are classified rightly after the last epoch",
        rests_on="accuracy",
        scale="difference",
        is_share=True,
    ),
    # --- memory of a training step ---
    Metric(
        name="step_weights_bytes",
        group="training",
        unit="bytes",
        better="lower",
        label="Weights",
        meaning="parameters and buffers of a model in training",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="step_gradients_bytes",
        group="training",
        unit="bytes",
        better="lower",
        label="Gradients",
        meaning="gradients of all weights",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="step_optimiser_bytes",
        group="training",
        unit="bytes",
        better="lower",
        label="Optimiser's state",
        meaning="what the optimiser keeps for all weights",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="step_activations_bytes",
        group="training",
        unit="bytes",
        better="lower",
        label="Activations",
        meaning="what the forward pass of a training step saves for the backward pass, each storage once, "
        "the batch with it",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="step_weight_copies_bytes",
        group="training",
        unit="bytes",
        better="lower",
        label="Copies of weights",
        meaning="copies of weights in a lower precision, which autocast saves with the activations",
        rests_on=None,
        is_counted=True,
    ),
    Metric(
        name="step_workspace_bytes",
        group="training",
        unit="bytes",
        better="lower",
        label="Workspace",
        meaning="the peak of a training step without weights, gradients, optimiser's state, activations "
        "and copies of weights",
        rests_on=None,
    ),
    Metric(
        name="step_peak_bytes",
        group="training",
        unit="bytes",
        better="lower",
        label="Peak of a step",
        meaning="the most bytes that torch's allocator has handed out at once in a training step",
        rests_on=None,
    ),
)

METRICS = Rows("metric", _ROWS)
TOTALS = frozenset(metric.of for metric in _ROWS if metric.of is not None)
"""Metrics of a whole window, whose work differs from case to case: what they are divided by compares cases."""
PER_BOUND = tuple(metric for metric in _ROWS if metric.is_per_bound)


def metric_named(name: str) -> Metric:
    """One of pybench's own rows, or that of a bound. Raises UnknownNameError for another name."""
    base, _, bound = name.partition(_AT)
    if not bound or base not in METRICS:
        return METRICS[name]
    return METRICS[base].at_bound(float(bound.removesuffix("ms")))
