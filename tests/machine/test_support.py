# SPDX-License-Identifier: Apache-2.0
"""What can run where, on facts as a laptop, a GPU server and a bare installation give them."""

from __future__ import annotations

from typing import Any

import pytest

from pybench import machine
from pybench.campaign.recipe import in_making_order, recipes_of
from pybench.case import Case
from pybench.case.factors.running import CACHES
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason, read_reason
from pybench.catalogue.runtimes import RUNTIMES, Runtime
from pybench.errors import UnknownNameError
from pybench.machine import Machine
from pybench.machine.facts import needed_facts
from pybench.machine.support import gpus_of, platform_of

HERE = {"available": True, "cpu_count": 8}
LAPTOP: dict[str, Any] = {
    "machine": HERE,
    "cuda": {"available": False, "why": "no driver"},
    "cuda_python": {"available": True},
    "tensorrt": {"available": True, "version": "10.6.0"},
    "torch": {"available": True, "cuda_devices": []},
    "onnxruntime": {"available": True, "providers": ["CPUExecutionProvider"]},
    "onnx": {"available": True},
    "openvino": {"available": True, "types": ["bf16", "fp32", "int8"]},
    **{name: {"available": True} for name in ("timm", "torchvision", "transformers")},
    "modelopt": {"available": False, "why": "no uv"},
    "onnxscript": {"available": True},
    "hf": {"available": True},
    "rust": {"available": True},
    "go_rust": {"available": False, "why": "no pybench-orchestrator"},
    "compiler": {"available": True, "path": "/usr/bin/g++"},
    "torch_tensorrt": {"available": False, "why": "No module"},
}
GPU = {"name": "a GPU", "uuid": "GPU-1", "capability": "9.0", "memory_bytes": 1}
SERVER = {
    **LAPTOP,
    "torch": {"available": True, "cuda_devices": [GPU]},
    "cuda": {"available": True, "devices": [GPU]},
}
OLD = {**GPU, "capability": "7.0"}
MIXED_SERVER = {**LAPTOP, "cuda": {"available": True, "devices": [{**OLD, "uuid": "GPU-0"}, GPU]}}
OLD_SERVER = {
    **LAPTOP,
    "torch": {"available": True, "cuda_devices": [OLD]},
    "cuda": {"available": True, "devices": [OLD]},
}
ALL_PROVIDERS = {
    "available": True,
    "providers": ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
}
ORT_SERVER = {**SERVER, "onnxruntime": ALL_PROVIDERS}
NO_SENSORS = {
    "gpu": {"available": True, "devices": []},
    "cpu_energy": {"available": False, "why": "no RAPL"},
    "power_rails": {"available": False, "why": "no rail"},
    "node_energy": {"available": False, "why": "no counter"},
}
BARE = {**LAPTOP, **{name: {"available": False, "why": "No module"} for name in ("torch", "onnxruntime", "onnx", "hf")}}

BOARD = {
    "uuid": "GPU-1",
    "name": "a GPU",
    "changed": [],
    "ranges": {
        "power_limit_w": {"takes": "200 to 700 W", "range": [200.0, 700.0]},
        "sm_clock_mhz": {"takes": "1200, 1500 MHz", "clocks": [1200, 1500]},
    },
}
ROOT = {**SERVER, "gpu": {"available": True, "may_set": True, "devices": [BOARD]}}
USER = {**SERVER, "gpu": {"available": True, "may_set": False, "devices": [BOARD]}}
VIRTUAL = {**SERVER, "gpu": {"available": True, "may_set": True, "devices": [{**BOARD, "ranges": {}}]}}
NO_NVML = {**SERVER, "gpu": {"available": True, "may_set": True, "devices": []}}

