# SPDX-License-Identifier: Apache-2.0
"""A TOML text as values, and where each key is written: tomllib tells lines and columns only of what it cannot read.

A statement ends where the text so far is TOML by itself, so tomllib is asked line by line; the keys that a statement
added are those that were not there before it. No second parser can disagree with the first that way. It is quadratic,
and a site file is small.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pybench.errors import Problem, SiteError

MAXIMUM_LINES = 1000  # a site file has a hundred

Path = tuple[str | int, ...]

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class TomlText:
    """`places`: path of keys -> where the last one is written. Keys of an inline table stand where that begins."""

    values: Mapping[str, Any]
    places: Mapping[Path, Place]

    def place(self, path: Path) -> Place:
        """Where a path is written, or what of it exists."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(1, 1))


def read_toml(text: str, file: str) -> TomlText:
    """Raises SiteError where the text is no TOML."""
    if text.count("\n") > MAXIMUM_LINES:
        raise SiteError(file, [Problem(f"has more than {MAXIMUM_LINES} lines", hint="is this a site file?")])
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SiteError(file, [_syntax_problem(str(error), text)]) from error
    return TomlText(values, _places(text))


def _syntax_problem(message: str, text: str) -> Problem:
    match = _PLACE.search(message)
    lines = text.splitlines() or [""]
    line, column = (int(match[1]), int(match[2])) if match and match[1] else (len(lines), len(lines[-1]) + 1)
    what = _PLACE.sub("", message)
    hint = "text stands in quotes in TOML" if what.startswith(("Invalid value", "Expected newline")) else None
    return Problem(f"not TOML: {what}", line, column, hint)


def _places(text: str) -> dict[Path, Place]:
    lines = text.split("\n")
    places: dict[Path, Place] = {}
    known: set[Path] = set()
    begin = 0  # of the statement at hand: an index of `lines`
    for end in range(1, len(lines) + 1):
        try:
            values = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # within an array or a text of several lines
        for path in _paths(values):
            if path not in known:
                known.add(path)
                places[path] = _place_of(path, lines, begin)
        begin = end
    return places


def _paths(values: Mapping[str, Any]) -> Iterator[Path]:
    for key, value in values.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *rest) for rest in _paths(value))


def _place_of(path: Path, lines: list[str], begin: int) -> Place:
    """The key within the statement's first line; the line's own beginning where an escape hides it."""
    line = lines[begin]
    found = re.search(rf"(?<![\w-]){re.escape(str(path[-1]))}(?![\w-])", line)
    column = found.start() if found else len(line) - len(line.lstrip())
    return Place(begin + 1, column + 1)
