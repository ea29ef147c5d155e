# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(condition: Callable[[], Any], limit_s: float = 60.0) -> Any:
    """The first true value of `condition`, or a failure after `limit_s`."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {limit_s} s")