RESNET = Case(workload="infer", model="resnet50", runtime="torch")
ENGINE = RESNET.with_factors(runtime="tensorrt")
SEARCHED = ENGINE.with_factors(precision="int8", quantiser="modelopt-autotune")
SEARCHING = {**SERVER, "modelopt": {"available": True, "how": "its environment is there"}}
COMPILED = RESNET.with_factors(runtime="torch-compile")
TORCH_TRT = RESNET.with_factors(runtime="torch-tensorrt")
ONNX = RESNET.with_factors(runtime="onnxruntime")
OPENVINO = RESNET.with_factors(runtime="openvino")
ON_CUDA, ON_TENSORRT = ONNX.with_factors(provider="cuda"), ONNX.with_factors(provider="tensorrt")
DIGITS = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")
TRAIN = Case(workload="train", model="tinylm-small", runtime="torch")
TOKENIZE = Case(workload="tokenize", path="rust")
NATIVE = Case(workload="infer", model="tinylm-tiny", runtime="native", path="go_rust")
WITHOUT_LIBRARY = {**LAPTOP, "onnxruntime_library": {"available": False, "why": "there is no libonnxruntime.so"}}
GENERATING = Case(workload="generate", model="tinylm-tiny", runtime="onnxruntime")
NATIVE_LAPTOP = {**LAPTOP, "onnxruntime_library": HERE, "go_rust": HERE}


