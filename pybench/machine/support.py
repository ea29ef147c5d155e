# SPDX-License-Identifier: Apache-2.0
"""Whether a case can run on this machine, known before anything is started: if not, its cells are `unsupported`.

Rules state what the runtimes of this version of pybench do; facts say what is installed. Order: the most general
obstacle first, so that the reason is the one to remove first.
"""

from __future__ import annotations

from typing import Any

from pybench.case import Case
from pybench.factors import BOARD_SETTINGS, PRECISIONS, SYNTHETIC, quantised_type
from pybench.machine.facts import ALSO_NEEDED, Facts, package_of
from pybench.recipe import RUN_FROM_ONNX, is_built_in

Reason = tuple[str, str]

ONNX_EXTRA = "install pybench[onnx]"
INSTALL = {  # by package
    "torch": "install pybench[torch]",
    "cuda_python": "install pybench[tensorrt]",
    "tensorrt": "install NVIDIA's `tensorrt` (10.6 or later, or 11) into this environment (docs/tensorrt.md)",
    "modelopt": "install uv (pip install uv), or use quantiser: pybench",
    "torch_tensorrt": "install `torch-tensorrt` of the same version as torch",
    "compiler": "install a C++ compiler (g++, or the one that CXX names) and Python's headers",
}

# What each runtime executes: precision -> whether it needs a GPU.
TENSORRT = {name: True for name in PRECISIONS if not name.startswith("amp-")}
ONNXRUNTIME_ON = {  # by provider
    "cpu": {"fp32": False, "int8": False},
    "cuda": {"fp32": True, "tf32": True, "fp16": True, "bf16": True},
    "tensorrt": dict.fromkeys(("fp32", "tf32", "fp16", "bf16", "int8", "int8+fp16", "int8+bf16"), True),
}
TORCH_INFER = {"fp32": False, "tf32": True, "fp16": True, "bf16": False}
TORCH_GRAPH = {"fp32": True, "tf32": True, "fp16": True, "bf16": True}
TORCH_TRAIN = {"fp32": False, "tf32": True, "amp-bf16": False, "amp-fp16": True}

INFERENCE = {  # a test holds it whole
    "tensorrt": TENSORRT,
    "onnxruntime": ONNXRUNTIME_ON["cpu"],
    "torch": TORCH_INFER,
    "torch-compile": TORCH_INFER,
    "torch-graph": TORCH_GRAPH,
    "torch-tensorrt": TORCH_GRAPH,
}

PROVIDER_NAMES = {  # as onnxruntime calls them
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}

# Compute capabilities from which on a GPU multiplies in a type: Ampere's tensor cores, Ada's.
CAPABILITIES = {"tf32": 8.0, "bf16": 8.0, "fp8": 8.9}


def unsupported(case: Case, facts: Facts) -> Reason | None:
    """None when the case can run here, else a short stable code and a sentence with what to do."""
    for rule in (_packages, _runtime, _training, _provider, _device, _precision, _transfer, _path, _settings):
        reason = rule(case, facts)
        if reason is not None:
            return reason
    return None


def gpus_of(case: Case, facts: Facts) -> list[str]:
    """UUIDs of the GPUs that a case will use: none, or the one it names, or the first that its runtime sees."""
    if case.device == "cpu" or not _uses_devices(case):
        return []
    uuids = [device["uuid"] for device in _gpus(case, facts)]
    return uuids[:1] if case.device in ("auto", "cuda") else [uuid for uuid in uuids if uuid == case.device]


def platform_of(case: Case, facts: Facts) -> str | None:
    """What an engine of this case is bound to: TensorRT's version and the kind of GPU; None: the case needs none."""
    gpus = [gpu for gpu in _gpus(case, facts) if gpu["uuid"] in gpus_of(case, facts)]
    if case.runtime != "tensorrt" or not gpus:
        return None
    return f"TensorRT {facts['tensorrt']['version']} on {gpus[0]['name']}"


def _packages(case: Case, facts: Facts) -> Reason | None:
    needed = []
    if case.runtime:
        needed.append(package_of(case.runtime))
    needed += case.workload_row.needs
    if case.runtime == "tensorrt":
        needed.append("cuda_python")
    if case.runtime in ALSO_NEEDED:
        needed.append(ALSO_NEEDED[case.runtime])
    if case.runtime in RUN_FROM_ONNX and case.model and is_built_in("model", case.model):
        needed += ["torch", "onnx", "onnxscript"]
    if case.runtime == "tensorrt" or (case.runtime in RUN_FROM_ONNX and case.precision not in ("fp32", "tf32")):
        needed.append("onnx")
    if case.runtime in RUN_FROM_ONNX and quantised_type(case.precision):
        needed.append("onnxruntime")  # ranges are found with it, whatever runs the result
        needed += ["modelopt"] if case.quantiser == "modelopt" else []
    for name in needed:
        if not facts[name]["available"]:
            return (
                f"no_{name}",
                f"{name} cannot be used here ({facts[name]['why']}); {INSTALL.get(name, ONNX_EXTRA)}",
            )
    return None


