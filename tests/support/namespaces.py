# SPDX-License-Identifier: Apache-2.0
"""What of namespaces the machine gives to the tests: containers, some clusters and many CI services give less."""

from __future__ import annotations

import subprocess
from pathlib import Path


def has_namespaces() -> bool:
    """Whether a process may make a user and a mount namespace, as rootless containers need."""
    return subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True).returncode == 0


def has_user(number: int) -> bool:
    """Whether this user namespace knows the user, so that root can become it."""
    ranges = [map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= number < first + count for first, _, count in ranges)
