# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from pybench.case import Case
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import DeviceMemoryError, InputError
from pybench.measurement import audits
from pybench.measurement.result import Validity
from pybench.precision.audit import Audit
from tests.support.making import run
from tests.support.reasons import codes_of, reasons_of

DIGITS = Case(
    workload="infer", model="digits-cnn", runtime="onnxruntime", batch=4, threads=1, iterations=20, device="cpu"
)


@pytest.mark.parametrize(
    "error",
    [
        DeviceMemoryError("no room for a second session", evidence="cuda failure 2:"),
        InputError("mine.onnx is not a runnable ONNX model (the disk is full)"),
        RuntimeError("CUPTI_ERROR_NOT_INITIALIZED\nin the profiler"),
    ],
)
def test_an_audit_that_fails_proves_nothing_and_costs_no_window(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> audits.Audit:
        raise error

    monkeypatch.setattr(audits, "of_onnxruntime", fail)
    result = run(DIGITS)
    assert result.metrics["latency_mean_ms"].value > 0
    assert result.valid["timing"].value is True
    assert (result.valid["precision"].value, codes_of(result.valid["precision"].reasons)) == (False, ("audit_failed",))
    kind = type(error).__name__
    assert result.labels["precision_realised"] == f"not known: the audit failed ({kind})"
    assert result.labels["precision_facts"]["error"] == f"{kind}: {' '.join(str(error).split())}"
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("runtime", "reasons"), [("torch-tensorrt", ("not_in_claimed_type",)), ("torch", ()), ("torch-compile", ())]
)
def test_a_module_compiled_into_engines_is_judged_by_its_kernels_and_not_by_its_parameters(
    runtime: str, reasons: tuple[str, ...]
) -> None:
    single = ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_ffma_execute_kernel_trt", 1.0)
    module = nn.Linear(4, 3).half()
    session = SimpleNamespace(module=module, kernels=lambda: [single])
    case = DIGITS.with_factors(runtime=runtime, precision="fp16")
    assert codes_of(audits.audit_of(RUNTIMES[runtime])(session, case, None).reasons) == reasons


def test_a_runtime_that_nothing_audits_has_no_precision_and_never_a_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUNTIMES, "onnxruntime", replace(RUNTIMES["onnxruntime"], audit=None))
    result = run(DIGITS)
    assert result.valid["precision"] == Validity(None, reasons_of("no_audit"))
    assert result.labels["precision_realised"] == "not known: onnxruntime has no audit"


@pytest.mark.parametrize("name", ["audit", "profile"])
@pytest.mark.parametrize("code", ["pybench.measurement.nowhere:mine", "pybench.measurement.audits:mine"])
def test_code_that_is_not_there_fails_the_run_by_the_property_that_names_it(
    monkeypatch: pytest.MonkeyPatch, name: str, code: str
) -> None:
    row = replace(RUNTIMES["onnxruntime"], **{name: code})
    monkeypatch.setitem(RUNTIMES, "onnxruntime", row)
    with pytest.raises((ImportError, AttributeError), match=f"^`{name}` of onnxruntime, {code}: "):
        run(DIGITS)


def test_an_interrupted_audit_interrupts_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> audits.Audit:
        raise KeyboardInterrupt

    monkeypatch.setattr(audits, "of_onnxruntime", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(DIGITS)


def test_of_the_audits_of_parts_the_weakest_counts() -> None:
    right, wrong = Audit("fp16", True, (), {"layers": 2}), Audit("fp32", False, ("not_in_claimed_type",))
    unknown = Audit("not known", None, ("no_audit",))
    assert audits.joined({"backbone": right, "depth": right}).valid is True
    found = audits.joined({"backbone": right, "depth": wrong, "boxes": unknown})
    assert (found.valid, found.reasons) == (False, ("not_in_claimed_type", "no_audit"))
    assert found.realised == "backbone: fp16; depth: fp32; boxes: not known"
    assert found.facts["backbone"] == {"layers": 2}
    assert audits.joined({"backbone": right, "boxes": unknown}).valid is None
