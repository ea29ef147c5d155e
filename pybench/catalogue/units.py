# SPDX-License-Identifier: Apache-2.0
"""What the prefixes of stored units stand for. The units of metrics are in `pybench.catalogue.metrics`."""

from __future__ import annotations

GIGA = 1e9  # GB and GB/s are 10^9 bytes, as in the papers and in vendors' data sheets
MEGA = 1e6
