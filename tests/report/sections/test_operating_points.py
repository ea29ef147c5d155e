# SPDX-License-Identifier: Apache-2.0
"""The section of operating points, read from its files and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.cli import main
from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of, section
from tests.support.campaigns import CampaignBuilder, build_typical
from tests.support.power_limits import SETTING, build_limits, build_replayed, metrics

TRAINING = Case(workload="train", model="tinylm-small", runtime="torch", precision="amp-bf16", batch=4)


def test_a_campaign_without_power_limits_has_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path))
    assert section(page, "limits") == ""
    assert not (page.parent / "tables" / "operating-points.csv").exists()


def test_the_section_names_the_best_limit_of_each_setting_and_what_it_costs(tmp_path: Path) -> None:
    page = write_report(load(build_limits(tmp_path / "c", (SETTING, TRAINING)).path))
    shown = section(page, "limits")
    assert shown.count("300 W has the least energy for a token") == 2
    assert "(in 100 % of resamples); against the board as it is its energy is 0.69" in shown
    assert "500 W has the least energy-delay product" in shown
    rows = rows_of(page, "operating-points")
    assert [row["power_limit_w"] for row in rows] == ["250", "300", "400", "500", "600", ""] * 2
    best = rows[1]
    assert (best["energy_metric"], best["wins_ratio"]) == ("gpu_energy_per_token_j", "1.0")
    assert float(best["energy_ratio"]) < 0.7 < float(rows[2]["energy_ratio"])
    assert float(best["energy_delay_j_s"]) > float(rows[3]["energy_delay_j_s"])
    assert rows[5]["speed_ratio"] == ""
    assert (page.parent / "figures" / "limits-infer-token.svg").is_file()
    assert (page.parent / "figures" / "limits-train-token.svg").is_file()
    assert "the board as it is has no place" in shown.lower()


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    path = build_limits(tmp_path / "c", repetitions=3).path
    first, second = (write_report(load(path), tmp_path / name, pdf=True) for name in ("first", "second"))
    for file in ("tables/operating-points.csv", "figures/limits-infer-token.svg", "figures/limits-infer-token.pdf"):
        assert (first.parent / file).read_bytes() == (second.parent / file).read_bytes()


def test_limits_that_could_not_be_set_are_rows_with_their_reason(tmp_path: Path) -> None:
    cases = [SETTING.with_factors(power_limit_w=limit) for limit in (200, 300, 400)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1)
    builder.run(cases[0], 1, outcome="unsupported", reason="no_power_limit", detail="needs root")
    builder.run(cases[1], 1, metrics(1.0, 100.0))
    builder.run(cases[2], 1, metrics(1.1, 120.0))
    page = write_report(load(builder.path))
    assert "unsupported: no_power_limit" in section(page, "limits")
    assert "one block: nothing to resample" in section(page, "limits")
    assert [row["energy"] for row in rows_of(page, "operating-points")] == ["1.0", "1.1", ""]


def test_where_nothing_can_be_compared_the_section_says_why(tmp_path: Path) -> None:
    cases = [SETTING.with_factors(power_limit_w=limit) for limit in (None, 400)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1)
    for case in cases:
        builder.run(case, 1, outcome="unsupported", reason="no_gpu", detail="no GPU")
    shown = section(write_report(load(builder.path)), "limits")
    assert (
        "no two limits can be compared (400 W: unsupported: no_gpu; the board as it is: unsupported: no_gpu)" in shown
    )


def test_replayed_power_in_the_terminal_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = build_replayed(tmp_path / "c").path
    assert main(["analyse", str(path)]) == 0
    assert "525 W has the least energy for a token" in capsys.readouterr().out
    assert main(["analyse", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["operating_points"]
    best = next(limit for limit in found["limits"] if limit["case_id"] == found["best_case_id"])
    assert best["power_limit_w"] == 525
    assert 0.9 < best["wins_ratio"] <= 1
    assert best["relative_speed"]["value"] == pytest.approx((425 / 590) ** 0.8)
