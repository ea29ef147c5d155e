# SPDX-License-Identifier: Apache-2.0
"""Order of architectures and batch friction, on campaigns whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.findings.architectures import ArchitectureFinding
from pybench.case import Case
from pybench.dataset import load
from tests.support.architectures import BATCH, STACK, TIMES_MS, build_stacks
from tests.support.campaigns import CampaignBuilder, build_typical


def found_in(builder: CampaignBuilder) -> ArchitectureFinding:
    found = analyse(load(builder.path)).architectures
    assert found is not None
    return found


def test_a_reversed_order_is_told_from_one_that_is_kept(tmp_path: Path) -> None:
    found = found_in(build_stacks(tmp_path / "c"))
    assert {one.first.batch: one.change for one in found.orders} == {1: "reversed", BATCH: "kept"}
    reversed_one = next(one for one in found.orders if one.change == "reversed")
    assert [reversed_one.first.block_type, reversed_one.second.block_type] == ["conv", "mlp"]
    assert reversed_one.eager.value == pytest.approx(1.5, rel=0.02)
    assert reversed_one.compiled.value == pytest.approx(0.5 / 0.8, rel=0.02)
    assert (reversed_one.eager_first.runtime, reversed_one.first.runtime) == ("torch", "torch-compile")


def test_a_compiled_case_is_compared_with_the_eager_one_of_as_many_threads(tmp_path: Path) -> None:
    def case(runtime: str, block: str, threads: int) -> Case:
        return STACK.with_factors(runtime=runtime, block_type=block, threads=threads)

    kinds = [(r, b, t) for r in ("torch", "torch-compile") for b in ("conv", "mlp") for t in (1, 2)]
    builder = CampaignBuilder(tmp_path / "c", [case(*kind) for kind in kinds], repetitions=3)
    for block in (1, 2, 3):
        for kind in kinds:
            builder.run(case(*kind), block, {"latency_mean_ms": 1.0 + (kind[1] == "conv") * kind[2]})
    orders = found_in(builder).orders
    assert {(one.first.threads, one.eager_first.threads) for one in orders} == {(1, 1), (2, 2)}
    assert sorted(one.eager.value for one in orders) == pytest.approx([2, 3])


def test_the_intervals_share_their_error(tmp_path: Path) -> None:
    found = found_in(build_stacks(tmp_path / "c"))
    assert found.confidence == pytest.approx(1 - 0.05 / 4)  # two ratios at each of two batches
    assert {one.eager.confidence for one in found.orders} == {found.confidence}


def test_noise_leaves_the_order_open(tmp_path: Path) -> None:
    found = found_in(build_stacks(tmp_path / "c", noise=0.8, repetitions=4))
    assert {one.change for one in found.orders} == {"open"}


def test_one_block_decides_nothing(tmp_path: Path) -> None:
    assert {one.change for one in found_in(build_stacks(tmp_path / "c", repetitions=1)).orders} == {"open"}


def test_batch_friction_is_time_per_sample_over_that_at_batch_1(tmp_path: Path) -> None:
    found = found_in(build_stacks(tmp_path / "c"))
    assert {one.case.batch for one in found.frictions} == {BATCH}
    for one in found.frictions:
        runtime, block = str(one.case.runtime), one.case.block_type
        truth = TIMES_MS[runtime, block, BATCH] / BATCH / TIMES_MS[runtime, block, 1]
        assert one.ratio.value == pytest.approx(truth, rel=0.02)
        assert one.ratio.lower is not None
        assert one.ratio.upper is not None
        assert one.ratio.upper / one.ratio.lower < 1.05  # the drift of blocks, 20 %, is not in it


def test_a_campaign_without_architectures_says_nothing_of_them(tmp_path: Path) -> None:
    assert analyse(load(build_typical(tmp_path / "c", repetitions=1).path)).architectures is None


def test_the_findings_are_plain_data(tmp_path: Path) -> None:
    stored = json.loads(json.dumps(found_in(build_stacks(tmp_path / "c")).as_json()))
    assert [one["change"] for one in stored["orders"]] == ["reversed", "kept"]
    assert len(stored["batch_friction"]) == 4