def _runtime(case: Case, facts: Facts) -> Reason | None:
    if case.workload_row.trains and case.runtime != "torch":
        return "no_training", f"{case.runtime} does not train; the runtime of train is torch"
    if case.runtime not in RUN_FROM_ONNX and case.runtime and case.model and not is_built_in("model", case.model):
        return "onnx_in_torch", "torch runs built-in models; an ONNX file is run by tensorrt or onnxruntime"
    return None


def _provider(case: Case, facts: Facts) -> Reason | None:
    """What the factors say of each other, and whether the installed onnxruntime has the provider."""
    if case.runtime == "torch-compile" and case.compile_mode != "default" and not _gpus_allowed(case, facts):
        return "no_gpu", f"compile_mode {case.compile_mode} records CUDA graphs, and this case runs on the CPU"
    if case.provider is None:
        return None
    on_gpu = case.provider != "cpu"
    if on_gpu == (case.device == "cpu") and case.device != "auto":
        return "provider_and_device", f"provider {case.provider} does not run on device {case.device}: leave one out"
    name = PROVIDER_NAMES[case.provider]
    if name not in facts["onnxruntime"].get("providers", []):
        return f"no_{case.provider}_provider", (
            f"the installed onnxruntime has no {name}; install onnxruntime-gpu"
            + (", and TensorRT 10 for this provider" if case.provider == "tensorrt" else "")
        )
    if case.provider == "tensorrt" and quantised_type(case.precision) and case.quantiser == "onnxruntime":
        return "ranges_not_symmetric", "TensorRT takes symmetric ranges only; use quantiser: pybench or modelopt"
    return None


def _training(case: Case, facts: Facts) -> Reason | None:
    """Whether the weights that the case asks for can be made here, with whatever GPU there is."""
    row = case.model_row
    if case.checkpoint != SYNTHETIC or (row is not None and row.trains_on_cpu):
        return None
    if not facts["torch"]["available"]:
        return "no_torch", f"torch trains {case.model} ({facts['torch']['why']}); {INSTALL['torch']}"
    if not facts["torch"].get("cuda_devices"):
        return "no_gpu", f"training {case.model} on {SYNTHETIC} needs a GPU; or give `checkpoint` a file of weights"
    return None


def _device(case: Case, facts: Facts) -> Reason | None:
    if case.device in ("auto", "cpu") or not _uses_devices(case):
        return None
    uuids = [device["uuid"] for device in _gpus(case, facts)]
    if not uuids:
        return "no_gpu", f"device {case.device} is asked for, and {_engine(case)} sees no GPU on this machine"
    if case.device != "cuda" and case.device not in uuids:
        return "no_such_gpu", f"no GPU {case.device} here; there are {', '.join(uuids)}"
    return None


def _precision(case: Case, facts: Facts) -> Reason | None:
    if case.model is None:
        return None
    engine = _engine(case)
    table = TORCH_TRAIN if case.workload_row.trains else _inference(case, facts)
    if case.precision not in table:
        does = ", ".join(table)
        return (
            f"no_{case.precision}_in_{engine}",
            f"{_called(case, facts)} does not {case.workload} in {case.precision} (it does {does})",
        )
    gpus = _gpus_allowed(case, facts)
    if table[case.precision] and not gpus:
        return "no_gpu", f"{case.precision} in {engine} needs a GPU, and this case has none"
    used = gpus_of(case, facts)
    capability = next((float(gpu["capability"]) for gpu in gpus if gpu["uuid"] in used), None)
    for name in case.precision.removeprefix("amp-").split("+"):
        needed = CAPABILITIES.get(name, 0.0)
        if capability is not None and capability < needed:
            return f"no_{name}", f"{name.upper()} needs a GPU of compute capability {needed} or later"
    return None


def _transfer(case: Case, facts: Facts) -> Reason | None:
    row = case.workload_row
    if row.needs_gpu is not None and not _gpus(case, facts):
        return "no_gpu", f"{row.name} needs a GPU, and there is none: {row.needs_gpu}"
    if case.transfers and case.runtime == "torch-graph":
        return "no_transfers_in_torch-graph", "a captured graph has no copies in it, as in trtexec; use runtime: torch"
    if case.transfers and not _gpus_allowed(case, facts):
        return "no_gpu", "transfers: true includes the copies to and from a GPU, and this case runs on the CPU"
    return None


