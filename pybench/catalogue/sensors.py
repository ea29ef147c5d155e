# SPDX-License-Identifier: Apache-2.0
"""What the measuring half, the store of profiles and the command line all say of a GPU's power sensor."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows

PROFILE_VERSION = 1  # of a stored profile: its `schema_version`
SHORT_LOADS = 30  # twice as many steps: the delay of an H200's samples to 0.1 ms, in 35 s
FEWEST_LOADS = 6  # fewer show too few steps of power


@dataclass(frozen=True, slots=True)
class PlainMethod:
    """A way of other tools to compute an energy. `meaning`: who uses it, or what it leaves out."""

    name: str
    label: str
    meaning: str


FUSED = "fused"  # pybench's own method
PLAIN_METHODS = Rows(
    "method of energy",
    (
        PlainMethod(
            "counter-difference", "Counter difference", "readings nearest to the edges, as in Zeus and CodeCarbon"
        ),
        PlainMethod("average-trapezoid", "Polled average power", "the driver's one-second mean, as in nvidia-smi"),
        PlainMethod("instant-trapezoid", "Polled instant power", "the driver's instantaneous power"),
        PlainMethod(
            "samples-trapezoid",
            "Plain samples of the driver",
            "the samples at their time stamps, delay and lag not removed",
        ),
        PlainMethod("counter-interpolated", "Interpolated counter", "readings interpolated to the edges"),
    ),
)
ENERGY_METHODS = (FUSED, *PLAIN_METHODS)
