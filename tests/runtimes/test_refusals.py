# SPDX-License-Identifier: Apache-2.0
"""One reason has one code: what the plan's side says of a case before its run, the runtime says in the run."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from pybench.case import Case
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from pybench.machine import Machine
from pybench.runtimes import cuda, native, onnxruntime, openvino, solver, torch
from pybench.runtimes.tensorrt import library
from pybench.runtimes.tensorrt import session as engines
from tests.support.answers import MACHINES

EVERY_PROVIDER = [backend.called for backend in RUNTIMES["onnxruntime"].backends]
CPU_TYPES = ["bf16", "fp32", "int8"]  # of a CPU without FP16, as OpenVINO tells
COMBINATIONS = [
    (runtime, provider, precision)
    for runtime, row in RUNTIMES.items()
    for provider in (None, *(backend.name for backend in row.backends))
    for precision in PRECISIONS
]


class OpenedError(Exception):
    """The runtime has refused nothing, and opens what it was given."""


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Called with the GPUs of a machine: every package is there, and what comes after a refusal does not happen.

    What is replaced is what this machine has none of (a GPU, TensorRT) and the opening itself.
    """

    def stop(*_: Any, **__: Any) -> Any:
        raise OpenedError

    def prepare(gpus: list[dict[str, str]]) -> None:
        providers = EVERY_PROVIDER if gpus else EVERY_PROVIDER[:1]
        monkeypatch.setattr(onnxruntime.onnxruntime, "get_available_providers", lambda: providers)
        monkeypatch.setattr(onnxruntime.measure, "visible_gpus", lambda: [gpu["uuid"] for gpu in gpus])
        monkeypatch.setattr(onnxruntime, "_load_libraries", lambda provider: None)
        monkeypatch.setattr(onnxruntime.providers, "set_tf32", lambda precision: None)
        monkeypatch.setattr(onnxruntime.onnxruntime, "InferenceSession", stop)
        monkeypatch.setattr(native, "find_library", lambda: Path("libonnxruntime.so"))
        monkeypatch.setattr(native, "_built_in", lambda library: providers)
        monkeypatch.setattr(native, "NativeProcess", stop)
        monkeypatch.setattr(openvino, "cpu_types", lambda: CPU_TYPES)
        monkeypatch.setattr(openvino, "read_graph", stop)
        monkeypatch.setattr(library, "load", lambda: None)
        monkeypatch.setattr(cuda, "devices", lambda: gpus)
        monkeypatch.setattr(engines, "TensorRtSession", stop)
        monkeypatch.setattr(solver, "SolverSession", stop)
        monkeypatch.setattr(torch.torch.cuda, "is_available", lambda: bool(gpus))
        monkeypatch.setattr(torch.torch.cuda, "get_device_capability", lambda: (9, 0))
        monkeypatch.setattr(torch, "allow_tf32", lambda allowed: None)

    return prepare


def refused(case: Case) -> str | None:
    """The code of the runtime's own refusal; None: it goes on to open what it is given."""

    def build() -> Any:
        raise OpenedError

    row = RUNTIMES[case.runtime or ""]
    given = build if row.opens == "module" else Path("model")
    with pytest.raises((OpenedError, UnsupportedError)) as caught:
        importlib.import_module(row.module).open_case(given, None, case, 1)
    return caught.value.reason.stored_code if isinstance(caught.value, UnsupportedError) else None


@pytest.mark.parametrize("where", ["laptop", "server"])
def test_plan_and_run_refuse_the_same_with_the_same_code(opens: Any, where: str) -> None:
    further = ("torch_tensorrt", "modelopt", "onnxruntime_library", "go_rust")
    facts = {**MACHINES[where], **{name: {"available": True} for name in further}}
    facts["openvino"] = {"available": True, "types": CPU_TYPES}
    opens(facts["torch"]["cuda_devices"])
    differ, codes = [], set()
    for runtime, provider, precision in COMBINATIONS:
        path = RUNTIMES[runtime].own_path
        given = {"model": "mlp"} if path is None else {"model": "tinylm-tiny", "path": path}
        case = Case(workload="infer", runtime=runtime, provider=provider, precision=precision, **given)
        planned = Machine(facts).unsupported(case)
        ran = refused(case)
        codes.add(ran)
        if (planned and planned.reason.stored_code) != ran:
            differ.append((runtime, provider, precision, planned, ran))
    assert differ == []
    wanted = {"laptop": {"no_int8_in_torch", "no_gpu", "no_fp16_on_cpu", "no_cuda_provider", "no_fp16",
                         "no_int8+bf16_in_openvino", None},
              "server": {"no_int8_in_torch-graph", "no_int8_on_cuda", "no_fp8_on_tensorrt", "no_amp-fp16_in_tensorrt",
                         None}}  # fmt: skip
    assert codes >= wanted[where]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_plan_and_training_refuse_the_same_with_the_same_code(opens: Any, precision: str) -> None:
    opens([])
    case = Case(workload="train", model="tinylm-small", runtime="torch", precision=precision)
    planned = Machine(MACHINES["laptop"]).unsupported(case)
    if planned is None:
        assert torch.set_up(precision, 1, "auto", training=True) == "cpu"
        return
    with pytest.raises(UnsupportedError) as caught:
        torch.set_up(precision, 1, "auto", training=True)
    assert caught.value.reason.stored_code == planned.reason.stored_code
