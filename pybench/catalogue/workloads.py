# SPDX-License-Identifier: Apache-2.0
"""What can be measured: a row for each workload.

Their order is the order of tables and pictures. Which metrics one case yields is `pybench.case.yields.metrics_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pybench.catalogue.heads import MOST_HEADS, head_metrics
from pybench.catalogue.models import Model, ModelKind
from pybench.catalogue.options import Option
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.rows import Rows
from pybench.catalogue.tasks import TASKS
from pybench.catalogue.zoo import Library

# Factors that mean something for the same workloads.
FactorGroup = Literal[
    "run", "board", "model", "quantising", "engine", "runtime", "images", "labelled", "judging", "tokens", "text",
    "feeding", "serving", "arriving", "generating", "training", "fitting", "blocks", "layout", "sizing", "loading",
    "copying", "file", "inputs", "shaping",
]  # fmt: skip
# Titles in docs/factors.md of the groups whose word is none.
GROUP_TITLES: Mapping[FactorGroup, str] = {
    "run": "Every run",
    "board": "Settings of the GPU's board",
    "engine": "TensorRT engines",
    "runtime": "Other runtimes",
    "labelled": "Your own labelled samples",
    "judging": "Judging your samples",
    "tokens": "Sequences",
    "arriving": "Arrivals",
    "generating": "Generation",
    "fitting": "Training to an accuracy",
    "blocks": "Training of language models",
    "layout": "Training of image models",
    "sizing": "Sizes of images",
    "loading": "Loading of images",
    "file": "Your own ONNX file",
    "shaping": "Shape of a stack",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload.

    name: as plans name it
    label: a heading of reports
    meaning: what one iteration does, in a sentence for plans' authors
    module: where its `run(request) -> Result` is
    takes: the groups of factors that mean something for it
    model: whether a case has to name a model
    kinds: which kinds of built-in models it takes
    takes_files: whether it takes an ONNX file of the user's as well
    runtime: what executes its model where a plan does not say; None: the plan has to say
    needs: packages that it needs besides those of the runtime
    needs_gpu: why it cannot run without a GPU; None: it can
    names_board: a GPU takes part only where `device` is its UUID, because the workload opens no GPU by itself
    draws_ids: with path `none` it draws ids from the tokenizer's vocabulary, so that `tokenizer` has a meaning
    fits: whether it trains once, until an accuracy is reached, instead of repeating iterations
    generates: whether an iteration continues a prompt of `seq_len` tokens by `new_tokens`
    feeds: with path `none` its model is fed batch by batch, unless `fed` says otherwise
    trains: whether an iteration changes the weights: it then costs a forward and a backward pass
    judges: the workload whose outputs it judges; speed and correctness are then joined in verdicts
    by_task: whether what it yields follows from the task of the case's data; it then takes every model that has data of
        its own (`judged_on`), besides those of its `kinds`
    needs_images: whether it means nothing without labelled images
    judges_images: whether it compares outputs with the labels of images, as far as there are labelled images
    parts_pairs: whether it takes the pairs of Q/DQ of its file apart, which keeps weights in FP32 in front of them
    timed: whether its iterations are timed; else its uncertainty is over images, and runs are equal
    opens: whether its model is opened by a runtime, which may first have to compile it
    replays: whether a runtime may replay its iterations as a captured graph, from C++
    yields: metrics of every case
    yields_of_model: further metrics where it has a model
    yields_of_ids: further metrics where its model takes token ids
    yields_of_heads: further metrics where its model has heads: those of every head that it can have
    yields_fed: further metrics where its model is fed batch by batch
    yields_compared: further metrics where what it gives is compared with a module in FP32
    yields_lowered: further metrics where it opens a file that is made of one in FP32
    yields_scaled: further metrics where its loss is scaled for the gradients
    headline: the metric that it is judged by where neither a plan nor the task of the data says so
    headline_without_ids: the same for models that take no token ids; None: `headline` is
    rates: of these, the first that a case yields is its headline against a case of another batch; empty: `headline` is
    shown: columns of its table in a report, as far as any case has them
    most_runs: how many runs of one case there are at most; None: one for each repetition
    plugin: the package that adds it; None: pybench
    options: what plans can set of it, next to factors
    """

    name: str
    label: str
    meaning: str
    module: str
    takes: tuple[FactorGroup, ...]
    model: Literal["required", "optional", "none"]
    kinds: tuple[ModelKind, ...] = ()
    takes_files: bool = False
    runtime: str | None = None
    needs: tuple[str, ...] = ()
    needs_gpu: str | None = None
    names_board: bool = False
    draws_ids: bool = False
    feeds: bool = False
    trains: bool = False
    fits: bool = False
    generates: bool = False
    judges: str | None = None
    by_task: bool = False
    needs_images: bool = False
    judges_images: bool = False
    parts_pairs: bool = False
    timed: bool = True
    opens: bool = False
    replays: bool = False
    yields: tuple[str, ...] = ()
    yields_of_model: tuple[str, ...] = ()
    yields_of_ids: tuple[str, ...] = ()
    yields_of_heads: tuple[str, ...] = ()
    yields_fed: tuple[str, ...] = ()
    yields_compared: tuple[str, ...] = ()
    yields_lowered: tuple[str, ...] = ()
    yields_scaled: tuple[str, ...] = ()
    headline: str | None = None
    headline_without_ids: str | None = None
    rates: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    most_runs: int | None = None
    plugin: Plugin | None = None
    options: tuple[Option, ...] = ()

    def accepts(self, model: Model | None, library: Library | None = None) -> bool:
        """Whether it takes a built-in model; with None a model of a library, or without one a file of the user's."""
        if model is None:
            return self.takes_files or (library is not None and self.generates and library.generates)
        return model.kind in self.kinds or (self.by_task and model.judged_on is not None)

    def metrics(self) -> tuple[str, ...]:
        """Names of all metrics that some case of it can yield by its row."""
        of_tasks = (name for task in TASKS.values() for name in task.yields) if self.by_task else ()
        of_model = (*self.yields_of_model, *self.yields_of_ids, *self.yields_of_heads)
        of_some = (*self.yields_fed, *self.yields_compared, *self.yields_lowered, *self.yields_scaled)
        return (*self.yields, *of_tasks, *of_model, *of_some)

    def uses(self, group: FactorGroup) -> bool:
        """Whether a group of factors means something for it."""
        return group in self.takes


