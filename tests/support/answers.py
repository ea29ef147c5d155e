# SPDX-License-Identifier: Apache-2.0
"""What pybench says of a case before anything runs, as plain data, and three made-up machines to ask about.

`answers(case)` is stored for some thousand cases in tests/data/answers.json.gz, and tests/test_answers.py compares.
Run as a program, this module writes that file anew, from the code of now:

    python -m tests.support.answers

It was made by commit 91dd70b, before the catalogue.
Make it anew only to add cases.
A deliberate change of an answer is a row of `CHANGES` in tests/test_answers.py, with its reason.
"""

from __future__ import annotations

import gzip
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pybench.campaign.recipe import in_making_order, recipes_of
from pybench.case import Case
from pybench.case.factors import FACTORS, idle_factors
from pybench.case.yields import metrics_of
from pybench.errors import PlanError
from pybench.machine.support import unsupported
from pybench.plan import load_plan

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "answers.json.gz"
PLATFORM = "TensorRT 10.6.0 on a GPU"
_DIGITS = 16  # of a sha256: enough to tell that it changed

# --- three machines ------------------------------------------------------------------------------------------------

_THERE: dict[str, Any] = {"available": True}
_ABSENT: dict[str, Any] = {"available": False, "why": "No module"}
_PACKAGES = ("torch", "torch_tensorrt", "compiler", "tensorrt", "cuda_python", "onnxruntime", "openvino", "onnx",
             "onnxscript", "modelopt", "digits", "timm", "torchvision", "transformers", "hf", "rust",
             "go_rust")  # fmt: skip
_GPU = {"name": "a GPU", "uuid": "GPU-1", "capability": "9.0", "memory_bytes": 1}
_BOARD = {
    "uuid": "GPU-1",
    "name": "a GPU",
    "changed": [],
    "ranges": {"power_limit_w": {"takes": "200 to 700 W", "range": [200.0, 700.0]}},
}
_NONE_OF_NVIDIA = {
    "machine": {"available": True, "cpu_count": 8},
    "cuda": {"available": False, "why": "no driver"},
    "gpu": {"available": False, "why": "no driver", "may_set": False, "devices": []},
    "cpu_energy": {"available": False, "why": "no RAPL"},
    "power_rails": {"available": False, "why": "no rails"},
    "node_energy": {"available": False, "why": "no counter"},
}
_ON_CPU = {"available": True, "providers": ["CPUExecutionProvider"]}
_EVERY_PROVIDER = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]

MACHINES: dict[str, dict[str, dict[str, Any]]] = {
    "laptop": {
        **_NONE_OF_NVIDIA,
        **dict.fromkeys(_PACKAGES, _THERE),
        "torch": {"available": True, "cuda_devices": []},
        "onnxruntime": _ON_CPU,
        "tensorrt": {"available": True, "version": "10.6.0"},
        "torch_tensorrt": _ABSENT,
        "modelopt": {"available": False, "why": "no uv"},
        "go_rust": {"available": False, "why": "no pybench-orchestrator"},
    },
    "server": {
        "machine": {"available": True, "cpu_count": 64},
        "cpu_energy": _THERE,
        "power_rails": _THERE,
        "node_energy": _THERE,
        **dict.fromkeys(_PACKAGES, _THERE),
        "cuda": {"available": True, "devices": [_GPU]},
        "torch": {"available": True, "cuda_devices": [_GPU]},
        "onnxruntime": {"available": True, "providers": _EVERY_PROVIDER},
        "tensorrt": {"available": True, "version": "10.6.0"},
        "gpu": {"available": True, "may_set": True, "devices": [_BOARD]},
    },
    "bare": {**_NONE_OF_NVIDIA, **dict.fromkeys(_PACKAGES, _ABSENT)},
}

# --- answers -------------------------------------------------------------------------------------------------------


def answers(case: Case) -> dict[str, Any]:
    """Plain data. Of `unsupported` the code only: the sentence may be written better."""
    recipes = recipes_of(case, PLATFORM if case.runtime == "tensorrt" else None)
    found = {name: unsupported(case, facts) for name, facts in MACHINES.items()}
    return {
        "id": case.id[:_DIGITS],
        "metrics": sorted(metrics_of(case)),
        "idle": sorted(idle_factors(case)),
        "recipes": {role: recipe.digest[:_DIGITS] for role, recipe in sorted(recipes.items())},
        "made": [f"{recipe.kind} {recipe.digest[:_DIGITS]}" for recipe in in_making_order(recipes)],
        "unsupported": {name: refusal and refusal.reason.stored_code for name, refusal in found.items()},
    }


def case_of(stored: dict[str, Any]) -> Case:
    """The case that was asked about, from its chosen factors."""
    return Case(**{**stored, "sources": tuple(sorted(stored.get("sources", {}).items()))})


