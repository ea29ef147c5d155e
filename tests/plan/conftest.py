# SPDX-License-Identifier: Apache-2.0
"""Plans written to a folder of their own, loaded, and what was wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pybench.errors import PlanError
from pybench.plan import Plan, load_plan

HEAD = "schema_version: 1\nname: test\n"


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Plan]:
    """Loads `HEAD` and a matrix (the text after `matrix:`), or a whole plan."""

    def load_text(text: str, overrides: Sequence[str] = (), whole: bool = False) -> Plan:
        path = tmp_path / "plan.yaml"
        path.write_text(text if whole else f"{HEAD}matrix:\n{text}", encoding="utf-8")
        return load_plan(path, overrides)

    return load_text


@pytest.fixture
def problems(load: Callable[..., Plan]) -> Callable[..., list[str]]:
    """What is wrong with such a plan, as `line:column: what (hint)`; places count in the whole file."""

    def collect(text: str, overrides: Sequence[str] = (), whole: bool = False) -> list[str]:
        with pytest.raises(PlanError) as raised:
            load(text, overrides, whole)
        return [problem.render("")[1:] for problem in raised.value.problems]

    return collect