# --- groups of metrics -----------------------------------------------------------------------------------------------

# The energy of slow iterations, where nothing else stands between them.
OF_SLOW = ("gpu_slow_p95_energy_j", "gpu_slow_p99_energy_j")
# The speed of the core that calls the iterations, where Python calls each of them.
CORE = ("core_probe_mean_ms",)
LATENCY = ("latency_mean_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms")
_TIMED = (
    *LATENCY,
    "peak_host_bytes", "peak_device_bytes", "cpu_cores_ratio", "cpu_utilisation_ratio", "gpu_utilisation_ratio",
    *CORE,
    "gpu_energy_j", "gpu_net_energy_j", "gpu_tail_energy_j", "gpu_idle_power_before_w", "gpu_idle_power_after_w",
    *OF_SLOW,
    "cpu_energy_j", "cpu_energy_estimate_j", "system_energy_j", "cpu_energy_share_ratio",
    "module_energy_j", "node_energy_j",
)  # fmt: skip
_PER_SAMPLE = (
    "throughput_samples_per_s", "gpu_energy_per_sample_j", "gpu_net_energy_per_sample_j",
    "cpu_energy_per_sample_j", "cpu_energy_per_sample_estimate_j", "module_energy_per_sample_j",
    "gpu_energy_delay_js", "cpu_energy_delay_js", "module_energy_delay_js",
    "node_energy_per_sample_j", "node_energy_delay_js",
)  # fmt: skip
_PER_TOKEN = (
    "throughput_tokens_per_s", "gpu_energy_per_token_j", "gpu_net_energy_per_token_j", "gpu_tokens_per_s_per_w",
    "cpu_energy_per_token_j", "cpu_tokens_per_s_per_w", "cpu_energy_per_token_estimate_j",
    "system_energy_per_token_j", "module_energy_per_token_j", "node_energy_per_token_j",
)  # fmt: skip
_PER_INPUT_TOKEN = (
    "gpu_energy_per_input_token_j", "gpu_net_energy_per_input_token_j",
    "cpu_energy_per_input_token_j", "cpu_energy_per_input_token_estimate_j", "module_energy_per_input_token_j",
    "node_energy_per_input_token_j",
)  # fmt: skip
_PER_OUTPUT_TOKEN = (
    "gpu_energy_per_output_token_j", "gpu_net_energy_per_output_token_j",
    "cpu_energy_per_output_token_j", "cpu_energy_per_output_token_estimate_j", "module_energy_per_output_token_j",
    "node_energy_per_output_token_j",
)  # fmt: skip
_PER_GB = ("bandwidth_gb_per_s", "gpu_energy_per_gb_j", "gpu_net_energy_per_gb_j")
_WAITS = ("wait_share_ratio",)
_SIZE = ("model_bytes",)
_OF_HEADS = head_metrics(MOST_HEADS, has_deadlines=True)

