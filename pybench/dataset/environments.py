# SPDX-License-Identifier: Apache-2.0
"""What the environments of all runs say, as counts: each run has one, and nearly all of their facts are equal.

Only the counts stay: the environments of 10,000 runs differ in clocks and load, so keeping them would keep them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


class EnvironmentFacts(dict[str, Counter[str]]):
    """Fact -> value as a text -> how many runs state it, in the order in which the facts were first stated.

    A fact of an object in an environment is named `object.fact`. A fact that a run does not know is not counted, and
    neither is a clock's reading, which is another in each run.
    """

    def add(self, environment: Mapping[str, Any], prefix: str = "") -> None:
        """The environment.json of one run."""
        for name, value in environment.items():
            if isinstance(value, dict):
                self.add(value, f"{prefix}{name}.")
            elif value is not None and not name.endswith("_ns"):
                self._counts(f"{prefix}{name}")[_text_of(value)] += 1

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
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
