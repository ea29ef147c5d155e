# SPDX-License-Identifier: Apache-2.0
"""What `run` and `status` say of a campaign's runs as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.cli.show import say
from pybench.words import counted


def tally_json(result: runner.Tally) -> Mapping[str, Any]:
    return {
        "outcomes": dict(result.outcomes),
        "uncovered": result.uncovered,
        "required_but_invalid": dict(result.invalid),
        "interrupted": result.interrupted,
        "busy": result.busy,
        "not_repeated": result.unrepeated,
    }


def name_unfinished(campaign: CampaignDirectory) -> None:
    """Names what was ended early and goes on at the next run."""
    for making in runner.unfinished_makings(campaign):
        say(making.text(campaign.path))


def name_uncounted(runs: int, plan: ResolvedPlan) -> None:
    if runs:
        why = f"the plan has {plan.repetitions.text(plan.cases)} now"
        say(f"not counted, but kept on disk: {counted(runs, 'run')}, because {why}")
