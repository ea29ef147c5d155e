# SPDX-License-Identifier: Apache-2.0
"""Tables of a file as frozen dataclasses: what each key takes, and the reader that makes them of a tree.

A field is made by `text`, `texts`, `variables`, `choice`, `whole`, `truth`, `table`, `tables` or `made`,
which say what its key takes. A key that is absent or null takes the field's default; without one the key is required.
Any other field is no key of the file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Never, TypeGuard, TypeVar, cast

from pybench.document.tree import Node, Plain, Unplaced
from pybench.errors import Problem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TableT = TypeVar("TableT", bound="DataclassInstance")
ValueT = TypeVar("ValueT")
DefaultT = TypeVar("DefaultT")
WordT = TypeVar("WordT", bound=str)

_REQUIRED: Never = cast(Never, MISSING)  # adds nothing to the type of a field that has no default


@dataclass(frozen=True, slots=True)
class Form:
    """How a text has to be written. `called`: in words, for errors."""

    pattern: re.Pattern[str]
    called: str


class WrongValue(Unplaced):
    """What is wrong with a value. `what`: goes on after the key, as in `takes a list`."""


_Read = Callable[[Node, str, list[Problem]], ValueT]  # node, its key with dots, where problems go -> the value
_READ, _TABLE = "read", "table"


def read_table(kind: type[TableT], node: Node, problems: list[Problem]) -> TableT | None:
    """The table that is the whole file; None where `problems` has grown."""
    before = len(problems)
    values = _values(kind, node, "", problems, root=kind)
    return kind(**values) if len(problems) == before else None


# --- what a key takes -----------------------------------------------------------------------------------------------


def text(form: Form | None = None, default: DefaultT = _REQUIRED) -> str | DefaultT:
    """A text. `form`: None takes several lines, too."""
    return _field(lambda node, key, problems: _text(form, node.plain()), default)


def texts(form: Form) -> tuple[str, ...]:
    """A list of texts, by default none."""

    def read(node: Node, key: str, problems: list[Problem]) -> tuple[str, ...]:
        if node.items is None:
            raise WrongValue(f"takes a list; not {_shown(node)}", "as in [--gpu-freq=high]")
        found = (_checked(item, f"{key}.{i}", problems, _text_of(form)) for i, item in enumerate(node.items))
        return tuple(one for one in found if one is not None)

    return _field(read, ())


def variables(name: Form, value: Form) -> Mapping[str, str]:
    """A mapping of free names to texts, by default empty."""

    def read(node: Node, key: str, problems: list[Problem]) -> Mapping[str, str]:
        if node.children is None:
            raise WrongValue(f"takes a mapping; not {_shown(node)}")
        for each in node.children:
            if not name.pattern.fullmatch(each):
                place = node.key_place((each,))
                problems.append(place.problem(f"`{key}.{each}`: `{each}` is not {name.called}"))
        found = {
            each: _checked(child, f"{key}.{each}", problems, _text_of(value)) for each, child in node.children.items()
        }
        return {each: one for each, one in found.items() if one is not None}

    return field(default_factory=dict, metadata={_READ: read})


def choice(*choices: WordT, default: DefaultT = _REQUIRED) -> WordT | DefaultT:
    """One of these words."""

    def read(node: Node, key: str, problems: list[Problem]) -> WordT:
        for word in choices:
            if node.plain() == word:
                return word
        raise WrongValue(f"takes {' or '.join(choices)}; not {_shown(node)}")

    return _field(read, default)


def whole(least: int, most: int | None = None, default: DefaultT = _REQUIRED) -> int | DefaultT:
    """An integer in a range."""

    def read(node: Node, key: str, problems: list[Problem]) -> int:
        value = node.plain()
        if not _is_integer(value) or value < least or (most is not None and value > most):
            to = "" if most is None else f" to {most}"
            raise WrongValue(f"takes an integer from {least}{to}; not {_shown(node)}")
        return value

    return _field(read, default)


def read_number(node: Node, least: float, most: float) -> float:
    """The number that a node contains. Raises WrongValue for anything else, and outside of the range."""
    value = node.plain()
    if not _is_number(value) or not least <= value <= most:
        raise WrongValue(f"takes a number, {least:g} to {most:g}; not {_shown(node)}")
    return float(value)


def truth(default: bool) -> bool:
    """True or false."""

    def read(node: Node, key: str, problems: list[Problem]) -> bool:
        value = node.plain()
        if not isinstance(value, bool):
            raise WrongValue(f"takes true or false; not {_shown(node)}")
        return value

    return _field(read, default)


def table(kind: type[TableT], default: DefaultT = _REQUIRED) -> TableT | DefaultT:
    """A mapping that is read as a dataclass of its own."""

    def read(node: Node, key: str, problems: list[Problem]) -> TableT | None:
        before = len(problems)
        values = _values(kind, node, key, problems)
        return kind(**values) if len(problems) == before else None

    return field(default=default, metadata={_READ: read, _TABLE: kind})


def tables(kind: type[TableT]) -> tuple[TableT, ...]:
    """A list of mappings, each read as a dataclass of its own, by default empty."""

    def read(node: Node, key: str, problems: list[Problem]) -> tuple[TableT, ...]:
        if node.items is None:
            raise WrongValue(f"takes a list of mappings; not {_shown(node)}")
        before = len(problems)
        values = [_values(kind, item, f"{key}.{i}", problems) for i, item in enumerate(node.items)]
        return tuple(kind(**each) for each in values) if len(problems) == before else ()

    return _field(read, ())


def made(read: Callable[[Node], ValueT], default: DefaultT = _REQUIRED) -> ValueT | DefaultT:
    """What `read` makes of the node; it raises WrongValue for what it cannot take."""
    return _field(lambda node, key, problems: read(node), default)


def _field(read: _Read[ValueT], default: DefaultT) -> ValueT | DefaultT:
    return field(default=default, metadata={_READ: read})


# --- reading --------------------------------------------------------------------------------------------------------


def _values(
    kind: type[DataclassInstance],
    node: Node,
    called: str,
    problems: list[Problem],
    root: type[DataclassInstance] | None = None,
) -> dict[str, object]:
    """The values of a mapping's keys; what is wrong goes into `problems`. `called`: its key with dots."""
    if node.children is None:
        what = f"`{called}` takes a mapping" if called else "takes a mapping, as in `key: value`"
        problems.append(node.place.problem(f"{what}; not {_shown(node)}"))
        return {}
    known = {one.name: one for one in _keys(kind)}
    prefix = f"{called}." if called else ""
    for key in node.children:
        if key not in known:
            problem = node.key_place((key,)).problem(f"unknown key `{prefix}{key}`", _hint(key, kind, root))
            problems.append(problem)
    given = {key: child for key, child in node.children.items() if not child.is_null}
    for key, one in known.items():
        if key not in given and one.default is MISSING and one.default_factory is MISSING:
            problems.append(node.place.problem(f"`{prefix}{key}` is missing"))
    return {
        key: _checked(child, prefix + key, problems, known[key].metadata[_READ])
        for key, child in given.items()
        if key in known
    }


