# SPDX-License-Identifier: Apache-2.0
"""Planes of trade-offs: which two numbers of a case a report draws against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pybench.catalogue.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """One plane.

    name: of its figures
    title: what is drawn against what
    x, y: metrics, of which the first that the cases have is drawn; empty: the accuracy of the same answers
    by_iteration: only cases with iterations of one size compete: a latency is of a whole iteration
    """

    name: str
    title: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    by_iteration: bool = False


_LATENCY = ("latency_mean_ms",)
# That of the whole module has those of its GPU and CPU inside. A node has idle boards inside, too, so it comes last.
# Bounds of an energy have no place in a plane.
_ENERGIES = (
    "module_energy_per_sample_j",
    "gpu_energy_per_sample_j",
    "cpu_energy_per_sample_j",
    "node_energy_per_sample_j",
)
_ACCURACY = ()

PLANES: Mapping[str, Plane] = Rows(
    "plane",
    (
        Plane(name="plane", title="Accuracy against latency", x=_LATENCY, y=_ACCURACY, by_iteration=True),
        Plane(name="plane-accuracy-energy", title="Accuracy against energy", x=_ENERGIES, y=_ACCURACY),
        Plane(name="plane-energy-latency", title="Energy against latency", x=_LATENCY, y=_ENERGIES),
    ),
)
