# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

from pybench.analysis.findings.kernel_times import LONGEST, find_kernel_times, longest_of
from pybench.case import Case
from pybench.dataset import load
from pybench.kernels.launches import KernelLaunches, profile_of_launches
from pybench.kernels.profile import Kernel, Profile
from tests.analysis.findings.test_explanation import engines
from tests.support.campaigns import CampaignBuilder

INFER = Case(workload="infer", model="resnet50", runtime="onnxruntime")


def timed(*times_ms: float) -> Profile:
    kernels = [
        Kernel(name=f"k{number}", kernel="Conv", work="multiplying", nodes=(f"n{number}",), reads=(f"t{number}",),
               time_ms=time_ms)
        for number, time_ms in enumerate(times_ms)
    ]  # fmt: skip
    move = Kernel(name="move", kernel="Transpose", work="moving", writes=("t0",), time_ms=0.5)
    return Profile(source="onnxruntime", method="by hand", iterations=1, kernels=(move, *kernels))


def test_the_longest_nodes_come_first_with_what_moves_for_them() -> None:
    found = longest_of(timed(1.0, *(0.1 * number for number in range(1, 15))))
    assert len(found) == LONGEST
    assert (found[0].nodes, found[0].time_ms) == (("n0",), 1.5)
    assert [entry.nodes for entry in found[1:3]] == [("n14",), ("n13",)]


def test_kernels_that_name_no_node_are_told_by_their_names() -> None:
    found = longest_of(profile_of_launches(KernelLaunches((("gemm_f16", 0.2), ("other", 0.5), ("gemm_f16", 0.4)))))
    assert [(entry.nodes, entry.own[0].kernel, len(entry.own)) for entry in found] == [
        ((), "gemm_f16", 2), ((), "other", 1),
    ]  # fmt: skip


def test_every_case_with_a_profile_is_found_once(tmp_path: Path) -> None:
    other = INFER.with_factors(batch=2)
    builder = CampaignBuilder(tmp_path / "c", [INFER, other], repetitions=2)
    builder.run(INFER, 1, {"latency_mean_ms": 1.0})
    builder.run(INFER, 2, {"latency_mean_ms": 1.0}, profile=timed(1.0))
    builder.run(other, 1, {"latency_mean_ms": 1.0})
    (found,) = find_kernel_times(load(builder.path))
    assert found.case == INFER
    assert found.as_json()["longest"][0] == {"nodes": ["n0"], "kernels": ["Conv"], "time_ms": 1.5, "around_ms": 0.5}


def test_an_engine_without_times_has_no_longest_node(tmp_path: Path) -> None:
    builder, _ = engines(tmp_path / "c", int8="int8", fp32="fp32")
    found = find_kernel_times(load(builder.path))
    assert [(len(times.profile.running), times.longest) for times in found] == [(137, ()), (104, ())]
