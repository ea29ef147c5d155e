# SPDX-License-Identifier: Apache-2.0
"""A curve that a plan asks for: a metric, or a ratio to a baseline, over a numeric factor."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_VALUES = 3  # of the factor: two values are a comparison, and no curve


@dataclass(frozen=True, slots=True)
class PlannedCurve:
    """What is drawn over what.

    over: the numeric factor
    metric: a metric, or a criterion without `_min` or `_max`; None: headlines, and the ratios that are judged
    """

    over: str
    metric: str | None
