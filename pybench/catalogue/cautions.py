# SPDX-License-Identifier: Apache-2.0
"""Doubts about a result: a closed list of typed cautions with advice, stored with the run, shown beside the number.

A caution does not make a measurement invalid (that is `valid` in run.json); it says what could have moved it.
Each has a test that provokes it. After hyperfine's typed warnings (`src/output/warnings.rs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class CautionCode(Enum):
    """`code = (value, what it says, advice)`; the value is what is stored."""

    def __init__(self, code: str, meaning: str, advice: str) -> None:
        self.code = code
        self.meaning = meaning
        self.advice = advice

    NOT_STEADY = (
        "not_steady",
        "the timed iterations do not look steady (trend or level shift)",
        "raise `warmup_iterations`, or look for the shift in iterations.csv",
    )
    FEW_ITERATIONS = (
        "few_iterations",
        "too few iterations for the printed percentile: p99 of fewer than 100 iterations is close to the maximum",
        "raise `iterations` to at least 100 for p99",
    )
    OUTLIERS = (
        "outliers",
        "more than one iteration in a hundred took over three times the median",
        "close other programs, or pin the run to CPUs with `affinity`",
    )
    HOST_BOUND = (
        "host_bound",
        "the host needed nearly as long to launch an iteration as the GPU to run it: the GPU may have waited",
        "enlarge the batch, or compare latency instead of throughput and energy",
    )
    OVERLOADED = (
        "overloaded",
        "iterations arrived faster than the model ran them, so latency grows with the length of the window",
        "set `arrival_rate_per_s` below the throughput of a run with `arrivals: closed`",
    )
    BUSY_MACHINE = (
        "busy_machine",
        "other processes used the CPUs while this run was measured",
        "run on an idle machine, or reserve the node",
    )
    CORE_SPEED_VARIES = (
        "core_speed_varies",
        "the CPU core that ran the iterations was slower for a part of the window",
        "reserve whole cores with their sibling threads, and fix the CPU's clock; else judge by many blocks",
    )
    THREADS_EXCEED_CPUS = (
        "threads_exceed_cpus",
        "the case uses more threads than this process may use CPUs",
        "set `threads` to at most the number of CPUs",
    )
    THROTTLED = (
        "throttled",
        "the GPU lowered its clocks for heat or power during the window",
        "improve cooling, or compare at a common power limit",
    )
    FOREIGN_PROCESS = (
        "foreign_process",
        "another process used the same GPU during the window",
        "reserve the GPU and run again: these numbers include memory and energy of the other process",
    )
    NODE_SHARED = (
        "node_shared",
        "other processes kept CPUs of the node busy during the window",
        "reserve the whole node and run again: its energy includes that of the other processes",
    )
    GPU_MEMORY_SHARED = (
        "gpu_memory_shared",
        "peak device memory includes memory of other processes",
        "reserve the GPU, or compare memory only between runs without this caution",
    )
    SENSOR_ASSUMED = (
        "sensor_assumed",
        "the delay and lag of this board's power sensor were assumed, not measured",
        "run `pybench sensor` once on this machine: energies of short windows become more certain",
    )
    POWER_SAMPLES_LOST = (
        "power_samples_lost",
        "the driver dropped power samples before they were read",
        "give the sampler a free CPU (`affinity`, or fewer `threads`); power_drains.csv shows the gaps",
    )
    REALTIME_STEPPED = (
        "realtime_stepped",
        "the system clock was set during the window, and the driver stamps power samples by this clock",
        "let the clock be slewed and not set while campaigns run (chrony without makestep)",
    )
    ENERGY_FROM_NVIDIA_SMI = (  # of stored results only: today such a run has no GPU energy
        "energy_from_nvidia_smi",
        "NVML was not available to an older pybench, which polled GPU power from nvidia-smi, without energy counter",
        "set PYBENCH_NVML_LIBRARY to the path of libnvidia-ml.so.1, and run again",
    )
    SETTING_NOT_HELD = (
        "setting_not_held",
        "the board did not keep the power limit or the clock of the case",
        "lock a clock that the board can keep under this load, or limit its power instead",
    )
    SETTING_NOT_RESTORED = (
        "setting_not_restored",
        "a setting of the board could not be restored after a run, so the next run on it has that setting too",
        "run the command in the detail as root, then check the board with `nvidia-smi -q -d POWER,CLOCK`",
    )
    SETTINGS_LEFT_BEHIND = (
        "settings_left_behind",
        "a killed run had left this board with changed settings; they were put back before this run",
        "run again all cases that this board has measured since the killed run",
    )
    SETTINGS_OF_ANOTHER_RUN = (
        "settings_of_another_run",
        "another run of pybench had changed the settings of this board during this run",
        "run one campaign at a time on a board",
    )
    MODEL_SPLIT = (
        "model_split",
        "the provider of the case did not run the whole model: parts ran on another provider",
        "read the label `partitions` of the run, then choose another provider or change those operators",
    )
    UNTRAINED_WEIGHTS = (
        "untrained_weights",
        "the model has random weights: its speed is real, but its outputs have no meaning",
        "give a `checkpoint` if you measure accuracy",
    )
    NO_BETTER_THAN_WITHOUT_A_NETWORK = (
        "no_better_than_without_a_network",
        "the accuracy is no better than what is reached on these data without a network",
        "read the FP32 case first: with this caution, its training failed, or these data need no network",
    )
    OUTPUTS_LOST = (
        "outputs_lost",
        "in this precision the outputs are useless: NaN, infinite, or as far from the FP32 outputs as zeros",
        "keep operators that overflow or underflow in FP32 (`keep_fp32`), use bf16, or calibrate on data",
    )
    OUTPUTS_HARDLY_VARY = (
        "outputs_hardly_vary",
        "the inputs hardly change the FP32 outputs, or all samples have one class: error and agreement say little",
        "compare on real data and trained weights (`images`, `inputs`, `checkpoint`), and read `signal_error_ratio`",
    )
    OUTPUTS_NOT_FINITE = (
        "outputs_not_finite",
        "an output of the model has NaN or infinite numbers on what this case feeds",
        "set `inputs` to what the model is made for, or use a precision of wider range; a mask of -inf is harmless",
    )
    TRAINING_DIVERGED = (
        "training_diverged",
        "the loss was NaN or infinite at the end: the steps trained nothing",
        "lower `learning_rate`, or train in bf16 or amp-bf16; until then do not quote the time of these steps",
    )
    SMALL_CALIBRATION = (
        "small_calibration",
        "the calibration set is small, smaller than asked for, or random because the model has no data set",
        "calibrate with at least 100 images of the training data, and set `calibration_images` to what exists",
    )
    INT8_SATURATES = (
        "int8_saturates",
        "without VNNI, this CPU's kernels add two products of INT8 in 16 bits, and large sums are cut off",
        "compare accuracies of INT8 on a CPU with VNNI: here, a part of its error is the processor's",
    )
    CALIBRATED_ON_EVALUATION = (
        "calibrated_on_evaluation",
        "the int8 ranges were found on the same images that measure accuracy",
        "put the images into two folders next to each other: `train` for calibration, `val` for accuracy",
    )
    FEWER_CLASSES = (
        "fewer_classes",
        "the labels have fewer classes than the model has outputs, so class n was compared with output n",
        "name all classes in the order of the outputs in `classes.txt` next to the class folders (docs/user/models.md)",
    )
    TOKENIZING_UNEVEN = (
        "tokenizing_uneven",
        "the window has less than half, or more than twice, the tokenizing that its batches need",
        "raise `iterations`, or give a corpus of shorter documents: a path in the process tokenizes whole ones",
    )
    CORPUS_WRAPPED = (
        "corpus_wrapped",
        "the corpus was too short and was read again, with the cache of the tokenizer already warm",
        "give a larger corpus",
    )


@dataclass(frozen=True, slots=True)
class Caution:
    """One doubt about one run.

    code: which doubt
    detail: the facts that raised it
    metric: the metric that it concerns; None: the whole run
    """

    code: CautionCode
    detail: str
    metric: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The form stored in run.json."""
        return {"code": self.code.code, "detail": self.detail, "metric": self.metric, "advice": self.code.advice}
