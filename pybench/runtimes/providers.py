# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's execution providers: what each computes in, the options that it is given, where a graph's nodes went.

Every option that decides a number is stated, whatever its default, and what onnxruntime then reports is stored. The
TensorRT provider is allowed what the precision's name says, for a file's types do not suffice. Earlier releases built a
network without such switches strongly typed. 1.31.1 builds all weakly typed (it creates them with no flag), and runs an
FP16 file without `trt_fp16_enable` in FP32. A permission is no proof: `measurement.audits` asks what ran. It documents
no switch for TF32, which TensorRT uses unless it is told not to; CUDA's own override in the environment serves. Run
with onnxruntime 1.31.1 on an H200. Imports no onnxruntime.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from pybench import measure
from pybench.catalogue.precisions import PRECISIONS, allows_tf32
from pybench.catalogue.refusals import refuse_provider
from pybench.catalogue.runtimes import RUNTIMES, Backend, Runtime
from pybench.runtimes.device import chosen

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"  # read by cuBLAS, cuDNN and TensorRT when they start

_BACKENDS = {row.name: row for row in RUNTIMES["onnxruntime"].backends}
CPU, CUDA, TENSORRT = (_BACKENDS[name].called for name in ("cpu", "cuda", "tensorrt"))

Options = tuple[str, dict[str, str]]


def backend(provider: str) -> Backend:
    """The row of a provider."""
    return _BACKENDS[provider]


def chosen_for(runtime: Runtime, device: str, provider: str | None, built_in: tuple[str, ...]) -> tuple[str, str]:
    """`cpu` or `cuda`, and the provider. `built_in`: the build's, by ONNX Runtime's names.

    Raises UnsupportedError where device and provider contradict, or one is not there.
    """
    if provider is None:
        has_gpu = device != "cpu" and CUDA in built_in and bool(measure.visible_gpus())  # opening then proves it
        kind = chosen(device, has_gpu, runtime.name)
        return kind, kind
    refuse_provider(runtime, provider, device, built_in)
    if not backend(provider).needs_gpu:
        return "cpu", provider
    return chosen("cuda" if device == "auto" else device, bool(measure.visible_gpus()), runtime.name), provider


def options_of(provider: str, precision: str, *, graph: bool) -> list[Options]:
    """Providers in the order of preference, with their options. `graph`: whether CUDA runs are captured."""
    row = backend(provider)
    if not row.needs_gpu:
        return [(CPU, {})]
    cuda = {
        "device_id": "0",
        "use_tf32": "1" if allows_tf32(precision) else "0",
        "cudnn_conv_algo_search": "EXHAUSTIVE",
        # What tensor cores read, and slower without them; there is no such convolution in BF16.
        "prefer_nhwc": "1" if precision in ("tf32", "fp16") else "0",
        "enable_cuda_graph": "1" if graph and row.captures else "0",
    }
    chain = [(CUDA, cuda), (CPU, {})]
    return [(TENSORRT, _tensorrt(precision)), *chain] if provider == "tensorrt" else chain


def set_tf32(precision: str) -> None:
    """TF32 for the libraries of this process, before they start: on for `tf32` alone."""
    if allows_tf32(precision):
        os.environ.pop(TF32_OVERRIDE, None)
    else:
        os.environ[TF32_OVERRIDE] = "0"


def partitions_of(assigned: Iterable[Any]) -> dict[str, int]:
    """Provider -> parts of the graph that it took, of what a session says of its assignments. A part is what the
    provider compiles as one, or a single node."""
    parts: dict[str, int] = {}
    for part in assigned:
        parts[part.ep_name] = parts.get(part.ep_name, 0) + 1
    return parts


def is_whole(provider: str, partitions: dict[str, int]) -> bool:
    """Whether the provider took every node; TensorRT: as one engine."""
    row = backend(provider)
    return set(partitions) == {row.called} and row.whole_as in (None, partitions[row.called])


def _tensorrt(precision: str) -> dict[str, str]:
    """Level and streams are the defaults of the factors that the runtime tensorrt has; nothing is cached. Switches in
    words: onnxruntime's Python interface takes no number for them here, as it does of CUDA's."""
    allowed = {kind: str(kind in PRECISIONS[precision].multiplies) for kind in ("fp16", "bf16", "int8")}
    return {
        "device_id": "0",
        **{f"trt_{kind}_enable": word for kind, word in allowed.items()},
        "trt_builder_optimization_level": "3",
        "trt_auxiliary_streams": "0",
        "trt_engine_cache_enable": "False",
        "trt_timing_cache_enable": "False",
        # It cannot tell captured runs from others, as CUDA's does by `gpu_graph_id`, and ours are of both kinds.
        "trt_cuda_graph_enable": "False",
    }
