# SPDX-License-Identifier: Apache-2.0
"""What executes a model: a row for each runtime. Its backends are a part of the row.

A runtime's module has `open_case(given, spec, case, threads, *, deterministic) -> Session` (`pybench.runtimes`), and
one that trains `open_training(loss, case, kind, threads) -> TrainingPass` (`pybench.runtimes.torch`).
Seconds of a start were measured with ResNet-50 on one NVIDIA H200 (bench/results/runtimes.md), unless a comment says
otherwise. `--dry-run` adds them up, and promises no more than a factor of three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pybench.catalogue.options import Option
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.rows import Rows

Where = Literal["anywhere", "on_gpu", "on_some_cpus"]
Executes = Mapping[str, Where]  # precision -> where it is executed


def anywhere(*precisions: str) -> dict[str, Where]:
    """Precisions that are executed on a CPU and on a GPU."""
    return dict.fromkeys(precisions, "anywhere")


def on_gpu(*precisions: str) -> dict[str, Where]:
    """Precisions that need a GPU."""
    return dict.fromkeys(precisions, "on_gpu")


def on_some_cpus(*precisions: str) -> dict[str, Where]:
    """Precisions that are executed on a CPU of which the runtime's package says that it multiplies in their types."""
    return dict.fromkeys(precisions, "on_some_cpus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One of the engines inside a runtime that has several: a value of the factor `provider`.

    `called`: its name in the runtime.
    `needs_gpu`: whether it runs on GPUs only; else it runs on the CPU only.
    `captures`: whether the factor `launch` has a meaning: it can capture a CUDA graph.
    `symmetric_ranges`: whether it takes symmetric ranges of int8 only.
    `finds_ranges`: whether it has kernels in integers that find the ranges of activations in each run.
    `stores`: types of weights that it multiplies with as they are stored, whatever its `precisions` are.
    `start_s`: as `Runtime.start_s`, where the backend's differs; None: it does not.
    `builds`: whether it builds an engine where it opens a file, which takes long.
    `whole_as`: into how many parts it takes a graph that it takes whole; None: any number.
    `generates_in`: precisions in which it continues prompts from a cache, where its runtime generates.
    `why_not`: why it executes no other precision; `install`: what brings it.
    """

    name: str
    called: str
    needs_gpu: bool
    precisions: Executes
    why_not: str
    install: str = ""
    captures: bool = False
    symmetric_ranges: bool = False
    finds_ranges: bool = False
    stores: tuple[str, ...] = ()
    start_s: float | None = None
    builds: bool = False
    whole_as: int | None = None
    generates_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One runtime.

    `meaning`: what an iteration of it times, for plans' authors.
    `module`: where its `open_case` is; `audit`: `module:name` of what finds the precision that ran, None: nothing does.
    `profile`: `module:name` of what tells the kernels of an iteration, None: nothing does.
    `opens`: what it is given: an ONNX file, an engine that was built of one, a call that builds a torch module, or
    solvers of what the model gives.
    `needs`: packages that have to be installed (`pybench.catalogue.packages`), the runtime's own first.
    `gpu_fact`: which fact of a machine says what GPUs it sees; None: it runs on CPUs only.
    `start_s`: Python, imports, opening and compiling, until a first iteration may be timed.
    `making_s`: what building its engine takes, once for all runs; None: nothing is built beforehand.
    `computes_in`: the type that it computes in whatever a case says, so that `precision` has no meaning for it.
    `precisions`: what it infers in; a runtime with backends says it of each of them. `trains`: what it trains in.
    `factors`: those that only some runtimes have, and this one has. `build_factors`: those of the engine's making.
    `modes`: values of the factor `compile_mode`; `graph_modes`: those that record CUDA graphs.
    `graph`: whether the loop replays a captured graph from C++: never, with `launch: graph`, or always.
    `transfers`: whether an iteration can include the copies to and from the device.
    `generates`: `module:name` of what continues prompts from a cache of keys and values, None: nothing does
    (pybench/runtimes/generation.py). `one_step`: whether one step serves every position, so that each step reads the
    whole capacity of the cache.
    `takes_tensors`: whether it is fed with tensors that lie on its device already.
    `calls_module`: whether each iteration calls the module's own Python, which can then dispatch its parts.
    `parts`: `module:name` of what opens a model's parts one by one and dispatches them, None: a model is opened whole.
    `own_path`: the one path by which it reads text, in a process of its own: it is given no inputs by the worker, and
    runs built-in language models alone. None: it takes whatever the worker gives it.
    `quantiser`: what makes the int8 of its kernels, unless a case says otherwise. `ranges`: of what that one makes.
    `needs_vnni`: ranges of INT8 that it computes on a CPU by kernels that saturate without VNNI.
    `size_is`, `compile_is`: what the metrics `model_bytes` and `compile_s` are. None: a run spends no `compile_s`.
    `plugin`: the package that adds it; None: pybench. `options`: what plans can set of it, next to factors.
    """

    name: str
    module: str
    opens: Literal["onnx", "engine", "module", "equations"]
    needs: tuple[str, ...]
    start_s: float
    meaning: str = ""
    audit: str | None = None
    profile: str | None = None
    gpu_fact: Literal["torch", "cuda"] | None = "torch"
    making_s: float | None = None
    computes_in: str | None = None
    precisions: Executes = field(default_factory=dict)
    trains: Executes = field(default_factory=dict)
    backends: tuple[Backend, ...] = ()
    factors: tuple[str, ...] = ()
    build_factors: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    graph_modes: tuple[str, ...] = ()
    graph: Literal["never", "asked", "always"] = "never"
    transfers: bool = True
    generates: str | None = None
    one_step: bool = False
    takes_tensors: bool = False
    calls_module: bool = False
    parts: str | None = None
    own_path: str | None = None
    quantiser: str = "pybench"
    ranges: Literal["symmetric", "asymmetric"] = "symmetric"
    needs_vnni: tuple[str, ...] = ()
    size_is: str = "parameters and buffers in memory"
    compile_is: str | None = None
    plugin: Plugin | None = None
    options: tuple[Option, ...] = ()

    @property
    def is_eager(self) -> bool:
        """Whether it calls the operators of a torch module one by one, and neither compiles nor captures them."""
        return self.opens == "module" and self.compile_is is None

    def backend(self, provider: str | None, has_gpu: bool) -> Backend | None:
        """The backend that a case runs on: the one it names, else the first for a GPU where there is one, else the
        first for a CPU. None: the runtime has no backends."""
        if provider is not None:
            return next((backend for backend in self.backends if backend.name == provider), None)
        return next((backend for backend in self.backends if backend.needs_gpu == has_gpu), None)

    def factors_of(self, provider: str | None, may_use_gpu: bool) -> tuple[str, ...]:
        """Those of the runtimes' own factors that change something about a case on this runtime.

        Without a provider the GPU's backend is assumed where the case may use one: whether there is one is not known.
        """
        backend = self.backend(provider, may_use_gpu)
        captures = backend is not None and backend.captures and may_use_gpu
        return (*self.build_factors, *self.factors, *((LAUNCH,) if captures else ()))


LAUNCH = "launch"
SOLVERS = ("cpp", "numpy")  # the first is what speed-ups are stated against
_EAGER = anywhere("fp32") | on_gpu("tf32", "fp16") | anywhere("bf16")  # a CPU emulates FP16 for most operators
_TRAINED = anywhere("fp32") | on_gpu("tf32") | anywhere("bf16", "amp-bf16") | on_gpu("amp-fp16")
_COMPILED = on_gpu("fp32", "tf32", "fp16", "bf16")

# Of ONNX Runtime, whoever calls it.
_PROVIDERS = (
    Backend(
        name="cpu",
        called="CPUExecutionProvider",
        needs_gpu=False,
        precisions=anywhere("fp32", "int8"),
        why_not="it multiplies in FP32 and in integers, emulates FP16 by casts, and has no kernels for BF16",
        finds_ranges=True,
        stores=("int8", "int4"),
        generates_in=("fp32",),
    ),
    Backend(
        name="cuda",
        called="CUDAExecutionProvider",
        needs_gpu=True,
        precisions=on_gpu("fp32", "tf32", "fp16", "bf16"),
        why_not="it has no integer convolutions, and would run Q/DQ nodes in floating point",
        install="onnxruntime-gpu",
        stores=("int8", "int4"),
        captures=True,
        start_s=1.6,
        generates_in=("fp32", "tf32"),
    ),
    Backend(
        name="tensorrt",
        called="TensorrtExecutionProvider",
        needs_gpu=True,
        precisions=on_gpu("fp32", "tf32", "fp16", "bf16", "int8", "int8+fp16", "int8+bf16"),
        why_not="it is not known to",
        install="onnxruntime-gpu, and TensorRT 10 for this provider",
        symmetric_ranges=True,
        start_s=33.0,  # it builds its engine in every run, in 16 to 63
        builds=True,
        whole_as=1,
    ),
)

_ROWS = (
    Runtime(
        name="tensorrt",
        meaning="an engine as one CUDA graph",
        module="pybench.runtimes.tensorrt.session",
        audit="pybench.measurement.audits:of_engine",
        profile="pybench.measurement.profiles:of_engine",
        opens="engine",
        needs=("tensorrt", "cuda_python"),
        gpu_fact="cuda",
        start_s=3.0,  # nominal: the libraries and the engine are loaded; what takes long is the engine's making
        making_s=32.0,  # the builder's own start 8, and 12 to 35 to build
        precisions=on_gpu(*(name for name, row in PRECISIONS.items() if not (row.autocast or row.weights_alone))),
        factors=(LAUNCH,),
        build_factors=("workspace_bytes", "optimisation_level", "aux_streams", "build"),
        graph="asked",
        parts="pybench.runtimes.tensorrt.parts:open_parts",
        size_is="size of the engine",
    ),
    Runtime(
        name="onnxruntime",
        meaning="runs with bound inputs and outputs",
        module="pybench.runtimes.onnxruntime",
        audit="pybench.measurement.audits:of_onnxruntime",
        profile="pybench.measurement.profiles:of_onnxruntime",
        opens="onnx",
        needs=("onnxruntime",),
        start_s=0.6,
        backends=_PROVIDERS,
        factors=("provider",),
        generates="pybench.runtimes.onnxruntime_generation:OnnxRuntimeGeneration",
        quantiser="onnxruntime",
        ranges="asymmetric",
        needs_vnni=("asymmetric",),  # it computes the others in FP32
        size_is="size of the ONNX file",
        compile_is="opening the session; on a GPU also the first runs, which build and capture for the shape",
    ),
    Runtime(
        name="openvino",
        meaning="inferences on bound inputs",
        module="pybench.runtimes.openvino",
        audit="pybench.measurement.audits:of_openvino",
        opens="onnx",
        needs=("openvino",),
        gpu_fact=None,
        start_s=2.0,  # measured on two cores: the import 0.7, and ResNet-50's opening 0.5 to 1
        precisions=anywhere("fp32", "int8") | on_some_cpus("fp16", "bf16"),
        needs_vnni=("symmetric", "asymmetric"),
        size_is="size of the ONNX file",
        compile_is="reading the file and compiling it for the CPU",
    ),
    Runtime(
        name="native",
        meaning="runs in a process without Python",
        module="pybench.runtimes.native",
        audit="pybench.measurement.audits:of_native",
        opens="onnx",
        needs=("onnxruntime", "onnxruntime_library", "rust", "go_rust"),
        start_s=0.6,  # nominal: as onnxruntime
        backends=tuple(replace(backend, captures=False) for backend in _PROVIDERS),
        factors=("provider",),
        own_path="go_rust",
        quantiser="onnxruntime",
        ranges="asymmetric",
        needs_vnni=("asymmetric",),  # it computes the others in FP32
        size_is="size of the ONNX file",
        compile_is="loading ONNX Runtime's library and opening the session",
    ),
    Runtime(
        name="torch",
        meaning="eager operators; channels_last on a GPU",
        module="pybench.runtimes.torch",
        audit="pybench.measurement.audits:of_torch",
        profile="pybench.measurement.profiles:of_torch",
        opens="module",
        needs=("torch",),
        start_s=3.5,
        precisions=_EAGER,
        trains=_TRAINED,
        generates="pybench.runtimes.torch_generation:TorchGeneration",
        takes_tensors=True,
        calls_module=True,
    ),
    Runtime(
        name="torch-compile",
        meaning="the model as one graph of static shapes",
        module="pybench.runtimes.torch_compile",
        audit="pybench.measurement.audits:of_torch",
        profile="pybench.measurement.profiles:of_torch",
        opens="module",
        needs=("torch", "compiler"),
        start_s=17.5,  # torch's start, and 12 to 16 to compile with empty caches
        precisions=_EAGER,
        trains=_TRAINED,
        factors=("compile_mode",),
        modes=("default", "reduce-overhead", "max-autotune"),
        graph_modes=("reduce-overhead", "max-autotune"),
        generates="pybench.runtimes.torch_compile:TorchCompileGeneration",
        one_step=True,
        takes_tensors=True,
        compile_is="the first calls for the shape but the last of them, with empty caches and the compiler imported",
    ),
    Runtime(
        name="torch-graph",
        meaning="the eager operators as one CUDA graph",
        module="pybench.runtimes.torch_graph",
        audit="pybench.measurement.audits:of_torch",
        profile="pybench.measurement.profiles:of_torch",
        opens="module",
        needs=("torch",),
        start_s=5.0,
        precisions=_COMPILED,
        graph="always",
        transfers=False,
        generates="pybench.runtimes.torch_graph:TorchGraphGeneration",
        one_step=True,
        compile_is="the calls before capturing, and the capture",
    ),
    Runtime(
        name="torch-tensorrt",
        meaning="TensorRT engines inside torch, strongly typed",
        module="pybench.runtimes.torch_tensorrt",
        audit="pybench.measurement.audits:of_torch_tensorrt",
        profile="pybench.measurement.profiles:of_launches",
        opens="module",
        needs=("torch", "torch_tensorrt"),
        start_s=45.5,  # torch's start, and 42 to export and compile
        precisions=_COMPILED,
        factors=(LAUNCH,),
        size_is="parameters and buffers of the module that was compiled",
        compile_is="export and compilation for the shape, with no cache, and the first calls",
    ),
    Runtime(
        name="solver",
        meaning="a solver of the equations",
        module="pybench.runtimes.solver",
        audit="pybench.measurement.audits:of_solver",
        opens="equations",
        needs=(),
        gpu_fact=None,
        start_s=0.6,  # nominal: as onnxruntime
        computes_in="float64",
        factors=("solver",),
        size_is="constants of the equation of state",
    ),
)

RUNTIMES = Rows("runtime", _ROWS)

# Factors that only some runtimes have, in the order of the rows.
RUNTIME_FACTORS: tuple[str, ...] = tuple(
    dict.fromkeys(name for row in _ROWS for name in (*row.build_factors, *row.factors))
)
# Factors of what is built of a model before its runs.
BUILD_FACTORS: tuple[str, ...] = tuple(dict.fromkeys(name for row in _ROWS for name in row.build_factors))
DEVICES = ("auto", "cpu", "cuda")  # values of the factor `device`; any other is the UUID of a GPU
PROVIDERS: tuple[str, ...] = tuple(dict.fromkeys(backend.name for row in _ROWS for backend in row.backends))
COMPILE_MODES: tuple[str, ...] = tuple(dict.fromkeys(mode for row in _ROWS for mode in row.modes))


def takers_of(factor: str) -> tuple[str, ...]:
    """The runtimes that have one of `RUNTIME_FACTORS`; a runtime some of whose backends have it, with these."""
    found = []
    for row in _ROWS:
        capturing = [backend.name for backend in row.backends if factor == LAUNCH and backend.captures]
        if factor in (*row.build_factors, *row.factors):
            found.append(row.name)
        elif capturing:
            found.append(f"{row.name} with `provider: {', '.join(capturing)}`")
    return tuple(found)


def replaying() -> tuple[str, ...]:
    """The runtimes whose iterations can be a graph that is replayed from C++."""
    return tuple(row.name for row in _ROWS if row.graph != "never")


def executors_of(precision: str) -> tuple[str, ...]:
    """The runtimes that infer any model in a precision; a runtime with backends, with those that do."""
    found = []
    for row in _ROWS:
        if row.own_path is not None:
            continue
        backends = [backend.name for backend in row.backends if precision in backend.precisions]
        if precision in row.precisions:
            found.append(row.name)
        elif backends:
            found.append(f"{row.name} (provider {' or '.join(backends)})")
    return tuple(found)


def opening(kind: str) -> tuple[str, ...]:
    """The runtimes that open any ONNX file (`onnx`, also by way of an engine) or torch module (`module`)."""
    of_kind = [row for row in _ROWS if (row.opens == "module") == (kind == "module") and row.opens != "equations"]
    return tuple(row.name for row in of_kind if row.own_path is None)
