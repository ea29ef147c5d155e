# SPDX-License-Identifier: Apache-2.0
"""What the table of effects over cells says of its cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.analysis import Analysis, analyse
from pybench.case import Case
from pybench.dataset import load
from pybench.report.sections.cell_effects import _sentence, cells_table
from pybench.report.tables import Cell
from tests.support.campaigns import CampaignBuilder


def analysed(folder: Path, without: tuple[int, ...] = ()) -> Analysis:
    """An int8 comparison at four batches, of which some did not run."""
    fp32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
    cases = [
        fp32.with_factors(batch=batch, precision=precision)
        for batch in (256, 32, 8, 1)
        for precision in ("fp32", "int8")
    ]
    builder = CampaignBuilder(folder / "c", cases, repetitions=3, declared={"baseline": {"precision": "fp32"}})
    for block in (1, 2, 3):
        for case in cases:
            if case.precision == "fp32" or case.batch not in without:
                builder.run(case, block, {"latency_mean_ms": 10.0 + block + case.batch})
    return analyse(load(builder.path))


def cells(folder: Path, without: tuple[int, ...] = ()) -> Cell:
    """The cell of the table about the cells of the comparison."""
    ((_, found, *_),) = cells_table(analysed(folder, without).cell_effects).rows
    return found


def test_a_sentence_says_of_what_the_ratio_is(tmp_path: Path) -> None:
    """A finding beside it has the speed-up, which is the inverse."""
    (effect,) = analysed(tmp_path).cell_effects
    assert _sentence(effect).text == "Mean latency is 1× that of the baseline over 4 cells (batch 1, 8, 32, 256)."


def test_numbers_are_in_their_order(tmp_path: Path) -> None:
    found = cells(tmp_path)
    assert (found.text, found.note) == ("4 cells (batch 1, 8, 32, 256)", None)


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ((8,), "infer digits-cnn onnxruntime int8 batch=8 has no ratio and is left out"),
        ((32, 8), "2 cells, such as infer digits-cnn onnxruntime int8 batch=32, have no ratio and are left out"),
    ],
)
def test_cells_without_a_ratio_are_counted_and_one_is_named(
    tmp_path: Path, without: tuple[int, ...], said: str
) -> None:
    assert cells(tmp_path, without).note == said
