# SPDX-License-Identifier: Apache-2.0
"""What the environments of all runs say, as counts: each run has one, and nearly all of their facts are equal.

Only the counts stay: the environments of 10,000 runs differ in clocks and load, so keeping them would keep them all.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

_PLAIN = 2  # version of marshal: later ones write an object that was there before as a reference
_KEPT_OBJECTS = 64  # versions of packages, say, which nearly all runs share; clocks, which no two share, are let go
_KEPT_PARTS = 1024  # of extracts; a run has some 30, and most of them come again


class EnvironmentFacts(dict[str, Counter[str]]):
    """Fact -> value as a text -> how many runs state it, in the order in which the facts were first stated.

    A fact of an object in an environment is named `object.fact`. A fact that a run does not know is not counted, and
    neither is a clock's reading, which is another in each run. To be finished when all runs were added.
    """

    def __init__(self) -> None:
        super().__init__()
        self._again: dict[tuple[str, bytes], int] = {}
        """(prefix, object as bytes) -> how often that object came again, and was not counted yet."""
        self._parts: dict[tuple[str, bytes], int] = {}
        """(name, JSON) -> the same of a part."""

    def add(self, environment: Mapping[str, Any], prefix: str = "") -> None:
        """The environment.json of one run."""
        for name, value in environment.items():
            if not isinstance(value, dict):
                self._count(prefix, name, value, 1)
            elif not self._comes_again(below := f"{prefix}{name}.", value):
                self.add(value, below)

    def add_parts(self, parts: Mapping[str, msgspec.Raw]) -> None:
        """`add`, of an environment of which each part is JSON; `object.fact` names a part of an object."""
        for name, part in parts.items():
            key = name, bytes(part)
            if key in self._parts:
                self._parts[key] += 1
                continue
            if len(self._parts) < _KEPT_PARTS:
                self._parts[key] = 0
            self._add_part(name, part, 1)

    def _add_part(self, name: str, part: msgspec.Raw | bytes, times: int) -> None:
        value = msgspec.json.decode(part)
        if isinstance(value, dict):
            self._repeat(value, f"{name}.", times)
        else:
            self._count("", name, value, times)

    def finish(self) -> None:
        """Counts the objects that came again."""
        for (name, part), times in self._parts.items():
            if times:
                self._add_part(name, part, times)
        self._parts = {}
        for (prefix, text), times in self._again.items():
            if times:
                self._repeat(marshal.loads(text), prefix, times)
        self._again = {}

    def _comes_again(self, prefix: str, found: dict[str, Any]) -> bool:
        key = prefix, marshal.dumps(found, _PLAIN)
        if key in self._again:
            self._again[key] += 1
            return True
        if len(self._again) < _KEPT_OBJECTS:
            self._again[key] = 0
        return False

    def _repeat(self, facts: Mapping[str, Any], prefix: str, times: int) -> None:
        for name, value in facts.items():
            if isinstance(value, dict):
                self._repeat(value, f"{prefix}{name}.", times)
            else:
                self._count(prefix, name, value, times)

    def _count(self, prefix: str, name: str, value: object, times: int) -> None:
        if value is not None and not name.endswith("_ns"):
            counts, text = self._counts(prefix + name), _text_of(value)
            counts[text] = counts.get(text, 0) + times  # most loads are new, and for these `+=` takes longer

    def extend(self, other: EnvironmentFacts) -> None:
        for name, counts in other.items():
            self._counts(name).update(counts)

    def values_of(self, name: str) -> tuple[str, ...]:
        """All values of a fact, in the order in which they were first stated."""
        return tuple(self.get(name, ()))

    def _counts(self, name: str) -> Counter[str]:
        found = self.get(name)
        if found is None:
            found = self[name] = Counter()
        return found


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