@pytest.mark.parametrize(
    ("case", "facts", "code"),
    [
        (RESNET, LAPTOP, None),
        (RESNET, BARE, "no_torch"),
        (RESNET.with_factors(checkpoint="synthetic-100"), LAPTOP, "no_gpu"),
        (RESNET.with_factors(model="distilbert", workload="accuracy"), LAPTOP, "no_gpu"),
        (RESNET.with_factors(model="distilbert", checkpoint="stdlib-packages"), LAPTOP, "no_gpu"),
        (RESNET.with_factors(checkpoint="synthetic-100"), SERVER, None),
        (RESNET.with_factors(checkpoint="synthetic-100", device="cpu"), SERVER, None),
        (RESNET.with_factors(checkpoint="mine.pt"), LAPTOP, None),
        (DIGITS.with_factors(checkpoint="synthetic-100"), LAPTOP, None),
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
        (RESNET.with_factors(runtime="torch-graph"), LAPTOP, "no_gpu"),
        (RESNET.with_factors(runtime="torch-graph"), BARE, "no_torch"),
        (RESNET.with_factors(runtime="torch-graph"), SERVER, None),
        (RESNET.with_factors(runtime="torch-graph", device="cpu"), SERVER, "no_gpu"),
        (RESNET.with_factors(runtime="torch-graph", precision="int8"), SERVER, "no_int8_in_torch-graph"),
        (RESNET.with_factors(runtime="torch-graph", precision="tf32"), OLD_SERVER, "no_tf32"),
        (RESNET.with_factors(runtime="torch-graph", transfers=True), SERVER, "no_transfers_in_torch-graph"),
        (RESNET.with_factors(runtime="torch-graph", model="own.onnx"), SERVER, "onnx_in_torch"),
        (RESNET.with_factors(arrivals="poisson", arrival_rate_per_s=10.0), LAPTOP, None),
        (TRAIN.with_factors(runtime="torch-graph"), SERVER, "no_training"),
        (ENGINE, LAPTOP, "no_gpu"),
        (ENGINE, {**SERVER, "tensorrt": {"available": False, "why": "No module"}}, "no_tensorrt"),
        (ENGINE, {**SERVER, "cuda_python": {"available": False, "why": "No module"}}, "no_cuda_python"),
        (ENGINE, SERVER, None),
        (ENGINE.with_factors(model="own.onnx"), {**SERVER, "torch": BARE["torch"]}, None),
        (ENGINE.with_factors(precision="fp8+fp16"), SERVER, None),
        (ENGINE.with_factors(precision="fp8+fp16"), OLD_SERVER, "no_fp8"),
        (ENGINE.with_factors(precision="int8"), {**SERVER, "onnxruntime": BARE["onnxruntime"]}, "no_onnxruntime"),
        (ENGINE.with_factors(precision="amp-fp16"), SERVER, "no_amp-fp16_in_tensorrt"),
        (ENGINE.with_factors(precision="int8+bf16"), OLD_SERVER, "no_bf16"),
        (ENGINE.with_factors(precision="fp8"), MIXED_SERVER, "no_fp8"),
        (ENGINE.with_factors(precision="fp8", device="GPU-1"), MIXED_SERVER, None),
        (
            ENGINE.with_factors(model="own.onnx"),
            {**SERVER, "onnx": {"available": False, "why": "No module"}},
            "no_onnx",
        ),
        (ENGINE.with_factors(precision="int8", quantiser="modelopt"), SERVER, "no_modelopt"),
        (SEARCHED, SERVER, "no_modelopt"),
        (SEARCHED, {**SEARCHING, "tensorrt": {"available": False, "why": "No module"}}, "no_tensorrt"),
        (SEARCHED, {**SEARCHING, "cuda": LAPTOP["cuda"]}, "no_gpu"),
        (SEARCHED, {**SEARCHING, "tensorrt": {"available": True, "version": "11.4.0.106"}}, "no_search"),
        (SEARCHED, SEARCHING, None),
        (COMPILED, LAPTOP, None),
        (COMPILED, {**LAPTOP, "compiler": {"available": False, "why": "no compiler g++ on PATH"}}, "no_compiler"),
        (COMPILED.with_factors(precision="bf16"), LAPTOP, None),
        (COMPILED.with_factors(precision="fp16"), LAPTOP, "no_gpu"),
        (COMPILED.with_factors(precision="int8"), SERVER, "no_int8_in_torch-compile"),
        (COMPILED.with_factors(compile_mode="reduce-overhead"), LAPTOP, "no_gpu"),
        (COMPILED.with_factors(compile_mode="reduce-overhead", device="cpu"), SERVER, "no_gpu"),
        (COMPILED.with_factors(compile_mode="max-autotune"), SERVER, None),
        (COMPILED.with_factors(model="own.onnx"), SERVER, "onnx_in_torch"),
        (TORCH_TRT, SERVER, "no_torch_tensorrt"),
        (TORCH_TRT, {**SERVER, "torch_tensorrt": {"available": True}}, None),
        (TORCH_TRT, {**LAPTOP, "torch_tensorrt": {"available": True}}, "no_gpu"),
        (ONNX.with_factors(precision="bf16"), LAPTOP, "no_bf16_on_cpu"),
        (ONNX.with_factors(precision="tf32"), ORT_SERVER, None),
        (ONNX.with_factors(precision="tf32", device="cpu"), ORT_SERVER, "no_tf32_on_cpu"),
        (ONNX.with_factors(precision="int8"), ORT_SERVER, "no_int8_on_cuda"),
        (ONNX.with_factors(precision="int8", provider="cpu"), ORT_SERVER, None),
        (ONNX.with_factors(provider="cpu", device="cuda"), ORT_SERVER, "provider_and_device"),
        (ON_CUDA.with_factors(device="cpu"), ORT_SERVER, "provider_and_device"),
        (ON_CUDA, SERVER, "no_cuda_provider"),
        (ON_CUDA, ORT_SERVER, None),
        (ON_CUDA, {**LAPTOP, "onnxruntime": ALL_PROVIDERS}, "no_gpu"),
        (ON_CUDA.with_factors(precision="fp16"), ORT_SERVER, None),
        (ON_TENSORRT, SERVER, "no_tensorrt_provider"),
        (ON_TENSORRT.with_factors(precision="int8+fp16"), ORT_SERVER, None),
        (ON_TENSORRT.with_factors(precision="fp8"), ORT_SERVER, "no_fp8_on_tensorrt"),
        (ON_TENSORRT.with_factors(precision="int8", quantiser="onnxruntime"), ORT_SERVER, "ranges_not_symmetric"),
        (ON_TENSORRT.with_factors(precision="int8", quantiser="dynamic"), ORT_SERVER, "no_ranges_at_run"),
        (GENERATING, LAPTOP, None),
        (GENERATING.with_factors(precision="tf32"), ORT_SERVER, None),
        (GENERATING.with_factors(precision="fp16"), ORT_SERVER, "no_fp16_cache_on_cuda"),
        (GENERATING.with_factors(precision="fp16"), LAPTOP, "no_fp16_on_cpu"),
        (GENERATING.with_factors(precision="int8"), LAPTOP, "no_int8_cache_on_cpu"),
        (GENERATING.with_factors(provider="tensorrt"), ORT_SERVER, "no_generation_on_tensorrt"),
        (GENERATING.with_factors(runtime="native"), NATIVE_LAPTOP, "no_generation_in_native"),
        (ONNX.with_factors(precision="int4", quantiser="weight-only", device="cpu"), ORT_SERVER, None),
        (ON_CUDA.with_factors(precision="int8", quantiser="weight-only"), ORT_SERVER, None),
        (ON_TENSORRT.with_factors(precision="int4", quantiser="weight-only"), ORT_SERVER, "no_stored_weights"),
        (OPENVINO.with_factors(precision="int4", quantiser="weight-only"), LAPTOP, "no_stored_weights"),
        (ENGINE.with_factors(precision="int8", quantiser="weight-only"), SERVER, "no_stored_weights"),
        (TRAIN.with_factors(precision="int4"), SERVER, "no_int4_in_torch"),
        (GENERATING.with_factors(precision="int4", quantiser="weight-only"), LAPTOP, None),
        (
            GENERATING.with_factors(precision="int8", quantiser="weight-only", runtime="torch"),
            LAPTOP,
            "no_stored_weights",
        ),
        (OPENVINO, LAPTOP, None),
        (OPENVINO, {**LAPTOP, "openvino": {"available": False, "why": "No module"}}, "no_openvino"),
        (OPENVINO.with_factors(precision="int8"), SERVER, None),
        (OPENVINO.with_factors(precision="bf16"), LAPTOP, None),
        (OPENVINO.with_factors(precision="fp16"), LAPTOP, "no_fp16"),
        (OPENVINO.with_factors(precision="tf32"), LAPTOP, "no_tf32_in_openvino"),
        (OPENVINO.with_factors(device="cuda"), SERVER, "no_gpu"),
        (OPENVINO.with_factors(transfers=True), SERVER, "no_gpu"),
        (OPENVINO.with_factors(model="timm/resnet50"), LAPTOP, None),
        (OPENVINO.with_factors(model="hf/bert", device="cpu", runtime="torch"), LAPTOP, None),
        (OPENVINO.with_factors(model="hf/bert"), {**LAPTOP, "transformers": BARE["torch"]}, "no_transformers"),
        (DIGITS, LAPTOP, None),
        (DIGITS, BARE, "no_onnxruntime"),
        (DIGITS, {**LAPTOP, "torch": BARE["torch"]}, "no_torch"),
        (DIGITS.with_factors(model="own.onnx"), {**LAPTOP, "torch": BARE["torch"]}, None),
        (DIGITS.with_factors(precision="bf16"), SERVER, "no_bf16_on_cpu"),
        (DIGITS.with_factors(device="cuda"), SERVER, "no_gpu"),
        (TRAIN, LAPTOP, None),
        (TRAIN.with_factors(precision="amp-bf16"), LAPTOP, None),
        (TRAIN.with_factors(precision="amp-fp16"), LAPTOP, "no_gpu"),
        (TRAIN.with_factors(runtime="onnxruntime"), LAPTOP, "no_training"),
        (Case(workload="h2d"), LAPTOP, "no_gpu"),
        (Case(workload="h2d"), SERVER, None),
        (Case(workload="h2d", numa_node=7), SERVER, "no_numa_node"),
        (TOKENIZE, BARE, None),
        (TOKENIZE.with_factors(path="go_rust"), LAPTOP, "no_go_rust"),
        (NATIVE, WITHOUT_LIBRARY, "no_onnxruntime_library"),
        (NATIVE, {**WITHOUT_LIBRARY, "onnxruntime_library": HERE}, "no_go_rust"),
        (NATIVE.with_factors(path="none"), NATIVE_LAPTOP, "no_path_none_in_native"),
        (NATIVE.with_factors(model="mlp"), NATIVE_LAPTOP, "no_text_for_native"),
        (NATIVE.with_factors(precision="bf16"), NATIVE_LAPTOP, "no_bf16_on_cpu"),
        (NATIVE.with_factors(provider="cuda"), NATIVE_LAPTOP, "no_cuda_provider"),
        (Case(workload="noop"), BARE, None),
        (RESNET.with_factors(power_limit_w=300), ROOT, None),
        (RESNET.with_factors(power_limit_w=300, device="cuda"), ROOT, None),
        (RESNET.with_factors(power_limit_w=300), LAPTOP, "no_gpu"),
        (RESNET.with_factors(power_limit_w=300), USER, "no_permission"),
        (RESNET.with_factors(power_limit_w=300), NO_NVML, "no_such_board"),
        (RESNET.with_factors(power_limit_w=300), VIRTUAL, "setting_unsupported"),
        (RESNET.with_factors(sm_clock_mhz=1200), VIRTUAL, None),
        (RESNET.with_factors(power_limit_w=199), ROOT, "setting_out_of_range"),
        (RESNET.with_factors(power_limit_w=701), ROOT, "setting_out_of_range"),
        (RESNET.with_factors(sm_clock_mhz=1200), ROOT, None),
        (RESNET.with_factors(sm_clock_mhz=1300), ROOT, "setting_out_of_range"),
        (Case(workload="noop", device="GPU-1"), USER, None),
        (Case(workload="noop", device="GPU-2"), USER, "no_such_board"),
        (Case(workload="noop", device="GPU-1", power_limit_w=300), ROOT, None),
        (Case(workload="noop", device="GPU-1", power_limit_w=300), USER, "no_permission"),
    ],
)
def test_a_case_is_supported_or_says_why_not(case: Case, facts: dict[str, Any], code: str | None) -> None:
    refusal = Machine(facts).unsupported(case)
    assert (refusal and refusal.reason.stored_code) == code
    assert refusal is None or len(refusal.in_one_line()) > 20


