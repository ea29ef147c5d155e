# SPDX-License-Identifier: Apache-2.0
"""Which planes a campaign has, and who competes in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pybench.analysis import analyse
from pybench.analysis.findings.planes import PlaneFinding, find_planes
from pybench.case import Case
from pybench.dataset import load
from tests.support.campaigns import CampaignBuilder

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = INFER.with_factors(precision="int8")


def planes(
    folder: Path, metrics: Mapping[Case, Mapping[str, float]], latencies: Mapping[Case, str] = MappingProxyType({})
) -> dict[str, PlaneFinding]:
    builder = CampaignBuilder(folder / "c", [*metrics], repetitions=2)
    for block in (1, 2):
        for case, values in metrics.items():
            labels = {"latency": latencies[case]} if case in latencies else {}
            measured = {name: value * (1 + block / 1000) for name, value in values.items()}
            builder.run(case, block, measured, labels=labels)
    return {one.plane.name: one for one in find_planes(analyse(load(builder.path)).cases)}


def speed(latency_ms: float, energy_j: float | None = None, *, of: str = "cpu") -> dict[str, float]:
    return {"latency_mean_ms": latency_ms} | ({} if energy_j is None else {f"{of}_energy_per_sample_j": energy_j})


def accuracy(case: Case) -> Case:
    return case.with_factors(workload="accuracy", batch=32)


def test_each_plane_whose_two_numbers_there_are_is_found(tmp_path: Path) -> None:
    found = planes(
        tmp_path,
        {
            INFER: speed(2.0, 3.0),
            INT8: speed(1.0, 1.0),
            accuracy(INFER): {"top1_percent": 98.0},
            accuracy(INT8): {"top1_percent": 90.0},
        },
    )
    assert list(found) == ["plane", "plane-accuracy-energy", "plane-energy-latency"]
    assert [point.is_on_front for point in found["plane-accuracy-energy"].points] == [True, True]
    assert [point.is_on_front for point in found["plane-energy-latency"].points] == [False, True]
    beaten = found["plane-energy-latency"].points[0]
    assert (beaten.beaten_by, beaten.is_shown) == (INT8, True)


def test_a_plane_needs_no_accuracy(tmp_path: Path) -> None:
    assert list(planes(tmp_path, {INFER: speed(2.0, 1.0), INT8: speed(1.0, 2.0)})) == ["plane-energy-latency"]


def test_the_energy_of_the_board_comes_before_that_of_the_processor(tmp_path: Path) -> None:
    both = {case: speed(value, value, of="gpu") | speed(value, value) for case, value in ((INFER, 2.0), (INT8, 1.0))}
    assert planes(tmp_path, both)["plane-energy-latency"].y.name == "gpu_energy_per_sample_j"


def test_a_number_that_is_the_same_everywhere_makes_no_plane(tmp_path: Path) -> None:
    same = {accuracy(case): {"top1_percent": 98.0} for case in (INFER, INT8)}
    assert planes(tmp_path, {INFER: speed(2.0), INT8: speed(1.0), **same}) == {}


def test_cases_of_other_work_do_not_compete(tmp_path: Path) -> None:
    """Copies to a device are more work, and random numbers other inputs; another batch is a choice."""
    copied = INFER.with_factors(runtime="torch", transfers=True)
    plain = INFER.with_factors(runtime="torch", batch=8)
    found = planes(tmp_path, {copied: speed(2.0, 2.0), plain: speed(1.0, 1.0), INFER: speed(3.0, 3.0)})
    standing = {point.case: point.beaten_by for point in found["plane-energy-latency"].points}
    assert standing == {copied: None, plain: None, INFER: plain}


def test_an_accuracy_has_no_batch_so_latencies_of_other_batches_do_not_compete(tmp_path: Path) -> None:
    larger = INFER.with_factors(batch=8)
    judged = {accuracy(INFER): {"top1_percent": 98.0}, accuracy(INT8): {"top1_percent": 97.0}}
    speeds = {INFER: speed(2.0, 2.0), INT8: speed(1.0, 1.0), larger: speed(9.0, 0.5)}
    found = planes(tmp_path, {**speeds, **judged})
    standing = {point.case: point.beaten_by for point in found["plane"].points}
    assert standing == {INFER: None, INT8: None, larger: None}
    by_energy = {point.case: point.beaten_by for point in found["plane-accuracy-energy"].points}
    assert by_energy[INFER] == larger


def test_models_do_not_compete(tmp_path: Path) -> None:
    other = INFER.with_factors(model="resnet50")
    builder = {INFER: speed(1.0, 1.0), INT8: speed(2.0, 0.5), other: speed(9.0, 9.0)}
    (found,) = planes(tmp_path, builder).values()
    assert {str(point.case.model) for point in found.points} == {"digits-cnn"}


def test_of_several_accuracies_nobody_says_which_is_beaten(tmp_path: Path) -> None:
    batches = {accuracy(INFER).with_factors(batch=batch): {"top1_percent": 90.0 + batch} for batch in (1, 2)}
    found = planes(tmp_path, {INFER: speed(2.0), INFER.with_factors(batch=8): speed(1.0), **batches})
    assert [(point.is_open, point.beaten_by) for point in found["plane"].points] == [(True, None)] * 4


def test_latencies_of_different_kinds_show_no_win(tmp_path: Path) -> None:
    """The host sees what the GPU's events do not."""
    metrics = {
        INFER: speed(2.0, 3.0),
        INT8: speed(1.0, 1.0),
        accuracy(INFER): {"top1_percent": 90.0},
        accuracy(INT8): {"top1_percent": 98.0},
    }
    found = planes(tmp_path, metrics, {INFER: "host", INT8: "between events"})
    beaten = {name: one.points[0] for name, one in found.items()}
    assert [point.beaten_by for point in beaten.values()] == [INT8] * 3
    assert {name: point.is_shown for name, point in beaten.items()} == {
        "plane": False,
        "plane-accuracy-energy": True,
        "plane-energy-latency": False,
    }
