# SPDX-License-Identifier: Apache-2.0
"""The stored sensor profiles of this machine: one JSON file for each board under each driver.

They lie in $PYBENCH_SENSORS, else $XDG_DATA_HOME/pybench/sensors, else ~/.local/share/pybench/sensors. A profile counts
only for the driver that it was measured under: on one board, a driver changed what a field averages over (arXiv
2312.02741). What the numbers mean is `pybench.measure.energy.profile`'s business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pybench.campaign import storage
from pybench.campaign.directory import read_json
from pybench.catalogue.sensors import MEASURE_AGAIN, check_profile
from pybench.errors import CorruptError, InputError

FOLDER_VARIABLE = "PYBENCH_SENSORS"

Profile = Mapping[str, Any]


def folder() -> Path:
    """Where profiles are stored; it need not exist."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "pybench" / "sensors"


def file_of(uuid: str, driver: str | None) -> Path:
    """Where the profile of a board under a driver is, or would be."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{uuid}_driver-{driver or 'unknown'}")
    return folder() / f"{name}.json"


def store(profile: Profile) -> Path:
    """Writes a profile whole or not at all, in place of a former one; returns where."""
    path = file_of(profile["uuid"], profile["driver"])
    storage.make_folder(path.parent, exist_ok=True)
    storage.write_json(path, profile)
    return path


def find(uuid: str, driver: str | None) -> Profile | None:
    """The profile of a board under this driver; None when there is none. Raises InputError for an unreadable one."""
    path = file_of(uuid, driver)
    if not path.is_file():
        return None
    profile = read(path)
    if (profile.get("uuid"), profile.get("driver")) != (uuid, driver):
        raise InputError(
            f"{path}: this is the profile of {profile.get('uuid')} under {profile.get('driver')}", hint=MEASURE_AGAIN
        )
    return profile


def stored() -> dict[Path, Profile | InputError]:
    """Every stored profile by its file, in the order of names; for one that cannot be read, why."""
    found: dict[Path, Profile | InputError] = {}
    for path in sorted(folder().glob("*.json")):
        try:
            found[path] = read(path)
        except InputError as error:
            found[path] = error
    return found


def of_other_drivers(uuid: str, driver: str | None) -> list[str]:
    """The drivers, other than this, under which the board was measured."""
    profiles = [profile for profile in stored().values() if not isinstance(profile, InputError)]
    return [str(each["driver"]) for each in profiles if each.get("uuid") == uuid and each.get("driver") != driver]


def read(path: Path) -> Profile:
    """One stored profile. Raises InputError, naming the file, for what is none."""
    try:
        profile = read_json(path)
    except CorruptError as error:
        raise InputError(error.message, hint=MEASURE_AGAIN) from error
    check_profile(profile, str(path))
    return profile