def _path(case: Case, facts: Facts) -> Reason | None:
    if case.path not in ("hf", "rust", "go_rust") or facts[case.path]["available"]:
        return None
    hints = {
        "hf": "install pybench[hf]",
        "rust": "install pybench-tokenizer",
        "go_rust": "run `make`, or install pybench-orchestrator",
    }
    return f"no_{case.path}", f"the path {case.path} is not available ({facts[case.path]['why']}); {hints[case.path]}"


def _settings(case: Case, facts: Facts) -> Reason | None:
    """Whether the board takes the power limit and clocks of the case, and takes them from this user."""
    wanted = {name: value for name in BOARD_SETTINGS if (value := getattr(case, name)) is not None}
    uuid = _board_uuid(case, facts)
    if uuid is None:
        return ("no_gpu", f"{', '.join(wanted)} sets a GPU's board, and this runs on the CPU here") if wanted else None
    if not wanted and not case.workload_row.names_board:
        return None
    fact = facts["gpu"]
    board: dict[str, Any] | None = next((each for each in fact.get("devices", []) if each["uuid"] == uuid), None)
    if board is None:
        known = ", ".join(each["uuid"] for each in fact.get("devices", [])) or fact.get("why") or "none"
        return "no_such_board", f"NVML knows no board {uuid} here (it knows: {known})"
    if wanted and not fact["may_set"]:
        return "no_permission", (
            f"setting {', '.join(wanted)} needs root (CAP_SYS_ADMIN), which this process has not: run pybench as root, "
            "in a container with --cap-add SYS_ADMIN, or leave the factor out"
        )
    for name, value in wanted.items():
        takes = board["ranges"].get(name)
        if takes is None and name == "power_limit_w":
            return "setting_unsupported", f"the power limit of {board['name']} {uuid} cannot be set: it has no range"
        if takes is None:
            continue  # a board may lock clocks without listing them: the run will tell
        limits, clocks = takes.get("range", (value, value)), takes.get("clocks", [value])
        if not limits[0] <= value <= limits[1] or value not in clocks:
            return "setting_out_of_range", f"{name} {value}: {board['name']} {uuid} takes {takes['takes']}"
    return None


def _board_uuid(case: Case, facts: Facts) -> str | None:
    """The board that the case would run on: the one named, or the first that its engine sees; None: it runs on none."""
    if case.workload_row.names_board:
        return None if case.device in ("auto", "cpu", "cuda") else case.device
    gpus = _gpus_allowed(case, facts)
    if not gpus or not _uses_devices(case):
        return None
    return case.device if case.device not in ("auto", "cuda") else gpus[0]["uuid"]


def _inference(case: Case, facts: Facts) -> dict[str, bool]:
    """What the case's runtime executes, with the provider that it will have."""
    if case.runtime != "onnxruntime":
        return INFERENCE[_engine(case)]
    return ONNXRUNTIME_ON[_provider_of(case, facts)]


def _provider_of(case: Case, facts: Facts) -> str:
    return case.provider or ("cuda" if _gpus_allowed(case, facts) else "cpu")


def _called(case: Case, facts: Facts) -> str:
    return f"onnxruntime's provider {_provider_of(case, facts)}" if case.runtime == "onnxruntime" else _engine(case)


def _gpus_allowed(case: Case, facts: Facts) -> list[dict[str, str]]:
    """GPUs that the case's engine can use, and the case lets it."""
    return [] if case.device == "cpu" else _gpus(case, facts)


def _uses_devices(case: Case) -> bool:
    """Whether something in the case opens a device: its runtime, or the workload by itself."""
    return case.runtime is not None or case.workload_row.needs_gpu is not None


def _engine(case: Case) -> str:
    return case.runtime or "torch"


def _gpus(case: Case, facts: Facts) -> list[dict[str, str]]:
    """GPUs that the case's engine can use."""
    if _engine(case) == "tensorrt":
        shown: list[dict[str, str]] = facts.get("cuda", {}).get("devices", [])
        return shown
    if _engine(case) == "onnxruntime":
        name = PROVIDER_NAMES["cuda" if case.provider is None else case.provider]
        has_provider = case.provider != "cpu" and name in facts["onnxruntime"].get("providers", [])
        return facts.get("torch", {}).get("cuda_devices", []) if has_provider else []
    devices: list[dict[str, str]] = facts.get("torch", {}).get("cuda_devices", [])
    return devices
