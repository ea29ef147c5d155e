# SPDX-License-Identifier: Apache-2.0
"""The figures of engines with a cold cache. The loops themselves need a GPU."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("cuda.bindings")

from bench.tensorrt import cold_cache

FOUND = {
    "ms": {"warm": [1.0, 1.2], "cold": [1.5, 1.8], "flush": [0.1, 0.1]},
    "mj": {"warm": [100.0, 120.0], "cold": [190.0, 220.0], "flush": [40.0, 40.0]},
}


def test_a_half_width_worked_by_hand() -> None:
    """Student's t of two values: 12.706 standard errors."""
    found = cold_cache.figure([1.0, 1.2])
    assert found.mean == pytest.approx(1.1)
    assert found.half_width == pytest.approx(12.706 * 0.1, rel=1e-4)


def test_one_round_has_no_interval() -> None:
    assert math.isinf(cold_cache.figure([1.0]).half_width)


def test_the_memset_is_taken_from_the_energy_of_a_cold_execution_and_ratios_are_paired() -> None:
    rows = cold_cache.rows_of(FOUND)
    assert rows["cold, mJ"].mean == pytest.approx((150 + 180) / 2)
    assert rows["cold / warm, energy"].mean == pytest.approx(1.5)
    assert rows["cold / warm, energy"].half_width == pytest.approx(0, abs=1e-9)
    assert rows["cold / warm, time"].mean == pytest.approx(1.5)


def test_each_engine_is_a_row() -> None:
    head, rule, *rows = cold_cache.table({"fp16, batch 1": FOUND, "int8, batch 1": FOUND})
    assert [row.split("|")[1].strip() for row in rows] == ["fp16, batch 1", "int8, batch 1"]
    assert {line.count("|") for line in (head, rule, *rows)} == {8}
