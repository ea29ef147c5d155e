# SPDX-License-Identifier: Apache-2.0
"""An entry of the matrix as cells: products, lists that advance together, single cells, exclusions.

A cell is what the plan says about one case, before its meaning is judged. It has factor -> value, each with the path in
the plan that it comes from. So what is wrong with a value later can be shown where it is written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pybench.case.factors import FACTORS, USUAL, factors_of
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.document import Node
from pybench.errors import Problem
from pybench.plan.shape import Entry, Lists, PlanShape, Single
from pybench.plan.values import Value

MOST_CELLS = 10_000  # of a plan; a campaign of ten repetitions at a second a run would take a day

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One factor's value and where the plan says it."""

    value: Value
    path: Path


Cell = Mapping[str, Setting]


def value_of(cell: Cell, name: str) -> Value:
    """What a factor is set to, or its default: of the type of the factor's kind, which `check_value` saw to."""
    setting = cell.get(name)
    return FACTORS[name].default if setting is None else setting.value


def text_of(cell: Cell, name: str) -> str | None:
    """`value_of` a factor as text."""
    value = value_of(cell, name)
    return None if value is None else str(value)


def count_of(cell: Cell, name: str) -> int:
    """`value_of` a factor that is a number; null is 0."""
    return int(value_of(cell, name) or 0)


@dataclass(slots=True)
class EntryCells:
    """The cells of one entry, and what is wrong with how it makes them."""

    cells: list[Cell] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def cells_of(
    entry: Entry, index: int, defaults: Cell, root: Node, catalogue: Catalogue = BUILT_IN, room: int = MOST_CELLS
) -> EntryCells:
    """All cells of `matrix[index]`: the product without what is excluded, then what is included.

    `defaults` are not put into the cells, because not all of them apply to each. But exclusions see them, and with them
    the defaults of factors and of the options of `catalogue`. `room`: how many cells the plan may still have.
    """
    found = EntryCells()
    path: Path = ("matrix", index)
    axes = _axes(entry, path, root, found.problems)
    count = math.prod(len(axis) for axis in axes)
    if count > room:
        what = f"{count} cells in this entry: a plan has at most {MOST_CELLS}"
        found.problems.append(root.at(path).place.problem(what, "split the plan"))
        return found
    product = [_merged(combination) for combination in itertools.product(*axes)]
    found.cells = _without_excluded(entry, path, product, _Seen(defaults, catalogue), root, found.problems)
    single = {name: options[0][name] for options in axes if len(options) == 1 for name in options[0]}
    for number, included in enumerate(entry.include):
        settings = _settings(included, (*path, "include", number))
        inherited = {name: setting for name, setting in single.items() if not _replaces(settings, name)}
        found.cells.append({**inherited, **settings})
    return found


def defaults_of(plan: PlanShape) -> Cell:
    """The plan's defaults."""
    return _settings(plan.defaults, ("defaults",))


def _settings(factors: Single, path: Path) -> dict[str, Setting]:
    return {name: Setting(value, (*path, name)) for name, value in factors.items()}


def _replaces(settings: Cell, name: str) -> bool:
    """Whether an included cell says what the entry's factor says, in its own or in the other unit."""
    other = {"batch": "batch_tokens", "batch_tokens": "batch"}.get(name)
    return name in settings or other in settings


# --- the product ----------------------------------------------------------------------------------------------------


def _axes(entry: Entry, path: Path, root: Node, problems: list[Problem]) -> list[list[dict[str, Setting]]]:
    """Lists of alternatives, in the order in which the entry writes them: the first key varies slowest."""
    axes: dict[str, list[dict[str, Setting]]] = {}
    owner: dict[str, Path] = {}

    def claim(name: str, where: Path) -> bool:
        if name in owner:
            written = _written(root, owner[name])
            problems.append(root.key_place(where).problem(f"`{name}` is given twice in this entry{written}"))
            return False
        owner[name] = where
        return True

    for name, values in entry.factors.items():
        where = (*path, name)
        claim(name, where)
        axes[name] = [{name: Setting(value, (*where, i))} for i, value in enumerate(values)]
    for name, values in entry.data.items():
        where = (*path, "data", name)
        if claim(name, where):
            axes.setdefault("data", [{}])
            alternatives = [{name: Setting(value, (*where, i))} for i, value in enumerate(values)]
            axes["data"] = [_merged(pair) for pair in itertools.product(axes["data"], alternatives)]
    for number, block in enumerate(entry.zip):
        where = (*path, "zip", number)
        claims = [claim(name, (*where, name)) for name in block]  # all of them, for all problems at once
        if all(claims):
            axes[f"zip {number}"] = _zipped(block, where, root, problems)
    order = list((root.at(path).children or {}).keys())
    ranked = sorted(axes, key=lambda name: order.index(name.split()[0]) if name.split()[0] in order else len(order))
    return [axes[name] for name in ranked if axes[name]]


