# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import DeviceMemoryError, InputError, UnsupportedError
from pybench.runtimes import onnxruntime
from pybench.runtimes.onnxruntime import OnnxRuntimeSession
from tests.measure.simulated_cuda import SimulatedDriver
from tests.support.making import write_classifier
from tests.support.onnx_files import write

PIXELS = np.zeros((1, 1, 8, 8), np.float32)
Fails = Callable[[Exception], None]
EVERY_PROVIDER = [backend.called for backend in RUNTIMES["onnxruntime"].backends]


def open_cpu(path: Path, precision: str = "fp32") -> OnnxRuntimeSession:
    return onnxruntime.open_session(path, precision=precision, threads=1, device="cpu")


def test_a_users_file_states_its_inputs_and_runs(tmp_path: Path) -> None:
    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))
    (spec,) = session.inputs
    assert (spec.name, spec.dtype, spec.shape) == ("pictures", np.float32, (None, 1, 8, 8))
    pixels = np.ones((4, 1, 8, 8), np.float32)
    weight = np.linspace(-1, 1, 192, dtype=np.float32).reshape(-1, 3)
    assert np.allclose(session.run({"pictures": pixels})[0], pixels.reshape(4, -1) @ weight, atol=1e-5)
    assert session.device == "cpu"
    assert session.device_uuid is None
    assert session.labels["providers"] == ["CPUExecutionProvider"]
    assert session.labels["partitions"] == {"CPUExecutionProvider": 2}
    assert session.compile_s is not None
    assert session.compile_s > 0
    assert session.model_bytes == (tmp_path / "mine.onnx").stat().st_size


def test_a_bound_iteration_reads_the_arrays_where_they_lie(tmp_path: Path) -> None:
    """Zero copy: the loop sees what the array holds when it runs."""
    import onnxruntime as ort

    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))
    pixels = np.zeros((2, 1, 8, 8), np.float32)
    assert ort.OrtValue.ortvalue_from_numpy(pixels, "cpu", 0).data_ptr() == pixels.ctypes.data
    iterate = session.bind({"pictures": pixels}, transfers=False)
    for _ in range(3):
        iterate()


