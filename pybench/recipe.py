# SPDX-License-Identifier: Apache-2.0
"""What a case needs and can be shared: artefacts, each addressed by the recipe that makes it.

A recipe is plain data: its kind, its parameters and the digests of the recipes it builds on. Its own digest is the
artefact's address, so each is made once in a campaign, by a run of its own. Deriving recipes imports no framework: the
runner does it to plan the work, the worker to know what it was given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.case import FACTORS, Case

# Raised when the making of an artefact changes in a way that its parameters do not show.
RECIPE_VERSION = 1

ONNX_FILE = "model.onnx"
CHECKPOINT_FILE = "weights.pt"

TRAINED_ON = {"digits-cnn": "digits"}  # built-in models that are trained when no checkpoint is given
DEFAULT_IMAGES = {
    "digits-cnn": "digits"
}  # images that a built-in model is calibrated and judged on, when none are given


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one artefact is made. `kind`: checkpoint, onnx or onnx-int8; `needs`: role -> the recipe it builds on;
    `file`: the artefact's file inside its folder; `files`: factor and value, a path of the user's that is read.

    `files` is no part of the digest: the content's sha256 is among the parameters, and says more than where it lies.
    """

    kind: str
    file: str
    parameters: tuple[tuple[str, Any], ...]
    needs: tuple[tuple[str, Recipe], ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """64 hexadecimal digits: the sha256 of the canonical JSON of `as_json`."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        return {
            "recipe_version": RECIPE_VERSION,
            "kind": self.kind,
            "file": self.file,
            "parameters": dict(self.parameters),
            "needs": {role: recipe.digest for role, recipe in self.needs},
        }

    def title(self) -> str:
        """A line for people."""
        values = [str(value) for name, value in self.parameters if value is not None and not name.endswith("sha256")]
        return " ".join([self.kind, *values])


def recipes_of(case: Case) -> dict[str, Recipe]:
    """Role -> recipe of what the worker of this case opens: `model` (an ONNX file) or `checkpoint` (torch weights).

    Empty for a case that needs nothing made: no model, a user's own ONNX file in fp32, seeded random weights.
    """
    if case.model is None or case.workload in ("noop", "h2d"):
        return {}
    if case.runtime == "onnxruntime":
        model = _onnx_of(case)
        return {} if model is None else {"model": model}
    checkpoint = _checkpoint_of(case)
    return {} if checkpoint is None else {"checkpoint": checkpoint}


def in_making_order(recipes: Mapping[str, Recipe]) -> list[Recipe]:
    """The recipes and everything they need, each once, needs first."""
    ordered: dict[str, Recipe] = {}

    def visit(recipe: Recipe) -> None:
        for _, needed in recipe.needs:
            visit(needed)
        ordered.setdefault(recipe.digest, recipe)

    for recipe in recipes.values():
        visit(recipe)
    return list(ordered.values())


def is_built_in(factor: str, value: Any) -> bool:
    """Whether a `file` factor's value is one of its built-in names rather than a path."""
    return value in FACTORS[factor].choices


def _checkpoint_of(case: Case) -> Recipe | None:
    trained_on = TRAINED_ON.get(case.model or "")
    if trained_on is None or case.checkpoint is not None:
        return None
    return Recipe("checkpoint", CHECKPOINT_FILE, (("model", case.model), ("trained_on", trained_on), ("seed", 0)))


def _onnx_of(case: Case) -> Recipe | None:
    exported = _exported(case) if is_built_in("model", case.model) else None
    if case.precision != "int8":
        return exported
    sources = dict(case.sources)
    images = case.images or DEFAULT_IMAGES.get(case.model or "")
    parameters = (
        ("model", case.model),
        ("model_sha256", sources.get("model")),
        ("calibration", case.calibration),
        ("calibration_images", case.calibration_images),
        ("images", images),
        ("images_sha256", sources.get("images")),
    )
    needs = () if exported is None else (("onnx", exported),)
    files = tuple((name, str(getattr(case, name))) for name in ("model", "images") if name in sources)
    return Recipe("onnx-int8", ONNX_FILE, parameters, needs, files)


def _exported(case: Case) -> Recipe:
    checkpoint = _checkpoint_of(case)
    parameters = (("model", case.model), ("checkpoint_sha256", dict(case.sources).get("checkpoint")), ("seed", 0))
    needs = () if checkpoint is None else (("checkpoint", checkpoint),)
    files = (("checkpoint", case.checkpoint),) if case.checkpoint is not None else ()
    return Recipe("onnx", ONNX_FILE, parameters, needs, files)
