# SPDX-License-Identifier: Apache-2.0
"""A package that adds rows, and environments of the plan: each has to have it, with the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.installation import Installation

pytestmark = [pytest.mark.process, pytest.mark.slow]

PLAN = """\
schema_version: 1
name: elsewhere
repetitions: 1
environments:
  other: {python: other/bin/python}
matrix:
  - {workload: sort, environment: [null, other], iterations: 3}
"""


def test_an_environment_needs_the_package_with_the_same_code(tmp_path: Path) -> None:
    own, other = (Installation.create(tmp_path / name) for name in ("own", "other"))
    own.install("sorting")
    (tmp_path / "plan.yaml").write_text(PLAN)

    def run() -> tuple[int, str]:
        ended = own.pybench("run", "plan.yaml", "--out", "campaign", cwd=tmp_path)
        return ended.returncode, ended.stderr

    said = f"plan.yaml:5:19: `environment`: other: in {tmp_path}/other/bin/python acme-sorting "
    hint = "(install acme-sorting 0.1 into it)\n"
    assert run() == (2, f"{said}cannot be used (it is not installed) {hint}")
    other.install("sorting", version="0.2", rows=("Numbers sorted", "Sorted numbers"))
    assert run() == (2, f"{said}0.2 has other code than the 0.1 of this plan's rows {hint}")
    assert not (tmp_path / "campaign").exists()
    other.install("sorting")
    assert run()[0] == 0
