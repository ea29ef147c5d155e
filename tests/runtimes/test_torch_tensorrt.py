# SPDX-License-Identifier: Apache-2.0
"""What torch-tensorrt is told, by a stand-in: the package needs a GPU (`tests/gpu/test_runtimes_agree.py` runs it).

This holds the arguments and the order of the calls, by the documented signatures of 2.11 to 2.14, and proves nothing
about what the package makes of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pybench.case import Case
from pybench.errors import UnsupportedError
from pybench.kernels.launches import KernelLaunches
from pybench.runtimes import torch_tensorrt
from pybench.runtimes.session import module_spec
from pybench.runtimes.torch_tensorrt import TorchTensorRtSession, arguments_of

SPEC = module_spec("values", (None, 4), takes_ids=False)
VALUES = np.ones((2, 4), np.float32)


@pytest.mark.parametrize(("version", "is_told"), [("2.11.0+cu130", True), ("2.13.0", True), ("2.14.0", False)])
def test_engines_are_strongly_typed_in_every_release(version: str, is_told: bool) -> None:
    """2.14 has lost the switch, with the only other way to build."""
    arguments = arguments_of(version, "fp16", Path("here"))
    assert arguments.get("use_explicit_typing", None) is (True if is_told else None)
    assert "enabled_precisions" not in arguments


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16"])
def test_tf32_is_off_but_for_tf32_and_nothing_is_cached(precision: str) -> None:
    arguments = arguments_of("2.14.0", precision, Path("here"))
    assert arguments["disable_tf32"] is (precision != "tf32")
    assert not arguments["cache_built_engines"]
    assert not arguments["reuse_cached_engines"]
    assert arguments["timing_cache_path"].startswith("here/")
    assert arguments["require_full_compilation"]


@pytest.mark.parametrize("launch", ["graph", "enqueue"])
def test_a_module_is_exported_and_compiled_once_a_shape(launch: str) -> None:
    calls: list[Any] = []

    def compile_program(program: Any, *, arg_inputs: list[Any], **arguments: Any) -> Any:
        calls.append((tuple(arg_inputs[0].shape), arguments["disable_tf32"]))
        return program.module()

    library = SimpleNamespace(
        __version__="2.14.0",
        runtime=SimpleNamespace(set_cudagraphs_mode=calls.append),
        dynamo=SimpleNamespace(compile=compile_program),
    )
    session = TorchTensorRtSession(nn.Linear(4, 3).eval(), SPEC, "fp32", "cpu", launch, library)
    iterate = session.bind({"values": VALUES}, transfers=False)
    iterate()
    iterate()
    with torch.inference_mode():
        expected = session.module(torch.from_numpy(VALUES)).numpy()
    assert np.allclose(session.run({"values": VALUES})[0], expected)
    session.bind_feed()({"values": VALUES[:1]})()
    assert calls == [launch == "graph", ((2, 4), True), ((1, 4), True)]
    assert session.compile_s is not None


def test_the_kernels_asked_for_are_those_of_the_shape_that_ran_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder is replaced by one that calls: it records on a GPU only."""
    ran: list[tuple[int, ...]] = []

    def compile_program(program: Any, **_: Any) -> Any:
        def compiled(held: torch.Tensor) -> torch.Tensor:
            ran.append(tuple(held.shape))
            return program.module()(held)

        return compiled

    library = SimpleNamespace(
        __version__="2.14.0",
        runtime=SimpleNamespace(set_cudagraphs_mode=lambda _: None),
        dynamo=SimpleNamespace(compile=compile_program),
    )
    session = TorchTensorRtSession(nn.Linear(4, 3).eval(), SPEC, "fp32", "cpu", "enqueue", library)
    recorded = KernelLaunches((("recorded", 1.0),), 1.0)
    monkeypatch.setattr(torch_tensorrt, "launched_by", lambda call: recorded if call() is None else None)
    session.launched()
    assert ran == []  # nothing was on the device yet
    session.bind_feed()({"values": VALUES[:1]})()
    session.run({"values": VALUES})
    ran.clear()
    assert session.kernels() == recorded.kernels
    assert ran == [(2, 4)]


@pytest.mark.parametrize(
    "error", ["OSError('libnvinfer.so.10')", "AttributeError('FP4')", "RuntimeError('TensorRT 10.6')"]
)
def test_a_package_for_another_tensorrt_is_unsupported_whatever_it_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    (tmp_path / "torch_tensorrt.py").write_text(f"raise {error}\n")
    monkeypatch.delitem(sys.modules, "torch_tensorrt", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnsupportedError, match=error.partition("(")[0]) as caught:
        torch_tensorrt.open_session(nn.Linear(4, 3), SPEC, precision="fp32", kind="cuda", launch="graph")
    assert caught.value.reason.stored_code == "no_torch_tensorrt"


def test_without_the_package_or_a_gpu_it_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_tensorrt", None)
    case = Case(workload="infer", model="mlp", runtime="torch-tensorrt", device="cpu")
    with pytest.raises(UnsupportedError) as of_cpu:
        torch_tensorrt.open_case(lambda: pytest.fail("the module was built"), SPEC, case, 1)
    with pytest.raises(UnsupportedError) as of_gpu:
        torch_tensorrt.open_session(nn.Linear(4, 3), SPEC, precision="fp32", kind="cuda", launch="graph")
    for caught, code in ((of_cpu, "no_gpu"), (of_gpu, "no_torch_tensorrt")):
        assert caught.value.reason.stored_code == code
        assert caught.value.hint is not None
