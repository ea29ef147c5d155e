# SPDX-License-Identifier: Apache-2.0
"""Coverage: which planned cells have an answer, and what stands in the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.case import Case
from pybench.dataset import load
from pybench.dataset.coverage import Coverage, measure
from pybench.report.sections.reliability.coverage import guard_text
from tests.support.campaigns import CampaignBuilder, build_typical

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
OTHER = INFER.with_factors(batch=8)


def test_a_finished_campaign_is_covered_unsupported_runs_included(tmp_path: Path) -> None:
    coverage = measure(load(build_typical(tmp_path / "c", repetitions=2).path))
    assert coverage.is_full
    assert (coverage.planned, coverage.covered, coverage.states) == (24, 24, {"ok": 22, "unsupported": 2})


@pytest.mark.parametrize(
    ("outcome", "covers"),
    [
        ("oom", True),
        ("unsupported", True),
        ("timeout", False),
        ("build_failed", False),
        ("crashed", False),
        ("killed", False),
        ("interrupted", False),
    ],
)
def test_which_outcomes_cover_a_cell(tmp_path: Path, outcome: str, covers: bool) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 1, outcome=outcome, reason="because")
    coverage = measure(load(builder.path))
    assert coverage.is_full is covers
    assert coverage.cases[0].reasons == {"because": 1}


def test_missing_and_unfinished_runs_are_told_apart(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER, OTHER], repetitions=2)
    builder.run(INFER, 1, {"latency_mean_ms": 1.0})
    builder.run(INFER, 2, {"latency_mean_ms": 1.0}, complete=False)
    coverage = measure(load(builder.path))
    assert coverage.states == {"ok": 1, "unfinished": 1, "missing": 2}
    assert (coverage.covered, coverage.planned, coverage.is_full) == (1, 4, False)


def test_runs_that_the_plan_does_not_hold_are_orphans(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    for case in (INFER, OTHER):
        builder.run(case, 1, {"latency_mean_ms": 1.0})
    coverage = measure(load(builder.path))
    assert coverage.is_full
    assert coverage.orphans == {OTHER.id: 1}


def test_blocks_beyond_the_plan_neither_help_nor_hurt(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 2, {"latency_mean_ms": 1.0})
    assert measure(load(builder.path)).states == {"missing": 1}


def test_runs_beyond_the_repetitions_are_counted_apart(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    for block in (1, 2, 3, 4):
        builder.run(INFER, block, {"latency_mean_ms": 1.0})
    coverage = measure(load(builder.path))
    assert (coverage.planned, coverage.covered, coverage.beyond) == (2, 2, 2)
    assert coverage.as_json()["beyond_repetitions"] == 2


@pytest.mark.parametrize(
    ("finished", "artefacts", "text"),
    [(19, 3, "16 runs and 3 artefacts"), (2, 1, "1 run and 1 artefact"), (4, 0, "4 runs")],
)
def test_what_was_hashed_is_counted_by_its_kind(finished: int, artefacts: int, text: str) -> None:
    coverage = Coverage((), {}, 0, finished, artefacts, unguarded=0)
    assert coverage.finished_text == text
    assert guard_text(coverage).startswith(f"The files of all {text} have the digests")


@pytest.mark.parametrize(
    ("unguarded", "finished", "artefacts", "text"),
    [
        (62, 62, 3, "All 59 runs and 3 artefacts are unguarded: "),
        (5, 19, 3, "5 of 19 are unguarded (16 runs and 3 artefacts): "),
        (1, 12, 0, "1 of 12 runs is unguarded: "),
        (1, 1, 0, "1 of 1 run is unguarded: "),
    ],
)
def test_what_is_unguarded_is_never_more_than_what_it_is_counted_in(
    unguarded: int, finished: int, artefacts: int, text: str
) -> None:
    assert guard_text(Coverage((), {}, 0, finished, artefacts, unguarded)).startswith(text)
