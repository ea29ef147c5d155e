# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a plan, for editors and other readers. schemas/ contains a copy.

It is made of what `pybench.plan.shape` reads: factors, criteria, protocols and the meanings of the other keys.
It tells names, types, ranges and choices, not which factors go together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pybench.case.factor import Factor
from pybench.case.factors import factors_of
from pybench.case.references import curve_names, reference_names
from pybench.case.repetitions import LOOKS, MOST_REPETITIONS, UNTIL
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.criteria import MOST_RATIO, CriterionKind, compared_of, criteria_of
from pybench.catalogue.protocols import PROTOCOLS
from pybench.catalogue.validities import VALIDITIES
from pybench.document.keys import described
from pybench.plan import keys, settings, shape
from pybench.plan.values import LARGEST_INTEGER, PSEUDO_FACTORS, Json, may_be_null

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = Mapping[str, Json]

# Keys and values that an installed package may add: an editor must not mark a good plan as wrong.
_OPTION = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"
_ADDED: Schema = {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$"}
_ADDED_CRITERION = r"^[a-z][a-z0-9_]*_(ratio|delta)_(min|max)$"
_ADDED_REFERENCE = r"^(?!where$)[a-z][a-z0-9_]*$"
_REPETITIONS: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_REPETITIONS}
_BOUND_MS: Schema = {"type": "number", "exclusiveMinimum": 0}
_SIZE: Schema = {"type": "integer", "minimum": 1}  # of a dimension


def plan_schema(catalogue: Catalogue = BUILT_IN) -> Schema:
    """The schema as data. `catalogue`: the rows that a plan may name."""
    factors = factors_of(catalogue)
    settable = {**factors, **PSEUDO_FACTORS}
    definitions = {
        **{f"{name}_value": {"anyOf": _alternatives(factor)} for name, factor in settable.items()},
        "Cell": _of_factors("Factors with one value each.", _singles(settable.values())),
        "Defaults": _of_factors("Factors of every entry that they apply to.", _singles(factors.values())),
        "ZipBlock": _of_factors("Lists of one length that advance together.", _lists(settable.values())),
        "Selection": _of_factors("Cells with these factors; a list: any of its values.", _lists(factors.values())),
        "Baseline": {
            **_of_factors("Factors of the cases that others are compared with.", _singles(factors.values())),
            "minProperties": 1,
        },
        "Data": _mapping("Another way to write these factors.", _lists(factors[name] for name in shape.DATA)),
        "Accept": {
            **_mapping(
                "Bounds on comparisons.", {name: _threshold(kind) for name, kind in criteria_of(catalogue).items()}
            ),
            "patternProperties": {_ADDED_CRITERION: {"type": "number"}},
        },
        "Environment": {
            **_mapping("An interpreter or an image with its packages.", _environment()),
            "minProperties": 1,
            "maxProperties": 1,
        },
        "Curve": _mapping("A figure over a numeric factor.", _curve(catalogue), ("over", "metric")),
        "Reference": _mapping("One published value.", _reference_keys(), ("value", "source")),
        "Published": _blocks("Reference"),
        "References": {
            **_mapping("Published values, by the name of what was compared, or of a metric.", _references(catalogue)),
            "patternProperties": {_ADDED_REFERENCE: _reference("Published")},
        },
        "Entry": _of_factors("One product of factors: each key a factor with a value or a list.", _entry(settable)),
        "Stopping": _mapping("When there are enough blocks.", _stopping(), ("until", "at_most")),
        "Contrast": _mapping("Which cases are compared with which, and the bounds.", _contrast(), ("baseline",)),
    }
    return {
        "$schema": DIALECT,
        "title": "pybench plan",
        **_mapping("A benchmark campaign.", _plan(), ("schema_version", "name", "matrix")),
        "$defs": definitions,
    }


def plan_schema_text(catalogue: Catalogue = BUILT_IN) -> str:
    """The schema as it is printed; the committed one is of pybench's own rows alone."""
    return json.dumps(plan_schema(catalogue), indent=2, ensure_ascii=False) + "\n"


