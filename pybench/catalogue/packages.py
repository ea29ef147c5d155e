# SPDX-License-Identifier: Apache-2.0
"""What a case may need installed: each package is a fact of a machine, which a probing worker finds out."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One package, tool or binary that some cases need.

    name: of the fact, and of the code `no_<name>` where it is missing
    gives: what `pybench doctor` says that it makes possible
    install: what to do where it is missing
    found: what `pybench doctor` says where it is there, with `{key}` for values of the fact
    module: whose import tells that it is there; None: importing is not all there is to ask, and the probe has its own
        question
    loaded_as: the module that tells that a run used it; None: no module does
    distributions: those that it may come from, for its version; empty: the module tells its version itself
    is_apart: it has an environment of its own, which pybench makes, and is installed into no other
    """

    name: str
    gives: str
    install: str
    found: str
    module: str | None = None
    loaded_as: str | None = None
    distributions: tuple[str, ...] = ()
    is_apart: bool = False


_ONNX = "install pybench-campaign[onnx]"
_ZOO = "install pybench-campaign[zoo]"

# In the order in which a probe asks: a framework may change what a later import finds.
_ROWS = (
    Package(
        name="torch",
        gives="torch models, training",
        install="install pybench-campaign[torch]",
        found="torch {version}",
        loaded_as="torch",
        distributions=("torch",),
    ),
    Package(
        name="torch_tensorrt",
        gives="torch-tensorrt",
        install="install `torch-tensorrt` of the same version as torch",
        found="torch-tensorrt {version}",
        module="torch_tensorrt",
        loaded_as="torch_tensorrt",
        distributions=("torch-tensorrt",),
    ),
    Package(
        name="compiler",
        gives="torch-compile",
        found="builds with {path}",
        install="install a C++ compiler (g++, or the one that CXX names) and Python's headers",
    ),
    Package(  # its wheels have a name for each CUDA and each part of them, and its archive has others
        name="tensorrt",
        gives="TensorRT engines",
        found="TensorRT {version}",
        loaded_as="tensorrt",
        install="install NVIDIA's `tensorrt` (10.6 or later, or 11) into this environment (docs/user/tensorrt.md)",
    ),
    Package(
        name="cuda_python",
        gives="TensorRT's buffers, graphs",
        install="install pybench-campaign[tensorrt]",
        found="cuda-bindings {version}",
        module="cuda.bindings.driver",
        loaded_as="cuda.bindings",
        distributions=("cuda-bindings",),
    ),
    Package(
        name="onnxruntime",
        gives="ONNX models on ONNX Runtime",
        install=_ONNX,
        found="onnxruntime {version}",
        loaded_as="onnxruntime",
        distributions=("onnxruntime", "onnxruntime-gpu"),
    ),
    Package(
        name="onnxruntime_library",
        gives="runtime: native",
        found="{path}",
        install="install onnxruntime from its wheel, whose folder `capi` contains `libonnxruntime.so`",
    ),
    Package(
        name="openvino",
        gives="ONNX models on OpenVINO",
        install="install pybench-campaign[openvino]",
        found="openvino {version}",
        loaded_as="openvino",
        distributions=("openvino",),
    ),
    Package(
        name="onnx",
        gives="FP16, BF16, INT8, FP8 in ONNX",
        install=_ONNX,
        found="onnx {version}",
        module="onnx",
        loaded_as="onnx",
        distributions=("onnx",),
    ),
    Package(
        name="onnxscript",
        gives="export to ONNX",
        install=_ONNX,
        found="onnxscript {version}",
        module="onnxscript",
        loaded_as="onnxscript",
        distributions=("onnxscript",),
    ),
    Package(  # libraries of models are not imported for the question: that takes seconds each
        name="timm",
        gives="models timm/NAME",
        install=_ZOO,
        found="timm {version}",
        loaded_as="timm",
        distributions=("timm",),
    ),
    Package(
        name="torchvision",
        gives="models torchvision/NAME",
        install=_ZOO,
        found="torchvision {version}",
        loaded_as="torchvision",
        distributions=("torchvision",),
    ),
    Package(
        name="transformers",
        gives="models hf/TYPE",
        install=_ZOO,
        found="transformers {version}",
        loaded_as="transformers",
        distributions=("transformers",),
    ),
    Package(  # never in this environment: its pins clash
        name="modelopt",
        gives="quantiser: modelopt",
        found="{how}",
        install="install uv (pip install uv), or use quantiser: pybench",
        loaded_as="modelopt",
        distributions=("nvidia-modelopt",),
        is_apart=True,
    ),
    Package(
        name="digits",
        gives="digits data",
        install="install pybench-campaign[digits]",
        found="scikit-learn {version}",
        distributions=("scikit-learn",),
    ),
    Package(
        name="hf",
        gives="tokens: hf",
        install="install pybench-campaign[hf]",
        found="tokenizers {version}",
        module="tokenizers",
        loaded_as="tokenizers",
        distributions=("tokenizers",),
    ),
    Package(
        name="rust",
        gives="tokens: rust",
        install="install pybench-tokenizer",
        found="pybench-tokenizer {version}",
        module="pybench_tokenizer",
        loaded_as="pybench_tokenizer",
        distributions=("pybench-tokenizer",),
    ),
    Package(
        name="go_rust",
        gives="tokens: go_rust",
        install="run `make`, or install pybench-orchestrator",
        found="{binary}",
    ),
)

PACKAGES = Rows("package", _ROWS)
MODULE = "module:"


def fact_of(need: str) -> str:
    """Under which name a machine is asked for what a row needs: a package, or a module that only a plug-in knows."""
    return need if need in PACKAGES else f"{MODULE}{need}"
