# SPDX-License-Identifier: Apache-2.0
"""What this machine's CPU computes exactly."""

from __future__ import annotations

from pathlib import Path

# Without VNNI, kernels of INT8 add two products in 16 bits, which saturates.
HAS_VNNI = "vnni" in Path("/proc/cpuinfo").read_text()