def _zipped(lists: Lists, path: Path, root: Node, problems: list[Problem]) -> list[dict[str, Setting]]:
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        problems.append(root.at(path).place.problem(f"lists in a zip block must have the same length: {said}"))
        return []
    rows = range(next(iter(lengths.values()), 0))
    return [{name: Setting(values[i], (*path, name, i)) for name, values in lists.items()} for i in rows]


def _merged(parts: Sequence[Mapping[str, Setting]]) -> dict[str, Setting]:
    return {name: setting for part in parts for name, setting in part.items()}


def _written(root: Node, path: Path) -> str:
    line = root.key_place(path).line
    return "" if line is None else f" (first on line {line})"


# --- exclusions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Seen:
    """A cell as exclusions see it: with the plan's defaults, and with those of factors and options."""

    defaults: Cell
    catalogue: Catalogue

    def matches(self, cell: Cell, wanted: Lists) -> bool:
        return all(self.value(cell, name) in self._meant(cell, name, values) for name, values in wanted.items())

    def value(self, cell: Cell, name: str) -> Value:
        setting = cell.get(name) or self.defaults.get(name)
        if name == "batch" and "batch_tokens" in cell:
            return int(cell["batch_tokens"].value or 0) // int(self.value(cell, "seq_len") or 1)
        value = factors_of(self.catalogue)[name].default if setting is None else setting.value
        return self._usual(cell, name) if value is None else value

    def why_nothing(self, wanted: Lists, cells: Sequence[Cell]) -> str | None:
        for name, values in wanted.items():
            there: Iterator[Value] = (self.value(cell, name) for cell in cells)
            values_there = list(dict.fromkeys(there))
            if not any(set(self._meant(cell, name, values)) & set(values_there) for cell in cells):
                said = ("null" if value is None else str(value) for value in values_there[:8])
                return f"`{name}` is {', '.join(said)} here"
        return None

    def _meant(self, cell: Cell, name: str, values: Sequence[Value]) -> list[Value]:
        return [self._usual(cell, name) if value is None else value for value in values]

    def _usual(self, cell: Cell, name: str) -> Value:
        """What null stands for, where the row of the workload or the model tells it."""
        if name == "image_size":
            model = self.catalogue.models.get(str(self.value(cell, "model")))
            return None if model is None or not model.takes_images else model.shape[-1]
        row = self.catalogue.workloads.get(str(self.value(cell, "workload"))) if name in USUAL else None
        return None if row is None else getattr(row, USUAL[name])


def _without_excluded(
    entry: Entry, path: Path, cells: list[dict[str, Setting]], seen: _Seen, root: Node, problems: list[Problem]
) -> list[Cell]:
    """The cells that no exclusion matches. An exclusion that matches nothing is a problem."""
    dropped: set[int] = set()
    for number, wanted in enumerate(entry.exclude):
        place = root.at((*path, "exclude", number)).place
        if not wanted:
            problems.append(place.problem("an exclusion without factors", "name the factors of the cells to leave out"))
            continue
        hits = {i for i, cell in enumerate(cells) if seen.matches(cell, wanted)}
        if not hits:
            problems.append(
                place.problem("this exclusion matches no cell of its entry", seen.why_nothing(wanted, cells))
            )
        dropped |= hits
    kept: list[Cell] = [cell for i, cell in enumerate(cells) if i not in dropped]
    if cells and not kept and not entry.include:
        problems.append(root.key_place((*path, "exclude")).problem("the exclusions leave no cell of this entry"))
    return kept
