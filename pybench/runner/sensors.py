# SPDX-License-Identifier: Apache-2.0
"""The sensor profile of every GPU that a campaign uses: found in this machine's store, or measured, then kept with it.

The profile of the campaign's folder is the one that counts, however often the campaign is continued. Where none can be
had, runs assume one and say so (`sensor_assumed`); that is no failure. Two runners share the work by claims, as with
artefacts: who finds a board being measured waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pybench import rundir, storage
from pybench.errors import InputError, PybenchError
from pybench.machine import profiles
from pybench.machine.sensor import Board, measure_profile
from pybench.rundir import CampaignDirectory
from pybench.runner.claims import claim, is_dead, this_process

WAIT_S = 0.5  # between two looks at a board that another runner is measuring


@dataclass(frozen=True, slots=True)
class Means:
    """How profiles are come by. `tell`: is given a line to show; `is_stopping`: whether the user wants to stop;
    `measure`: measures a board, None where that is not wanted."""

    tell: Callable[[str], None]
    is_stopping: Callable[[], bool] = lambda: False
    measure: Callable[[Board], profiles.Profile] | None = measure_profile


def prepare_sensors(campaign: CampaignDirectory, boards: Sequence[Board], means: Means) -> None:
    """Puts a profile of each board into the campaign's folder, unless it is there; says what is assumed instead."""
    for board in boards:
        if campaign.sensor(board.uuid).exists() or means.is_stopping():
            continue
        try:
            _share(campaign, board, means)
        except PybenchError as error:
            means.tell(f"the power sensor of {board.uuid} is assumed, not measured: {error.message}")


def _share(campaign: CampaignDirectory, board: Board, means: Means) -> None:
    """Gets the profile under a claim; waits while another runner of this campaign does."""
    path, claimant = campaign.sensor(board.uuid), this_process()
    number = 1
    while not path.exists() and not means.is_stopping():
        held = path.with_name(f".{path.stem}.attempt-{number:02d}{rundir.CLAIM_SUFFIX}")
        if claim(held, claimant):
            try:
                if not path.exists():
                    storage.write_json(path, _stored(board, means) or _measured(board, means))
            finally:
                held.unlink(missing_ok=True)
        elif is_dead(held, claimant):
            number += 1
        else:
            time.sleep(WAIT_S)


def _stored(board: Board, means: Means) -> profiles.Profile | None:
    try:
        found = profiles.find(board.uuid, board.driver)
    except InputError as error:
        means.tell(error.message)
        return None
    others = profiles.of_other_drivers(board.uuid, board.driver) if found is None else []
    if others:
        means.tell(
            f"{board.uuid} was measured under driver {', '.join(others)}, which does not count: it is {board.driver}"
        )
    return found


def _measured(board: Board, means: Means) -> profiles.Profile:
    if means.measure is None:
        raise PybenchError("no profile is stored, and measuring was not wanted")
    means.tell(f"measuring the power sensor of {board.name} once, about a minute (--no-sensor: assume one)")
    profile = means.measure(board)
    try:
        profiles.store(profile)
    except PybenchError as error:  # the campaign has it all the same
        means.tell(error.message)
    return profile
