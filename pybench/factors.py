# SPDX-License-Identifier: Apache-2.0
"""The closed list of factors, `FACTORS`, and the values that they take.

Plans, run directories, tables and the JSON Schema all come from it; `pybench.case` fixes one value of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pybench.catalogue.models import MODELS

WORKLOADS = ("infer", "train", "h2d", "tokenize", "accuracy", "noop")
RUNTIMES = ("tensorrt", "onnxruntime", "torch", "torch-compile", "torch-graph", "torch-tensorrt")
PRECISIONS = (
    "fp32", "tf32", "fp16", "bf16", "int8", "fp8", "int8+fp16", "int8+bf16", "fp8+fp16", "fp8+bf16",
    "amp-fp16", "amp-bf16",
)  # fmt: skip
SYNTHETIC = "synthetic-100"  # a generated set of images: docs/method.md
QAT = "qat"  # quantisation-aware training: the weights are trained on with INT8 rounding
QUANTISERS = ("pybench", "onnxruntime", "modelopt", QAT)
ARRIVALS = ("closed", "fixed", "poisson")
LAUNCHES = ("graph", "enqueue")
PROVIDERS = ("cpu", "cuda", "tensorrt")
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")
PATHS = ("none", "python", "hf", "rust", "go_rust")
CALIBRATIONS = ("minmax", "entropy", "percentile", "moving-average")
# What quantisers other than pybench's own know of that (tests hold the two together).
CALIBRATIONS_OF = {"onnxruntime": ("minmax", "percentile"), "modelopt": ("minmax", "entropy")}

_LANGUAGE = frozenset({"infer", "train", "tokenize"})
_IMAGES = frozenset({"infer", "accuracy"})
_MODEL = frozenset({"infer", "train", "tokenize", "accuracy"})
_ALL = frozenset(WORKLOADS)
_MEASURED = _ALL - {"accuracy"}  # which times nothing

ENGINE_FACTORS = ("workspace_bytes", "optimisation_level", "aux_streams", "build")  # of what TensorRT builds
QUANTISING_FACTORS = ("quantiser", "calibration", "calibration_images")
BOARD_SETTINGS = ("power_limit_w", "sm_clock_mhz", "memory_clock_mhz")

FactorKind = Literal["choice", "text", "file", "integer", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor: what a plan may set. `workloads`: where it means something; elsewhere setting it is a plan error.

    A `file` factor takes a built-in name from `choices`, or else a path. `protocol` marks how a case is measured rather
    than what: such factors belong into a plan's `defaults` and are not shown in tables unless they vary.
    """

    name: str
    kind: FactorKind
    default: Any
    meaning: str
    workloads: frozenset[str] = _ALL
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    protocol: bool = False


