# SPDX-License-Identifier: Apache-2.0
"""The suites of GC-Bench have as many runs as the paper says, by what `expand --json` prints, and their reports have
what its authors printed or wished for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.cli import main
from pybench.dataset import load
from pybench.measure.quantity import Quantity
from pybench.plan import load_plan
from pybench.report import write_report
from tests.plans.ready import FOLDER
from tests.report.pages import rows_of, section
from tests.support.campaigns import CampaignBuilder
from tests.support.power_limits import replayed_metrics

MAIN = ("train", "infer", "h2d", "ablation", "sensitivity")


def runs_of(suite: str, capsys: pytest.CaptureFixture[str]) -> int:
    """The runs of a suite, added up case by case."""
    assert main(["expand", str(FOLDER / "gcbench" / f"{suite}.yaml"), "--json"]) == 0
    expanded = json.loads(capsys.readouterr().out)
    runs = sum(case["repetitions"] for case in expanded["cases"])
    assert runs == expanded["runs"]
    return runs


def test_the_five_suites_have_1018_runs_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(runs_of(suite, capsys) for suite in MAIN) == 1018


def test_the_suite_under_power_limits_has_144_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert runs_of("powercap", capsys) == 144


@pytest.mark.parametrize("suite", [*MAIN, "powercap"])
def test_a_comment_of_each_suite_tells_how_many_runs_it_has(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    comment = (FOLDER / "gcbench" / f"{suite}.yaml").read_text().partition("schema_version")[0]
    assert f"has {runs_of(suite, capsys)}" in comment


# What a board draws and how much faster it then is, of the power limits of the suite; replayed from a recording.
DRAWN_W = {None: 690, 500: 525, 400: 125}
REPORTED = {  # suite -> sections that its report has to have
    "train": {"published", "cells"},
    "infer": {"published", "cells", "service"},
    "h2d": {"published", "cells", "curves"},
    "ablation": {"found"},
    "sensitivity": {"curves"},
    "powercap": {"limits"},
}


def numbers_of(case: Case, block: int) -> dict[str, float | Quantity]:
    """What a run of a case might store: larger work takes longer, go_rust costs 1 % more, and blocks drift together."""
    drift = 1 + 0.01 * (block % 3)
    if case.workload == "h2d":
        rate = 40.0 * case.transfer_bytes / (case.transfer_bytes + 1e6) / (1 if case.pinned else 3)
        return {"bandwidth_gb_per_s": rate * drift, "gpu_energy_per_gb_j": 100.0 * drift / rate}
    tokens = case.batch * case.seq_len
    slower = (1.01 if case.path == "go_rust" else 1.0) * (2 if case.model == "tinylm-large" else 1)
    latency_ms = drift * slower * (1 + tokens / 4096)
    return {
        "latency_mean_ms": latency_ms,
        "latency_p99_ms": latency_ms,
        "throughput_tokens_per_s": tokens / latency_ms * 1e3,
        "throughput_samples_per_s": case.batch / latency_ms * 1e3,
        "gpu_energy_per_token_j": drift * slower * 0.003,
    }


@pytest.mark.slow
@pytest.mark.parametrize("suite", REPORTED)
def test_the_report_of_a_suite_has_references_curves_and_the_best_limit_of_replayed_power(
    suite: str, tmp_path: Path
) -> None:
    plan = load_plan(FOLDER / "gcbench" / f"{suite}.yaml")
    declared = [
        {
            "name": one.name,
            "baseline": one.baseline,
            "where": one.where,
            "accept": {criterion.name: criterion.threshold for criterion in one.accept},
            "reference": one.reference,
        }
        for one in plan.contrasts
    ]
    builder = CampaignBuilder(tmp_path / "c", plan.cases, repetitions=3, declared=declared)
    replayed = replayed_metrics()
    for block in (1, 2, 3):
        for case in plan.cases:
            limited = suite == "powercap"
            stored = replayed[DRAWN_W[case.power_limit_w]][block - 1] if limited else numbers_of(case, block)
            builder.run(case, block, stored)
    page = write_report(load(builder.path))
    missing = {name for name in REPORTED[suite] if not section(page, name)}
    assert not missing
    if "published" in REPORTED[suite]:
        assert all(row["ours"] for row in rows_of(page, "published"))
    if suite == "powercap":
        assert section(page, "limits").count("500 W has the least energy for a token") == len(plan.cases) / len(DRAWN_W)