def _keys(kind: type[DataclassInstance]) -> list[Field[Any]]:
    """The fields that keys of the file fill."""
    return [one for one in fields(kind) if _READ in one.metadata]


def _checked(node: Node, key: str, problems: list[Problem], read: _Read[ValueT]) -> ValueT | None:
    try:
        return read(node, key, problems)
    except WrongValue as misfit:
        separator = " " if misfit.what.startswith("takes ") else ": "
        problems.append(node.place.problem(f"`{key}`{separator}{misfit.what}", misfit.hint))
        return None


def _text_of(form: Form) -> _Read[str]:
    return lambda node, key, problems: _text(form, node.plain())


def _text(form: Form | None, value: Plain) -> str:
    if not isinstance(value, str):
        is_scalar = value is None or isinstance(value, bool | int | float)
        raise WrongValue(f"takes text; not {described(value)}", "put it in quotes" if is_scalar else None)
    if form is not None and not form.pattern.fullmatch(value):
        raise WrongValue(f"`{value}` is not {form.called}")
    return value


def _hint(key: str, kind: type[DataclassInstance], root: type[DataclassInstance] | None) -> str:
    """The nearest key of this mapping, or the mapping that has this key."""
    names = [one.name for one in _keys(kind)]
    given = key.lower().replace("-", "_")
    close = difflib.get_close_matches(given, names, 1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    inner = {one.name: one.metadata.get(_TABLE) for one in _keys(root)} if root is not None else {}
    owners = [name for name, of in inner.items() if of is not None and given in {one.name for one in _keys(of)}]
    return f"write it in `{owners[0]}`" if owners else f"valid keys here: {', '.join(names)}"


def _is_integer(value: Plain) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Plain) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(node: Node) -> str:
    return described(node.plain())


def described(value: Plain) -> str:
    """A value in the words of an error."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