def said(factor: Factor) -> str:
    """A factor's meaning, where it applies and its default, for people."""
    of = factor.workloads()
    where = "" if len(of) == len(BUILT_IN.workloads) else f" (for {', '.join(sorted(of))})"
    default = "" if factor.default is None else f"; default {described(factor.default)}"
    absent = f"; null: {factor.absent}" if factor.absent else ""
    return f"{factor.meaning}{where}{default}{absent}"


# --- mappings -------------------------------------------------------------------------------------------------------


def _plan() -> dict[str, Schema]:
    types: dict[str, Schema] = {
        "schema_version": {"const": settings.SCHEMA_VERSION},
        "name": {"type": "string", "pattern": f"^{settings.NAME}$"},
        "description": {"type": ["string", "null"]},
        "seed": {"type": "integer", "minimum": 0, "maximum": settings.LARGEST_SEED, "default": 0},
        "repetitions": {"anyOf": [_REPETITIONS, _reference("Stopping")], "default": 10},
        keys.ENVIRONMENTS: {"type": ["object", "null"], "additionalProperties": _reference("Environment")},
        "defaults": _or_null("Defaults"),
        "matrix": {"type": "array", "items": _reference("Entry"), "minItems": 1},
        "criteria": _blocks("Contrast"),
        "curves": _blocks("Curve"),
        "require": {"type": "array", "items": {"enum": list(VALIDITIES)}},
        "protocol": _one_or_many({"enum": list(PROTOCOLS)}),
    }
    return _described(types, keys.PLAN_KEYS)


def _environment() -> dict[str, Schema]:
    types: dict[str, Schema] = {
        "python": {"type": "string", "minLength": 1},
        "image": {"type": "string", "pattern": f"{keys.IMAGE_DIGEST}$"},
    }
    return _described(types, keys.ENVIRONMENT_KEYS)


def _stopping() -> dict[str, Schema]:
    types: dict[str, Schema] = {
        "until": {"const": UNTIL},
        "at_most": {"type": "integer", "minimum": LOOKS[0], "maximum": LOOKS[-1]},
        "within_s": {"type": "number", "exclusiveMinimum": 0},
    }
    return _described(types, keys.STOPPING_KEYS)


def _entry(settable: Mapping[str, Factor]) -> dict[str, Schema]:
    types = {
        "repetitions": _REPETITIONS,
        "slo_ms": _one_or_many(_BOUND_MS),
        "zip": _blocks("ZipBlock"),
        "include": _blocks("Cell"),
        "exclude": _blocks("Selection"),
    }
    factors = _lists(settable.values())
    data = factors["data"]
    said_of_both = f"{data['description']}; {keys.ENTRY_KEYS['data']}"
    factors["data"] = {"description": said_of_both, "anyOf": [_reference("Data"), {"anyOf": data["anyOf"]}]}
    return {**factors, **_described(types, keys.ENTRY_KEYS)}


def _contrast() -> dict[str, Schema]:
    types: dict[str, Schema] = {
        "name": {"type": ["string", "null"]},
        "baseline": _reference("Baseline"),
        "where": _or_null("Selection"),
        "accept": _or_null("Accept"),
        "reference": _blocks("References"),
    }
    return _described(types, keys.CRITERIA_KEYS)


def _curve(catalogue: Catalogue) -> dict[str, Schema]:
    numeric = [name for name, factor in factors_of(catalogue).items() if factor.kind in ("integer", "number")]
    drawn = {"anyOf": [{"enum": list(curve_names(catalogue))}, _ADDED]}
    types: dict[str, Schema] = {"over": {"enum": numeric}, "metric": drawn}
    return _described(types, keys.CURVE_KEYS)


def _references(catalogue: Catalogue) -> dict[str, Schema]:
    meanings = {name: kind.meaning for name, kind in compared_of(catalogue).items()} | {
        name: f"{metric.meaning} ({metric.unit})" for name, metric in catalogue.metrics.items()
    }
    names = reference_names(catalogue)
    values = {name: {"description": meanings[name], **_reference("Published")} for name in names}
    return {"where": {"description": keys.REFERENCE_KEYS["where"], **_or_null("Selection")}, **values}