# What the memory of a training step is for, and its peak.
STEP_PARTS = (
    "step_weights_bytes", "step_gradients_bytes", "step_optimiser_bytes", "step_activations_bytes",
    "step_weight_copies_bytes", "step_workspace_bytes",
)  # fmt: skip
STEP_PEAK = "step_peak_bytes"

# What a training costs until it reaches an accuracy.
TO_TARGET = ("epochs_to_target_count", "time_to_target_s", "gpu_energy_to_target_j", "cpu_energy_to_target_j")

# Where a captured graph is replayed from C++: the time of the launching call, and one replay alone.
ENQUEUE = ("enqueue_p50_ms",)
ALONE = ("latency_depth1_p50_ms", "latency_depth1_p99_ms")
# Where a runtime compiles what it opens.
COMPILE = ("compile_s",)
# Where a runtime tells its kernels.
KERNELS = (
    "kernels_count", "moving_kernels_count", "qdq_nodes_count",
    "multiplying_time_ratio", "moving_time_ratio", "quantising_time_ratio", "gpu_busy_ratio",
)  # fmt: skip
# Where a file in lower precision is made, whose outputs are compared with FP32's.
AGREEMENT = ("relative_error_ratio", "cosine_ratio", "top1_agreement_ratio", "signal_error_ratio")
# Where a case has idle windows: they tell what a board takes at rest.
ABOVE_IDLE = (
    "gpu_net_energy_j", "gpu_tail_energy_j", "gpu_idle_power_before_w", "gpu_idle_power_after_w",
    "gpu_net_energy_per_sample_j", "gpu_net_energy_per_token_j", "gpu_net_energy_per_gb_j",
    "gpu_net_energy_per_input_token_j", "gpu_net_energy_per_output_token_j",
)  # fmt: skip

# What pybench's own measuring stores, as far as the machine and the case have it, whether a row yields it or not.
RECORDED = frozenset((
    *_TIMED, *_PER_SAMPLE, *_PER_TOKEN, *_PER_INPUT_TOKEN, *_PER_OUTPUT_TOKEN, *_PER_GB,
    *_WAITS, *_SIZE, *ENQUEUE, *ALONE, *COMPILE, *KERNELS, *AGREEMENT,
))  # fmt: skip

# --- rows ------------------------------------------------------------------------------------------------------------