def test_an_engine_is_bound_to_a_gpu_and_a_tensorrt_that_are_there() -> None:
    bound = platform_of(ENGINE, SERVER)
    assert bound is not None
    assert bound.startswith("TensorRT 10.6.0 on ")
    assert platform_of(ENGINE, {**SERVER, "tensorrt": {"available": False, "why": "No module"}}) is None
    assert platform_of(ENGINE, LAPTOP) is None
    assert platform_of(RESNET, SERVER) is None


def test_only_what_the_cases_need_is_asked() -> None:
    assert needed_facts([Case(workload="noop")]) == ("machine",)
    assert needed_facts([TOKENIZE]) == ("machine", "rust")
    assert needed_facts([RESNET.with_factors(runtime="torch-graph")]) == ("machine", "torch")
    assert needed_facts([OPENVINO]) == ("machine", "torch", "openvino", "onnx", "onnxscript")
    assert needed_facts([COMPILED]) == ("machine", "torch", "compiler")
    assert needed_facts([TORCH_TRT]) == ("machine", "torch", "torch_tensorrt")
    assert needed_facts([DIGITS]) == ("machine", "torch", "onnxruntime", "onnx", "onnxscript")


ACME = Case(
    workload="infer",
    model="mlp",
    runtime="acme",
    catalogue=BUILT_IN.with_rows(
        [Runtime(name="acme", module="acme.session", opens="module", needs=("acme_lib", "torch"), start_s=1.0)]
    ),
)


