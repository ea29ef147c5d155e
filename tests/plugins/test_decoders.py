# SPDX-License-Identifier: Apache-2.0
"""A torch decoder of a package outside pybench: it generates in torch and in onnxruntime what its forward pass says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from pybench.catalogue.code import named_code
from pybench.catalogue.models import Model
from pybench.dataset import load
from pybench.models.export import export_decoder
from pybench.runtimes import torch as torch_runtime
from pybench.runtimes.generation import GenerationTask
from pybench.runtimes.onnxruntime import open_session
from pybench.runtimes.onnxruntime_generation import OnnxRuntimeGeneration
from pybench.runtimes.session import module_spec
from pybench.runtimes.torch_generation import FixedStepGeneration, TorchGeneration
from tests.plugins.installation import PACKAGES, Installation
from tests.support.generation import check_logits

PROMPT = np.random.default_rng(5).integers(0, 1000, (3, 6))
TASK = GenerationTask(PROMPT, 8, 0.0, 1)
PLAN = """\
schema_version: 1
name: own
seed: 1
repetitions: 1
defaults: {warmup_iterations: 1, iterations: 3, energy_window_s: 0, idle_window_s: 0, device: cpu, threads: 1}
matrix:
  - {workload: generate, model: averaging, runtime: [torch, onnxruntime, native], seq_len: 8, new_tokens: 4}
"""


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.syspath_prepend(str(PACKAGES / "decoders"))
    rows: tuple[Model, ...] = named_code("acme_decoders.rows:ROWS")
    return rows[0]


@pytest.fixture
def module(row: Model) -> torch.nn.Module:
    torch.manual_seed(0)
    built: torch.nn.Module = named_code(row.build)(row.outputs)
    return built.eval()


@pytest.mark.parametrize("generation", [TorchGeneration, FixedStepGeneration])
def test_it_generates_in_torch_what_its_forward_pass_says(
    generation: type[TorchGeneration], module: torch.nn.Module
) -> None:
    kind = torch_runtime.set_up("fp32", threads=1, device="cpu")
    spec = module_spec("ids", (None, None), takes_ids=True)
    session = torch_runtime.open_session(module, spec, precision="fp32", kind=kind)
    check_logits(generation(session, TASK), module, PROMPT)


def test_it_generates_in_onnxruntime_what_its_forward_pass_says(
    row: Model, module: torch.nn.Module, tmp_path: Path
) -> None:
    path = tmp_path / "averaging.onnx"
    export_decoder(module, row.input, row.longest_sequence, path, {})
    session = open_session(path, precision="fp32", threads=1, device="cpu")
    check_logits(OnnxRuntimeGeneration(session, TASK), module, PROMPT)


@pytest.mark.process
@pytest.mark.slow
def test_a_plan_generates_with_it_where_the_runtime_keeps_a_cache(tmp_path: Path) -> None:
    installed = Installation.create(tmp_path / "venv")
    installed.install("decoders")
    (tmp_path / "plan.yaml").write_text(PLAN)
    ended = installed.pybench("run", "plan.yaml", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    dataset = load(tmp_path / "results/own")
    rows = dataset.runs.select("case_id", "outcome").iter_rows()
    outcomes = {dataset.cases[case_id].runtime: outcome for case_id, outcome in rows}
    assert outcomes == {"torch": "ok", "onnxruntime": "ok", "native": "unsupported"}
    shown = installed.pybench("analyse", "results/own", "--json", cwd=tmp_path)
    tpot = [case["metrics"].get("tpot_ms") for case in json.loads(shown.stdout)["cases"]]
    assert [found is not None for found in tpot] == [True, True, False]
