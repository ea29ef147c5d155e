# SPDX-License-Identifier: Apache-2.0
"""What does not fit the shape of a plan, as problems with places; and the rest, so that it can be judged as well.

pydantic finds what is wrong; here it gets the place in the file, plain words and the nearest valid name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pybench.case.factors import FACTORS
from pybench.errors import Problem
from pybench.plan import shape
from pybench.plan.document import Node
from pybench.plan.values import describe, nearest

Location = tuple[str | int, ...]

LONG_LIST = 12  # names that a hint still enumerates

_BLOCKS = ("matrix", "zip", "include", "exclude", "criteria")  # keys whose lists hold mappings
_MODELS: dict[str, type[BaseModel]] = {
    "": shape.Plan,
    "defaults": shape.Defaults,
    "matrix": shape.Entry,
    "zip": shape.ZipBlock,
    "include": shape.Cell,
    "exclude": shape.Selection,
    "data": shape.Data,
    "criteria": shape.Contrast,
    "baseline": shape.Baseline,
    "where": shape.Selection,
    "accept": shape.Accept,
}


@dataclass(frozen=True, slots=True)
class Shaped:
    """A tree read as a plan. `plan` is what fits, None where nothing does; `damaged`: entries that lost a part."""

    plan: Any
    damaged: frozenset[int]
    problems: tuple[Problem, ...]


def read_shape(root: Node) -> Shaped:
    """The plan in a tree and everything in it that does not fit."""
    try:
        return Shaped(shape.Plan.model_validate(root.plain()), frozenset(), ())
    except ValidationError as error:
        found = error.errors(include_url=False)
    problems = tuple(_problem(details, root) for details in found)
    damaged = {step for details in found for step in details["loc"][1:2] if details["loc"][0] == "matrix"}
    return Shaped(_what_fits(root, found), frozenset(step for step in damaged if isinstance(step, int)), problems)


def _what_fits(root: Node, found: list[ErrorDetails]) -> Any:
    """The plan without its misfits and without criteria, for which half a matrix is no ground to stand on."""
    if root.children is None:
        return None
    kept = root
    for details in found:
        path = _smallest_part(root, details["loc"])
        is_there = len(kept.steps(path)) == len(path)  # not gone with another misfit
        if path and is_there and details["type"] != "missing":
            kept = kept.replaced(path, None)
    plain = {**kept.plain(), "schema_version": shape.SCHEMA_VERSION, "name": "unnamed", "criteria": None}
    try:
        return shape.Plan.model_validate(plain)
    except ValidationError:
        return None


def _smallest_part(root: Node, location: Location) -> Location:
    """The path to take out for a misfit: a key of a mapping, or one mapping of a list of them."""
    path = [step for step, _ in root.steps(location)]
    while path and isinstance(path[-1], int) and (len(path) < 2 or path[-2] not in _BLOCKS):
        path.pop()
    return tuple(path)


def _problem(details: ErrorDetails, root: Node) -> Problem:
    location, context = details["loc"], details.get("ctx", {})
    key = next((step for step in reversed(location) if isinstance(step, str)), "the plan")
    value_place = root.at(location).place
    match details["type"]:
        case "value":
            return value_place.problem(context["what"], context["hint"])
        case "extra_forbidden":
            return root.key_place(location).problem(f"unknown key `{location[-1]}`", _hint_for_key(location))
        case "missing":
            return root.at(location[:-1]).place.problem(f"`{location[-1]}` is missing", _hint_for_missing(location))
        case "model_type" | "model_attributes_type" | "dict_type":
            takes = "a list of mappings" if key in _BLOCKS else "a mapping"
            return value_place.problem(f"{_called(key)} takes {takes}; not {describe(details['input'])}")
        case "too_short":
            return value_place.problem(f"{_called(key)} is an empty list", "an entry is a mapping of factors")
        case "list_type":
            return value_place.problem(f"{_called(key)} takes a list; not {describe(details['input'])}")
    return value_place.problem(f"{_called(key)}: {details['msg']}")


def _called(key: str) -> str:
    return key if key == "the plan" else f"`{key}`"


def _model_at(location: Location) -> type[BaseModel]:
    words = [step for step in location if isinstance(step, str)]
    return _MODELS[words[-1] if words else ""]


def _hint_for_key(location: Location) -> str:
    key, names = str(location[-1]), tuple(_model_at(location[:-1]).model_fields)
    near = nearest(key, names)
    if near is None and key in FACTORS and names == tuple(shape.Plan.model_fields):
        return "a factor: it belongs into `defaults` or an entry of `matrix`"
    if near is None and key in shape.Plan.model_fields:
        return "it belongs to the top of the plan"
    if near is None and len(names) > LONG_LIST:
        return "`pybench schema` lists the valid ones"
    return near or f"valid here: {', '.join(names)}"


def _hint_for_missing(location: Location) -> str | None:
    described: Any = _model_at(location[:-1]).model_fields[str(location[-1])].description
    return described if isinstance(described, str) else None
