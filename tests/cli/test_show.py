# SPDX-License-Identifier: Apache-2.0
"""How commands print: tables fit a terminal, and a pipe gets whole lines."""

from __future__ import annotations

import sys

import pytest

from pybench.cli.show import print_tables
from tests.report.test_tables import LONG


@pytest.mark.parametrize(("is_terminal", "columns"), [(True, 80), (True, 120), (False, 80)])
def test_tables_are_folded_on_a_terminal_alone(
    is_terminal: bool, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_tables([LONG])
    longest = max(map(len, capsys.readouterr().out.splitlines()))
    assert longest <= columns if is_terminal else longest > 150