_LIST = (
    Factor("workload", "choice", None, "what is measured", choices=WORKLOADS),
    Factor(
        "model",
        "file",
        None,
        "a built-in model, or a path to your own ONNX file",
        _MODEL,
        tuple(MODELS),
    ),
    Factor(
        "checkpoint",
        "file",
        None,
        "weights of a built-in model: trained here on synthetic-100, or a file of torch's or safetensors'",
        _MODEL,
        (SYNTHETIC,),
    ),
    Factor("runtime", "choice", None, "what executes the model", _MODEL, RUNTIMES),
    Factor("precision", "choice", "fp32", "the numeric contract of the model", _MODEL, PRECISIONS),
    Factor(
        "keep_fp32",
        "text",
        None,
        "operators that stay in FP32 in a lower precision: a regular expression on the whole name of an ONNX node",
        _IMAGES,
    ),
    Factor(
        "quantiser",
        "choice",
        None,
        "what puts int8 and fp8 into the graph; qat: training on with int8 rounding; null: pybench, but for "
        "onnxruntime on a CPU its own",
        _IMAGES,
        QUANTISERS,
    ),
    Factor("calibration", "choice", "minmax", "how the ranges of int8 and fp8 are found", _IMAGES, CALIBRATIONS),
    Factor("calibration_images", "integer", 100, "samples that those ranges are found on", _IMAGES, minimum=1),
    Factor(
        "workspace_bytes",
        "integer",
        None,
        "scratch memory that a TensorRT engine may use; null: what the GPU has",
        _IMAGES,
        minimum=1,
    ),
    Factor(
        "optimisation_level",
        "integer",
        3,
        "how long TensorRT searches for kernels (its builder_optimization_level)",
        _IMAGES,
        minimum=1,
        maximum=5,
    ),
    Factor("aux_streams", "integer", 0, "streams that a TensorRT engine may use beside its own", _IMAGES, minimum=0),
    Factor(
        "build",
        "integer",
        1,
        "which build of the TensorRT engine: two builds of one model differ, and several numbers here make them cases",
        _IMAGES,
        minimum=1,
    ),
    Factor(
        "launch",
        "choice",
        "graph",
        "how TensorRT (and onnxruntime's provider cuda) launches an iteration: a captured CUDA graph, or enqueue",
        frozenset({"infer"}),
        LAUNCHES,
    ),
    Factor(
        "provider",
        "choice",
        None,
        "what onnxruntime executes on; null: CUDA where there is a GPU and its build has it, else the CPU",
        _IMAGES,
        PROVIDERS,
    ),
    Factor("compile_mode", "choice", "default", "what torch-compile optimises for", _IMAGES, COMPILE_MODES),
    Factor("batch", "integer", 1, "samples an iteration", _MODEL, minimum=1),
    Factor("seq_len", "integer", 128, "tokens a sample (language models)", _LANGUAGE, minimum=2),
    Factor("path", "choice", "none", "how tokens reach the model; none: synthetic ids", _LANGUAGE, PATHS),
    Factor(
        "fed",
        "boolean",
        False,
        "with path none: hand over synthetic ids batch by batch, as a path that reads text does",
        frozenset({"infer"}),
    ),
    Factor("tokenizer", "file", "tok32k", "the vocabulary, or a path to a tokenizer.json", _LANGUAGE, ("tok32k",)),
    Factor(
        "corpus",
        "file",
        "python-stdlib",
        "text: the sources of Python's standard library, or a file or folder (text or .jsonl; .gz, .zst)",
        _LANGUAGE,
        ("python-stdlib",),
    ),
    Factor("corpus_limit_bytes", "integer", None, "take whole documents up to this many bytes", _LANGUAGE, minimum=1),
    Factor("corpus_field", "text", "text", "the field of a JSON line that holds its text", _LANGUAGE),
    Factor(
        "images",
        "file",
        None,
        "scikit-learn's digits, the generated synthetic-100, or a path: an ImageFolder tree, CIFAR-10's binary files, "
        "images.npy beside labels.npy, an .npz of both",
        _IMAGES,
        ("digits", SYNTHETIC),
    ),
    Factor("image_limit", "integer", None, "evaluate at most this many images", _IMAGES, minimum=1),
    Factor(
        "transfers", "boolean", False, "include the copies to and from the device in an iteration", frozenset({"infer"})
    ),
    Factor(
        "arrivals",
        "choice",
        "closed",
        "closed: an iteration begins when there is room; else they arrive at a rate, and latency counts from arrival",
        frozenset({"infer"}),
        ARRIVALS,
    ),
    Factor(
        "arrival_rate_per_s",
        "number",
        None,
        "iterations that arrive a second, where arrivals is not closed",
        frozenset({"infer"}),
        minimum=0.001,
    ),
    Factor("transfer_bytes", "integer", 67108864, "bytes a copy", frozenset({"h2d"}), minimum=1),
    Factor("pinned", "boolean", False, "copy from page-locked memory", frozenset({"h2d"})),
    Factor("non_blocking", "boolean", False, "copy asynchronously", frozenset({"h2d"})),
    Factor("threads", "integer", None, "threads inside an operator; null: one for each CPU allowed", minimum=1),
    Factor("affinity", "text", None, "CPUs the worker may use, as in `0-3,8`"),
    Factor("device", "text", "auto", "auto: the first GPU, else the CPU; or cpu, cuda, a GPU's UUID"),
    Factor(
        "power_limit_w",
        "integer",
        None,
        "power limit of the GPU's board during the run; null: as it is",
        _MEASURED,
        minimum=1,
    ),
    Factor(
        "sm_clock_mhz",
        "integer",
        None,
        "clock that the GPU's multiprocessors are locked to; null: as they are",
        _MEASURED,
        minimum=1,
    ),
    Factor(
        "memory_clock_mhz",
        "integer",
        None,
        "clock that the GPU's memory is locked to; null: as it is",
        _MEASURED,
        minimum=1,
    ),
    Factor("warmup_iterations", "integer", 10, "iterations before the timing window", minimum=0, protocol=True),
    Factor("iterations", "integer", 100, "iterations in the timing window", minimum=1, protocol=True),
    Factor(
        "energy_window_s",
        "number",
        0.0,
        "length of the energy window; 0: the timing window serves",
        minimum=0,
        protocol=True,
    ),
    Factor(
        "idle_window_s",
        "number",
        0.5,
        "rest before the warm-up and after the energy window, for a GPU's idle power; 0: none",
        minimum=0,
        protocol=True,
    ),
)

FACTORS: dict[str, Factor] = {factor.name: factor for factor in _LIST}


def quantised_type(precision: str) -> str | None:
    """`int8` or `fp8`: what a precision's convolutions and matrix products multiply; None: it is not quantised."""
    head = precision.partition("+")[0]
    return head if head in ("int8", "fp8") else None


def floating_type(precision: str) -> str:
    """What a precision computes in where it is not quantised: `fp32` (also of `tf32`), `fp16` or `bf16`."""
    head, _, rest = precision.removeprefix("amp-").partition("+")
    return rest or (head if head in ("fp16", "bf16") else "fp32")
