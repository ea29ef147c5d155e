# SPDX-License-Identifier: Apache-2.0
"""The section of a projection: only where the report is asked for one, with its figure and its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.dataset import load
from pybench.processes import Processes
from pybench.projection import read_scenario, resolve, simulate
from pybench.report import write_report
from tests.projection.test_scenario import SCENARIO, written
from tests.support.campaigns import build_typical


@pytest.mark.process
def test_the_section_is_there_where_it_is_asked_for(tmp_path: Path) -> None:
    dataset = load(build_typical(tmp_path / "campaign", repetitions=2).path)
    scenario = read_scenario(written(tmp_path, SCENARIO))
    projection = simulate(scenario, resolve(scenario, dataset))
    page = write_report(dataset, tmp_path / "with", projection=projection, processes=Processes(2))
    text = page.read_text(encoding="utf-8")
    assert "From tokens to a fleet" in text
    assert "chosen: a guess" in text
    assert "Results partly follow from inputs that were chosen." in text
    assert ("Quartiles are those of a log-normal distribution." in text) == ("quartiles" in SCENARIO)
    assert "Scenario small. Only inputs that are marked" in text
    assert (tmp_path / "with/tables/projection-queries.csv").read_text().startswith("query,median_wh,lower_quartile_wh")
    assert "<svg" in (tmp_path / "with/figures/projection.svg").read_text()
    plain = write_report(dataset, tmp_path / "without").read_text(encoding="utf-8")
    assert "From tokens to a fleet" not in plain
