# SPDX-License-Identifier: Apache-2.0
"""Published values next to a campaign's: four relations, each from numbers worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybench.analysis import Analysis, analyse
from pybench.analysis.findings.references import Relation, relate
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case
from pybench.case.references import Reference, meaning_of
from pybench.catalogue.catalogue import BUILT_IN
from pybench.dataset import load
from tests.support.campaigns import ENVIRONMENT_CONTENT, CampaignBuilder

FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = FP32.with_factors(precision="int8")
SOURCE = "a paper"
RTX = {"gpu": {"name": "NVIDIA GeForce RTX 5090"}}


def published(name: str, value: float, **more: Any) -> Reference:
    row, kind, inverse = meaning_of(name, BUILT_IN)
    return Reference(name=name, row=row, kind=kind, inverse=inverse, value=value, source=SOURCE, **more)


@pytest.mark.parametrize(
    ("name", "value", "interval", "expected"),
    [
        ("speedup", 1.5, (1.2, 1.6), Relation.CONTAINED),
        ("speedup", 5.0, (1.2, 1.6), Relation.SAME_SIDE),
        ("speedup", 0.5, (0.7, 0.9), Relation.SAME_SIDE),
        ("speedup", 0.5, (1.2, 1.6), Relation.NEITHER),
        ("speedup", 5.0, (0.9, 1.6), Relation.NEITHER),
        ("speedup", 1.0, (1.2, 1.6), Relation.NEITHER),
        ("top1_delta_pp", 2.0, (0.1, 0.3), Relation.SAME_SIDE),
        ("top1_delta_pp", -2.0, (0.1, 0.3), Relation.NEITHER),
        ("latency_mean_ms", 5.0, (1.2, 1.6), Relation.NEITHER),
        ("latency_mean_ms", 1.4, (1.2, 1.6), Relation.CONTAINED),
    ],
)
def test_a_value_relates_to_an_interval(
    name: str, value: float, interval: tuple[float, float], expected: Relation
) -> None:
    assert relate(published(name, value), Estimate(1.3, *interval, 5, "t")) == (expected, None)


def test_a_number_without_an_interval_is_not_compared() -> None:
    relation, why = relate(published("speedup", 2.0), Estimate(1.3, None, None, 1, "one value"))
    assert relation is Relation.NOT_COMPARABLE
    assert why == "one repetition gives no interval"


def analysed(
    folder: Path, *references: Reference, cases: tuple[Case, ...] = (FP32, INT8), environment: Any = None
) -> Analysis:
    """Every case takes 4 ms, or 2 ms in int8, with the same noise in the blocks of both; larger batches take longer."""
    declared = {"baseline": {"precision": "fp32"}, "reference": references}
    builder = CampaignBuilder(folder / "c", cases, repetitions=5, declared=declared)
    for block in range(1, 6):
        for case in cases:
            latency_ms = case.batch * (2.0 if case.precision == "int8" else 4.0) * (1 + 0.01 * block)
            latency_ms *= 1 + 0.001 * ((block * 7 + case.batch) % 3) * (case.precision == "int8")
            more = {} if environment is None else {"environment": environment}
            builder.run(case, block, {"latency_mean_ms": latency_ms}, **more)
    return analyse(load(builder.path))


def test_a_ratio_is_compared_whatever_it_was_measured_on(tmp_path: Path) -> None:
    (found,) = analysed(tmp_path, published("speedup", 2.0, device="RTX 5090")).references
    assert found.ours is not None
    assert found.ours.value == pytest.approx(2.0, rel=0.01)
    assert found.relation is Relation.CONTAINED
    assert (found.cases, found.baseline) == ((INT8,), FP32)


def test_the_value_of_a_metric_needs_the_same_device(tmp_path: Path) -> None:
    elsewhere = published("latency_mean_ms", 2.06, device="RTX 5090", where={"precision": ("int8",)})
    anywhere = published("latency_mean_ms", 2.06, where={"precision": ("int8",)})
    other, same = analysed(tmp_path, elsewhere, anywhere).references
    assert other.relation is Relation.NOT_COMPARABLE
    assert str(other.why).startswith("published on RTX 5090, measured here on ")
    assert "Example CPU 9000" in str(other.why)
    assert (same.relation, same.why) == (Relation.CONTAINED, None)


@pytest.mark.parametrize(
    ("device", "is_same"),
    [("Example CPU 9000", True), ("Example CPU 9100", False), ("Intel", False)],
)
def test_a_processor_is_a_device_of_a_case_without_a_gpu(tmp_path: Path, device: str, is_same: bool) -> None:
    there = published("latency_mean_ms", 2.06, device=device, where={"precision": ("int8",)})
    (found,) = analysed(tmp_path, there).references
    assert (found.relation is not Relation.NOT_COMPARABLE) == is_same


@pytest.mark.parametrize("variant", ["RTX 5090 Ti", "RTX 5090 Laptop GPU", "RTX 5090 D"])
def test_a_variant_is_another_device(tmp_path: Path, variant: str) -> None:
    environment = {**ENVIRONMENT_CONTENT, "measuring": {"gpu": {"name": f"NVIDIA GeForce {variant}"}}}
    plain = published("latency_mean_ms", 2.06, device="RTX 5090", where={"precision": ("int8",)})
    named = published("latency_mean_ms", 2.06, device=variant, where={"precision": ("int8",)})
    first, second = analysed(tmp_path, plain, named, environment=environment).references
    assert first.relation is Relation.NOT_COMPARABLE
    assert second.relation is not Relation.NOT_COMPARABLE


def test_makers_are_no_part_of_the_name_of_a_device(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT_CONTENT, "measuring": RTX}
    there = published("latency_mean_ms", 2.06, device="RTX 5090", where={"precision": ("int8",)})
    other = published("latency_mean_ms", 2.06, device="RTX 4090", where={"precision": ("int8",)})
    first, second = analysed(tmp_path, there, other, environment=environment).references
    assert (first.relation, second.relation) == (Relation.CONTAINED, Relation.NOT_COMPARABLE)
    assert second.why == "published on RTX 4090, measured here on NVIDIA GeForce RTX 5090"


def test_a_mean_over_cells_is_compared_with_one(tmp_path: Path) -> None:
    cases = tuple(case.with_factors(batch=batch) for case in (FP32, INT8) for batch in (1, 2, 8))
    every = published("speedup", 2.0, over_cells=True)
    one = published("speedup", 2.0, over_cells=True, where={"batch": (8,)})
    found, alone = analysed(tmp_path, every, one, cases=cases).references
    assert len(found.cases) == 3
    assert found.ours is not None
    assert found.ours.value == pytest.approx(2.0, rel=0.01)
    assert alone.why == "fewer than two cells have a ratio"


def test_what_was_not_measured_is_not_compared(tmp_path: Path) -> None:
    (found,) = analysed(tmp_path, published("gpu_energy_ratio", 0.2)).references
    assert (found.relation, found.ours) == (Relation.NOT_COMPARABLE, None)
    assert found.why == "not measured"


def test_a_case_that_yields_no_such_metric_is_left_out(tmp_path: Path) -> None:
    cases = (FP32, INT8, *(case.with_factors(workload="accuracy") for case in (FP32, INT8)))
    latency = published("latency_mean_ms", 2.0)
    found = analysed(tmp_path, published("speedup", 2.0), latency, cases=cases).references
    assert [one.cases for one in found] == [(INT8,), (INT8,), (FP32,)]
