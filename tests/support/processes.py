# SPDX-License-Identifier: Apache-2.0
"""Whether processes that are no child of the test still run."""

from __future__ import annotations

import os
import select
from pathlib import Path


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_end(pid: int, patience_s: float = 60.0) -> bool:
    """Whether the process ends within that time; true at once for one that is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], patience_s)[0])
    finally:
        os.close(handle)