def _reference_keys() -> dict[str, Schema]:
    types: dict[str, Schema] = {
        "value": {"type": "number"},
        "source": {"type": "string"},
        "device": {"type": ["string", "null"]},
        "slo_ms": {"type": "number", "exclusiveMinimum": 0},
        "where": _or_null("Selection"),
        "over_cells": {"type": "boolean"},
    }
    return _described(types, keys.REFERENCE_KEYS)


def _mapping(meaning: str, properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    schema: Schema = {"description": meaning, "type": "object", "additionalProperties": False}
    return {**schema, "properties": dict(properties), **({"required": list(required)} if required else {})}


def _of_factors(meaning: str, properties: Mapping[str, Schema]) -> Schema:
    """A mapping of factors. It takes options of installed packages, too: those have a dot, which no factor has."""
    return {**_mapping(meaning, properties), "patternProperties": {_OPTION: {}}}


def _described(types: Mapping[str, Schema], meanings: Mapping[str, str]) -> dict[str, Schema]:
    return {name: {"description": meanings[name], **schema} for name, schema in types.items()}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _or_null(name: str) -> Schema:
    return {"anyOf": [_reference(name), {"type": "null"}]}


def _blocks(name: str) -> Schema:
    """A list of mappings; a single mapping or null will do."""
    return {"anyOf": [_reference(name), {"type": "array", "items": _reference(name)}, {"type": "null"}]}


# --- values ---------------------------------------------------------------------------------------------------------


def _singles(factors: Iterable[Factor]) -> dict[str, Schema]:
    return {factor.name: {"description": said(factor), **_reference(f"{factor.name}_value")} for factor in factors}


def _lists(factors: Iterable[Factor]) -> dict[str, Schema]:
    return {
        factor.name: {"description": said(factor), **_one_or_many(_reference(f"{factor.name}_value"))}
        for factor in factors
    }


def _one_or_many(one: Schema) -> Schema:
    return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def _threshold(kind: CriterionKind) -> Schema:
    if kind.kind == "ratio":
        limits: Schema = {"minimum": 1 / MOST_RATIO, "maximum": MOST_RATIO}
    else:
        limits = {} if kind.kind == "difference" else {"exclusiveMinimum": 0}
    return {"description": kind.meaning, "type": "number", **limits, **({"maximum": 1} if kind.is_share else {})}


def _alternatives(factor: Factor) -> list[Schema]:
    """JSON Schemas of a factor's values."""
    by_kind: dict[str, Schema] = {
        "choice": {"enum": list(factor.choices)},
        "integer": {
            "type": "integer",
            "minimum": int(factor.minimum or 0),
            "maximum": int(factor.maximum or LARGEST_INTEGER),
            **({} if factor.step == 1 else {"multipleOf": factor.step}),
        },
        "number": {
            "type": "number",
            "minimum": factor.minimum or 0,
            "maximum": factor.maximum or LARGEST_INTEGER,
        },
        "boolean": {"type": "boolean"},
        "file": {"type": "string", "minLength": 1},
        "text": {"type": ["string", "integer"] if factor.form in ("cpus", "rates") else "string"},
    }
    if factor.form == "sizes":
        dimensions: Schema = {"type": "object", "minProperties": 1, "additionalProperties": _one_or_many(_SIZE)}
        named: Schema = {"type": "object", "minProperties": 1, "additionalProperties": dimensions}
        return [named, by_kind["text"], {"type": "null"}]
    names: list[Schema] = [{"enum": list(factor.choices)}] if factor.kind == "file" and factor.choices else []
    added = [_ADDED] if factor.kind == "choice" and factor.rows is not None else []
    absent = [{"type": "null"}] if may_be_null(factor) else []
    return [*names, by_kind[factor.kind], *added, *absent]
