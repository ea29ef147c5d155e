# SPDX-License-Identifier: Apache-2.0
"""Effects over blocks of several boards: each board's own, each model's own, and whether they are equal."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.oneway import anova_oneway

from pybench.analysis import Analysis, analyse
from pybench.analysis.findings.boards import BoardEffects
from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.analysis.statistics.paired import holm
from pybench.case import Case
from pybench.dataset import load
from pybench.dataset.coverage import measure
from pybench.report.numbers import format_estimate
from pybench.report.sections.findings.sentences import sentence_groups
from pybench.report.sections.reliability.boards import board_models_table, boards_table
from pybench.report.sections.reliability.doubts import doubts
from pybench.report.sentences import Sentence
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment

FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = FP32.with_factors(precision="int8")
BLOCKS = 10
NOISE = np.random.default_rng(5).normal(0, 0.002, (BLOCKS, 2))


def ran(
    folder: Path,
    gains: tuple[float, ...],
    *,
    models: str = "A",
    judged: bool = True,
    noise: Any = NOISE,
    **accept: float,
) -> Analysis:
    """Blocks on as many boards as `gains` in turn. All cases of a board are as fast; INT8 besides by its gain.

    `models`: the boards' models in turn, a letter each.
    """
    criteria = {"accept": accept or {"speedup_min": 1.1}} if judged else {}
    declared = {"baseline": {"precision": "fp32"}, **criteria}
    builder = CampaignBuilder(folder, [FP32, INT8], repetitions=BLOCKS, declared=declared)
    for block in range(1, BLOCKS + 1):
        board = (block - 1) % len(gains)
        where = environment(gpu={"uuid": f"GPU-{board}-of-a-long-name", "name": models[board % len(models)]})
        common = (2.0 + board) * np.exp(noise[block - 1])
        for case, factor in ((FP32, 1.0), (INT8, 1 / gains[board])):
            latency_ms = float(common[int(case is INT8)]) * factor
            metrics = {"latency_mean_ms": latency_ms, "throughput_samples_per_s": 1000 / latency_ms}
            builder.run(case, block, metrics, environment=where, labels={"device": f"GPU-{board}"})
    return analyse(load(folder))


def log_ratios(gains: tuple[float, ...]) -> list[Any]:
    gain = np.log([gains[block % len(gains)] for block in range(BLOCKS)])
    of_blocks = NOISE[:, 0] - NOISE[:, 1] + gain
    return [of_blocks[board :: len(gains)] for board in range(len(gains))]


@pytest.mark.parametrize("gains", [(2.0, 2.03), (2.0, 2.0, 2.08)])
def test_each_board_has_its_own_effect_and_p_is_statsmodels_brown_forsythe(
    tmp_path: Path, gains: tuple[float, ...]
) -> None:
    (found,) = ran(tmp_path / "c", gains).boards
    groups = log_ratios(gains)
    assert [board[:5] for board in found.by_board] == [f"GPU-{number}" for number in range(len(gains))]
    for estimate, group in zip(found.by_board.values(), groups, strict=True):
        assert estimate.value == pytest.approx(np.exp(group.mean()), rel=1e-12)
        assert estimate.n == len(group)
        assert estimate.lower is not None
        assert estimate.lower < estimate.value
    assert found.p_value == pytest.approx(anova_oneway(groups, use_var="bf").pvalue, rel=1e-9)
    assert found.differs


def test_what_all_cases_of_a_board_share_is_no_difference(tmp_path: Path) -> None:
    analysis = ran(tmp_path / "c", (2.0, 2.0))
    (found,) = analysis.boards
    assert not found.differs
    assert analysis.contrasts[0].pairs[0].same_device is True
    titles = [sentence.lead for sentence in said(tmp_path / "c", analysis)]
    assert "Several boards" in titles
    assert "Different devices" not in titles


@pytest.mark.parametrize(("judged", "label"), [(True, "Speed-up"), (False, "Mean latency ratio")])
def test_the_finding_itself_says_where_boards_differ(tmp_path: Path, judged: bool, label: str) -> None:
    def told(folder: Path, gains: tuple[float, ...]) -> tuple[str, Analysis]:
        analysis = ran(folder, gains, judged=judged)
        ((_, sentences),) = sentence_groups(analysis)
        return sentences[0].text, analysis

    text, analysis = told(tmp_path / "differ", (2.0, 2.03))
    effects = sorted(analysis.boards[0].by_board.values(), key=lambda effect: effect.value)
    shown = [format_estimate(effect)[0] for effect in effects]
    assert text.endswith(f" Boards differ in {label}: {shown[0]}× and {shown[1]}×."), text
    assert "Boards differ" not in told(tmp_path / "same", (2.0, 2.0))[0]


def test_boards_that_differ_are_said_and_listed(tmp_path: Path) -> None:
    analysis = ran(tmp_path / "c", (2.0, 2.03))
    (told,) = [sentence for sentence in said(tmp_path / "c", analysis) if sentence.lead == "Boards differ"]
    assert told.text.startswith("blocks ran on 2 boards, and 1 of 1 declared effects differ between them")
    table = boards_table(analysis.boards)
    assert [column.title for column in table.columns][2:5] == ["Quantity", "GPU-0-of-a-l", "GPU-1-of-a-l"]
    ((*_, quantity, first, second, _, _),) = table.rows
    assert quantity.text == "Speed-up"
    assert (first.number, second.number) == (pytest.approx(2.0, rel=0.002), pytest.approx(2.03, rel=0.002))
    (stored,) = analysis.as_json()["effects_by_board"]
    assert stored["inverse"] is True
    assert len(stored["boards"]) == 2


def test_one_board_has_no_table(tmp_path: Path) -> None:
    assert ran(tmp_path / "c", (2.0,)).boards == ()


def test_boards_of_one_block_each_have_no_p(tmp_path: Path) -> None:
    found = ran(tmp_path / "c", tuple(2.0 + 0.1 * number for number in range(BLOCKS))).boards
    assert [one.p_value for one in found] == [None]
    assert not found[0].differs
    (told,) = [one.text for one in said(tmp_path / "c", analyse(load(tmp_path / "c"))) if one.lead == "Several boards"]
    assert "fewer than two blocks on each" in told


def test_models_are_compared_by_the_means_of_their_boards(tmp_path: Path) -> None:
    gains = (2.0, 2.2, 2.01, 2.22)
    analysis = ran(tmp_path / "c", gains, models="AB")
    (found,) = analysis.board_models
    boards = log_ratios(gains)
    means = [group.mean() for group in boards]
    assert found.of_models
    assert list(found.by_board) == ["A", "B"]
    of_first = estimate_mean(Sample.of(means[0::2])).exp()
    assert astuple(found.by_board["A"]) == pytest.approx(astuple(of_first))
    assert of_first.n == 2
    assert found.p_value == pytest.approx(stats.ttest_ind(means[0::2], means[1::2], equal_var=False).pvalue, rel=1e-9)
    assert found.differs
    table = board_models_table(analysis.board_models)
    assert [column.title for column in table.columns][3:6] == ["A", "B", "p (models equal)"]
    (told,) = [sentence for sentence in said(tmp_path / "c", analysis) if sentence.lead == "Models of board differ"]
    assert told.text.startswith("blocks ran on boards of 2 models (A and B), and 1 of 1 declared effects differ")
    ((_, sentences),) = sentence_groups(analysis)
    shown = [format_estimate(effect)[0] for effect in found.by_board.values()]
    assert f" Models of board differ in Speed-up: {shown[0]}× (A) and {shown[1]}× (B)." in sentences[0].text


def test_blocks_of_one_board_are_no_sample_of_its_model(tmp_path: Path) -> None:
    (found,) = ran(tmp_path / "c", (2.0, 2.5), models="AB").board_models
    assert found.p_value is None
    assert not found.differs


def test_boards_of_one_model_have_no_table_of_models(tmp_path: Path) -> None:
    assert ran(tmp_path / "c", (2.0, 2.5)).board_models == ()


def test_values_that_are_counted_differ_without_scatter(tmp_path: Path) -> None:
    still = np.zeros((BLOCKS, 2))
    (differing,) = ran(tmp_path / "differ", (2.0, 2.5), noise=still).boards
    assert differing.p_value == 0
    assert differing.differs
    (same,) = ran(tmp_path / "same", (2.0, 2.0), noise=still).boards
    assert same.p_value is None


def test_p_values_are_corrected_together(tmp_path: Path) -> None:
    analysis = ran(tmp_path / "c", (2.0, 2.004), speedup_min=1.1, throughput_ratio_min=1.0)
    found: tuple[BoardEffects, ...] = analysis.boards
    assert len(found) == 2
    assert [one.p_adjusted for one in found] == holm([one.p_value for one in found])


def said(folder: Path, analysis: Analysis) -> list[Sentence]:
    dataset = load(folder)
    return doubts(dataset, analysis, measure(dataset))
