# SPDX-License-Identifier: Apache-2.0
"""The factors: the page made of them, and what they stand on."""

from __future__ import annotations

from pathlib import Path

from pybench.case.factors import FACTORS
from pybench.catalogue.workloads import WORKLOADS
from tests.factors_page import COMMAND, page


def test_the_page_of_factors_is_made_of_the_factors() -> None:
    written = (Path(__file__).parents[2] / "docs/factors.md").read_text(encoding="utf-8")
    assert written == page().rstrip() + "\n", COMMAND


def test_every_group_has_factors_and_a_workload_that_takes_them() -> None:
    taken = {group for row in WORKLOADS.values() for group in row.takes}
    assert {factor.group for factor in FACTORS.values()} == taken
