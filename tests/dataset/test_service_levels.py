# SPDX-License-Identifier: Apache-2.0
"""Service levels: evaluated on stored iterations whose latencies are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pybench.analysis import analyse
from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import ITERATIONS, PLAN_RESOLVED
from pybench.case import Case
from pybench.case.service_levels import with_bounds
from pybench.dataset import Dataset, load
from pybench.errors import CorruptError
from pybench.measure.timing.replay import GpuTimes, Times
from pybench.measurement.result import Validity
from tests.support.campaigns import TIMED, CampaignBuilder, finish_again
from tests.support.reasons import reasons_of

INFER = Case(workload="infer", model="mlp", runtime="torch", batch=8)
RATE = 1000.0


def stored(directory: RunDirectory, columns: dict[str, Sequence[int]]) -> None:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    directory.file(ITERATIONS).write_text("\n".join(lines) + "\n")
    finish_again(directory.path)


def values(dataset: Dataset, block: int = 1) -> dict[str, float | None]:
    rows = dataset.frame.filter(dataset.frame["block"] == block).select("metric", "value").rows()
    return {name: value for name, value in rows if "@" in (name or "")}


def closed(latency_ms: Sequence[float]) -> dict[str, Sequence[int]]:
    host_ns = np.round(np.array(latency_ms) * 1e6).astype(int)
    return {"gap_ns": [1000] * len(latency_ms), "host_ns": host_ns.tolist()}


def test_each_bound_has_its_share_and_its_goodput(tmp_path: Path) -> None:
    case = with_bounds(INFER, [10, 20, 0.5])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    run = builder.run(case, 1, {"throughput_samples_per_s": RATE})
    stored(run, closed([10.0] * 60 + [20.0] * 30 + [20.000001] * 10))
    assert values(load(builder.path)) == {
        "slo_attainment_ratio@0.5ms": 0.0,
        "slo_attainment_ratio@10ms": 0.6,  # a latency that equals the bound keeps it
        "slo_attainment_ratio@20ms": 0.9,
        "goodput_samples_per_s@0.5ms": 0.0,
        "goodput_samples_per_s@10ms": pytest.approx(600),
        "goodput_samples_per_s@20ms": pytest.approx(900),
    }


def test_a_case_without_a_bound_has_none_of_it(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    builder.run(INFER, 1, {"throughput_samples_per_s": RATE})
    assert values(load(builder.path)) == {}


@pytest.mark.parametrize("kind", ["closed", "arrivals", "gpu", "gpu with arrivals"])
def test_latency_is_that_of_the_measuring_half(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(5)
    begin_ns = np.sort(rng.integers(0, 10**9, TIMED))
    end_ns = begin_ns + rng.integers(10**6, 10**7, TIMED)
    due_ns = begin_ns - rng.integers(0, 10**7, TIMED) if "arrivals" in kind else None
    gpu_begin_ns = np.sort(rng.integers(0, 10**9, TIMED))
    gpu = GpuTimes(gpu_begin_ns, gpu_begin_ns + rng.integers(10**5, 10**6, TIMED), end_ns, 0, 0)
    times = Times(begin_ns, end_ns, due_ns, gpu if "gpu" in kind else None)
    latency_ms = (times.latency_ns[:, 1] - times.latency_ns[:, 0]) * 1e-6
    bound_ms = float(np.median(latency_ms))
    case = with_bounds(INFER, [bound_ms])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    run = builder.run(case, 1, {"throughput_samples_per_s": RATE})
    stored(run, {name: column.tolist() for name, column in times.columns(0).items()})
    (share,) = (value for name, value in values(load(builder.path)).items() if name.startswith("slo"))
    assert share == pytest.approx(float(np.mean(latency_ms <= bound_ms)), abs=0.001)
    frame = load(builder.path).frame
    (method,) = set(frame.filter(frame["metric"].str.starts_with("slo"))["method"])
    assert method == ("response time" if due_ns is not None else "latency of an iteration")


def test_other_bounds_are_answered_by_the_same_runs(tmp_path: Path) -> None:
    case = with_bounds(INFER, [10])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    stored(builder.run(case, 1, {"throughput_samples_per_s": RATE}), closed([10.0] * 60 + [20.0] * 40))
    plan = builder.path / PLAN_RESOLVED
    content = json.loads(plan.read_text())
    plan.write_text(json.dumps({**content, "case_slo_ms": {case.id: [15]}}))
    assert values(load(builder.path)) == {"slo_attainment_ratio@15ms": 0.6, "goodput_samples_per_s@15ms": 600.0}


def test_without_a_throughput_there_is_a_share_and_no_goodput(tmp_path: Path) -> None:
    case = with_bounds(INFER, [10])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    builder.run(case, 1, {"latency_mean_ms": 10.0})
    assert values(load(builder.path)) == {"slo_attainment_ratio@10ms": 1.0, "goodput_samples_per_s@10ms": None}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    case = with_bounds(INFER, [10])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    run = builder.run(case, 1, {"throughput_samples_per_s": RATE})
    stored(run, {"begin_ms": range(TIMED), "end_ms": range(TIMED)})
    with pytest.raises(CorruptError, match=r"iterations\.csv cannot be read: it lacks host_ns\n"):
        load(builder.path)


@pytest.mark.parametrize("more", [(), ("enqueue_end_ns", "gpu_begin_ns", "gpu_end_ns"), ("due_ns",)])
def test_absolute_times_of_an_older_pybench_are_told(tmp_path: Path, more: tuple[str, ...]) -> None:
    case = with_bounds(INFER, [10])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    run = builder.run(case, 1, {"throughput_samples_per_s": RATE})
    stored(run, {name: range(TIMED) for name in ("begin_ns", "end_ns", *more)})
    with pytest.raises(CorruptError, match="it lacks host_ns, and has begin_ns: an older pybench wrote it"):
        load(builder.path)


def test_a_run_whose_timing_is_invalid_does_not_count(tmp_path: Path) -> None:
    case = with_bounds(INFER, [10])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=3)
    for block in (1, 2, 3):
        valid = {"timing": Validity(block != 2, () if block != 2 else reasons_of("below_clock_resolution"))}
        builder.run(case, block, {"throughput_samples_per_s": RATE}, valid=valid)
    (finding,) = analyse(load(builder.path)).cases
    assert list(finding.metrics["slo_attainment_ratio@10ms"].points) == [1, 3]


def test_bounds_are_compared_and_judged_one_by_one(tmp_path: Path) -> None:
    cases = [with_bounds(INFER.with_factors(runtime=runtime), [10, 20]) for runtime in ("torch", "torch-compile")]
    accept = {"slo_attainment_delta_min": 0.05, "goodput_ratio_min": 1.1}
    declared = {"baseline": {"runtime": "torch"}, "accept": accept}
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=4, declared=declared)
    for block in range(1, 5):
        slow = [5.0] * (50 + block) + [15.0] * (50 - block)
        quick = [5.0] * (79 + block) + [15.0] * (21 - block)
        for case, latency_ms in zip(cases, (slow, quick), strict=True):
            stored(builder.run(case, block, {"throughput_samples_per_s": RATE}), closed(latency_ms))
    analysis = analyse(load(builder.path))
    ((verdict,),) = analysis.verdicts
    judged = {one.criterion.name: one for one in verdict.judgements}
    assert {name: one.verdict.value for name, one in judged.items()} == {
        "slo_attainment_delta_min@10ms": "accepted",
        "slo_attainment_delta_min@20ms": "rejected",  # both keep 20 ms always
        "goodput_ratio_min@10ms": "accepted",
        "goodput_ratio_min@20ms": "rejected",
    }
    estimate = judged["slo_attainment_delta_min@10ms"].estimate
    assert estimate is not None
    assert estimate.value == pytest.approx(0.29)
    (pair,) = analysis.contrasts[0].pairs
    assert {name for name, effect in pair.effects.items() if effect.declared} == {
        one.criterion.metric for one in verdict.judgements
    }
    json.dumps(analysis.as_json())
