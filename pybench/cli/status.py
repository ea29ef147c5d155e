# SPDX-License-Identifier: Apache-2.0
"""`pybench status`."""

from __future__ import annotations

from pybench import runner
from pybench.campaign.directory import open_campaign
from pybench.campaign.resolved_plan import read_resolved_plan
from pybench.case import distinct_titles
from pybench.cli.batch_jobs import print_queue, queue_json
from pybench.cli.options import DirectoryArgument, JsonOption
from pybench.cli.show import counts_text, print_json
from pybench.cli.stopping import progress_text, stopping_json
from pybench.cli.tally import name_uncounted, name_unfinished, tally_json
from pybench.words import counted


def status(directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Print how far a campaign is, and what its batch jobs do."""
    campaign = open_campaign(directory)
    plan = read_resolved_plan(campaign)
    titles = distinct_titles(plan.cases)
    rows, total = [], runner.Tally()
    for case in plan.cases:
        planned = list(runner.planned_runs([case], plan.seed, plan.repetitions))
        rows.append((case, runner.tally(campaign, plan, planned)))
        total.add(rows[-1][1])
    if as_json:
        cases = [
            {
                "case_id": case.id,
                "title": titles[case.id],
                "repetitions": plan.repetitions.of(case),
                "outcomes": dict(row.outcomes),
            }
            for case, row in rows
        ]
        print_json(
            {
                "name": plan.name,
                "repetitions": plan.repetitions.usual,
                **tally_json(total),
                **stopping_json(plan.repetitions),
                "cases": cases,
                "unfinished": [making.as_json() for making in runner.unfinished_makings(campaign)],
                **queue_json(campaign),
            }
        )
        return
    for case, row in rows:
        print(f"{case.id[:12]}  {counts_text(row.outcomes):<24}  {titles[case.id]}")
    runs = f"{plan.repetitions.most}{counted(total.outcomes.total(), 'run')}"
    print(f"{plan.name}: {counts_text(total.outcomes)} of {runs}")
    if plan.repetitions.rule is not None:
        print(progress_text(campaign, plan, plan.repetitions.rule))
    print_queue(campaign, plan)
    name_unfinished(campaign)
    name_uncounted(runner.uncounted(campaign, plan), plan)
