# SPDX-License-Identifier: Apache-2.0
"""Small real campaigns of the `noop` workload, which does nothing but idle for its energy window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case, case_to_json
from pybench.machine import Machine
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine


def noop_cases(count: int, idle_s: float = 0.0) -> list[Case]:
    return [Case(workload="noop", iterations=number + 1, energy_window_s=idle_s) for number in range(count)]


def plan_content(cases: Sequence[Case], repetitions: int, require: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "name": "trial",
        "seed": 7,
        "repetitions": repetitions,
        "cases": [case_to_json(case) for case in cases],
        "criteria": [],
        "require": list(require),
        "files": {},
    }


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignDirectory:
    return CampaignDirectory(tmp_path / "campaign")


Run = Callable[..., tuple[runner.Tally, Quiet]]


@pytest.fixture
def run(campaign: CampaignDirectory) -> Run:
    """Opens the campaign with a plan and runs it in this process."""

    def start(content: dict[str, Any], machine: Machine | None = None, **options: Any) -> tuple[runner.Tally, Quiet]:
        runner.open_for_running(campaign, content, "name: trial\n")
        listener = Quiet()
        plan = parse_resolved_plan(content)
        machine = machine or WillingMachine()
        return runner.run_campaign(campaign, plan, runner.Options(**options), machine, listener), listener

    return start
