# SPDX-License-Identifier: Apache-2.0
"""Blocks that a batch system tore apart: begun on one machine, and what is missing of them is about to run on another.

Cases are compared within a block, so all of a block has to come from one machine and one GPU. What the other machine
did of such a block is done again here; its attempts stay, and no longer count.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.campaign.claims import Claimant, read_claimant
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.machine import Machine
from pybench.runner.schedule import PlannedRun


def done_elsewhere(
    campaign: CampaignDirectory,
    planned: Sequence[PlannedRun],
    pending: Sequence[PlannedRun],
    claimant: Claimant,
    machine: Machine,
) -> frozenset[tuple[str, int]]:
    """(case id, block) of the runs to do again, among the planned ones of blocks that have pending ones."""
    open_blocks = {run.block for run in pending}
    to_do = {(run.case.id, run.block) for run in pending}
    found = set()
    for run in planned:
        latest = campaign.latest(run.case.id, run.block) if run.block in open_blocks else None
        if latest and (run.case.id, run.block) not in to_do and not is_of(latest, claimant, machine.gpus(run.case)):
            found.add((run.case.id, run.block))
    return frozenset(found)


def is_of(run: RunDirectory, claimant: Claimant, gpus: Sequence[str]) -> bool:
    """Whether a complete run that measured something was made on the claimant's machine, by a GPU that it has."""
    if run.read_run()["outcome"] != "ok":
        return True  # nothing in it that could be paired
    maker = read_claimant(run.claim)
    device = run.read_summary()["labels"].get("device", "cpu")
    return maker is not None and maker.machine == claimant.machine and (device == "cpu" or device in gpus)
