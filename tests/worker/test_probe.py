# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from pybench.worker.probe import probe


def test_modelopt_needs_uv_to_make_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    why = "modelopt needs an environment of its own, and there is no uv to make it"
    assert probe(["modelopt"]) == {"modelopt": {"available": False, "why": why}}
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    assert probe(["modelopt"]) == {"modelopt": {"available": True, "uv": str(tmp_path / "uv")}}


def test_what_pybench_raises_on_purpose_is_told_without_its_class_and_hint() -> None:
    asked = probe(["cuda"])["cuda"]
    if asked["available"]:
        pytest.skip("this machine has a GPU")
    assert "hint:" not in asked["why"]
    assert "Error:" not in asked["why"]
