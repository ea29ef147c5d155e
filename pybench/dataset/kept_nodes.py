# SPDX-License-Identifier: Apache-2.0
"""What searches of nodes that stay in FP32 found: one record for each file that was searched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.campaign.environments import read_environments
from pybench.campaign.recipe import in_making_order, recipes_of
from pybench.dataset import ArtefactRecord, Dataset


@dataclass(frozen=True, slots=True)
class KeptNodes:
    """Of one search.

    making: of the search
    found: as the making labelled it (`kept_search`)
    cases: ids of the cases that run the file, in the plan's order; none where another version of pybench made it
    """

    making: ArtefactRecord
    found: Mapping[str, Any]
    cases: tuple[str, ...]


def read_kept_nodes(dataset: Dataset) -> tuple[KeptNodes, ...]:
    """Of each search that met its bound, in the order of the plan's cases."""
    made = {making.digest: making for making in dataset.artefacts if making.labels.get("kept_search")}
    if not made:
        return ()
    installed = {name: known.sha256 for name, known in read_environments(dataset.campaign).items()}
    cases: dict[str, list[str]] = {}
    for case in dataset.plan.cases:
        for recipe in in_making_order(recipes_of(case, environment=installed.get(case.environment or ""))):
            if recipe.digest in made:
                cases.setdefault(recipe.digest, []).append(case.id)
    return tuple(
        KeptNodes(made[digest], made[digest].labels["kept_search"], tuple(cases.get(digest, ())))
        for digest in [*cases, *(digest for digest in made if digest not in cases)]
    )
