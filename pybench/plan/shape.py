# SPDX-License-Identifier: Apache-2.0
"""The shape of a plan: pydantic models of every mapping in it.

They are generated from `FACTORS` and `CRITERIA`, and the JSON Schema from them: each name, range and meaning is written
once. What needs more than one key to judge (factors that do not go together, files, baselines) is not here but in
`cells`, `cases` and `comparisons`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError

from pybench.case.factors import FACTORS, Factor
from pybench.catalogue.criteria import CRITERIA, threshold_problem
from pybench.catalogue.protocols import PAIRED_BLOCKS, PROTOCOLS
from pybench.catalogue.workloads import WORKLOADS
from pybench.plan.values import LARGEST_INTEGER, PSEUDO_FACTORS, ValueProblem, check_value, describe, may_be_null

SCHEMA_VERSION = 1  # of plans; a case and a run directory have versions of their own
REQUIRABLE = ("timing", "energy", "precision", "accuracy")  # a run's validities (a test compares)
MOST_REPETITIONS = 100_000
DATA = ("images", "corpus", "tokenizer")  # factors that `data` is another way to write

_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"
_SETTABLE = {**FACTORS, **PSEUDO_FACTORS}


# --- values ---------------------------------------------------------------------------------------------------------


def _refusing(check: Callable[[Any], Any]) -> AfterValidator:
    """A check whose ValueProblem becomes a pydantic error that keeps text and hint apart."""

    def validate(value: Any) -> Any:
        try:
            return check(value)
        except ValueProblem as problem:
            raise PydanticCustomError("value", "{what}", {"what": problem.what, "hint": problem.hint}) from problem

    return AfterValidator(validate)


def _type(check: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    return Annotated[Any, _refusing(check), WithJsonSchema(schema)]


def _value_type(factor: Factor) -> Any:
    return _type(
        lambda value: check_value(factor, value), {"anyOf": _alternatives(factor), "description": said(factor)}
    )


def _values_type(factor: Factor) -> Any:
    """One value or a list of them, read as a list."""
    item = _type(lambda value: check_value(factor, value), {})
    one = _alternatives(factor)
    many = {"type": "array", "items": {"anyOf": one}, "minItems": 1}
    listed: Any = Annotated[_list_of(item), BeforeValidator(_as_list)]
    check = _refusing(lambda values: _not_empty(factor.name, values))
    return Annotated[listed, check, WithJsonSchema({"anyOf": [*one, many], "description": said(factor)})]


def _alternatives(factor: Factor) -> list[dict[str, Any]]:
    """JSON Schemas of a factor's values."""
    by_kind: dict[str, dict[str, Any]] = {
        "choice": {"enum": list(factor.choices)},
        "integer": {
            "type": "integer",
            "minimum": int(factor.minimum or 0),
            "maximum": int(factor.maximum or LARGEST_INTEGER),
        },
        "number": {"type": "number", "minimum": factor.minimum or 0, "maximum": LARGEST_INTEGER},
        "boolean": {"type": "boolean"},
        "file": {"type": "string", "minLength": 1},
        "text": {"type": ["string", "integer"] if factor.form == "cpus" else "string"},
    }
    names = [{"enum": list(factor.choices)}] if factor.kind == "file" and factor.choices else []
    absent = [{"type": "null"}] if may_be_null(factor) else []
    return [*names, by_kind[factor.kind], *absent]


def said(factor: Factor) -> str:
    """A factor's meaning, where it applies and its default, for people."""
    where = "" if len(factor.workloads) == len(WORKLOADS) else f" (for {', '.join(sorted(factor.workloads))})"
    default = "" if factor.default is None else f"; default {describe(factor.default)}"
    absent = f"; null: {factor.absent}" if factor.absent else ""
    return f"{factor.meaning}{where}{default}{absent}"


def _list_of(item: Any) -> Any:
    """`list[item]` of a type that is made at run time."""
    return GenericAlias(list, (item,))


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _as_blocks(value: Any) -> Any:
    return [] if value is None else _as_list(value)


