# SPDX-License-Identifier: Apache-2.0
"""What a search of kept nodes has tried, a line of JSON for each trial, for the process that goes on with it.

A first line says of what the errors are. Where the file is of other inputs or other versions, it is begun anew: errors
of two quantisers in one search would be of no use. A process that is killed while it writes leaves half a line, where
reading stops. No trial is flushed to the disk, so the last ones are made again after a power cut.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pybench.catalogue.kinds import KINDS
from pybench.precision.execution import Agreement

FILE = str(KINDS["kept-nodes"].trials)
SCHEMA_VERSION = 1


class StoredTrials:
    """Kept nodes -> the agreement of the graph that keeps them, in a folder that outlives its process.

    of: what the errors depend on beside the kept nodes; it has to survive JSON. Raises OSError.
    """

    def __init__(self, folder: Path, of: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE
        head = {"schema_version": SCHEMA_VERSION, "of": dict(of)}
        first, *others = _lines(self._path) or [None]
        self._found = dict(_trials(others)) if first == head else {}
        whole = [head, *(_line(nodes, found) for nodes, found in self._found.items())]
        whole_file = self._path.with_suffix(".tmp")
        whole_file.write_text("".join(json.dumps(line) + "\n" for line in whole))
        whole_file.replace(self._path)

    def __len__(self) -> int:
        return len(self._found)

    def get(self, nodes: frozenset[str]) -> Agreement | None:
        return self._found.get(nodes)

    def add(self, nodes: frozenset[str], agreement: Agreement) -> None:
        self._found[nodes] = agreement
        with open(self._path, "a") as file:
            file.write(json.dumps(_line(nodes, agreement)) + "\n")


def _line(nodes: Iterable[str], agreement: Agreement) -> dict[str, Any]:
    return {"kept": sorted(nodes), "agreement": asdict(agreement)}


def _trials(lines: Iterable[Any]) -> Iterator[tuple[frozenset[str], Agreement]]:
    """Up to a line that says something else, as one of an Agreement that had other fields."""
    with contextlib.suppress(KeyError, TypeError):
        for line in lines:
            yield frozenset(line["kept"]), Agreement(**line["agreement"])


def _lines(path: Path) -> list[Any]:
    """The whole lines of a file, up to one that is damaged; none where there is no file."""
    found = []
    for text in path.read_text(errors="replace").splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(text))
        except ValueError:
            break
    return found