def test_what_only_a_plug_in_needs_is_asked_as_a_module() -> None:
    assert needed_facts([ACME]) == ("machine", "torch", "module:acme_lib")
    refusal = Machine({**LAPTOP, "module:acme_lib": {"available": False, "why": "No module"}}).unsupported(ACME)
    assert refusal is not None
    assert (refusal.message, refusal.hint) == ("acme_lib cannot be used here (No module)", "install it")
    assert read_reason(refusal.reason.stored_code, refusal.reason.detail) == refusal.reason
    there = Machine({**LAPTOP, "module:acme_lib": HERE}).unsupported(ACME)
    assert there is None or "acme_lib" not in there.message


def test_what_a_board_takes_is_asked_of_nvml_only_for_cases_that_set_it() -> None:
    assert "gpu" not in needed_facts([RESNET])
    assert "gpu" in needed_facts([RESNET.with_factors(sm_clock_mhz=1200)])
    assert needed_facts([Case(workload="noop", device="GPU-1")]) == ("machine", "gpu")


def test_a_refusal_says_what_the_board_takes_and_how_to_get_permission() -> None:
    capped = RESNET.with_factors(power_limit_w=100)
    refused, forbidden = Machine(ROOT).unsupported(capped), Machine(USER).unsupported(capped)
    assert refused is not None
    assert forbidden is not None
    assert refused.in_one_line() == "power_limit_w 100: a GPU GPU-1 takes 200 to 700 W"
    assert "root (CAP_SYS_ADMIN)" in forbidden.message


