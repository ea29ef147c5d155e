# SPDX-License-Identifier: Apache-2.0
"""The closed list of factors, `FACTORS`, and the values that they take.

Plans, run directories, tables and the JSON Schema all come from it; `pybench.case` fixes one value of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pybench.catalogue.models import MODELS
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.quantisers import CALIBRATIONS, QUANTISERS
from pybench.catalogue.runtimes import COMPILE_MODES, PROVIDERS, RUNTIMES
from pybench.catalogue.workloads import WORKLOADS, FactorGroup

SYNTHETIC = "synthetic-100"  # a generated set of images: docs/method/accuracy.md
ARRIVALS = ("closed", "fixed", "poisson")
LAUNCHES = ("graph", "enqueue")

FactorKind = Literal["choice", "text", "file", "integer", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor: what a plan may set.

    name: as plans name it
    kind: which values it takes; a `file` is a built-in name from `choices`, or else a path
    default: its value where a plan says nothing
    meaning: what it sets, for plans' authors
    absent: what null stands for, where it is a value
    group: it means something for the workloads that take this group; elsewhere setting it is a plan error
    choices: the values of a `choice`, and the built-in names of a `file`
    minimum, maximum: of a number
    protocol: it says how a case is measured rather than what; such factors belong into a plan's `defaults`, and tables
        show them only where they vary
    """

    name: str
    kind: FactorKind
    default: Any
    meaning: str
    group: FactorGroup = "run"
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    protocol: bool = False
    absent: str = ""

    @property
    def workloads(self) -> frozenset[str]:
        """Names of the workloads that it means something for."""
        return frozenset(name for name, workload in WORKLOADS.items() if workload.uses(self.group))


