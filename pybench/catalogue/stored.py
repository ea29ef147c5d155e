# SPDX-License-Identifier: Apache-2.0
"""A row as JSON, and back.

A campaign keeps the rows of what others add to pybench, so that it can be read where these packages are missing.
Every property is stored. A property that a later pybench adds has a default, which rows stored before it then take.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, NoReturn, Union

from pybench.catalogue.catalogue import Row
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import Model
from pybench.catalogue.runtimes import Runtime
from pybench.catalogue.workloads import Workload

TAG = "row"  # not `kind`, which is a property of models
_KINDS: dict[str, type[Row]] = {"workload": Workload, "runtime": Runtime, "model": Model, "metric": Metric}
# A name is part of the names of files, such as `figures/infer-latency_mean_ms.svg`, a word of plans and a column.
_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_METRIC_NAME = re.compile(r"[a-z][a-z0-9_]*")


def row_to_json(row: Row) -> dict[str, Any]:
    """The stored form: which kind of row, and every property."""
    kind = next(name for name, known in _KINDS.items() if known is type(row))
    return {TAG: kind, **_plain(row)}


def row_from_json(stored: Mapping[str, Any]) -> Row:
    """The inverse of `row_to_json`; properties that are not stored take their default.

    Raises ValueError for another kind of row, a name with other characters, an unknown or missing property, a value of
    another type and a number that is not finite.
    """
    kind = _KINDS.get(str(stored.get(TAG)))
    if kind is None:
        raise ValueError(f"a row of an unknown kind: {stored.get(TAG)!r}")
    properties = {name: value for name, value in stored.items() if name != TAG}
    row: Row = _built(kind, properties, str(properties.get("name")))
    _check_name(row)
    return row


def _check_name(row: Row) -> None:
    pattern, others = (_METRIC_NAME, "_") if isinstance(row, Metric) else (_NAME, "_, . and -")
    if not pattern.fullmatch(row.name):
        raise ValueError(f"the name {row.name!r} is not of a to z, 0 to 9, {others}, or does not begin with a letter")


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _built(kind: Any, stored: Any, place: str) -> Any:
    """A dataclass of its stored properties. `place`: what they are of, for errors."""
    if not isinstance(stored, Mapping):
        raise ValueError(f"{place} is no mapping of properties")
    known = {one.name: one for one in fields(kind)}
    unknown = sorted(set(stored) - set(known))
    if unknown:
        raise ValueError(f"{place} has unknown properties: {', '.join(unknown)}")
    missing = [name for name, one in known.items() if name not in stored and _is_required(one)]
    if missing:
        raise ValueError(f"{place} lacks properties: {', '.join(missing)}")
    hints = _hints(kind)
    return kind(**{name: _read(hints[name], value, f"{place}.{name}") for name, value in stored.items()})


def _is_required(one: Any) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(hint: Any, value: Any, place: str) -> Any:
    """A stored value as the type that a property has."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        others = [each for each in arguments if each is not type(None)]
        if len(others) == 1:
            return _read(others[0], value, place)
        hint = type(value) if type(value) in others else NoReturn
    if is_dataclass(hint):
        return _built(hint, value, place)
    if origin is tuple and isinstance(value, list):
        return tuple(_read(arguments[0], each, place) for each in value)
    if origin is Mapping and isinstance(value, Mapping):
        return {str(key): _read(arguments[1], each, f"{place}.{key}") for key, each in value.items()}
    if (origin is Literal and value in arguments) or (hint is float and type(value) is int):
        return value
    if hint is float and type(value) is float and not math.isfinite(value):
        raise ValueError(f"{place} is {value}, which is no finite number")
    if isinstance(hint, type) and type(value) is hint:
        return value
    choices = f" (one of {', '.join(map(str, arguments))})" if origin is Literal else ""
    raise ValueError(f"{place} has another type than the property: {value!r}{choices}")