def test_doctor_says_what_a_board_takes_and_what_a_killed_run_has_left(replies: dict[str, Any]) -> None:
    changed = {**BOARD, "changed": ["nvidia-smi -i GPU-1 -pl 700"]}
    for may_set, status in ((True, "yes"), (False, "no")):
        fact = {"available": True, "driver": "1", "may_set": may_set, "devices": [changed]}
        findings = {finding.what: finding for finding in machine.diagnose({**replies, "gpu": fact})}
        assert findings["GPU settings"].status == status
        assert "power_limit_w 200 to 700 W" in findings["GPU settings"].detail
        assert findings["GPU as it was"].hint == "if none goes on, as root: nvidia-smi -i GPU-1 -pl 700"


@pytest.fixture
def replies() -> dict[str, Any]:
    """What a machine answers where nothing but Python is installed."""
    absent = {"available": False, "why": "No module"}
    about = {"available": True, "cpu": "a CPU", "cpus": "0-7", "memory_bytes": 2**33, "python": "3.11.9"}
    return {**dict.fromkeys(machine.EVERYTHING, absent), "machine": about}


def test_the_gpus_that_cases_use_are_the_first_or_the_named() -> None:
    two = {**LAPTOP, "torch": {"available": True, "cuda_devices": [GPU, {**GPU, "uuid": "GPU-2"}]}}
    used = [gpus_of(RESNET.with_factors(device=device), two) for device in ("auto", "cuda", "cpu", "GPU-2", "GPU-3")]
    assert used == [["GPU-1"], ["GPU-1"], [], ["GPU-2"], []]
    assert gpus_of(Case(workload="h2d"), two) == ["GPU-1"]
    assert gpus_of(TOKENIZE, two) == gpus_of(Case(workload="noop"), two) == gpus_of(RESNET, LAPTOP) == []
    assert gpus_of(DIGITS, two) == [], "this onnxruntime has no CUDA"
    assert gpus_of(ONNX, ORT_SERVER) == gpus_of(ON_TENSORRT, ORT_SERVER) == ["GPU-1"]
    assert gpus_of(ONNX.with_factors(provider="cpu"), ORT_SERVER) == []


def test_no_worker_is_asked_about_boards_that_no_case_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.machine.sensor.ask", lambda names: pytest.fail("a worker was started"))
    assert Machine(LAPTOP).boards([RESNET, TOKENIZE]) == []


def test_an_estimate_grows_with_the_work_and_yields_to_what_was_measured() -> None:
    small = Machine(LAPTOP).estimate({RESNET: 1}, [], {})
    large = Machine(LAPTOP).estimate({RESNET.with_factors(iterations=1000): 1}, [], {})
    assert large.seconds > 2 * small.seconds
    assert Machine(LAPTOP).estimate({RESNET: 10}, [], {RESNET.id: 2.0}).seconds == 20.0


def test_a_cold_cache_has_a_second_energy_window() -> None:
    warm, cold = (RESNET.with_factors(runtime="tensorrt", energy_window_s=3.0, cache=cache) for cache in CACHES)
    seconds = [Machine(SERVER).estimate({case: 1}, [], {}).seconds for case in (warm, cold)]
    assert seconds[1] - seconds[0] == pytest.approx(3.0)