def _not_empty(name: str, values: list[Any]) -> list[Any]:
    if not values:
        raise ValueProblem(f"`{name}` is an empty list: no case is left", "give a value, or remove the key")
    return values


def _some_factor(baseline: Any) -> Any:
    if not baseline.model_fields_set:
        raise ValueProblem("`baseline` names no factor", "as in {precision: fp32}")
    return baseline


def _version_type() -> Any:
    def check(value: Any) -> int:
        if value == SCHEMA_VERSION and isinstance(value, int) and not isinstance(value, bool):
            return value
        raise ValueProblem(f"`schema_version` is {describe(value)}; this pybench reads {SCHEMA_VERSION}")

    return _type(check, {"const": SCHEMA_VERSION})


def _slug_type() -> Any:
    def check(value: Any) -> str:
        if isinstance(value, str) and re.fullmatch(_NAME, value):
            return value
        hint = "it names the campaign's folder: letters, digits, `.`, `_`, `-`, at most 64"
        raise ValueProblem(f"`name` takes a short word; not {describe(value)}", hint)

    return _type(check, {"type": "string", "pattern": f"^{_NAME}$"})


def _text_type(name: str, meaning: str) -> Any:
    def check(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        raise ValueProblem(f"`{name}` takes text; not {describe(value)}", "put it in quotes")

    return _type(check, {"type": ["string", "null"], "description": meaning})


def _integer_type(name: str, meaning: str, least: int, most: int) -> Any:
    def check(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise ValueProblem(f"`{name}` takes an integer from {least} to {most}; not {describe(value)}")

    return _type(check, {"type": "integer", "minimum": least, "maximum": most, "description": meaning})


def _choice_type(name: str, meaning: str, choices: tuple[str, ...]) -> Any:
    factor = Factor(name=name, kind="choice", default=choices[0], meaning=meaning, choices=choices)
    return _type(lambda value: check_value(factor, value), {"enum": list(choices), "description": meaning})


def _protocols_type() -> Any:
    """One name or a list of them, read as a list."""
    item = _choice_type("protocol", "how the analysis compares", tuple(PROTOCOLS))
    listed: Any = Annotated[_list_of(item), BeforeValidator(_as_list)]
    one = {"enum": list(PROTOCOLS)}
    many = {"type": "array", "items": one, "minItems": 1}

    def check(names: list[str]) -> list[str]:
        if not names:
            raise ValueProblem("`protocol` is an empty list", f"remove the key for {PAIRED_BLOCKS} alone")
        return names

    return Annotated[listed, _refusing(check), WithJsonSchema({"anyOf": [one, many]})]


def _threshold_type(name: str) -> Any:
    kind = CRITERIA[name]

    def check(value: Any) -> float:
        wrong = threshold_problem(kind, value)
        if wrong is not None:
            raise ValueProblem(wrong)
        return float(value)

    least = {"exclusiveMinimum": 0} if kind.kind == "ratio" else {}
    return _type(check, {"type": "number", **least, "description": kind.meaning})


# --- mappings -------------------------------------------------------------------------------------------------------


class _Mapping(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def _model(name: str, meaning: str, fields: dict[str, Any]) -> Any:
    """A model made at run time; `fields`: name -> (type, default or Field)."""
    return create_model(name, __base__=_Mapping, __doc__=meaning, **fields)


def _factors(factors: Iterable[Factor], make: Callable[[Factor], Any]) -> dict[str, Any]:
    """Optional fields. A key that is absent is None too: `model_fields_set` tells it from one given as null."""
    return {factor.name: (make(factor), Field(None, json_schema_extra=_no_default)) for factor in factors}


def _no_default(schema: dict[str, Any]) -> None:
    """An absent factor takes its own default, not null."""
    schema.pop("default", None)
    schema.pop("title", None)


def _optional(kind: Any, meaning: str) -> Any:
    return kind | None, Field(None, description=meaning, json_schema_extra=_no_default)


def _blocks(model: Any, meaning: str) -> Any:
    """A list of mappings; a single mapping or null will do."""
    listed: Any = Annotated[_list_of(model), BeforeValidator(_as_blocks)]
    return listed, Field([], description=meaning, json_schema_extra=_or_single)


def _or_single(schema: dict[str, Any]) -> None:
    listed = {"type": "array", "items": schema["items"]}
    schema["anyOf"] = [schema["items"], listed, {"type": "null"}]
    for key in ("type", "items", "default", "title"):
        schema.pop(key, None)


_BASELINE = "the cases that others are compared with, as in {precision: fp32}"
_REQUIRE = "what must be valid in every run for exit code 0"

_PROTOCOL = "how the analysis compares; paired-blocks is always there. " + ". ".join(
    f"{protocol.name}: {protocol.meaning}" for protocol in PROTOCOLS.values()
)

Cell = _model("Cell", "Factors with one value each.", _factors(_SETTABLE.values(), _value_type))
Defaults = _model("Defaults", "Factors of every entry that they apply to.", _factors(FACTORS.values(), _value_type))
ZipBlock = _model("ZipBlock", "Lists of one length that advance together.", _factors(_SETTABLE.values(), _values_type))
Selection = _model(
    "Selection", "Cells with these factors; a list: any of its values.", _factors(FACTORS.values(), _values_type)
)
Baseline = _model(
    "Baseline", "Factors of the cases that others are compared with.", _factors(FACTORS.values(), _value_type)
)
Data = _model("Data", "Another way to write these factors.", _factors((FACTORS[name] for name in DATA), _values_type))
Accept = _model(
    "Accept",
    "Bounds on comparisons.",
    {name: (_threshold_type(name), Field(None, json_schema_extra=_no_default)) for name in CRITERIA},
)
Entry = _model(
    "Entry",
    "One product of factors: each key a factor with a value or a list.",
    {
        **_factors(_SETTABLE.values(), _values_type),
        "data": _optional(Data, "another way to write images, corpus and tokenizer"),
        "zip": _blocks(ZipBlock, "lists that advance together"),
        "include": _blocks(
            Cell, "single cells beside the product; factors that have one value in the entry hold here too"
        ),
        "exclude": _blocks(Selection, "cells to leave out"),
    },
)
Contrast = _model(
    "Contrast",
    "Which cases are compared with which, and what is asked of them.",
    {
        "name": (
            _text_type("name", "how the report calls this comparison"),
            Field(None, json_schema_extra=_no_default),
        ),
        "baseline": (
            Annotated[Baseline, _refusing(_some_factor)],
            Field(description=_BASELINE, json_schema_extra={"minProperties": 1}),
        ),
        "where": _optional(Selection, "compare only these cases"),
        "accept": _optional(Accept, "bounds; without them the comparison is only reported"),
    },
)
Plan = _model(
    "Plan",
    "A benchmark campaign.",
    {
        "schema_version": (_version_type(), Field(description="the version of this format, 1")),
        "name": (_slug_type(), Field(description="the campaign's folder and title")),
        "description": (
            _text_type("description", "what the campaign is for"),
            Field(None, json_schema_extra=_no_default),
        ),
        "seed": (_integer_type("seed", "of the order of runs, synthetic input and resampling", 0, 2**32 - 1), 0),
        "repetitions": (_integer_type("repetitions", "runs of every case, one a block", 1, MOST_REPETITIONS), 10),
        "defaults": _optional(Defaults, "factors of every entry that they apply to"),
        "matrix": (_list_of(Entry), Field(min_length=1, description="what is measured: products of factors")),
        "criteria": _blocks(Contrast, "comparisons with a baseline, and bounds on them"),
        "require": (_list_of(_choice_type("require", "a validity", REQUIRABLE)), Field([], description=_REQUIRE)),
        "protocol": (_protocols_type(), Field([PAIRED_BLOCKS], description=_PROTOCOL)),
    },
)
