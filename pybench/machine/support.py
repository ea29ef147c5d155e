# SPDX-License-Identifier: Apache-2.0
"""Whether a case can run on this machine, known before anything is started: if not, its cells are `unsupported`.

Rules state what the runtimes of this version of pybench do; facts say what is installed. Order: the most general
obstacle first, so that the reason is the one to remove first.
"""

from __future__ import annotations

from pybench.case import Case
from pybench.machine.facts import Facts
from pybench.recipe import is_built_in

Reason = tuple[str, str]

# What each runtime executes: precision -> whether it needs a GPU.
ONNXRUNTIME = {"fp32": False, "int8": False}
TORCH_INFER = {"fp32": False, "tf32": True, "fp16": True, "bf16": False}
TORCH_TRAIN = {"fp32": False, "tf32": True, "amp-bf16": False, "amp-fp16": True}

TF32_CAPABILITY = 8.0  # Ampere: the first tensor cores with TF32


def unsupported(case: Case, facts: Facts) -> Reason | None:
    """None when the case can run here, else a short stable code and a sentence with what to do."""
    for rule in (_packages, _runtime, _device, _precision, _transfer, _path):
        reason = rule(case, facts)
        if reason is not None:
            return reason
    return None


def gpus_of(case: Case, facts: Facts) -> list[str]:
    """UUIDs of the GPUs that a case will use: none, or the one it names, or the first that its runtime sees."""
    if case.device == "cpu" or not (case.runtime or case.workload == "h2d"):
        return []
    uuids = [device["uuid"] for device in _gpus(case, facts)]
    return uuids[:1] if case.device in ("auto", "cuda") else [uuid for uuid in uuids if uuid == case.device]


def _packages(case: Case, facts: Facts) -> Reason | None:
    needed = []
    if case.runtime:
        needed.append(case.runtime)
    if case.workload == "h2d":
        needed.append("torch")
    if case.runtime == "onnxruntime" and case.model and is_built_in("model", case.model):
        needed += ["torch", "onnx", "onnxscript"]
    if case.runtime == "onnxruntime" and case.precision == "int8":
        needed.append("onnx")
    for name in needed:
        if not facts[name]["available"]:
            return (
                f"no_{name}",
                f"{name} cannot be imported here ({facts[name]['why']}); install pybench[{_extra(name)}]",
            )
    return None


def _runtime(case: Case, facts: Facts) -> Reason | None:
    if case.workload == "train" and case.runtime == "onnxruntime":
        return "no_training", "onnxruntime does not train; the runtime of train is torch"
    if case.runtime == "torch" and case.model and not is_built_in("model", case.model):
        return "onnx_in_torch", "torch runs built-in models; an ONNX file is run by onnxruntime"
    return None


def _extra(package: str) -> str:
    return "torch" if package == "torch" else "onnx"


def _device(case: Case, facts: Facts) -> Reason | None:
    uuids = [device["uuid"] for device in _gpus(case, facts)]
    if case.device in ("auto", "cpu") or not (case.runtime or case.workload == "h2d"):
        return None
    if not uuids:
        return "no_gpu", f"device {case.device} is asked for, and {_engine(case)} sees no GPU on this machine"
    if case.device != "cuda" and case.device not in uuids:
        return "no_such_gpu", f"no GPU {case.device} here; there are {', '.join(uuids)}"
    return None


def _precision(case: Case, facts: Facts) -> Reason | None:
    if case.model is None:
        return None
    engine = _engine(case)
    table = ONNXRUNTIME if engine == "onnxruntime" else TORCH_TRAIN if case.workload == "train" else TORCH_INFER
    if case.precision not in table:
        does = ", ".join(table)
        return (
            f"no_{case.precision}_in_{engine}",
            f"{engine} does not {case.workload} in {case.precision} (it does {does})",
        )
    gpus = _gpus(case, facts) if case.device != "cpu" else []
    if table[case.precision] and not gpus:
        return "no_gpu", f"{case.precision} in {engine} needs a GPU, and there is none"
    if case.precision == "tf32" and all(float(gpu["capability"]) < TF32_CAPABILITY for gpu in gpus):
        return "no_tf32", "TF32 needs a GPU of compute capability 8.0 or later"
    return None


def _transfer(case: Case, facts: Facts) -> Reason | None:
    if case.workload == "h2d" and not _gpus(case, facts):
        return "no_gpu", "h2d copies from host to GPU, and there is no GPU: a host copy would be another measurement"
    if case.transfers and (case.device == "cpu" or not _gpus(case, facts)):
        return "no_gpu", "transfers: true includes the copies to and from a GPU, and this case runs on the CPU"
    return None


def _path(case: Case, facts: Facts) -> Reason | None:
    if case.path not in ("hf", "rust", "go_rust") or facts[case.path]["available"]:
        return None
    hints = {
        "hf": "install pybench[hf]",
        "rust": "install pybench-tokenizer",
        "go_rust": "run `make`, or put pybench-orchestrator on PATH",
    }
    return f"no_{case.path}", f"the path {case.path} is not available ({facts[case.path]['why']}); {hints[case.path]}"


def _engine(case: Case) -> str:
    return case.runtime or "torch"


def _gpus(case: Case, facts: Facts) -> list[dict[str, str]]:
    """GPUs that the case's engine can use."""
    if _engine(case) == "onnxruntime":
        has_provider = "CUDAExecutionProvider" in facts["onnxruntime"].get("providers", [])
        return facts.get("torch", {}).get("cuda_devices", []) if has_provider else []
    devices: list[dict[str, str]] = facts.get("torch", {}).get("cuda_devices", [])
    return devices
