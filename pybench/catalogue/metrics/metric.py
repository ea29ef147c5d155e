# SPDX-License-Identifier: Apache-2.0
"""What a metric is.

SI inside Python; the unit is the last part of the metric's name. A rate or ratio says so in its unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pybench.catalogue.plugins import Plugin
from pybench.catalogue.validities import ValidityKind

Better = Literal["lower", "higher", "none"]
Group = Literal[
    "time",
    "heads",
    "kernels",
    "memory and size",
    "energy of the GPU",
    "energy of the CPU",
    "energy of both",
    "energy of the module",
    "energy of the node",
    "accuracy",
    "training",
]
Amount = Literal["sample", "token", "input_token", "output_token", "gb"]

GPU: Group = "energy of the GPU"
AT = "@"  # between a metric's name and its bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One kind of number.

    name: as stored
    group: the section of the documents that it is in
    unit: of the stored value; 1 for a ratio
    better: the direction that ratios, criteria and `compare` judge by; `none` marks context that is not judged
    label: a few words for the heads of columns and axes
    meaning: one phrase that is exact
    rests_on: the validity of a run without which the value does not count, next to `precision`, on which every value
        rests; None: no other
    scale: how two values are compared
    of: the total that it is made of, `gpu_energy_j` for the energy of one sample; None: it is made of no other metric
    per: of what that total is told for one
    is_inverse: what the total is spent on, divided by the total, instead of the total divided by that
    energy, delay: of an energy-delay product, the energy of one unit of work in J and the latency in ms; None: it is
        no such product
    is_counted: counted, not sampled: values that are equal in all runs are exact
    needs_every_run: a run has no value where it ended too early, and would have a larger one: the mean of a case needs
        a value of each of its runs
    gated: `compare` judges it wherever it is measured. Speed, energy and correctness are one question each: of metrics
        that answer one question about a case, one is gated
    is_share: lies between 0 and 1 (100 where the unit is %), and so does its interval
    is_interval: only ever an interval without a value: an estimate, which is never added to a measured number
    hit_column: the column of predictions that it is the share of true values of; then units of the data (images, say)
        are its unit, not runs
    score_column: the column of predictions that it is the mean of; the same then holds. On a ratio scale scores are
        natural logarithms, and it is the exponential of their mean
    is_per_bound: not stored but evaluated from stored iterations, once for each bound of `slo_ms`; the rows of
        `at_bound` then stand for it
    bound_ms: the bound that it is evaluated at
    share_of: of a metric at bounds, the rate that the share of iterations within the bound is taken of; None: it is
        that share itself
    plugin: the package that adds it; None: pybench
    """

    name: str
    group: Group
    unit: str
    better: Better
    label: str
    meaning: str
    rests_on: ValidityKind | None
    scale: Literal["ratio", "difference"] = "ratio"
    of: str | None = None
    per: Amount | None = None
    is_inverse: bool = False
    energy: str | None = None
    delay: str | None = None
    is_counted: bool = False
    needs_every_run: bool = False
    gated: bool = False
    is_share: bool = False
    is_interval: bool = False
    hit_column: str | None = None
    score_column: str | None = None
    is_per_bound: bool = False
    bound_ms: float | None = None
    share_of: str | None = None
    plugin: Plugin | None = None

    def at_bound(self, bound_ms: float) -> Metric:
        """The row of one bound: `slo_attainment_ratio@50ms`."""
        bound = f"{bound_ms:.12g}"
        return replace(
            self,
            name=f"{self.name}{AT}{bound}ms",
            label=f"{self.label} at {bound} ms",
            meaning=f"{self.meaning}; the bound is {bound} ms",
            is_per_bound=False,
            bound_ms=bound_ms,
        )

    @property
    def is_over_units(self) -> bool:
        """Whether the units of a data set are its unit, so that two cases are paired by them."""
        return self.hit_column is not None or self.score_column is not None

    @property
    def validities(self) -> tuple[ValidityKind, ...]:
        """Those of a run without which the value does not count: a product rests on that of its latency, too."""
        own: tuple[ValidityKind, ...] = () if self.rests_on is None else (self.rests_on,)
        return own if self.delay is None else (*own, "timing")

    @property
    def mean(self) -> Literal["geometric", "arithmetic"]:
        """How the values of runs are averaged. A geometric mean needs values above 0; else it is arithmetic."""
        return "geometric" if self.scale == "ratio" else "arithmetic"

    @property
    def limits(self) -> tuple[float, float] | None:
        """Least and largest possible value, if it is a share."""
        return (0.0, 100.0 if self.unit == "%" else 1.0) if self.is_share else None

    @property
    def has_board_gain(self) -> bool:
        """Whether the unknown gain of one GPU board's sensor is in it: it cancels in ratios on that board."""
        return self.group == GPU
