# SPDX-License-Identifier: Apache-2.0
"""Ports for daemons that have to be told one.

The kernel gives out its own above these. It gives them to whoever connects somewhere between the choice and the
daemon's start, or while a daemon is down. It also gives them to a client that would find itself there.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

LOWEST, FEWEST = 10_000, 1_000  # of these there are enough on Linux as it comes: 10,000 to 32,767


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which nothing listens, none twice."""
    below = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = random.sample(range(LOWEST, below if below >= LOWEST + FEWEST else 1 << 16), 100 + count)
    free = [port for port in candidates if _is_free(port)]
    assert len(free) >= count, f"of {len(candidates)} ports {len(free)} are free"
    return free[:count]


def _is_free(port: int) -> bool:
    with socket.socket() as one, contextlib.suppress(OSError):
        one.bind(("127.0.0.1", port))
        return True
    return False
