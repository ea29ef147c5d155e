# SPDX-License-Identifier: Apache-2.0
"""An ONNX file into an engine: strongly typed, TF32 set or cleared by name, one profile whose shapes are fixed.

A dynamic batch or sequence is fixed by the profile (least, best and largest shape are one), so that the engine is what
a fixed export would give. The timing cache is read before and written after, one file for each GPU, version and number
of the build. With strong typing and a warm cache a build repeats, and two builds with caches of their own show how much
two builds differ. Does not choose a precision: the graph has it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pybench.catalogue.causes import Cause
from pybench.errors import DeviceMemoryError, InputError, PybenchError, UnsupportedError, in_short
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, monotonic_ns
from pybench.runtimes.session import TensorSpec, resolved, with_names
from pybench.runtimes.tensorrt.library import Messages, listen, load, strongly_typed

AVERAGED_TIMINGS = 8  # of each kernel that is tried: trtexec's, where the API's own default is 1
_NO_KERNEL = ("Could not find any implementation for node", "No supported formats for")  # said of a node, by 10.6


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How an engine is built.

    tf32: whether FP32 products may be computed in TF32
    batch: of the inputs
    tokens: of a sequence; 0 for models that take no token ids
    workspace_bytes: scratch memory that the engine may use; None: what there is
    optimisation_level: of TensorRT's builder, 1 to 5
    aux_streams: CUDA streams besides its own
    timing_cache: a file that is read and written; None: none
    """

    tf32: bool
    batch: int
    tokens: int
    workspace_bytes: int | None = None
    optimisation_level: int = 3
    aux_streams: int = 0
    timing_cache: Path | None = None


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """What was built.

    start_s: time until TensorRT was ready (it loads its kernels, for seconds the first time)
    parse_s, build_s: time for the file, and for the engine
    cache_sha256: of the timing cache as it was read; None: it was empty
    shapes: of the inputs
    warnings: TensorRT's, each once
    """

    start_s: float
    parse_s: float
    build_s: float
    cache_sha256: str | None
    shapes: Mapping[str, tuple[int, ...]]
    warnings: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """From the file to the engine."""
        return self.parse_s + self.build_s


def build_engine(source: Path, destination: Path, options: BuildOptions) -> BuiltEngine:
    """Builds `source` and writes the engine to `destination`.

    The caller has made sure of a GPU: TensorRT aborts the process without one. Raises InputError for a file that
    TensorRT cannot parse, and DeviceMemoryError when memory ran out. Raises UnsupportedError (`no_kernel`) where
    TensorRT has no kernel for a node in its types, and PybenchError when it builds nothing for another reason.
    """
    library = load()
    log, messages = listen()
    messages.forget()
    started_ns = monotonic_ns()
    library.init_libnvinfer_plugins(log, "")
    builder = library.Builder(log)
    begin_ns = monotonic_ns()
    network = builder.create_network(strongly_typed(library))
    _parse(library, network, log, source)
    config = builder.create_builder_config()
    shapes = _configure(library, builder, config, network, source, options)
    cache, known = _read_cache(config, options.timing_cache)
    parsed_ns = monotonic_ns()
    plan = builder.build_serialized_network(network, config)
    built_ns = monotonic_ns()
    del cache  # which the builder used until here
    if plan is None:
        raise _failure(source, messages)
    destination.write_bytes(plan)
    _write_cache(config, options.timing_cache)
    start_s, parse_s, build_s = (
        (end - begin) / NANOSECONDS_PER_SECOND
        for begin, end in ((started_ns, begin_ns), (begin_ns, parsed_ns), (parsed_ns, built_ns))
    )
    return BuiltEngine(start_s, parse_s, build_s, known, shapes, tuple(dict.fromkeys(messages.warnings)))


def timing_cache_file(platform: str, build: int) -> Path:
    """Where the timing cache of a platform and a number of the build is kept, in the user's cache folder."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in platform)
    return root / "pybench" / "tensorrt" / f"{name}-build-{build}.timing"


def _parse(library: Any, network: Any, log: Any, source: Path) -> None:
    parser = library.OnnxParser(network, log)
    if parser.parse_from_file(str(source)):
        return
    said = "; ".join(parser.get_error(index).desc() for index in range(parser.num_errors))
    raise InputError(
        f"TensorRT {library.__version__} cannot parse {source} ({in_short(said, 400)})",
        hint="its ONNX parser does not know every operator and type: export with opset 20, or keep those nodes in FP32",
    )


def _configure(
    library: Any, builder: Any, config: Any, network: Any, source: Path, options: BuildOptions
) -> dict[str, tuple[int, ...]]:
    """Sets everything that changes the engine, and returns the inputs' shapes."""
    (config.set_flag if options.tf32 else config.clear_flag)(library.BuilderFlag.TF32)
    config.builder_optimization_level = options.optimisation_level
    config.avg_timing_iterations = AVERAGED_TIMINGS
    config.profiling_verbosity = library.ProfilingVerbosity.DETAILED  # or the inspector tells no precisions
    config.max_aux_streams = options.aux_streams
    if options.workspace_bytes is not None:
        config.set_memory_pool_limit(library.MemoryPoolType.WORKSPACE, options.workspace_bytes)
    profile = builder.create_optimization_profile()
    tensors = [network.get_input(index) for index in range(network.num_inputs)]
    specs = with_names([_spec(library, tensor) for tensor in tensors], source)
    shapes = resolved(specs, options.batch, options.tokens, str(source))
    is_dynamic = False
    for spec in specs:
        if None in spec.shape:
            is_dynamic = True
            profile.set_shape(spec.name, shapes[spec.name], shapes[spec.name], shapes[spec.name])
    if is_dynamic:
        config.add_optimization_profile(profile)
    return shapes


def _spec(library: Any, tensor: Any) -> TensorSpec:
    kind = np.dtype("int64" if tensor.dtype in (library.int32, library.int64) else "float32")
    return TensorSpec(tensor.name, kind, tuple(None if size < 0 else int(size) for size in tensor.shape))


def _read_cache(config: Any, path: Path | None) -> tuple[Any, str | None]:
    """Gives the builder the timing cache; returns it, and its sha256, None when it was empty.

    Another device's, and a damaged one, is refused by TensorRT itself, and then an empty one is taken.
    """
    stored = path.read_bytes() if path is not None and path.is_file() else b""
    cache = config.create_timing_cache(stored)  # None for bytes that are none
    if stored and cache is not None and config.set_timing_cache(cache, False):
        return cache, hashlib.sha256(stored).hexdigest()
    empty = config.create_timing_cache(b"")
    config.set_timing_cache(empty, False)
    return empty, None


def _write_cache(config: Any, path: Path | None) -> None:
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(bytes(config.get_timing_cache().serialize()))
    temporary.replace(path)  # two builds at once: the later one stays, and both are whole


def _failure(source: Path, messages: Messages) -> PybenchError:
    said = messages.last()
    if any("out of memory" in text.lower() or "outofmemory" in text.lower() for text in messages.errors):
        return DeviceMemoryError(f"memory ran out while {source.name} was built: {said}", evidence="tensorrt")
    what = f"TensorRT builds no engine of {source.name}: {said}"
    if any(sign in text for text in messages.errors for sign in _NO_KERNEL):
        hint = "keep that node in FP32 with keep_fp32; a workspace_bytes that is too small can be the reason, too"
        return UnsupportedError(what, code=Cause.NO_KERNEL, hint=hint)
    return PybenchError(what)
