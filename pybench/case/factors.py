# SPDX-License-Identifier: Apache-2.0
"""The closed list of factors: what a plan may set.

`Factors` defines each of them once, with its type, default and meaning; a case is made of it. `FACTORS` is the same
list as data (`pybench.case.factor`). Plans, run directories, tables and the JSON Schema come from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pybench.case import idle
from pybench.case.factor import Factor, board_setting, factor, quantising_factor, runtime_factor, shaping_factor
from pybench.case.idle import outside_its_rows
from pybench.catalogue.blocks import BLOCKS, WIDTH_STEP
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.data_sets import DIGITS, SYNTHETIC, TRAINED_IN, TRAINED_ON
from pybench.catalogue.heads import DISPATCHES, MOST_HEADS
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import MODELS
from pybench.catalogue.options import Option
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.quantisers import CALIBRATIONS, EXTENTS, GRANULARITIES, PLACEMENTS, QUANTISERS, SCHEMES
from pybench.catalogue.runtimes import COMPILE_MODES, PROVIDERS, RUNTIMES, SOLVERS
from pybench.catalogue.workloads import WORKLOADS, FactorGroup
from pybench.errors import UnknownNameError

if TYPE_CHECKING:
    from pybench.case.case import Case

DIGITS_SIZE = 8  # height of the digits, which nothing resizes
ARRIVALS = ("closed", "fixed", "poisson")
LAUNCHES = ("graph", "enqueue")
NORMAL, ZEROS, DATA = "normal", "zeros", "data"  # of `inputs`
OPTIMISERS = ("adamw", "sgd")
MEMORY_FORMATS = CONTIGUOUS, CHANNELS_LAST = ("contiguous", "channels-last")
TO_GPU, FROM_GPU, BOTH = DIRECTIONS = ("h2d", "d2h", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """One value of each factor. The order is that of tables."""

    workload: str = field(
        metadata={"kind": "choice", "meaning": "what is measured", "choices": tuple(WORKLOADS), "rows": "workloads"}
    )
    model: str | None = factor(
        "file",
        None,
        "a built-in model, one of a library (`timm/NAME`, `torchvision/NAME`, `hf/TYPE`), a folder with a config.json, "
        "or the path of your own ONNX file",
        "model",
        choices=tuple(MODELS),
        rows="models",
        absent="no model",
    )
    shapes: str | None = factor(
        "text",
        None,
        "sizes of free dimensions of your own ONNX file, as in `{image: {height: [224, 384]}}`",
        "file",
        form="sizes",
        absent="the file leaves no dimension free but batch and sequence",
    )
    fixed_batch: int | None = factor(
        "integer",
        None,
        "the batch that your own ONNX file is fixed at, where `batch` is another: the file is then rewritten, and both "
        "are run to check that; pybench sets it",
        "file",
        minimum=1,
        absent="the file takes the batch as it is",
        idle=idle.BATCH_AS_IT_IS,
        follows=("batch",),
    )
    checkpoint: str | None = factor(
        "file",
        None,
        "weights: a file of torch or safetensors, for a model of a library also a folder of these, or a built-in data "
        "set to train a built-in model on first",
        "model",
        choices=TRAINED_ON,
        absent="random weights, or those that the model is trained to here",
        idle=idle.NOT_COMPUTED,
        follows=("runtime",),
    )
    trained_in: str | None = factor(
        "choice",
        None,
        "what weights are trained in, where they are trained beforehand: FP32, or automatic mixed precision",
        "model",
        choices=TRAINED_IN,
        absent="the digits in `fp32`; other data in `amp-bf16` on a GPU, else in `fp32`",
        idle=idle.NOT_TRAINED,
        follows=("checkpoint",),
    )
    training_seed: int = factor(
        "integer",
        0,
        "which training of the weights, where they are trained beforehand: its initial weights and order of data",
        "model",
        minimum=0,
        maximum=1_000_000,
        idle=idle.NOT_TRAINED,
        follows=("checkpoint",),
    )
    runtime: str | None = factor(
        "choice",
        None,
        "what executes the model",
        "model",
        choices=tuple(RUNTIMES),
        rows="runtimes",
        idle=idle.NOT_EXECUTED,
    )
    precision: str = factor(
        "choice",
        "fp32",
        "the number types that the model computes in",
        "model",
        choices=tuple(PRECISIONS),
        idle=idle.NOT_COMPUTED,
        follows=("runtime",),
        fixed_by="computes_in",
    )
    keep_fp32: str | None = quantising_factor(
        "text",
        None,
        "ONNX nodes that stay in FP32 in a lower precision: a regular expression that matches their whole names",
        idle.ALL_FP32,
        form="pattern",
        absent="none",
    )
    quantiser: str | None = quantising_factor(
        "choice",
        None,
        "which quantiser inserts the rounding; `qat` fine-tunes with it; `dynamic` finds ranges in each run; "
        "`weight-only`: only weights, in int8 or int4; `modelopt-autotune` measures where pairs pay",
        idle.NOT_QUANTISED,
        choices=tuple(QUANTISERS),
        absent="`pybench`, but `onnxruntime` for kernels of onnxruntime",
    )
    calibration: str = quantising_factor(
        "choice",
        "minmax",
        "how the ranges of int8 and fp8 are chosen from samples",
        idle.NOT_CALIBRATED,
        choices=CALIBRATIONS,
    )
    calibration_images: int = quantising_factor(
        "integer",
        100,
        "how many samples the ranges of int8 and fp8 are chosen from",
        idle.NOT_CALIBRATED,
        minimum=1,
    )
    scheme: str | None = quantising_factor(
        "choice",
        None,
        "whether ranges of int8 and int4 have a zero point: `symmetric` ones have none",
        idle.NOT_QUANTISED,
        choices=SCHEMES,
        absent="that of the runtime's kernels: `asymmetric` for onnxruntime on a CPU, else `symmetric`",
    )
    range: str = quantising_factor(
        "choice",
        "restricted",
        "which int8 codes a symmetric range uses: -127 to 127 (`restricted`), or -128, too (`full`)",
        idle.NOT_INT8,
        choices=EXTENTS,
    )
    granularity: str = quantising_factor(
        "choice",
        "channel",
        "how many scales a weight has: one for each output channel, or one for the tensor",
        idle.NOT_QUANTISED,
        choices=GRANULARITIES,
    )
    block_size: int = quantising_factor(
        "integer",
        32,
        "how many weights of an output channel share one scale, with `quantiser: weight-only`; a power of two",
        idle.NOT_STORED,
        minimum=16,
        maximum=256,
        step=16,
        hint="16, 32, 64, 128 or 256",
    )
    placement: str = factor(
        "choice",
        "fused",
        "where Q/DQ pairs stand: so that TensorRT fuses sums and means, too (`fused`), or only in front of each "
        "convolution and matrix product (`naive`)",
        "quantising",
        choices=PLACEMENTS,
        idle=idle.NOT_PLACED,
        follows=("precision",),
    )
    workspace_bytes: int | None = runtime_factor(
        "workspace_bytes",
        "integer",
        None,
        "scratch memory that TensorRT may use for an engine",
        "engine",
        minimum=1,
        absent="all memory of the GPU",
    )
    optimisation_level: int = runtime_factor(
        "optimisation_level",
        "integer",
        3,
        "how long TensorRT searches for fast kernels (`builder_optimization_level`)",
        "engine",
        minimum=1,
        maximum=5,
    )
    aux_streams: int = runtime_factor(
        "aux_streams", "integer", 0, "CUDA streams that an engine may use besides its own", "engine", minimum=0
    )
    build: int = runtime_factor(
        "build",
        "integer",
        1,
        "number of the build of a TensorRT engine; several numbers build the same engine several times, because two "
        "builds of one model differ",
        "engine",
        minimum=1,
    )
    launch: str = runtime_factor(
        "launch",
        "choice",
        "graph",
        "how a GPU gets the work of an iteration: as one captured CUDA graph, or kernel by kernel",
        "serving",
        follows=("runtime", "provider"),
        choices=LAUNCHES,
    )
    provider: str | None = runtime_factor(
        "provider",
        "choice",
        None,
        "which execution provider onnxruntime uses",
        choices=PROVIDERS,
        absent="`cuda` if there is a GPU and the installed build supports it, else `cpu`",
    )
    compile_mode: str = runtime_factor(
        "compile_mode", "choice", "default", "what torch-compile optimises for", choices=COMPILE_MODES
    )
    solver: str = runtime_factor(
        "solver",
        "choice",
        SOLVERS[0],
        "which solver stands in a network's place: compiled C++ on one thread, or numpy",
        choices=SOLVERS,
    )
    batch: int = factor("integer", 1, "samples in an iteration", "model", minimum=1)
    image_size: int | None = factor(
        "integer",
        None,
        "height and width of the images of a built-in model; the layers of the model follow",
        "sizing",
        minimum=1,
        maximum=4096,
        absent="the model's own",
    )
    block_type: str = shaping_factor(
        "block_type",
        "choice",
        "conv",
        "the block that a `stack` repeats",
        choices=tuple(BLOCKS),
    )
    depth: int = shaping_factor("depth", "integer", 4, "how many blocks a `stack` has", minimum=1, maximum=256)
    width: int = shaping_factor(
        "width",
        "integer",
        64,
        "channels of each block of a `stack`",
        minimum=WIDTH_STEP,
        maximum=4096,
        step=WIDTH_STEP,
    )
    heads: int = shaping_factor(
        "heads",
        "integer",
        3,
        "how many heads `vit-heads` has: depth, boxes, classes, and the same again",
        minimum=1,
        maximum=MOST_HEADS,
    )
    dispatch: str = shaping_factor(
        "dispatch",
        "choice",
        "one-engine",
        "how the heads of `vit-heads` share the backbone, and how they run",
        choices=tuple(DISPATCHES),
    )
    head_rates_hz: str | None = factor(
        "text",
        None,
        "how often each head runs in a second, as in `30,10,5`; its deadline is one period after a frame's arrival",
        "arriving",
        form="rates",
        idle=idle.NO_HEADS,
        follows=("model",),
        absent="each head runs in each iteration, and has no deadline",
    )
    seq_len: int = factor(
        "integer", 128, "tokens in a sample of a language model; in `generate`, its prompt", "tokens", minimum=2
    )
    new_tokens: int = factor(
        "integer",
        64,
        "tokens that each prompt is continued by; the first ends the prefill, and no token ends a sample early",
        "generating",
        minimum=2,
    )
    temperature: float = factor(
        "number",
        0.0,
        "0: the likeliest token each time (greedy); else tokens are drawn, with a seed, after logits are divided by it",
        "generating",
        minimum=0,
    )
    path: str = factor(
        "choice",
        "none",
        "which tokenizer turns text into the model's token ids; `none`: the ids are random",
        "text",
        choices=tuple(PATHS),
    )
    fed: bool | None = factor(
        "boolean",
        None,
        "with path `none`: hand the random ids over batch by batch, as a path that reads text does; or compute on one "
        "batch that stays on the device",
        "feeding",
        absent="batch by batch in train, one batch in infer",
        usual="feeds",
        idle=idle.FED_ANYHOW,
        follows=("path",),
    )
    tokenizer: str = factor(
        "file",
        "tok32k",
        "the shipped vocabulary, or the path of a tokenizer.json",
        "text",
        choices=("tok32k",),
        idle=idle.NOT_TOKENIZED,
        follows=("path", "inputs"),
    )
    corpus: str = factor(
        "file",
        "python-stdlib",
        "the text: the sources of Python's standard library, or a file or folder of text or .jsonl, plain or as "
        ".gz or .zst",
        "text",
        choices=("python-stdlib",),
        idle=idle.SYNTHETIC_IDS,
        follows=("path", "inputs"),
    )
    corpus_limit_bytes: int | None = factor(
        "integer",
        None,
        "read whole documents up to this many bytes",
        "text",
        minimum=1,
        absent="read all",
        idle=idle.SYNTHETIC_IDS,
        follows=("path", "inputs"),
    )
    corpus_field: str = factor(
        "text",
        "text",
        "which field of a JSON line contains its text",
        "text",
        hint="as in `text`",
        idle=idle.SYNTHETIC_IDS,
        follows=("path", "inputs"),
    )
    images: str | None = factor(
        "file",
        None,
        "labelled images: `digits` of scikit-learn, the generated `synthetic-100`, or a path (docs/user/models.md)",
        "images",
        choices=(DIGITS, SYNTHETIC),
        absent="those that the model was trained on here",
        idle=idle.NO_IMAGES,
        follows=("precision", "inputs", "workers"),
    )
    workers: int | None = factor(
        "integer",
        None,
        "processes that read, decode and resize `images` while a model trains; 0: it does so itself, between two steps",
        "loading",
        minimum=0,
        maximum=256,
        absent="one batch of random images, which stays on the device",
    )
    image_limit: int | None = factor(
        "integer", None, "judge at most this many images", "images", minimum=1, absent="all", idle=idle.NOT_JUDGED
    )
    inputs: str = factor(
        "file",
        NORMAL,
        "what the model is fed with: `normal` random numbers, `zeros`, the case's own `data` (images, or ids of text), "
        "or an .npz with an array for each input",
        "inputs",
        choices=(NORMAL, ZEROS, DATA),
        idle=idle.FED_BY_PATH,
        follows=("path",),
    )
    gradient_checkpointing: bool = factor(
        "boolean", False, "keep only the inputs of each block, and compute the rest again for the gradients", "blocks"
    )
    accumulation: int = factor(
        "integer",
        1,
        "parts of the batch whose gradients are summed, one after the other, before the optimiser steps",
        "training",
        minimum=1,
    )
    optimiser: str = factor(
        "choice",
        "adamw",
        "what changes the weights in training: AdamW, which has two numbers of state for each weight, or SGD with "
        "momentum, which has one",
        "training",
        choices=OPTIMISERS,
    )
    memory_format: str | None = factor(
        "choice",
        None,
        "the order of an image's numbers in the memory of training: plane by plane, or pixel by pixel "
        "(`channels-last`)",
        "layout",
        choices=MEMORY_FORMATS,
        absent="`channels-last` on a GPU, `contiguous` on a CPU",
    )
    fused_optimiser: bool | None = factor(
        "boolean",
        None,
        "one kernel for the whole optimiser; else several for each group of parameters, or on a CPU for each parameter",
        "training",
        absent="fused on a GPU",
    )
    target_top1_percent: float | None = factor(
        "number",
        None,
        "Top-1 on held-out images, in percent, at which training ends",
        "fitting",
        minimum=0,
        maximum=100,
        absent="`fit` needs one",
    )
    epochs_max: int = factor(
        "integer", 50, "epochs after which training ends without having reached the accuracy", "fitting", minimum=1
    )
    learning_rate: float | None = factor(
        "number",
        None,
        "the step of the optimiser from the second epoch on; it rises evenly through the first",
        "fitting",
        minimum=1e-9,
        maximum=1000,
        absent="0.0003 for adamw, 0.01 for sgd",
    )
    transfers: bool = factor(
        "boolean", False, "whether an iteration includes the copies to and from the device", "serving"
    )
    arrivals: str = factor(
        "choice",
        "closed",
        "`closed`: a new iteration begins as soon as an earlier one has ended; `fixed` and `poisson`: iterations "
        "arrive at a rate, and latency counts from the arrival",
        "arriving",
        choices=ARRIVALS,
    )
    arrival_rate_per_s: float | None = factor(
        "number",
        None,
        "how many iterations arrive in a second, where `arrivals` is not `closed`",
        "arriving",
        minimum=0.001,
        idle=idle.NO_ARRIVALS,
        follows=("arrivals",),
    )
    transfer_bytes: int = factor("integer", 67108864, "bytes in a copy", "copying", minimum=1)
    pinned: bool = factor("boolean", False, "whether the copy is from page-locked memory", "copying")
    non_blocking: bool = factor("boolean", False, "whether the copy is asynchronous", "copying")
    direction: str = factor(
        "choice",
        TO_GPU,
        "to the GPU, from it, or as many bytes both ways at once; `both` needs `pinned` and `non_blocking`",
        "copying",
        choices=DIRECTIONS,
    )
    streams: int = factor(
        "integer",
        1,
        "CUDA streams for each direction: the copy is cut into as many parts, which are copied at once",
        "copying",
        minimum=1,
        maximum=64,
        idle=idle.NOT_AT_ONCE,
        follows=("pinned", "non_blocking"),
    )
    numa_node: int | None = factor(
        "integer",
        None,
        "NUMA node of the host memory",
        "copying",
        absent="where the kernel puts it",
        hint="`lscpu` lists the nodes",
    )
    threads: int | None = factor(
        "integer",
        None,
        "CPU threads inside an operator",
        minimum=1,
        absent="as many as the CPUs that the run may use",
        idle=idle.NOT_THREADED,
        follows=("runtime",),
    )
    affinity: str | None = factor("text", None, "CPUs that the run may use, such as `0-3,8`", form="cpus", absent="all")
    device: str = factor(
        "text",
        "auto",
        "`auto`: the first GPU, or the CPU if there is none; or `cpu`, `cuda`, a GPU's UUID",
        form="device",
    )
    power_limit_w: int | None = board_setting("power limit of the GPU's board during the run", "watts")
    sm_clock_mhz: int | None = board_setting("clock that the GPU's multiprocessors are locked to", "MHz")
    memory_clock_mhz: int | None = board_setting("clock that the GPU's memory is locked to", "MHz")
    warmup_iterations: int = factor(
        "integer",
        10,
        "iterations before the timing window",
        minimum=0,
        protocol=True,
        idle=idle.NOT_ITERATED,
    )
    iterations: int = factor(
        "integer",
        100,
        "iterations in the timing window",
        minimum=1,
        protocol=True,
        idle=idle.NOT_ITERATED,
    )
    energy_window_s: float = factor(
        "number",
        0.0,
        "length of the energy window in seconds; 0: energy is measured in the timing window",
        minimum=0,
        protocol=True,
        idle=idle.NOT_ITERATED,
    )
    idle_window_s: float = factor(
        "number",
        0.5,
        "seconds of rest before the warm-up and after the energy window, for a GPU's idle power; 0: no rest",
        minimum=0,
        protocol=True,
    )


FACTORS: Mapping[str, Factor] = {
    one.name: Factor(name=one.name, default=None if one.default is MISSING else one.default, **one.metadata)
    for one in fields(Factors)
}


# Factors whose default is in the workload's row.
USUAL: Mapping[str, str] = {name: factor.usual for name, factor in FACTORS.items() if factor.usual is not None}


@lru_cache(maxsize=8)
def factors_of(catalogue: Catalogue) -> Mapping[str, Factor]:
    """`FACTORS` with the values that the rows of a catalogue add, then the options of its rows."""
    if catalogue is BUILT_IN:
        return FACTORS
    owners: dict[str, list[str]] = {}
    options: dict[str, Option] = {}
    for row in catalogue.added():
        for option in () if isinstance(row, Metric) else row.options:
            owners.setdefault(option.name, []).append(row.name)
            options[option.name] = option
    own = {
        name: one if one.rows is None else replace(one, choices=tuple(getattr(catalogue, one.rows)))
        for name, one in FACTORS.items()
    }
    return own | {name: _factor_of(option, owners[name]) for name, option in options.items()}


def _factor_of(option: Option, owners: list[str]) -> Factor:
    return Factor(
        name=option.name,
        kind=option.kind,
        default=option.default,
        meaning=option.meaning,
        choices=option.choices,
        minimum=option.minimum,
        maximum=option.maximum,
        idle=outside_its_rows(option.name, owners),
    )


def factor_names(cases: Iterable[Case]) -> tuple[str, ...]:
    """Names of all factors, then of the options that any of these cases has."""
    return tuple(dict.fromkeys([*FACTORS, *(name for case in cases for name in case.own_factors())]))


def factor_named(name: str, case: Case) -> Factor:
    """A factor, or an option of the case. Raises UnknownNameError for another name."""
    known = case.own_factors()
    if name not in known:
        raise UnknownNameError("factor", name, known)
    return known[name]


def factors_in(*groups: FactorGroup) -> tuple[str, ...]:
    """Names of the factors in these groups, in the order of `FACTORS`."""
    return tuple(name for name, factor in FACTORS.items() if factor.group in groups)


def followers_of(fixed: str) -> tuple[str, ...]:
    """Names of the factors that follow one that a contrast fixes."""
    return tuple(name for name, factor in FACTORS.items() if fixed in factor.follows)


def idle_factors(case: Case) -> frozenset[str]:
    """Factors that change nothing about a case because of another factor. A plan resets them to their default."""
    known = factors_of(case.catalogue)
    return frozenset(name for name, factor in known.items() if factor.idle is not None and factor.idle.when(case))


def is_idle(name: str, case: Case) -> bool:
    """Whether a name means nothing for a case: an idle factor, or an option that the case does not have."""
    return name in case.idle or (name not in FACTORS and name not in case.own_factors())


def fixed_value(name: str, case: Case) -> str | None:
    """What the case's runtime has in the place of an idle factor; None: nothing."""
    field_name, row = factor_named(name, case).fixed_by, case.runtime_row
    return None if field_name is None or row is None else getattr(row, field_name)


def is_built_in(factor: str, value: Any) -> bool:
    """Whether a `file` factor's value is one of its built-in names rather than a path."""
    return value in FACTORS[factor].choices


BOARD_SETTINGS = factors_in("board")
QUANTISING_FACTORS = tuple(name for name in factors_in("quantising") if name != "keep_fp32")  # that has no quantiser
