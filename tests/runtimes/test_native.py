# SPDX-License-Identifier: Apache-2.0
"""The native process: its logits beside onnxruntime's and torch's, its windows, and every way in which it can fail.

Tolerance against torch: relative error (l2) of all logits, as in tests/workloads/test_runtimes_agree.py.
Against onnxruntime it is none: the same library computes the same file.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from pybench import measure
from pybench.case import Case
from pybench.catalogue.workloads import CORE, KERNELS
from pybench.errors import InputError, UnsupportedError
from pybench.measurement.model import open_model
from pybench.preprocess import find_tokenizer, resolve_corpus
from pybench.preprocess.go_rust import feed_options
from pybench.preprocess.program import VARIABLE
from pybench.runtimes import native
from pybench.runtimes.native import NativeReplayer, NativeSession
from pybench.runtimes.native_process import NativeOutputError, NativeProcessError
from tests.support.making import artefacts_of, request_of, run

pytestmark = pytest.mark.process  # the orchestrator

FP32_TOLERANCE = 1e-5
CASE = Case(
    workload="infer", model="tinylm-tiny", runtime="native", path="go_rust", device="cpu", batch=2, seq_len=16,
    threads=1, iterations=30, warmup_iterations=2, idle_window_s=0.0,
)  # fmt: skip
Opens = Callable[[Path], NativeSession]


@pytest.fixture
def opened() -> Iterator[Opens]:
    """Opens a file on the CPU; ends every process that is left."""
    sessions: list[NativeSession] = []

    def start(path: Path) -> NativeSession:
        sessions.append(native.open_session(path, precision="fp32", threads=1, device="cpu"))
        return sessions[-1]

    yield start
    for session in sessions:
        session.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_text(f"Document {number}: naïve 漢字, x = {number} ** 2.\n" * 3)
    return folder


def language_model() -> Path:
    return artefacts_of(CASE)["model"]


def write_model(path: Path, *operators: str) -> Path:
    """ids [N, T] cast to FP32, then one operator after another."""
    names = ["ids", *(f"value{number}" for number in range(len(operators))), "logits"]
    nodes = [helper.make_node("Cast", names[:1], names[1:2], to=TensorProto.FLOAT)]
    nodes += [
        helper.make_node(each, names[at : at + 1], names[at + 1 : at + 2]) for at, each in enumerate(operators, 1)
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", "T"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", "T"])
    graph = helper.make_graph(nodes, "graph", [ids], [logits])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def fed(session: NativeSession, folder: Path) -> NativeReplayer:
    corpus = resolve_corpus(str(folder))
    options = feed_options(find_tokenizer("tok32k"), corpus, 2, 16, 1, 4)
    return session.feed(options, [os.fsencode(path) for path in corpus.files])


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_logits_are_those_of_onnxruntime_bit_by_bit_and_of_torch_within_rounding(precision: str) -> None:
    ids = np.random.default_rng(3).integers(0, 32_000, (3, 24))
    logits = {}
    for runtime in ("native", "onnxruntime", "torch"):
        case = CASE.with_factors(runtime=runtime, precision="fp32" if runtime == "torch" else precision)
        session = open_model(request_of(case)).session
        logits[runtime] = session.run({session.inputs[0].name: ids})[0]
    assert logits["native"].shape == (3, 32_000)
    assert logits["native"].tobytes() == logits["onnxruntime"].tobytes()
    error = np.linalg.norm(logits["native"] - logits["torch"]) / np.linalg.norm(logits["torch"])
    assert error < FP32_TOLERANCE if precision == "fp32" else FP32_TOLERANCE < error < 1


def test_a_run_yields_what_onnxruntime_yields_and_reads_the_same_ids(corpus: Path) -> None:
    results = {
        runtime: run(CASE.with_factors(runtime=runtime), {"corpus": corpus}) for runtime in ("native", "onnxruntime")
    }
    found, other = results["native"], results["onnxruntime"]
    assert found.labels["ids_sha256"] == other.labels["ids_sha256"]
    assert found.labels["runtime_version"] == other.labels["runtime_version"]
    assert found.valid["precision"].value is True
    assert set(KERNELS) <= set(other.metrics)  # `native` tells no kernels, and Python calls no iteration of it
    assert set(found.metrics) == set(other.metrics) - {*KERNELS, *CORE}
    assert found.metrics["wait_share_ratio"].value < 1
    assert found.metrics["peak_host_bytes"].scope == "native process, since its start"
    assert found.metrics["peak_host_bytes"].value > 20e6
    times = found.tables["iterations"]
    assert len(times["host_ns"]) == 30
    assert np.all(times["host_ns"] > 0)
    assert np.all(times["gap_ns"] >= 0)
    window = found.windows["timing"]  # the same clock in both processes
    assert times["gap_ns"][0] > 0
    assert (times["gap_ns"] + times["host_ns"]).sum() < window["end_ns"] - window["begin_ns"]
    assert {"corpus_wrapped"} <= {caution.code.code for caution in found.cautions}


def test_tokenizing_can_feed_it_as_well(corpus: Path) -> None:
    result = run(CASE.with_factors(workload="tokenize"), {"corpus": corpus})
    assert result.metrics["text_mb_per_s"].value > 0
    assert result.labels["inputs"] == "fed to tinylm-tiny"


def test_a_window_has_its_iterations_its_length_or_its_arrivals(opened: Opens, corpus: Path, tmp_path: Path) -> None:
    replayer = fed(opened(write_model(tmp_path / "cast.onnx", "Neg")), corpus)
    assert len(replayer.replay(7)) == 7
    assert len(replayer.replay(0)) == 0
    long = replayer.replay(1, 0.05)
    assert len(long) > 100
    assert (long.end_ns[-1] - long.begin_ns[0]) * 1e-9 > 0.049  # it counts from a moment before the first begin
    paced = replayer.replay(20, arrivals=measure.fixed(400.0))
    assert paced.due_ns is not None
    np.testing.assert_allclose(np.diff(paced.due_ns), 2_500_000, atol=1)
    assert np.all(paced.begin_ns >= paced.due_ns)


def test_iterations_take_the_batches_of_the_path_in_order_and_each_once(
    opened: Opens, corpus: Path, tmp_path: Path
) -> None:
    """Text is counted as batches are taken: after 12 iterations, that of 13 batches."""
    from pybench.preprocess import open_batches

    session = opened(write_model(tmp_path / "cast.onnx", "Neg"))
    fed(session, corpus).replay(12)
    stream = open_batches("rust", find_tokenizer("tok32k"), resolve_corpus(str(corpus)), 2, 16, epochs=0)
    with stream:
        first = []
        for _ in range(13):
            slot = stream.take()
            first.append(slot.ids.astype("<u4").tobytes())
            stream.give_back(slot.index)
        assert session.text_bytes == stream.text_bytes
    assert session.first_ids() == b"".join(first[:4])


def test_nan_is_an_error_that_names_the_output(opened: Opens, corpus: Path, tmp_path: Path) -> None:
    replayer = fed(opened(write_model(tmp_path / "broken.onnx", "Neg", "Sqrt")), corpus)
    with pytest.raises(
        NativeOutputError, match=r"broken\.onnx: \d+ of 32 values of the output logits are NaN"
    ) as caught:
        replayer.replay(3)
    assert caught.value.hint is not None


def test_a_process_that_is_killed_in_a_window_is_told_with_its_signal(
    opened: Opens, corpus: Path, tmp_path: Path
) -> None:
    session = opened(write_model(tmp_path / "cast.onnx", "Neg"))
    replayer = fed(session, corpus)
    threading.Timer(0.2, os.kill, (session._process.pid, signal.SIGKILL)).start()
    with pytest.raises(NativeProcessError, match="killed by SIGKILL"):
        replayer.replay(1, 60.0)


def test_sigterm_ends_a_process_that_waits_for_a_question(opened: Opens, tmp_path: Path) -> None:
    session = opened(write_model(tmp_path / "cast.onnx", "Neg"))
    os.kill(session._process.pid, signal.SIGTERM)
    assert session._process._process.wait(10) == 1
    for _ in range(2):  # told each time
        with pytest.raises(NativeProcessError, match=r"(?s)exit code 1.*stopped by SIGTERM"):
            session.first_ids()


def test_sigterm_ends_a_window_and_then_the_process(opened: Opens, corpus: Path, tmp_path: Path) -> None:
    session = opened(write_model(tmp_path / "cast.onnx", "Neg"))
    replayer = fed(session, corpus)
    threading.Timer(0.2, os.kill, (session._process.pid, signal.SIGTERM)).start()
    with pytest.raises(NativeProcessError, match="stopped by SIGTERM"):
        replayer.replay(1, 60.0)
    assert session._process._process.wait(10) == 1


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\necho last words >&2; exit 7\n", "(?s)exit code 7.*last words"),
        ("#!/bin/sh\nkill -SEGV $$\n", "killed by SIGSEGV"),
    ],
)
def test_a_program_that_dies_at_once_is_explained(
    opened: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    program = tmp_path / "impostor"
    program.write_text(script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(VARIABLE, str(program))
    with pytest.raises(NativeProcessError, match=message):
        opened(write_model(tmp_path / "cast.onnx", "Neg"))


def test_closing_leaves_no_process_and_no_descriptor(corpus: Path, tmp_path: Path) -> None:
    path = write_model(tmp_path / "cast.onnx", "Neg")
    before = os.listdir("/proc/self/fd")
    session = native.open_session(path, precision="fp32", threads=1, device="cpu")
    fed(session, corpus).replay(2)
    pid = session._process.pid
    session.close()
    assert not Path(f"/proc/{pid}").exists()
    assert os.listdir("/proc/self/fd") == before


def test_it_ends_with_the_worker(tmp_path: Path) -> None:
    """Whatever kills the worker, a time limit included: the kernel takes the native process with it."""
    import subprocess

    path = write_model(tmp_path / "cast.onnx", "Neg")
    code = (
        "import sys, pathlib, time; from pybench.runtimes import native;"
        f"session = native.open_session(pathlib.Path({str(path)!r}), precision='fp32', threads=1, device='cpu');"
        "print(session._process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        os.kill(pid, signal.SIGSTOP)  # it hangs, and reads no end of a socket
        worker.kill()
    deadline_s = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def test_a_bad_file_is_refused_as_onnxruntime_refuses_it(opened: Opens, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match=r"bad\.onnx is not a runnable ONNX model"):
        opened(tmp_path / "bad.onnx")
    with pytest.raises(UnsupportedError, match="NoSuchThing") as caught:
        opened(write_model(tmp_path / "unknown.onnx", "NoSuchThing"))
    assert caught.value.reason.stored_code == "unknown_operator"


def test_a_corpus_that_is_no_text_is_an_input_error(opened: Opens, corpus: Path, tmp_path: Path) -> None:
    (corpus / "0.txt").write_bytes(b"\xff" * 400)
    with pytest.raises(InputError, match=r"0\.txt is not UTF-8: byte 0"):
        fed(opened(write_model(tmp_path / "cast.onnx", "Neg")), corpus).replay(1)


def test_a_model_of_other_inputs_is_not_fed(opened: Opens, corpus: Path) -> None:
    images = artefacts_of(Case(workload="infer", model="mlp", runtime="onnxruntime"))["model"]
    with pytest.raises(InputError, match="other inputs than int64 ids"):
        fed(opened(images), corpus)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"path": "none"}, "no_path_none_in_native"),
        ({"path": "rust"}, "no_path_rust_in_native"),
        ({"model": "mlp", "path": "none"}, "no_text_for_native"),
        ({"precision": "bf16"}, "no_bf16_on_cpu"),
        ({"device": "cuda"}, "no_gpu"),
        ({"device": "auto", "provider": "cuda"}, "no_cuda_provider"),
        ({"device": "auto", "provider": "tensorrt"}, "no_tensorrt_provider"),
    ],
)
def test_what_it_does_not_run_is_unsupported_by_name(changes: dict[str, str], code: str) -> None:
    case = CASE.with_factors(**changes)
    with pytest.raises(UnsupportedError) as caught:
        native.open_case(Path("model.onnx"), None, case, 1)
    assert caught.value.reason.stored_code == code
    assert caught.value.hint


def test_without_the_wheels_library_or_the_program_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = SimpleNamespace(origin=str(tmp_path / "onnxruntime" / "__init__.py"))
    with monkeypatch.context() as patched:
        patched.setattr(native.importlib.util, "find_spec", lambda name: package)
        with pytest.raises(UnsupportedError, match=r"there is no libonnxruntime\.so in") as caught:
            native.open_session(language_model(), precision="fp32", threads=1, device="cpu")
    assert caught.value.reason.stored_code == "no_onnxruntime_library"
    assert "wheel" in str(caught.value.hint)
    monkeypatch.setitem(sys.modules, "pybench_orchestrator", None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UnsupportedError) as caught:
        native.open_session(language_model(), precision="fp32", threads=1, device="cpu")
    assert caught.value.reason.stored_code == "orchestrator_missing"


def test_a_library_that_is_not_onnxruntime_is_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opens
) -> None:
    import pybench_tokenizer

    monkeypatch.setattr(native, "find_library", lambda: Path(pybench_tokenizer.object_path()))
    with pytest.raises(UnsupportedError, match="is not ONNX Runtime") as caught:
        opened(write_model(tmp_path / "cast.onnx", "Neg"))
    assert caught.value.reason.stored_code == "no_onnxruntime_library"


def test_torch_is_not_loaded_by_a_native_worker() -> None:
    """The process of a run imports only what its own case needs."""
    import subprocess

    code = "import sys, pybench.runtimes.native; print(sorted({'torch', 'onnxruntime'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
    assert torch.__version__  # it is installed here, so that could have failed
