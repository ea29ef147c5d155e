# SPDX-License-Identifier: Apache-2.0
"""What the maker of an artefact is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.catalogue.models import MODELS, Model
from pybench.measure import SensorProfile


@dataclass(frozen=True, slots=True)
class MakeRequest:
    """What is to be made.

    kind, parameters: of the recipe
    inputs: role -> file of the artefact that it builds on
    files: factor -> the user's file
    models: the rows that its model may be one of
    sensors: GPU's UUID -> what is known of its power sensor
    unfinished: the folder for what is found, if the kind has `trials`; an earlier maker may have left something there
    """

    kind: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Path]
    files: Mapping[str, Path]
    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)
    sensors: Mapping[str, SensorProfile] = field(default_factory=dict)
    unfinished: Path | None = None

    @property
    def model(self) -> Model:
        """The row of its model, at its size and shape. Raises KeyError for a file of the user's."""
        row = self.models[self.parameters["model"]]
        return row.at_size(self.parameters.get("image_size")).shaped(self.parameters)

    def source(self, role: str, factor: str | None = None) -> Path | None:
        """The file in a role, else the user's own in its place; None: there is neither."""
        return self.inputs.get(role) or self.files.get(factor or role)

    def needed(self, role: str, factor: str | None = None) -> Path:
        """The same, where there has to be one. Raises KeyError when there is none, for then the recipe is wrong."""
        path = self.source(role, factor)
        if path is None:
            raise KeyError(f"making {self.kind} needs a file in the role {role}")
        return path
