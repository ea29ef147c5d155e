# SPDX-License-Identifier: Apache-2.0
"""Effects over cells: the mean against a plain loop, the F test against statsmodels' two-way analysis of variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from pybench.analysis import analyse
from pybench.analysis.findings.cell_effects import CellsEffect
from pybench.analysis.statistics.estimate import SKEW_T, Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.case import Case
from pybench.dataset import load
from tests.support.campaigns import CampaignBuilder

FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
BATCHES = (1, 2, 4)
Ratio = Callable[[int, int], float | None]  # of a cell (batch) and a block


def effects(folder: Path, ratio: Ratio, blocks: int = 8) -> tuple[CellsEffect, ...]:
    """A campaign in which int8 takes `ratio` times as long; None: it did not run."""
    pairs = [(FP32.with_factors(batch=batch), FP32.with_factors(batch=batch, precision="int8")) for batch in BATCHES]
    cases = [case for pair in pairs for case in pair]
    builder = CampaignBuilder(folder / "c", cases, repetitions=blocks, declared={"baseline": {"precision": "fp32"}})
    for block in range(1, blocks + 1):
        for baseline, case in pairs:
            builder.run(baseline, block, {"latency_mean_ms": 10.0 + block})
            value = ratio(case.batch, block)
            if value is not None:
                builder.run(case, block, {"latency_mean_ms": value * (10.0 + block)})
    return analyse(load(builder.path)).cell_effects


def noisy(batch: int, block: int) -> float:
    return (0.5 if batch < 4 else 0.7) * math.exp(0.02 * math.sin(batch * 12.9898 + block * 78.233))


def test_the_mean_is_geometric_over_cells_and_blocks(tmp_path: Path) -> None:
    (effect,) = effects(tmp_path, noisy)
    values = [math.log(noisy(batch, block)) for batch in BATCHES for block in range(1, 9)]
    assert effect.mean is not None
    assert effect.mean.value == pytest.approx(math.exp(sum(values) / len(values)))
    by_block = [sum(math.log(noisy(batch, block)) for batch in BATCHES) / len(BATCHES) for block in range(1, 9)]
    assert effect.mean.method == SKEW_T
    assert effect.mean.lower == pytest.approx(estimate_mean(Sample.of(by_block)).exp().lower)
    assert effect.mean.upper == pytest.approx(estimate_mean(Sample.of(by_block)).exp().upper)
    assert [pair.case.batch for pair in effect.pairs] == list(BATCHES)
    assert effect.blocks == tuple(range(1, 9))


def test_heterogeneity_is_that_of_a_two_way_layout(tmp_path: Path) -> None:
    (effect,) = effects(tmp_path, noisy)
    table = np.array([[math.log(noisy(batch, block)) for block in range(1, 9)] for batch in BATCHES])
    total = ((table - table.mean()) ** 2).sum()
    of_cells = 8 * sum((row.mean() - table.mean()) ** 2 for row in table)
    of_blocks = 3 * sum((column.mean() - table.mean()) ** 2 for column in table.T)
    noise = (total - of_cells - of_blocks) / 14
    found = effect.heterogeneity
    assert found is not None
    covariance = np.cov(table)
    centred = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean()
    by_greenhouse = np.trace(centred) ** 2 / (2 * (centred**2).sum())
    by_huynh = (8 * 2 * by_greenhouse - 2) / (2 * (8 - 1 - 2 * by_greenhouse))
    epsilon = (by_greenhouse + min(by_huynh, 1)) / 2
    assert 0.5 <= epsilon < 1
    expected = scipy.stats.f.sf(of_cells / 2 / noise, 2 * epsilon, 14 * epsilon)
    assert found.p_value == pytest.approx(expected, rel=1e-6)
    assert found.spread == pytest.approx(math.exp(math.sqrt((of_cells / 2 - noise) / 8)))
    assert found.lowest == pytest.approx(math.exp(min(row.mean() for row in table)))
    assert found.highest == pytest.approx(math.exp(table[2].mean()))
    assert not found.is_mixed


def test_two_blocks_tell_nothing_of_how_cells_scatter(tmp_path: Path) -> None:
    """So the F test has the fewest degrees of freedom that any scatter leaves: 1 and 1."""
    (effect,) = effects(tmp_path, noisy, blocks=2)
    table = np.array([[math.log(noisy(batch, block)) for block in (1, 2)] for batch in BATCHES])
    residuals = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
    between = 2 * table.mean(axis=1).var(ddof=1)
    found = effect.heterogeneity
    assert found is not None
    assert found.p_value == pytest.approx(scipy.stats.f.sf(between / ((residuals**2).sum() / 2), 1, 1), rel=1e-6)


def test_equal_cells_have_no_spread(tmp_path: Path) -> None:
    (effect,) = effects(tmp_path, lambda batch, block: noisy(batch, block) * (0.5 / 0.7 if batch == 4 else 1))
    found = effect.heterogeneity
    assert found is not None
    assert found.p_value is not None
    assert found.p_value > 0.05
    assert found.spread is not None
    assert found.spread < 1.02


def test_cells_on_both_sides_of_one_are_mixed(tmp_path: Path) -> None:
    (effect,) = effects(tmp_path, lambda batch, block: noisy(batch, block) * (2 if batch == 1 else 1.2))
    assert effect.heterogeneity is not None
    assert not effect.heterogeneity.is_mixed
    (effect,) = effects(tmp_path / "b", lambda batch, block: noisy(batch, block) * (4 if batch == 1 else 1))
    assert effect.heterogeneity is not None
    assert effect.heterogeneity.is_mixed
    assert effect.mean is not None
    (effect,) = effects(tmp_path / "c", lambda batch, block: noisy(batch, block) * (2.74 if block == 1 else 1.37))
    assert effect.heterogeneity is not None
    assert effect.heterogeneity.lowest < 1 < effect.heterogeneity.highest
    assert not effect.heterogeneity.is_mixed, "one block decides the side, so intervals reach to the other one"


def test_a_cell_that_did_not_run_is_left_out_and_named(tmp_path: Path) -> None:
    (effect,) = effects(tmp_path, lambda batch, block: None if batch == 2 else noisy(batch, block))
    assert [pair.case.batch for pair in effect.pairs] == [1, 4]
    assert [pair.case.batch for pair in effect.left_out] == [2]


def test_only_blocks_of_all_cells_count(tmp_path: Path) -> None:
    (effect,) = effects(tmp_path, lambda batch, block: None if batch == 2 and block < 3 else noisy(batch, block))
    assert effect.blocks == tuple(range(3, 9))
    (effect,) = effects(tmp_path / "b", lambda batch, block: noisy(batch, block) if block % 3 == batch % 3 else None)
    assert (effect.blocks, effect.mean, effect.why_none) == ((), None, "no block has values of all cells")


def test_one_cell_has_no_mean_over_cells(tmp_path: Path) -> None:
    assert effects(tmp_path, lambda batch, block: noisy(batch, block) if batch == 1 else None) == ()
