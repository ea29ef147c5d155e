# SPDX-License-Identifier: Apache-2.0
"""What the sweep of ONNX files counts as a fault, and its page."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "bench" / "onnx_files"
SAID = "{folder}/plan.yaml:7:90: `model`: model.onnx: {what} (run it (once) in fp32)"


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PROGRAM))
    return importlib.import_module("sweep")


@pytest.mark.parametrize(
    ("outcome", "said", "faults"),
    [
        ("runs", "", []),
        ("oom", "memory ran out: 9 TB", []),
        ("build_failed", "no kernel", ["build_failed without a hint"]),
        ("build_failed", "memory ran out: 9 TB", []),
        ("unsupported", "no kernel hint: export it in FP32", []),
        ("crashed", "SIGSEGV hint: see stderr", ["its run ended as `crashed`"]),
        ("timeout", "stopped after 120 s", ["its run ended as `timeout`"]),
        ("no run", "", ["its run ended as `no run`"]),
    ],
)
def test_an_outcome_that_nobody_can_act_on_is_a_fault(sweep: Any, outcome: str, said: str, faults: list[str]) -> None:
    assert list(sweep.faults_of_outcome(sweep.Cell(outcome, said))) == faults


def test_the_page_has_each_file_once_and_equal_messages_together(sweep: Any, tmp_path: Path) -> None:
    found = {}
    for name in ("if-inside", "if-outside"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "made.json").write_text(json.dumps({"exporter": "torch 9, dynamo", "odd": "an If"}))
        said = SAID.format(folder=folder, what=f"the node {name} (If) has graphs inside")
        found[name] = {"fp32": sweep.Cell("runs", "", 99.6), "int8": sweep.Cell("refused", said, 40.0)}
    page = sweep.page(tmp_path, found)
    assert "makes 2 files; it inspects, validates, previews and runs each one" in page
    assert "\n| runs | 2 | 0 |\n| refused | 0 | 2 |\n" in page
    assert "## torch 9\n" in page
    assert "\n| if-inside | an If | runs, refused | 100 |\n| if-outside |" in page
    assert "\n| the node … (If) has graphs inside | if-inside and 1 more |\n" in page
    assert str(tmp_path) not in page
    assert "No command printed a traceback" in page
    found["if-inside"]["fp32"].faults.append("a traceback")
    assert "\n| if-inside | fp32 | a traceback |\n" in sweep.page(tmp_path, found)
