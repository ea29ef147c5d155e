# SPDX-License-Identifier: Apache-2.0
"""Blocks that are torn apart: begun in one place, and what is missing of them is about to run in another.

Cases are compared within a block, so all of a block has to come from one machine, one GPU and one number of CPUs. With
`--whole-blocks`, what the other place did of such a block is done again here; its attempts stay, and no longer count.
Where a process of another place is still at work in the block, the block is left to that process.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pybench.campaign.claims import Claimant, is_alive, read_claimant
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.case import Case, affinity
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
    to_do = {run.cell for run in pending}
    found = set()
    for run in planned:
        latest = campaign.latest(*run.cell) if run.block in open_blocks else None
        if latest and run.cell not in to_do and not is_of(latest, claimant, machine, run.case):
            found.add(run.cell)
    return frozenset(found)


def at_work_elsewhere(
    campaign: CampaignDirectory, runs: Sequence[PlannedRun], claimant: Claimant, machine: Machine
) -> RunDirectory | None:
    """What a process in another place has begun of these runs and may still be at; None: there is no such process.

    A claim names no GPU, so any other process is in another place if the case would use one.
    """
    for run in runs:
        claims = campaign.claims(*run.cell)
        if not claims or claims[-1].is_complete or not is_alive(claims[-1].claim, claimant):
            continue
        other = read_claimant(claims[-1].claim)
        if other is not None and (other.machine != claimant.machine or machine.gpus(run.case)):
            return claims[-1]
    return None


def torn_text(torn: Collection[tuple[str, int]], *, are_selected: bool) -> str:
    """What to say before blocks go on in another place, of what `done_elsewhere` found."""
    blocks = sorted({block for _, block in torn})
    named = f"block {blocks[0]}" if len(blocks) == 1 else f"{len(blocks)} blocks (the first is {blocks[0]})"
    these = "it" if len(blocks) == 1 else "them"
    return (
        f"{named} began on another machine or GPU, or with another number of CPUs; cases are compared within a block, "
        f"and --whole-blocks{'' if are_selected else ' without --filter'} repeats {these} here"
    )


def is_of(run: RunDirectory, claimant: Claimant, machine: Machine, case: Case) -> bool:
    """Whether a complete run that measured something was made on the claimant's machine as it is now: by a GPU that the
    case would use, and with as many CPUs."""
    if run.read_run()["outcome"] != "ok":
        return True  # nothing in it that could be paired
    maker = read_claimant(run.claim)
    device = run.read_summary()["labels"].get("device", "cpu")
    if maker is None or maker.machine != claimant.machine or (device != "cpu" and device not in machine.gpus(case)):
        return False
    here, there = machine.cpus(case), run.read_environment().get("cpus_allowed")
    return here is None or there is None or len(affinity.parse(there)) == here
