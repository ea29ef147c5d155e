# SPDX-License-Identifier: Apache-2.0
"""What the label `latency` of a run says: how its latencies are defined."""

from __future__ import annotations

LEFT_OUT = ", what stands before it left out"


def kind_of(label: str) -> str:
    """The kind of latency. What is left out is in none of them, so it makes no other kind."""
    return label.removesuffix(LEFT_OUT)
