# SPDX-License-Identifier: Apache-2.0
"""What a section consists of: elements in their order. A page and a terminal show the same elements.

The page has one macro for each kind of element, in templates/elements.html.j2, named like the class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pybench.analysis import Analysis
from pybench.analysis.findings.kernel_times import KernelTimes, find_kernel_times
from pybench.dataset import Dataset
from pybench.dataset.coverage import Coverage
from pybench.report.canvas import Drawing, Picture, draw
from pybench.report.sentences import Sentence
from pybench.report.tables import Table

if TYPE_CHECKING:
    from pybench.projection import Projection


@dataclass(frozen=True)
class Material:
    """What every section is made from.

    run_link: the folder of all runs, from the page
    projection: of the scenario that the report is asked for; None: of none
    powers: the figures of power, which may be drawn before there is an analysis
    """

    dataset: Dataset
    analysis: Analysis
    coverage: Coverage
    run_link: str
    projection: Projection | None = None
    powers: Sequence[Drawing] = ()

    @cached_property
    def kernel_times(self) -> tuple[KernelTimes, ...]:
        """Read from files, for two sections."""
        return find_kernel_times(self.dataset)


class Element:
    """A part of a section. `lines` is what a terminal shows of it; tables are printed after all lines."""

    @property
    def lines(self) -> Sequence[str]:
        return ()

    @property
    def printed_tables(self) -> Sequence[Table]:
        return ()

    @property
    def tables(self) -> Sequence[Table]:
        """Tables that the report stores, whether the page shows them or not."""
        return ()

    @property
    def drawings(self) -> Sequence[Drawing]:
        """Its figures, not drawn yet."""
        return ()

    @cached_property
    def pictures(self) -> Sequence[Picture]:
        """Its figures, drawn here unless `take` has brought them."""
        return tuple(map(draw, self.drawings))

    def take(self, pictures: Sequence[Picture]) -> None:
        """`pictures`: of its drawings, in their order."""
        self.__dict__["pictures"] = tuple(pictures)


@dataclass(frozen=True)
class Heading(Element):
    """A title inside a section. `anchor`: its id, for what is on the page alone."""

    text: str
    anchor: str | None = None

    @property
    def lines(self) -> Sequence[str]:
        return () if self.anchor else (self.text,)


@dataclass(frozen=True)
class Paragraph(Element):
    """Running text. `look`: headline (which a terminal shows, too), lead or None."""

    text: str
    look: str | None = None

    @property
    def lines(self) -> Sequence[str]:
        return (self.text,) if self.look == "headline" else ()


@dataclass(frozen=True)
class Sentences(Element):
    """A list of sentences, with a title where the section has several lists."""

    sentences: Sequence[Sentence]
    title: str | None = None

    @property
    def lines(self) -> Sequence[str]:
        head = () if self.title is None else ("", self.title)
        return (*head, *(f"  {one.plain}" for one in self.sentences))


@dataclass(frozen=True)
class Items(Element):
    """A plain list under a small title, for the page alone."""

    title: str
    texts: Sequence[str]


@dataclass(frozen=True)
class Tables(Element):
    """Tables, made when first asked for. A table without rows is stored, and not shown.

    `is_printed`: whether `pybench analyse` prints them. `rows_on_page`: what the page shows of each at most."""

    make: Callable[[], Sequence[Table]]
    is_printed: bool = False
    rows_on_page: int | None = None

    @cached_property
    def made(self) -> tuple[Table, ...]:
        return tuple(self.make())

    @property
    def tables(self) -> Sequence[Table]:
        return self.made

    @property
    def printed_tables(self) -> Sequence[Table]:
        return self.made if self.is_printed else ()

    @property
    def shown(self) -> Sequence[Table]:
        return [shorten(table, self.rows_on_page) for table in self.made if table.rows]


@dataclass(frozen=True)
class Pictures(Element):
    """Figures. `prepare`: what they are drawn from."""

    prepare: Callable[[], Sequence[Drawing]]

    @cached_property
    def drawings(self) -> Sequence[Drawing]:
        return tuple(self.prepare())


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page. `build` gives its elements, and none where the campaign has nothing to show in it.

    `anchor`: its id on the page. `is_printed`: whether `pybench analyse` shows it, too."""

    anchor: str
    title: str
    build: Callable[[Material], Sequence[Element]]
    is_printed: bool = True


@dataclass(frozen=True, slots=True)
class BuiltSection:
    """A section of one campaign."""

    section: Section
    elements: Sequence[Element]

    @property
    def tables(self) -> list[Table]:
        return [table for element in self.elements for table in element.tables]

    @property
    def pictures(self) -> list[Picture]:
        return [shown for element in self.elements for shown in element.pictures]


def shorten(table: Table, rows: int | None) -> Table:
    """The table with at most so many rows, and a note that says where the others are."""
    rest = 0 if rows is None else len(table.rows) - rows
    if rest <= 0:
        return table
    note = f"{rest} more rows are in tables/{table.name}.csv."
    return replace(table, rows=table.rows[:rows], notes=(*table.notes, note))