_ROWS = (
    Workload(
        name="infer",
        label="Inference",
        meaning="one forward pass of a model",
        module="pybench.workloads.infer",
        takes=(
            "run", "board", "model", "quantising", "engine", "runtime", "images", "tokens", "text", "feeding",
            "serving", "arriving", "file", "inputs", "sizing", "shaping", "labelled",
        ),
        model="required",
        kinds=("image", "language", "encoder", "volume", "vector", "perception"),
        takes_files=True,
        opens=True,
        replays=True,
        yields=(*_TIMED, *_PER_SAMPLE),
        yields_of_model=_SIZE,
        yields_of_ids=_PER_TOKEN,
        yields_of_heads=_OF_HEADS,
        yields_fed=_WAITS,
        yields_lowered=AGREEMENT,
        headline="latency_mean_ms",
        rates=("throughput_tokens_per_s", "throughput_samples_per_s"),
        shown=(
            "latency_mean_ms", "latency_p99_ms", "throughput_samples_per_s", "throughput_tokens_per_s",
            "wait_share_ratio", "cpu_cores_ratio",
            "gpu_energy_per_sample_j", "gpu_energy_delay_js", "cpu_energy_per_sample_j", "cpu_energy_delay_js",
            "cpu_energy_per_sample_estimate_j", "system_energy_per_token_j", "cpu_energy_share_ratio",
            "module_energy_per_sample_j", "module_energy_delay_js", "node_energy_per_sample_j",
            "cpu_utilisation_ratio", "gpu_utilisation_ratio", *CORE, *_OF_HEADS,
            "peak_device_bytes", "peak_host_bytes", "model_bytes",
        ),
    ),
    Workload(
        name="train",
        label="Training",
        meaning="one optimiser step of a language model or an image model",
        module="pybench.workloads.train",
        takes=(
            "run", "board", "model", "runtime", "tokens", "text", "feeding", "training", "blocks", "layout", "sizing",
            "shaping", "images", "loading",
        ),
        model="required",
        kinds=("language", "image"),
        runtime="torch",
        feeds=True,
        trains=True,
        yields=(*_TIMED, *_PER_SAMPLE, "loss_first_nats", "loss_last_nats", *STEP_PARTS, STEP_PEAK),
        yields_of_model=_SIZE,
        yields_of_ids=_PER_TOKEN,
        yields_fed=_WAITS,
        yields_scaled=("skipped_steps_count",),
        headline="throughput_tokens_per_s",
        headline_without_ids="throughput_samples_per_s",
        shown=(
            "latency_mean_ms", "latency_p99_ms", "throughput_tokens_per_s", "throughput_samples_per_s",
            "wait_share_ratio", "cpu_cores_ratio",
            "gpu_energy_per_token_j", "gpu_tokens_per_s_per_w", "gpu_energy_per_sample_j",
            "cpu_energy_per_token_j", "cpu_energy_per_token_estimate_j",
            "cpu_energy_per_sample_j", "cpu_energy_per_sample_estimate_j",
            "system_energy_per_token_j", "cpu_energy_share_ratio", "module_energy_per_sample_j",
            "node_energy_per_sample_j",
            "cpu_utilisation_ratio", "gpu_utilisation_ratio", *CORE,
            "peak_device_bytes", "peak_host_bytes", "loss_last_nats", "skipped_steps_count",
        ),
    ),
    Workload(
        name="fit",
        label="Training to an accuracy",
        meaning="one training of an image model, until it classifies a share of held-out images rightly",
        module="pybench.workloads.fit",
        takes=("run", "board", "model", "runtime", "images", "training", "fitting", "layout", "sizing"),
        model="required",
        kinds=("image",),
        runtime="torch",
        trains=True,
        fits=True,
        needs_images=True,
        judges_images=True,
        yields=(
            *TO_TARGET, "final_top1_percent",
            "peak_host_bytes", "peak_device_bytes", "cpu_cores_ratio",
            "gpu_energy_j", "gpu_net_energy_j", "gpu_idle_power_before_w", "gpu_idle_power_after_w",
            "cpu_energy_j", "cpu_energy_estimate_j", "system_energy_j", "cpu_energy_share_ratio",
        ),
        yields_of_model=_SIZE,
        yields_scaled=("skipped_steps_count",),
        headline="time_to_target_s",
        shown=(
            *TO_TARGET, "final_top1_percent", "cpu_cores_ratio", "peak_device_bytes", "peak_host_bytes",
            "skipped_steps_count",
        ),
    ),
    Workload(
        name="generate",
        label="Generation",
        meaning="one request: prompts are read, then continued token by token from a cache of keys and values",
        module="pybench.workloads.generate",
        takes=("run", "board", "model", "quantising", "runtime", "tokens", "generating", "arriving"),
        model="required",
        kinds=("language",),
        generates=True,
        opens=True,
        yields=(
            *_TIMED, *_PER_SAMPLE, "ttft_ms", "ttft_p99_ms", "tpot_ms", "tpot_p99_ms",
            "output_tokens_per_s", "kv_cache_bytes",
            *_PER_INPUT_TOKEN, *_PER_OUTPUT_TOKEN,
        ),
        yields_of_model=_SIZE,
        yields_compared=("fp32_token_agreement_ratio",),
        headline="tpot_ms",
        rates=("output_tokens_per_s",),
        shown=(
            "ttft_ms", "ttft_p99_ms", "tpot_ms", "output_tokens_per_s", "cpu_cores_ratio", *CORE,
            "gpu_energy_per_input_token_j", "gpu_energy_per_output_token_j",
            "cpu_energy_per_input_token_j", "cpu_energy_per_output_token_j",
            "cpu_energy_per_input_token_estimate_j", "cpu_energy_per_output_token_estimate_j",
            "module_energy_per_input_token_j", "module_energy_per_output_token_j",
            "node_energy_per_input_token_j", "node_energy_per_output_token_j",
            "kv_cache_bytes", "peak_device_bytes", "peak_host_bytes", "fp32_token_agreement_ratio",
        ),
    ),
    Workload(
        name="h2d",
        label="Host-to-device copies",
        meaning="one copy between host memory and a GPU, to it, from it, or both ways at once",
        module="pybench.workloads.h2d",
        takes=("run", "board", "copying"),
        model="none",
        needs=("torch",),
        needs_gpu="a copy inside the host would be another measurement",
        yields=(*_TIMED, *_PER_GB),
        headline="bandwidth_gb_per_s",
        shown=("latency_mean_ms", "bandwidth_gb_per_s", "gpu_energy_per_gb_j"),
    ),
    Workload(
        name="tokenize",
        label="Tokenizing",
        meaning="one batch of tokens from text, drained or fed to a model",
        module="pybench.workloads.tokenize",
        takes=("run", "board", "model", "tokens", "text"),
        model="optional",
        kinds=("language",),
        runtime="torch",
        draws_ids=True,
        opens=True,
        yields=(*_TIMED, *_PER_SAMPLE, *_PER_TOKEN, "text_mb_per_s", *_WAITS),
        yields_of_model=_SIZE,
        headline="throughput_tokens_per_s",
        shown=(
            "throughput_tokens_per_s", "text_mb_per_s", "wait_share_ratio", "cpu_cores_ratio",
            "gpu_energy_per_token_j", "cpu_energy_per_token_j", "cpu_energy_per_token_estimate_j", "peak_host_bytes",
        ),
    ),
    Workload(
        name="accuracy",
        label="Accuracy",
        meaning="the outputs of a model against labels: Top-1 of images or text, Dice, perplexity, or errors",
        module="pybench.workloads.accuracy",
        takes=(
            "run", "model", "quantising", "engine", "runtime", "images", "file", "sizing", "shaping", "labelled",
            "judging",
        ),
        model="required",
        kinds=("image",),
        takes_files=True,
        judges="infer",
        by_task=True,
        needs_images=True,
        judges_images=True,
        timed=False,
        opens=True,
        yields_lowered=AGREEMENT,
        yields_of_model=_SIZE,
        shown=(
            "top1_percent", "top5_percent", "dice_percent", "perplexity", "l1_error", "linf_error",
            "top1_agreement_ratio", "relative_error_ratio", "model_bytes",
        ),
        most_runs=2,  # predictions do not vary between runs; the second run shows that they do not
    ),
    Workload(
        name="sensitivity",
        label="Sensitivity",
        meaning="what each quantised node and each pair of Q/DQ adds to the error of the outputs, on a CPU",
        module="pybench.workloads.sensitivity",
        takes=("run", "model", "quantising", "runtime", "images", "tokens", "file", "shaping", "sizing"),
        model="required",
        kinds=("image", "language", "encoder", "volume", "vector"),
        takes_files=True,
        runtime="onnxruntime",
        judges_images=True,
        parts_pairs=True,
        timed=False,
        opens=True,
        yields=("worst_node_error_ratio",),
        yields_lowered=AGREEMENT,
        yields_of_model=_SIZE,
        headline="worst_node_error_ratio",
        shown=("worst_node_error_ratio", "relative_error_ratio", "top1_agreement_ratio"),
        most_runs=1,  # the same numbers in every run, and one takes two passes over the samples for each node
    ),
    Workload(
        name="noop",
        label="No operation",
        meaning="nothing, or rest: what the harness itself costs",
        module="pybench.workloads.noop",
        takes=("run", "board"),
        model="none",
        names_board=True,
        yields=_TIMED,
        shown=("latency_mean_ms", "peak_host_bytes"),
    ),
)  # fmt: skip

WORKLOADS = Rows("workload", _ROWS)
