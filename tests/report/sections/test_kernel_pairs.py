# SPDX-License-Identifier: Apache-2.0
"""The section "Kernels of two runtimes": its pairs, their rows, and when there is none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pybench.analysis.findings.kernel_pairs import find_kernel_pairs
from pybench.analysis.findings.kernel_times import find_kernel_times
from pybench.case import Case
from pybench.dataset import load
from pybench.kernels.launches import KernelLaunches, OperatorCall, profile_of_launches, profile_of_operators
from pybench.kernels.profile import Profile
from pybench.report import write_report
from tests.report.pages import rows_of
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment

RECORDED = Path(__file__).parents[2] / "precision/data/launched"
CASE = Case(workload="infer", model="resnet50", runtime="torch", batch=32)
TRT = CASE.with_factors(runtime="onnxruntime", provider="tensorrt")
CALLED = (("conv2d", 2.0), ("batch_norm", 0.5), ("view", 0.0), ("linear", 0.25))
OPERATORS = profile_of_operators([OperatorCall(name, time_ms) for name, time_ms in CALLED])


def recorded(name: str) -> Profile:
    """A CUPTI recording of an H200 (tests/precision/data/README.md)."""
    kernels = json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))
    return profile_of_launches(KernelLaunches(tuple((str(kernel), float(ms)) for kernel, ms in kernels), 1.0))


def campaign(folder: Path, profiles: dict[Case, Profile]) -> Path:
    builder = CampaignBuilder(folder, list(profiles), repetitions=1)
    for case, profile in profiles.items():
        builder.run(case, 1, {"latency_mean_ms": 1.0}, profile=profile)
    return builder.path


def test_kernels_of_two_runtimes_are_shown_by_their_work(tmp_path: Path) -> None:
    page = write_report(load(campaign(tmp_path / "c", {CASE: OPERATORS, TRT: recorded("onnxruntime-tensorrt-tf32")})))
    rows = {row["work"]: row for row in rows_of(page, "kernel-pairs")}
    assert "Kernels of two runtimes" in page.read_text()
    multiply = rows["multiply"]
    assert (multiply["first_case_id"], multiply["second_case_id"]) == (CASE.id, TRT.id)
    assert (multiply["first_kernels_count"], multiply["first_time_ms"]) == ("2.0", "2.25")
    assert float(multiply["second_kernels_count"]) > 50
    second_ms = float(multiply["second_time_ms"])
    assert float(multiply["difference_ms"]) == pytest.approx(second_ms - 2.25)
    assert "nothing" not in rows


def test_cases_that_differ_in_more_than_the_runtime_are_no_pair(tmp_path: Path) -> None:
    others = {CASE: OPERATORS, TRT.with_factors(batch=4): OPERATORS, TRT.with_factors(precision="tf32"): OPERATORS}
    dataset = load(campaign(tmp_path / "c", others))
    found = find_kernel_times(dataset)
    assert len(found) == 3
    assert find_kernel_pairs(dataset, found) == ()


def test_the_first_case_of_a_group_is_compared_with_each_other(tmp_path: Path) -> None:
    graph, enqueued = (CASE.with_factors(runtime="tensorrt", launch=launch) for launch in ("graph", "enqueue"))
    dataset = load(campaign(tmp_path / "c", {CASE: OPERATORS, graph: OPERATORS, enqueued: OPERATORS}))
    pairs = find_kernel_pairs(dataset, find_kernel_times(dataset))
    assert [pair.cases for pair in pairs] == [(CASE, graph), (CASE, enqueued)]


def test_runtimes_that_ran_with_two_drivers_are_shown_with_what_differs(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [CASE, TRT], repetitions=1)
    for case, driver in ((CASE, "580.1"), (TRT, "590.2")):
        given = environment(gpu={"driver_version": driver})
        builder.run(case, 1, {"latency_mean_ms": 1.0}, profile=OPERATORS, environment=given)
    page = write_report(load(builder.path)).read_text()
    assert "ran with different software, which may explain a difference: driver 590.2 against 580.1." in page
