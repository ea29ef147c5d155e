# SPDX-License-Identifier: Apache-2.0
"""torch.compile on the CPU, with the machine's own C++ compiler. How it agrees with others: tests/workloads."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from pybench.models.tinylm import Size, TinyLm
from pybench.runtimes import torch as eager
from pybench.runtimes import torch_compile
from pybench.runtimes.generation import GenerationTask
from pybench.runtimes.session import module_spec
from pybench.runtimes.torch_compile import TorchCompileSession
from tests.support.generation import check_logits

pytestmark = pytest.mark.slow  # the headers that Inductor's code includes are compiled once a session: 10 s

PIXELS = np.random.default_rng(0).random((3, 4), np.float32)


class Doubling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4) * 2)

    def forward(self, values: Tensor) -> Tensor:
        return torch.relu(values @ self.weight) + 1


class Deciding(Doubling):
    """Not one graph: what it does depends on the values."""

    def forward(self, values: Tensor) -> Tensor:
        return super().forward(values) if values.sum().item() > 0 else values


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    with patch.dict(os.environ):
        yield


def open_cpu(module: nn.Module, mode: str = "default") -> TorchCompileSession:
    kind = eager.set_up("fp32", threads=1, device="cpu")
    spec = module_spec("values", (None, 4), takes_ids=False)
    return torch_compile.open_session(module, spec, precision="fp32", kind=kind, mode=mode, threads=1)


def test_one_more_pass_runs_what_was_compiled_for_the_iterations() -> None:
    session = open_cpu(Doubling())
    session.bind({"values": PIXELS}, transfers=False)()
    compiled = counters["stats"]["unique_graphs"]
    session.run({"values": PIXELS})
    assert counters["stats"]["unique_graphs"] == compiled > 0


def test_inductors_advice_to_allow_tf32_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives it for FP32 on a GPU, as a warning up to some release; warnings are errors here."""

    def advise(*_: object, **__: object) -> object:
        def forward(values: Tensor) -> Tensor:
            warnings.warn("TensorFloat32 tensor cores for float32 matrix multiplication available", stacklevel=1)
            return values

        return forward

    monkeypatch.setattr(torch, "compile", advise)
    open_cpu(Doubling()).bind({"values": PIXELS}, transfers=False)


def test_compiling_is_counted_apart_and_before_the_first_timed_call() -> None:
    session = open_cpu(Doubling())
    assert session.compile_s is None  # nothing is known of shapes yet
    iterate = session.bind({"values": PIXELS}, transfers=False)
    compiled_s = session.compile_s
    assert compiled_s is not None
    assert len(session.labels["first_calls_s"]) == torch_compile.CALLS_BEFORE_TIMING
    assert compiled_s > 100 * session.labels["first_calls_s"][-1]
    iterate()
    assert session.compile_s == compiled_s
    assert np.allclose(session.run({"values": PIXELS})[0], np.maximum(2 * PIXELS, 0) + 1)
    session.bind_feed()({"values": PIXELS[:2]})()  # another shape is compiled for itself, and counted
    assert session.compile_s > compiled_s


def test_a_second_session_compiles_from_nothing_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Into folders of its own, whatever the user's cache holds."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        session = open_cpu(Doubling())
        session.run({"values": PIXELS})
        assert session.labels["compile_cache_hits"] == 0
        assert torch._dynamo.utils.counters["inductor"]["fxgraph_cache_miss"] == 1
    assert not list(tmp_path.iterdir())
    folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    assert folder.exists()
    del session
    torch.compiler.reset()
    assert not folder.parent.exists()


def test_no_compiler_process_is_left_beside_the_windows() -> None:
    session = open_cpu(Doubling())
    session.bind({"values": PIXELS}, transfers=False)
    tasks = Path("/proc/self/task").iterdir()
    children = [pid for task in tasks for pid in (task / "children").read_text().split()]
    assert not [pid for pid in children if "compile_worker" in Path(f"/proc/{pid}/cmdline").read_text()]


def test_a_model_that_is_not_one_graph_is_unsupported() -> None:
    session = open_cpu(Deciding())
    with pytest.raises(UnsupportedError) as caught:
        session.run({"values": PIXELS})
    assert caught.value.reason.stored_code == "no_full_graph"


@pytest.mark.parametrize("mode", RUNTIMES["torch-compile"].graph_modes)
def test_a_mode_with_cuda_graphs_is_refused_on_a_cpu(mode: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        open_cpu(Doubling(), mode)
    assert caught.value.reason.stored_code == "no_gpu"


def test_a_machine_without_a_compiler_is_unsupported_and_says_so() -> None:
    code = f"""
import sys
sys.path.append({str(Path(__file__).parents[2])!r})
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from tests.runtimes.test_torch_compile import Doubling, PIXELS, open_cpu
try:
    open_cpu(Doubling()).run({{"values": PIXELS}})
except UnsupportedError as error:
    print(error.reason.stored_code)
"""
    environment = {**os.environ, "CXX": "/nowhere/g++"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "no_compiler", done.stderr


def test_compiled_steps_of_generation_give_what_the_forward_pass_says() -> None:
    torch.manual_seed(0)
    module = TinyLm(Size(16, 1, 1), 61, positions=16).eval()
    session = open_cpu(module)
    prompt = np.random.default_rng(3).integers(0, 61, (2, 6))
    generation = torch_compile.TorchCompileGeneration(session, GenerationTask(prompt, 5, 0.0, 1))
    spent_s = session.compile_s
    check_logits(generation, module, prompt)
    assert session.compile_s == spent_s is not None
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2  # the prompt's, and one for every position
