# SPDX-License-Identifier: Apache-2.0
"""The sensor profile of every GPU that a campaign uses: found in this machine's store, or measured, then kept with it.

The profile of the campaign's folder is the one that counts, however often the campaign is continued; under another
driver the board gets another one. Where none can be had, runs assume one and say so (`sensor_assumed`); that is no
failure. Two runners share the work by claims, as with artefacts: who finds a board being measured waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.campaign import layout, storage
from pybench.campaign.claims import claim, is_dead, this_process
from pybench.campaign.directory import CampaignDirectory, read_json
from pybench.errors import InputError, PybenchError
from pybench.machine import profiles
from pybench.machine.machine import Machine
from pybench.machine.sensor import Board

WAIT_S = 0.5  # between two looks at a board that another runner is measuring


@dataclass(frozen=True, slots=True)
class SensorSource:
    """Where profiles come from."""

    machine: Machine
    """Measures a board that has no stored profile."""
    may_measure: bool
    """False: a board without a stored profile stays without one."""
    tell: Callable[[str], None]
    """Shows a line to the user."""
    is_stopping: Callable[[], bool]
    """Whether the user wants to stop."""


def prepare_sensors(campaign: CampaignDirectory, boards: Sequence[Board], source: SensorSource) -> None:
    """Puts a profile of each board into the campaign's folder, unless it is there; says what is assumed instead."""
    for board in boards:
        if source.is_stopping():
            continue
        try:
            _share(campaign, board, source)
        except PybenchError as error:
            source.tell(f"the power sensor of {board.uuid} is assumed, not measured: {error.message}")


def _share(campaign: CampaignDirectory, board: Board, source: SensorSource) -> None:
    """Gets the profile under a claim; waits while another runner of this campaign does."""
    path, claimant = _place(campaign, board), this_process()
    number = 1
    while not path.exists() and not source.is_stopping():
        held = path.with_name(f".{path.stem}.attempt-{number:02d}{layout.CLAIM_SUFFIX}")
        if claim(held, claimant):
            try:
                if not path.exists():
                    storage.write_json(path, _stored(board, source) or _measured(board, source))
            finally:
                held.unlink(missing_ok=True)
        elif is_dead(held, claimant):
            number += 1
        else:
            time.sleep(WAIT_S)


def _place(campaign: CampaignDirectory, board: Board) -> Path:
    """The file of the board's profile under its driver: named after the board alone for the campaign's first driver."""
    path = campaign.sensor(board.uuid)
    if path.exists() and read_json(path).get("driver") != board.driver:
        return campaign.sensor(f"{board.uuid}_driver-{board.driver or 'unknown'}")
    return path


def _stored(board: Board, source: SensorSource) -> profiles.Profile | None:
    try:
        found = profiles.find(board.uuid, board.driver)
    except InputError as error:
        source.tell(error.message)
        return None
    others = profiles.of_other_drivers(board.uuid, board.driver) if found is None else []
    if others:
        source.tell(
            f"{board.uuid} was measured under driver {', '.join(others)}, but this machine has driver {board.driver}"
        )
    return found


def _measured(board: Board, source: SensorSource) -> profiles.Profile:
    if not source.may_measure:
        raise PybenchError("no profile is stored, and --no-sensor was given")
    source.tell(f"measuring the power sensor of {board.name} once, about a minute (--no-sensor: assume one)")
    profile = source.machine.measure_sensor(board)
    try:
        profiles.store(profile)
    except PybenchError as error:  # the campaign has it all the same
        source.tell(error.message)
    return profile
