# SPDX-License-Identifier: Apache-2.0
"""What the factors stand on."""

from __future__ import annotations

from pybench.case.factors import FACTORS
from pybench.catalogue.workloads import WORKLOADS


def test_every_group_has_factors_and_a_workload_that_takes_them() -> None:
    taken = {group for row in WORKLOADS.values() for group in row.takes}
    assert {factor.group for factor in FACTORS.values()} == taken
