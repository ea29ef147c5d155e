# SPDX-License-Identifier: Apache-2.0
"""What a warm cache does to comparisons, on campaigns whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pybench.analysis import analyse
from pybench.case import Case
from pybench.dataset import load
from pybench.report import write_report
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment

FP16 = Case(workload="infer", model="resnet50", runtime="tensorrt", precision="fp16", device="cuda", batch=1)
INT8 = FP16.with_factors(precision="int8+fp16", images="synthetic-100")
TIMES_MS = {"warm": {FP16: 1.0, INT8: 0.8}, "cold": {FP16: 1.02, INT8: 0.9}}
COMPARED = {"baseline": {"precision": "fp16"}}


def build(folder: Path, caches: tuple[str, ...] = ("warm", "cold"), blocks: int = 6, noise: float = 0.002) -> Path:
    """Both precisions with each cache, in blocks that drift by 20 %."""
    cases = {(cache, case): case.with_factors(cache=cache) for cache in caches for case in (FP16, INT8)}
    builder = CampaignBuilder(folder, list(cases.values()), repetitions=blocks, declared=COMPARED)
    rng = np.random.default_rng(3)
    for block in range(1, blocks + 1):
        drift = float(np.exp(rng.normal(0, 0.2)))
        for (cache, case), planned in cases.items():
            latency_ms = TIMES_MS[cache][case] * drift * float(np.exp(rng.normal(0, noise)))
            builder.run(planned, block, {"latency_mean_ms": latency_ms})
    return folder


def test_the_share_of_the_cache_is_the_ratio_of_both_ratios(tmp_path: Path) -> None:
    (found,) = analyse(load(build(tmp_path / "c"))).cache_effects
    assert found.metric == "latency_mean_ms"
    assert found.warm.value == pytest.approx(0.8, rel=0.01)
    assert found.cold.value == pytest.approx(0.9 / 1.02, rel=0.01)
    assert found.by_cache.value == pytest.approx(found.warm.value / found.cold.value)
    assert found.by_cache.lower is not None
    assert found.by_cache.upper is not None
    assert found.by_cache.lower < 0.8 / (0.9 / 1.02) < found.by_cache.upper
    assert found.by_cache.upper - found.by_cache.lower < 0.02  # the drift of blocks cancels
    assert found.is_shown
    assert json.loads(json.dumps(found.as_json()))["baseline_id"] == FP16.id


def test_one_block_shows_nothing(tmp_path: Path) -> None:
    (found,) = analyse(load(build(tmp_path / "c", blocks=1))).cache_effects
    assert (found.by_cache.lower, found.is_shown) == (None, False)


@pytest.mark.parametrize("caches", [("warm",), ("cold",)])
def test_one_cache_alone_says_nothing_of_it(tmp_path: Path, caches: tuple[str, ...]) -> None:
    assert analyse(load(build(tmp_path / "c", caches))).cache_effects == ()


def test_only_blocks_count_that_have_all_four_runs(tmp_path: Path) -> None:
    builder = CampaignBuilder(
        tmp_path / "c",
        [case.with_factors(cache=cache) for cache in ("warm", "cold") for case in (FP16, INT8)],
        repetitions=3,
        declared=COMPARED,
    )
    for block in (1, 2, 3):
        for cache, times_ms in TIMES_MS.items():
            for case, latency_ms in times_ms.items():
                if (block, cache, case) != (2, "cold", INT8):
                    builder.run(case.with_factors(cache=cache), block, {"latency_mean_ms": latency_ms * block})
    (found,) = analyse(load(builder.path)).cache_effects
    assert {found.warm.n, found.cold.n, found.by_cache.n} == {2}


def test_a_block_whose_cold_runs_had_other_software_does_not_count(tmp_path: Path) -> None:
    """Each pair of the block had one software, and its two ratios had not."""
    cases = [case.with_factors(cache=cache) for cache in ("warm", "cold") for case in (FP16, INT8)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3, declared=COMPARED)
    for block in (1, 2, 3):
        for cache, times_ms in TIMES_MS.items():
            version = "10.9.0" if (block, cache) == (3, "cold") else "10.6.0"
            for case, latency_ms in times_ms.items():
                builder.run(
                    case.with_factors(cache=cache),
                    block,
                    {"latency_mean_ms": latency_ms * block},
                    environment=environment(packages={"tensorrt": version}),
                )
    (found,) = analyse(load(builder.path)).cache_effects
    assert {found.warm.n, found.cold.n, found.by_cache.n} == {2}


def test_the_report_says_it_and_has_a_table(tmp_path: Path) -> None:
    folder = build(tmp_path / "c")
    write_report(load(folder))
    page = (folder / "report" / "index.html").read_text()
    assert "with warm caches" in page
    table = (folder / "report" / "tables" / "caches.csv").read_text().splitlines()
    assert len(table) == 2
    assert table[1].startswith(f"{INT8.id},{FP16.id},")