def test_transfers_are_refused_on_a_cpu(tmp_path: Path) -> None:
    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))
    with pytest.raises(UnsupportedError) as caught:
        session.bind({"pictures": np.zeros((1, 1, 8, 8), np.float32)}, transfers=True)
    assert caught.value.reason.stored_code == "no_gpu"


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16", "amp-bf16"])
def test_other_precisions_are_refused_by_name(tmp_path: Path, precision: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        open_cpu(write_classifier(tmp_path / "mine.onnx"), precision)
    assert caught.value.reason.stored_code == f"no_{precision}_on_cpu"


def test_a_gpu_that_this_build_cannot_use_is_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime.onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    path = write_classifier(tmp_path / "mine.onnx")
    for device in ("cuda", "GPU-00000000-0000-0000-0000-000000000000"):
        with pytest.raises(UnsupportedError) as caught:
            onnxruntime.open_session(path, precision="fp32", threads=1, device=device)
        assert caught.value.reason.stored_code == "no_gpu"
    assert onnxruntime.open_session(path, precision="fp32", threads=1, device="auto").device == "cpu"


@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_a_provider_that_this_build_has_not_is_never_replaced(tmp_path: Path, provider: str) -> None:
    if onnxruntime.providers.backend(provider).called in onnxruntime.onnxruntime.get_available_providers():
        pytest.skip("this build has it")
    path = write_classifier(tmp_path / "mine.onnx")
    with pytest.raises(UnsupportedError) as caught:
        onnxruntime.open_session(path, precision="fp32", threads=1, device="auto", provider=provider)
    assert caught.value.reason.stored_code == f"no_{provider}_provider"


@pytest.mark.parametrize(("provider", "device"), [("cpu", "cuda"), ("cuda", "cpu"), ("tensorrt", "cpu")])
def test_a_provider_and_a_device_that_contradict_are_refused(tmp_path: Path, provider: str, device: str) -> None:
    path = write_classifier(tmp_path / "mine.onnx")
    with pytest.raises(UnsupportedError) as caught:
        onnxruntime.open_session(path, precision="fp32", threads=1, device=device, provider=provider)
    assert caught.value.reason.stored_code == "provider_and_device"


def test_a_graph_that_cannot_be_captured_is_enqueued_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CUDA provider's refusal, in its words. It does not run here: a real CPU session stands for what it opens."""
    path = write_classifier(tmp_path / "mine.onnx")
    real, asked = onnxruntime.onnxruntime.InferenceSession, []

    def start(file: Path, options: object, providers: list[tuple[str, dict[str, str]]], **_: int) -> object:
        asked.append(providers[0][1]["enable_cuda_graph"])
        if asked[-1] == "1":
            raise onnxruntime.errors.Fail("This session cannot use the graph capture feature as requested by the user")
        return real(file, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime.onnxruntime, "InferenceSession", start)
    started = onnxruntime._start(path, "cuda", "fp32", 1, graph=True)
    assert asked == ["1", "0"]
    assert not started.graph
    assert started.why_not is not None
    assert started.why_not.startswith("This session cannot use the graph capture")  # and nothing of a malformed file


@pytest.fixture
def a_gpu_build(monkeypatch: pytest.MonkeyPatch, simulated: SimulatedDriver) -> Fails:
    """A build with every provider on a machine whose driver shows a GPU. Called: opening a session raises that."""
    monkeypatch.setenv(onnxruntime.providers.TF32_OVERRIDE, "to be undone")
    monkeypatch.setattr(onnxruntime, "_load_libraries", lambda provider: None)
    names = EVERY_PROVIDER
    monkeypatch.setattr(onnxruntime.onnxruntime, "get_available_providers", lambda: names)

    def fail(error: Exception) -> None:
        def start(*_: object, **options: Any) -> object:
            assert options["enable_fallback"] == 0
            raise error

        monkeypatch.setattr(onnxruntime.onnxruntime, "InferenceSession", start)

    return fail


def open_gpu(path: Path, provider: str) -> OnnxRuntimeSession:
    return onnxruntime.open_session(path, precision="fp32", threads=1, device="cuda", provider=provider)


@pytest.mark.process
def test_a_provider_that_does_not_start_is_refused_and_the_cpu_does_not_take_over(
    tmp_path: Path, a_gpu_build: Fails
) -> None:
    """The CPU's build of onnxruntime, asked for CUDA's provider: it opens the file on the CPU, with a warning."""
    path = write_classifier(tmp_path / "mine.onnx")
    with (
        pytest.warns(UserWarning, match="is not in available provider names"),
        pytest.raises(UnsupportedError) as caught,
    ):
        open_gpu(path, "cuda")
    assert caught.value.reason.stored_code == "no_cuda_provider"


def test_tensorrts_libraries_that_are_not_there_are_unsupported(tmp_path: Path, a_gpu_build: Fails) -> None:
    """In the words of onnxruntime 1.31's provider, which says it before there is a session."""
    a_gpu_build(RuntimeError("Please install TensorRT libraries as mentioned in the GPU requirements page"))
    with pytest.raises(UnsupportedError) as caught:
        open_gpu(write_classifier(tmp_path / "mine.onnx"), "tensorrt")
    assert caught.value.reason.stored_code == "no_tensorrt_provider"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(
            'Failed to parse provider option "device_id": CUDA failure 100: no CUDA-capable device is detected'
        ),
        onnxruntime.errors.Fail("[ONNXRuntimeError] : 1 : FAIL : CUDA failure 700: an illegal memory access"),
        onnxruntime.errors.Fail("[ONNXRuntimeError] : 1 : FAIL : CUDNN_FE failure 11: CUDNN_BACKEND_API_FAILED"),
        onnxruntime.errors.EPFail(
            "[ONNXRuntimeError] : 11 : EP_FAIL : TensorRT EP failed to create engine from network"
        ),
    ],
    ids=lambda error: str(error)[-40:],
)
def test_a_gpu_that_fails_is_not_a_users_malformed_file(tmp_path: Path, a_gpu_build: Fails, error: Exception) -> None:
    """An InputError would end the campaign; this is a crash of the one run."""
    a_gpu_build(error)
    with pytest.raises(type(error)) as caught:
        open_gpu(write_classifier(tmp_path / "mine.onnx"), "cuda")
    assert caught.value is error


def test_a_node_that_a_provider_has_no_kernel_for_is_named(tmp_path: Path, a_gpu_build: Fails) -> None:
    """In the words of onnxruntime 1.31, of a BF16 MaxPool between convolutions that CUDA's provider took."""
    a_gpu_build(
        onnxruntime.errors.Fail(
            "[ONNXRuntimeError] : 1 : FAIL : Exception during initialization: transformer_memcpy.cc:253 "
            "!node_provider_type.empty() was false. Provider type for MaxPool node with name 'maxpool/MaxPool' is not "
            "set."
        )
    )
    with pytest.raises(UnsupportedError, match=r"no kernel for maxpool/MaxPool \(MaxPool\)") as caught:
        open_gpu(write_classifier(tmp_path / "mine.onnx"), "cuda")
    assert caught.value.reason.stored_code == "no_kernel"


def test_memory_that_ran_out_while_a_provider_starts_is_told(tmp_path: Path, a_gpu_build: Fails) -> None:
    a_gpu_build(RuntimeError("CUDA failure 2: out of memory ; GPU=0 ; expr=cudaStreamCreateWithFlags(&stream_)"))
    with pytest.raises(DeviceMemoryError):
        open_gpu(write_classifier(tmp_path / "mine.onnx"), "cuda")


def test_a_gpu_that_fails_in_a_run_is_not_replaced_by_the_cpu_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime's Python layer goes on with the CPU provider after EP_FAIL, and prints it."""
    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))

    class Failing:
        def run(self, *_: object) -> object:
            raise onnxruntime.errors.EPFail("[ONNXRuntimeError] : 11 : EP_FAIL : CUDA graph launch error")

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    real = session._session._sess
    monkeypatch.setattr(session._session, "_sess", Failing())
    with pytest.raises(onnxruntime.errors.EPFail):
        session.run({"pictures": PIXELS})