def test_what_an_own_file_computes_is_counted_or_its_time_is_unknown() -> None:
    own = Case(workload="infer", model="own.onnx", runtime="onnxruntime", sources=(("model", "0" * 64),))
    unknown = Machine(LAPTOP).estimate({own: 10, RESNET: 1}, [], {})
    assert (unknown.unknown, unknown.measured) == (1, 0)
    assert unknown.seconds == Machine(LAPTOP).estimate({RESNET: 1}, [], {}).seconds
    small, large = (Machine(LAPTOP).estimate({own: 10}, [], {}, {own.id: number}) for number in (9e3, 9e9))
    assert (small.unknown, large.unknown) == (0, 0)
    assert small.seconds == pytest.approx(10 * RUNTIMES["onnxruntime"].start_s, rel=0.01)
    assert large.seconds > 10 * small.seconds


def test_a_run_that_ends_with_a_profile_is_estimated_with_it() -> None:
    plain = RESNET.with_factors(runtime="openvino", iterations=1, warmup_iterations=0, energy_window_s=0)
    profiled = plain.with_factors(runtime="onnxruntime", provider="cpu")
    seconds = [Machine(LAPTOP).estimate({case: 1}, [], {}).seconds for case in (plain, profiled)]
    starts = [RUNTIMES["openvino"].start_s, RUNTIMES["onnxruntime"].start_s]
    pass_s = seconds[0] - starts[0]
    assert seconds[1] - starts[1] == pytest.approx(pass_s + min(11 * pass_s, 2.0))


QUICK = RESNET.with_factors(model="mlp", iterations=1, warmup_iterations=0)  # nothing but its start


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_estimate_begins_with_the_start_of_the_runtime(runtime: str) -> None:
    found = Machine(SERVER).estimate({QUICK.with_factors(runtime=runtime): 10}, [], {}).seconds / 10
    row = RUNTIMES[runtime]
    backend = row.backend(None, has_gpu=True)
    assert found == pytest.approx(row.start_s if backend is None else backend.start_s, abs=0.01)


@pytest.mark.parametrize(
    ("runtime", "provider", "least_s"),
    [("torch-compile", None, 12), ("torch-tensorrt", None, 42), ("onnxruntime", "tensorrt", 16)],
)
def test_what_compiles_in_every_run_is_estimated_with_it(runtime: str, provider: str | None, least_s: float) -> None:
    """The least that compiling was measured to take (bench/results/runtimes.md)."""
    case = QUICK.with_factors(runtime=runtime, provider=provider)
    assert Machine(SERVER).estimate({case: 10}, [], {}).seconds / 10 > least_s


def test_an_engine_is_estimated_with_what_its_build_takes() -> None:
    recipes = in_making_order(recipes_of(QUICK.with_factors(runtime="tensorrt"), "TensorRT 10.6 on a GPU"))
    assert [recipe.kind for recipe in recipes] == ["onnx", "engine"]
    exported = Machine(SERVER).estimate({}, recipes[:1], {}).seconds
    assert Machine(SERVER).estimate({}, recipes, {}).seconds - exported > 20


ENGINES = ("TensorRT engines", "TensorRT's buffers, graphs", "engines on a GPU")


def test_doctor_says_what_engines_need_and_how_to_get_it(replies: dict[str, Any]) -> None:
    findings = {finding.what: finding for finding in machine.diagnose(replies)}
    assert [findings[name].status for name in ENGINES] == ["no", "no", "no"]
    hints = [findings[name].hint or "" for name in ENGINES]
    assert "10.6 or later, or 11" in hints[0]
    assert hints[1] == hints[2] == "install pybench-campaign[tensorrt]"  # without it no GPU can be asked for
    assert "install uv" in (findings["quantiser: modelopt"].hint or "")


