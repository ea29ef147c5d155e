# SPDX-License-Identifier: Apache-2.0
"""What made a report: the versions that decide its bytes. A replay with others says so when its bytes differ."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from pybench import __version__
from pybench.campaign.reported import REPORTED_WITH


def of_report() -> dict[str, str]:
    """Name -> version, of pybench, Python, the C library, the kind of processor and each of `REPORTED_WITH`."""
    library, version = platform.libc_ver()
    found = {
        "pybench": __version__,
        "python": platform.python_version(),
        "c library": f"{library} {version}".strip() or platform.system(),
        "processor": platform.machine(),
    }
    for name in REPORTED_WITH:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def differences(published: Mapping[str, Any], here: Mapping[str, str]) -> list[str]:
    """`matplotlib 3.11.2 there, 3.12.0 here` for each that differs."""
    names = [*published, *(name for name in here if name not in published)]
    return [
        f"{name} {published.get(name, 'none')} there, {here.get(name, 'none')} here"
        for name in names
        if published.get(name) != here.get(name)
    ]
