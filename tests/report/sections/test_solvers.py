# SPDX-License-Identifier: Apache-2.0
"""The section of networks in a solver's place, read from its files and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of, section
from tests.support.campaigns import build_typical
from tests.support.solvers import L1, build_solvers


def test_a_campaign_without_solvers_has_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path))
    assert section(page, "solvers") == ""


def test_the_section_says_plainly_where_a_baseline_is_slow(tmp_path: Path) -> None:
    page = write_report(load(build_solvers(tmp_path / "c", 1.0, {"cpp": 0.1, "numpy": 25.0}).path))
    shown = section(page, "solvers")
    assert (
        "The speed-up against numpy comes from a slow baseline: the network is not shown to be faster than cpp" in shown
    )
    (row,) = rows_of(page, "solver-speedups")
    assert float(row["speedup_cpp"]) == pytest.approx(0.1, rel=0.02)
    assert float(row["speedup_numpy"]) == pytest.approx(25, rel=0.02)
    assert float(row["sample_us"]) == pytest.approx(1000, rel=0.3)  # blocks drift by 20 %
    assert (float(row["l1_error"]), row["verdict"]) == (L1, "slow baseline")


def test_a_solver_that_was_not_measured_is_a_dash(tmp_path: Path) -> None:
    page = write_report(load(build_solvers(tmp_path / "c", 1.0, {"cpp": 2.0}).path))
    assert "speed-up 2" in section(page, "solvers")
    (row,) = rows_of(page, "solver-speedups")
    assert (row["speedup_numpy"], row["verdict"]) == ("", "faster")
