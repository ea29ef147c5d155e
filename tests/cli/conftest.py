# SPDX-License-Identifier: Apache-2.0
"""A plan of runs that compute nothing, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

PLAN = """\
schema_version: 1
name: trial
seed: 3
repetitions: 2
matrix:
  - {workload: noop, iterations: [1, 2]}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path
