# SPDX-License-Identifier: Apache-2.0
"""Rows of artefact kinds, quantisers and paths name code and packages that exist."""

from __future__ import annotations

import importlib.util

import pytest

from pybench.catalogue.code import named_code
from pybench.catalogue.kinds import KINDS, ArtefactKind
from pybench.catalogue.packages import PACKAGES
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.quantisers import CALIBRATIONS, QUANTISERS, USUAL, Quantiser, quantisers_to
from pybench.catalogue.runtimes import RUNTIMES


@pytest.mark.parametrize("row", KINDS.values(), ids=KINDS)
def test_the_module_of_a_kind_exists(row: ArtefactKind) -> None:
    assert importlib.util.find_spec(row.module) is not None  # importing it may take a framework


@pytest.mark.parametrize("row", QUANTISERS.values(), ids=QUANTISERS)
def test_a_quantiser_is_a_call_that_knows_what_plans_may_ask(row: Quantiser) -> None:
    assert callable(named_code(row.make))
    assert set(row.calibrations) <= set(CALIBRATIONS)
    assert set(row.types) <= {precision.quantised for precision in PRECISIONS.values()}
    assert row.is_calibrated == bool(row.calibrations)


def test_the_usual_quantiser_makes_whatever_a_runtime_takes() -> None:
    types = {row.quantised for row in PRECISIONS.values() if not row.weights_alone} - {None}
    assert set(USUAL.types) == types
    assert all(USUAL.name in quantisers_to(kind) for kind in USUAL.types)
    assert all(row.ranges in QUANTISERS[row.quantiser].schemes for row in RUNTIMES.values())


def test_what_rows_need_can_be_asked_of_a_machine() -> None:
    rows = [*KINDS.values(), *QUANTISERS.values(), *PATHS.values()]
    assert {name for row in rows for name in row.needs} <= set(PACKAGES)


def test_a_path_reads_text_with_a_tokenizer_of_its_own_or_in_another_process() -> None:
    assert [row.name for row in PATHS.values() if row.encoder is None] == ["none", "go_rust"]
    assert [row.name for row in PATHS.values() if not row.reads_text] == ["none"]
