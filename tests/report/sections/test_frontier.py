# SPDX-License-Identifier: Apache-2.0
"""Largest batches, and the parts of training's memory, in the report of a made-up campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.case import Case
from pybench.catalogue.workloads import STEP_PARTS, STEP_PEAK
from pybench.dataset import load
from pybench.measure.quantity import Quantity
from pybench.report import write_report
from tests.report.pages import rows_of
from tests.support.campaigns import CampaignBuilder, build_typical

TRAIN = Case(workload="train", model="resnet50", runtime="torch")
MEGA = 1e6


def frontiers(page: Path) -> list[tuple[str, str, str]]:
    return [(row["batches"], row["ran_batch"], row["oom_batch"]) for row in rows_of(page, "oom-frontier")]


def test_the_largest_batch_that_ran_stands_next_to_the_smallest_that_did_not_fit(tmp_path: Path) -> None:
    fit = {("fp32", 48): 256, ("fp32", 128): 64, ("amp-fp16", 48): 512, ("amp-fp16", 128): 32}
    cases = {
        (precision, size, batch): TRAIN.with_factors(precision=precision, image_size=size, batch=batch)
        for precision, size in fit
        for batch in (512, 64, 256)  # the order of the plan is no order of size
    }
    builder = CampaignBuilder(tmp_path / "c", list(cases.values()), repetitions=2)
    for block in (1, 2):
        for (precision, size, batch), case in cases.items():
            if batch > fit[precision, size]:
                builder.run(case, block, outcome="oom", reason="torch.OutOfMemoryError")
            else:
                builder.run(case, block, {"peak_device_bytes": batch * MEGA})
    page = write_report(load(builder.path))
    assert frontiers(page) == [
        ("64 256 512", "256", "512"),
        ("64 256 512", "64", "256"),
        ("64 256 512", "512", ""),
        ("64 256 512", "", "64"),
    ]
    text = page.read_text()
    assert 'id="frontier"' in text
    assert "no batch of the plan ran out of memory" in text
    assert "no batch of the plan ran" in text
    assert (page.parent / "figures" / "memory-over-batch-train-1.svg").exists()


def test_a_batch_that_was_out_of_memory_once_does_not_fit(tmp_path: Path) -> None:
    small, large = (TRAIN.with_factors(batch=batch) for batch in (1, 2))
    builder = CampaignBuilder(tmp_path / "c", [small, large], repetitions=2)
    for block in (1, 2):
        builder.run(small, block, {})
    builder.run(large, 1, {})
    builder.run(large, 2, outcome="oom", reason="cgroup")
    assert frontiers(write_report(load(builder.path))) == [("1 2", "1", "2")]


def test_a_smaller_batch_that_failed_once_is_told(tmp_path: Path) -> None:
    small, large = (TRAIN.with_factors(batch=batch) for batch in (1, 2))
    builder = CampaignBuilder(tmp_path / "c", [small, large], repetitions=2)
    builder.run(small, 1, outcome="oom", reason="cgroup")
    builder.run(small, 2, {})
    builder.run(large, 1, {})
    builder.run(large, 2, {})
    page = write_report(load(builder.path))
    assert frontiers(page) == [("1 2", "2", "1")]
    assert "a smaller batch ran out of memory in one of its runs" in page.read_text()


@pytest.mark.parametrize("outcome", ["crashed", "unsupported", "timeout"])
def test_what_ended_otherwise_says_nothing_of_memory(tmp_path: Path, outcome: str) -> None:
    cases = [TRAIN.with_factors(batch=batch) for batch in (1, 2, 4)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1)
    builder.run(cases[0], 1, {})
    builder.run(cases[1], 1, outcome=outcome, reason="something")
    builder.run(cases[2], 1, outcome="oom", reason="cgroup")
    assert frontiers(write_report(load(builder.path))) == [("1 2 4", "1", "4")]


def test_a_campaign_that_fits_has_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path))
    assert 'id="frontier"' not in page.read_text()
    assert 'id="memory"' not in page.read_text()


def test_the_parts_of_a_step_are_columns(tmp_path: Path) -> None:
    values = {name: Quantity(value=(place + 1) * MEGA) for place, name in enumerate((*STEP_PARTS, STEP_PEAK))}
    builder = CampaignBuilder(tmp_path / "c", [TRAIN], repetitions=2)
    for block in (1, 2):
        builder.run(TRAIN, block, values)
    page = write_report(load(builder.path))
    [row] = rows_of(page, "training-memory")
    assert [float(row[name]) for name in (*STEP_PARTS, STEP_PEAK)] == [one.value for one in values.values()]
    assert "Copies of weights (kB)" in page.read_text()