def test_a_gpu_that_fails_in_a_run_is_not_the_inputs_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))
    session.kind = "cuda"  # what a session on a GPU does with an error of its graph
    failure = onnxruntime.errors.RuntimeException("Non-zero status code returned while running Conv node: CUDNN_FE")

    def fail(*_: object) -> object:
        raise failure

    monkeypatch.setattr(session, "_run", fail)
    with pytest.raises(onnxruntime.errors.RuntimeException) as caught:
        session.run({"pictures": PIXELS})
    assert caught.value is failure


@pytest.mark.parametrize("shown", [None, "0"])
def test_a_gpu_is_known_by_its_uuid_however_the_environment_names_it(
    tmp_path: Path, a_gpu_build: Fails, simulated: SimulatedDriver,
    monkeypatch: pytest.MonkeyPatch, shown: str | None,
) -> None:  # fmt: skip
    """Slurm shows GPUs by number; without a UUID the run's energy would not be measured. A CPU session stands in."""
    if shown is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    path = write_classifier(tmp_path / "mine.onnx")
    started = onnxruntime._start(path, "cpu", "fp32", 1, graph=False)
    monkeypatch.setattr(onnxruntime, "_start", lambda *_, **__: started)
    monkeypatch.setattr(started.session, "get_providers", lambda: EVERY_PROVIDER)
    monkeypatch.setattr(started.session, "get_provider_options", lambda: dict.fromkeys(EVERY_PROVIDER))
    session = open_gpu(path, "cuda")
    assert session.device == session.device_uuid == onnxruntime.measure.visible_gpus()[0]
    assert session.device.startswith("GPU-")


def test_a_file_that_is_not_onnx_is_named(tmp_path: Path) -> None:
    for content in (b"", b"certainly not a model", b"\x00" * 100):
        (tmp_path / "mine.onnx").write_bytes(content)
        with pytest.raises(InputError, match=r"mine\.onnx is not a runnable ONNX model"):
            open_cpu(tmp_path / "mine.onnx")


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx")
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match=r"mine\.onnx is not a runnable ONNX model"):
        open_cpu(path)


def test_inputs_that_the_model_refuses_are_an_input_error(tmp_path: Path) -> None:
    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))
    with pytest.raises(InputError, match="does not run on these inputs"):
        session.run({"pictures": np.zeros((1, 1, 9, 9), np.float32)})


def test_an_output_of_other_sizes_than_the_file_states_is_an_input_error(tmp_path: Path) -> None:
    path = write("output-of-another-batch", tmp_path)
    session = onnxruntime.open_session(path, precision="fp32", threads=1, device="cpu")
    session.bind({"x": np.ones((2, 12), np.float32)}, transfers=False)()
    with pytest.raises(InputError, match=r"states \[2, 3\] as the sizes of its output y, which is \[5, 3\]") as raised:
        session.bind({"x": np.ones((5, 12), np.float32)}, transfers=False)
    assert raised.value.hint == "set batch: 2, or export the model with the sizes of its outputs free"


def test_kernels_are_those_of_what_ran_last_or_was_fed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder is replaced by one that calls: what it is given has to run without what was lent for the feed."""
    monkeypatch.setattr(onnxruntime, "launched_by", lambda call: SimpleNamespace(kernels=call()))
    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))
    fed = PIXELS.copy()
    launch = session.bind_feed()
    launch({"pictures": fed})()
    expected = session._session.run(None, {"pictures": PIXELS})[0]
    fed[...] = np.nan
    launch({"pictures": fed})()
    assert np.array_equal(session.kernels()[0], expected)
    assert np.isnan(session.run({"pictures": fed})[0]).all()
    assert np.isnan(session.kernels()[0]).all()


def test_a_session_goes_when_it_is_let_go(tmp_path: Path) -> None:
    """It holds a GPU's memory, and what comes next may need it before Python looks for cycles."""
    session = open_cpu(write_classifier(tmp_path / "mine.onnx"))
    session.run({"pictures": PIXELS})
    session.bind({"pictures": PIXELS}, transfers=False)()
    session.run({"pictures": PIXELS})
    held = weakref.ref(session)
    gc.disable()
    try:
        del session
        assert held() is None
    finally:
        gc.enable()


def test_a_fixed_batch_must_be_the_cases(tmp_path: Path) -> None:
    session = open_cpu(write_classifier(tmp_path / "mine.onnx", batch=4))
    assert session.inputs[0].resolved(4, 0, "mine.onnx") == (4, 1, 8, 8)
    with pytest.raises(InputError, match="has 4 as its batch, the case 2") as caught:
        session.inputs[0].resolved(2, 0, "mine.onnx")
    assert caught.value.hint is not None
    assert "set batch: 4" in caught.value.hint
