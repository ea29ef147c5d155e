# SPDX-License-Identifier: Apache-2.0
"""What can run where, on facts as a laptop, a GPU server and a bare installation give them."""

from __future__ import annotations

from typing import Any

import pytest

from pybench import machine
from pybench.case import FACTORS, Case
from pybench.machine.support import gpus_of

HERE = {"available": True, "cpu_count": 8}
LAPTOP: dict[str, Any] = {
    "machine": HERE,
    "torch": {"available": True, "cuda_devices": []},
    "onnxruntime": {"available": True, "providers": ["CPUExecutionProvider"]},
    "onnx": {"available": True},
    "onnxscript": {"available": True},
    "hf": {"available": True},
    "rust": {"available": True},
    "go_rust": {"available": False, "why": "no pybench-orchestrator"},
}
GPU = {"name": "a GPU", "uuid": "GPU-1", "capability": "9.0", "memory_bytes": 1}
SERVER = {**LAPTOP, "torch": {"available": True, "cuda_devices": [GPU]}}
OLD_SERVER = {**LAPTOP, "torch": {"available": True, "cuda_devices": [{**GPU, "capability": "7.0"}]}}
BARE = {**LAPTOP, **{name: {"available": False, "why": "No module"} for name in ("torch", "onnxruntime", "onnx", "hf")}}

RESNET = Case(workload="infer", model="resnet50", runtime="torch")
DIGITS = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")
TRAIN = Case(workload="train", model="tinylm-small", runtime="torch")
TOKENIZE = Case(workload="tokenize", path="rust")


@pytest.mark.parametrize(
    ("case", "facts", "code"),
    [
        (RESNET, LAPTOP, None),
        (RESNET, BARE, "no_torch"),
        (RESNET.with_factors(precision="int8"), SERVER, "no_int8_in_torch"),
        (RESNET.with_factors(precision="fp16"), LAPTOP, "no_gpu"),
        (RESNET.with_factors(precision="fp16"), SERVER, None),
        (RESNET.with_factors(precision="fp16", device="cpu"), SERVER, "no_gpu"),
        (RESNET.with_factors(precision="tf32"), OLD_SERVER, "no_tf32"),
        (RESNET.with_factors(precision="tf32"), SERVER, None),
        (RESNET.with_factors(device="cuda"), LAPTOP, "no_gpu"),
        (RESNET.with_factors(device="GPU-2"), SERVER, "no_such_gpu"),
        (RESNET.with_factors(device="GPU-1"), SERVER, None),
        (RESNET.with_factors(transfers=True), LAPTOP, "no_gpu"),
        (RESNET.with_factors(transfers=True), SERVER, None),
        (RESNET.with_factors(model="own.onnx"), LAPTOP, "onnx_in_torch"),
        (DIGITS, LAPTOP, None),
        (DIGITS, BARE, "no_onnxruntime"),
        (DIGITS, {**LAPTOP, "torch": BARE["torch"]}, "no_torch"),
        (DIGITS.with_factors(model="own.onnx"), {**LAPTOP, "torch": BARE["torch"]}, None),
        (DIGITS.with_factors(precision="bf16"), SERVER, "no_bf16_in_onnxruntime"),
        (DIGITS.with_factors(device="cuda"), SERVER, "no_gpu"),
        (TRAIN, LAPTOP, None),
        (TRAIN.with_factors(precision="amp-bf16"), LAPTOP, None),
        (TRAIN.with_factors(precision="amp-fp16"), LAPTOP, "no_gpu"),
        (TRAIN.with_factors(runtime="onnxruntime"), LAPTOP, "no_training"),
        (Case(workload="h2d"), LAPTOP, "no_gpu"),
        (Case(workload="h2d"), SERVER, None),
        (TOKENIZE, BARE, None),
        (TOKENIZE.with_factors(path="go_rust"), LAPTOP, "no_go_rust"),
        (Case(workload="noop"), BARE, None),
    ],
)
def test_a_case_is_supported_or_says_why_not(case: Case, facts: dict[str, Any], code: str | None) -> None:
    reason = machine.unsupported(case, facts)
    assert (reason and reason[0]) == code
    assert reason is None or len(reason[1]) > 20


def test_only_what_the_cases_need_is_asked() -> None:
    assert machine.needed_facts([Case(workload="noop")]) == ("machine",)
    assert machine.needed_facts([TOKENIZE]) == ("machine", "rust")
    assert machine.needed_facts([DIGITS]) == ("machine", "torch", "onnxruntime", "onnx", "onnxscript")


def test_the_gpus_that_cases_use_are_the_first_or_the_named() -> None:
    two = {**LAPTOP, "torch": {"available": True, "cuda_devices": [GPU, {**GPU, "uuid": "GPU-2"}]}}
    used = [gpus_of(RESNET.with_factors(device=device), two) for device in ("auto", "cuda", "cpu", "GPU-2", "GPU-3")]
    assert used == [["GPU-1"], ["GPU-1"], [], ["GPU-2"], []]
    assert gpus_of(Case(workload="h2d"), two) == ["GPU-1"]
    assert gpus_of(TOKENIZE, two) == gpus_of(Case(workload="noop"), two) == gpus_of(RESNET, LAPTOP) == []
    assert gpus_of(DIGITS, two) == [], "this onnxruntime has no CUDA"


def test_no_worker_is_asked_about_boards_that_no_case_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.machine.sensor.ask", lambda names: pytest.fail("a worker was started"))
    assert machine.boards_used([RESNET, TOKENIZE], LAPTOP) == []


def test_every_runtime_has_its_rules() -> None:
    """A runtime added to the closed list without a rule would be taken for torch."""
    assert FACTORS["runtime"].choices == ("onnxruntime", "torch")


def test_an_estimate_grows_with_the_work_and_yields_to_what_was_measured() -> None:
    small = machine.estimate([RESNET], 1, 0, LAPTOP, {})
    large = machine.estimate([RESNET.with_factors(iterations=1000)], 1, 0, LAPTOP, {})
    assert large.seconds > 2 * small.seconds
    assert machine.estimate([RESNET], 10, 0, LAPTOP, {RESNET.id: 2.0}).seconds == 20.0