def test_doctor_knows_every_runtime_and_what_onnxruntime_was_built_with(replies: dict[str, Any]) -> None:
    findings = {finding.what: finding for finding in machine.diagnose(replies)}
    for what, hint in (("torch-compile", "C++ compiler"), ("torch-tensorrt", "same version as torch")):
        assert findings[what].status == "no"
        assert hint in (findings[what].hint or "")
    facts = {
        "compiler": {"available": True, "path": "/usr/bin/g++"},
        "torch_tensorrt": {"available": True, "version": "2.14.0"},
        "onnxruntime": {**ALL_PROVIDERS, "version": "1.31.1"},
    }
    findings = {finding.what: finding for finding in machine.diagnose({**replies, **facts})}
    assert findings["torch-compile"].detail == "builds with /usr/bin/g++"
    assert findings["torch-tensorrt"].detail == "torch-tensorrt 2.14.0"
    assert findings["ONNX models on ONNX Runtime"].detail == "onnxruntime 1.31.1, providers cpu, cuda, tensorrt"


def test_doctor_finds_no_gpu_for_engines_without_a_driver(replies: dict[str, Any]) -> None:
    cuda_python = {"available": True, "version": "13.5.0"}
    findings = {finding.what: finding for finding in machine.diagnose({**replies, "cuda_python": cuda_python})}
    assert "install its driver" in (findings["engines on a GPU"].hint or "")


def test_doctor_names_the_version_and_the_gpus_that_engines_run_on(replies: dict[str, Any]) -> None:
    facts = {
        "tensorrt": {"available": True, "version": "11.4.0.106"},
        "cuda_python": {"available": True, "version": "13.5.0"},
        "cuda": {"available": True, "devices": [GPU]},
        "modelopt": {"available": True, "how": "/usr/bin/uv makes its environment at first use"},
    }
    findings = {finding.what: finding for finding in machine.diagnose({**replies, **facts})}
    assert [findings[name].status for name in ENGINES] == ["yes", "yes", "yes"]
    assert [findings[name].detail for name in ENGINES] == [
        "TensorRT 11.4.0.106", "cuda-bindings 13.5.0", "a GPU GPU-1, compute capability 9.0",
    ]  # fmt: skip
    assert findings["quantiser: modelopt"].detail.startswith("/usr/bin/uv")


def test_a_fact_that_nobody_can_tell_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="no fact of a machine 'torhc'"):
        machine.ask(["machine", "torhc"])


def test_what_compares_outputs_of_an_artefact_has_to_be_installed_before_it_is_made() -> None:
    facts = {**SERVER, "onnxruntime": BARE["onnxruntime"]}
    refusal = Machine(facts).unsupported(ENGINE.with_factors(model="own.onnx"))
    assert refusal is not None
    assert refusal.reason == Reason(Cause.NO_PACKAGE, refusal.message, ("onnxruntime",))


def test_cpus_that_are_not_there_are_told_before_a_run() -> None:
    here = Machine({**LAPTOP, "machine": {**HERE, "cpus": "0-3,8"}})
    assert here.unsupported(RESNET.with_factors(affinity="1-2,8")) is None
    refused = here.unsupported(RESNET.with_factors(affinity="0-5"))
    assert refused is not None
    assert refused.reason.stored_code == "no_such_cpu"
    assert "affinity 0-5: this process may use the CPUs 0-3,8" in str(refused)


@pytest.mark.parametrize(
    ("device", "sensors", "why"),
    [
        ("cpu", {}, "no RAPL"),
        ("cpu", {"cpu_energy": {"available": True}}, None),
        ("cpu", {"node_energy": {"available": True}}, None),
        ("cpu", {"gpu": {"available": True, "devices": [GPU]}}, "no RAPL"),
        ("cuda", {"cpu_energy": {"available": True}}, "NVML finds no GPU"),
        ("cuda", {"gpu": {"available": True, "devices": [GPU]}}, None),
        ("cuda", {"power_rails": {"available": True}}, None),
    ],
)
def test_energy_is_measured_by_the_sensor_of_what_the_case_runs_on(
    device: str, sensors: dict[str, Any], why: str | None
) -> None:
    here = Machine({**SERVER, **NO_SENSORS, **sensors})
    assert here.with_sensors() == here, "nothing is left to ask for"
    case = Case(workload="infer", model="resnet50", runtime="torch", device=device)
    assert here.why_no_energy(case) == why
