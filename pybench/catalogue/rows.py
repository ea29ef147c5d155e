# SPDX-License-Identifier: Apache-2.0
"""A closed list of rows, looked up by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, Protocol, TypeVar

from pybench.errors import UnknownNameError


class _Named(Protocol):
    @property
    def name(self) -> str: ...


RowT = TypeVar("RowT", bound=_Named)


class Rows(dict[str, RowT]):
    """Name -> row, in the order of the list.

    `rows[name]` raises UnknownNameError for a name that no row has; `in` and `get` are those of any dictionary.
    """

    def __init__(self, kind: str, rows: Iterable[RowT]) -> None:
        """`kind`: what one row is of, in words: `metric`. Raises ValueError where two rows have one name."""
        listed = tuple(rows)
        super().__init__((row.name, row) for row in listed)
        self.kind = kind
        if len(self) < len(listed):
            raise ValueError(f"two rows of one name in the list of each {kind}")

    def __missing__(self, name: str) -> NoReturn:
        raise UnknownNameError(self.kind, name, self)