_LIST = (
    Factor("workload", "choice", None, "what is measured", choices=tuple(WORKLOADS)),
    Factor(
        "model",
        "file",
        None,
        "a built-in model, or the path of your own ONNX file",
        "model",
        tuple(MODELS),
        absent="no model",
    ),
    Factor(
        "checkpoint",
        "file",
        None,
        "weights of a built-in model: a file of torch or safetensors, or `synthetic-100` to train them first",
        "model",
        (SYNTHETIC,),
        absent="random weights, or those that the model is trained to here",
    ),
    Factor("runtime", "choice", None, "what executes the model", "model", tuple(RUNTIMES)),
    Factor("precision", "choice", "fp32", "the number types that the model computes in", "model", tuple(PRECISIONS)),
    Factor(
        "keep_fp32",
        "text",
        None,
        "ONNX nodes that stay in FP32 in a lower precision: a regular expression that matches their whole names",
        "quantising",
        absent="none",
    ),
    Factor(
        "quantiser",
        "choice",
        None,
        "which quantiser inserts the int8 or fp8 rounding; `qat`: fine-tune with INT8 rounding",
        "quantising",
        tuple(QUANTISERS),
        absent="`pybench`, but `onnxruntime` for kernels of onnxruntime",
    ),
    Factor(
        "calibration",
        "choice",
        "minmax",
        "how the ranges of int8 and fp8 are chosen from samples",
        "quantising",
        CALIBRATIONS,
    ),
    Factor(
        "calibration_images",
        "integer",
        100,
        "how many samples the ranges of int8 and fp8 are chosen from",
        "quantising",
        minimum=1,
    ),
    Factor(
        "workspace_bytes",
        "integer",
        None,
        "scratch memory that TensorRT may use for an engine",
        "engine",
        minimum=1,
        absent="all memory of the GPU",
    ),
    Factor(
        "optimisation_level",
        "integer",
        3,
        "how long TensorRT searches for fast kernels (`builder_optimization_level`)",
        "engine",
        minimum=1,
        maximum=5,
    ),
    Factor("aux_streams", "integer", 0, "CUDA streams that an engine may use besides its own", "engine", minimum=0),
    Factor(
        "build",
        "integer",
        1,
        "number of the build of a TensorRT engine; several numbers build the same engine several times, because two "
        "builds of one model differ",
        "engine",
        minimum=1,
    ),
    Factor(
        "launch",
        "choice",
        "graph",
        "how a GPU gets the work of an iteration: as one captured CUDA graph, or kernel by kernel",
        "serving",
        LAUNCHES,
    ),
    Factor(
        "provider",
        "choice",
        None,
        "which execution provider onnxruntime uses",
        "runtime",
        PROVIDERS,
        absent="`cuda` if there is a GPU and the installed build supports it, else `cpu`",
    ),
    Factor("compile_mode", "choice", "default", "what torch-compile optimises for", "runtime", COMPILE_MODES),
    Factor("batch", "integer", 1, "samples in an iteration", "model", minimum=1),
    Factor("seq_len", "integer", 128, "tokens in a sample of a language model", "tokens", minimum=2),
    Factor(
        "path",
        "choice",
        "none",
        "which tokenizer turns text into the model's token ids; `none`: the ids are random",
        "text",
        tuple(PATHS),
    ),
    Factor(
        "fed",
        "boolean",
        False,
        "with path `none`: hand the random ids over batch by batch, as a path that reads text does",
        "feeding",
    ),
    Factor(
        "tokenizer", "file", "tok32k", "the shipped vocabulary, or the path of a tokenizer.json", "text", ("tok32k",)
    ),
    Factor(
        "corpus",
        "file",
        "python-stdlib",
        "the text: the sources of Python's standard library, or a file or folder of text or .jsonl, plain or as "
        ".gz or .zst",
        "text",
        ("python-stdlib",),
    ),
    Factor(
        "corpus_limit_bytes",
        "integer",
        None,
        "read whole documents up to this many bytes",
        "text",
        minimum=1,
        absent="read all",
    ),
    Factor("corpus_field", "text", "text", "which field of a JSON line contains its text", "text"),
    Factor(
        "images",
        "file",
        None,
        "labelled images: `digits` of scikit-learn, the generated `synthetic-100`, or a path (docs/user/plans.md)",
        "images",
        ("digits", SYNTHETIC),
        absent="those that the model was trained on here",
    ),
    Factor("image_limit", "integer", None, "judge at most this many images", "images", minimum=1, absent="all"),
    Factor(
        "transfers",
        "boolean",
        False,
        "whether an iteration includes the copies to and from the device",
        "serving",
    ),
    Factor(
        "arrivals",
        "choice",
        "closed",
        "`closed`: a new iteration begins as soon as an earlier one has ended; `fixed` and `poisson`: iterations "
        "arrive at a rate, and latency counts from the arrival",
        "serving",
        ARRIVALS,
    ),
    Factor(
        "arrival_rate_per_s",
        "number",
        None,
        "how many iterations arrive in a second, where `arrivals` is not `closed`",
        "serving",
        minimum=0.001,
    ),
    Factor("transfer_bytes", "integer", 67108864, "bytes in a copy", "copying", minimum=1),
    Factor("pinned", "boolean", False, "whether the copy is from page-locked memory", "copying"),
    Factor("non_blocking", "boolean", False, "whether the copy is asynchronous", "copying"),
    Factor(
        "threads",
        "integer",
        None,
        "CPU threads inside an operator",
        minimum=1,
        absent="as many as the CPUs that the run may use",
    ),
    Factor("affinity", "text", None, "CPUs that the run may use, such as `0-3,8`", absent="all"),
    Factor(
        "device", "text", "auto", "`auto`: the first GPU, or the CPU if there is none; or `cpu`, `cuda`, a GPU's UUID"
    ),
    Factor(
        "power_limit_w",
        "integer",
        None,
        "power limit of the GPU's board during the run",
        "board",
        minimum=1,
        absent="unchanged",
    ),
    Factor(
        "sm_clock_mhz",
        "integer",
        None,
        "clock that the GPU's multiprocessors are locked to",
        "board",
        minimum=1,
        absent="unchanged",
    ),
    Factor(
        "memory_clock_mhz",
        "integer",
        None,
        "clock that the GPU's memory is locked to",
        "board",
        minimum=1,
        absent="unchanged",
    ),
    Factor("warmup_iterations", "integer", 10, "iterations before the timing window", minimum=0, protocol=True),
    Factor("iterations", "integer", 100, "iterations in the timing window", minimum=1, protocol=True),
    Factor(
        "energy_window_s",
        "number",
        0.0,
        "length of the energy window in seconds; 0: energy is measured in the timing window",
        minimum=0,
        protocol=True,
    ),
    Factor(
        "idle_window_s",
        "number",
        0.5,
        "seconds of rest before the warm-up and after the energy window, for a GPU's idle power; 0: no rest",
        minimum=0,
        protocol=True,
    ),
)

FACTORS: dict[str, Factor] = {factor.name: factor for factor in _LIST}


def factors_in(*groups: FactorGroup) -> tuple[str, ...]:
    """Names of the factors in these groups, in the order of `FACTORS`."""
    return tuple(name for name, factor in FACTORS.items() if factor.group in groups)


def is_built_in(factor: str, value: Any) -> bool:
    """Whether a `file` factor's value is one of its built-in names rather than a path."""
    return value in FACTORS[factor].choices


BOARD_SETTINGS = factors_in("board")
QUANTISING_FACTORS = tuple(name for name in factors_in("quantising") if name != "keep_fp32")  # that has no quantiser
