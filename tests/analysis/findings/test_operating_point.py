# SPDX-License-Identifier: Apache-2.0
"""The best power limit, on campaigns whose truth is known and on energies of recorded power."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pybench.analysis import analyse
from pybench.analysis.findings.operating_point import OperatingPoint, share_of_wins
from pybench.case import Case
from pybench.dataset import load
from tests.support.campaigns import ENVIRONMENT_CONTENT, CampaignBuilder
from tests.support.energies import ON_A_BOARD, energy_window, store_energy
from tests.support.power_limits import LIMITS_W, SETTING, build_limits, build_replayed, metrics, speed_of


def found_in(builder: CampaignBuilder) -> tuple[OperatingPoint, ...]:
    return analyse(load(builder.path)).operating_points


def test_the_limit_with_the_least_energy_is_found_with_what_it_costs(tmp_path: Path) -> None:
    (found,) = found_in(build_limits(tmp_path / "c"))
    assert [point.limit_w for point in found.points] == [*LIMITS_W, None]
    best = found.best
    assert best is not None
    assert (best.limit_w, best.wins_ratio) == (300, 1.0)  # 2.5 % below 250 W, with a noise of 0.2 %
    truth = speed_of(300) / speed_of(700)
    assert best.relative_speed is not None
    assert best.relative_speed.value == pytest.approx(truth, rel=0.005)
    assert best.relative_speed.lower is not None
    assert best.relative_speed.upper is not None
    assert best.relative_speed.lower < truth < best.relative_speed.upper
    assert best.relative_energy is not None
    assert best.relative_energy.value == pytest.approx(300 / 700 / truth, rel=0.005)
    assert (found.reference, found.points[-1].relative_speed) == (found.points[-1].case, None)
    assert (found.energy.name, found.speed.name) == ("gpu_energy_per_token_j", "throughput_tokens_per_s")
    assert sum(point.wins_ratio or 0 for point in found.points) == pytest.approx(1)


def test_the_energy_delay_product_has_a_best_limit_of_its_own(tmp_path: Path) -> None:
    (found,) = found_in(build_limits(tmp_path / "c"))
    best, balanced = found.best, found.best_energy_delay
    assert best is not None
    assert balanced is not None
    assert (best.limit_w, balanced.limit_w) == (300, 500)
    assert balanced.energy_delay.value == pytest.approx(500 / speed_of(500) ** 2, rel=0.03)
    assert sum(point.delay_wins_ratio or 0 for point in found.points) == pytest.approx(1)


def test_each_setting_has_an_operating_point_of_its_own(tmp_path: Path) -> None:
    training = Case(workload="train", model="tinylm-small", runtime="torch", precision="amp-bf16", batch=4)
    settings = (SETTING, SETTING.with_factors(model="tinylm-large"), training)
    found = found_in(build_limits(tmp_path / "c", settings, repetitions=3))
    assert [(one.setting.workload, one.setting.model) for one in found] == [
        ("infer", "tinylm-small"),
        ("infer", "tinylm-large"),
        ("train", "tinylm-small"),
    ]


def test_limits_that_noise_tells_apart_no_more_share_the_wins(tmp_path: Path) -> None:
    (found,) = found_in(build_limits(tmp_path / "c", limits_w=(285, 287), noise=0.01, repetitions=5))
    assert all(0.02 < (point.wins_ratio or 0) < 0.98 for point in found.points)


def test_without_the_board_as_it_is_the_highest_limit_is_the_reference(tmp_path: Path) -> None:
    (found,) = found_in(build_limits(tmp_path / "c", limits_w=(500, 300, 400)))
    assert [point.limit_w for point in found.points] == [300, 400, 500]
    assert found.reference is not None
    assert found.reference.power_limit_w == 500


def test_images_are_judged_by_the_sample(tmp_path: Path) -> None:
    case = Case(workload="infer", model="resnet50", runtime="tensorrt")
    cases = [case.with_factors(power_limit_w=limit) for limit in (300, 400)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2)
    for block in (1, 2):
        for one, energy_j in zip(cases, (0.02, 0.03), strict=True):
            builder.run(one, block, {"gpu_energy_per_sample_j": energy_j, "throughput_samples_per_s": 100.0 * block})
    (found,) = found_in(builder)
    assert found.energy.name == "gpu_energy_per_sample_j"
    assert found.best is not None
    assert found.best.limit_w == 300


def test_one_limit_is_no_choice_and_a_copy_of_other_factors_neither(tmp_path: Path) -> None:
    assert found_in(build_limits(tmp_path / "c", limits_w=(300,))) == ()
    assert found_in(build_limits(tmp_path / "d", limits_w=(None,))) == ()


def test_one_block_has_a_best_limit_and_no_share(tmp_path: Path) -> None:
    (found,) = found_in(build_limits(tmp_path / "c", repetitions=1))
    assert found.best is not None
    assert [point.wins_ratio for point in found.points] == [None] * 6
    assert found.as_json()["resamples"] == 0


def test_a_limit_without_a_number_is_named_and_the_others_are_compared(tmp_path: Path) -> None:
    cases = [SETTING.with_factors(power_limit_w=limit) for limit in (200, 300, 400)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3)
    for block in (1, 2, 3):
        builder.run(cases[0], block, outcome="unsupported", reason="no_power_limit", detail="the board takes 300 W up")
        builder.run(cases[1], block, metrics(1.0, 100.0))
        if block != 2:
            builder.run(cases[2], block, metrics(1.1, 120.0))
    (found,) = found_in(builder)
    assert found.left_out == ((cases[0], "unsupported: no_power_limit"),)
    assert found.blocks == (1, 3)
    assert found.best is not None
    assert found.best.limit_w == 300


def test_blocks_of_another_python_are_not_compared(tmp_path: Path) -> None:
    cases = [SETTING.with_factors(power_limit_w=limit) for limit in (300, 400)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3)
    usual, updated = ({**ENVIRONMENT_CONTENT, "python": version} for version in ("3.11.2", "3.12.1"))
    for block in (1, 2, 3):
        builder.run(cases[0], block, metrics(1.0, 100.0), environment=updated if block == 3 else usual)
        builder.run(cases[1], block, metrics(1.2, 120.0), environment=usual)
    (found,) = found_in(builder)
    assert found.blocks == (1, 2)


def test_limits_without_a_common_block_have_no_operating_point(tmp_path: Path) -> None:
    cases = [SETTING.with_factors(power_limit_w=limit) for limit in (300, 400)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2)
    for block, case in enumerate(cases, start=1):
        builder.run(case, block, metrics(1.0, 100.0))
    (found,) = found_in(builder)
    assert (found.points, found.best, found.reference) == ((), None, None)
    assert [why for _, why in found.left_out] == ["no block has a value of every limit"] * 2
    json.dumps(found.as_json())


def test_what_the_board_had_in_force_is_told(tmp_path: Path) -> None:
    cases = [SETTING.with_factors(power_limit_w=limit) for limit in (400, None)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1)
    for case, seen_w in zip(cases, (400.0, 700.0), strict=True):
        board = {**ON_A_BOARD, "measuring": {**ON_A_BOARD["measuring"], "gpu": {"power_limit_w": seen_w}}}
        store_energy(builder.run(case, 1, metrics(1.0, 100.0), environment=board), energy_window())
    (found,) = found_in(builder)
    assert [(point.limit_w, point.seen_w) for point in found.points] == [(400, 400.0), (None, 700.0)]


def test_shares_are_those_of_all_resamples_of_two_blocks() -> None:
    # Of the four equally likely draws of two blocks, the first row wins (1, 1), the second (2, 2). In (1, 2) and (2, 1)
    # the products decide: 1 * 4 against 2 * 3.
    shares = share_of_wins(np.array([[1.0, 4.0], [2.0, 3.0]]), seed=1)
    assert shares is not None
    assert shares == pytest.approx([0.75, 0.25], abs=0.02)


def test_equal_rows_share_every_win() -> None:
    shares = share_of_wins(np.array([[1.0, 2.0, 3.0]] * 3 + [[2.0, 4.0, 6.0]]), seed=1)
    assert shares is not None
    assert shares == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])


def test_recorded_power_has_the_operating_point_of_its_reference(tmp_path: Path) -> None:
    (found,) = found_in(build_replayed(tmp_path / "c"))
    # Mean powers of the recording's 10 s windows, by the counter: 125, 524, 641 and 690 W (tests/measure/data).
    truth = {limit: watts / (1000 * (limit - 100) ** 0.8) for limit, watts in
             {125: 125.0, 525: 524.0, 640: 641.0, 690: 690.0}.items()}  # fmt: skip
    for point in found.points:
        assert point.limit_w is not None
        # Heat and clocks make the first second of a load another one than the tenth, most so at the power cap.
        assert point.energy.value == pytest.approx(truth[point.limit_w], rel=0.04)
    assert found.best is not None
    assert found.best.limit_w == min(truth, key=lambda limit: truth[limit]) == 525
    assert found.best.wins_ratio is not None
    assert found.best.wins_ratio > 0.9
    json.dumps(found.as_json())
