# SPDX-License-Identifier: Apache-2.0
"""The plans that ship with pybench: each is without fault and asks for what its comments say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest

from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case.pairing import pairs
from pybench.case.yields import metrics_of
from pybench.catalogue.papers import PAPERS
from pybench.cli import main
from pybench.plan import load_plan, resolve
from tests.plans.ready import PLANS, ROOT, named
from tests.support.onnx_models import product


@pytest.mark.parametrize("path", PLANS, ids=named)
def test_every_plan_is_without_fault_and_named_after_its_file(path: Path) -> None:
    plan = load_plan(path)
    assert plan.name == named(path).replace("/", "-")
    assert plan.description
    assert parse_resolved_plan(resolve(plan, plan.cases)).cases == plan.cases


@pytest.mark.parametrize("path", PLANS, ids=named)
def test_every_comparison_of_every_plan_compares_something(path: Path) -> None:
    plan = load_plan(path)
    assert plan.contrasts
    assert all(pairs(plan.cases, contrast) for contrast in plan.contrasts)


@pytest.mark.parametrize("path", PLANS, ids=named)
def test_a_published_value_that_is_no_mean_is_of_one_case(path: Path) -> None:
    """But a size of a file, which does not depend on what the file is fed with."""
    plan = load_plan(path)
    for contrast in plan.contrasts:
        for reference in contrast.reference:
            both = [case for pair in pairs(plan.cases, contrast) for case in (pair.case, pair.baseline)]
            sides = both if reference.kind == "absolute" else [pair.case for pair in pairs(plan.cases, contrast)]
            meant = {case for case in sides if reference.selects(case) and reference.metric in metrics_of(case)}
            assert reference.over_cells or reference.metric == "model_bytes" or len(meant) == 1, reference


def test_every_source_of_a_published_value_is_of_a_paper_that_has_a_row() -> None:
    sources = {one.source for path in PLANS for contrast in load_plan(path).contrasts for one in contrast.reference}
    assert sources
    assert not {source for source in sources if not any(source.startswith(paper.name) for paper in PAPERS)}


COMMANDS = [
    (path, command)
    for path in PLANS
    for command in re.findall(r"^#.*?pybench (run plans/[^`\n]*)", path.read_text(), re.MULTILINE)
    if "/path/to/" not in command  # of a file that the reader has
]


@pytest.mark.process
@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[named(path) for path, _ in COMMANDS])
def test_a_command_of_a_plans_comments_passes_its_dry_run(
    path: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)
    assert words[1] == str(path.relative_to(ROOT))
    assert main([*words, "--dry-run", "--out", str(tmp_path / "out")]) == 0, capsys.readouterr().err


def test_ones_own_onnx_file_takes_the_place_of_the_built_in_model(tmp_path: Path) -> None:
    model = tmp_path / "mine.onnx"
    onnx.save(product(), model)
    plan = load_plan(ROOT / "plans/own-onnx.yaml", (f"defaults.model={model}",))
    assert {case.model for case in plan.cases} == {str(model)}
    assert all(dict(case.sources)["model"] == plan.files[str(model)].sha256 for case in plan.cases)


def test_what_is_commented_out_in_the_plans_is_valid_too(tmp_path: Path) -> None:
    """A reader who takes the comment signs away gets a plan that only lacks the files."""
    for name, files in {"own-onnx": ["photographs"], "precision-cpu": ["path/to/images"]}.items():
        text = (ROOT / f"plans/{name}.yaml").read_text()
        body = text.partition("matrix:")
        opened = body[0] + body[1] + body[2].replace("  # - ", "  - ").replace("  #   ", "    ")
        opened = opened.replace("    # data:", "    data:").replace("  # With images", "# With images")
        path = tmp_path / f"{name}.yaml"
        path.write_text(opened)
        for file in files:
            for one in ("cat", "dog"):
                (tmp_path / file / one).mkdir(parents=True)
                (tmp_path / file / one / "1.png").write_bytes(b"P5 1 1 255\n ")  # a grey pixel
        np.savez(tmp_path / "mine.npz", images=np.zeros((4, 1, 8, 8), np.float32), labels=np.arange(4))
        (tmp_path / "path").mkdir(exist_ok=True)
        (tmp_path / "path/to").mkdir(exist_ok=True)
        (tmp_path / "path/to/resnet50.pt").write_bytes(b"weights")
        assert {case.workload for case in load_plan(path).cases} == {"infer", "accuracy"}