def read_stored() -> dict[str, list[dict[str, Any]]]:
    """Group (a plan, or a workload's grid) -> [{factors, answers}]."""
    groups: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(STORED.read_bytes()))
    return groups


# --- the cases that are asked about --------------------------------------------------------------------------------

_ON_IMAGES = {"model": "digits-cnn"}
_WITHOUT_MODEL = [
    {"workload": "noop", "device": ["auto", "cpu", "GPU-1"]},
    {"workload": "noop", "device": "GPU-1", "power_limit_w": [100, 300]},
    {"workload": "h2d", "transfer_bytes": [4096, 67108864], "pinned": [False, True], "non_blocking": [False, True],
     "device": ["auto", "cuda"]},
    {"workload": "tokenize", "path": list(FACTORS["path"].choices)},
]  # fmt: skip
_VARIATIONS: list[dict[str, Any]] = [
    {},
    {"device": ["cpu", "cuda", "GPU-1", "GPU-2"]},
    {"provider": ["cpu", "cuda", "tensorrt"], "device": ["auto", "cpu"]},
    {"provider": ["cpu", "cuda", "tensorrt"], "quantiser": ["pybench", "onnxruntime", "modelopt", "qat"]},
    {"quantiser": ["pybench", "onnxruntime", "modelopt", "qat"], "calibration": ["minmax", "entropy", "percentile"]},
    {"checkpoint": "synthetic-100", "quantiser": [None, "qat"]},
    {"images": ["digits", "synthetic-100"], "calibration_images": 200},
    {"image_limit": 50},
    {"keep_fp32": "/fc/.*"},
    {"launch": "enqueue", "provider": [None, "cuda"]},
    {"compile_mode": ["reduce-overhead", "max-autotune"], "device": ["auto", "cpu"]},
    {"workspace_bytes": 1048576, "optimisation_level": 5, "aux_streams": 2, "build": 2},
    {"transfers": True},
    {"arrivals": ["fixed", "poisson"], "arrival_rate_per_s": 100.0},
    {"idle_window_s": 0.0, "energy_window_s": 1.0},
    {"power_limit_w": [100, 300]},
    {"path": ["python", "hf", "rust", "go_rust"], "corpus_limit_bytes": 1000},
    {"fed": True},
    {"batch": 8, "seq_len": 64},
]
_VARIED = ("digits-cnn", "resnet50", "tinylm-small", "distilbert", "mlp")


def _entries() -> Iterator[dict[str, Any]]:
    """Matrix entries of one cell each; many of them are no good plan."""
    for entry in _WITHOUT_MODEL:
        yield from _cells(entry)
    for workload, model, runtime, precision in itertools.product(
        ("infer", "accuracy", "train", "tokenize"),
        FACTORS["model"].choices,
        FACTORS["runtime"].choices,
        FACTORS["precision"].choices,
    ):
        if workload in ("train", "tokenize") and runtime not in ("torch", "onnxruntime"):
            continue
        for variation in (
            _VARIATIONS if model in _VARIED and precision in ("fp32", "bf16", "int8", "fp8+fp16") else [{}]
        ):
            case = {"workload": workload, "model": model, "runtime": runtime, "precision": precision}
            yield from _cells(case | variation)


def _cells(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    columns = [value if isinstance(value, list) else [value] for value in entry.values()]
    for values in itertools.product(*columns):
        yield {name: value for name, value in zip(entry, values, strict=True) if value is not None}


def _cases_of(entry: dict[str, Any], folder: Path) -> tuple[Case, ...]:
    """The cases of a plan with this one entry; none where the plan is refused."""
    path = folder / "plan.yaml"
    path.write_text(json.dumps({"schema_version": 1, "name": "grid", "matrix": [entry]}))
    try:
        return load_plan(path).cases
    except PlanError:
        return ()


def make() -> dict[str, list[dict[str, Any]]]:
    """What the file contains, by the code of now: every ready plan, and a grid of what a plan may ask for."""
    groups = {path.name: list(load_plan(path).cases) for path in sorted((ROOT / "plans").glob("*.yaml"))}
    with tempfile.TemporaryDirectory() as folder:
        for entry in _entries():
            found = groups.setdefault(f"grid of {entry['workload']}", [])
            found += [case for case in _cases_of(entry, Path(folder)) if case not in found]
    return {
        name: [{"factors": case.chosen(), "answers": answers(case)} for case in cases] for name, cases in groups.items()
    }


if __name__ == "__main__":
    content = json.dumps(make(), separators=(",", ":")).encode()
    STORED.write_bytes(gzip.compress(content, 9, mtime=0))
    print(f"{STORED}: {STORED.stat().st_size} bytes")
